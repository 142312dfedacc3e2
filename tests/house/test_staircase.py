"""The shape of the house: imports point down the staircase, files and classes stay readable, no JAX inside."""

import ast
from functools import cache
from pathlib import Path

import sources

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
    {"typing", "version", "dtypes", "tree", "tree_util", "errors", "ref", "sharding", "stages", "checkpoint_policies"},
    {"numpy"},
    {"parallel", "random", "nn", "scipy", "ops", "image", "dlpack", "export", "tools", "flatten_util"},
    {"ad", "ad_checkpoint", "custom_batching", "distributed", "memory", "custom_derivatives", "monitoring", "profiler"},
    {"extend", "ffi", "api_util", "test_util", "interpreters", "experimental", "example_libraries", "debug"},
    {"__init__"},
    {"compat"},
    {"__main__"},
]

# (from, to): an edge on the same step or upwards, and why it is right.
ALLOWED = {
    ("api_util", "extend"): "it flattens functions that linear_util wraps",
    ("experimental", "extend"): "jet and odeint have transformations that are put around functions by hand",
    ("experimental", "interpreters"): "primitives of hijax are given rules as users give them",
    ("extend", "interpreters"): "primitives in it are given rules as users give them",
    ("ffi", "interpreters"): "a compilation rule that calls a C function",
    ("tools", "parallel"): "checkpoints read the parts of arrays, and reports say what programs in parts send",
    ("export", "random"): "programs hold random keys",
    ("parallel", "random"): "keys are sent by their words, and numbers drawn in parts, each from its own position on",
    ("nn", "random"): "the initial values of parameters are drawn",
    ("scipy", "random"): "rotations are drawn, and samples of estimated densities",
    ("tools", "random"): "the names of samplers, which keys they use up, and keys in checkpoints",
    ("tree", "tree_util"): "the same functions under shorter names",
}

# (from, to): downwards, and still not allowed but for types. A lowering rule is handed the builder that
# it writes to, so that the language runs, and is tested, without a compiler.
FORBIDDEN = {("lax", "compiler")}

# (file, module): what one file may load of a folder that its own may not import, and why.
DOORS = {
    ("core/aval.py", "catena.parallel.rules"): "as below, and the rules of what types with shardings need",
    ("core/aval.py", "catena.parallel.specs"): "types say of what type their parts on a mesh are",
    ("core/face.py", "catena.tools.faces"): "what notebooks show is drawn where tools are",
    ("transform/profile.py", "catena.tools.page.document"): "the page of a profile, made when somebody asks for it",
    ("core/factors.py", "catena.parallel.rules"): "the table of sharding rules is loaded when an array is first split",
    ("core/parts.py", "catena.parallel.processes"): "arrays that span processes are asked for when there are several",
    ("transform/placement.py", "catena.parallel.processes"): "as above",
    ("transform/execute.py", "catena.parallel.across"): "programs on arrays that span processes are partitioned",
    ("transform/hot_path.py", "catena.parallel.across"): "as above",
    ("transform/jacobians.py", "catena.lax.positions"): "traced Jacobians count along identity matrices",
    ("transform/placing.py", "catena.lax.resharding"): "programs say how their arguments and results are to lie",
    ("lax/native.py", "catena.compiler.native.elementwise"): "the one way from eager evaluation to compiled loops",
    ("lax/special.py", "catena.compiler.vector_math.algorithms"): "NumPy has no such functions, and SciPy's are off",
    ("lax/special.py", "catena.compiler.vector_math.bessel"): "as above",
    ("lax/special.py", "catena.compiler.vector_math.incomplete_gamma"): "as above",
    ("lax/special.py", "catena.compiler.vector_math.mathematics"): "as above",
    ("scipy/special/primitives.py", "catena.compiler.vector_math.algorithms"): "as above",
    ("scipy/special/primitives.py", "catena.compiler.vector_math.mathematics"): "as above",
}

# Where a module is loaded inside a function on purpose: what it loads, slowly, only when needed.
LAZY = {"core/lazy.py": {"llvmlite", "scipy"}}

MAX_LINES = 700
LONGER = {}  # "folder/file.py": the reason

