"""Stand-ins for objects that live at the other end of the channel.

A handle is used as the object would be: attributes, methods, calls, iteration, `with`. On the tests' side it is wary,
because whatever it is asked, the candidate answers. `peer.trust` says how wary:

``open``    everything is asked (the candidate's side, where the other end is the tests').
``named``   the tests name a class of the candidate, so its interface is what is tested: methods are asked, operators
            and `in` too where classes of the reference define them; comparing with an object of a class that defines
            its own ``==`` or ``<`` is refused.
``strict``  the tests name functions only: operators, `in`, and methods that a built-in type has are refused when a
            plain value would be handed over with them, as an object "equal to everything" would then decide.

An object whose class extends a built-in type is compared by its built-in part, whatever its class says.
Run alone: no.
"""

import operator

from in_place import put_back, split
from operations import BASES, OPERATIONS
from refusals import Refused
from specials import BINARY, COMPARISONS, REFLECTED, SPECIALS

_BASES = {cls.__name__: cls for cls in BASES}
_BUILTIN_METHODS = frozenset(name for cls in BASES for name in dir(cls) if not name.startswith("_"))

_LOCAL = {**{n: getattr(operator, n) for n in BINARY - {"pow", "divmod"}}, "pow": pow, "divmod": divmod}


class Handle:
    """The common part; classes with the special methods of an object are made by :func:`handle_class`."""

    __slots__ = ("__weakref__", "_murphy_id", "_murphy_label", "_murphy_peer", "_murphy_value")
    _murphy_sort, _murphy_base, _murphy_specials = "object", "", frozenset()

    def __getattr__(self, name):
        if name == "__name__" and self._murphy_sort in ("function", "class"):
            return self._murphy_label.rpartition(".")[2]
        if name.startswith("__") and name.endswith("__") and name not in _ASKED_DUNDERS:
            raise AttributeError(name)
        peer = self._murphy_peer
        value = peer.request("getattr", self, name)
        if isinstance(value, Handle) and value._murphy_sort in ("function", "class"):
            label = name if self._murphy_sort == "module" else f"{self._murphy_label}.{name}"
            object.__setattr__(value, "_murphy_label", label)
            base = _BASES.get(self._murphy_base)
            if base is not None and peer.trust == "strict" and hasattr(base, name):
                return getattr(self._murphy_plain(), name)
            if peer.trust == "strict" and self._murphy_sort == "object" and name in _BUILTIN_METHODS:
                return _Wary(value, name)
        return value

    def __setattr__(self, name, value):
        self._murphy_peer.request("setattr", self, name, value)

    def __delattr__(self, name):
        self._murphy_peer.request("delattr", self, name)

    def __dir__(self):
        return self._murphy_peer.request("dir", self)

    def __instancecheck__(self, other):
        return isinstance(other, Handle) and bool(self._murphy_peer.request("isinstance", other, self))

    def __subclasscheck__(self, other):
        return isinstance(other, Handle) and bool(self._murphy_peer.request("issubclass", other, self))

    def __repr__(self):
        if "repr" in self._murphy_specials:
            return _text(self._murphy_peer.request("repr", self))
        return (
            f"<{self._murphy_label} object>"
            if self._murphy_sort == "object"
            else f"<{self._murphy_sort} {self._murphy_label}>"
        )

    def __str__(self):
        if "str" in self._murphy_specials:
            return _text(self._murphy_peer.request("str", self))
        return repr(self)

    def __format__(self, spec):
        if self._murphy_base or "format" in self._murphy_specials:
            return _text(self._murphy_peer.request("format", self, spec))
        return format(str(self), spec)

    def __bool__(self):
        if self._murphy_base:
            return bool(self._murphy_plain())
        if "bool" in self._murphy_specials or "len" in self._murphy_specials:
            return bool(self._murphy_peer.request("bool", self))
        return True

    def __hash__(self):
        if self._murphy_base:
            return hash(self._murphy_plain())
        if "hash" in self._murphy_specials and self._murphy_peer.trust == "open":
            return hash(self._murphy_peer.request("hash", self))
        return object.__hash__(self)

    def _murphy_plain(self):
        """The built-in part. Asked once where it cannot change, and where nothing may change it: no two answers."""
        try:
            return object.__getattribute__(self, "_murphy_value")
        except AttributeError:
            value = self._murphy_peer.request("base", self)
        if type(value) is not _BASES.get(self._murphy_base):
            self._murphy_refuse("used")
        if self._murphy_peer.trust == "strict" or self._murphy_base not in ("list", "dict", "set", "bytearray"):
            object.__setattr__(self, "_murphy_value", value)
        return value

    def _murphy_may(self, *names):
        """Whether the other end may be asked for one of these special methods, with a plain value to be compared."""
        peer = self._murphy_peer
        return peer.trust == "open" or (
            peer.trust == "named" and (peer.operators is None or any(name in peer.operators for name in names))
        )

    def _murphy_refuse(self, what):
        text = f"{what} an object of the solution's own class {self._murphy_label}; return built-in values"
        raise self._murphy_peer.refused(Refused("unsupported_value", text))


def _text(value):
    if type(value) is not str:
        raise TypeError("__str__ returned no string")
    return value


