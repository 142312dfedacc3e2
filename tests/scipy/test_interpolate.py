"""``RegularGridInterpolator`` beside SciPy's."""

import itertools

import numpy as np
import pytest
import scipy.interpolate

import catena as jax
import catena.numpy as jnp
from catena.scipy.interpolate import RegularGridInterpolator

RNG = np.random.default_rng(5)
GRID = (np.array([0.0, 1.0, 2.5]), np.array([-1.0, 0.0, 3.0, 4.0]))
VALUES = {
    "plain": RNG.normal(size=(3, 4)),
    "vectors": RNG.normal(size=(3, 4, 2)),
    "complex": RNG.normal(size=(3, 4)) + 1j,
    "integers": RNG.integers(0, 9, (3, 4)),
}
POINTS = np.concatenate([
    RNG.uniform([-0.5, -2], [3, 5], (40, 2)),
    np.array(list(itertools.product(*GRID))),
]).astype("float32")  # fmt: skip


@pytest.mark.parametrize(
    ("values", "method", "fill"), list(itertools.product(VALUES, ("linear", "nearest"), (np.nan, None, 7)))
)
def test_beside_scipy(values, method, fill):
    theirs = scipy.interpolate.RegularGridInterpolator(GRID, VALUES[values], method, False, fill)
    ours = RegularGridInterpolator(GRID, VALUES[values], method, fill_value=fill)
    np.testing.assert_allclose(ours(POINTS), theirs(POINTS), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        ours(POINTS.reshape(2, -1, 2)), np.asarray(ours(POINTS)).reshape(2, -1, *ours.values.shape[2:])
    )


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_nan_is_no_place(method):
    ours = RegularGridInterpolator(GRID, VALUES["plain"], method, fill_value=None)
    assert np.isnan(ours(np.array([[np.nan, 0.0], [0.0, np.nan]]))).all()


def test_forms_of_points():
    ours = RegularGridInterpolator(GRID, VALUES["plain"])
    x, y = POINTS[:5].T
    pairs = ours(POINTS[:5])
    np.testing.assert_array_equal(ours((x, y)), pairs)
    np.testing.assert_array_equal(jax.jit(ours)(POINTS[:5]), pairs)
    np.testing.assert_array_equal(jax.vmap(ours)(POINTS[:5])[:, 0], pairs)
    assert ours((x[:, None], y)).shape == (5, 5) and ours(POINTS[0]).shape == (1,)
    line = RegularGridInterpolator(GRID[:1], VALUES["plain"][:, 0])
    np.testing.assert_array_equal(line(x), line(x[:, None]))
    assert line((0.5,)).shape == () and line(0.5).shape == (1,)
    np.testing.assert_array_equal(jax.jit(lambda own, x: own(x))(ours, POINTS[:5]), pairs)
    assert len(jax.tree.leaves(ours)) == 4


def test_three_axes_and_derivatives():
    grid, values = (*GRID, GRID[0]), RNG.normal(size=(3, 4, 3))
    ours = RegularGridInterpolator(grid, values)
    points = RNG.uniform([0, -1, 0], [2.5, 4, 2.5], (9, 3))
    np.testing.assert_allclose(ours(points), scipy.interpolate.interpn(grid, values, points), rtol=1e-4, atol=1e-5)
    with jax.enable_x64(True):
        ours, step = RegularGridInterpolator(grid, values), 1e-6
        slopes = jax.grad(lambda p: jnp.sum(ours(p)))(points)
        for axis, move in enumerate(np.eye(3) * step):
            np.testing.assert_allclose(
                slopes[:, axis], (ours(points + move) - ours(points - move)) / (2 * step), atol=1e-6
            )
        shares = jax.grad(lambda v: jnp.sum(RegularGridInterpolator(grid, v)(points)))(values)
        assert float(jnp.sum(shares)) == pytest.approx(len(points))


def test_bounds_error():
    ours = RegularGridInterpolator(GRID, VALUES["plain"], bounds_error=True)
    assert np.isfinite(ours(np.array([[0.5, 0.5]]))).all()
    with pytest.raises(ValueError, match="outside of the grid"):
        ours(np.array([[0.5, 9.0]]))
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(ours)(np.array([[0.5, 0.5]]))


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (ValueError, (GRID, VALUES["plain"], "cubic")),
        (ValueError, (GRID[:1] * 3, VALUES["plain"])),
        (ValueError, (GRID[::-1], VALUES["plain"])),
        (ValueError, ((VALUES["plain"], GRID[1]), VALUES["plain"])),
        (ValueError, (GRID, VALUES["plain"], "linear", False, 3j)),
        (TypeError, (GRID, VALUES["plain"], "linear", False, "a")),
        (TypeError, (GRID, [[1.0, 2.0]])),
    ],
)
def test_bad_input(error, arguments):
    with pytest.raises(error):
        RegularGridInterpolator(*arguments)


def test_bad_points():
    ours = RegularGridInterpolator(GRID, VALUES["plain"])
    for points in (np.ones((4, 3)), 1.0, np.ones(3)):
        with pytest.raises(ValueError, match="2 coordinates"):
            ours(points)
    with pytest.raises(ValueError, match="method must be"):
        ours(POINTS, "cubic")


def test_integers_take_the_width_of_the_floats_beside_them():
    grid, values, half = np.arange(4), np.arange(4, dtype=np.float16), np.array([[1.5]], np.float16)
    assert RegularGridInterpolator((grid,), values)(half).dtype == np.float16
    assert RegularGridInterpolator((grid.astype(np.float16),), values)(np.array([[1]])).dtype == np.float16
