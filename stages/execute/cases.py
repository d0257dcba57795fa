"""Judging cases as a tool of its own: any program against any tests, one JSON object per line.

A case has `id`, `code` and `tests`: assert statements (strings), or ``{"stdin", "stdout"}`` with
``"mode": "stdio"``; or `test_code`, a pytest file. Optional: `inplace`, `entry_point`, `setup`, `prelude`, `exact`,
`tolerance`, `cpu_seconds`, `memory_mb`. One line per case comes out: `id, verdict, reward, kinds, message, mode`;
`verdict` is ``passed`` or ``failed:<kind>``.
"""

import ast
import json
import sys
from pathlib import Path

from stages.common.cli import UserError
from stages.common.config import Execute
from stages.common.files import write_text
from stages.execute import feedback, preflight, stage


def test_names(source: str) -> list[str]:
    """Names of the tests of a pytest file, as pytest collects them: ``test_x`` and ``TestY::test_x``.

    A file without tests is one test, named by the empty string: that it loads.
    """
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            names.append(node.name)
        if isinstance(node, ast.ClassDef):
            unit = any("TestCase" in ast.unparse(base) for base in node.bases)
            if unit or node.name.startswith("Test"):
                methods = [f.name for f in node.body if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)]
                names += [f"{node.name}::{name}" for name in methods if name.startswith("test")]
    return list(dict.fromkeys(names))


def _only_function(tests: list[str]) -> str | None:
    """The one name that every test calls and that neither a test nor Python defines."""
    import builtins

    wanted: set[str] | None = None
    for test in tests:
        try:
            tree = ast.parse(test)
        except (SyntaxError, ValueError):
            return None
        nodes = list(ast.walk(tree))
        bound = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        bound |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
        bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        imports = [alias for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) for alias in n.names]
        bound |= {(alias.asname or alias.name).partition(".")[0] for alias in imports}
        called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        called -= bound | set(dir(builtins))
        wanted = called if wanted is None else wanted & called
    return min(wanted) if wanted and len(wanted) == 1 else None


def relies_on_changes(tests: list[str]) -> bool:
    """Whether tests call a function for what it does to a variable: a call as a statement, its result unused.

    A call of a method counts when an assert looks at the variable. For cases that do not say `inplace` themselves.
    Calls inside `with` (as in ``pytest.raises``) do not count.
    """
    import builtins

    def looks(nodes: list[ast.stmt], looked_at: set[str]) -> bool:
        for node in nodes:
            call = node.value if isinstance(node, ast.Expr) else None
            if isinstance(call, ast.Call):
                given = {a.id for a in [*call.args, *(k.value for k in call.keywords)] if isinstance(a, ast.Name)}
                if isinstance(call.func, ast.Name) and not hasattr(builtins, call.func.id) and given:
                    return True
                if isinstance(call.func, ast.Attribute) and given & looked_at:
                    return True
            elif not isinstance(node, ast.With | ast.Try):
                inner = [getattr(node, name, []) for name in ("body", "orelse")]
                if any(looks(part, looked_at) for part in inner if isinstance(part, list)):
                    return True
        return False

    for test in tests:
        try:
            tree = ast.parse(test)
            asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
            names = {n.id for node in asserts for n in ast.walk(node) if isinstance(n, ast.Name)}
            if looks(tree.body, names):
                return True
        except (SyntaxError, ValueError):
            continue
    return False


