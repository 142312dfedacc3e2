"""Random keys that are used twice, found without drawing anything: in the text of a script (``lint``), and in the
program that a function is traced to (``check_keys``).

The text is read as it would be executed: branches each on their own, then joined; loops and comprehensions twice, so
that a key from outside is found where every turn uses it; functions once, and where they are called their parameters
and the outer variables that they use up are used up there. A key is what is passed to a sampler of ``jax.random`` or to
``split``: a variable, an attribute or an element, known by how it is written. To assign any variable in it makes it
another key. What is not known, such as a method of some object, uses nothing up: what is reported is so.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from pathlib import Path

from catena import random
from catena.core.named import NamedTuple
from catena.core.traceback import api_boundary
from catena.random import reuse
from catena.transform.make_jaxpr import make_jaxpr

MODULES = ("jax.random", "catena.random")
HARMLESS = {"PRNGKey", "clone", "fold_in", "key", "key_data", "key_impl", "wrap_key_data"}
SAMPLERS = {f"{module}.{name}" for module in MODULES for name in random.__all__ if name not in HARMLESS}
WRAPPERS = {"jit", "vmap", "grad", "value_and_grad", "checkpoint", "remat", "partial", "pmap", "jacfwd", "jacrev"}
LOOPS = {"scan": (0,), "fori_loop": (2,), "while_loop": (0, 1), "map": (0,), "associative_scan": (0,)}


class Use(NamedTuple):
    """What used a key up, on which line, and from which column on."""

    what: str
    line: int
    column: int


class Finding(NamedTuple):
    """A key that is used twice."""

    file_name: str
    line: int
    key: str
    now: Use
    first: Use

    def __str__(self) -> str:
        if self.now == self.first:
            again = "is used in every turn of a loop"
            cure = f"Make a key for each turn: jax.random.fold_in({self.key}, i), or split it before the loop."
        else:
            again = f"is used again, after {self.first.what} at line {self.first.line}"
            cure = f"Split it: {self.key}, subkey = jax.random.split({self.key})."
        return f"{self.file_name}:{self.line}: {self.key} {again}, by {self.now.what}: the same numbers. {cure}"


class Findings(list):
    """What ``lint`` found, a line each when it is printed."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no key is used twice"


class Function(NamedTuple):
    """What is known of a function: its parameters, and which of them, and of outer variables, it uses up."""

    parameters: tuple[str, ...]
    used: dict[str, Use]


SAMPLER = ("key",)  # the parameters of a sampler, as far as they matter


@api_boundary
def lint(script: str | Path) -> Findings:
    """Random keys that a script uses twice, found without running it: in branches, loops, comprehensions, functions
    that are called and functions that are handed to loops.

    Arguments:
      script: the path of a Python file.
    Returns:
      A list of findings with ``file_name``, ``line``, ``key``, ``now`` and ``first``; it prints as a line each.
    Raises:
      OSError: the file cannot be read.
      SyntaxError: it is no Python.

    >>> import tempfile, pathlib
    >>> from catena import tools
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "script.py"
    >>> lines = ["from jax import random", "key = random.key(0)", "x = random.normal(key)", "y = random.normal(key)"]
    >>> _ = file.write_text("\\n".join(lines))
    >>> [(found.key, found.first.line, found.line) for found in tools.lint(file)]
    [('key', 3, 4)]
    """
    path = Path(script)
    tree = ast.parse(path.read_text(), str(path))
    first = Reader(str(path))  # learns the functions, those that are defined after they are called too
    first.block(tree.body)
    second = Reader(str(path), first.functions)
    second.block(tree.body)
    found = {(f.line, f.key, f.first.line): f for f in second.findings}
    return Findings(sorted(found.values(), key=lambda f: (f.line, f.key)))


def check_keys(fun: Callable) -> Callable:
    """``fun`` as a function that is traced for its arguments and not run, and checked for random keys that are used
    twice: in one program, in every turn of a loop, in every example of a batch.

    Arguments:
      fun: the function; keys are typed ones (``jax.random.key``).
    Returns:
      A function of the same arguments, which returns nothing.
    Raises:
      KeyReuseError: a key is used twice; both lines are named.

    >>> import catena as jax
    >>> from catena import tools
    >>> def f(key):
    ...     return jax.random.normal(key) + jax.random.uniform(jax.random.fold_in(key, 1))
    >>> tools.check_keys(f)(jax.random.key(0))
    """

    @api_boundary
    def checked(*args, **kwargs) -> None:
        closed = make_jaxpr(fun)(*args, **kwargs)
        ledger = reuse.Ledger()
        reuse.run_closed(closed, [reuse.fresh(aval, ledger) for aval in closed.in_avals], ledger)

    return checked


