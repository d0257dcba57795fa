"""Special methods of handles: what Python calls when a test uses one (handles.py). Run alone: no."""

import operator
import sys
import types

from handles import BY_NAME, Handle
from in_place import put_back, split
from operations import OPERATIONS
from specials import BINARY, COMPARISONS, REFLECTED, SPECIALS

_LOCAL = {**{n: getattr(operator, n) for n in BINARY - {"pow", "divmod"}}, "pow": pow, "divmod": divmod}


def _made_by_tests(value):
    if isinstance(value, Handle) and value._murphy_sort == "object":
        object.__setattr__(value, "_murphy_made", True)
    return value


def _call(self, *args, **kwargs):
    peer = self._murphy_peer
    try:
        result = peer.request("call", self, args, kwargs)
    except StopIteration as error:
        if peer.trust == "open" or peer.stops:
            raise
        raise peer.surprise(error) from None  # it would end a `map` of the tests early
    if peer.takes_arguments:
        result, after, named = split(result)
        for old, new in zip((*args, *kwargs.values()), (*after, *named.values()), strict=True):
            put_back(old, new)
    if self._murphy_made or self._murphy_sort == "class":
        _made_by_tests(result)
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
        result = self._murphy_peer.request(name, *((other, self) if reflected else (self, other)))
        return _made_by_tests(result) if self._murphy_made else result

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


def _len(self):
    if self._murphy_base and self._murphy_peer.trust != "open":
        return len(self._murphy_plain())
    size = self._murphy_peer.request("len", self)
    if self._murphy_peer.trust == "strict" and self._murphy_seen.setdefault("len", size) != size:
        self._murphy_refuse("two lengths of")
    return size


def _iter(self):
    if self._murphy_base:
        return iter(self._murphy_plain())
    return _held(self) if self._murphy_peer.trust == "strict" else self._murphy_peer.request("iter", self)


def _held(self):
    """What the object holds, the same each time and as much as its length says."""
    seen = self._murphy_seen
    if "iter" not in seen:
        seen["iter"], seen["items"] = self._murphy_peer.request("iter", self), []
    items, position = seen["items"], 0
    while True:
        if position == len(items):
            try:
                item = next(seen["iter"])
            except StopIteration:
                if seen.setdefault("len", position) != position:
                    self._murphy_refuse("another length than that of what is held by")
                return
            items.append(item)
        yield items[position]
        position += 1


def _contains(self, item):
    if self._murphy_base:
        return item in self._murphy_plain()
    if not self._murphy_may("__contains__"):
        if "iter" in self._murphy_specials:
            return any(item is x or item == x for x in iter(self))
        self._murphy_refuse("looked into")
    return bool(self._murphy_peer.request("contains", self, item))


def _exit(self, kind, error, trace):
    peer = self._murphy_peer
    swallowed = peer.request("exit", self, kind, error, None)
    if swallowed and error is not None and peer.may_swallow is not None:
        return peer.may_swallow(error, sys._getframe(1))
    return swallowed


def _next(self):
    return self._murphy_peer.request("next", self)


def _own_iter(self):
    return self


def _class_of(self):
    """For `isinstance`, which looks here too: the built-in type that the object's class extends."""
    return BY_NAME[self._murphy_base]


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
    for name, function in (
        ("call", _call),
        ("iter", _iter),
        ("next", _next),
        ("exit", _exit),
        ("contains", _contains),
        ("len", _len),
    ):
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
        if base in BY_NAME:
            body["__class__"] = property(_class_of)
        elif sort == "object" and name == "generator":
            body["__class__"] = property(lambda self: types.GeneratorType)  # for `isinstance`
        body["_murphy_specials"] = frozenset(specials)
        _made[key] = type(name, (Handle,), body)
    return _made[key]
