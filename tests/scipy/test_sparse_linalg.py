"""Krylov methods: residuals, trees, preconditioners, derivatives of the system."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.scipy.sparse.linalg import bicgstab, cg, gmres

RNG = np.random.default_rng(8)
N = 8
GENERAL = (RNG.normal(size=(N, N)) + N * np.eye(N)).astype(np.float32)
POSITIVE = (GENERAL @ GENERAL.T / N + np.eye(N)).astype(np.float32)
B = RNG.normal(size=N).astype(np.float32)
METHODS = {
    "cg": (cg, POSITIVE),
    "bicgstab": (bicgstab, GENERAL),
    "gmres": (gmres, GENERAL),
    "gmres, incremental": (lambda a, b, *x0, **o: gmres(a, b, *x0, solve_method="incremental", **o), GENERAL),
    "gmres, restarted": (lambda a, b, *x0, **o: gmres(a, b, *x0, restart=3, **o), GENERAL),
}


@pytest.mark.parametrize("name", METHODS)
def test_systems_are_solved(name):
    method, a = METHODS[name]
    for options in ({}, {"M": np.diag(1 / np.diag(a))}, {"M": lambda v: v / np.diag(a)}, {"x0": B}):
        x, info = method(a, B, **options)
        assert np.linalg.norm(a @ x - B) <= 3e-5 * np.linalg.norm(B)
        assert info == (0 if name.startswith("gmres") else None)
    c = (a + 0.1j * (a - a.T)).astype(np.complex64)
    x = method(c, B)[0]
    assert np.linalg.norm(c @ np.asarray(x) - B) <= 3e-5 * np.linalg.norm(B)
    tree = method(
        lambda v: {"p": 3 * v["p"] + v["q"].sum(), "q": 2 * v["q"] + v["p"].sum()}, {"p": B[:2], "q": B[2:3]}
    )[0]
    assert tree["p"].shape == (2,) and tree["q"].shape == (1,)
    np.testing.assert_allclose(3 * tree["p"] + tree["q"], B[:2], atol=1e-4)
    np.testing.assert_array_equal(method(a, 0 * B)[0], 0 * B)
    np.testing.assert_array_equal(method(a, B, maxiter=0)[0], 0 * B)
    assert method(a, np.arange(N))[0].dtype == np.float32


@pytest.mark.parametrize("name", METHODS)
def test_derivatives_are_those_of_the_system(name):
    method, a = METHODS[name]

    def solution(a, b):
        a = (a + a.T) / 2 if name == "cg" else a
        return method(a, b, tol=1e-6)[0]

    def direct(a, b):
        return jnp.linalg.solve((a + a.T) / 2 if name == "cg" else a, b)

    weights = RNG.normal(size=N).astype(np.float32)
    found = jax.grad(lambda a, b: jnp.vdot(weights, solution(a, b)), (0, 1))(a, B)
    expected = jax.grad(lambda a, b: jnp.vdot(weights, direct(a, b)), (0, 1))(a, B)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    mapped = jax.jit(jax.vmap(lambda b: method(a, b)[0]))(np.stack([B, B[::-1]]))
    np.testing.assert_allclose(mapped[1], np.linalg.solve(a, B[::-1]), atol=2e-5)


def test_what_cannot_be_solved():
    assert gmres(0 * GENERAL, B)[1] == -1
    x, info = gmres(lambda v: v, B)  # the space is exhausted at once
    np.testing.assert_allclose(x, B, atol=1e-6)
    assert info == 0
    assert cg(jnp.zeros((0, 0)), jnp.zeros(0))[0].shape == gmres(jnp.zeros((0, 0)), jnp.zeros(0))[0].shape == (0,)


@pytest.mark.parametrize("method", [cg, bicgstab, gmres])
def test_bad_input_is_refused(method):
    for a, b, options, error in (
        ("x", B, {}, TypeError),
        (GENERAL[:3], B, {}, ValueError),
        (GENERAL, B, {"M": "x"}, TypeError),
        (GENERAL, B, {"x0": B[:3]}, ValueError),
        (GENERAL, B, {"x0": (B,)}, ValueError),
        (lambda v: v[:2], B, {}, ValueError),
        (lambda v: (v,), B, {}, TypeError),
    ):
        with pytest.raises(error):
            method(a, b, **options)
    if method is gmres:
        with pytest.raises(ValueError, match="restart"):
            method(GENERAL, B, restart=0)
        with pytest.raises(ValueError, match="solve_method"):
            method(GENERAL, B, solve_method="other")


@pytest.mark.parametrize("method", [cg, bicgstab, gmres])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_slopes_of_complex_systems(method, preconditioned):
    """A Hermitian matrix is not its own transpose."""
    with jax.enable_x64(True):
        factor = RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4))
        a = jnp.asarray(factor @ factor.conj().T + 4 * np.eye(4))
        b = jnp.asarray(RNG.normal(size=4) + 1j * RNG.normal(size=4))
        options = {"tol": 1e-13, "M": jnp.diag(1 / jnp.diag(a))} if preconditioned else {"tol": 1e-13}
        total = lambda x: jnp.sum(jnp.real(x * jnp.arange(1, 5)))  # noqa: E731
        found = jax.grad(lambda a, b: total(method(a, b, **options)[0]), (0, 1))(a, b)
        wanted = jax.grad(lambda a, b: total(jnp.linalg.solve(a, b)), (0, 1))(a, b)
        for x, y in zip(found, wanted):
            np.testing.assert_allclose(x, y, rtol=1e-9)
