"""Reductions: NaN, nothing to reduce, ties, order, folds by any function, and what errors say."""

import ml_dtypes
import numpy as np
import pytest

import catena
from catena import grad, lax, vmap
from catena.core import dtypes
from checkers import check_grads, raises

V = np.arange(3, dtype=np.float32)
NAN = np.nan


def f32(*xs):
    return np.array(xs, np.float32)


def weighted(fun):
    """The scalar whose gradient tells the columns of the derivative of ``fun`` apart."""
    return lambda x: lax.reduce_sum(lax.mul(fun(x), lax.iota("float32", x.shape[0])), (0,))


def test_reductions_of_nothing():
    empty = np.zeros((0, 2), np.float32)
    assert lax.reduce_sum(empty, (0,)).tolist() == [0, 0]
    assert lax.reduce_prod(empty, (0,)).tolist() == [1, 1]
    assert lax.reduce_max(empty, (0,)).tolist() == [-np.inf] * 2
    assert lax.reduce_min(np.zeros(0, np.int32), (0,)).item() == 2**31 - 1
    assert lax.reduce_and(np.zeros(0, bool), (0,)).item() is True
    assert lax.reduce_max(np.zeros((2, 0), bool), (1,)).tolist() == [False, False]


def test_reduction_along_no_axis():
    assert lax.reduce_max(V, ()).tolist() == V.tolist()


def test_nan_wins():
    x = f32(1, NAN, 3)
    assert np.isnan(lax.reduce_max(x, (0,)).item()) and np.isnan(lax.reduce_min(x, (0,)).item())
    assert lax.argmax(x, 0, "int32").item() == lax.argmin(x, 0, "int32").item() == 1
    assert np.isnan(np.asarray(lax.cummax(x))[1:]).all()


def test_first_index_wins():
    assert lax.argmax(f32(2, 2, 1), 0, "int32").item() == 0
    assert lax.argmin(np.array([True, False, False]), 0, "uint8").item() == 1


def test_half_precision_sums_in_single():
    x = np.ones(4096, np.float16)
    assert lax.reduce_sum(x, (0,)).item() == lax.cumsum(x)[-1].item() == 4096


def test_integers_stay_in_their_dtype():
    out = lax.reduce_sum(np.full(4, 100, np.int8), (0,))
    assert out.dtype == np.int8 and out.item() == -112
    assert lax.cumsum(np.full(2, 100, np.int8)).tolist() == [100, -56]


def test_gradient_shares_ties():
    assert grad(lambda x: lax.reduce_max(x, (0,)))(f32(1, 1, 0)).tolist() == [0.5, 0.5, 0]
    ties = f32(1, 1, 1, 0, 2)
    scaled = lambda fun: grad(lambda x: lax.reduce_sum(lax.mul(fun(x), f32(1, 2, 3, 4, 5)), (0,)))  # noqa: E731
    assert scaled(lax.cummax)(ties).tolist() == [3.75, 2.75, 3.5, 0, 5]
    assert scaled(lambda x: lax.cummax(x, reverse=True))(ties).tolist() == [0, 0, 0, 0, 15]


def test_gradient_of_products_with_zeros():
    assert grad(lambda x: lax.reduce_prod(x, (0,)))(f32(0, 2, 3)).tolist() == [6, 0, 0]
    assert grad(lambda x: lax.reduce_prod(x, (0,)))(f32(0, 0, 3)).tolist() == [0, 0, 0]
    assert grad(lambda x: lax.reduce_sum(lax.cumprod(x), (0,)))(f32(1, 0, 3, 0)).tolist() == [1, 4, 0, 0]
    hessian = catena.hessian(lambda x: lax.reduce_prod(x, (0,)))(f32(0, 0, 3))
    assert hessian.tolist() == [[0, 3, 0], [3, 0, 0], [0, 0, 0]]


def test_running_log_sum_exp_at_infinities():
    assert lax.cumlogsumexp(f32(-np.inf, -np.inf, 0)).tolist() == [-np.inf, -np.inf, 0]
    assert lax.cumlogsumexp(f32(np.inf, 1, -np.inf)).tolist() == [np.inf] * 3
    slope = grad(weighted(lax.cumlogsumexp))(f32(-np.inf, 1, 2))
    assert np.isfinite(np.asarray(slope)).all()


# ---- reduce