def task_of(case: dict, line: int) -> dict:
    """The case as a row of TASKS; UserError names a field that is missing or of a wrong type."""

    def need(name: str, kind: type) -> object:
        if not isinstance(case.get(name), kind):
            raise UserError(f"line {line}: `{name}` is missing or no {kind.__name__}")
        return case[name]

    name, code = need("id", str), need("code", str)
    row = {
        **dict.fromkeys(("difficulty", "stub")),
        "task_id": name,
        "source": "cases",
        "prompt": "",
        "entry_point": case.get("entry_point"),
        "inplace": bool(case.get("inplace")),
        "exact": bool(case.get("exact")),
        "packages": [],
        **{n: case.get(n) for n in ("prelude", "setup", "reference", "tolerance", "cpu_seconds", "memory_mb")},
    }
    del code
    if "test_code" in case:
        source = need("test_code", str)
        try:
            names = test_names(source) or [""]
        except (SyntaxError, ValueError):
            names = [""]  # fails when it is loaded
        row |= {"kind": "pytest", "setup": source}
        tests = [{"code": n, "stdin": None, "stdout": None} for n in names]
    elif case.get("mode") == "stdio" or any(isinstance(t, dict) for t in need("tests", list)):
        row["kind"] = "stdio"
        for number, test in enumerate(need("tests", list)):
            given = isinstance(test, dict) and isinstance(test.get("stdout"), str)
            if not given or not isinstance(test.get("stdin", ""), str | None):
                raise UserError(f'line {line}: tests[{number}] is no {{"stdin": text, "stdout": text}}')
        tests = [{"code": None, "stdin": t.get("stdin") or "", "stdout": t["stdout"]} for t in case["tests"]]
    else:
        row["kind"] = "function"
        for number, test in enumerate(case["tests"]):
            if not isinstance(test, str):
                raise UserError(f"line {line}: tests[{number}] is no string; a test is a statement such as an assert")
        row["entry_point"] = row["entry_point"] or _only_function(case["tests"])
        tests = [{"code": t, "stdin": None, "stdout": None} for t in case["tests"]]
    if "inplace" not in case and row["kind"] != "stdio":
        row["inplace"] = relies_on_changes([row["setup"] or "", *(t["code"] for t in tests)])
    row["tests"] = [{"visible": True, **t} for t in tests]
    return row


def answer(node: stage.Node, task: dict, result: dict, settings: Execute) -> dict:
    """The line about one case."""
    verdicts, row, _ = stage.rows(node, task, result, settings)
    kinds = [v["kind"] for v in verdicts]
    message = next((v["message"] or _difference(v) for v in verdicts if v["kind"] != "passed"), None)
    verdict = "passed" if row["kind"] == "passed" else f"failed:{row['kind']}"
    if row["kind"] == "infra_error":
        verdict, message = "infra_error", feedback.clean(result["infra_error"])
    return {"id": node.node_id, "verdict": verdict, "reward": row["reward"], "kinds": kinds, "message": message} | {
        "mode": row["mode"]
    }


def _difference(verdict: dict) -> str | None:
    if verdict["got"] is None:
        return None
    return f"got {verdict['got']}" + (f", expected {verdict['expected']}" if verdict["expected"] is not None else "")


def main(path: Path, out: Path | None, settings: Execute, workers: int) -> int:
    """Judge the cases of a file; lines to standard output, in the file's order."""
    from tqdm import tqdm

    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    cases = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}, line {number}: not JSON ({error})") from None
        if not isinstance(case, dict):
            raise UserError(f"{path}, line {number}: not a JSON object")
        cases.append((case, task_of(case, number)))
    tasks = {task["task_id"]: task for _, task in cases}
    if len(tasks) < len(cases):
        raise UserError(f"{path}: an id occurs more than once")
    stage.check_tasks(tasks.values())
    nodes = [stage.Node(task["task_id"], task["task_id"], case["code"]) for case, task in cases]
    text = ""
    if nodes:
        boxes = stage.sandboxes(settings, (), workers)
        preflight.check(boxes, settings)
        with tqdm(total=len(nodes), unit="case", desc="judge") as bar:
            results = stage.judge(nodes, tasks, settings, boxes, bar.update)
        text = "".join(
            stage.as_json(answer(node, tasks[node.task_id], result, settings)) + "\n"
            for node, result in zip(nodes, results, strict=True)
        )
        stage.check_share(results, settings)
    if out is not None:
        write_text(out, text)
    sys.stdout.write(text)
    return 0
