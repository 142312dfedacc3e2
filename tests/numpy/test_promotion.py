"""What operations give: the whole measured table of promotion, by every way to combine two operands, and the rest.

The tables stand in ``promotion``; ``test_dtypes`` tests the lattice alone against them.
"""

import itertools
import math
from functools import partial

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.dtypes import TypePromotionError
from promotion import NARROW_PROMOTION, PROMOTION, PYTHON, SHORT, X32, entries

WAYS = {
    "add": jnp.add,
    "multiply": jnp.multiply,
    "operator": lambda a, b: a + b,
    "maximum": jnp.maximum,
    "where": lambda a, b: jnp.where(True, a, b),
    "stack": lambda a, b: jnp.stack([jnp.asarray(a), jnp.asarray(b)]),
    "jit": jax.jit(jnp.add),
    "inside jit": lambda a, b: jax.jit(lambda: jnp.add(a, b))(),
    "result_type": lambda a, b: np.empty((), jnp.result_type(a, b)),
}


def operand(name: str):
    return PYTHON[name] if name in PYTHON else jnp.ones((), SHORT[name])


def unfit(way: str, names) -> bool:
    """What a way does not take: orders of complex numbers are JAX's own affair, Python's ``+`` is Python's, and what
    needs arrays makes narrow weak numbers of two scalars.
    """
    return way == "operator" and all(n in PYTHON for n in names)


def check(way: str, a: str, b: str, dtype: str, weak: bool):
    result = WAYS[way](operand(a), operand(b))
    assert result.dtype == dtype
    if way != "result_type":
        assert result.weak_type is weak


@pytest.mark.share(3)
@pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"])
@pytest.mark.parametrize("way", WAYS)
def test_the_table(way, x64):
    with jax.enable_x64(x64):
        for a, b, cell in entries(PROMOTION):
            wide = {SHORT.get(n) for n in (a, b)} & X32.keys()
            if unfit(way, (a, b)) or (wide and not x64):
                continue
            dtype = SHORT[cell.rstrip("*")]
            try:
                check(way, a, b, dtype if x64 else X32.get(dtype, dtype), cell.endswith("*"))
            except AssertionError as error:
                raise AssertionError(f"{a} with {b} by {way}: {error}") from None


@pytest.mark.share(3)
@pytest.mark.parametrize("way", WAYS)
def test_the_table_of_narrow_types(way):
    with jax.enable_x64(True):
        for a, b, cell in entries(NARROW_PROMOTION):
            if unfit(way, (a, b)):
                continue
            if cell == "err":
                with pytest.raises(TypePromotionError):
                    WAYS[way](operand(a), operand(b))
            else:
                check(way, a, b, SHORT[cell.rstrip("*")], cell.endswith("*"))


def ones(dtype):
    return jnp.ones(1, dtype)


