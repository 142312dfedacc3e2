"""Loops are cut where conditions along the lanes change: between these places nothing is masked."""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.emit import seams
from catena.compiler.kernels.body import Stmt
from catena.compiler.kernels.loops import Nest
from catena.compiler.machine import X86_64_V3
from catena.compiler.native.compile import text_of

SIZES = [1, 2, 7, 8, 9, 15, 16, 17, 31, 40, 64, 100, 129]


def comparing(n: int, *tests) -> Nest:
    """A nest that compares `a + b * i` with a number, for each (operation, a, b, number), in vectors of 8."""
    stmts = []
    for op, a, b, number in tests:
        stmts += [Stmt("affine", "int64", (), (a, ((0, b),), ())), Stmt("const", "int64", (), number)]
        stmts.append(Stmt(op, "bool", (len(stmts) - 2, len(stmts) - 1), None))
    return Nest([n], frozenset(), stmts, [1] * len(stmts), order=[0], vector=0, width=8)


@pytest.mark.parametrize("op", seams.COMPARED)
@pytest.mark.parametrize("b", [1, -1, 3, 0])
def test_what_is_settled_holds_there(op, b):
    for n in (20, 64):
        for number in (-70, 0, 1, 5, 8, 19, 100):
            nest = comparing(n, (op, 3, b, number))
            found = seams.find(nest, 0)
            parts = seams.parts(nest, 0, found)
            assert parts[0][0] == 0 and parts[-1][1] == n
            assert all(x[1] == y[0] for x, y in zip(parts, parts[1:]))
            for start, stop in parts:
                start = min(start, stop - 8)
                truths = {seams.COMPARED[op](3 + b * k, number) for k in range(start, stop)}
                settled = seams.settled(found, start, stop)
                assert set(settled.values()) == (truths if len(truths) == 1 else set())


def test_loops_of_many_seams_stay_whole():
    tests = [("lt", 0, 1, 8 * k + 4) for k in range(1, 9)]
    nest = comparing(100, *tests)
    assert seams.parts(nest, 0, seams.find(nest, 0)) == [(0, 100)]
    assert seams.find(Nest([9], frozenset(), [Stmt("const", "int64", (), 1)], [0]), 0) == {}


STENCILS = {
    "roll": lambda np, x: np.roll(x, 1, -1) + 2 * np.roll(x, -1, -1) - x,
    "roll both": lambda np, x: np.roll(np.roll(x, 1, 0), -1, 1) * x + np.roll(x, -1, 0),
    "pad": lambda np, x: np.pad(x, [(0, 0), (1, 2)])[:, 1:-2] + np.pad(x, [(1, 1), (3, 0)])[1:-1, :-3],
    "join": lambda np, x: np.concatenate([x[:, -1:], x, x[:, :1]], 1) * 3,
    "sum": lambda np, x: (np.roll(x, 1, 1) * x).sum(0),
}


@pytest.mark.parametrize("name", STENCILS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "int32"])
def test_stencils(name, dtype):
    xs = [np.arange(3 * n).reshape(3, n) % 5 - 2 for n in SIZES]
    xs = [x.astype(dtype) for x in xs]
    f = STENCILS[name]
    found = jax.jit(lambda xs: [f(jnp, x) for x in xs])(xs)
    for got, x in zip(found, xs, strict=True):
        np.testing.assert_array_equal(got, f(np, x).astype(dtype))


def test_updates_in_place():
    f = lambda x: jax.lax.fori_loop(0, 4, lambda _, x: jnp.where(jnp.arange(x.shape[1]) < 5, 2 * x, x - 1), x)
    for n in SIZES:
        x = np.arange(3 * n, dtype="f").reshape(3, n)
        expected = x.copy()
        for _ in range(4):
            expected = np.where(np.arange(n) < 5, 2 * expected, expected - 1)
        np.testing.assert_array_equal(jax.jit(f)(x), expected)


def test_what_lies_between_has_no_masks():
    """Of a row of 64, two vectors have a seam; each reads two sides of it. The rest knows which it reads."""
    written = text_of(jax.make_jaxpr(lambda x: STENCILS["roll"](jnp, x))(jnp.ones((50, 64))), machine=X86_64_V3)
    masks = re.findall(r"masked\.load\.v8f32\.p0\([^<]*<8 x i1> (\S+)", written)
    assert masks and 0 < sum(m.startswith("%") for m in masks) <= 8
