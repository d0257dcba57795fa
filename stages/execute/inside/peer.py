"""One end of the channel between the candidate's process and the tests' process.

Both ends can ask and answer, so that a test may pass a function of its own to the candidate. Objects that are not
plain values stay where they are; the other end gets a handle (handles.py). A frame is a length, one byte for its
sort, a block that describes new objects, and the message, all in the codec's bytes.

Sorts: ``?`` request, ``=`` answer, ``^`` an exception, ``~`` a value that may not cross. The tests' process checks
everything that it reads; what it does not understand ends the test as protocol_error. Run alone: no.
"""

import functools
import operator
import struct
import sys
import types

import codec
from handles import Handle, handle_class, specials_of

MAX_EXPORTS = 200_000
MAX_NESTING = 60  # calls back and forth inside one another
MAX_MESSAGE = 2_000  # characters of an exception's text

_HEAD = struct.Struct(">IcI")
_REF = struct.Struct(">cq")
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
_BASES = (bool, int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset)
_setrecursionlimit, _getrecursionlimit = sys.setrecursionlimit, sys.getrecursionlimit


class Closed(BaseException):
    """The other end is gone. No Exception, so that a test's `except Exception` does not hide it."""


def cut(text, limit=MAX_MESSAGE):
    """At most `limit` characters of `text`, head and tail."""
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]} ... {text[-limit // 3 :]}"


def base_of(value):
    """The built-in type that `value` extends, or None; asks the type itself, never the object."""
    for cls in type.__dict__["__mro__"].__get__(type(value)):
        if cls in _BASES:
            return cls
    return None


def plain_base(value):
    """The built-in part of an object whose class extends a built-in type, without running its methods."""
    base = base_of(value)
    if base in (list, tuple, set, frozenset):
        return base(base.__iter__(value))
    if base is dict:
        return dict(dict.items(value))
    if base in (str, bytes, bytearray):
        return base.__getitem__(value, slice(None)) if base is not str else str.__str__(value)[:]
    if base is int:
        return int.__add__(value, 0)
    if base is float:
        return float.__add__(value, 0.0)
    if base is complex:
        return complex.__add__(value, 0j)
    return value


# What one end may ask the other to do with an object.
OPERATIONS = {
    "call": lambda target, args, kwargs: target(*args, **kwargs),
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "isinstance": isinstance,
    "issubclass": issubclass,
    "base": plain_base,
    "len": len,
    "iter": iter,
    "next": next,
    "reversed": reversed,
    "bool": bool,
    "str": str,
    "repr": repr,
    "format": format,
    "hash": hash,
    "int": int,
    "float": float,
    "complex": complex,
    "round": round,
    "bytes": bytes,
    "divmod": divmod,
    "pow": pow,
    "enter": lambda target: type(target).__enter__(target),
    "exit": lambda target, *exc: type(target).__exit__(target, *exc),
    "dir": lambda target: [name for name in dir(target) if not name.startswith("_")],
    **{
        name: getattr(operator, name)
        for name in [
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "add",
            "sub",
            "mul",
            "truediv",
            "floordiv",
            "mod",
            "lshift",
            "rshift",
            "and_",
            "or_",
            "xor",
            "matmul",
            "neg",
            "pos",
            "abs",
            "invert",
            "index",
            "getitem",
            "setitem",
            "delitem",
            "contains",
            "iadd",
            "isub",
            "imul",
        ]
    },
}


class Peer:
    """One end. `policy` (the owner of this end) says which requests of the other end are answered: see `allow`."""

    def __init__(self, sock, budget, allow=None, namespace=None):
        self._sock = sock
        self._budget = budget
        self._allow = allow  # None: every request is answered (the candidate's side)
        self.namespace = namespace  # what the request "name" looks in
        self.trust = "open"  # open | named | strict: what handles may ask of the other end's objects, see handles.py
        self.on_refusal = None  # called when a handle refuses, with the Refused
        self.on_call = None  # called after each call on a function of the other end: name, args, kwargs, result
        self.returns_arguments = False  # answer calls with the arguments as the call left them
        self.takes_arguments = False  # the other end answers calls so
        self.frames_of = lambda error: ""
        self._exports, self._export_of, self._handles, self._classes, self._class_ids = {}, {}, {}, {}, {}
        self.broken = None  # the Closed or Malformed that ended this channel
        self._fresh, self._next, self._nesting, self._buffer = [], 1, 0, bytearray()

    # ---- values that stay where they are

    def _reference_to(self, value):
        if isinstance(value, Handle) and value._peer is self:
            return "ref", b"r" + _REF.pack(b"p", value._id)
        if isinstance(value, type) and value in self._class_ids:
            return "ref", b"r" + _REF.pack(b"p", self._class_ids[value])
        module = getattr(type(value), "__module__", None)
        if module == "numpy" and "numpy" in sys.modules:
            numpy = sys.modules["numpy"]
            if isinstance(value, numpy.generic):
                item = value.item()
                if type(item) in (bool, int, float, complex, str, bytes):
                    return "plain", item
            elif type(value) is numpy.ndarray and value.dtype.kind in "biufcSU":
                return "parts", ("ndarray", (value.dtype.str, tuple(value.shape), value.tobytes()))
        return "ref", b"r" + _REF.pack(b"o", self._export(value))

    def _export(self, value):
        number = self._export_of.get(id(value))
        if number is None:
            if len(self._exports) >= MAX_EXPORTS:
                raise codec.Refused("output_limit", f"more than {MAX_EXPORTS} objects")
            number, self._next = self._next, self._next + 1
            self._exports[number] = value
            self._export_of[id(value)] = number
            self._fresh.append((number, *self._describe(value)))
        return number

    def _describe(self, value):
        """(sort, name, specials, base, lineage) of an object, for the handle at the other end."""
        kind = type(value)
        if isinstance(value, type):
            sort = "exception" if issubclass(value, BaseException) else "class"
            lineage = self._lineage(value) if sort == "exception" else ()
            return sort, self._name_of(value), ("call",), "", lineage
        if isinstance(value, types.ModuleType):
            return "module", self._name_of(value), (), "", ()
        if isinstance(value, _FUNCTIONS):
            return "function", self._name_of(value), ("call",), "", ()
        base = base_of(value)
        return "object", self._name_of(kind), specials_of(kind), base.__name__ if base else "", ()

    @staticmethod
    def _name_of(value):
        try:
            name = value.__name__
        except Exception:
            name = type(value).__name__
        return cut(name, 80) if type(name) is str else "object"

    def _lineage(self, cls):
        """The ancestry of an exception class: built-in and library ones by module and name, others by reference."""
        steps = []
        for step in cls.__mro__:
            if step is object:
                break
            module = step.__module__ if type(step.__module__) is str else ""
            own = step is self.namespace_class(step)
            steps.append((module, self._name_of(step), 0 if not own else self._class_number(step)))
        return tuple(steps[:20])

    def namespace_class(self, cls):
        """`cls` where it was defined at this end, None where both ends have it (a standard exception)."""
        home = sys.modules.get(cls.__module__ if type(cls.__module__) is str else "")
        top = (cls.__module__ if type(cls.__module__) is str else "").partition(".")[0]
        shared = top in sys.stdlib_module_names and top != "__main__" and getattr(home, cls.__name__, None) is cls
        return None if shared else cls

    def _class_number(self, cls):
        number = self._export_of.get(id(cls))
        if number is None:
            number, self._next = self._next, self._next + 1
            self._exports[number] = cls
            self._export_of[id(cls)] = number
        return number

    def _resolve(self, data):
        owner, number = _REF.unpack(data)
        if owner == b"p":
            if number not in self._exports:
                raise codec.Malformed("a reference to nothing")
            return self._exports[number]
        if number in self._classes:
            return self._classes[number]
        if number not in self._handles:
            raise codec.Malformed("a reference to nothing")
        return self._handles[number]

    def _learn(self, descriptions):
        if type(descriptions) is not list:
            raise codec.Malformed("descriptions")
        for one in descriptions:
            if type(one) is not tuple or [type(x) for x in one] != [int, str, str, tuple, str, tuple]:
                raise codec.Malformed("a description")
            number, sort, name, specials, base, lineage = one
            if not all(type(s) is str for s in specials) or number in self._handles:
                raise codec.Malformed("a description")
            if sort == "exception":
                self._class_from(lineage)
                if number not in self._classes:
                    raise codec.Malformed("an exception without a class")
                continue
            handle = object.__new__(handle_class(name, sort, specials, base))
            for key, value in (("_peer", self), ("_id", number), ("_label", name)):
                object.__setattr__(handle, key, value)
            self._handles[number] = handle

    def _class_from(self, lineage):
        """A local exception class for one of the other end, by its ancestry."""
        if not lineage:
            return BaseException
        if any(type(s) is not tuple or [type(x) for x in s] != [str, str, int] for s in lineage):
            raise codec.Malformed("an ancestry")
        (module, name, number), rest = lineage[0], lineage[1:]
        if number == 0:
            home = sys.modules.get(module) if module.partition(".")[0] in sys.stdlib_module_names else None
            found = vars(home).get(name) if home is not None else None
            if isinstance(found, type) and issubclass(found, BaseException):
                return found
            return self._class_from(rest)
        if number not in self._classes:
            bases = [self._class_from(rest[i:]) for i in range(max(1, len(rest)))]
            first = bases[0]
            more = [b for b in bases if not issubclass(first, b) and issubclass(b, Exception)][:1]
            body = {"__init__": lambda self, *args: None, "__str__": _text_of, "__module__": "solution"}
            try:
                made = type(name or "Error", (first, *more), body)
            except TypeError:
                made = type(name or "Error", (first,), body)
            self._classes[number], self._class_ids[made] = made, number
        return self._classes[number]

    # ---- exceptions

    def _pack_error(self, error):
        origin = getattr(error, "_murphy_origin", None) if isinstance(error, BaseException) else None
        if isinstance(origin, tuple) and origin[0] is self:
            return (origin[1],)
        try:
            text = cut(str(error))
        except Exception:
            text = "<text of the exception could not be made>"
        args = []
        for item in error.args if type(error.args) is tuple else ():
            plain = type(item) in (bool, int, float, type(None)) or (type(item) in (str, bytes) and len(item) <= 2000)
            args.append(item if plain else cut(text, 200))
        return (0, self._lineage(type(error)), text, tuple(args[:8]), self.frames_of(error), self._export(error))

    def _unpack_error(self, packed):
        if type(packed) is tuple and len(packed) == 1 and type(packed[0]) is int:
            error = self._exports.get(packed[0])
            if not isinstance(error, BaseException):
                raise codec.Malformed("a reference to no exception")
            return error
        if type(packed) is not tuple or [type(x) for x in packed] != [int, tuple, str, tuple, str, int]:
            raise codec.Malformed("an exception")
        _, lineage, text, args, frames, number = packed
        cls = self._class_from(lineage)
        try:
            error = cls(*args) if cls not in self._class_ids else cls.__new__(cls, *args)
        except Exception:
            error = cls.__new__(cls)
        if cls in self._class_ids:
            error.args = args
        error._murphy_text, error._murphy_frames, error._murphy_origin = text, frames, (self, number)
        if cls in self._class_ids and number in self._handles:
            error.__dict__.update(self._attributes(number))
        return error

    def _attributes(self, number):
        try:
            names = self.request("dir", self._handles[number])
            return [(n, self.request("getattr", self._handles[number], n)) for n in names[:20] if n not in _PLAIN_NAMES]
        except (Closed, codec.Malformed):
            raise
        except Exception:
            return []

    # ---- frames

    def _send(self, sort, value):
        limit = _getrecursionlimit()
        if limit < 900:
            _setrecursionlimit(1000)  # the candidate may have lowered it
        body = codec.encode(value, self._reference_to, self._budget)
        head = b""
        while self._fresh:
            fresh, self._fresh = self._fresh, []
            head += codec.encode(fresh, self._reference_to, 1 << 24)
        self._sock.sendall(_HEAD.pack(len(head) + len(body), sort, len(head)) + head + body)
        if limit < 900:
            _setrecursionlimit(limit)

    def _read(self, size):
        while len(self._buffer) < size:
            try:
                chunk = self._sock.recv(1 << 16)
            except ConnectionError:
                chunk = b""
            if not chunk:
                raise Closed
            self._buffer += chunk
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _receive(self):
        length, sort, head = _HEAD.unpack(self._read(_HEAD.size))
        if length > self._budget + (1 << 24) or head > length or sort not in b"?=^~":
            raise codec.Malformed("a frame that is too long")
        data = self._read(length)
        if head:
            self._learn(codec.decode(data[:head], self._resolve))
        return sort, codec.decode(data[head:], self._resolve)

    def request(self, operation, *operands):
        """Ask the other end; answers its questions meanwhile. Raises what it raises."""
        try:
            return self._request(operation, operands)
        except (Closed, codec.Malformed) as error:
            self.broken = error
            raise
        except BrokenPipeError:
            self.broken = Closed()
            raise self.broken from None

    def _request(self, operation, operands):
        self._send(b"?", (operation, operands))
        while True:
            sort, value = self._receive()
            if sort == b"?":
                self._answer(value)
            elif sort == b"=":
                return value
            elif sort == b"^":
                raise self._unpack_error(value)
            else:
                if type(value) is not tuple or [type(x) for x in value] != [str, str]:
                    raise codec.Malformed("a refusal")
                raise self.refused(codec.Refused(value[0], value[1]))

    def refused(self, refusal):
        """Note a refusal and give it back as what is raised."""
        if self.on_refusal:
            return self.on_refusal(refusal)
        return refusal

    def _answer(self, message):
        self._nesting += 1
        try:
            operation, operands = message
            if self._nesting > MAX_NESTING:
                raise RecursionError("calls between solution and tests are nested too deep")
            self._send(b"=", self._perform(operation, operands))
        except codec.Refused as refusal:
            self._send(b"~", (refusal.kind, str(refusal)))
        except (Closed, codec.Malformed, BrokenPipeError):
            raise
        except BaseException as error:
            packed = self._pack_error(error)
            self._send(b"^", packed)
        finally:
            self._nesting -= 1

    def _perform(self, operation, operands):
        if operation == "name" and self.namespace is not None:
            return self.namespace(*operands)
        if operation not in OPERATIONS:
            raise codec.Malformed("an unknown operation")
        if self._allow is not None:
            self._allow(operation, operands)
        result = OPERATIONS[operation](*operands)
        if self.returns_arguments and operation == "call":
            return result, operands[1]  # the arguments as the call left them
        return result

    def serve(self):
        """Answer requests until the other end closes."""
        try:
            while True:
                sort, value = self._receive()
                if sort != b"?":
                    raise codec.Malformed("an answer to nothing")
                self._answer(value)
        except (Closed, BrokenPipeError):
            return


_PLAIN_NAMES = frozenset(dir(BaseException))


def _text_of(error):
    return getattr(error, "_murphy_text", "")