def test_monoids_become_reductions():
    assert "reduce_sum[axes=(0,)]" in str(catena.make_jaxpr(lambda x: lax.reduce(x, 0.0, lax.add, (0,)))(V))
    assert "reduce_max[axes=(0,)]" in str(catena.make_jaxpr(lambda x: lax.reduce(x, -np.inf, lax.max, (0,)))(V))
    assert " reduce[" in str(catena.make_jaxpr(lambda x: lax.reduce(x, 1.0, lax.add, (0,)))(V))


@pytest.mark.parametrize(
    ("init", "computation", "dtype", "primitive"),
    [
        (np.float32(-np.inf), lax.max, "float32", "reduce_max"),
        (np.array(np.inf, np.float32), lax.min, "float32", "reduce_min"),
        (-(2**31), lax.max, "int32", "reduce_max"),
        (np.int32(-(2**31)), lax.max, "int32", "reduce_max"),
        (catena.numpy.float32(0), lax.add, "float32", "reduce_sum"),
        (catena.numpy.asarray(1.0), lax.mul, "float32", "reduce_prod"),
        (np.False_, lax.bitwise_or, "bool", "reduce_or"),
        (np.int32(-1), lax.bitwise_and, "int32", "reduce_and"),
        (np.int32(0), lax.bitwise_xor, "int32", "reduce_xor"),
        (ml_dtypes.finfo("float8_e4m3fn").min, lax.max, "float8_e4m3fn", "reduce_max"),
        (np.float32(np.nan), lax.max, "float32", "reduce"),
        (np.float32(0), lambda x, y: x + y, "float32", "reduce"),
    ],
)
def test_a_constant_identity_of_any_type_makes_a_monoid(init, computation, dtype, primitive):
    jaxpr = catena.make_jaxpr(lambda x: lax.reduce(x, init, computation, (0,)))(np.ones(3, dtype))
    assert jaxpr.eqns[-1].primitive.name == primitive
    traced = catena.make_jaxpr(lambda x, i: lax.reduce(x, i, computation, (0,)))(np.ones(3, dtype), np.ones((), dtype))
    assert traced.eqns[-1].primitive.name == "reduce"


def test_reduce_starts_from_the_initial_value():
    assert lax.reduce(V, 1.0, lax.add, (0,)).item() == 4
    assert lax.reduce(V, 0, lax.add, (0,)).item() == 3
    assert lax.reduce(np.arange(3, dtype=np.int32), np.inf, lax.min, (0,)).item() == 0
    assert lax.reduce(V[:0], 5.0, lambda x, y: lax.mul(x, y), (0,)).item() == 5


def join(x, y):
    """An associative function that is no monoid of ours: 1 + result is the product of 1 + x and 1 + y."""
    return lax.add(lax.mul(x, y), lax.add(x, y))


@pytest.mark.parametrize("transform", [lambda f: f, catena.jit])
def test_reduce_by_any_function(transform):
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4) / 10
    fold = lambda x: lax.reduce(x, 0.0, join, (0,))  # noqa: E731
    np.testing.assert_allclose(transform(fold)(x), np.prod(x + 1, axis=0) - 1, rtol=1e-6)


def test_reduce_keeps_order():
    last = lambda x, y: lax.select(lax.ge(y, 0.0), y, x)  # noqa: E731  (the last that is not negative)
    assert lax.reduce(f32(3, 1, -1, 2, -5), -1.0, last, (0,)).item() == 2


def test_reduce_of_trees():
    out = lax.reduce((V, V), (0.0, 0.0), lambda x, y: (lax.add(x[0], y[0]), join(x[1], y[1])), (0,))
    assert [x.item() for x in out] == [3, 5]
    pick = lax.reduce({"v": V, "i": lax.iota("int32", 3)}, {"v": -np.inf, "i": np.int32(-1)}, larger, (0,))
    assert (pick["v"].item(), pick["i"].item()) == (2, 2)


def larger(x, y):
    wins = lax.ge(x["v"], y["v"])
    return {"v": lax.select(wins, x["v"], y["v"]), "i": lax.select(wins, x["i"], y["i"])}


def test_reduce_is_differentiable_and_batches():
    fold = lambda x, i: lax.reduce(x, i, join, (0,))  # noqa: E731
    gx, gi = grad(fold, argnums=(0, 1))(V, 0.5)
    np.testing.assert_allclose(gx, [9, 4.5, 3], rtol=1e-6)
    assert gi.item() == 6
    assert vmap(fold)(np.stack([V, V]), f32(0, 1)).tolist() == [5, 11]
    assert vmap(fold, in_axes=(1, None))(np.stack([V, V], 1), 0.0).tolist() == [5, 5]


