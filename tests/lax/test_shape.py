"""Operations on shapes: views, edges, what errors say, and the printed form."""

import itertools

import numpy as np
import pytest

import catena
from catena import grad, lax, random, vmap
from checkers import raises

V = np.arange(3, dtype=np.float32)
A = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_nothing_to_do_gives_the_operand():
    x = lax.full((2, 3), 1.0)
    assert lax.reshape(x, (2, 3)) is x
    assert lax.transpose(x, (0, 1)) is x
    assert lax.squeeze(x, ()) is x
    assert lax.concatenate([x], 0) is x
    assert lax.broadcast_in_dim(x, (2, 3), (0, 1)) is x


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: lax.transpose(x, (1, 0)),
        lambda x: lax.slice(x, (0, 1), (2, 3)),
        lambda x: lax.rev(x, (0,)),
        lambda x: lax.broadcast(x, (5,)),
        lambda x: lax.reshape(x, (6,)),
        lambda x: lax.split(x, (1, 1))[0],
        lambda x: lax.unstack(x)[0],
    ],
)
def test_views_copy_nothing(fun):
    x = lax.add(A, A)
    assert np.shares_memory(np.asarray(fun(x)), np.asarray(x))


def test_broadcasting():
    assert lax.broadcast(V, (2,)).tolist() == [[0, 1, 2]] * 2
    assert lax.broadcast_to_rank(V, 3).shape == (1, 1, 3) and lax.broadcast_to_rank(A, 1).shape == (2, 3)
    assert lax.broadcast_like(V, A).shape == lax.broadcast_like(np.float32(1), A).shape == (2, 3)
    assert lax.broadcast_shapes((2, 1), (3,)) == (2, 3) and lax.broadcast_shapes((0, 1), (1, 3)) == (0, 3)
    assert lax.expand_dims(V, (0, 2)).shape == (1, 3, 1)


def test_filled_arrays():
    assert lax.full((2,), 300, "uint8").tolist() == [44, 44]
    assert lax.full(3, 1).weak_type and not lax.full((2,), 1.5, int).weak_type
    assert lax.full_like(1, 2.5).item() == 2 and lax.full_like(1, 2.5).weak_type
    assert lax.full_like(A, 2, shape=(1,)).tolist() == [2]
    assert lax.empty((2, 0), "int8").shape == (2, 0)
    assert lax.iota("uint8", 300).tolist() == [i % 256 for i in range(300)]
    assert lax.iota("complex64", 2).tolist() == [0, 1]


def test_collapse():
    x = np.ones((2, 3, 4), np.float32)
    assert lax.collapse(x, 1).shape == (2, 12) and lax.collapse(x, 0, 2).shape == (6, 4)
    assert lax.collapse(x, -2, None).shape == (2, 12) and lax.collapse(x, 1, 1).shape == (2, 1, 3, 4)


def test_slices():
    assert lax.slice_in_dim(A, None, None, 2, -1).tolist() == [[0, 2], [3, 5]]
    assert lax.slice_in_dim(A, -2, -1, axis=1).shape == (2, 1)
    assert lax.slice(V, (1,), (1,)).shape == (0,)


def test_padding_that_cuts_off():
    assert lax.pad(V, 0.0, ((-1, -1, 0),)).tolist() == [1]
    assert lax.pad(V, 0.0, ((-1, -1, 1),)).tolist() == [0, 1, 0]
    assert lax.pad(V[:0], 7.0, ((1, 1, 3),)).tolist() == [7, 7]
    assert lax.pad(V, 0.0, ((-3, 5, 0),)).tolist() == [0] * 5


