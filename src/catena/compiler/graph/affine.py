"""Affine index expressions: constant + sum of coefficient * loop dimension + sum of coefficient * computed value.

Plain tuples, so that equal expressions compare and hash fast: `(constant, ((dim, coefficient), ...), ((stmt,
coefficient), ...))` with both lists sorted and without zeros.
"""

from __future__ import annotations

from collections.abc import Iterable

Affine = tuple[int, tuple, tuple]

ZERO: Affine = (0, (), ())


def constant(value: int) -> Affine:
    return (value, (), ())


def dim(d: int) -> Affine:
    return (0, ((d, 1),), ())


def term(stmt: int) -> Affine:
    return (0, (), ((stmt, 1),))


def shift(a: Affine, by: int) -> Affine:
    return (a[0] + by, a[1], a[2]) if by else a


def scale(a: Affine, by: int) -> Affine:
    if by == 1:
        return a
    if by == 0:
        return ZERO
    return (a[0] * by, tuple((d, c * by) for d, c in a[1]), tuple((t, c * by) for t, c in a[2]))


def add(a: Affine, b: Affine) -> Affine:
    if not (b[1] or b[2]):
        return shift(a, b[0])
    if not (a[1] or a[2]):
        return shift(b, a[0])
    return (a[0] + b[0], _merge(a[1], b[1]), _merge(a[2], b[2]))


def combination(terms: Iterable[tuple[Affine, int]]) -> Affine:
    """The sum of expressions, each times a number."""
    start = 0
    dims: dict[int, int] = {}
    stmts: dict[int, int] = {}
    for (constant, of_dims, of_stmts), by in terms:
        start += by * constant
        for d, c in of_dims:
            dims[d] = dims.get(d, 0) + by * c
        for t, c in of_stmts:
            stmts[t] = stmts.get(t, 0) + by * c
    return start, _listed(dims), _listed(stmts)


def _listed(found: dict) -> tuple:
    return tuple(sorted([item for item in found.items() if item[1]])) if found else ()


def _merge(a: tuple, b: tuple) -> tuple:
    if not a:
        return b
    if not b:
        return a
    out = dict(a)
    for key, coef in b:
        out[key] = out.get(key, 0) + coef
    return _listed(out)


def coefficient(a: Affine, d: int) -> int:
    for key, coef in a[1]:
        if key == d:
            return coef
    return 0


def is_constant(a: Affine) -> bool:
    return not (a[1] or a[2])


def show(a: Affine) -> str:
    parts = [f"{c}*i{d}" for d, c in a[1]] + [f"{c}*%{t}" for t, c in a[2]]
    return " + ".join(parts + ([str(a[0])] if a[0] or not parts else []))
