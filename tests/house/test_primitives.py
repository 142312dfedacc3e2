"""A primitive stands in one block: its rules, its row, its function, so that a reader finds them on one screen."""

import ast
import statistics
from pathlib import Path

LAX = Path(__file__).resolve().parents[2] / "src" / "catena" / "lax"

MEDIAN, FARTHEST = 20, 120  # lines from the first rule of a primitive to its function

# Files about one operation, whose rules fill them: there is nothing to read between a rule and the function.
ONE_OPERATION = {
    "contraction.py", "control_flow/cond.py", "control_flow/scan.py", "convolution.py",
    "dynamic_slicing.py", "indexing.py", "ragged.py", "slicing.py",
}  # fmt: skip


def names_in(node: ast.AST) -> set[str]:
    return {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}


def defined(statement: ast.stmt) -> str | None:
    """What a statement at the top of a file defines; `p.define(...)` and `elementwise(p, ...)` define p."""
    if isinstance(statement, ast.FunctionDef):
        return statement.name
    if isinstance(statement, ast.Assign):
        return getattr(statement.targets[0], "id", None)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        owner = call.func.value if isinstance(call.func, ast.Attribute) else (call.args or [None])[0]
        name = getattr(owner, "id", "")
        return name if name.endswith("_p") else None
    return None


def distances(path: Path) -> dict[str, int]:
    """For each primitive with a function of its name: the lines from its first rule to the function."""
    top = {name: s for s in ast.parse(path.read_text()).body if (name := defined(s)) is not None}
    users: dict[str, set[str]] = {}
    for name, statement in top.items():
        for used in names_in(statement) & top.keys() - {name}:
            users.setdefault(used, set()).add(name)
    found = {}
    for name, function in top.items():
        row = top.get(f"{name}_p")
        if isinstance(function, ast.FunctionDef) and row is not None:
            own = {name, f"{name}_p"}
            for _ in top:  # helpers of helpers
                own |= {h for h in top if h.startswith("_") and users.get(h) and users[h] <= own}
            rules = [top[h].lineno for h in names_in(row) & own - {name} if isinstance(top[h], ast.FunctionDef)]
            found[name] = abs(function.lineno - min([row.lineno, *rules]))
    return found


def test_rules_stand_beside_their_function():
    found = {path.relative_to(LAX).as_posix(): distances(path) for path in sorted(LAX.rglob("*.py"))}
    every = [d for file in found.values() for d in file.values()]
    assert len(every) > 100
    assert statistics.median(every) <= MEDIAN
    far = [
        f"{file}: {name} {d} lines"
        for file, by_name in found.items()
        for name, d in by_name.items()
        if d > FARTHEST and file not in ONE_OPERATION
    ]
    assert not far, "\n".join(far)
    near = {file for file in ONE_OPERATION if max(found[file].values(), default=0) <= FARTHEST}
    assert not near, f"near enough: remove from ONE_OPERATION: {near}"
