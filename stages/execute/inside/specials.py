"""Special methods of classes, by the names under which they cross the channel. Run alone: no."""

# What a class can define, by the name that crosses.
SPECIALS = {
    "call": "__call__", "iter": "__iter__", "next": "__next__", "len": "__len__", "getitem": "__getitem__",
    "setitem": "__setitem__", "delitem": "__delitem__", "contains": "__contains__", "bool": "__bool__",
    "enter": "__enter__", "exit": "__exit__", "int": "__int__", "float": "__float__", "index": "__index__",
    "complex": "__complex__", "round": "__round__", "reversed": "__reversed__", "bytes": "__bytes__",
    "neg": "__neg__", "pos": "__pos__", "abs": "__abs__", "invert": "__invert__",
    "add": "__add__", "sub": "__sub__", "mul": "__mul__", "truediv": "__truediv__", "floordiv": "__floordiv__",
    "mod": "__mod__", "lshift": "__lshift__", "rshift": "__rshift__", "and_": "__and__", "or_": "__or__",
    "xor": "__xor__", "matmul": "__matmul__", "pow": "__pow__", "divmod": "__divmod__",
}  # fmt: skip
REFLECTED = {
    "radd": "add", "rsub": "sub", "rmul": "mul", "rtruediv": "truediv", "rfloordiv": "floordiv", "rmod": "mod",
    "rand": "and_", "ror": "or_", "rxor": "xor", "rmatmul": "matmul", "rpow": "pow",
}  # fmt: skip
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
BINARY = frozenset({*REFLECTED.values(), "lshift", "rshift", "divmod"})


def specials_of(kind):
    """Names of the special methods that class `kind` has, and of the comparisons that it defines itself."""
    found = [name for name, method in SPECIALS.items() if hasattr(kind, method)]
    found += [name for name, step in REFLECTED.items() if hasattr(kind, f"__{name}__") and step not in found]
    for name in (*COMPARISONS, "hash", "str", "repr", "format"):
        if getattr(kind, f"__{name}__", None) is not getattr(object, f"__{name}__"):
            found.append(name)
    return tuple(found)
