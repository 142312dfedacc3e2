"""Triangular systems of many sides, op(A) X = B, as LLVM IR: parts of the sides, each in scratch memory of a task.

Vectors lie along the sides, of which a part has a few vectors; A is read where it lies. The unknowns of a few rows are
a tile, in registers while the products with all known ones of a block are subtracted, one after the other (Golub and
Van Loan, "Matrix Computations", 4th ed., 3.1.3 and 3.1.4); a block of unknowns stays in a near cache. An unknown's
products are subtracted in the order in which the others are found, each rounded together with its difference where the
processor can, whatever tiles and blocks there are. Rows beyond the last do as that does, and nobody reads them.
"""

from __future__ import annotations

from catena.compiler.emit import tasks
from catena.compiler.emit.branches import perhaps_never, when
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.triangular import MOST
from catena.compiler.graph.types import TYPES, vector
from catena.compiler.plan.steps import SmallMatrices

ROWS = 6  # of a tile
BLOCK = 16 * ROWS  # unknowns whose products are subtracted from all others while a near cache holds them
MANY_REGISTERS = 32  # for tiles of four vectors, not two


def many_sides(w, step: SmallMatrices) -> None:
    """Writes the solution of every member of a batch of systems."""
    t, (_, sides) = TYPES[step.type], step.shapes[1]
    width = w.machine.vector_bytes // t.bytes
    most = 4 if w.machine.vector_registers >= MANY_REGISTERS else 2
    parts = -(-sides // (most * width))
    vectors = -(-sides // (parts * width))
    parts = -(-sides // (vectors * width))

    def run(e: Emitter, own: list[str], row: str) -> None:
        _Part(e, step, width, vectors).solve(own, row, parts)

    pointers = [w.pointer(b) for b in (*step.ins, *step.outs)]
    tasks.over_rows(w, pointers, step.batch * parts, step.work // parts, run, step.units)


class _Part:
    """The solution of one part of the sides of a system."""

    def __init__(self, e: Emitter, step: SmallMatrices, width: int, vectors: int):
        n = step.shapes[0][0]
        self.e, self.step, self.width, self.vectors, self.t = e, step, width, vectors, TYPES[step.type]
        self.type = vector(self.t.memory, width)
        self.n, self.last = e.size(n), e.size(n - 1)
        row = vectors * self.t.bytes * width
        self.x = e.slot(f"[{-(-MOST // ROWS) * ROWS * row} x i8]", 64)  # unknowns in the order in which they are found
        self.tile = [[e.slot(self.type) for _ in range(vectors)] for _ in range(ROWS)]

    def solve(self, own: list[str], row: str, parts: int) -> None:
        e, t, (n, _), (_, sides) = self.e, self.t, *self.step.shapes
        member, part = (e.op(f"{op} i64 {row}, {tasks.from_table(e, parts, tasks.PARTS)}") for op in ("udiv", "urem"))
        first = e.op(f"mul nsw i64 {part}, {self.vectors * self.width}")
        masks = self._masks(first, sides)
        a = e.element(own[0], t.memory, e.op(f"mul nsw i64 {member}, {e.size(n * n)}"))
        start = e.op(f"add i64 {e.op(f'mul nsw i64 {member}, {e.size(n * sides)}')}, {first}")
        b, out = (e.element(p, t.memory, start) for p in own[1:])
        steps = [self.n, "1"] if not self.step.how.transposed else ["1", self.n]
        across = e.size(sides)
        if self.step.how.lower == self.step.how.transposed:  # backwards
            a = e.element(a, t.memory, e.size(n * n - 1))
            b, out = (e.element(p, t.memory, e.size((n - 1) * sides)) for p in (b, out))
            steps, across = [e.op(f"sub i64 0, {x}") for x in steps], e.op(f"sub i64 0, {across}")
        self._bring(b, across, masks)
        self._find(a, *steps)
        self._give_back(out, across, masks)

    # ---- between memory and scratch memory -------------------------------------------------------------------

    def _masks(self, first: str, sides: int) -> list[str | None]:
        """Which lanes of each vector are sides; None for all."""
        if sides % (self.vectors * self.width) == 0:
            return [None] * self.vectors
        e, masks, v = self.e, list[str | None](), f"<{self.width} x i64>"
        left = e.op(f"sub i64 {e.size(sides)}, {first}")
        for j in range(self.vectors):
            count = e.splat(e.op(f"sub i64 {left}, {j * self.width}"), "i64", self.width)
            masks.append(e.op(f"icmp slt {v} {e.lanes(self.width)}, {count}"))
        return masks

    def _bring(self, b: str, across: str, masks: list[str | None]) -> None:
        """Copies the sides; rows beyond the last are zero."""
        e = self.e
        end = e.op(f"mul i64 {e.op(f'sdiv i64 {self.last}, {ROWS}')}, {ROWS}")
        for r in range(ROWS):
            for j in range(self.vectors):
                e.do(f"store {self.type} zeroinitializer, ptr {self._place(self._row(end, r), j)}")
        i, opened = e.begin_loop(0, self.n)
        for j, place in enumerate(self._columns(b, across, i)):
            x = e.load_raw(self.t, place, self.width, 1, masks[j])
            e.do(f"store {self.type} {x}, ptr {self._place(i, j)}")
        e.end_loop(opened)

    def _give_back(self, out: str, across: str, masks: list[str | None]) -> None:
        e = self.e
        i, opened = e.begin_loop(0, self.n)
        for j, place in enumerate(self._columns(out, across, i)):
            x = e.op(f"load {self.type}, ptr {self._place(i, j)}")
            e.store_raw(self.t, x, place, self.width, masks[j])
        e.end_loop(opened)

    def _columns(self, p: str, across: str, i: str) -> list[str]:
        """The places of the vectors of row `i` in memory."""
        e, memory = self.e, self.t.memory
        row = e.element(p, memory, e.op(f"mul nsw i64 {i}, {across}"))
        return [e.element(row, memory, j * self.width) for j in range(self.vectors)]

    def _row(self, i: str, r: int) -> str:
        return self.e.op(f"add nsw i64 {i}, {r}") if r else i

    def _place(self, i: str, j: int) -> str:
        at = self.e.op(f"mul nsw i64 {i}, {self.vectors}")
        return self.e.element(self.x, self.type, self._row(at, j))

    # ---- tiles -----------------------------------------------------------------------------------------------

    def _find(self, a: str, down: str, right: str) -> None:
        """Finds all unknowns, block by block: those of the block, and what they leave of the sides of all others."""
        e = self.e
        start, blocks = e.begin_loop(0, self.n, BLOCK)
        stop = e.least(e.op(f"add nsw i64 {start}, {BLOCK}"), self.n)
        i, opened = e.begin_loop(start, self.n, ROWS)
        there = [e.least(self._row(i, r), self.last) if r else i for r in range(ROWS)]
        rows = [e.element(a, self.t.memory, e.op(f"mul nsw i64 {r}, {down}")) for r in there]
        self._each(lambda r, j: e.op(f"load {self.type}, ptr {self._place(self._row(i, r), j)}"))
        with perhaps_never(e, start, e.least(i, stop)) as k:
            xs = [e.op(f"load {self.type}, ptr {self._place(k, j)}") for j in range(self.vectors)]
            at = e.op(f"mul nsw i64 {k}, {right}")
            factors = [self._factor(row, at) for row in rows]
            self._each(lambda r, j: self._less_product(self._known(r, j), factors[r], xs[j]))
        with when(e, e.op(f"icmp slt i64 {i}, {stop}")):
            self._find_tile(rows, [e.op(f"mul nsw i64 {r}, {right}") for r in there])
        for r in range(ROWS):
            for j in range(self.vectors):
                e.do(f"store {self.type} {self._known(r, j)}, ptr {self._place(self._row(i, r), j)}")
        e.end_loop(opened)
        e.end_loop(blocks)

    def _find_tile(self, rows: list[str], columns: list[str]) -> None:
        """The unknowns of a tile, from which what all before count was subtracted."""
        found: list[list[str]] = []
        for r, row in enumerate(rows):
            xs = [self._known(r, j) for j in range(self.vectors)]
            for ys, column in zip(found, columns):
                factor = self._factor(row, column)
                xs = [self._less_product(x, factor, y) for x, y in zip(xs, ys)]
            if not self.step.how.unit_diagonal:
                by = self._factor(row, columns[r])
                xs = [self.e.op(f"fdiv {self.type} {x}, {by}") for x in xs]
            found.append(xs)
        self._each(lambda r, j: found[r][j])

    def _each(self, made) -> None:
        """Gives each vector of the tile what is made for it."""
        for r in range(ROWS):
            for j in range(self.vectors):
                self.e.do(f"store {self.type} {made(r, j)}, ptr {self.tile[r][j]}")

    def _known(self, r: int, j: int) -> str:
        return self.e.op(f"load {self.type}, ptr {self.tile[r][j]}")

    def _factor(self, row: str, at: str) -> str:
        """An element of A in all lanes."""
        x = self.e.op(f"load {self.t.memory}, ptr {self.e.element(row, self.t.memory, at)}")
        return self.e.splat(x, self.t.memory, self.width)

    def _less_product(self, x: str, a: str, b: str) -> str:
        product = self.e.op(f"fmul contract {self.type} {a}, {b}")
        return self.e.op(f"fsub contract {self.type} {x}, {product}")