# ---- errors


def test_errors():
    raises(
        ValueError,
        "reduction axes (1,) contains out-of-bounds indices for float32[3].",
        lax.reduce_sum,
        V,
        (1,),
    )
    raises(ValueError, "duplicate value in 'axes' of reduction: (0, 0)", lax.reduce_sum, V, (0, 0))
    raises(TypeError, "reduce_sum does not accept dtype bool. Accepted dtypes are subtypes of number.",
           lax.reduce_sum, np.ones(2, bool), (0,))  # fmt: skip
    raises(ValueError, "axis 1 is out of bounds for array of shape (3,)", lax.cumsum, V, 1)
    raises(ValueError, "cumsum: axis must not be negative, got -1", lax.cumsum, V, -1)
    raises(ValueError, "Invalid axis 1 for operand shape (3,)", lax.argmax, V, 1, int)
    raises(TypeError, "index_dtype must be an integer type, but got float32", lax.argmax, V, 0, float)
    raises(ValueError, "argmin and argmax require non-empty reduced dimension. operand.shape=(0,) axis=0",
           lax.argmax, V[:0], 0, int)  # fmt: skip


def test_errors_of_reduce():
    raises(ValueError, "reduce found non-scalar initial value: [(3,)]", lax.reduce, V, V, lax.add, (0,))
    raises(ValueError, "Operands must have the same tree structure as init_values: ",
           lax.reduce, [V, V], [0.0], lax.add, (0,))  # fmt: skip
    raises(TypeError, "reduce: computation must return what it is given, float32[], got ('float32[]', "
    "'float32[]')",
           lax.reduce, V, 0.0, lambda x, y: (x, y), (0,))  # fmt: skip
    raises(TypeError, "reduce: initial value has dtype int32, but its operand has dtype float32",
           lax.reduce, V, np.int32(0), lax.add, (0,))  # fmt: skip
    with pytest.raises(ValueError, match="computation must not close over traced values, but it reads float32"):
        catena.jit(lambda c: lax.reduce(V, 0.0, lambda x, y: lax.mul(lax.add(x, y), c), (0,)))(2.0)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if dtypes.KIND[d] in "biufc"], ids=str)
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_extremes_of_nothing(name, dtype):
    """The least or greatest number there is, eager and compiled, also where there are no infinities."""
    with catena.enable_x64(True):
        extreme = lambda x: getattr(lax, name)(x, (0,))
        x = catena.numpy.zeros((0, 2), dtype)
        results = np.asarray(extreme(x)), np.asarray(catena.jit(extreme)(x))
    for result in results:
        assert result.shape == (2,) and result.dtype == dtype
        wide = result.astype(complex if dtype.kind == "c" else float)
        assert not np.isnan(wide).any()
        if dtypes.KIND[dtype] in "iu":
            info = ml_dtypes.iinfo(dtype)
            assert wide.tolist() == [float(info.min if name == "reduce_max" else info.max)] * 2
    np.testing.assert_array_equal(*[r.astype(results[0].dtype) for r in results])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int8"])
@pytest.mark.parametrize("shape, axes", [((3, 0), (1,)), ((0, 3), (0,)), ((2, 0, 3), (0, 1)), ((0,), (0,))])
def test_folds_of_nothing_by_a_function_are_what_they_begin_with(shape, axes, dtype):
    """Which is computed inside of the program here."""
    x, start = np.zeros(shape), np.arange(4)
    x, start = (catena.numpy.asarray(a).astype(dtype) for a in (x, start))

    def total(x, start):
        return lax.reduce(x, start[1] * start[2] + start[3], lambda a, b: a * b + a + b, axes)

    expected = np.full([n for d, n in enumerate(shape) if d not in axes], 5)
    for fun in (total, catena.jit(total)):
        np.testing.assert_array_equal(np.asarray(fun(x, start)).astype(complex), expected)