MAX_CLASS_LINES, MAX_ATTRIBUTES = 300, 12
# "folder/file.py:class": lines, attributes (None where within the limit), the reason. These numbers may only shrink.
LARGER = {
    "compiler/native/executable.py:Parts": (None, 20, "what a compiled program consists of, a field each"),
    "compiler/graph/builder.py:Builder": (395, None, "a method for every form of nodes that lower rules write"),
    "compiler/emit/program.py:ProgramWriter": (None, 14, "what the steps of one program write to and share"),
    "compiler/kernels/loops.py:Nest": (None, 15, "a loop nest and its schedule"),
    "compiler/kernels/loops.py:Fold": (None, 13, "what a loop nest says of a fold, a field each"),
    "interpreters/contexts.py:LoweringRuleContext": (None, 13, "what JAX tells compilation rules"),
    "interpreters/contexts.py:ModuleContext": (None, 13, "as above, of the whole program"),
    "core/context.py:Context": (None, 13, "what 'now' means to a thread, read in one attribute load"),
    "lax/windowed.py:Addressing": (None, 18, "how a gather or scatter addresses: each derived once from the numbers"),
    "numpy/ufunc_class.py:ufunc": (306, None, "NumPy's ufunc with the documentation of its methods"),
    "transform/execute.py:Program": (None, 13, "a compiled call, all that a call needs looked up beforehand"),
    "transform/jit.py:JitFunction": (None, 13, "a jitted function, all that a call needs looked up beforehand"),
}


def step_of(name: str) -> int:
    return next((i for i, step in enumerate(STEPS) if name in step), -1)


def part_of(relative: Path) -> str:
    """The stair a file stands on: its folder, or its own name for a module at the top."""
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


FILES = sorted(path.relative_to(SRC) for path in SRC.rglob("*.py"))


def nodes_of(path: Path, *kinds: type) -> list:
    """The nodes of a file that are of these kinds, one kind after the other."""
    found = sources.by_kind(SRC / path)
    return [node for kind in kinds for node in found[kind]]


@cache
def type_checking_blocks(path: Path) -> set[ast.AST]:
    """Every node below `if TYPE_CHECKING:`; what only a type checker reads is no edge of the house."""
    inside = set()
    for node in nodes_of(path, ast.If):
        if "TYPE_CHECKING" in (getattr(node.test, "id", ""), getattr(node.test, "attr", "")):
            inside.update(child for statement in node.body for child in sources.walk(statement))
    return inside


def absolute(path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = ["catena", *path.parts[:-1]]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def dotted(path: Path) -> str:
    return ".".join(["catena", *path.with_suffix("").parts]).removesuffix(".__init__")


def first_string(node: ast.AST, functions: tuple) -> str | None:
    """The first argument of a call of one of these functions, where it is written as a string."""
    if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name) and node.func.id in functions:
        value = getattr(node.args[0], "value", None)
        return value if isinstance(value, str) else None
    return None