# What was measured of JAX, as expression: dtype; a star marks weak types.
MEASURED = {
    "jnp.int8(1) + 1": "int8", "jnp.int8(1) + 1.0": "float32*", "jnp.int32(1) / 2": "float32",
    "jnp.bfloat16(1) + jnp.float16(1)": "float32", "jnp.uint8(1) + jnp.int8(1)": "int16",
    "jnp.uint32(1) + jnp.int32(1)": "int32", "jnp.asarray(1) + jnp.int8(1)": "int8", "jnp.asarray(1)": "int32*",
    "jnp.array(1)": "int32*", "jnp.asarray(1.5)": "float32*", "jnp.array([1])": "int32", "jnp.full((2,), 1)": "int32*",
    "jnp.zeros_like(jnp.asarray(1))": "int32*", "jnp.asarray(1).astype('int32')": "int32", "jnp.asarray(True)": "bool",
    "jnp.asarray(1) + 1": "int32*", "jnp.sin(jnp.asarray(1))": "float32*", "jnp.sin(1)": "float32*",
    "jnp.where(True, 1, 2.0)": "float32*", "jnp.where(True, jnp.int8(1), 2.0)": "float32*",
    "jnp.stack([1, 2.0])": "float32*", "jnp.array([1, 2.0, True])": "float32", "jnp.array([1, jnp.int8(2)])": "int8",
    "jnp.concatenate([ones('int8'), ones('float16')])": "float16", "np.float64(1) + ones('bfloat16')": "float32",
    "ones('bfloat16') + np.float64(1)": "float32", "ones('bfloat16') + np.float32(1)": "float32",
    "ones('int8') + np.int64(1)": "int32", "ones('float8_e4m3fn') + 1.0": "float8_e4m3fn", "ones('int4') + 1": "int4",
    "jnp.exp(jnp.int8(1))": "float32", "jnp.exp(True)": "float32", "jnp.sqrt(jnp.uint8(4))": "float32",
    "jnp.mean(ones('int8'))": "float32", "jnp.sum(ones('int8'))": "int32", "jnp.sum(ones('uint8'))": "uint32",
    "jnp.sum(ones(bool))": "int32", "jnp.sum(ones('bfloat16'))": "bfloat16",
    "jnp.sum(ones('int8'), promote_integers=False)": "int8", "jnp.prod(ones('int16'))": "int32",
    "jnp.cumsum(ones('int8'))": "int8", "jnp.cumsum(ones(bool))": "int32", "jnp.var(ones('float16'))": "float16",
    "jnp.argmax(ones('float32'))": "int32", "jnp.dot(ones('int8'), ones('int8'))": "int8",
    "jnp.true_divide(jnp.int8(1), jnp.int8(2))": "float32", "jnp.floor(jnp.int32(3))": "int32",
    "jnp.round(jnp.int32(3))": "int32", "jnp.abs(jnp.complex64(1j))": "float32", "jnp.linspace(0, 1, 3)": "float32",
    "jnp.linspace(0, 1, 3, dtype='int32')": "int32", "jnp.bincount(jnp.array([1]))": "int32",
    "jnp.count_nonzero(ones('float32'))": "int32", "jnp.searchsorted(ones('float32'), 1.0)": "int32",
}  # fmt: skip


@pytest.mark.parametrize("expression", MEASURED)
def test_measured_examples(expression):
    result = eval(expression)
    assert result.dtype == MEASURED[expression].rstrip("*")
    assert result.weak_type is MEASURED[expression].endswith("*")
    traced = jax.eval_shape(lambda: eval(expression)) if "bincount" not in expression else result
    assert traced.dtype == result.dtype and traced.weak_type is result.weak_type


def test_default_dtypes():
    defaults = {
        "jnp.zeros(1)": "float", "jnp.empty(1)": "float", "jnp.full(1, 1)": "int*", "jnp.full(1, 1.0)": "float*",
        "jnp.full(1, True)": "bool", "jnp.arange(3)": "int", "jnp.arange(3.0)": "float",
        "jnp.arange(0, 1, 0.5)": "float", "jnp.linspace(0, 1, 2)": "float", "jnp.eye(2)": "float",
        "jnp.array(1)": "int*", "jnp.array(1.0)": "float*",
        "jnp.array(1j)": "complex*", "jnp.array(True)": "bool", "jnp.array([])": "float", "jnp.array([1, 2])": "int",
        "jnp.array(np.arange(2))": "int", "jnp.array(np.ones(2))": "float",
    }  # fmt: skip
    widths = {"int": (32, 64), "float": (32, 64), "complex": (64, 128)}
    for x64 in (False, True):
        with jax.enable_x64(x64):
            for expression, cell in defaults.items():
                result, kind = eval(expression), cell.rstrip("*")
                assert result.dtype == (kind if kind == "bool" else f"{kind}{widths[kind][x64]}"), expression
                assert result.weak_type is cell.endswith("*"), expression


# ---- what a function does with its arguments is not what the user mixes