class Reader:
    """Reads statements in the order of execution. ``used`` says which keys are used up, by how they are written."""

    def __init__(self, file_name: str, functions: dict | None = None, names: dict | None = None):
        self.file_name = file_name
        self.functions: dict[str, Function] = dict(functions or {})
        self.names: dict[str, str] = dict(names or {})  # what is imported, by its name here
        self.used: dict[str, Use] = {}
        self.from_outside: dict[str, Use] = {}  # the first use of what was not assigned here
        self.assigned: set[str] = set()
        self.findings: list[Finding] = []

    # ---- keys

    def use(self, node: ast.expr, use: Use) -> None:
        """Use up the key that an expression writes, if it is one that can be written again."""
        if not is_place(node):
            return
        key = ast.unparse(node)
        first = next((u for other, u in self.used.items() if overlap(key, other)), None)
        if first is not None:
            self.findings.append(Finding(self.file_name, use.line, key, use, first))
        self.used[key] = use
        if not any(mentions(key, name) for name in self.assigned):
            self.from_outside.setdefault(key, use)

    def assign(self, target: ast.expr) -> None:
        """Forget what is said of keys that are written with what is assigned."""
        for node in ast.walk(target):
            if is_place(node) and not isinstance(node.ctx, ast.Load):
                name = ast.unparse(node)
                self.used = {k: use for k, use in self.used.items() if not (mentions(k, name) or overlap(k, name))}
                self.functions.pop(name, None)
                self.assigned.add(name)

    # ---- statements

    def block(self, statements: Iterable[ast.stmt]) -> bool:
        """Read statements; whether the next one is reached."""
        return all(self.statement(s) for s in statements)

    def statement(self, node: ast.stmt) -> bool:
        read = getattr(self, f"read_{type(node).__name__}", None)
        if read is not None:
            return read(node) is not False
        self.expressions(node)
        return True

    def read_Assign(self, node):
        self.expressions(node.value)
        known = self.function_of(node.value)
        for target in node.targets:
            self.assign(target)
            if known is not None and isinstance(target, ast.Name):
                self.functions[target.id] = known

    def read_AugAssign(self, node):
        self.expressions(node.value)
        self.assign(node.target)

    def read_AnnAssign(self, node):
        if node.value is not None:
            self.expressions(node.value)
            self.assign(node.target)

    def read_Delete(self, node):
        for target in node.targets:
            self.assign(target)

    def read_Return(self, node):
        self.expressions(node)
        return False

    read_Raise = read_Return

    def read_Break(self, node):
        return False

    read_Continue = read_Break

    def read_If(self, node):
        self.expressions(node.test)
        return self.branches([node.body, node.orelse])

    def read_Match(self, node):
        self.expressions(node.subject)
        return self.branches([*(case.body for case in node.cases), []])

    def read_Try(self, node):
        done = self.branches([[*node.body, *node.orelse], *(handler.body for handler in node.handlers)])
        return self.block(node.finalbody) and done

    read_TryStar = read_Try

    def read_With(self, node):
        for item in node.items:
            self.expressions(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars)
        return self.block(node.body)

    read_AsyncWith = read_With

    def branches(self, blocks: list) -> bool:
        """Each on its own; then what any used up that goes on is used up."""
        start, ends = dict(self.used), []
        for block in blocks:
            self.used = dict(start)
            if self.block(block):
                ends.append(self.used)
        self.used = {key: use for end in reversed(ends) for key, use in end.items()} if ends else start
        return bool(ends)

    def read_For(self, node):
        self.expressions(node.iter)
        self.turns(lambda: self.assign(node.target), node.body)
        return self.block(node.orelse)

    read_AsyncFor = read_For

    def read_While(self, node):
        self.turns(lambda: self.expressions(node.test), node.body)
        return self.block(node.orelse)

    def turns(self, begin, body: list) -> None:
        """Two turns of a loop, and what none leaves."""
        before = dict(self.used)
        begin()
        if self.block(body):
            begin()
            self.block(body)
        self.used = before | self.used

    def read_Import(self, node):
        for name in node.names:
            first = name.name.partition(".")[0]
            self.names[name.asname or first] = name.name if name.asname else first

    def read_ImportFrom(self, node):
        for name in node.names:
            self.names[name.asname or name.name] = f"{node.module}.{name.name}"

    def read_FunctionDef(self, node):
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.expressions(default)
        self.assign(ast.Name(node.name, ast.Store()))
        self.functions[node.name] = self.summary(node.args, node.body)

    read_AsyncFunctionDef = read_FunctionDef

    def read_ClassDef(self, node):
        inner = Reader(self.file_name, self.functions, self.names)
        inner.block(node.body)
        self.findings += inner.findings

    # ---- expressions

    def expressions(self, node: ast.AST) -> None:
        """Read an expression, its parts first, as Python evaluates it."""
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            self.comprehension(node)
        elif isinstance(node, ast.IfExp):
            self.expressions(node.test)
            self.branches([[ast.Expr(node.body)], [ast.Expr(node.orelse)]])
        elif isinstance(node, ast.NamedExpr):
            self.expressions(node.value)
            self.assign(node.target)
        elif not isinstance(node, ast.Lambda):
            for child in ast.iter_child_nodes(node):
                self.expressions(child)
            if isinstance(node, ast.Call):
                self.call(node)

    def comprehension(self, node) -> None:
        for generator in node.generators:
            self.expressions(generator.iter)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        parts += [test for generator in node.generators for test in generator.ifs]

        def begin():
            for generator in node.generators:
                self.assign(generator.target)

        self.turns(begin, [ast.Expr(part) for part in parts])

    def call(self, node: ast.Call) -> None:
        """What a call uses up: as a sampler, as a function of this file, or as a loop over one."""
        function = self.function_of(node.func)
        name = self.dotted(node.func)
        if function is not None:
            given: dict = dict(zip(function.parameters, node.args, strict=False))
            given |= {k.arg: k.value for k in node.keywords if k.arg}
            for key, use in function.used.items():
                what = use.what if function.parameters is SAMPLER else f"{use.what} in {ast.unparse(node.func)}"
                at = given.get(key) if key in function.parameters else written(key)
                if at is not None:
                    self.use(at, Use(what, node.lineno, node.col_offset))
        elif name.rpartition(".")[2] in LOOPS and ".lax" in f".{name}":
            for position in LOOPS[name.rpartition(".")[2]]:
                body = self.function_of(node.args[position]) if position < len(node.args) else None
                for key, use in (body.used if body else {}).items():
                    if key.partition("[")[0] not in body.parameters:  # every turn uses it
                        self.use(written(key), use)
                        self.use(written(key), use)
        elif isinstance(node.func, ast.Attribute) and is_place(node.func.value):
            root = ast.unparse(node.func.value)  # a method may make new keys
            self.used = {key: use for key, use in self.used.items() if not key.startswith(f"{root}.")}

    def function_of(self, node: ast.expr) -> Function | None:
        """What is known of the function that an expression stands for."""
        if isinstance(node, ast.Lambda):
            return self.summary(node.args, [ast.Expr(node.body)])
        if isinstance(node, ast.Call):
            wrapper = self.dotted(node.func).rpartition(".")[2]
            found = self.function_of(node.args[0]) if wrapper in WRAPPERS and node.args else None
            if found is not None and wrapper == "partial":
                return Function(found.parameters[len(node.args) - 1 :], found.used)
            return found
        if isinstance(node, ast.Name) and node.id in self.functions:
            return self.functions[node.id]
        name = self.dotted(node)
        if name in SAMPLERS:
            place = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
            return Function(SAMPLER, {"key": Use(name.rpartition(".")[2], *place)})
        return None

    def summary(self, args: ast.arguments, body: list) -> Function:
        """A function read by itself; its findings are this reader's."""
        parameters = tuple(a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs))
        inner = Reader(self.file_name, self.functions, self.names)
        for name in parameters:
            inner.functions.pop(name, None)
        inner.block(body)
        self.findings += [f for f in inner.findings if f not in self.findings]
        return Function(parameters, inner.from_outside)

    def dotted(self, node: ast.expr) -> str:
        """The full name of what an expression reads, by the imports: ``jax.random.normal``; empty where it is none."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.names.get(node.id, node.id), *reversed(parts)])


def is_place(node: ast.expr) -> bool:
    """Whether an expression is a variable, or an attribute or element of one."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name)


def written(key: str) -> ast.expr:
    return ast.parse(key, mode="eval").body


def mentions(key: str, name: str) -> bool:
    """Whether a key is written with this variable or attribute."""
    nodes = ast.walk(written(key))
    return any(isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) == name for n in nodes)


def overlap(a: str, b: str) -> bool:
    """Whether two are the same key, or one is an element of the other."""
    return a == b or a.startswith(b + "[") or b.startswith(a + "[")
