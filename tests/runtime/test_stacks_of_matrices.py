"""Eager LAPACK on large stacks of matrices: in parts, between which signals are handled, with the same results."""

import signal

import numpy as np
import pytest

import catena as jax
from catena import lax
from catena import numpy as jnp
from catena.runtime import lapack

RNG = np.random.default_rng(5)
EYE = 4 * np.eye(5, dtype=np.float32)
STACKS = {
    "one axis": RNG.normal(size=(40, 5, 5)).astype(np.float32) + EYE,
    "three axes": RNG.normal(size=(3, 4, 7, 5, 5)).astype(np.float32) + EYE,
    "complex": (RNG.normal(size=(30, 5, 5)) + 1j * RNG.normal(size=(30, 5, 5)) + EYE).astype(np.complex64),
    "none": np.zeros((0, 5, 5), np.float32),
}
FUNCTIONS = {
    "svd": jnp.linalg.svd,
    "svd, all": lambda x: jnp.linalg.svd(x[..., :3], full_matrices=True),
    "singular values": jnp.linalg.svdvals,
    "eigh": jnp.linalg.eigh,
    "eigvalsh": jnp.linalg.eigvalsh,
    "qr": jnp.linalg.qr,
    "qr, all": lambda x: jnp.linalg.qr(x[..., :3], mode="complete"),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.mT.conj() + EYE),
    "cholesky of some": jnp.linalg.cholesky,
    "solve": lambda x: jnp.linalg.solve(x, x),
    "solve, one right side": lambda x: jnp.linalg.solve(x, EYE[:, :2]),
    "solve, one left side": lambda x: jnp.linalg.solve(EYE, x),
    "inv": jnp.linalg.inv,
    "det": jnp.linalg.det,
    "slogdet": jnp.linalg.slogdet,
    "rank": jnp.linalg.matrix_rank,
    "primitives": lambda x: (lax.linalg.svd(x), lax.linalg.eigh(x), lax.linalg.qr(x), lax.linalg.cholesky(x)),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_parts_of_a_stack_give_what_all_at_once_gives(monkeypatch, name):
    for x in map(jnp.asarray, STACKS.values()):
        monkeypatch.setattr(lapack, "PIECE", 1 << 40)
        expected = jax.tree.leaves(FUNCTIONS[name](x))
        monkeypatch.setattr(lapack, "PIECE", 6000 * x.dtype.itemsize // 4)  # three of the matrices
        for found, wanted in zip(jax.tree.leaves(FUNCTIONS[name](x)), expected, strict=True):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_array_equal(found, wanted)


class Counted:
    """A ufunc during each of whose calls a signal arrives."""

    nout, calls = 1, 0

    def __init__(self, ufunc):
        self.ufunc, self.signature = ufunc, ufunc.signature

    def __call__(self, *operands, **options):
        self.calls += 1
        signal.raise_signal(signal.SIGINT)
        return self.ufunc(*operands, **options)


def test_a_handler_runs_after_each_part(monkeypatch):
    monkeypatch.setattr(lapack, "PIECE", 6000)
    inverse, seen = Counted(lapack.gufuncs.inv), []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(inverse.calls))
    try:
        lapack.stacked(inverse, STACKS["three axes"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == list(range(1, 3 * 4 * 3 + 1))
