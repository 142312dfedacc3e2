"""Factorisations and solutions of small matrices, one matrix to a lane, as LLVM IR.

As many matrices as a vector has lanes are a group. Their elements are brought into scratch memory (`_Group.fetch`),
where a vector holds the same element of all of them; there the algorithm runs once for the whole group, as on a matrix
whose elements are vectors, and what it made is brought back (`_Group.deliver`). Small loops are written out, so that
matrices of few rows stay in registers. A lane's arithmetic does not depend on what the others hold, so a batch of few
members, each worked on for itself, gets the same bits; vectors lie along rows there (`_Matrix.subtract`).

Factorisations subtract each finished column, or unknown, from what is left at once (Golub and Van Loan, "Matrix
Computations", 4th ed., 3.1, 3.4 and 4.2); rows change places as LAPACK's `getrf` has them. Eigenvalues are those of
Jacobi's rotations (there, 8.5; their form is Rutishauser's, Numerische Mathematik 9, 1966).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from catena.compiler.emit import ops, tasks
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.members import Index, Members
from catena.compiler.graph.types import TYPES, Type, constant, vector
from catena.compiler.plan.steps import SmallMatrices

WRITTEN_OUT = 4  # rows of matrices whose loops are written out


def small_matrices(w, step: SmallMatrices) -> None:
    """Writes a routine for every member of a batch."""
    stored = TYPES[step.type]
    t = TYPES["float64"] if step.routine in WIDER else stored
    width = w.machine.vector_bytes // t.bytes
    lanes = width if 2 * step.batch >= width else 1
    masked = "avx512f" in w.machine.features

    def run(e: Emitter, own: list[str], group: str) -> None:
        first = e.op(f"mul nsw i64 {group}, {lanes}")
        ROUTINES[step.routine](_Group(t, stored, width, step, Members(e, lanes, masked, own, first, step.batch)))

    pointers = [w.pointer(b) for b in (*step.ins, *step.outs)]
    tasks.over_rows(w, pointers, -(-step.batch // lanes), lanes * step.work, run, step.units)


class _Matrix:
    """Rows of vectors in scratch memory."""

    def __init__(self, g: _Group, slot: str, columns: int, transposed: bool = False):
        self.g, self.slot, self.columns, self.transposed = g, slot, columns, transposed

    @property
    def T(self) -> _Matrix:
        return _Matrix(self.g, self.slot, self.columns, not self.transposed)

    def _place(self, i: Index, j: Index) -> str:
        i, j = (j, i) if self.transposed else (i, j)
        g = self.g
        return g.e.element(self.slot, g.vector, g.sum(g.times(i, self.columns), j))

    def __getitem__(self, at: tuple[Index, Index]) -> str:
        return self.g.e.op(f"load {self.g.vector}, ptr {self._place(*at)}")

    def __setitem__(self, at: tuple[Index, Index], x: str) -> None:
        self.g.e.do(f"store {self.g.vector} {x}, ptr {self._place(*at)}")

    def subtract(self, i: Index, factor: str, source: _Matrix, k: int, columns: range) -> None:
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

    def _subtract_piece(self, i: Index, factor: str, source: _Matrix, k: int, j: int, width: int) -> None:
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


class _Group:
    """The matrices of a group, and arithmetic on vectors of an element of each."""

    def __init__(self, t: Type, stored: Type, width: int, step: SmallMatrices, memory: Members):
        self.e, self.lanes, self.width, self.step, self.memory = memory.e, memory.lanes, width, step, memory
        self.t, self.stored = t, stored  # of arithmetic, and of elements in memory
        self.vector, self.flags, self.integers = (vector(x, self.lanes) for x in (self.t.memory, "i1", "i32"))
        self.written_out = all(n <= WRITTEN_OUT for shape in step.shapes for n in shape)

    # ---- numbers and loops ---------------------------------------------------------------------------------

    def times(self, i: Index, k: int) -> Index:
        return i * k if isinstance(i, int) else self.e.op(f"mul nsw i64 {i}, {k}")

    def sum(self, i: Index, j: Index) -> Index:
        if isinstance(i, int) and isinstance(j, int):
            return i + j
        return self.e.op(f"add nsw i64 {i}, {j}")

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

    def compare(self, how: str, x: str, y: str) -> str:
        return self.e.op(f"fcmp {how} {self.vector} {x}, {y}")

    def select(self, mask: str, x: str, y: str, type_: str = "") -> str:
        type_ = type_ or self.vector
        return self.e.op(f"select {self.flags} {mask}, {type_} {x}, {type_} {y}")

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
        if self.lanes == 1:
            return mask
        return self.e.op(f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({self.flags} {mask})")

    def number(self, i: Index) -> str:
        """A number in all lanes, as an integer of 32 bits."""
        return self.e.splat(str(i) if isinstance(i, int) else self.e.op(f"trunc i64 {i} to i32"), "i32", self.lanes)

    def variable(self, type_: str, x: str) -> str:
        """Memory of a vector that changes in loops."""
        slot = self.e.slot(type_, 64)
        self.e.do(f"store {type_} {x}, ptr {slot}")
        return slot

    # ---- to scratch memory and back ------------------------------------------------------------------------

    def fetch(self, k: int) -> _Matrix:
        """Operand `k` of the step."""
        rows, columns = self.step.shapes[k]
        count = rows * columns
        slot = self.e.slot(f"[{count} x {vector(self.stored.memory, self.lanes)}]", 64)
        self.memory.bring(k, slot, count, self.stored)
        return _Matrix(self, slot if self.t is self.stored else self._converted(slot, count, "fpext"), columns)

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

    def turned(self, x: _Matrix, rows: int, columns: int) -> _Matrix:
        """The transpose of a matrix, of so many rows and columns then, in memory of its own."""
        made = _Matrix(self, self.e.slot(f"[{rows * columns} x {self.vector}]", 64), columns)

        def row(i: Index) -> None:
            def one(j: Index) -> None:
                made[i, j] = x[j, i]

            self.each(0, columns, one)

        self.each(0, rows, row)
        return made

    def deliver_elements(self, k: int, slot: str, count: int) -> None:
        """Writes elements to result `k` of the step."""
        slot = slot if self.t is self.stored else self._converted(slot, count, "fptrunc")
        self.deliver(k, slot, count, self.stored)

    def deliver(self, k: int, slot: str, count: int, t: Type) -> None:
        """Writes `count` values of a type to result `k` of the step."""
        self.memory.give_back(len(self.step.shapes) + k, slot, count, t)


# ---- routines ----------------------------------------------------------------------------------------------


def _cholesky(g: _Group) -> None:
    """The lower triangular factor, zeros above; NaN where the matrix is not positive definite."""
    n, a, good = g.step.shapes[0][0], g.fetch(0), ""
    for k in range(n):
        definite = g.compare("ogt", a[k, k], g.constant(0.0))
        good = g.e.op(f"and {g.flags} {good}, {definite}") if good else definite
        root = g.call("sqrt", a[k, k])
        a[k, k] = root

        def scale(i: Index, k=k, root=root) -> None:
            a[i, k] = a[k, i] = g.divide(a[i, k], root)  # what is above the diagonal is free

        def subtract(i: Index, k=k) -> None:
            if g.lanes == 1:
                a.subtract(i, a[i, k], a, k, range(k + 1, n))
                return
            factor = a[i, k]

            def one(j: Index) -> None:
                a[i, j] = g.less_product(a[i, j], factor, a[k, j])

            g.each(k + 1, g.sum(i, 1), one)

        g.each(k + 1, n, scale)
        g.each(k + 1, n, subtract)
    nan, zero = g.constant(float("nan")), g.constant(0.0)

    def below(i: Index) -> None:
        def one(j: Index) -> None:
            a[i, j] = g.select(good, a[i, j], nan)

        g.each(0, g.sum(i, 1), one)

    def above(j: Index) -> None:
        def one(i: Index) -> None:
            a[i, j] = g.select(good, zero, nan)

        g.each(0, j, one)

    g.each(0, n, below)
    g.each(1, n, above)
    g.deliver_elements(0, a.slot, n * n)


def _lu(g: _Group) -> None:
    """Both factors in one matrix, with the rows that changed places, and the first zero on the diagonal, from 1 on."""
    e, (m, n) = g.e, g.step.shapes[0]
    a, count = g.fetch(0), min(m, n)
    pivots, info = e.slot(f"[{count} x {g.integers}]", 64), g.variable(g.integers, "zeroinitializer")
    for k in range(count):
        place = _pivot(g, a, k, m)
        e.do(f"store {g.integers} {place}, ptr {e.element(pivots, g.integers, k)}")
        _swap(g, a, k, place)
        pivot = a[k, k]
        zero = g.compare("oeq", pivot, g.constant(0.0))
        _note(g, info, zero, k + 1)

        def eliminate(i: Index, k=k, pivot=pivot, zero=zero) -> None:
            factor = g.select(zero, a[i, k], g.divide(a[i, k], pivot))
            a[i, k] = factor
            a.subtract(i, factor, a, k, range(k + 1, n))

        g.each(k + 1, m, eliminate)
    g.deliver_elements(0, a.slot, m * n)
    g.deliver(1, pivots, count, TYPES["int32"])
    g.deliver(2, info, 1, TYPES["int32"])


def _pivot(g: _Group, a: _Matrix, k: int, rows: int) -> str:
    """The row, from `k` on, of the first element of column `k` that none exceeds."""
    e = g.e
    best, place = g.variable(g.vector, g.call("fabs", a[k, k])), g.variable(g.integers, g.number(k))

    def look(i: Index) -> None:
        x, most = g.call("fabs", a[i, k]), e.op(f"load {g.vector}, ptr {best}")
        more = g.compare("ogt", x, most)
        e.do(f"store {g.vector} {g.select(more, x, most)}, ptr {best}")
        known = e.op(f"load {g.integers}, ptr {place}")
        e.do(f"store {g.integers} {g.select(more, g.number(i), known, g.integers)}, ptr {place}")

    g.each(k + 1, rows, look)
    return e.op(f"load {g.integers}, ptr {place}")


def _swap(g: _Group, a: _Matrix, k: int, place: str) -> None:
    """Exchanges rows `k` and `place`, which each lane has chosen for itself."""
    e, (rows, columns) = g.e, g.step.shapes[0]
    if g.lanes == 1:
        row = e.op(f"sext i32 {place} to i64")

        def exchange(j: Index) -> None:
            a[k, j], a[row, j] = a[row, j], a[k, j]

        g.each(0, columns, exchange)
        return

    def exchange_chosen(j: Index) -> None:
        old = a[k, j]
        chosen = g.variable(g.vector, old)

        def look(i: Index) -> None:
            here, x = e.op(f"icmp eq {g.integers} {place}, {g.number(i)}"), a[i, j]
            e.do(f"store {g.vector} {g.select(here, x, e.op(f'load {g.vector}, ptr {chosen}'))}, ptr {chosen}")
            a[i, j] = g.select(here, old, x)

        g.each(k + 1, rows, look)
        a[k, j] = e.op(f"load {g.vector}, ptr {chosen}")

    g.each(0, columns, exchange_chosen)


def _note(g: _Group, info: str, zero: str, number: int) -> None:
    """Keeps the first number for which a pivot was zero."""
    e = g.e
    known = e.op(f"load {g.integers}, ptr {info}")
    new = e.op(f"and {g.flags} {zero}, {e.op(f'icmp eq {g.integers} {known}, zeroinitializer')}" if g.lanes > 1 else
               f"and i1 {zero}, {e.op(f'icmp eq i32 {known}, 0')}")  # fmt: skip
    e.do(f"store {g.integers} {g.select(new, g.number(number), known, g.integers)}, ptr {info}")


def _triangular_solve(g: _Group) -> None:
    """X of op(A) X = B, or of X op(A) = B."""
    how, (n, _), (rows, columns) = g.step.how, *g.step.shapes
    a, x = g.fetch(0), g.fetch(1)
    a = a.T if how.left == how.transposed else a  # a[i, k]: what unknown k counts in equation i
    solutions = columns if how.left else rows
    if not how.left:
        x = x.T if g.lanes > 1 else g.turned(x, n, rows)  # vectors lie along the sides
    forward = how.lower == (how.left != how.transposed)
    for i in range(n) if forward else reversed(range(n)):
        if not how.unit_diagonal:
            x.divide(i, a[i, i], range(solutions))

        def subtract(r: Index, i=i) -> None:
            x.subtract(r, a[r, i], x, i, range(solutions))

        g.each(*((i + 1, n) if forward else (0, i)), subtract)
    if not how.left and g.lanes == 1:
        x = g.turned(x, rows, n)
    g.deliver_elements(0, x.slot, rows * columns)


SWEEPS = 40  # of rotations at most: five or six are enough
NEGLIGIBLE = {32: 2.0**-30, 64: 2.0**-55}  # part of a matrix of floats of so many bits
WIDER = frozenset(["eigenvalues"])  # routines of 32 bits that compute in 64, so that results are rounded once


def _eigenvalues(g: _Group) -> None:
    """The eigenvalues of symmetric matrices in ascending order, by rotations that clear one element after another."""
    e, (n, _) = g.e, g.step.shapes[0]
    a = g.fetch(0)
    odd = _made_symmetric(g, a, n)
    least = _negligible(g, a, n)
    again, count = e.slot("i1"), e.slot("i64")
    head, done = e.label(), e.label()
    e.do(f"store i64 0, ptr {count}")
    e.jump(head)
    e.start(head)
    e.do(f"store i1 false, ptr {again}")

    def row(p: Index) -> None:
        g.each(g.sum(p, 1), n, lambda q: _rotate(g, a, n, p, q, least, again))

    g.each(0, n - 1, row)
    swept = e.op(f"add i64 {e.op(f'load i64, ptr {count}')}, 1")
    e.do(f"store i64 {swept}, ptr {count}")
    more = e.op(f"and i1 {e.op(f'load i1, ptr {again}')}, {e.op(f'icmp slt i64 {swept}, {SWEEPS}')}")
    e.branch(more, head, done)
    e.start(done)
    values = _sorted_diagonal(g, a, n)

    def finish(i: Index) -> None:
        values[i, 0] = g.arithmetic("fadd", values[i, 0], odd)

    g.each(0, n, finish)
    g.deliver_elements(0, values.slot, n)


def _made_symmetric(g: _Group, a: _Matrix, n: int) -> str:
    """Copies one triangle to the other; gives zero, or NaN where an element is not finite."""
    zero = g.variable(g.vector, g.constant(0.0))

    def one(i: Index, j: Index) -> None:
        x = a[i, j] if g.step.how.lower else a[j, i]
        a[i, j] = a[j, i] = x
        known = g.e.op(f"load {g.vector}, ptr {zero}")
        g.e.do(f"store {g.vector} {g.arithmetic('fadd', known, g.arithmetic('fsub', x, x))}, ptr {zero}")

    g.each(0, n, lambda i: g.each(0, g.sum(i, 1), lambda j: one(i, j)))
    return g.e.op(f"load {g.vector}, ptr {zero}")


def _negligible(g: _Group, a: _Matrix, n: int) -> str:
    """How large an element may be so that all of that size change eigenvalues by less than rounding does."""
    most = g.variable(g.vector, g.constant(0.0))

    def look(i: Index, j: Index) -> None:
        size, known = g.call("fabs", a[i, j]), g.e.op(f"load {g.vector}, ptr {most}")
        g.e.do(f"store {g.vector} {g.select(g.compare('ogt', size, known), size, known)}, ptr {most}")

    g.each(0, n, lambda i: g.each(0, g.sum(i, 1), lambda j: look(i, j)))
    return g.arithmetic("fmul", g.e.op(f"load {g.vector}, ptr {most}"), g.constant(NEGLIGIBLE[g.stored.bits] / n))


def _rotate(g: _Group, a: _Matrix, n: int, p: Index, q: Index, least: str, again: str) -> None:
    """Clears element (p, q), where it is not negligible; what a lane holds else stays as it is, bit for bit."""
    e, x = g.e, a[p, q]
    wanted = g.compare("ogt", g.call("fabs", x), least)
    work, over = e.label(), e.label()
    e.branch(g.any(wanted), work, over)
    e.start(work)
    e.do(f"store i1 true, ptr {again}")
    first, last, one = a[p, p], a[q, q], g.constant(1.0)
    ratio = g.divide(g.arithmetic("fsub", last, first), g.arithmetic("fadd", x, x))
    root = g.call("sqrt", g.arithmetic("fadd", one, g.arithmetic("fmul", ratio, ratio)))
    size = g.divide(one, g.arithmetic("fadd", g.call("fabs", ratio), root))
    tangent = ops.intrinsic(e, "copysign", g.t, [size, ratio], g.lanes)
    cosine = g.divide(one, g.call("sqrt", g.arithmetic("fadd", one, g.arithmetic("fmul", tangent, tangent))))
    sine = g.arithmetic("fmul", tangent, cosine)
    half = g.divide(sine, g.arithmetic("fadd", one, cosine))  # the tangent of half the angle

    def turn(r: Index) -> None:
        u, v = a[r, p], a[r, q]
        to_u = g.arithmetic("fmul", sine, g.arithmetic("fadd", v, g.arithmetic("fmul", half, u)))
        to_v = g.arithmetic("fmul", sine, g.arithmetic("fsub", u, g.arithmetic("fmul", half, v)))
        a[r, p] = a[p, r] = g.select(wanted, g.arithmetic("fsub", u, to_u), u)
        a[r, q] = a[q, r] = g.select(wanted, g.arithmetic("fadd", v, to_v), v)

    g.each(0, n, turn)  # the four elements that meet are written last
    change = g.arithmetic("fmul", tangent, x)
    a[p, p] = g.select(wanted, g.arithmetic("fsub", first, change), first)
    a[q, q] = g.select(wanted, g.arithmetic("fadd", last, change), last)
    a[p, q] = a[q, p] = g.select(wanted, g.constant(0.0), x)
    e.jump(over)
    e.start(over)


def _sorted_diagonal(g: _Group, a: _Matrix, n: int) -> _Matrix:
    """The diagonal in ascending order: each pass brings the greatest of what is left to its end."""
    values = _Matrix(g, g.e.slot(f"[{n} x {g.vector}]", 64), 1)

    def copy(i: Index) -> None:
        values[i, 0] = a[i, i]

    def exchange(j: Index) -> None:
        x, y = values[j, 0], values[g.sum(j, 1), 0]
        swap = g.compare("ogt", x, y)
        values[j, 0], values[g.sum(j, 1), 0] = g.select(swap, y, x), g.select(swap, x, y)

    g.each(0, n, copy)
    for left in range(n - 1, 0, -1):
        g.each(0, left, exchange)
    return values


ROUTINES: dict[str, Callable[[_Group], None]] = {
    "cholesky": _cholesky,
    "eigenvalues": _eigenvalues,
    "lu": _lu,
    "triangular_solve": _triangular_solve,
}
