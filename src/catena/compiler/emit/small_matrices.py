"""Factorisations and solutions of small matrices, one matrix to a lane, as LLVM IR.

As many matrices as a vector has lanes are a group. Their elements are brought into scratch memory (`Group.fetch`),
where a vector holds the same element of all of them; there the algorithm runs once for the whole group, as on a matrix
whose elements are vectors, and what it made is brought back (`Group.deliver`). Small loops are written out, so that
matrices of few rows stay in registers. A lane's arithmetic does not depend on what the others hold, so a batch of few
members, each worked on for itself, gets the same bits; vectors lie along rows there (`Matrix.subtract`).

Factorisations subtract each finished column, or unknown, from what is left at once (Golub and Van Loan, "Matrix
Computations", 4th ed., 3.1, 3.4 and 4.2); rows change places as LAPACK's `getrf` has them. Eigenvalues are those of
Jacobi's rotations (there, 8.5; their form is Rutishauser's, Numerische Mathematik 9, 1966).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from catena.compiler.emit import many_sides, ops, tasks
from catena.compiler.emit.branches import when
from catena.compiler.emit.complex_matrices import ComplexGroup
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.matrices import Group, Matrix
from catena.compiler.emit.members import Index, Members
from catena.compiler.graph.types import TYPES
from catena.compiler.plan.steps import SmallMatrices

FEW = 8  # equations, each of which has code of its own
PARTS = {"complex64": "float32", "complex128": "float64"}  # of complex numbers, and their type


def small_matrices(w, step: SmallMatrices) -> None:
    """Writes a routine for every member of a batch."""
    if step.routine == "many_sides":
        many_sides.many_sides(w, step)
        return
    is_complex, stored = step.type in PARTS, TYPES[PARTS.get(step.type, step.type)]
    t = TYPES["float64"] if step.routine in WIDER else stored
    group_of = ComplexGroup if is_complex else Group
    width = w.machine.vector_bytes // t.bytes
    lanes = width if 2 * step.batch >= width else 1
    masked = "avx512f" in w.machine.features

    def run(e: Emitter, own: list[str], group: str) -> None:
        first = e.op(f"mul nsw i64 {group}, {lanes}")
        members = Members(e, lanes, masked, own, first, step.batch)
        ROUTINES[step.routine](group_of(t, stored, width, step, members))

    pointers = [w.pointer(b) for b in (*step.ins, *step.outs)]
    tasks.over_rows(w, pointers, -(-step.batch // lanes), lanes * step.work, run, step.units)


# ---- routines ----------------------------------------------------------------------------------------------


def _cholesky(g: Group) -> None:
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


def _lu(g: Group) -> None:
    """Both factors in one matrix, with the rows that changed places, and the first zero on the diagonal, from 1 on."""
    e, (m, n) = g.e, g.step.shapes[0]
    a, count = g.fetch(0), min(m, n)
    pivots, info = e.slot(f"[{count} x {g.integers}]", 64), g.variable(g.integers, "zeroinitializer")
    for k in range(count):
        place = _pivot(g, a, k, m)
        e.do(f"store {g.integers} {place}, ptr {e.element(pivots, g.integers, k)}")
        _swap(g, a, k, place)
        pivot = a[k, k]
        zero, divisor = g.is_zero(pivot), g.divisor(pivot)
        _note(g, info, zero, k + 1)

        def eliminate(i: Index, k=k, divisor=divisor, zero=zero) -> None:
            factor = g.select_number(zero, a[i, k], g.divide(a[i, k], divisor))
            a[i, k] = factor
            a.subtract(i, factor, a, k, range(k + 1, n))

        g.each(k + 1, m, eliminate)
    g.deliver_elements(0, a.slot, m * n)
    g.deliver(1, pivots, count, TYPES["int32"])
    g.deliver(2, info, 1, TYPES["int32"])


def _pivot(g: Group, a: Matrix, k: int, rows: int) -> str:
    """The row, from `k` on, of the first element of column `k` that none exceeds."""
    e = g.e
    best, place = g.variable(g.vector, g.size(a[k, k])), g.variable(g.integers, g.number(k))

    def look(i: Index) -> None:
        x, most = g.size(a[i, k]), e.op(f"load {g.vector}, ptr {best}")
        more = g.compare("ogt", x, most)
        e.do(f"store {g.vector} {g.select(more, x, most)}, ptr {best}")
        known = e.op(f"load {g.integers}, ptr {place}")
        e.do(f"store {g.integers} {g.select(more, g.number(i), known, g.integers)}, ptr {place}")

    g.each(k + 1, rows, look)
    return e.op(f"load {g.integers}, ptr {place}")


def _swap(g: Group, a: Matrix, k: int, place: str) -> None:
    """Exchanges rows `k` and `place`, which each lane has chosen for itself."""
    e, (rows, columns) = g.e, g.step.shapes[0]
    if g.lanes == 1:
        row = e.op(f"sext i32 {place} to i64")

        def exchange(j: Index) -> None:
            a[k, j], a[row, j] = a[row, j], a[k, j]

        g.each(0, columns, exchange)
        return

    def exchange_chosen(a: Matrix, j: Index) -> None:
        old = a[k, j]
        chosen = g.variable(g.vector, old)

        def look(i: Index) -> None:
            here, x = e.op(f"icmp eq {g.integers} {place}, {g.number(i)}"), a[i, j]
            e.do(f"store {g.vector} {g.select(here, x, e.op(f'load {g.vector}, ptr {chosen}'))}, ptr {chosen}")
            a[i, j] = g.select(here, old, x)

        g.each(k + 1, rows, look)
        a[k, j] = e.op(f"load {g.vector}, ptr {chosen}")

    for part in a.parts:
        g.each(0, columns, functools.partial(exchange_chosen, part))


def _note(g: Group, info: str, zero: str, number: int) -> None:
    """Keeps the first number for which a pivot was zero."""
    e = g.e
    known = e.op(f"load {g.integers}, ptr {info}")
    new = e.op(f"and {g.flags} {zero}, {e.op(f'icmp eq {g.integers} {known}, zeroinitializer')}" if g.lanes > 1 else
               f"and i1 {zero}, {e.op(f'icmp eq i32 {known}, 0')}")  # fmt: skip
    e.do(f"store {g.integers} {g.select(new, g.number(number), known, g.integers)}, ptr {info}")


def _triangular_solve(g: Group) -> None:
    """X of op(A) X = B, or of X op(A) = B."""
    how, (n, _), (rows, columns) = g.step.how, *g.step.shapes
    a, x = g.fetch(0), g.fetch(1)
    a = a.T if how.left == how.transposed else a  # a[i, k]: what unknown k counts in equation i
    solutions = columns if how.left else rows
    if not how.left:
        x = x.T if g.lanes > 1 else g.turned(x, n, rows)  # vectors lie along the sides
    forward = how.lower == (how.left != how.transposed)

    def find(i: Index) -> None:
        if not how.unit_diagonal:
            x.divide(i, a[i, i], range(solutions))

    def find_and_count(k: Index) -> None:
        i = k if forward else g.less(n - 1, k)
        find(i)
        start, stop = (g.sum(i, 1), n) if forward else (0, i)
        g.each(start, stop, lambda r: x.subtract(r, a[r, i], x, i, range(solutions)))

    if n <= FEW:
        for k in range(n - 1):
            find_and_count(k)
    else:
        g.each(0, n - 1, find_and_count)
    find(n - 1 if forward else 0)
    if not how.left and g.lanes == 1:
        x = g.turned(x, rows, n)
    g.deliver_elements(0, x.slot, rows * columns)


SWEEPS = 40  # of rotations at most: five or six are enough
NEGLIGIBLE = {32: 2.0**-30, 64: 2.0**-55}  # part of a matrix of floats of so many bits
WIDER = frozenset(["eigenvalues"])  # routines of 32 bits that compute in 64, so that results are rounded once


def _eigenvalues(g: Group) -> None:
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


def _made_symmetric(g: Group, a: Matrix, n: int) -> str:
    """Copies one triangle to the other; gives zero, or NaN where an element is not finite."""
    zero = g.variable(g.vector, g.constant(0.0))

    def one(i: Index, j: Index) -> None:
        x = a[i, j] if g.step.how.lower else a[j, i]
        a[i, j] = a[j, i] = x
        known = g.e.op(f"load {g.vector}, ptr {zero}")
        g.e.do(f"store {g.vector} {g.arithmetic('fadd', known, g.arithmetic('fsub', x, x))}, ptr {zero}")

    g.each(0, n, lambda i: g.each(0, g.sum(i, 1), lambda j: one(i, j)))
    return g.e.op(f"load {g.vector}, ptr {zero}")


def _negligible(g: Group, a: Matrix, n: int) -> str:
    """How large an element may be so that all of that size change eigenvalues by less than rounding does."""
    most = g.variable(g.vector, g.constant(0.0))

    def look(i: Index, j: Index) -> None:
        size, known = g.call("fabs", a[i, j]), g.e.op(f"load {g.vector}, ptr {most}")
        g.e.do(f"store {g.vector} {g.select(g.compare('ogt', size, known), size, known)}, ptr {most}")

    g.each(0, n, lambda i: g.each(0, g.sum(i, 1), lambda j: look(i, j)))
    return g.arithmetic("fmul", g.e.op(f"load {g.vector}, ptr {most}"), g.constant(NEGLIGIBLE[g.stored.bits] / n))


def _rotate(g: Group, a: Matrix, n: int, p: Index, q: Index, least: str, again: str) -> None:
    """Clears element (p, q), where it is not negligible; what a lane holds else stays as it is, bit for bit."""
    e, x = g.e, a[p, q]
    wanted = g.compare("ogt", g.call("fabs", x), least)
    with when(e, g.any(wanted)):
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


def _sorted_diagonal(g: Group, a: Matrix, n: int) -> Matrix:
    """The diagonal in ascending order: each pass brings the greatest of what is left to its end."""
    values = Matrix(g, g.e.slot(f"[{n} x {g.vector}]", 64), 1)

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


ROUTINES: dict[str, Callable[[Group], None]] = {
    "cholesky": _cholesky,
    "eigenvalues": _eigenvalues,
    "lu": _lu,
    "triangular_solve": _triangular_solve,
}
