"""Shifts of bytes, each by its own number, which are done in words: all bytes by all numbers."""

import numpy as np
import pytest

import catena as jax
from catena import lax

SHIFTS = {
    "left": (lax.shift_left, np.left_shift),
    "logical": (lax.shift_right_logical, lambda x, n: x.view(np.uint8).astype(np.int32) >> n),
    "arithmetic": (lax.shift_right_arithmetic, lambda x, n: x.view(np.int8).astype(np.int32) >> n),
}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", SHIFTS)
def test_all_bytes_by_all_numbers(name, dtype):
    ours, by_numpy = SHIFTS[name]
    x, by = (v.ravel().astype(np.uint8).view(dtype) for v in np.meshgrid(np.arange(256), np.arange(256)))
    count = by.view(np.uint8).astype(np.int32)
    wanted = by_numpy(x, np.minimum(count, 7))
    if name != "arithmetic":
        wanted = np.where(count < 8, wanted, 0)
    wanted = wanted.astype(np.uint8).view(dtype)
    np.testing.assert_array_equal(jax.jit(ours)(x, by), wanted)
    np.testing.assert_array_equal(jax.jit(ours)(x[:-5], by[:-5]), wanted[:-5])
    for n in (0, 3, 7, 8, 200):
        rows = slice(n * 256, n * 256 + 256)
        np.testing.assert_array_equal(
            jax.jit(lambda x, n=n: ours(x, dtype(np.uint8(n).view(dtype))))(x[rows]), wanted[rows]
        )
