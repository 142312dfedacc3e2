"""The shape of the house: imports point down the staircase, files stay readable, no JAX inside."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "catena"

# From the ground up. A folder imports itself and what stands before it. Folders on one step may not import
# each other unless a line below says so. Every name in the package stands here: a new one needs a decision.
STEPS = [
    {"core"},
    {"runtime"},
    {"compiler"},
    {"transform"},
    {"lax"},
    {"typing", "dtypes", "tree", "tree_util", "errors", "sharding", "stages", "checkpoint_policies"},
    {"numpy"},
    {"parallel", "random", "nn", "scipy", "ops", "image", "dlpack", "export", "tools", "flatten_util"},
    {"ad_checkpoint", "custom_derivatives", "monitoring", "profiler"},
    {"extend", "interpreters", "experimental", "debug"},
    {"__init__"},
    {"compat"},
]

# (from, to): an edge on the same step or upwards, and why it is right.
ALLOWED = {
    ("nn", "random"): "the initial values of parameters are drawn",
    ("tree", "tree_util"): "the same functions under shorter names",
}

# (from, to): downwards, and still not allowed but for types. A lowering rule is handed the builder that
# it writes to, so that the language runs, and is tested, without a compiler.
FORBIDDEN = {("lax", "compiler")}

# Where a module is loaded inside a function on purpose: what it loads, slowly, only when needed.
LAZY = {"core/lazy.py": {"llvmlite", "scipy"}}

MAX_LINES = 700
LONGER = {}  # "folder/file.py": the reason


def step_of(name: str) -> int:
    return next((i for i, step in enumerate(STEPS) if name in step), -1)


def part_of(relative: Path) -> str:
    """The stair a file stands on: its folder, or its own name for a module at the top."""
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


FILES = sorted(path.relative_to(SRC) for path in SRC.rglob("*.py"))
TREES = {path: ast.parse((SRC / path).read_text()) for path in FILES}


def type_checking_blocks(tree: ast.AST) -> set[ast.AST]:
    """Every node below `if TYPE_CHECKING:`; what only a type checker reads is no edge of the house."""
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            inside.update(child for statement in node.body for child in ast.walk(statement))
    return inside


def absolute(path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = ["catena", *path.parts[:-1]]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def dotted(path: Path) -> str:
    return ".".join(["catena", *path.with_suffix("").parts]).removesuffix(".__init__")


def imported(path: Path, node: ast.AST) -> list[str]:
    """Full names of what one statement imports (`from catena import core` imports `catena.core`)."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = absolute(path, node)
        return [f"{module}.{alias.name}" for alias in node.names]
    return []


def imports(path: Path, *, runtime_only: bool = True):
    """(line, full name) of every import in a file."""
    skipped = type_checking_blocks(TREES[path]) if runtime_only else set()
    for node in ast.walk(TREES[path]):
        if node not in skipped:
            for name in imported(path, node):
                yield node.lineno, name


def target_of(name: str) -> str | None:
    """The stair that an imported name lives on; None outside the package."""
    parts = name.split(".")
    if parts[0] != "catena":
        return None
    return parts[1] if len(parts) > 1 and step_of(parts[1]) >= 0 else "__init__"


def test_the_package_is_there():
    assert FILES, f"no Python files in {SRC}"


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_point_down(path):
    here = part_of(path)
    assert step_of(here) >= 0, f"src/catena/{here} has no place on the staircase; add it to STEPS"
    upwards = [
        f"{path}:{line} imports {name}"
        for line, name in imports(path)
        if (there := target_of(name)) is not None
        and there != here
        and (step_of(there) >= step_of(here) or (here, there) in FORBIDDEN)
        and (here, there) not in ALLOWED
    ]
    assert not upwards, "\n".join(upwards)


def test_no_circles():
    """Within a folder too, modules import each other without a circle."""
    module_of = {dotted(path): path for path in FILES}
    edges = {path: set() for path in FILES}
    for path in FILES:
        for _, name in imports(path):
            # `from catena.core import aval` may name a module or something in one
            for candidate in (name, name.rpartition(".")[0]):
                if candidate in module_of and module_of[candidate] != path:
                    edges[path].add(module_of[candidate])
                    break
    visiting, done = [], set()

    def visit(path):
        if path in visiting:
            circle = [*visiting[visiting.index(path) :], path]
            raise AssertionError("a circle of imports: " + " -> ".join(map(str, circle)))
        if path not in done:
            visiting.append(path)
            for there in sorted(edges[path]):
                visit(there)
            done.add(visiting.pop())

    for path in FILES:
        visit(path)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_stand_at_the_top(path):
    inner = [
        f"{path}:{node.lineno} in {function.name}: {name}"
        for function in ast.walk(TREES[path])
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        for name in imported(path, node)
        if name.split(".")[0] not in LAZY.get(path.as_posix(), ())
    ]
    assert not inner, "imports inside functions:\n" + "\n".join(inner)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_files_stay_readable(path):
    lines = len((SRC / path).read_text().splitlines())
    if path.as_posix() in LONGER:
        assert lines > MAX_LINES, f"{path} is short again: remove it from LONGER"
    else:
        assert lines <= MAX_LINES, f"{path} has {lines} lines; split it, or give a reason in LONGER"


@pytest.mark.parametrize("path", FILES, ids=str)
def test_jax_is_never_imported(path):
    named = [(line, name) for line, name in imports(path, runtime_only=False)]
    foreign = [f"{path}:{line} {name}" for line, name in named if name.split(".")[0] in ("jax", "jaxlib")]
    assert not foreign, "\n".join(foreign)


def test_every_exception_is_used():
    assert all((SRC / name).exists() for name in [*LAZY, *LONGER]), "an exception names a file that is gone"
    edges = {(part_of(path), target_of(name)) for path in FILES for _, name in imports(path)}
    assert set(ALLOWED) <= edges, f"unused: {set(ALLOWED) - edges}"
