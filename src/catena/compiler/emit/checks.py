"""Checks in LLVM IR: the tests of a loop nest branch together to a cold block, which notes the first failure.

A failure is noted in the program's cell (`core.failures`) under a lock, since tasks run on several threads: of failures
in the same iterations of all loops that stays which comes first in the program, then in the array, so that what is
noted hangs on no thread. Loops keep their iterations in the cell, and the program ends when one of them has failed.
"""

from __future__ import annotations

from catena.compiler.emit.branches import when, when_it_leaves
from catena.compiler.graph.types import TYPES, Type, vector
from catena.compiler.kernels.loops import CHECKS
from catena.core.failures import FROZEN, LIVE, MOST_LOOPS, PLACE, VALUES
from catena.runtime.status import CHECK_FAILED

MOST_SHOWN = FROZEN - VALUES


class Tests:
    """The tests of a nest that were computed and not written yet, with the copies of the body that they belong to; a
    nest that is written where the program runs `stops` it when one fails.
    """

    def __init__(self, stops: bool):
        self.pending: list[tuple] = []
        self.stops = stops

    def flush(self, body) -> None:
        """Writes them."""
        if self.pending:
            _write(body, self.pending, self.stops)
            self.pending = []


def _write(body, pending: list, stops: bool) -> None:
    e, cell = body.e, body.pointers[CHECKS]
    some = _failed(body, _suspects(body.nest, pending))
    with when(e, e.op(f"call i1 @llvm.expect.i1(i1 {some}, i1 false)")):
        for i, s, c in pending:
            _note(body, cell, i, s, c)
        if stops:
            with when_it_leaves(e, _failed(body, [(i, s.args[0], c) for i, s, c in pending])):
                e.do(f"store i64 {CHECK_FAILED}, ptr %status")
                e.jump("finish")


def _failed(body, masks: list) -> str:
    """Whether one of some statements, with the test that it belongs to and the copy, holds in some lane."""
    found: dict[int, str] = {}
    e = body.e
    for i, mask, c in masks:
        width = body.width if body.is_lanes(i) else 1
        x = body.use(mask, c, width)
        found[width] = x if width not in found else e.op(f"or {vector('i1', width)} {found[width]}, {x}")
    some = [x if width == 1 else _any(e, x, width) for width, x in found.items()]
    return some[0] if len(some) == 1 else e.op(f"or i1 {some[0]}, {some[1]}")


# Operations that give NaN where an operand is NaN.
SPREADING = frozenset(
    """add sub mul div neg abs sqrt rsqrt square integer_pow exp exp2 expm1 log log1p log2 sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh logistic erf erfc cbrt floor ceil trunc round_half_even max min fma convert
    reciprocal
    """.split()
)


def _suspects(nest, pending: list) -> list:
    """What to look at in every iteration, for tests of one loop: the tests themselves; but of those for NaN, only
    whether the last of a chain of operations is NaN, which it is where one before it is. What is exact, the cold block
    asks.
    """
    numbers = {i: _tested_for_nan(nest, s.args[0]) for i, s, _ in pending}
    behind: set[int] = set()  # numbers that make another tested one NaN
    for y in {y for y in numbers.values() if y is not None}:
        ask = _spread(nest, y)
        while ask:
            x = ask.pop()
            if x not in behind:
                behind.add(x)
                ask += _spread(nest, x)
    found = []
    for i, s, c in pending:
        number = numbers[i]
        if number is None:
            found.append((i, s.args[0], c))
        elif number not in behind:
            found.append((i, _is_nan(nest, s.args[0]), c))
    return found


def _spread(nest, i: int) -> list[int]:
    """The statements that make this one NaN when they are."""
    s = nest.stmts[i]
    if s.op not in SPREADING or (s.op == "integer_pow" and not s.attr):
        return []
    return [a for a in s.args if TYPES[nest.stmts[a].type].kind == "f"]


