"""Functions that rearrange arrays, against NumPy: eagerly, compiled, mapped, differentiated."""

import numpy
import pytest

import catena
import catena.numpy as jnp
from catena.errors import ConcretizationTypeError
from numpy_cases import check_gradient, check_mapped, check_values

X = numpy.arange(1, 6, dtype=numpy.float32)
M = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
C = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)
INTS = numpy.array([3, 1, 2], dtype=numpy.int32)
BOOLS = numpy.array([[True, False], [False, True]])

CASES = [
    (lambda np, x: np.moveaxis(x, 0, -1), [C]),
    (lambda np, x: np.moveaxis(x, (0, 1), (-1, 0)), [C]),
    (lambda np, x: np.rollaxis(x, 2, 1), [C]),
    (lambda np, x: np.swapaxes(x, 0, 2), [C]),
    (lambda np, x: np.transpose(x, (1, 0, 2)), [C]),
    (lambda np, x: np.expand_dims(x, (0, -1)), [M]),
    (lambda np, x: np.squeeze(x), [M[:1]]),
    (lambda np, x: np.reshape(x, (2, -1)), [M]),
    (lambda np, x: np.reshape(x, (4, 3), order="F"), [M]),
    (lambda np, x: np.ravel(x, order="F"), [M]),
    (lambda np, x: np.broadcast_to(x, (2, 3, 4)), [M]),
    (lambda np, x, y: np.broadcast_arrays(x, y), [M, X[:4]]),
    (lambda np, x: np.atleast_1d(x), [numpy.float32(3)]),
    (lambda np, x: np.atleast_2d(x), [X]),
    (lambda np, x: np.atleast_3d(x), [M]),
    (lambda np, x: np.flip(x), [M]),
    (lambda np, x: np.flip(x, (0, 2)), [C]),
    (lambda np, x: np.fliplr(x), [M]),
    (lambda np, x: np.flipud(x), [M]),
    (lambda np, x: np.rot90(x), [M]),
    (lambda np, x: np.rot90(x, 3, (1, 2)), [C]),
    (lambda np, x: np.rot90(x, -2), [M]),
    (lambda np, x, y: np.concatenate([x, y]), [X, M[0]]),
    (lambda np, x: np.concatenate([x, x], axis=-1), [M]),
    (lambda np, x: np.concatenate([x, x], axis=None), [M]),
    (lambda np, x: np.stack([x, x], axis=1), [M]),
    (lambda np, x: np.vstack([x, x]), [X]),
    (lambda np, x: np.hstack([x, x]), [M]),
    (lambda np, x: np.dstack([x, x]), [M]),
    (lambda np, x: np.column_stack([x, x]), [X]),
    (lambda np, x, y: np.block([[x, x], [x, y]]), [M, M + 1]),
    (lambda np, x: np.append(x, x), [M]),
    (lambda np, x: np.append(x, x, axis=1), [M]),
    (lambda np, x: np.split(x, 2, axis=1), [M]),
    (lambda np, x: np.split(x, [1, 3]), [X]),
    (lambda np, x: np.array_split(x, 3), [X]),
    (lambda np, x: np.hsplit(x, 2), [M]),
    (lambda np, x: np.vsplit(x, 3), [M]),
    (lambda np, x: np.dsplit(x, 2), [C]),
    (lambda np, x: np.unstack(x, axis=1), [M]),
    (lambda np, x: np.tile(x, (2, 1, 3)), [M]),
    (lambda np, x: np.tile(x, 2), [X]),
    (lambda np, x: np.repeat(x, 2), [M]),
    (lambda np, x: np.repeat(x, 3, axis=1), [M]),
    (lambda np, x: np.repeat(x, np.array([1, 0, 2]), axis=0), [M]),
    (lambda np, x: np.roll(x, 2), [M]),
    (lambda np, x: np.roll(x, (1, -2), (0, 1)), [M]),
    (lambda np, x: np.roll(x, (1, 2), 0), [M]),
    (lambda np, x: np.resize(x, (3, 5)), [X]),
    (lambda np, x: np.insert(x, 1, 9.0), [X]),
    (lambda np, x: np.insert(x, np.array([1, 3]), 9.0), [X]),
    (lambda np, x, y: np.insert(x, np.array([3, 0]), y), [X, X[:2]]),
    (lambda np, x: np.insert(x, 1, 9.0, axis=1), [M]),
    (lambda np, x: np.insert(x, slice(1, 3), 9.0), [X]),
    (lambda np, x, y: np.insert(x, -1, y, axis=0), [M, M[0]]),
    (lambda np, x: np.delete(x, 1), [X]),
    (lambda np, x: np.delete(x, np.array([0, 3])), [X]),
    (lambda np, x: np.delete(x, slice(1, None, 2), axis=1), [M]),
    (lambda np, x: np.delete(x, -1, axis=0), [M]),
    (lambda np, x: np.pad(x, 2), [X]),
    (lambda np, x: np.pad(x, ((1, 0), (0, 2)), constant_values=7), [M]),
    (lambda np, x: np.pad(x, 1, constant_values=((1, 2), (3, 4))), [M]),
    (lambda np, x: np.pad(x, ((2, 1), (1, 3)), mode="edge"), [M]),
    (lambda np, x: np.pad(x, 3, mode="linear_ramp", end_values=9), [X]),
    (lambda np, x: np.pad(x, 2, mode="maximum"), [M]),
    (lambda np, x: np.pad(x, 2, mode="minimum", stat_length=2), [M]),
    (lambda np, x: np.pad(x, 2, mode="mean"), [X]),
    (lambda np, x: np.pad(x, 2, mode="median"), [X]),
    (lambda np, x: np.pad(x, ((3, 4), (5, 6)), mode="reflect"), [M]),
    (lambda np, x: np.pad(x, 11, mode="reflect", reflect_type="odd"), [X]),
    (lambda np, x: np.pad(x, ((3, 4), (5, 6)), mode="symmetric"), [M]),
    (lambda np, x: np.pad(x, 11, mode="symmetric", reflect_type="odd"), [X]),
    (lambda np, x: np.pad(x, ((3, 4), (5, 9)), mode="wrap"), [M]),
]


