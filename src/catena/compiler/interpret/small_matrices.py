"""Factorisations and solutions of small matrices in NumPy, all members of a batch at once, in the order of `emit`'s."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from catena.compiler.interpret.memory import Memory
from catena.compiler.plan.steps import SmallMatrices


def small_matrices(memory: Memory, step: SmallMatrices) -> None:
    """A routine for every member of a batch."""
    operands = (memory[b].view(step.type).reshape(step.batch, *shape) for b, shape in zip(step.ins, step.shapes))
    with np.errstate(all="ignore"):
        results = ROUTINES[step.routine](step, *(x.copy() for x in operands))
    for buffer, result in zip(step.outs, results, strict=True):
        memory[buffer].view(result.dtype)[:] = result.reshape(-1)


def _cholesky(step: SmallMatrices, a: np.ndarray) -> list[np.ndarray]:
    n, good = a.shape[-1], np.ones(len(a), bool)
    for k in range(n):
        good &= a[:, k, k] > 0
        a[:, k, k] = np.sqrt(a[:, k, k])
        a[:, k + 1 :, k] /= a[:, k, k, None]
        column = a[:, k + 1 :, k]
        a[:, k + 1 :, k + 1 :] -= column[:, :, None] * column[:, None, :]
    return [np.where(good[:, None, None], np.tril(a), np.asarray(np.nan, a.dtype))]


def _lu(step: SmallMatrices, a: np.ndarray) -> list[np.ndarray]:
    m, n = a.shape[1:]
    members, info = np.arange(len(a)), np.zeros(len(a), np.int32)
    pivots = np.zeros((len(a), min(m, n)), np.int32)
    for k in range(min(m, n)):
        sizes = np.abs(a[:, k:, k].real) + np.abs(a[:, k:, k].imag)
        place = k + np.where(np.isnan(sizes[:, 0]), 0, np.argmax(np.nan_to_num(sizes, nan=-1, posinf=np.inf), axis=1))
        a[members, k], a[members, place] = a[members, place], a[members, k].copy()
        pivots[:, k], pivot = place, a[:, k, k].copy()
        info[(pivot == 0) & (info == 0)] = k + 1
        a[:, k + 1 :, k] = np.where(pivot[:, None] == 0, a[:, k + 1 :, k], a[:, k + 1 :, k] / pivot[:, None])
        a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k, None] * a[:, k, None, k + 1 :]
    return [a, pivots, info]


def _triangular_solve(step: SmallMatrices, a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    how = step.how
    a = a.swapaxes(1, 2) if how.left == how.transposed else a
    x, n = b if how.left else b.swapaxes(1, 2), a.shape[-1]
    forward = how.lower == (how.left != how.transposed)
    for i in range(n) if forward else reversed(range(n)):
        if not how.unit_diagonal:
            x[:, i] /= a[:, i, i, None]
        later = slice(i + 1, n) if forward else slice(0, i)
        x[:, later] -= a[:, later, i, None] * x[:, i, None]
    return [b]


def _eigenvalues(step: SmallMatrices, a: np.ndarray) -> list[np.ndarray]:
    finite = np.isfinite(np.tril(a) if step.how.lower else np.triu(a)).all(axis=(1, 2))
    values = np.linalg.eigvalsh(np.where(finite[:, None, None], a, 0), "L" if step.how.lower else "U")
    return [np.where(finite[:, None], values, np.asarray(np.nan, a.dtype))]


ROUTINES: dict[str, Callable[..., list[np.ndarray]]] = {
    "cholesky": _cholesky,
    "eigenvalues": _eigenvalues,
    "lu": _lu,
    "many_sides": _triangular_solve,
    "triangular_solve": _triangular_solve,
}