@pytest.mark.share(10)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "bool", "complex64"])
@pytest.mark.parametrize("config", [(2, 3, 0), (0, 0, 1), (3, 1, 1), (-2, 1, 1), (1, -3, 2), (-4, -5, 3)])
@pytest.mark.parametrize("shape", [(290, 300), (70000,), (4, 5, 4000), (300, 1, 300)])
def test_padding_of_large_arrays(shape, config, dtype):
    """These are written without filling them first, and in pairs where single gaps are between elements."""
    x = (np.arange(np.prod(shape)) % 7 - 3).reshape(shape)
    configs = [(1, 0, 0)] * (len(shape) - 1) + [config]
    compiled = catena.jit(lambda x, v: lax.pad(x, v, configs))
    for value in (0, 1.5):
        value, operand = catena.numpy.asarray(value).astype(dtype), catena.numpy.asarray(x).astype(dtype)
        out = np.asarray(lax.pad(operand, value, configs))
        expected = np.asarray(compiled(operand, value))
        assert out.dtype == expected.dtype
        np.testing.assert_array_equal(out, expected)


def test_gradient_of_the_padding_value():
    fun = lambda v: lax.reduce_sum(lax.pad(V, v, ((1, 2, 1),)), (0,))  # noqa: E731
    assert grad(fun)(1.0).item() == 5


def test_batched_padding_value():
    out = vmap(lambda v: lax.pad(V, v, ((1, 0, 0),)))(np.float32([7, 8]))
    assert out.tolist() == [[7, 0, 1, 2], [8, 0, 1, 2]]


def test_unused_parts_have_zero_cotangents():
    assert grad(lambda x: lax.reduce_sum(lax.split(x, (1, 2))[0], (0,)))(V).tolist() == [1, 0, 0]
    assert grad(lambda x: lax.unstack(x)[2])(V).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "fun, line",
    [
        (lambda x: lax.broadcast(x, (4,)), "broadcast_in_dim[broadcast_dimensions=(1, 2)]"),
        (lambda x: lax.rev(x, (0,)), "rev[dimensions=(0,)]"),
        (
            lambda x: lax.slice(x, (0, 0), (1, 1)),
            "slice[limit_indices=(1, 1) start_indices=(0, 0) strides=None]",
        ),
        (lambda x: lax.split(x, (1, 1)), "split[axis=0 sizes=(1, 1)]"),
        (lambda x: lax.tile(x, (2, 2)), "tile[reps=(2, 2)]"),
        (lambda x: lax.stack([x, x]), "stack[axis=0]"),
        (lambda x: lax.transpose(x, (1, 0)), "transpose[permutation=(1, 0)]"),
        (lambda x: lax.concatenate([x, x], 0), "concatenate[dimension=0]"),
        (lambda x: lax.pad(x, 0.0, ((1, 1, 1), (0, 0, 0))), "pad[padding_config=((1, 1, 1), (0, 0, 0))]"),
        (lambda x: lax.squeeze(lax.expand_dims(x, (0,)), (0,)), "squeeze[dimensions=(0,)]"),
        (lambda x: lax.integer_pow(x, 2), "integer_pow[y=2]"),
        (lambda x: lax.round(x), "round[rounding_method=0]"),
        (lambda x: lax.argmax(x, 0, "int32"), "argmax[axes=(0,) index_dtype=int32]"),
        (lambda x: lax.cumsum(x), "cumsum[axis=0 reverse=False]"),
        (
            lambda x: lax.convert_element_type(x, "int8"),
            "convert_element_type[new_dtype=int8 weak_type=False]",
        ),
    ],
)
def test_printed_form(fun, line):
    text = " ".join(str(catena.make_jaxpr(fun)(A)).split())
    assert f"= {line} " in text, text