@pytest.mark.parametrize("call, arrays", CASES)
def test_values(call, arrays):
    check_values(call, arrays, rtol=1e-6)


@pytest.mark.parametrize("call, arrays", CASES)
def test_mapped(call, arrays):
    if arrays[0].ndim:
        check_mapped(call, arrays)


@pytest.mark.parametrize("call, arrays", CASES)
def test_gradients(call, arrays):
    check_gradient(call, [a + 0.1 * numpy.arange(a.size).reshape(a.shape) ** 1.5 for a in arrays])


@pytest.mark.parametrize("array", [INTS, BOOLS, M.astype("float16"), M + 1j, jnp.asarray(M).astype("bfloat16")])
def test_dtypes_are_kept(array):
    array = jnp.asarray(array)
    for fun in (
        lambda x: jnp.concatenate([x, x]),
        jnp.flip,
        lambda x: jnp.roll(x, 1),
        lambda x: jnp.tile(x, 2),
        lambda x: jnp.pad(x, 1),
        lambda x: jnp.repeat(x, 2),
        lambda x: jnp.stack([x, x]),
        lambda x: jnp.split(x, 1)[0],
        lambda x: jnp.insert(x, 0, 1),
        lambda x: jnp.delete(x, 0),
    ):
        assert fun(array).dtype == array.dtype
        assert catena.jit(fun)(array).dtype == array.dtype