def imported(path: Path, node: ast.AST) -> list[str]:
    """Full names of what one statement imports (`from catena import core` imports `catena.core`)."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = absolute(path, node)
        return [f"{module}.{alias.name}" for alias in node.names]
    return []


@cache
def imports(path: Path, *, runtime_only: bool = True) -> list[tuple[int, str]]:
    """(line, full name) of every import in a file, and of what it loads by name when needed."""
    skipped = type_checking_blocks(path) if runtime_only else set()
    statements = [node for node in nodes_of(path, ast.Import, ast.ImportFrom) if node not in skipped]
    named = [(node.lineno, name) for node in statements for name in imported(path, node)]
    loaded = [(node.lineno, first_string(node, ("LazyModule", "load", "_load"))) for node in nodes_of(path, ast.Call)]
    return named + [(line, name) for line, name in loaded if name is not None]


def target_of(name: str) -> str | None:
    """The stair that an imported name lives on; None outside the package."""
    parts = name.split(".")
    if parts[0] != "catena":
        return None
    return parts[1] if len(parts) > 1 and step_of(parts[1]) >= 0 else "__init__"


def points_up(path: Path, name: str) -> bool:
    """Whether a file may not import this."""
    here, there = part_of(path), target_of(name)
    if there is None or there == here or (here, there) in ALLOWED or (path.as_posix(), name) in DOORS:
        return False
    return step_of(there) >= step_of(here) or (here, there) in FORBIDDEN


def test_every_part_has_a_place():
    assert FILES, f"no Python files in {SRC}"
    homeless = sorted({part_of(path) for path in FILES if step_of(part_of(path)) < 0})
    assert not homeless, f"add to STEPS: {homeless}"


def test_imports_point_down():
    upwards = [f"{path}:{line} {name}" for path in FILES for line, name in imports(path) if points_up(path, name)]
    assert not upwards, "\n".join(upwards)


# The compiler's rooms, lowest first: what plans does not know what writes LLVM, and only the last one calls LLVM.
COMPILER = ("machine", "graph", "kernels", "plan", "vector_math", "emit", "interpret", "native")


def test_the_compilers_rooms_are_stairs_too():
    rooms = {path: part_of(Path(*path.parts[1:])) for path in FILES if path.parts[0] == "compiler"}
    homeless = {room for path, room in rooms.items() if room not in COMPILER and path.stem != "__init__"}
    assert not homeless, f"move into a room, or add to COMPILER: {homeless}"
    upwards = [
        f"{path}:{line} {name}"
        for path, room in rooms.items()
        for line, name in imports(path)
        if name.startswith("catena.compiler.") and COMPILER.index(name.split(".")[2]) > COMPILER.index(room)
    ]
    assert not upwards, "\n".join(upwards)


def test_primitives_are_imported():
    """Not looked up by name, which hides where they come from: see core/structural.py and lax/declared.py."""
    named = [
        f"{path}:{node.lineno} {ast.unparse(node)[:60]}"
        for path in FILES
        for node in nodes_of(path, ast.Call, ast.Subscript)
        if first_string(node, ("bind",)) is not None
        or (isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "registry")
        if path.as_posix() != "core/primitive.py"
    ]
    assert not named, "\n".join(named)


def test_no_circles():
    """Within a folder too, modules import each other without a circle."""
    module_of = {dotted(path): path for path in FILES}
    edges = {path: set() for path in FILES}
    for path in FILES:
        read_by_checkers = type_checking_blocks(path)
        for node in nodes_of(path, ast.Import, ast.ImportFrom):
            for name in imported(path, node) if node not in read_by_checkers else ():
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


def test_imports_stand_at_the_top():
    inner = [
        f"{path}:{node.lineno} in {function.name}: {name}"
        for path in FILES
        for function in nodes_of(path, ast.FunctionDef, ast.AsyncFunctionDef)
        for node in nodes_of(path, ast.Import, ast.ImportFrom)
        if function.lineno <= node.lineno <= function.end_lineno
        for name in imported(path, node)
        if name.split(".")[0] not in LAZY.get(path.as_posix(), ())
    ]
    assert not inner, "imports inside functions:\n" + "\n".join(inner)


def test_files_stay_readable():
    lines = {path.as_posix(): len((SRC / path).read_text().splitlines()) for path in FILES}
    long = [f"{path} has {n} lines" for path, n in lines.items() if n > MAX_LINES and path not in LONGER]
    assert not long, "split it, or give a reason in LONGER:\n" + "\n".join(long)
    short = [path for path in LONGER if lines.get(path, 0) <= MAX_LINES]
    assert not short, f"short again: remove from LONGER: {short}"


def test_classes_stay_readable():
    sizes = {
        f"{path.as_posix()}:{node.name}": (node.end_lineno - node.lineno + 1, len(attributes(node)))
        for path in FILES
        for node in nodes_of(path, ast.ClassDef)
    }
    large = {name for name, (n, k) in sizes.items() if n > MAX_CLASS_LINES or k > MAX_ATTRIBUTES}
    assert large <= set(LARGER), f"split, or give a reason in LARGER: { {x: sizes[x] for x in large - set(LARGER)} }"
    assert set(LARGER) <= large, f"small again, or gone: remove from LARGER: {set(LARGER) - large}"
    grown = {
        name: sizes[name]
        for name, (lines, count, _) in LARGER.items()
        if sizes[name][0] > (lines or MAX_CLASS_LINES) or sizes[name][1] > (count or MAX_ATTRIBUTES)
    }
    assert not grown, f"exceptions may only shrink: {grown}"


def attributes(cls: ast.ClassDef) -> set[str]:
    """The attributes that a class declares, or its methods assign."""
    found = {s.target.id for s in cls.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
    for statement in cls.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                if isinstance(node.value, ast.Name) and node.value.id == "self":
                    found.add(node.attr)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
                found.update(n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant))
    return found


def test_jax_is_never_imported():
    foreign = [
        f"{path}:{line} {name}"
        for path in FILES
        for line, name in imports(path, runtime_only=False)
        if name.split(".")[0] in ("jax", "jaxlib")
    ]
    assert not foreign, "\n".join(foreign)


def test_every_exception_is_used():
    assert all((SRC / name).exists() for name in [*LAZY, *LONGER]), "an exception names a file that is gone"
    edges = {(part_of(path), target_of(name)) for path in FILES for _, name in imports(path)}
    assert set(ALLOWED) <= edges, f"unused: {set(ALLOWED) - edges}"
    doors = {(path.as_posix(), name) for path in FILES for _, name in imports(path)}
    assert set(DOORS) <= doors, f"unused: {set(DOORS) - doors}"
