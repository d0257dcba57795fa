"""Objects and exceptions that stay at their end of the channel, and what stands for them at the other.

An object that is exported gets a number and a description, from which the other end makes a handle (handles.py). An
exception crosses by its ancestry, text and arguments. Run alone: no.
"""

import functools
import struct
import sys
import types

import codec
from handle_methods import handle_class
from handles import Handle
from operations import base_of
from specials import specials_of

MAX_EXPORTS = 200_000
MAX_MESSAGE = 2_000  # characters of an exception's text

_REF = struct.Struct(">cq")
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
_PLAIN_NAMES = frozenset(dir(BaseException))


class Closed(BaseException):
    """The other end is gone. No Exception, so that a test's `except Exception` does not hide it."""


def cut(text, limit=MAX_MESSAGE):
    """At most `limit` characters of `text`, head and tail."""
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]} ... {text[-limit // 3 :]}"


async def _awaited(handle):
    """A coroutine of this end, for one of the other end."""
    return handle._murphy_peer.request("run", handle)


def _text_of(error):
    return getattr(error, "_murphy_text", "")


def _with_own_text(cls, args):
    """An exception of a subclass of `cls` that is written as `_murphy_text`."""
    named = type(cls.__name__, (cls,), {"__str__": _text_of, "__module__": cls.__module__, "__init__": _no_init})
    error = named.__new__(named, *args)
    error.args = args
    return error


def _no_init(error, *args):
    pass


class References:
    """The tables of one end: what it exported, and the handles and classes that it made for the other end's objects."""

    def __init__(self):
        self._exports, self._export_of, self._handles, self._classes, self._class_ids = {}, {}, {}, {}, {}
        self._fresh, self._next = [], 1  # descriptions still to be sent; the next number

    # ---- values that stay where they are

    def _reference_to(self, value):
        if isinstance(value, Handle) and value._murphy_peer is self:
            return "ref", b"r" + _REF.pack(b"p", value._murphy_id)
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

    def _handed_over(self, value):
        """Whether `value` is an object that the other end was given a reference to."""
        number = self._export_of.get(id(value))
        return number is not None and self._exports.get(number) is value

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
        if kind is types.CoroutineType:
            return "coroutine", self._name_of(value), (), "", ()
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
            for key, value in (("peer", self), ("id", number), ("label", name), ("made", False), ("seen", {})):
                object.__setattr__(handle, f"_murphy_{key}", value)
            self._handles[number] = _awaited(handle) if sort == "coroutine" else handle

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
            name = name if name.isidentifier() else "Error"
            bases = [self._class_from(rest[i:]) for i in range(max(1, len(rest)))]
            first = bases[0]
            more = [b for b in bases if not issubclass(first, b) and issubclass(b, Exception)][:1]
            body = {"__init__": _no_init, "__str__": _text_of, "__module__": "solution"}
            try:
                made = type(name, (first, *more), body)
            except TypeError:
                made = type(name, (first,), body)
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
        if issubclass(cls, BaseExceptionGroup):  # what it held stays where it is
            args = (text, [Exception(text)])
        try:
            error = cls(*args) if cls not in self._class_ids else cls.__new__(cls, *args)
        except Exception:
            error = cls.__new__(cls)
        if cls in self._class_ids:
            error.args = args
        elif str(error) != text and not issubclass(cls, BaseExceptionGroup):  # its text is not made of its arguments
            error = _with_own_text(cls, args)
        if cls in self._class_ids and number in self._handles:
            error.__dict__.update(self._attributes(number))
        error._murphy_text, error._murphy_frames, error._murphy_origin = text, frames, (self, number)
        return error

    def _attributes(self, number):
        try:
            names = self.request("dir", self._handles[number])
            return [
                (n, self.request("getattr", self._handles[number], n))
                for n in names[:20]
                if not n.startswith("_") and n not in _PLAIN_NAMES
            ]
        except (Closed, codec.Malformed):
            raise
        except Exception:
            return []
