"""Eager operations on large arrays are compiled, some when they come again: their values must not tell."""

import numpy as np
import pytest

import catena
from catena import lax
from catena.lax import native, policy

N = 264
CALLS = {
    "dot": lambda x: lax.dot(x, x),
    "dot bfloat16": lambda x: lax.dot(x.astype("bfloat16"), x.astype("bfloat16")),
    "dot int32": lambda x: lax.dot((x * 9).astype("int32"), (x * 9).astype("int32")),
    "batch": lambda x: lax.batch_matmul(x.reshape(-1, 8, 8), x.reshape(-1, 8, 8)),
    "convolution": lambda x: lax.conv(x[None, None], x[None, None, :3, :3], (1, 1), "SAME"),
    "complex": lambda x: lax.complex(x, x),
    "sum": lambda x: lax.reduce_sum(x, (1,)),
    "prod": lambda x: lax.reduce_prod(x, (0,)),
    "max": lambda x: lax.reduce_max(x.astype("bfloat16"), (1,)),
    "min": lambda x: lax.reduce_min(x, (0, 1)),
    "and": lambda x: lax.reduce_and((x * 9).astype("int32"), (0,)),
    "argmax": lambda x: lax.argmax(x, 0, np.int32),
    "argmin, last axis": lambda x: lax.argmin(x, 1, np.int32),
    "fold": lambda x: lax.reduce(x * 0.01, np.float32(0), lambda a, b: a * b + a + b, (1,)),
    "fold, first axis": lambda x: lax.reduce(x * 0.01, np.float32(0), lambda a, b: a * b + a + b, (0,)),
    "windows": lambda x: lax.reduce_window(x, np.float32(0), lax.add, (3, 3), (2, 2), "SAME"),
    "windows of bfloat16": lambda x: lax.reduce_window(
        x.astype("bfloat16"), catena.numpy.zeros((), "bfloat16"), lax.max, (3, 2), (2, 2), ((1, 2), (0, 3))
    ),
    "windows of int8": lambda x: lax.reduce_window((x * 9).astype("int8"), np.int8(0), lax.add, (2, 2), (1, 2), "SAME"),
    "windows by a function": lambda x: lax.reduce_window(
        x, np.float32(0), lambda a, b: a * b + a + b, (3, 3), (2, 2), "SAME"
    ),
    "cumsum": lambda x: lax.cumsum(x, 1),
    "iota": lambda x: lax.iota(np.int16, x.size + 10),
    "reshape, transposed": lambda x: lax.reshape(x.reshape(8, -1, 8), (x.size,), (2, 0, 1)),
    "reshape, bfloat16": lambda x: lax.reshape(x.astype("bfloat16"), (x.size,), (1, 0)),
    "cholesky": lambda x: lax.linalg.cholesky(blocks(x, 20)),
    "lu": lambda x: lax.linalg.lu(blocks(x, 20))[::2],
    "triangular_solve": lambda x: lax.linalg.triangular_solve(blocks(x, 20), blocks(x, 0), left_side=True, lower=True),
    "symmetric_product": lambda x: lax.linalg.symmetric_product(x, x),
}


def blocks(x, diagonal: float):
    """Matrices of 8 rows with something on their diagonals."""
    return x.reshape(-1, 8, 8) + diagonal * np.eye(8, dtype=np.float32)


@pytest.mark.parametrize("name", CALLS)
def test_every_call_gives_the_same_bits(name):
    x = catena.numpy.asarray(np.random.default_rng(0).uniform(0.5, 1.0, (N, N)).astype(np.float32))
    results = [catena.tree.leaves(CALLS[name](x)) for _ in range(policy.REPEATS + 2)]
    for again in results[1:]:
        for first, leaf in zip(results[0], again, strict=True):
            assert (leaf.shape, leaf.dtype, leaf.weak_type) == (first.shape, first.dtype, first.weak_type)
            assert np.asarray(leaf).tobytes() == np.asarray(first).tobytes()