def _is_nan(nest, mask: int) -> int | None:
    """The statement that a number is not itself, at the head of a conjunction, or None."""
    while nest.stmts[mask].op == "and":
        mask = nest.stmts[mask].args[0]
    s = nest.stmts[mask]
    of_float = s.op == "ne" and s.args[0] == s.args[1] and TYPES[nest.stmts[s.args[0]].type].kind == "f"
    return mask if of_float else None


def _tested_for_nan(nest, mask: int) -> int | None:
    """The number that a test looks at, if it is one for NaN."""
    head = _is_nan(nest, mask)
    return None if head is None else nest.stmts[head].args[0]


def _any(e, mask: str, width: int) -> str:
    return e.op(f"icmp ne i{width} {e.op(f'bitcast <{width} x i1> {mask} to i{width}')}, 0")


def _note(body, cell: str, i: int, s, c) -> None:
    """The call of the routine that notes a failure of this test, if there is one in these lanes."""
    width = body.width if body.is_lanes(i) else 1
    types = [TYPES[body.nest.stmts[a].type] for a in s.args]
    symbol = f"catena_note.{width}" + "".join(f".{t.kind}{t.register}" for t in types[2:])
    body.e.needs.setdefault(symbol, ("text", _routine(symbol, width, types[2:])))
    body.e.needs.setdefault("catena_note_failure", ("text", NOTE))
    given = [f"{vector(t.register, width)} {body.use(a, c, width)}" for a, t in zip(s.args, types)]
    body.e.do(f"call void @{symbol}(ptr {cell}, i64 {s.attr + 1}, {', '.join(given)})")


def _routine(symbol: str, width: int, types: list[Type]) -> str:
    """A function that notes the first lane that failed, with its place and the values to show."""
    names = ["%failed", "%place", *(f"%x{k}" for k in range(len(types)))]
    registers = ["i1", "i64", *(t.register for t in types)]
    params = ", ".join(f"{vector(r, width)} {n}" for r, n in zip(registers, names))
    lines = [f"define internal void @{symbol}(ptr %cell, i64 %site, {params}) noinline cold {{", "entry:"]
    if width == 1:
        lines.append("  br i1 %failed, label %some, label %done")
    else:
        lines += [
            f"  %bits = bitcast <{width} x i1> %failed to i{width}",
            f"  %none = icmp eq i{width} %bits, 0",
            "  br i1 %none, label %done, label %some",
        ]
    lines.append("some:")
    if width > 1:
        lines += [
            f"  %first = call i{width} @llvm.cttz.i{width}(i{width} %bits, i1 true)",
            f"  %lane = {'zext' if width < 64 else 'bitcast'} i{width} %first to i64",
        ]
        for r, n in zip(registers[1:], names[1:]):
            lines.append(f"  {n}.one = extractelement <{width} x {r}> {n}, i64 %lane")
    one = ".one" if width > 1 else ""
    words = [_word(lines, f"%x{k}{one}", t, k) for k, t in enumerate(types)]
    words += ["0"] * (MOST_SHOWN - len(words))
    given = ", ".join(f"i64 {x}" for x in (f"%place{one}", *words))
    lines += [f"  call void @catena_note_failure(ptr %cell, i64 %site, {given})", "  br label %done", "done:"]
    return "\n".join([*lines, "  ret void", "}"])


def _word(lines: list[str], x: str, t: Type, k: int) -> str:
    """A value as a word of the cell: floats as doubles, integers extended."""
    if t.kind == "f":
        wide = x
        if t.register == "float":
            wide = f"%d{k}"
            lines.append(f"  {wide} = fpext float {x} to double")
        lines.append(f"  %w{k} = bitcast double {wide} to i64")
    elif t.register == "i64":
        return x
    else:
        lines.append(f"  %w{k} = {'sext' if t.kind == 'i' else 'zext'} {t.register} {x} to i64")
    return f"%w{k}"


