"""Small complex matrices, one to a lane: an element is two vectors, one of real and one of imaginary parts."""

from __future__ import annotations

from catena.compiler.emit.matrices import Group, Matrix
from catena.compiler.emit.members import Index

Parts = tuple[str, str]


class ComplexMatrix(Matrix):
    """Rows of pairs of vectors, which lie side by side."""

    g: ComplexGroup

    @property
    def T(self) -> ComplexMatrix:
        return ComplexMatrix(self.g, self.slot, self.columns, not self.transposed)

    @property
    def parts(self) -> tuple[_Part, _Part]:
        return _Part(self, 0), _Part(self, 1)

    def __getitem__(self, at: tuple[Index, Index]) -> Parts:  # type: ignore[override]
        real, imag = self.parts
        return real[at], imag[at]

    def __setitem__(self, at: tuple[Index, Index], x: Parts) -> None:  # type: ignore[override]
        for part, value in zip(self.parts, x, strict=True):
            part[at] = value

    def subtract(self, i: Index, factor: Parts, source: ComplexMatrix, k: Index, columns: range) -> None:  # type: ignore[override]
        def one(j: Index) -> None:
            self[i, j] = self.g.less_product(self[i, j], factor, source[k, j])

        self.g.each(columns.start, columns.stop, one)

    def divide(self, i: Index, by: Parts, columns: range) -> None:  # type: ignore[override]
        divisor = self.g.divisor(by)

        def one(j: Index) -> None:
            self[i, j] = self.g.divide(self[i, j], divisor)

        self.g.each(columns.start, columns.stop, one)


class _Part(Matrix):
    """The real or the imaginary parts of a complex matrix."""

    def __init__(self, of: ComplexMatrix, number: int):
        super().__init__(of.g, of.slot, of.columns, of.transposed)
        self.number = number

    def _place(self, i: Index, j: Index) -> str:
        i, j = (j, i) if self.transposed else (i, j)
        g = self.g
        return g.e.element(self.slot, g.vector, g.sum(g.times(g.sum(g.times(i, self.columns), j), 2), self.number))


class ComplexGroup(Group):
    """Complex matrices of a group, and arithmetic on the elements of each."""

    numbers = 2

    def matrix(self, slot: str, columns: int) -> ComplexMatrix:
        return ComplexMatrix(self, slot, columns)

    def size(self, x: Parts) -> str:  # type: ignore[override]
        """What pivots are chosen by, as in LAPACK: the sum of both parts' sizes."""
        real, imag = (self.call("fabs", part) for part in x)
        return self.arithmetic("fadd", real, imag)

    def is_zero(self, x: Parts) -> str:  # type: ignore[override]
        return self.compare("oeq", self.size(x), self.constant(0.0))

    def select_number(self, mask: str, x: Parts, y: Parts) -> Parts:  # type: ignore[override]
        real, imag = (self.select(mask, *parts) for parts in zip(x, y, strict=True))
        return real, imag

    def divisor(self, x: Parts) -> tuple[str, str, str]:  # type: ignore[override]
        """A scale s, the greater part's size, and the inverse of x / s: squares of no part overflow or vanish."""
        real, imag = (self.call("fabs", part) for part in x)
        scale = self.select(self.compare("ogt", real, imag), real, imag)
        u, v = (self.arithmetic("fdiv", part, scale) for part in x)
        square = self.arithmetic("fadd", self.arithmetic("fmul", u, u), self.arithmetic("fmul", v, v))
        minus = self.e.op(f"fneg {self.vector} {v}")
        return self.arithmetic("fdiv", u, square), self.arithmetic("fdiv", minus, square), scale

    def divide(self, x: Parts, divisor: tuple[str, str, str]) -> Parts:  # type: ignore[override]
        (a, b), (u, v, scale) = x, divisor
        real = self.arithmetic("fsub", self.arithmetic("fmul", a, u), self.arithmetic("fmul", b, v))
        imag = self.arithmetic("fadd", self.arithmetic("fmul", a, v), self.arithmetic("fmul", b, u))
        return self.arithmetic("fdiv", real, scale), self.arithmetic("fdiv", imag, scale)

    def less_product(self, x: Parts, a: Parts, b: Parts, type_: str = "") -> Parts:  # type: ignore[override]
        """x - a b, each product rounded once with its difference where the processor can."""
        less = super().less_product
        minus = self.e.op(f"fneg {self.vector} {a[1]}")
        return less(less(x[0], a[0], b[0]), minus, b[1]), less(less(x[1], a[0], b[1]), a[1], b[0])