def test_promotion_when_joining():
    assert jnp.concatenate([jnp.arange(2), jnp.ones(2)]).dtype == numpy.float32
    assert jnp.stack([1, 2]).weak_type and not jnp.stack([jnp.float32(1), 2]).weak_type
    assert jnp.concatenate([X, INTS], dtype="int32").dtype == numpy.int32


def test_traced_shifts_and_repeats():
    for by in (0, 2, -3, 12):
        numpy.testing.assert_array_equal(catena.jit(jnp.roll)(X, by), numpy.roll(X, by))
    counts = numpy.array([1, 2, 0, 0, 1])
    repeat = catena.jit(jnp.repeat, static_argnames="total_repeat_length")
    numpy.testing.assert_array_equal(repeat(X, counts, total_repeat_length=4), numpy.repeat(X, counts))
    numpy.testing.assert_array_equal(repeat(X, counts, total_repeat_length=6), [1, 2, 2, 5, 5, 5])
    numpy.testing.assert_array_equal(repeat(X, counts, total_repeat_length=3), [1, 2, 2])
    with pytest.raises(ConcretizationTypeError, match="total_repeat_length"):
        catena.jit(jnp.repeat)(X, counts)
    numpy.testing.assert_array_equal(catena.jit(jnp.delete)(X, 3), numpy.delete(X, 3))
    where = numpy.array([4, 1])
    deleted = catena.jit(lambda x, i: jnp.delete(x, i, assume_unique_indices=True))(X, where)
    numpy.testing.assert_array_equal(deleted, numpy.delete(X, where))
    numpy.testing.assert_array_equal(catena.jit(jnp.insert)(X, where, 9.0), numpy.insert(X, where, 9.0))


def test_pad_by_a_function():
    def fill(line, width, axis, options):
        return line.at[: width[0]].set(10 + axis).at[-width[1] :].set(options["end"])

    result = jnp.pad(M, ((1, 2), (2, 1)), fill, end=20)
    assert result.shape == (6, 7)
    numpy.testing.assert_array_equal(result[0], [11, 11, 10, 10, 10, 10, 20])
    numpy.testing.assert_array_equal(result[1:4, 2:-1], M)


