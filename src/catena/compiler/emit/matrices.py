"""Small matrices in scratch memory, one to a lane, and arithmetic on elements, as LLVM IR (see `small_matrices`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from catena.compiler.emit import ops
from catena.compiler.emit.masks import any_lane
from catena.compiler.emit.members import Index, Members
from catena.compiler.graph.types import Type, constant, vector
from catena.compiler.plan.steps import SmallMatrices

WRITTEN_OUT = 4  # rows of matrices whose loops are written out


class Matrix:
    """Rows of vectors in scratch memory."""

    parts = property(lambda self: (self,))  # matrices of real numbers that it consists of

    def __init__(self, g: Group, slot: str, columns: int, transposed: bool = False):
        self.g, self.slot, self.columns, self.transposed = g, slot, columns, transposed

    @property
    def T(self) -> Matrix:
        return Matrix(self.g, self.slot, self.columns, not self.transposed)

    def _place(self, i: Index, j: Index) -> str:
        i, j = (j, i) if self.transposed else (i, j)
        g = self.g
        return g.e.element(self.slot, g.vector, g.sum(g.times(i, self.columns), j))

    def __getitem__(self, at: tuple[Index, Index]) -> str:
        return self.g.e.op(f"load {self.g.vector}, ptr {self._place(*at)}")

    def __setitem__(self, at: tuple[Index, Index], x: str) -> None:
        self.g.e.do(f"store {self.g.vector} {x}, ptr {self._place(*at)}")

    def subtract(self, i: Index, factor: str, source: Matrix, k: Index, columns: range) -> None:
        """Takes `factor` times row `k` of `source` from row `i`, in some columns."""
        g = self.g
        if g.lanes == 1 and not self.transposed:
            for j, width in _pieces(columns, g.width):
                self._subtract_piece(i, factor, source, k, j, width)
            return

        def one(j: Index) -> None:
            self[i, j] = g.less_product(self[i, j], factor, source[k, j])

        g.each(columns.start, columns.stop, one)

    def divide(self, i: Index, by: str, columns: range) -> None:
        """Divides row `i`, in some columns."""
        g = self.g
        if g.lanes == 1 and not self.transposed:
            for j, width in _pieces(columns, g.width):
                v, place = vector(g.t.memory, width), self._place(i, j)
                x = g.e.op(f"load {v}, ptr {place}, align {g.t.bytes}")
                made = g.e.op(f"fdiv {v} {x}, {g.e.splat(by, g.t.memory, width)}")
                g.e.do(f"store {v} {made}, ptr {place}, align {g.t.bytes}")
            return

        def one(j: Index) -> None:
            self[i, j] = g.divide(self[i, j], by)

        g.each(columns.start, columns.stop, one)

    def _subtract_piece(self, i: Index, factor: str, source: Matrix, k: Index, j: int, width: int) -> None:
        g = self.g
        v, place = vector(g.t.memory, width), self._place(i, j)
        x, y = (g.e.op(f"load {v}, ptr {at}, align {g.t.bytes}") for at in (place, source._place(k, j)))
        made = g.less_product(x, g.e.splat(factor, g.t.memory, width), y, v)
        g.e.do(f"store {v} {made}, ptr {place}, align {g.t.bytes}")


def _pieces(columns: range, width: int) -> Iterator[tuple[int, int]]:
    """Where vectors begin that cover the columns, and how many lanes they have: ever fewer at the end."""
    at = columns.start
    while at < columns.stop:
        while at + width > columns.stop:
            width //= 2
        yield at, width
        at += width


class Group:
    """The matrices of a group, and arithmetic on vectors of an element of each."""

    numbers = 1  # real ones that an element is

    def __init__(self, t: Type, stored: Type, width: int, step: SmallMatrices, memory: Members):
        self.e, self.lanes, self.width, self.step, self.memory = memory.e, memory.lanes, width, step, memory
        self.t, self.stored = t, stored  # of arithmetic, and of elements in memory
        self.vector, self.flags, self.integers = (vector(x, self.lanes) for x in (self.t.memory, "i1", "i32"))
        self.written_out = all(n <= WRITTEN_OUT for shape in step.shapes for n in shape)

    def matrix(self, slot: str, columns: int) -> Matrix:
        return Matrix(self, slot, columns)

    # ---- numbers and loops ---------------------------------------------------------------------------------

    def times(self, i: Index, k: int) -> Index:
        return i * k if isinstance(i, int) else self.e.op(f"mul nsw i64 {i}, {k}")

    def sum(self, i: Index, j: Index) -> Index:
        if isinstance(i, int) and isinstance(j, int):
            return i + j
        return self.e.op(f"add nsw i64 {i}, {j}")

    def less(self, i: int, j: Index) -> Index:
        return i - j if isinstance(j, int) else self.e.op(f"sub nsw i64 {i}, {j}")

    def each(self, start: Index, stop: Index, body: Callable[[Index], None]) -> None:
        """Runs the body for all numbers from `start` to `stop`, of which there is at least one if they are names."""
        if isinstance(start, int) and isinstance(stop, int):
            if start >= stop:
                return
            if self.written_out or stop - start == 1:
                for i in range(start, stop):
                    body(i)
                return
        i, opened = self.e.begin_loop(start, stop)
        body(i)
        self.e.end_loop(opened)

    # ---- vectors -------------------------------------------------------------------------------------------

    def constant(self, value: float) -> str:
        return constant(value, self.t, self.lanes)

    def call(self, name: str, x: str) -> str:
        return ops.intrinsic(self.e, name, self.t, [x], self.lanes)

    def size(self, x: str) -> str:
        return self.call("fabs", x)

    def is_zero(self, x: str) -> str:
        return self.compare("oeq", x, self.constant(0.0))

    def compare(self, how: str, x: str, y: str) -> str:
        return self.e.op(f"fcmp {how} {self.vector} {x}, {y}")

    def select(self, mask: str, x: str, y: str, type_: str = "") -> str:
        type_ = type_ or self.vector
        return self.e.op(f"select {self.flags} {mask}, {type_} {x}, {type_} {y}")

    def select_number(self, mask: str, x: str, y: str) -> str:
        return self.select(mask, x, y)

    def divisor(self, x: str) -> str:
        """What `divide` takes: what a division by x needs is computed once."""
        return x

    def divide(self, x: str, y: str) -> str:
        return self.e.op(f"fdiv {self.vector} {x}, {y}")

    def less_product(self, x: str, a: str, b: str, type_: str = "") -> str:
        """x - a b, rounded once where the processor can."""
        type_ = type_ or self.vector
        product = self.e.op(f"fmul contract {type_} {a}, {b}")
        return self.e.op(f"fsub contract {type_} {x}, {product}")

    def arithmetic(self, op: str, x: str, y: str) -> str:
        return self.e.op(f"{op} {self.vector} {x}, {y}")

    def any(self, mask: str) -> str:
        """Whether the mask holds in some lane."""
        return any_lane(self.e, mask, self.lanes)

    def number(self, i: Index) -> str:
        """A number in all lanes, as an integer of 32 bits."""
        return self.e.splat(str(i) if isinstance(i, int) else self.e.op(f"trunc i64 {i} to i32"), "i32", self.lanes)

    def variable(self, type_: str, x: str) -> str:
        """Memory of a vector that changes in loops."""
        slot = self.e.slot(type_, 64)
        self.e.do(f"store {type_} {x}, ptr {slot}")
        return slot

    # ---- to scratch memory and back ------------------------------------------------------------------------

    def fetch(self, k: int) -> Matrix:
        """Operand `k` of the step."""
        rows, columns = self.step.shapes[k]
        count = rows * columns * self.numbers
        slot = self.e.slot(f"[{count} x {vector(self.stored.memory, self.lanes)}]", 64)
        self.memory.bring(k, slot, count, self.stored)
        return self.matrix(slot if self.t is self.stored else self._converted(slot, count, "fpext"), columns)

    def _converted(self, slot: str, count: int, how: str) -> str:
        """Vectors of elements as they are in memory as those of arithmetic, or the reverse."""
        types = vector(self.stored.memory, self.lanes), self.vector
        of, to = types if how == "fpext" else types[::-1]
        e, new = self.e, self.e.slot(f"[{count} x {to}]", 64)

        def one(i: Index) -> None:
            x = e.op(f"load {of}, ptr {e.element(slot, of, i)}")
            e.do(f"store {to} {e.op(f'{how} {of} {x} to {to}')}, ptr {e.element(new, to, i)}")

        self.each(0, count, one)
        return new

    def turned(self, x: Matrix, rows: int, columns: int) -> Matrix:
        """The transpose of a matrix, of so many rows and columns then, in memory of its own."""
        made = self.matrix(self.e.slot(f"[{rows * columns * self.numbers} x {self.vector}]", 64), columns)

        def row(i: Index) -> None:
            def one(j: Index) -> None:
                made[i, j] = x[j, i]

            self.each(0, columns, one)

        self.each(0, rows, row)
        return made

    def deliver_elements(self, k: int, slot: str, count: int) -> None:
        """Writes elements to result `k` of the step."""
        count *= self.numbers
        slot = slot if self.t is self.stored else self._converted(slot, count, "fptrunc")
        self.deliver(k, slot, count, self.stored)

    def deliver(self, k: int, slot: str, count: int, t: Type) -> None:
        """Writes `count` values of a type to result `k` of the step."""
        self.memory.give_back(len(self.step.shapes) + k, slot, count, t)
