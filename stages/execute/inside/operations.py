"""What one end of the channel may ask the other to do with an object. Run alone: no."""

import copy
import operator

from in_place import put_back

BASES = (bool, int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset)


def base_of(value):
    """The built-in type that `value` extends, or None; asks the type itself, never the object."""
    for cls in type.__dict__["__mro__"].__get__(type(value)):
        if cls in BASES:
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
        return float.__pos__(value)
    if base is complex:
        return complex.__pos__(value)
    return value


def run(coroutine):
    """What a coroutine gives, run to its end where it was made."""
    import asyncio

    return asyncio.run(coroutine)


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
    "run": run,
    "put_back": lambda target, name, new: put_back(getattr(target, name), new),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
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
