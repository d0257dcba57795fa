"""Values that cross between candidate and tests: the same value comes out, or it is refused."""

import array
import collections
import datetime
import decimal
import fractions
import math
import pathlib
import uuid

import codec
import pytest
from hypothesis import given
from hypothesis import strategies as st

BUDGET = 1 << 20


def foreign(value):
    raise codec.Refused("unsupported_value", f"foreign {type(value).__name__}")


def encode(value, budget=BUDGET):
    return codec.encode(value, foreign, budget)


def decode(data):
    def reference(raw):
        raise codec.Malformed("a reference")

    return codec.decode(data, reference)


def back(value):
    return decode(encode(value))


def nested(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


def typed(value):
    """The value with the exact type of each part, so that 1, 1.0 and True differ, and nan equals itself."""
    if isinstance(value, list | tuple):
        return type(value), tuple(typed(v) for v in value)
    if isinstance(value, set | frozenset):
        return type(value), frozenset(typed(v) for v in value)
    if isinstance(value, dict):
        return type(value), tuple((typed(k), typed(v)) for k, v in value.items())
    return type(value), repr(value)


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.binary(max_size=40)
    | st.text(st.characters(exclude_categories=()), max_size=40)
)  # fmt: skip
hashable = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.binary(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(hashable, inner, max_size=4)
        | st.frozensets(hashable, max_size=4)
        | st.sets(hashable, max_size=4)
    ),
    max_leaves=20,
)


@given(values)
def test_plain_values_come_back_with_their_types(value):
    assert typed(back(value)) == typed(value)


@pytest.mark.parametrize(
    "value",
    [
        0, -1, 127, 128, -128, -129, 2**2040, -(2**9000), "", "\ud800", "\0", "ß𝄞", 1e308, -0.0, math.inf, b"",
        range(3, 90, 7), slice(1, None, 2), bytearray(b"ab"), decimal.Decimal("1.10"), fractions.Fraction(-2, 6),
        collections.Counter("hello"), collections.OrderedDict([(2, 1), (1, 2)]), collections.deque([1, 2], 5),
        datetime.date(2024, 2, 29), datetime.timedelta(-1, 5, 6), datetime.time(1, 2, 3, 4, fold=1),
        datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30))),
        uuid.UUID(int=7), len, int, ValueError, math.sqrt, collections.deque, NotImplemented, ..., type(None),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_each_value_type(value):
    assert type(back([value])[0]) is type(value)
    assert repr(back([value])[0]) == repr(value)


def test_paths_and_arrays():
    for value in (pathlib.Path("/a/b"), pathlib.PurePosixPath("x"), array.array("d", [1.5, -0.0])):
        assert type(back(value)) is type(value) and back(value) == value


def test_views_stay_views():
    """A list would be equal to lists, which a view is not."""
    assert back({1: 2}.keys()) == {1} and back({1: [2]}.items()) == {1: [2]}.items()
    assert list(back({1: [], 2: []}.values())) == [[], []]
    for view in ({1: 2}.keys(), {1: 2}.values(), {1: 2}.items()):
        assert type(back(view)) is type(view) and back(view) != list(view)


def test_value_types_that_come_back_simpler():
    got = back(collections.defaultdict(list, {1: [2]}))
    assert type(got) is collections.defaultdict and got == {1: [2]} and got.default_factory is list
    assert got[3] == []
    assert back(collections.defaultdict(lambda: 7, {1: 2})).default_factory is None


