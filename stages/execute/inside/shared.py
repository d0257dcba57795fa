"""Functions and types that both ends of the channel have: they cross by name and are used natively. Run alone: no."""

import collections
import datetime
import decimal
import fractions
import math
import operator

# Nothing here reads state of its owner.
_SAFE_BUILTINS = [
    "abs",
    "all",
    "any",
    "ascii",
    "bin",
    "bool",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "complex",
    "dict",
    "divmod",
    "enumerate",
    "filter",
    "float",
    "frozenset",
    "hash",
    "hex",
    "int",
    "isinstance",
    "iter",
    "len",
    "list",
    "map",
    "max",
    "min",
    "next",
    "object",
    "oct",
    "ord",
    "pow",
    "print",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "slice",
    "sorted",
    "str",
    "sum",
    "tuple",
    "type",
    "zip",
    "NotImplemented",
    "Ellipsis",
    "BaseException",
    "Exception",
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "EOFError",
    "FileNotFoundError",
    "FloatingPointError",
    "ImportError",
    "IndexError",
    "IOError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "NameError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PermissionError",
    "RecursionError",
    "RuntimeError",
    "StopIteration",
    "SyntaxError",
    "SystemExit",
    "TimeoutError",
    "ConnectionError",
    "TypeError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeError",
    "ValueError",
    "ZeroDivisionError",
    "Warning",
    "UserWarning",
    "DeprecationWarning",
]


def _shared_names():
    import builtins

    table = {name: getattr(builtins, name) for name in _SAFE_BUILTINS}
    for module in (math, operator):
        for name in dir(module):
            if not name.startswith("_") and callable(getattr(module, name)):
                table[f"{module.__name__}.{name}"] = getattr(module, name)
    for module, names in (
        (collections, "Counter OrderedDict defaultdict deque"),
        (decimal, "Decimal"),
        (fractions, "Fraction"),
        (datetime, "date datetime time timedelta timezone"),
    ):
        for name in names.split():
            table[f"{module.__name__}.{name}"] = getattr(module, name)
    table["NoneType"] = type(None)
    table["function"] = type(lambda: None)
    return table


SHARED = _shared_names()
SHARED_NAME = {id(value): name for name, value in reversed(list(SHARED.items()))}