def test_errors_of_broadcasting():
    raises(TypeError, "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their "
    "corresponding "
           "dimensions in the target broadcast shape; got operand of shape (3,), target broadcast shape "
           "(2, 3), "
           "broadcast_dimensions (0,)", lax.broadcast_in_dim, V, (2, 3), (0,))  # fmt: skip
    raises(TypeError, "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; "
           "got broadcast_dimensions () for operand ndim 1.",
           lax.broadcast_in_dim, V, (2, 3), ())  # fmt: skip
    raises(TypeError, "broadcast_in_dim shape must have every element be nonnegative, got (-1, 2, 3).",
           lax.broadcast, A, (-1,))  # fmt: skip
    raises(
        ValueError,
        "Incompatible shapes for broadcasting: shapes=[(2,), (3,)]",
        lax.broadcast_shapes,
        (2,),
        (3,),
    )
    raises(ValueError, "repeated axis in lax.expand_dims: (0, 0)", lax.expand_dims, V, (0, 0))
    raises(ValueError, "expand_dims: axis 3 is out of bounds for array of dimension 2", lax.expand_dims, V, (3,))
    raises(TypeError, "full must be called with scalar fill_value, got fill_value.shape (3,).", lax.full, (2,), V)
    raises(
        TypeError,
        "full: Shapes must be 1D sequences of concrete values of integer type, got (2.0,).",
        lax.full,
        (2.0,),
        1,
    )
    raises(
        TypeError,
        "full: out_sharding must be a NamedSharding or a PartitionSpec, got 5",
        lambda: lax.full((2,), 1, sharding=5),
    )
    raises(TypeError, "iota does not accept dtype bool. Accepted dtypes are subtypes of integer, floating, "
           "complexfloating.", lax.iota, "bool", 2)  # fmt: skip
    raises(ValueError, "iota dimension must be between 0 and len(shape), got dimension=2 for shape=(2, 3)",
           lax.broadcasted_iota, int, (2, 3), 2)  # fmt: skip


def test_errors_of_reshaping():
    raises(
        TypeError,
        "cannot reshape array of shape (2, 3) (size 6) into shape (4, 2) (size 8)",
        lax.reshape,
        A,
        (4, 2),
    )
    raises(TypeError, "reshape new_sizes must all be positive, got (3, -1).", lax.reshape, A, (3, -1))
    raises(TypeError, "reshape dimensions must be a permutation of operand dimensions, got dimensions (1, "
    "1) for shape "
           "(2, 3).", lax.reshape, A, (3, 2), (1, 1))  # fmt: skip
    raises(ValueError, "Invalid dimension range passed to collapse: (2, 3)[1:0]", lax.collapse, A, 1, 0)
    raises(ValueError, "cannot select an axis to squeeze out which has size not equal to one, got "
    "shape=(2, 3) and "
           "dimensions=(1,)", lax.squeeze, A, (1,))  # fmt: skip
    raises(TypeError, "transpose permutation isn't a permutation of operand dimensions, got permutation "
    "(0, 0) for "
           "operand shape (2, 3).", lax.transpose, A, (0, 0))  # fmt: skip
    raises(TypeError, "rev dimensions must all be less than operand ndim, got dimensions (1,) for operand "
    "ndim 1.",
           lax.rev, V, (1,))  # fmt: skip


def test_errors_of_slicing():
    raises(TypeError, "slice limit_indices must be less than or equal to operand shape, got limit_indices "
    "(9,) for "
           "operand shape (3,).", lax.slice, V, (2,), (9,))  # fmt: skip
    raises(TypeError, "slice limit_indices must be greater than or equal to start_indices, got "
    "start_indices (2,) and "
           "limit_indices (1,).", lax.slice, V, (2,), (1,))  # fmt: skip
    raises(TypeError, "slice start_indices must be greater than or equal to zero, got start_indices of "
    "(-1,).",
           lax.slice, V, (-1,), (1,))  # fmt: skip
    raises(TypeError, "slice strides must be positive, got (0,)", lax.slice, V, (0,), (1,), (0,))
    raises(TypeError, "pad operand and padding_value must be same dtype: got float32 and int32.",
           lax.pad, V, 0, ((0, 0, 0),))  # fmt: skip
    raises(ValueError, "Dimension size after padding is not at least 0, got result shape (-1,), for "
    "padding_config "
           "((-2, -2, 0),) and operand shape (3,)", lax.pad, V, 0.0, ((-2, -2, 0),))  # fmt: skip
    raises(ValueError, "interior padding in padding_config must be nonnegative, got padding_config ((0, "
    "0, -1),)",
           lax.pad, V, 0.0, ((0, 0, -1),))  # fmt: skip
    raises(ValueError, "padding_config must have three integers for each axis, (before, after, between), "
    "got ((0, 0),)",
           lax.pad, V, 0.0, ((0, 0),))  # fmt: skip