def _note_text() -> str:
    names = ["%place", *(f"%v{k}" for k in range(MOST_SHOWN))]
    params = ", ".join(f"i64 {n}" for n in names)
    lines = [
        f"define internal void @catena_note_failure(ptr %cell, i64 %site, {params}) noinline cold {{",
        "entry:",
        "  %lock = getelementptr i64, ptr %cell, i64 1",
        f"  %at.place = getelementptr i64, ptr %cell, i64 {PLACE}",
        "  br label %wait",
        "wait:",
        "  %taken = cmpxchg ptr %lock, i64 0, i64 1 acquire monotonic",
        "  %mine = extractvalue { i64, i1 } %taken, 1",
        "  br i1 %mine, label %look, label %wait",
        "look:",
        "  %before = load i64, ptr %cell",
        "  %nothing = icmp eq i64 %before, 0",
        "  %before.place = load i64, ptr %at.place",
        "  %sooner = icmp ult i64 %site, %before",
        "  %same = icmp eq i64 %site, %before",
        "  %left = icmp slt i64 %place, %before.place",
        "  %there = and i1 %same, %left",
        "  %better = or i1 %sooner, %there",
    ]
    better = "%better"
    for k in range(MOST_LOOPS):
        lines += [
            f"  %p{k} = getelementptr i64, ptr %cell, i64 {FROZEN + k}",
            f"  %f{k} = load i64, ptr %p{k}",
            f"  %q{k} = getelementptr i64, ptr %cell, i64 {LIVE + k}",
            f"  %l{k} = load i64, ptr %q{k}",
            f"  %e{k} = icmp eq i64 %f{k}, %l{k}",
            f"  %b{k} = and i1 {better}, %e{k}",
        ]
        better = f"%b{k}"
    lines += [f"  %write = or i1 %nothing, {better}", "  br i1 %write, label %note, label %free", "note:"]
    for k, n in enumerate(names):
        lines += [f"  %a{k} = getelementptr i64, ptr %cell, i64 {PLACE + k}", f"  store i64 {n}, ptr %a{k}"]
    lines += [f"  store i64 %l{k}, ptr %p{k}" for k in range(MOST_LOOPS)]
    lines += [
        "  store atomic i64 %site, ptr %cell release, align 8",
        "  br label %free",
        "free:",
        "  store atomic i64 0, ptr %lock release, align 8",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


NOTE = _note_text()


# ---- programs and their loops


class State:
    """What is known of a checked program while it is written: where failures are noted, whether it ends where one is,
    the loops around, and the calls so far of functions that make checks.
    """

    def __init__(self):
        self.cell: str | None = None
        self.stops = False
        self.depth = 0
        self.calls = 0


class LoopCounter:
    """The iterations of a loop in the program's cell, where there is one and it has room for so many loops."""

    def __init__(self, w):
        self.e, self.state, self.word = w.e, w.checks, None
        if self.state.cell is not None and self.state.depth < MOST_LOOPS:
            self.word = self.e.element(self.state.cell, "i64", LIVE + self.state.depth)
        self.state.depth += 1
        self.set("0")

    def set(self, iteration: str) -> None:
        """Says which iteration begins."""
        if self.word is not None:
            self.e.do(f"store i64 {iteration}, ptr {self.word}")

    def next(self) -> None:
        """Says that the next one begins."""
        if self.word is not None:
            self.set(self.e.op(f"add i64 {self.e.op(f'load i64, ptr {self.word}')}, 1"))

    def end(self) -> None:
        """Says that the loop is over."""
        self.set("0")
        self.state.depth -= 1


def stop_if_failed(w, calls: int = 0) -> None:
    """Ends the program where a check has failed in a function that it called, if that is what checks are for; `calls`
    are those that need not be looked at any more.
    """
    if w.checks.stops and w.checks.calls > calls:
        noted = w.e.op(f"load i64, ptr {w.checks.cell}")
        w.stop_if(w.e.op(f"icmp ne i64 {noted}, 0"), CHECK_FAILED)