V, M = np.array([3, 1, 2, 1]), np.array([[2, 1, 0], [1, 3, 1], [0, 1, 2]])
REDUCTIONS = "all any max mean min nanmax nanmean nanmin nanprod nanstd nansum nanvar prod std sum var".split()
ONE_DTYPE = {
    "array_equiv": lambda v, m: jnp.array_equiv(v, 1),
    "geomspace": lambda v, m: jnp.geomspace(v, v[0], 3, dtype="bfloat16"),
    "histogram2d": lambda v, m: jnp.histogram2d(v, v, bins=3, weights=v),
    "histogramdd": lambda v, m: jnp.histogramdd(m, bins=3, weights=v[:3]),
    "linspace": lambda v, m: jnp.linspace(v, v[0], 3, dtype="float16"),
    "linspace of integers": lambda v, m: jnp.linspace(v, v[0], 3, dtype="int32"),
    "logspace": lambda v, m: jnp.logspace(v, v[0], 3),
    "logspace in short": lambda v, m: jnp.logspace(v, v[0], 3, dtype="float16"),
    "nanvar": lambda v, m: jnp.nanvar(m, dtype="complex64"),
    "nanstd": lambda v, m: jnp.nanstd(m, axis=0, dtype="float16"),
    "polyint": lambda v, m: jnp.polyint(v, 2, k=v[:2]),
    "std": lambda v, m: jnp.std(m, dtype="complex64"),
    "trapezoid": lambda v, m: jnp.trapezoid(v, v),
    "trapezoid of rows": lambda v, m: jnp.trapezoid(m, v[:3]),
    "var": lambda v, m: jnp.var(m, dtype="float16"),
}


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "float32"])
@pytest.mark.parametrize("name", ONE_DTYPE)
def test_strict_promotion_is_not_violated_inside_functions(name, dtype):
    v, m = jnp.asarray(V.astype(dtype)), jnp.asarray(M.astype(dtype))
    with jax.numpy_dtype_promotion("strict"):
        strict = ONE_DTYPE[name](v, m)
    for found, expected in zip(jax.tree.leaves(strict), jax.tree.leaves(ONE_DTYPE[name](v, m)), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", "lecun_normal he_uniform glorot_normal orthogonal normal".split())
def test_strict_promotion_is_not_violated_by_complex_initializers(kind):
    init = getattr(jax.nn.initializers, kind)()
    with jax.numpy_dtype_promotion("strict"):
        assert init(jax.random.key(0), (4, 3), "complex64").dtype == "complex64"


def masked(name, v, m):
    return getattr(jnp, name)(m, where=v[:3] > 0, **({"initial": 0} if name.endswith(("max", "min")) else {}))


ONE_RANK = {
    **{name: partial(masked, name) for name in REDUCTIONS},
    "array_equiv": lambda v, m: jnp.array_equiv(m, v[:3]),
    "nan_to_num": lambda v, m: jnp.nan_to_num(m, nan=v[:3]),
    "trapezoid": lambda v, m: jnp.trapezoid(m, dx=v[:2]),
    "multivariate_normal": lambda v, m: jax.random.multivariate_normal(jax.random.key(0), v[:3], m, shape=(2,)),
}


@pytest.mark.parametrize("name", ONE_RANK)
def test_masks_are_spread_in_every_mode_of_rank_promotion(name):
    v, m = jnp.asarray(V, "float32"), jnp.asarray(M, "float32")
    with jax.numpy_rank_promotion("raise"):
        found = ONE_RANK[name](v, m)
        with pytest.raises(ValueError):
            m + v[:3]
    np.testing.assert_array_equal(found, ONE_RANK[name](v, m))


# ---- operands of two dtypes

MIXED = ["bool", "int8", "uint8", "int16", "int32", "uint32", "bfloat16", "float16", "float32", "complex64"]
PRODUCTS = {
    "dot": (jnp.dot, (3, 4), (4, 2)),
    "matmul": (jnp.matmul, (2, 3, 4), (2, 4, 2)),
    "inner": (jnp.inner, (3, 4), (2, 4)),
    "tensordot": (lambda a, b: jnp.tensordot(a, b, 1), (3, 4), (4, 2)),
    "vecdot": (jnp.vecdot, (3, 4), (3, 4)),
    "einsum": (lambda a, b: jnp.einsum("ij,jk", a, b), (3, 4), (4, 2)),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("pair", list(itertools.combinations(MIXED, 2)), ids="-".join)
def test_a_product_of_two_dtypes_converts_neither_operand_first(pair):
    """Of small integers, so that every dtype holds the products and sums."""
    for function, left, right in PRODUCTS.values():
        a = np.arange(math.prod(left)).reshape(left) % 3 % 2
        b = np.arange(math.prod(right)).reshape(right) % 5 % 2
        x, y = jnp.asarray(a, pair[0]), jnp.asarray(b, pair[1])
        names = [eqn.primitive.name for eqn in jax.make_jaxpr(function)(x, y).eqns]
        assert "dot_general" in names and "convert_element_type" not in names
        expected = function(a, b)
        result = function(x, y)
        assert result.dtype == jnp.promote_types(*pair)
        np.testing.assert_array_equal(np.asarray(result, complex), np.asarray(expected, complex))


@pytest.mark.parametrize(
    "pair", ["bfloat16 float32", "bfloat16 float16", "int8 float32", "int8 uint8", "int32 uint32", "bool complex64"]
)
def test_a_compiled_product_of_two_dtypes_is_that_of_what_both_promote_to(pair):
    """Of numbers whose products need the wider dtype."""
    left, right = pair.split()
    x, y = jnp.asarray([[100, 3], [27, 1]], left), jnp.asarray([[101, 5], [119, 2]], right)
    wide = jnp.promote_types(left, right)
    expected = np.asarray(x, complex) @ np.asarray(y, complex)
    for result in (jnp.dot(x, y), jax.jit(jnp.dot)(x, y), jax.jit(lambda x, y: jnp.einsum("ij,jk", x, y))(x, y)):
        assert result.dtype == wide
        np.testing.assert_array_equal(np.asarray(result, complex), expected)


def test_the_derivatives_of_a_product_of_two_dtypes_have_the_dtypes_of_its_operands():
    x, y = jnp.ones((2, 3), "bfloat16"), jnp.arange(6.0).reshape(3, 2)
    for transform in (lambda f: f, jax.jit):
        dx, dy = transform(jax.grad(lambda x, y: jnp.dot(x, y).sum(), (0, 1)))(x, y)
        assert (dx.dtype, dy.dtype) == (x.dtype, y.dtype)
        assert dx.tolist() == [[1, 5, 9]] * 2 and dy.tolist() == [[2, 2]] * 3
    z = jnp.full((3, 2), 1 + 2j)
    assert jax.grad(lambda x: jnp.dot(x, z).real.sum())(x).tolist() == [[2, 2, 2]] * 2


def test_a_weak_operand_of_a_product_takes_the_dtype_of_the_other():
    assert jnp.dot(jnp.ones((2, 2), "int8"), jnp.full((2, 2), 3)).dtype == "int8"
    assert jnp.dot(jnp.ones((2, 2), "bfloat16"), jnp.full((2, 2), 3.0)).dtype == "bfloat16"


@pytest.mark.parametrize("name", "add gcd lcm heaviside hypot arctan2 nextafter logical_and less power ldexp".split())
def test_every_function_of_two_arrays_asks_about_ranks(name):
    a, b = jnp.ones((2, 3), int), jnp.ones(3, int)
    with jax.numpy_rank_promotion("raise"):
        for args in ((a, b), (b, a)):
            with pytest.raises(ValueError, match="rank"):
                getattr(jnp, name)(*args)


def test_weak_arrays_stay_weak_where_they_are_sorted_written_or_interpolated():
    weak = jnp.ones(3, bool) * 1.5
    strong = jnp.arange(3.0)
    numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
    write = lambda f, x, y: f(x, jnp.array([[0], [1], [2]]), y, numbers)  # noqa: E731
    for of in (lambda f: f, jax.jit):
        assert of(jnp.sort)(weak).weak_type and of(jax.lax.sort)(weak).weak_type
        assert [x.weak_type for x in of(lambda x, y: jax.lax.sort((x, y)))(weak, strong)] == [True, False]
        assert of(jnp.interp)(weak, weak, weak).weak_type and not of(jnp.interp)(weak, strong, weak).weak_type
        for scatter in (
            jax.lax.scatter,
            jax.lax.scatter_add,
            jax.lax.scatter_mul,
            jax.lax.scatter_min,
            jax.lax.scatter_max,
        ):
            kept = of(partial(write, scatter))
            assert kept(weak, strong).weak_type and not kept(strong, weak).weak_type  # as what is written into
        assert of(lambda x: jnp.insert(x, 1, 2.0))(weak).weak_type
        assert not of(lambda x, y: jax.lax.dynamic_update_slice(x, y, (0,)))(weak, weak).weak_type
    assert jnp.unique(weak[:0]).weak_type and not jnp.unique(weak[:0], size=2, fill_value=1).weak_type
    assert jax.grad(lambda x: jnp.sort(x)[0])(weak).dtype == np.float32
    assert jax.lax.fori_loop(0, 2, lambda i, x: jnp.sort(x), weak).weak_type


STRONG_GRADIENTS = [
    "x**2", "x**3", "1 / jnp.square(x)", "jnp.sqrt(x)", "lax.rsqrt(x)", "jnp.cbrt(x)", "jnp.tan(x)", "jnp.arcsin(x / 2)",
    "jnp.arccos(x / 2)", "jnp.arctan(x)", "jnp.exp2(x)", "jnp.log2(x)", "jnp.log10(x)", "lax.erf(x)", "lax.erfc(x)",
    "lax.erf_inv(x / 2)", "lax.digamma(x)", "lax.reduce_max(x, (0,))", "x[0]", "x[:2]", "x[::2]", "x[jnp.array([0, 1])]", "jnp.pad(x, 1)",
    "jnp.sort(x)", "lax.cumprod(x)", "lax.reduce_prod(x, (0,))", "jnp.dot(x, jnp.ones(3))", "jnp.roll(x, 1)", "jnp.diff(x)",
]  # fmt: skip
WEAK_GRADIENTS = [
    "x * 2", "x + x", "-x", "1 / x", "jnp.sin(x)", "jnp.exp(x)", "jnp.log(x)", "jnp.log1p(x)", "jnp.tanh(x)", "jnp.sinh(x)",
    "jnp.abs(x)", "jnp.maximum(x, 1)", "jnp.max(x)", "jnp.sum(x)", "jnp.cumsum(x)", "x.reshape(3, 1)", "jnp.flip(x)", "x @ x",
    "jnp.where(x > 0, x, 0)", "lax.logistic(x)", "jnp.concatenate([x, x])",
]  # fmt: skip


@pytest.mark.parametrize("text", STRONG_GRADIENTS + WEAK_GRADIENTS)
def test_gradients_of_weak_arrays_are_as_weak_as_in_jax(text):
    """Constants of derivatives and the zeros around cotangents are not weak. Measured with JAX 0.10.2."""
    weak = jnp.broadcast_to(1.5, (3,))
    gradient = jax.grad(lambda x: jnp.sum(eval(text, {"x": x, "jnp": jnp, "lax": lax})))(weak)
    assert gradient.dtype == "float32"
    assert gradient.weak_type == (text in WEAK_GRADIENTS)


@pytest.mark.parametrize("f", [lambda x: x**2, jnp.sqrt, jnp.arctan, jnp.exp2, jnp.tan, lax.erf, lax.digamma, jnp.sin])
def test_gradients_of_weak_numbers_are_weak(f):
    assert jax.grad(f)(1.5).weak_type and jax.jit(jax.grad(f))(1.5).weak_type


@pytest.mark.parametrize("f", [jnp.log2, jnp.log10, lambda x: x**1.5])
def test_gradients_of_weak_numbers_that_are_strong(f):
    assert not jax.grad(f)(1.5).weak_type


def test_a_batched_update_is_as_weak_as_what_is_updated():
    update = jax.vmap(lambda x: lax.dynamic_update_slice(x, jnp.ones(1), (0,)))
    assert update(jnp.broadcast_to(1.0, (2, 3))).weak_type
    assert not update(jnp.ones((2, 3))).weak_type


def test_result_type_of_wide_arrays_alone_is_theirs_outside_of_enable_x64():
    with jax.enable_x64(True):
        wide, long = jnp.ones(3), jnp.arange(3)
    assert jnp.result_type(wide) == jnp.result_type(wide, wide) == "float64"
    assert jnp.result_type(long) == "int64"
    assert jnp.result_type(wide, 1.0) == jnp.result_type(np.ones(3)) == "float32"


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_positions_promote_with_what_fills_them(wrap):
    x, m = jnp.array([0, 1, 2]), jnp.ones((2, 2))

    def found(fun, x, fill):
        out = wrap(lambda x: fun(x, size=5, fill_value=fill))(x)
        return [(o.dtype.name, o.weak_type, np.asarray(o).tolist()) for o in jax.tree.leaves(out)]

    assert found(jnp.nonzero, x, 1.5) == [("float32", True, [1.0, 2.0, 1.5, 1.5, 1.5])]
    assert found(jnp.flatnonzero, x, np.float16(2)) == [("float16", False, [1.0, 2.0, 2.0, 2.0, 2.0])]
    assert found(jnp.where, x, 2j) == [("complex64", True, [1, 2, 2j, 2j, 2j])]
    for fill in (7, np.int8(7), np.uint32(7)):
        assert found(jnp.nonzero, x, fill) == [("int32", False, [1, 2, 7, 7, 7])]
    places = [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert found(jnp.argwhere, m, 1.5) == [("float32", True, [*places, [1.5, 1.5]])]
    assert found(jnp.argwhere, m, (1.5, 2)) == [("float32", True, [*places, [1.5, 2.0]])]
    assert found(jnp.nonzero, x[:0], 1.5) == [("float32", True, [1.5] * 5)]
    for fill in (2**40, np.arange(5), (1, 2)):
        with pytest.raises((OverflowError, ValueError)):
            found(jnp.nonzero, x, fill)


# What a weak vector gives, and a weak number; measured with JAX 0.10.2, where constants make arrays with axes strong.
OF_WEAK = [
    "jnp.deg2rad(x)", "jnp.degrees(x)", "jnp.sinc(x)", "jnp.hypot(x, x)", "jnp.logaddexp2(x, x)", "jnp.round(x, 2)",
    "jnp.heaviside(x, x)", "jnp.logical_and(x, x)", "jnp.logical_not(x)", "jnp.isreal(x)", "jnp.iscomplex(x)",
    "jnp.gcd(i, i)", "jnp.lcm(i, i)", "jnp.full_like(x, x)",
]  # fmt: skip


@pytest.mark.parametrize("text", OF_WEAK)
def test_constants_make_weak_arrays_strong_and_not_weak_numbers(text):
    def of(x, i):
        return eval(text, {"x": x, "i": i, "jnp": jnp})

    for shape in ((), (3,)):
        weak = jnp.broadcast_to(1.5, shape), jnp.broadcast_to(3, shape)
        assert all(x.weak_type for x in weak)
        for found in (of(*weak), jax.jit(of)(*weak)):
            assert found.weak_type == (shape == ()), (text, shape)


def test_quotients_stay_weak_and_diagonals_of_matrices_do_not():
    weak, matrix = jnp.broadcast_to(1.5, (3,)), jnp.broadcast_to(1.5, (3, 3))
    for way in (lambda f: f, jax.jit):
        assert way(jnp.floor_divide)(weak, weak).weak_type and way(jnp.divmod)(weak, weak)[0].weak_type
        assert not way(jnp.diagonal)(matrix).weak_type and not way(jnp.diag)(matrix).weak_type
        assert way(jnp.diagonal)(jnp.broadcast_to(1.5, (2, 3, 3))).weak_type
        assert way(jnp.logical_and)(jnp.asarray(1.5), jnp.int32(1)).weak_type
        assert not way(jnp.array_equiv)(weak, weak).weak_type


# What a weak matrix gives, and the gradient of its sum: whether each is weak, measured with JAX 0.10.2.
OF_WEAK_MATRICES = [
    ("jnp.diag(m)", False, False), ("jnp.diag(m, 1)", True, False), ("jnp.diagonal(m[:2])", True, False),
    ("jnp.trace(m)", False, True), ("jnp.quantile(m, 0.5)", False, False), ("jnp.percentile(m, 25)", False, False),
    ("jnp.nanquantile(m, 0.5, axis=1)", False, False), ("jnp.median(m)", False, False),
    ("jnp.trapezoid(m)", False, False), ("jnp.trapezoid(m, jnp.arange(3.0))", False, True),
    ("jnp.cross(m, m)", False, False), ("jnp.cross(m, jnp.ones(3))", False, False),
    ("jnp.cross(m[:, :2], m[:, :2])", True, False), ("jnp.piecewise(m, [m > 1], [jnp.sin])", False, True),
    ("special.logit(m / 2)", False, False), ("norm.logpdf(m)", False, False), ("norm.pdf(m)", False, False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "weak", "slope"), OF_WEAK_MATRICES, ids=[row[0] for row in OF_WEAK_MATRICES])
def test_functions_of_weak_matrices_and_their_gradients_are_as_weak_as_in_jax(text, weak, slope):
    def of(m):
        return eval(text, {"m": m, "jnp": jnp, "special": jax.scipy.special, "norm": jax.scipy.stats.norm})

    matrix = jnp.broadcast_to(1.5, (3, 3))
    for way in (lambda f: f, jax.jit):
        assert way(of)(matrix).weak_type == weak
        assert way(jax.grad(lambda m: of(m).sum()))(matrix).weak_type == slope