@pytest.mark.parametrize("shape, axes", [((702, 168), (0,)), ((90, 400, 3), (0, 1)), ((2, 3001, 5), (1,))])
def test_errors_of_sums_of_many_rows_stay_small(shape, axes):
    x = np.random.default_rng(0).random(shape, np.float32)
    exact = x.astype(np.float64).sum(axes)
    for f in (lambda x: lax.reduce_sum(x, axes), catena.jit(lambda x: lax.reduce_sum(x, axes))):
        assert np.max(np.abs(np.asarray(f(x)) - exact)) <= 6 * 2.0**-24 * np.max(exact)


def test_running_logarithms_of_complex_sums():
    x = np.random.default_rng(0).normal(size=(3, 5)) + 1j * np.random.default_rng(1).normal(size=(3, 5))
    x[0, 0] = complex(-np.inf, 0)
    with catena.enable_x64(True):
        for reverse in (False, True):
            compiled = catena.jit(lambda x, r=reverse: lax.cumlogsumexp(x, 1, reverse=r))(x)
            np.testing.assert_allclose(compiled, lax.cumlogsumexp(x, 1, reverse=reverse), rtol=1e-13)
        expected = np.cumsum(np.exp(x[1:]), 1)
        np.testing.assert_allclose(np.exp(lax.cumlogsumexp(x[1:], 1)), expected, rtol=1e-12)
        check_grads(lambda x: lax.cumlogsumexp(x, 1), (x[1:],), order=2)


def test_initial_values_that_the_dtype_lacks():
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    for value in (1.5, np.nan, 300, 1j):
        with pytest.raises(TypeError, match="no value of the operand's dtype int8"):
            lax.reduce(x, value, lax.min, (0,))
        with pytest.raises(TypeError, match="no value of the operand's dtype int8"):
            lax.reduce_window(x, value, lax.min, (1, 2))
    assert lax.reduce_window(x, np.inf, lax.min, (1, 2)).tolist() == [[0, 1], [3, 4]]


def test_windows_of_complex_numbers_by_order():
    """By real, then imaginary parts; compiled as by NumPy."""
    x = np.array([[1 + 2j, 1 - 3j, 0.5 + 1j], [-1 + 1j, 2 + 2j, 2 - 2j]], np.complex64)
    for fun, start, expected in ((lax.max, -np.inf, [[1 + 2j, 1 - 3j], [2 + 2j, 2 + 2j]]), (lax.min, np.inf, None)):
        fold = lambda x, f=fun, s=start: lax.reduce_window(x, np.complex64(s), f, (1, 2))  # noqa: E731
        np.testing.assert_array_equal(catena.jit(fold)(x), fold(x))
        if expected is not None:
            np.testing.assert_array_equal(fold(x), expected)


def test_sums_are_bound_as_in_jax():
    """JAX's equations say how a sum's result is split: traces of users are told, and rules may hand it on."""
    mesh = catena.make_mesh((2,), ("i",), axis_types=(catena.sharding.AxisType.Explicit,))
    with catena.set_mesh(mesh):
        rows = lax.reduce_sum_p.bind(catena.numpy.ones((4, 2)), axes=(1,), out_sharding=catena.P("i"))
        assert catena.typeof(rows).sharding.spec == catena.P("i")
    np.testing.assert_array_equal(
        lax.reduce_sum_p.bind(catena.numpy.ones((4, 2)), axes=(1,), out_sharding=None), [2] * 4
    )
    jaxpr = catena.make_jaxpr(lambda x: lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None))(catena.numpy.ones(3))
    assert [eqn.params for eqn in jaxpr.eqns] == [{"axes": (0,), "out_sharding": None}]


@pytest.mark.parametrize("reverse", [False, True])
def test_running_extremes_of_complex_numbers_are_among_them(reverse):
    """The last of those that are equal, zeros with their signs: a compiled tree once added zeros to what it joined."""
    x = np.array([complex(-0.0, -0.0), complex(0.0, -0.0), complex(-0.0, 0.0), complex(0.0, -0.0)], np.complex64)
    for fun in (lax.cummax, lax.cummin):
        for run in (fun, catena.jit(fun, static_argnames="reverse")):
            got = np.asarray(run(x, reverse=reverse))
            assert got.tobytes() == x.tobytes()
    y = np.array([complex(1, -0.0), complex(-0.0, 5), complex(NAN, 1), 7], np.complex64)
    got = [np.asarray(f(y)) for f in (lax.cummax, catena.jit(lax.cummax))]
    assert got[0].tobytes() == got[1].tobytes() and got[0][:2].tobytes() == y[[0, 0]].tobytes() and np.isnan(got[0][3])
