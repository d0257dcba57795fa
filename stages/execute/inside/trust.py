"""What tests let the candidate's end do: by their text, never by what a candidate turns out to be. Run alone: no."""

import ast
import types

MODULE = "tests_of_task"  # the module of what tests define


def classes_in(source):
    """Names that tests without a reference use as classes: capitalised ones, and those asked about by `isinstance`.

    A function may not become a class by what the candidate makes of it: its objects would answer for themselves.
    """
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return frozenset()
    found = {node.id for node in nodes if isinstance(node, ast.Name)}
    found |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    found |= {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    named = {name for name in found if name.lstrip("_")[:1].isupper()}
    for node in nodes:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            named |= {one.id for one in ast.walk(node.args[-1]) if isinstance(one, ast.Name)} if node.args else set()
    return frozenset(named)


def allow(operation, operands):
    """Refuse what the candidate may not ask of objects that tests handed to it: nothing that leads to other objects."""
    target = operands[0] if operands else None
    if operation in ("getattr", "setattr", "delattr", "dir"):
        name = operands[1] if len(operands) > 1 else ""
        own = getattr(type(target), "__module__", None) == MODULE or (
            isinstance(target, type) and target.__module__ == MODULE
        )
        if type(name) is not str or name.startswith("_") or not own:
            raise AttributeError(name)
        if operation in ("setattr", "delattr") and callable(getattr(target, name, None)):
            raise AttributeError(name)  # the tests' own methods
    if operation in ("copy", "deepcopy", "put_back"):
        raise TypeError("only objects of the program are copied or changed so")
    if (
        operation == "call"
        and type(target) is types.BuiltinFunctionType
        and isinstance(target.__self__, types.ModuleType)
    ):
        raise TypeError("this function of the tests cannot be called")
