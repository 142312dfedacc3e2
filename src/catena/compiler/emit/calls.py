"""Calls in a row, by a table: what an entry's text, and LLVM's time for it, would grow with.

Each call of a kernel's function is some thirty lines of an entry: they find addresses and numbers. Where many steps in
a row do nothing but call, each is a *row* of numbers in the program's table instead, and one loop goes through the
rows. A row says how long it is, then for each address which base it is counted from and how far on, then numbers. How
it becomes a call says a *stub*, one for all functions with so many addresses and numbers. Programs share both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from catena.compiler.emit import contract, launches, parallel
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph import keys, thresholds
from catena.compiler.plan.program import ARENA, Buffer, Step
from catena.compiler.plan.steps import Contract, Launch, Rows
from catena.core.named import NamedTuple

FEWEST = 32  # calls in a row, from which they are rows,
FEWEST_OF_STUB = 4  # if so many, in the mean, have the same stub, which takes as long to compile
HEAD = 1  # words of a row before its addresses
ROWS, FUNCTIONS, POOL = "rows", "functions", "pool"  # bases that addresses are counted from, beside those of memory


class Call(NamedTuple):
    """One call: the text of its stub, the function, and what that is given: addresses (`parallel.address`), numbers."""

    stub: str
    function: str
    addresses: list
    numbers: list[int]

    @property
    def words(self) -> int:
        return HEAD + 2 * len(self.addresses) + len(self.numbers)


def steps(w, listed: list[Step], alone: Callable[[Step], None], once: bool) -> None:
    """Writes the steps of a block: calls in a row by a table where there are many, the block runs `once` and nothing
    looks at what is between two of them; others each `alone`.
    """
    pending: list[tuple[Step, Call]] = []
    by_table = once and len(listed) >= FEWEST and w.clock is None and w.sites is None and not w.tells
    for step in listed:
        call = of_step(w, step) if by_table else None
        if call is None:
            _write_all(w, pending, alone)
            alone(step)
        else:
            pending.append((step, call))
    _write_all(w, pending, alone)


def _write_all(w, pending: list[tuple[Step, Call]], alone: Callable[[Step], None]) -> None:
    """Writes calls in a row, and forgets them."""
    calls = [call for _, call in pending]
    if len(calls) >= max(FEWEST, FEWEST_OF_STUB * len({call.stub for call in calls})):
        write(w, calls)
    else:
        for step, _ in pending:
            alone(step)
    pending.clear()


def of_step(w, step: Step) -> Call | None:
    """The call that a step is; None where it is more than that."""
    if isinstance(step, Launch) and step.opened is not None and not (step.pause or step.parts or step.nest.is_checked):
        if step.chunk is None:
            return _direct(w, step)
        return _through_pool(w, launches.chunks(w, step))
    if isinstance(step, Rows) and not any(step.pauses) and not any(nest.is_checked for nest in step.group):
        return _through_pool(w, launches.chunks_of_rows(w, step))
    if isinstance(step, Contract) and (step.after is None or not step.after.is_checked):
        return _through_pool(w, contract.chunks(w, step))
    return None


def _direct(w, step: Launch) -> Call:
    name, addresses, numbers = launches.call(w, step)
    return Call(_stub(len(addresses), len(numbers)), name, addresses, numbers)


def _through_pool(w, chunks: parallel.Chunks) -> Call | None:
    """The call of the pool, or of the function where it has one chunk; None where chunks are run in groups."""
    if parallel.groups(w, chunks.many, chunks.units) >= 2 or chunks.ask is not None:
        return None
    addresses = [*chunks.pointers, *([[*chunks.numbers]] if chunks.numbers else [])]
    function, count = w.function(chunks.body), len(addresses)
    if not thresholds.differs(chunks.many, 1):
        return Call(_stub_of_one(count), function, addresses, [])
    if w.pool is None:
        return Call(_stub_of_chunks(count), function, addresses, [chunks.many])
    return Call(_stub_of_pool(count), function, [POOL, *addresses], [chunks.many])


def write(w, calls: list[Call]) -> None:
    """Writes the loop that makes the calls, and their rows. Behind these come the numbers that are given by addresses,
    and behind the functions those so given: of which are the same ones by chance, the text tells nothing.
    """
    e, rows = w.e, []
    tables: list = []
    known: dict[tuple, int] = {}
    bases: dict[str, int] = {}
    first = sum(call.words for call in calls)
    functions = [name for call in calls for name in (w.function(call.stub), call.function)]
    for call in calls:
        rows.append(call.words)
        for x in call.addresses:
            base, offset = x, 0
            if isinstance(x, list):
                base, offset = ROWS, 8 * (first + _place(tables, known, x))
            elif isinstance(x, tuple):
                base, offset = FUNCTIONS, 8 * len(functions)
                functions += x
            elif isinstance(x, Buffer):
                base, offset = ("%arena", x.place) if x.kind == ARENA else (w.pointer(x), 0)
            rows += [bases.setdefault(base, len(bases)), offset]
        rows += call.numbers
    told = {ROWS: w.numbers([*rows, *tables]), FUNCTIONS: w.functions(functions)}
    if POOL in bases:
        told[POOL] = w.external(w.pool)
    table = parallel.table(e, [told.get(base, base) for base in bases])
    count = w.number(2 * len(calls))
    e.do(f"call void @{w.function(LOOP)}(ptr {told[ROWS]}, i64 {count}, ptr {told[FUNCTIONS]}, ptr {table})")


def _place(tables: list, known: dict, numbers: list) -> int:
    """Where numbers stand behind the rows: the same ones once, unless they hang on extents."""
    name = tuple(numbers)
    if not keys.is_plain(name):
        tables += numbers
        return len(tables) - len(numbers)
    if name not in known:
        known[name] = len(tables)
        tables += numbers
    return known[name]


LOOP = """(ptr %rows, i64 %count, ptr %functions, ptr %bases) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %row = phi ptr [ %rows, %entry ], [ %after, %loop ]
  %stub_at = getelementptr ptr, ptr %functions, i64 %i
  %stub = load ptr, ptr %stub_at
  %f_at = getelementptr ptr, ptr %stub_at, i64 1
  %f = load ptr, ptr %f_at
  call void %stub(ptr %f, ptr %row, ptr %bases)
  %words = load i64, ptr %row
  %after = getelementptr i64, ptr %row, i64 %words
  %next = add i64 %i, 2
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}"""


def _addresses(e: Emitter, count: int) -> list[str]:
    """The addresses of a row."""
    found = []
    for i in range(count):
        base, offset = (_number(e, HEAD + 2 * i + j) for j in (0, 1))
        found.append(e.element(e.op(f"load ptr, ptr {e.element('%bases', 'ptr', base)}"), "i8", offset))
    return found


def _number(e: Emitter, at: int) -> str:
    return e.op(f"load i64, ptr {e.element('%row', 'i64', at)}")


def _written(e: Emitter) -> str:
    head = "(ptr %f, ptr %row, ptr %bases) nounwind optnone noinline {"  # there is nothing to optimise
    return "\n".join([head, "entry:", *e.slots, *e.lines, "  ret void", "}"])


@cache  # of a few
def _stub(addresses: int, numbers: int) -> str:
    """Of functions that are given addresses and numbers."""
    e = Emitter()
    given = [f"ptr {p}" for p in _addresses(e, addresses)]
    given += [f"i64 {_number(e, HEAD + 2 * addresses + i)}" for i in range(numbers)]
    e.do(f"call void %f({', '.join(given)})")
    return _written(e)


@cache  # of a few
def _stub_of_one(addresses: int) -> str:
    """Of functions that run a chunk, the only one."""
    e = Emitter()
    e.do(f"call void %f(ptr {parallel.table(e, _addresses(e, addresses))}, i64 0)")
    return _written(e)


@cache  # of a few
def _stub_of_chunks(addresses: int) -> str:
    """Likewise of several chunks, one after the other."""
    e = Emitter()
    table = parallel.table(e, _addresses(e, addresses))
    k, opened = e.begin_loop(0, _number(e, HEAD + 2 * addresses))
    e.do(f"call void %f(ptr {table}, i64 {k})")
    e.end_loop(opened)
    return _written(e)


@cache  # of a few
def _stub_of_pool(addresses: int) -> str:
    """Likewise by the pool, which is the first address."""
    e = Emitter()
    pool, *given = _addresses(e, 1 + addresses)
    count = _number(e, HEAD + 2 * (1 + addresses))
    e.do(f"call void {pool}(ptr %f, ptr {parallel.table(e, given)}, i64 {count}, ptr null)")
    return _written(e)