# Dunder attributes that a test may read off an object of the candidate.
_ASKED_DUNDERS = frozenset(
    ("__dict__", "__annotations__", "__wrapped__", "__dataclass_fields__", "__call__", "__name__", "__qualname__")
)


class _Wary:
    """A method of an object nobody named; called without arguments it is as good as an attribute."""

    def __init__(self, handle, name):
        self._handle, self._name = handle, name

    def __call__(self, *args, **kwargs):
        if args or kwargs:
            owner, _, _ = self._handle._murphy_label.rpartition(".")
            text = f".{self._name}(...) of an object of the solution's own class {owner}; return built-in values"
            raise self._handle._murphy_peer.refused(Refused("unsupported_value", text))
        return self._handle()


def _call(self, *args, **kwargs):
    peer = self._murphy_peer
    result = peer.request("call", self, args, kwargs)
    if peer.takes_arguments:
        result, after = split(result)
        for old, new in zip(args, after, strict=True):
            put_back(old, new)
    if peer.on_call:
        peer.on_call(self._murphy_label, args, kwargs, result)
    return result


def _binary(name, reflected):
    def method(self, other):
        if self._murphy_base:
            mine = self._murphy_plain()
            theirs = other._murphy_plain() if isinstance(other, Handle) and other._murphy_base else other
            return _LOCAL[name](theirs, mine) if reflected else _LOCAL[name](mine, theirs)
        names = (f"__{name.rstrip('_')}__", f"__r{name.rstrip('_')}__")
        if not isinstance(other, Handle) and not self._murphy_may(*names):
            self._murphy_refuse("calculated with")
        return (
            self._murphy_peer.request(name, other, self) if reflected else self._murphy_peer.request(name, self, other)
        )

    return method


def _comparison(name):
    local = getattr(operator, name)

    def method(self, other):
        if self._murphy_base:
            theirs = other._murphy_plain() if isinstance(other, Handle) and other._murphy_base else other
            return local(self._murphy_plain(), theirs)
        if self._murphy_peer.trust == "open":
            return self._murphy_peer.request(name, self, other)
        known = (
            self._murphy_sort != "object"
            or other is None
            or (isinstance(other, Handle) and "eq" not in self._murphy_specials)
        )
        if name in ("eq", "ne") and known:  # equal only if it is the same; the other end is not asked
            return (self is other) == (name == "eq")
        self._murphy_refuse("compared")

    return method


def _unary(name):
    def method(self, *args):
        if self._murphy_base and self._murphy_peer.trust == "strict":
            return OPERATIONS[name](self._murphy_plain(), *args)
        return self._murphy_peer.request(name, self, *args)

    return method


def _iter(self):
    if self._murphy_base:
        return iter(self._murphy_plain())
    return self._murphy_peer.request("iter", self)


def _contains(self, item):
    if self._murphy_base:
        return item in self._murphy_plain()
    if not self._murphy_may("__contains__"):
        if "iter" in self._murphy_specials:
            return any(item is x or item == x for x in iter(self))
        self._murphy_refuse("looked into")
    return bool(self._murphy_peer.request("contains", self, item))


def _exit(self, kind, error, trace):
    return self._murphy_peer.request("exit", self, kind, error, None)


def _next(self):
    return self._murphy_peer.request("next", self)


def _own_iter(self):
    return self


def _class_of(self):
    """For `isinstance`, which looks here too: the built-in type that the object's class extends."""
    return _BASES[self._murphy_base]


def _doc(self):
    return self._murphy_peer.request("getattr", self, "__doc__")


def _methods(sort, specials, base):
    body = {f"__{name}__": _comparison(name) for name in COMPARISONS}
    for name in specials:
        if name in BINARY:
            body[f"__{name.rstrip('_')}__"] = _binary(name, False)
            body[f"__r{name.rstrip('_')}__"] = _binary(name, True)
        elif name in REFLECTED:
            body[f"__{name}__"] = _binary(REFLECTED[name], True)
        elif name in SPECIALS and name not in ("call", "iter", "next", "contains", "exit", "bool"):
            body[SPECIALS[name]] = _unary(name)
    for name, function in (("call", _call), ("iter", _iter), ("next", _next), ("exit", _exit), ("contains", _contains)):
        if name in specials:
            body[SPECIALS[name]] = function
    if "next" in specials:
        body["__iter__"] = _own_iter
    if sort == "object" and "contains" not in specials and "iter" in specials:
        body["__contains__"] = _contains
    return body


_made = {}


def handle_class(name, sort, specials, base):
    """The class of handles for objects with these special methods; named like the object's class."""
    name = name if sort == "object" and name.isidentifier() else "Handle"
    key = (name, sort, specials, base)
    if key not in _made:
        body = _methods(sort, set(specials), base)
        body |= {"__slots__": (), "__doc__": property(_doc), "__hash__": Handle.__hash__}
        body |= {"_murphy_sort": sort, "_murphy_base": base}
        if base in _BASES:
            body["__class__"] = property(_class_of)
        body["_murphy_specials"] = frozenset(specials)
        _made[key] = type(name, (Handle,), body)
    return _made[key]