ELEMENTWISE = {
    "exp": lax.exp,
    "complex": lambda x: lax.mul(lax.complex(x, x), lax.complex(x, -x)),
    "scalar": lambda x: lax.rem(x, np.float32(0.3)),
    "broadcast": lambda x: lax.nextafter(x.reshape(-1, 5), x[:5][None]),
    "strided": lambda x: lax.tanh(lax.rev(x, (0,))),
    "select": lambda x: lax.select(x > 0.7, x, -x),
    "parameter": lambda x: lax.reduce_precision(x, 5, 4),
    "sum": lambda x: lax.sub(x, np.float32(0.75)),
    "columns": lambda x: lax.mul(x.reshape(5, -1), x[:5, None]),
    "to bool": lambda x: lax.convert_element_type(x - 0.75, bool),
    "to complex": lambda x: lax.convert_element_type(x, "complex64"),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("size", [policy.LARGE + 9, policy.PIECE, policy.PIECE + 1, 3 * policy.PIECE - 8])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_operations_are_the_same_in_pieces_and_whole(name, size):
    size -= size % 5
    x = catena.numpy.asarray(np.random.default_rng(0).uniform(0.5, 1.0, size).astype(np.float32))
    first, *others = [np.asarray(ELEMENTWISE[name](x)) for _ in range(policy.REPEATS + 2)]
    for again in others:
        assert (again.shape, again.dtype) == (first.shape, first.dtype)
        np.testing.assert_array_equal(again, first)


JOINS = {
    "columns": lambda x: lax.concatenate([x, x + 1], 1),
    "rows": lambda x: lax.concatenate([x[:100], x, x[100:]], 0),
    "stack": lambda x: lax.stack([x, -x, x], 1),
    "interleaved": lambda x: lax.stack([x, -x], 2),
    "bfloat16": lambda x: lax.concatenate([x.astype("bfloat16")] * 4, 0),
    "complex": lambda x: lax.concatenate([lax.complex(x, -x)] * 2, 1),
    "bools": lambda x: lax.concatenate([x > 0.7, x > 0.8], 0),
    "transposed": lambda x: lax.concatenate([x.T, x.T], 0),
    "many": lambda x: lax.concatenate([x] * 20, 1),
}


@pytest.mark.parametrize("name", JOINS)
def test_large_arrays_are_joined_alike_by_numpy_and_compiled(name):
    x = catena.numpy.asarray(np.random.default_rng(0).uniform(0.5, 1.0, (640, 600)).astype(np.float32))
    results = [JOINS[name](x) for _ in range(policy.REPEATS + 2)]
    for again in results[1:]:
        assert (again.shape, again.dtype) == (results[0].shape, results[0].dtype)
        np.testing.assert_array_equal(np.asarray(again), np.asarray(results[0]))


def test_what_is_repeated_is_counted_by_types():
    key = ("an operation", ((3,), "float32"))
    assert [native._is_repeated(key) for _ in range(policy.REPEATS + 2)] == [False] * policy.REPEATS + [True] * 2


@pytest.mark.share(2)
@pytest.mark.parametrize("other", ["bool", "int8", "uint32", "float32", "float64", "float8_e5m2"])
@pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
def test_narrow_floats_are_converted_alike_by_numpy_and_loops(narrow, other):
    few, many = policy.CONVERTED_HALVES - 1, 2 * policy.CONVERTED
    with catena.enable_x64(True):
        patterns = np.arange(0, 1 << 16, (1 << 16) // many, dtype=np.uint16)
        floats = catena.numpy.asarray(patterns.view(catena.numpy.dtype(narrow)))
        bits = np.random.default_rng(0).integers(0, 1 << 32, many, np.uint32)
        others = catena.numpy.asarray(np.ldexp(1.0 + bits / 2**32, (bits % 60).astype("int") - 30)).astype(other)
        for x, dtype in ((floats, other), (others, narrow)):
            for convert in (lambda x, d: x.astype(d), lambda x, d: lax.convert_element_type(x, d)):
                parts = [convert(x[k : k + few], dtype) for k in range(0, many, few)]
                with np.errstate(invalid="ignore"):  # NaNs of all kinds
                    got, expected = np.float64(convert(x, dtype)), np.float64(np.concatenate(parts))
                np.testing.assert_array_equal(got, expected)
