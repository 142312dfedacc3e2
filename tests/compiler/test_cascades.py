"""Long sums lose a few units in the last place, not as many as they have terms."""

import numpy as np
import pytest

from compiled import run

F32 = np.float32
SHAPES = {  # shape, axes that are summed
    "all": ((1_000_000,), (0,)),
    "rows": ((3, 300_000), (1,)),
    "columns": ((300_000, 3), (0,)),
    "many short rows": ((40_000, 5, 7), (0, 2)),
    "ragged": ((100_003,), (0,)),
}


def units(got, expected):
    """The greatest difference in units in the last place of float32."""
    return np.max(np.abs(np.float64(got) - expected) / np.spacing(np.abs(expected).astype(F32)))


@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("value", [1.1, 0.7, 2.3])
def test_sums_of_equal_numbers(case, value):
    """The worst for sums one by one: each rounding errs to the same side."""
    shape, axes = SHAPES[case]
    x = np.full(shape, value, F32)
    assert units(run(lambda b, x: b.reduce("sum", x, axes), x), x.astype(np.float64).sum(axes)) < 16


def test_scalar_products():
    x = np.full(500_000, 1.1, F32)
    got = run(lambda b, x: b.dot_general(x, x, (((0,), (0,)), ((), ())), F32), x)
    assert units(got, np.dot(x.astype(np.float64), x)) < 16


@pytest.mark.parametrize("axis, shape", [(0, (1_000_000,)), (0, (100_000, 3)), (1, (3, 100_000))])
def test_running_sums(axis, shape):
    x = np.full(shape, 1.1, F32)
    assert units(run(lambda b, x: b.cumulative("sum", x, axis), x), np.cumsum(x.astype(np.float64), axis)) <= 1


def test_several_sums_of_one_pass():
    x = np.full((4, 200_000), 0.7, F32)

    def moments(b, x):
        return [b.reduce("sum", x, (1,)), b.reduce("sum", b.map("mul", x, x), (1,)), b.reduce("max", x, (1,))]

    total, squares, largest = run(moments, x)
    wide = x.astype(np.float64)
    assert units(total, wide.sum(1)) < 16 and units(squares, (wide * wide).sum(1)) < 32
    assert (largest == F32(0.7)).all()


@pytest.mark.parametrize("columns", [24, 32, 40, 48, 64, 88])
def test_columns_beside_others_have_the_sums_that_they_have_alone(columns):
    """Several vectors of columns are folded at once, each column by itself."""

    def several(b, x, y):
        positive = b.map("select", b.map("gt", x, b.full(x.shape, F32(0))), y, x)
        scaled = b.map("mul", b.map("sub", positive, y), b.map("mul", x, x))
        sums = [b.reduce("sum", v, (0, 1)) for v in (positive, scaled, b.map("mul", positive, scaled))]
        return b.map("add", b.map("mul", sums[0], sums[1]), b.map("sub", sums[2], b.reduce("max", scaled, (0, 1))))

    x, y = np.random.default_rng(columns).normal(size=(2, 5, 90, columns)).astype(F32)
    got = run(several, x, y)
    for first in (0, columns - 16):
        part = np.s_[..., first : first + 16]
        np.testing.assert_array_equal(got[part], run(several, x[part].copy(), y[part].copy()))
