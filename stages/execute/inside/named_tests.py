"""Runs a test of a pytest file by its name, as pytest would, where that needs no fixtures. Run alone: no."""

import inspect
import sys
import types


def run_named(names, test):
    """Run the test function ``name`` or ``Class::name``, with the set-up methods that pytest and unittest call."""
    owner, _, name = test.rpartition("::")
    if "setup_module" in names:
        _set_up(names["setup_module"], sys.modules[names["__name__"]])
    if not owner:
        function = names[name]
        if "setup_function" in names:
            _set_up(names["setup_function"], function)
        _each_case(function)
        return
    cls = names[owner]
    unit = sys.modules.get("unittest")
    if unit and isinstance(cls, type) and issubclass(cls, unit.TestCase):
        case = cls(name)
        try:
            cls.setUpClass()
            case.setUp()
            _each_case(getattr(case, name))
            case.tearDown()
        finally:
            case.doCleanups()
        return
    instance = cls()
    if hasattr(cls, "setup_class"):
        cls.setup_class()
    function = getattr(instance, name)
    if hasattr(instance, "setup_method"):
        _set_up(instance.setup_method, function)
    _each_case(function)


def _set_up(function, subject):
    """Call a set-up function, which may take what it is for and may not."""
    function(*[subject][: len(inspect.signature(function).parameters)])


def _each_case(function):
    """Call a test function once, or once per set of its `parametrize` marks."""
    cases = [{}]
    for mark in getattr(function, "pytestmark", []):
        if mark.name != "parametrize":
            continue
        named, rows = mark.args[0], mark.args[1]
        keys = [k.strip() for k in named.split(",")] if isinstance(named, str) else list(named)
        values = [_row(row, len(keys)) for row in rows]
        cases = [case | dict(zip(keys, value, strict=True)) for case in cases for value in values]
    for case in cases:
        outcome = function(**case)
        if isinstance(outcome, types.GeneratorType | types.CoroutineType):
            raise AssertionError("the test is a generator or coroutine, of which nothing was run")


def _row(row, width):
    """The values of one row of `parametrize`, which may be a bare value or `pytest.param(...)`."""
    if type(row).__name__ == "ParameterSet":
        return row.values
    return row if width > 1 else (row,)
