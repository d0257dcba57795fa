"""Stand-ins for objects that live at the other end of the channel.

A handle is used as the object would be: attributes, methods, calls, iteration, `with`. On the tests' side it is wary,
because whatever it is asked, the candidate answers. `peer.trust` says how wary:

``open``    everything is asked (the candidate's side, where the other end is the tests').
``named``   the tests name a class of the candidate, so its interface is what is tested: methods are asked, operators
            and `in` too where classes of the reference define them (without a reference: of objects that the tests
            made); comparing with an object of a class that defines its own ``==`` or ``<`` is refused.
``strict``  the tests name functions only: operators, `in`, and methods that a built-in type has are refused when a
            plain value would be handed over with them, as an object "equal to everything" would then decide. What its
            length is and what it holds is asked once.

An object whose class extends a built-in type is compared by its built-in part, whatever its class says.
Run alone: no.
"""

from operations import BASES
from refusals import Refused

BY_NAME = {cls.__name__: cls for cls in BASES}
_BUILTIN_METHODS = frozenset(name for cls in BASES for name in dir(cls) if not name.startswith("_"))


class Handle:
    """The common part; classes with the special methods of an object are made in handle_methods.py."""

    __slots__ = ("__weakref__", "_murphy_id", "_murphy_label", "_murphy_made", "_murphy_peer", "_murphy_seen")
    __slots__ += ("_murphy_value",)
    _murphy_sort, _murphy_base, _murphy_specials = "object", "", frozenset()

    def __getattr__(self, name):
        own = name.startswith("_murphy_")  # of a handle that `copy` is making
        if own or (name.startswith("__") and name.endswith("__") and name not in _ASKED_DUNDERS):
            raise AttributeError(name)
        peer = self._murphy_peer
        value = peer.request("getattr", self, name)
        peer.lend(self, name, value)
        if isinstance(value, Handle) and value._murphy_sort in ("function", "class"):
            label = name if self._murphy_sort == "module" else f"{self._murphy_label}.{name}"
            object.__setattr__(value, "_murphy_label", label)
            # perhaps a classmethod that makes an object
            object.__setattr__(value, "_murphy_made", self._murphy_sort == "class")
            base = BY_NAME.get(self._murphy_base)
            if base is not None and peer.trust == "strict" and hasattr(base, name):
                return getattr(self._murphy_plain(), name)
            if peer.trust == "strict" and self._murphy_sort == "object" and name in _BUILTIN_METHODS:
                return _Wary(value, name)
        return value

    def __setattr__(self, name, value):
        self._murphy_peer.request("setattr", self, name, value)

    def __delattr__(self, name):
        self._murphy_peer.request("delattr", self, name)

    def __copy__(self):
        return self._murphy_peer.request("copy", self)

    def __deepcopy__(self, memo):
        return self._murphy_peer.request("deepcopy", self)

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
        if self._murphy_peer.trust == "open" and "hash" in self._murphy_specials:
            return hash(self._murphy_peer.request("hash", self))
        if self._murphy_sort == "object" and "eq" in self._murphy_specials:
            self._murphy_refuse("hashed")
        return object.__hash__(self)

    def _murphy_plain(self):
        """The built-in part. Asked once where it cannot change, and where nothing may change it: no two answers."""
        try:
            return object.__getattribute__(self, "_murphy_value")
        except AttributeError:
            value = self._murphy_peer.request("base", self)
        if type(value) is not BY_NAME.get(self._murphy_base):
            self._murphy_refuse("used")
        if self._murphy_peer.trust == "strict" or self._murphy_base not in ("list", "dict", "set", "bytearray"):
            object.__setattr__(self, "_murphy_value", value)
        return value

    def _murphy_may(self, *names):
        """Whether the other end may be asked for one of these special methods, with a plain value to be compared."""
        peer = self._murphy_peer
        if peer.trust != "named":
            return peer.trust == "open"
        return self._murphy_made if peer.operators is None else any(name in peer.operators for name in names)

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
