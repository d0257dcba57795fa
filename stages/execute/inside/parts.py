"""Value types of the standard library (Counter, Decimal, datetime, ...) that cross as their parts. Run alone: no."""

import array
import collections
import datetime
import decimal
import fractions
import pathlib
import uuid

from refusals import Malformed


def _factory(factory):
    """What makes a defaultdict's values, if that is a built-in type; else a missing key is an error."""
    return factory if factory in (int, float, bool, str, list, dict, set, tuple) else None


def _zone(moment):
    """The time zone of a time or datetime as a fixed offset; equal moments stay equal."""
    offset = moment.utcoffset()
    return moment.tzinfo if type(moment.tzinfo) is datetime.timezone or offset is None else datetime.timezone(offset)


def _parts_of_timezone(value):
    return (value.utcoffset(None).total_seconds(),)


# Value types of the standard library: how to take them apart and how to build them again from plain parts.
PARTS = {
    collections.Counter: ("Counter", lambda v: (list(dict.items(v)),)),
    collections.OrderedDict: ("OrderedDict", lambda v: (list(v.items()),)),
    collections.defaultdict: ("defaultdict", lambda v: (_factory(v.default_factory), list(v.items()))),
    collections.deque: ("deque", lambda v: (list(v), v.maxlen)),
    range: ("range", lambda v: (v.start, v.stop, v.step)),
    slice: ("slice", lambda v: (v.start, v.stop, v.step)),
    bytearray: ("bytearray", lambda v: (bytes(v),)),
    decimal.Decimal: ("Decimal", lambda v: (str(v),)),
    fractions.Fraction: ("Fraction", lambda v: (v.numerator, v.denominator)),
    datetime.timedelta: ("timedelta", lambda v: (v.days, v.seconds, v.microseconds)),
    datetime.timezone: ("timezone", _parts_of_timezone),
    datetime.date: ("date", lambda v: (v.year, v.month, v.day)),
    datetime.datetime: (
        "datetime",
        lambda v: (v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, _zone(v), v.fold),
    ),
    datetime.time: ("time", lambda v: (v.hour, v.minute, v.second, v.microsecond, _zone(v), v.fold)),
    uuid.UUID: ("UUID", lambda v: (v.bytes,)),
    array.array: ("array", lambda v: (v.typecode, v.tolist())),
    pathlib.PosixPath: ("PosixPath", lambda v: (str(v),)),
    pathlib.PurePosixPath: ("PurePosixPath", lambda v: (str(v),)),
    type({}.keys()): ("keys", lambda v: (list(v),)),
    type({}.values()): ("values", lambda v: (list(v),)),
    type({}.items()): ("items", lambda v: (list(v),)),
}


def _of_type(value, *types):
    if type(value) not in types:
        raise Malformed("parts of a wrong type")
    return value


def _pairs(items):
    for pair in _of_type(items, list):
        if type(pair) is not tuple or len(pair) != 2:
            raise Malformed("parts of a wrong type")
    return items


def _int_limited(value):
    if abs(_of_type(value, int)) > 10**30:
        raise Malformed("a range that is too large")
    return value


def _timezone_or_none(value):
    return _of_type(value, type(None), datetime.timezone)


def _array(dtype, shape, data):
    import numpy  # where the tests' side has it; an ImportError is malformed data

    kind = numpy.dtype(_of_type(dtype, str))
    if kind.kind not in "biufcSU":
        raise Malformed("an array of an unsupported type")
    return numpy.frombuffer(_of_type(data, bytes), dtype=kind).reshape(_of_type(shape, tuple)).copy()


BUILD = {
    "ndarray": _array,
    "Counter": lambda items: collections.Counter(dict(_pairs(items))),
    "OrderedDict": lambda items: collections.OrderedDict(_pairs(items)),
    "defaultdict": lambda factory, items: collections.defaultdict(_factory(factory), _pairs(items)),
    "deque": lambda items, maxlen: collections.deque(_of_type(items, list), _of_type(maxlen, int, type(None))),
    "range": lambda a, b, c: range(_int_limited(a), _int_limited(b), _int_limited(c)),
    "slice": lambda a, b, c: slice(a, b, c),
    "bytearray": lambda data: bytearray(_of_type(data, bytes)),
    "Decimal": lambda text: decimal.Decimal(_of_type(text, str)),
    "Fraction": lambda n, d: fractions.Fraction(_of_type(n, int), _of_type(d, int)),
    "timedelta": lambda d, s, m: datetime.timedelta(_of_type(d, int), _of_type(s, int), _of_type(m, int)),
    "timezone": lambda s: datetime.timezone(datetime.timedelta(seconds=_of_type(s, float))),
    "date": lambda *ymd: datetime.date(*ymd),
    "datetime": lambda *p: datetime.datetime(*p[:7], _timezone_or_none(p[7]), fold=p[8]),
    "time": lambda *p: datetime.time(*p[:4], _timezone_or_none(p[4]), fold=p[5]),
    "UUID": lambda data: uuid.UUID(bytes=_of_type(data, bytes)),
    "array": lambda code, items: array.array(_of_type(code, str), _of_type(items, list)),
    "PosixPath": lambda text: pathlib.PosixPath(_of_type(text, str)),
    "PurePosixPath": lambda text: pathlib.PurePosixPath(_of_type(text, str)),
    "keys": lambda keys: dict.fromkeys(_of_type(keys, list)).keys(),
    "values": lambda values: dict(enumerate(_of_type(values, list))).values(),
    "items": lambda items: dict(_pairs(items)).items(),
}