def test_trim_zeros():
    for trim in ("fb", "f", "b"):
        numpy.testing.assert_array_equal(
            jnp.trim_zeros(numpy.array([0, 0, 1, 2, 0]), trim),
            numpy.trim_zeros(numpy.array([0, 0, 1, 2, 0]), trim),
        )
    with pytest.raises(ConcretizationTypeError, match="trim_zeros"):
        catena.jit(jnp.trim_zeros)(X)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: jnp.concatenate([X, M]), TypeError, "different numbers of dimensions: got"),
        (lambda: jnp.concatenate([]), ValueError, "Need at least one array to concatenate"),
        (lambda: jnp.concatenate([1, 2]), ValueError, "Zero-dimensional arrays cannot be concatenated"),
        (
            lambda: jnp.concatenate([X, [1, 2]]),
            TypeError,
            "requires ndarray or scalar arguments, got <class 'list'>",
        ),
        (
            lambda: jnp.concatenate([M, M], axis=2),
            ValueError,
            "axis 2 is out of bounds for array of dimension 2",
        ),
        (lambda: jnp.stack([]), ValueError, "Need at least one array to stack"),
        (lambda: jnp.stack([X, M]), ValueError, "different numbers of dimensions"),
        (
            lambda: jnp.stack([X, X], out=X),
            NotImplementedError,
            "'out' argument to jnp.stack is not supported",
        ),
        (lambda: jnp.block((X, X)), ValueError, "does not allow tuples"),
        (lambda: jnp.block([]), ValueError, "does not allow empty list"),
        (lambda: jnp.split(X, 2), ValueError, "does not result in an equal division: rest is 1"),
        (lambda: jnp.split(X, 0), ValueError, "must be positive, got 0"),
        (lambda: jnp.reshape(jnp.asarray(X), (2, 3)), TypeError, r"cannot reshape array of shape \(5,\)"),
        (lambda: jnp.reshape(X, (2, 3)), ValueError, "cannot reshape array of size 5"),
        (lambda: jnp.moveaxis(C, (0, 1), (1,)), ValueError, "Inconsistent number of elements: 2 vs 1"),
        (lambda: jnp.rollaxis(C, 0, 5), ValueError, "start=5 must satisfy -3<=start<=3"),
        (lambda: jnp.rot90(X), ValueError, "ndim at least two"),
        (lambda: jnp.rot90(M, 1, (0, 0)), ValueError, "Axes must be different"),
        (lambda: jnp.broadcast_to(X, (4,)), ValueError, "Incompatible types for broadcasting"),
        (lambda: jnp.broadcast_arrays(X, M), ValueError, "Incompatible shapes for broadcasting"),
        (lambda: jnp.repeat(X, numpy.array([1, 2])), ValueError, "one for each of the 5 slices"),
        (lambda: jnp.repeat(X, -1), TypeError, "nonnegative"),
        (lambda: jnp.roll(M, (1, 2, 3), (0, 1)), ValueError, "shape mismatch"),
        (lambda: jnp.tile(M, -1), TypeError, "nonnegative"),
        (lambda: jnp.resize(X, -1), ValueError, "non-negative"),
        (lambda: jnp.delete(X, 7), ValueError, "axis 7 is out of bounds for array of dimension 5"),
        (lambda: jnp.pad(X, 1.5), TypeError, "must be of integral type"),
        (lambda: jnp.pad(X, -1), ValueError, "can't contain negative values"),
        (lambda: jnp.pad(M, [1, 2, 3]), ValueError, r"unsupported shape \(3,\)"),
        (lambda: jnp.pad(X, 2, mode="bad"), NotImplementedError, "Unimplemented padding mode 'bad'"),
        (lambda: jnp.pad(X, 2, mode="edge", constant_values=2), ValueError, "unsupported keyword arguments"),
        (lambda: jnp.pad(X[:0], 2, mode="edge"), ValueError, "Cannot apply 'edge' padding to empty axis"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("name", ["split", "array_split", "hsplit", "vsplit"])
def test_a_traced_index_among_those_of_split_is_named(name):
    split = getattr(jnp, name)
    assert [part.shape for part in split(M[:2, :2], [jnp.int32(1)])] == [part.shape for part in split(M[:2, :2], [1])]
    for indices in (lambda i: [i, 2], lambda i: (1, i)):
        with pytest.raises(ConcretizationTypeError, match=f"in jax.numpy.{name} argument 1"):
            catena.jit(lambda i, indices=indices: split(M, indices(i)))(1)


def test_numpy_arrays_stay_numpys_where_they_are_reshaped():
    """As in JAX; libraries read such values of constraints while a function is traced."""
    known = []

    def f():
        known.append(bool(jnp.reshape(X > 0, (1, -1)).all(-1)[0]))
        return jnp.reshape(M, (4, 3), order="F") + 1

    numpy.testing.assert_array_equal(catena.jit(f)(), M.reshape(4, 3, order="F") + 1)
    assert known == [True] and type(jnp.reshape(M, 12)) is numpy.ndarray


@pytest.mark.parametrize("indices", [[8], [2, 8], [4, 2], [-2], [2, -1]])
def test_splits_beyond_the_axis_and_backwards_are_refused(indices):
    for split in (jnp.split, jnp.array_split, jnp.hsplit, lambda x, i: jnp.vsplit(x[:, None], i)):
        with pytest.raises(ValueError, match="must be nonnegative"):
            split(jnp.arange(6), indices)
        with pytest.raises(ValueError, match="must be nonnegative"):
            catena.jit(lambda x: split(x, indices))(jnp.arange(6))
    assert [x.shape for x in jnp.split(jnp.arange(6), [3, 3, 6])] == [(3,), (0,), (3,), (0,)]