class Int(int):
    """Equal to everything."""

    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    "value",
    [
        Int(3), type("Text", (str,), {})("a"), type("List", (list,), {})([1]), type("Map", (dict,), {})(),
        type("Real", (float,), {})(1.0), type("Count", (collections.Counter,), {})("a"), object(),
        lambda: 1, (i for i in "a"),
        type("Day", (datetime.date,), {})(2024, 1, 1), open, eval, exec, __import__, getattr, type("Class", (), {}),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_whatever_is_not_exactly_a_built_in_goes_to_the_owner(value):
    """Also inside containers and as a key; nothing of it is sent in its place."""
    holders = [value, [value], {"key": (value,)}]
    if type(value).__hash__:
        holders.append({value: 1})
    for holder in holders:
        seen = []

        def note(item, seen=seen):
            seen.append(item)
            return "ref", b"r" + b"o" + bytes(8)

        data = codec.encode(holder, note, BUDGET)
        assert len(seen) == 1 and seen[0] is value
        assert "MARK" in repr(codec.decode(data, lambda raw: "MARK"))
        with pytest.raises(codec.Refused):
            encode(holder)


def test_a_zone_of_its_own_crosses_as_its_offset():
    class Zone(datetime.tzinfo):
        def utcoffset(self, moment):
            return datetime.timedelta(hours=2)

    moment = datetime.datetime(2024, 1, 1, tzinfo=Zone())
    assert back(moment) == moment and type(back(moment).tzinfo) is datetime.timezone
    with pytest.raises(codec.Refused, match="foreign Zone"):
        encode(Zone())


@pytest.mark.parametrize(
    "value",
    ["a" * 2000, b"a" * 2000, bytearray(2000), 1 << 16000, [0] * 2000, tuple(range(2000)), set(range(2000)),
     dict.fromkeys(range(2000)), collections.deque(range(2000)), ["é" * 600, 1], [["a" * 90] * 4] * 6],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_over_the_budget(value):
    with pytest.raises(codec.Refused, match="larger than 1 KB") as refused:
        encode(value, 1024)
    assert refused.value.kind == "output_limit"
    assert back(value) == value


def test_a_budget_is_exact():
    assert len(encode("a" * 95, 100)) == 100
    with pytest.raises(codec.Refused):
        encode("a" * 96, 100)


def test_a_list_that_holds_itself_ends():
    loop = []
    loop.append(loop)
    with pytest.raises(codec.Refused) as refused:
        encode(loop)
    assert refused.value.kind == "unsupported_value"
    wide = []
    wide.extend([wide] * 10)
    with pytest.raises(codec.Refused):
        encode(wide)


def test_depth():
    assert back(nested(codec.MAX_DEPTH)) == nested(codec.MAX_DEPTH)
    with pytest.raises(codec.Refused, match="nested deeper than 800") as refused:
        encode(nested(codec.MAX_DEPTH + 1))
    assert refused.value.kind == "unsupported_value"
    for opening in (b"l\0\0\0\1", b"t\0\0\0\1", b"x"):
        with pytest.raises(codec.Malformed):
            decode(opening * 100_000 + b"N" * 100_000)


def test_number_of_values(monkeypatch):
    monkeypatch.setattr(codec, "MAX_NODES", 1000)
    assert back([None] * 999) == [None] * 999
    with pytest.raises(codec.Refused) as refused:
        encode([None] * 1000)
    assert refused.value.kind == "output_limit"


def test_every_shortened_message_is_malformed():
    data = encode([{"a": (1, 2.5, 1j)}, {3}, frozenset([b"x"]), range(4), decimal.Decimal(1), len, "ß", 1 << 3000])
    for size in range(len(data)):
        with pytest.raises(codec.Malformed):
            decode(data[:size])
    with pytest.raises(codec.Malformed, match="bytes after"):
        decode(data + b"N")


def parts(name, *inner):
    return b"x" + encode(name) + encode(inner)


@pytest.mark.parametrize(
    "data",
    [
        b"?", b"l\xff\xff\xff\xff", b"s\xff\xff\xff\xff", b"d\0\0\0\1N", b"n\4eval", b"n\5print"[:4], b"s\0\0\0\1\xff",
        b"e\0\0\0\1" + encode([]), b"d\0\0\0\1" + encode([]) + b"N", parts("eval", "1"), parts("Decimal", "x"),
        parts("Decimal", 1), parts("Fraction", 1, 0), parts("range", 0, 10**31, 1), parts("range", 0, 1, 0),
        parts("date", 2024, 13, 1), parts("Counter", [(1, 2, 3)]), parts("Counter", {1: 2}), parts("UUID", b"x"),
        parts("deque", [1], "a"), parts("timezone", 1e9), parts("ndarray", "O", (1,), bytes(8)),
        b"x" + encode("date") + b"N",
        b"x" + encode(1) + encode(()), b"roooooooo",
    ],
    ids=lambda data: repr(data)[:40],
)  # fmt: skip
def test_bytes_that_no_honest_side_sends(data):
    with pytest.raises(codec.Malformed):
        decode(data)
    assert not issubclass(codec.Malformed, Exception), "a test's `except Exception` would hide it"


@given(
    st.binary(max_size=60) | st.lists(st.sampled_from([b"l", b"x", b"\0\0\0\1", b"N", b"t", b"i\1\2"])).map(b"".join)
)
def test_any_bytes_give_a_value_or_malformed(data):
    try:
        value = decode(data)
    except codec.Malformed:
        return
    assert typed(back(value)) == typed(value) or isinstance(
        value, set | frozenset | dict | collections.Counter | tuple | list
    )
