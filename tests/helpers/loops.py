"""Checkers for control flow: compiled = step by step in Python = NumPy, derivatives = finite differences."""

import itertools

import numpy as np

import catena as jax
from catena.core.check import check_jaxpr

TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}


def leaves(tree) -> list:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def assert_close(a, b, **tolerance):
    """Two trees hold the same numbers, dtypes and shapes."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(leaves(a), leaves(b), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(x, y, **(tolerance or TOLERANCE))


def check_value(f, *args, expected=None):
    """``f`` gives the same eagerly, compiled, and step by step; returns it."""
    eager = f(*args)
    check_jaxpr(jax.make_jaxpr(f)(*args))
    assert_close(eager, jax.jit(f)(*args))
    with jax.disable_jit():
        assert_close(eager, f(*args))
    if expected is not None:
        for x, y in zip(leaves(eager), jax.tree.leaves(expected, is_leaf=lambda v: isinstance(v, list)), strict=True):
            np.testing.assert_allclose(x, y, **TOLERANCE)
    return eager


def numeric_directional(f, args, directions, eps=1e-5):
    """Central differences of ``f`` along ``directions``, in float64."""
    shifted = lambda s: [np.asarray(x + s * eps * d) for x, d in zip(args, directions, strict=True)]
    plus, minus = leaves(f(*shifted(1))), leaves(f(*shifted(-1)))
    return [(a - b) / (2 * eps) for a, b in zip(plus, minus, strict=True)]


def check_derivatives(f, *args, order=2, rtol=1e-5, atol=1e-6):
    """Forward and reverse derivatives of ``f`` at float64 arguments, eager and compiled, up to ``order``."""
    rng = np.random.default_rng(0)
    args = [np.asarray(x, np.float64) for x in args]
    with jax.enable_x64(True):
        dots = [rng.standard_normal(x.shape) for x in args]
        expected = numeric_directional(f, args, dots)
        forward = lambda *xs: jax.jvp(f, xs, tuple(dots))[1]
        for g in (forward, jax.jit(forward)):
            for a, b in zip(leaves(g(*args)), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
        outs = f(*args)
        cts = jax.tree.map(lambda y: rng.standard_normal(np.shape(y)), outs)
        backward = lambda *xs: jax.vjp(f, *xs)[1](cts)
        want = sum(np.sum(c * e) for c, e in zip(leaves(cts), expected, strict=True))
        for g in (backward, jax.jit(backward)):
            got = sum(np.sum(np.asarray(ct) * d) for ct, d in zip(g(*args), dots, strict=True))
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
        check_jaxpr(jax.make_jaxpr(backward)(*args))
    if order > 1:
        check_derivatives(backward, *args, order=order - 1, rtol=10 * rtol, atol=10 * atol)


def check_vmap(f, *args, size=3):
    """``vmap(f)`` over every combination of batched arguments agrees with a loop; also compiled."""
    rng = np.random.default_rng(1)
    varied = [np.stack([vary(x, rng) for _ in range(size)]) for x in args]
    for mapped in itertools.product((False, True), repeat=len(args)):
        if not any(mapped):
            continue
        axes = tuple(0 if m else None for m in mapped)
        operands = [v if m else x for x, v, m in zip(args, varied, mapped, strict=True)]
        rows = [f(*[v[i] if m else v for v, m in zip(operands, mapped, strict=True)]) for i in range(size)]
        expected = jax.tree.map(lambda *ys: np.stack([np.asarray(y) for y in ys]), *rows)
        for g in (jax.vmap(f, axes), jax.jit(jax.vmap(f, axes))):
            got = g(*operands)
            for a, b in zip(leaves(got), leaves(expected), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        last = tuple(-1 if m else None for m in mapped)
        moved = [np.moveaxis(v, 0, -1) if m else v for v, m in zip(operands, mapped, strict=True)]
        for a, b in zip(leaves(jax.vmap(f, last)(*moved)), leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def vary(x, rng):
    """Another value like ``x``."""
    x = np.asarray(x)
    if x.dtype == bool:
        return rng.random(x.shape) < 0.5
    if x.dtype.kind in "iu":
        return np.asarray(rng.integers(0, 5, x.shape), x.dtype)
    return np.asarray(x + 0.3 * rng.standard_normal(x.shape), x.dtype)