def test_errors_of_joining():
    raises(ValueError, "concatenate requires a non-empty sequences of arrays", lax.concatenate, [], 0)
    raises(TypeError, "Cannot concatenate arrays with different numbers of dimensions: got (3,), (2, 3).",
           lax.concatenate, [V, A], 0)  # fmt: skip
    raises(TypeError, "Cannot concatenate arrays with shapes that differ in dimensions other than the one "
    "being "
           "concatenated: concatenating along dimension 1 for shapes (2, 3), (1, 3).",
           lax.concatenate, [A, A[:1]], 1)  # fmt: skip
    raises(TypeError, "concatenate dimension out of bounds: dimension 2 for shapes (2, 3), (2, 3).",
           lax.concatenate, [A, A], 2)  # fmt: skip
    raises(
        ValueError,
        "Sum of sizes 2 must be equal to dimension 0 of the operand shape [3]",
        lax.split,
        V,
        (1, 1),
    )
    raises(ValueError, "Sizes passed to split must be nonnegative, got [-1, 4]", lax.split, V, (-1, 4))
    raises(
        ValueError,
        "Cannot stack arrays with different numbers of dimensions: got (3,), (2, 3).",
        lax.stack,
        [V, A],
    )
    raises(ValueError, "stack requires a non-empty sequence of arrays", lax.stack, [])
    raises(ValueError, "unstack: axis 2 is out of bounds for array of dimension 2", lax.unstack, A, 2)
    raises(
        TypeError,
        "reps length must be equal to the ndim of x, got len(reps)=2 and x.ndim=1.",
        lax.tile,
        V,
        (2, 2),
    )
    raises(TypeError, "tile reps must have every element be nonnegative, got (-1,).", lax.tile, V, (-1,))


def test_keys_move_like_other_elements():
    keys = random.split(random.key(0), 6)
    table = lax.transpose(lax.reshape(keys, (2, 3)), (1, 0))
    assert table.shape == (3, 2) and table.dtype == keys.dtype
    again = lax.reshape(lax.transpose(table, (1, 0)), (6,))
    assert np.asarray(lax.eq(again, keys)).all() and not np.asarray(lax.eq(lax.rev(keys, (0,)), keys)).any()
    halves = lax.concatenate(lax.split(keys, (2, 4)), 0)
    chosen = lax.select_n(np.array([True, False] * 3), halves, lax.broadcast(lax.unstack(keys)[0], (6,)))
    assert np.asarray(lax.ne(chosen, keys)).tolist() == [False, False, True, False, True, False]


@pytest.mark.parametrize(
    "shape, target, dims", [((2, 3), (3, 2), (1, 0)), ((3, 1), (2, 4, 3), (2, 1)), ((2, 3), (3, 4, 2), (2, 0))]
)
def test_broadcast_dimensions_in_another_order_transpose(shape, target, dims):
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    order = np.argsort(dims)
    sizes = [1] * len(target)
    for d, n in zip(dims, shape, strict=True):
        sizes[d] = n
    expected = np.broadcast_to(x.transpose(order).reshape(sizes), target)
    for function in (catena.lax.broadcast_in_dim, catena.jit(catena.lax.broadcast_in_dim, static_argnums=(1, 2))):
        np.testing.assert_array_equal(function(x, target, dims), expected)
    gradient = catena.grad(lambda x: (catena.lax.broadcast_in_dim(x, target, dims) * expected).sum())(x)
    np.testing.assert_array_equal(gradient, x * np.prod(target) / np.prod(shape))


def test_shapes_of_any_ranks_broadcast_as_numpy_says():
    some = [(), (1,), (3,), (0,), (2, 3), (1, 3), (2, 1), (4, 1, 3), (4, 2, 3), (0, 1)]
    for shapes in itertools.product(some, repeat=3):
        try:
            want = np.broadcast_shapes(*shapes)
        except ValueError:
            with pytest.raises(ValueError, match="Incompatible shapes"):
                lax.broadcast_shapes(*shapes)
        else:
            assert lax.broadcast_shapes(*shapes) == want
