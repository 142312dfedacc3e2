"""Fast paths of the NumPy API against the general ones: a function of concrete arrays gives the dtype, weakness, shape
and values that its jaxpr gives, which knows no fast path. The arrays are those that fast paths could get wrong.
"""

import importlib.util
import operator as infix
import pathlib
import warnings

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.core.config import override
from catena.numpy import boundary
from catena.numpy.hot import LARGE, LARGE_OF_TWO, MANY_HALVES
from catena.runtime import buffers

RNG = np.random.default_rng(0)
NAN, INF = np.nan, np.inf
VECTORS = {
    "floats": jnp.asarray(RNG.standard_normal(7).astype(np.float32)),
    "special": jnp.array([NAN, INF, -INF, -0.0, 0.0, 1.5, -2.5]),
    "nan": jnp.array([NAN, NAN]),
    "ints": jnp.array([3, -1, 0, 7, 7]),
    "bools": jnp.array([True, False, True]),
    "one": jnp.array([2.5]),
    "empty": jnp.zeros(0),
    "scalar": jnp.array(-1.5),
    "weak": jnp.asarray(0.5),
    "weak int": jnp.asarray(3),
    "python": 0.75,
    "half": jnp.array([1.5, 2.25], np.float16),
    "complex": jnp.array([1 + 2j, -0.5j]),
    "bytes": jnp.array([3, -128, 0, 127, -7], np.int8),
    "short": jnp.array([3, 65535, 0, 127, 256], np.uint16),
    "bfloat16": jnp.array([1.5, NAN, -INF, -0.0, 3e38], jnp.bfloat16),
}
MATRICES = {
    "matrix": jnp.asarray(RNG.standard_normal((3, 4)).astype(np.float32)),
    "square": jnp.asarray(RNG.standard_normal((3, 3)).astype(np.float32)),
    "with nan": jnp.array([[1.0, NAN, 2.0], [INF, 3.0, -1.0]]),
    "of ints": jnp.arange(6).reshape(2, 3),
    "stack": jnp.asarray(RNG.standard_normal((2, 3, 3)).astype(np.float32)),
    "no rows": jnp.zeros((0, 3)),
    "one row": jnp.ones((1, 4)),
    "column": jnp.ones((4, 1)),
}
UNARY = (
    "sum prod mean var std max min ptp argmax argmin all any count_nonzero average nansum nanmean nanmax nanmin nanvar "
    "nanstd cumsum cumprod sign sinc exp log sqrt tanh floor round nan_to_num gradient diff flip ravel roll1 median "
    "quantile isclose1 cov corrcoef diag trace tril triu rot90 fliplr atleast_2d trapezoid outer1 tile2 append1 clip1 "
    "clip2 power1 isin1 linalg.norm linalg.det linalg.inv linalg.slogdet linalg.cholesky linalg.qr linalg.eigvalsh "
    "linalg.svd linalg.pinv linalg.matrix_rank"
).split()
SPELT_OUT = {
    "roll1": lambda x: jnp.roll(x, -2),
    "quantile": lambda x: jnp.quantile(x, 0.3),
    "isclose1": lambda x: jnp.isclose(x, x + 1e-7),
    "outer1": lambda x: jnp.outer(x, x),
    "tile2": lambda x: jnp.tile(x, 2),
    "append1": lambda x: jnp.append(x, x),
    "clip1": lambda x: jnp.clip(x, -1, 1),
    "clip2": lambda x: jnp.clip(x, 0.5),
    "power1": lambda x: jnp.power(x, 1.5),
    "isin1": lambda x: jnp.isin(x, jnp.array([1.5, 7.0, NAN])),
    # Vectors of bases are free: what they span is compared.
    "linalg.svd": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "linalg.qr": lambda x: [jnp.abs(part) for part in jnp.linalg.qr(x)],
}
ALONG_AXES = "sum prod mean var std max min ptp nansum nanmean nanmax nanvar median flip cumsum linalg.norm".split()
BINARY = (
    "add power fmax fmin maximum left_shift right_shift isclose allclose array_equal where1 vdot inner outer kron "
    "floor_divide remainder true_divide arctan2 logaddexp less copysign heaviside clip1 isin concatenate1"
).split()
SPELT_OUT_BINARY = {
    "where1": lambda x, y: jnp.where(jnp.asarray(x) > 0, x, y),
    "clip1": lambda x, y: jnp.clip(x, y, 2),
    "concatenate1": lambda x, y: jnp.concatenate([jnp.atleast_1d(x), jnp.atleast_1d(y)]),
}


def function(name: str, spelt_out: dict):
    if name in spelt_out:
        return spelt_out[name]
    module, _, last = name.rpartition(".")
    return getattr(jnp.linalg if module else jnp, last)


def outcome(fun, *args):
    """What a call gives, or the type of its error."""
    try:
        return jax.tree.leaves(fun(*args))
    except Exception as error:  # any error: both ways must raise the same
        return type(error)


def generally(fun):
    """``fun``, evaluated by way of its jaxpr."""

    def evaluated(*args):
        closed = jax.make_jaxpr(fun)(*args)
        found = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *jax.tree.leaves(args))
        return [x if isinstance(x, jax.Array) else jnp.asarray(x) for x in found]

    return evaluated


def check(fun, *args, signs: bool = True):
    ours, general = outcome(fun, *args), outcome(generally(fun), *args)
    if isinstance(general, type) or isinstance(ours, type):
        assert ours == general
        return
    for x, y in zip(ours, general, strict=True):
        assert (x.dtype, x.shape, x.weak_type) == (y.dtype, y.shape, y.weak_type)
        x, y = (np.asarray(v) if v.dtype.kind in "biuc" else np.asarray(v, np.float64) for v in (x, y))
        np.testing.assert_allclose(x, y, rtol=2e-3 if ours[0].dtype == np.float16 else 2e-5, atol=2e-5)
        if x.dtype.kind == "f" and signs:
            zeros = (x == 0) & (y == 0)
            np.testing.assert_array_equal(np.signbit(x[zeros]), np.signbit(y[zeros]))


@pytest.mark.share(16)
@pytest.mark.parametrize("argument", [*VECTORS, *MATRICES])
@pytest.mark.parametrize("name", UNARY)
def test_of_one_array(name, argument):
    check(function(name, SPELT_OUT), {**VECTORS, **MATRICES}[argument], signs="linalg" not in name)


@pytest.mark.share(4)
@pytest.mark.parametrize("argument", MATRICES)
@pytest.mark.parametrize("name", ALONG_AXES)
def test_along_axes(name, argument):
    for axis in (0, -1, 1, 5) if name in ("flip", "cumsum") else (0, -1, 1, 5, (0, 1), (0, -1), (1, 1)):
        check(lambda x, axis=axis: function(name, {})(x, axis=axis), MATRICES[argument])


@pytest.mark.share(15)
@pytest.mark.parametrize("left", VECTORS)
@pytest.mark.parametrize("name", BINARY)
def test_of_two_arrays(name, left):
    for right in (*VECTORS, "matrix"):
        check(function(name, SPELT_OUT_BINARY), VECTORS[left], {**VECTORS, **MATRICES}[right])


LARGE_ARRAYS = {
    "floats": jnp.asarray(RNG.standard_normal(LARGE_OF_TWO // 4 + 3).astype(np.float32)),
    "weak": jnp.broadcast_to(jnp.asarray(0.5), (LARGE_OF_TWO // 4,)),
    "ints": jnp.arange(LARGE_OF_TWO // 4) - 5,
    "complex": jnp.asarray(RNG.standard_normal(LARGE_OF_TWO // 8) + 1j).astype(np.complex64),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
@pytest.mark.parametrize("n", [1023, 1024, 5000])
def test_truth_of_many_floats(name, n):
    x, y = [np.asarray(RNG.choice([0.0, -0.0, NAN, 1e-40, 2.0], n), np.float32) for _ in range(2)]
    found = getattr(jnp, name)(jnp.asarray(x), jnp.asarray(y))
    assert found.dtype == bool and np.array_equal(found, getattr(np, name)(x, y))
    assert np.array_equal(getattr(jnp, name)(jnp.asarray(x), jnp.asarray(y[:1])), getattr(np, name)(x, y[:1]))


@pytest.mark.share(4)
@pytest.mark.parametrize("argument", LARGE_ARRAYS)
@pytest.mark.parametrize("name", "sin exp log sqrt tanh floor abs square negative isfinite sign invert".split())
def test_of_one_large_array(name, argument):
    assert LARGE_ARRAYS[argument].nbytes >= LARGE
    check(getattr(jnp, name), LARGE_ARRAYS[argument])


@pytest.mark.share(6)
@pytest.mark.parametrize("argument", LARGE_ARRAYS)
@pytest.mark.parametrize("name", "add subtract multiply divide maximum power less equal bitwise_and remainder".split())
def test_of_two_large_arrays(name, argument):
    x, fun = LARGE_ARRAYS[argument], getattr(jnp, name)
    for other in (x, 3, 0.5, jnp.asarray(2.0), x[:1], x[:2]):
        check(fun, x, other)
        check(fun, other, x)
    for operator in (lambda a: a + 1, lambda a: 1 - a, lambda a: a * a, lambda a: a < 2.5):
        check(operator, x)


SPECIAL = np.array([NAN, INF, -INF, -0.0, 0.0, 1.5, -2.5, 1e-45, -3e38, 3.0], np.float32)
SOME_SIZE = {
    "floats": jnp.asarray(RNG.choice(SPECIAL, (1500, 7))),
    "normal": jnp.asarray(RNG.standard_normal((7, 1500)).astype(np.float32)),
    "halves": jnp.asarray(RNG.choice(SPECIAL, (1500, 7))).astype("bfloat16"),
    "complex": jnp.asarray(RNG.choice(SPECIAL, (1500, 14)).view(np.complex64)),
    "ints": jnp.asarray(RNG.choice([0, 1, -1, 5, -(2**31), 2**31 - 1], (1500, 7)).astype(np.int32)),
    "bools": jnp.asarray(RNG.standard_normal((1500, 7)) > 0),
}
CALLS = {
    "logical_not": jnp.logical_not,
    "copysign": lambda x: jnp.copysign(x, -x[:1]),
    "nextafter": lambda x: jnp.nextafter(x, 0.5),
    "count_nonzero": jnp.count_nonzero,
    "nan_to_num": lambda x: jnp.nan_to_num(x, nan=2.5),
    "nanmax": lambda x: jnp.nanmax(x, axis=1),
    "nanmin": lambda x: jnp.nanmin(x, axis=0),
    "gradient": lambda x: jnp.gradient(x, axis=1),
    **{f"remainder by {y}": lambda x, y=y: x % y for y in (3, -7, 1, -1)},
}


@pytest.mark.share(4)
@pytest.mark.parametrize("argument", SOME_SIZE)
@pytest.mark.parametrize("name", CALLS)
def test_of_arrays_of_some_size(name, argument):
    """Which NumPy takes long for, one by one: called as often as what waits for a program has to be."""
    if argument == "bools" and name == "copysign" or argument == "complex" and name[:5] in ("copys", "nexta", "remai"):
        pytest.skip("there is none of these")
    for _ in range(4):
        check(CALLS[name], SOME_SIZE[argument])


@pytest.mark.parametrize("num", [1023, 1025, 4096, 8193, 20_000])
@pytest.mark.parametrize("endpoint", [True, False])
def test_long_rows_of_numbers(num, endpoint):
    found = np.asarray(jnp.linspace(-3.0, 1e6, num, endpoint))
    exact = np.linspace(-3.0, 1e6, num, endpoint)
    np.testing.assert_allclose(found, exact, rtol=3e-7, atol=2e-7)
    np.testing.assert_array_equal(found, jnp.linspace(jnp.array(-3.0), jnp.array(1e6), num, endpoint))


def test_masks():
    x, mask = MATRICES["with nan"], jnp.array([[True, False, True], [False, True, True]])
    for name in ("sum", "prod", "mean", "var", "any", "all"):
        for where in (mask, mask[0], jnp.array(True)):
            check(lambda x, w, name=name: getattr(jnp, name)(x, axis=-1, where=w), x, where)


def test_large_running_sums_are_compiled_when_repeated():
    x = jnp.asarray(RNG.standard_normal((3, 1 << 15)).astype(np.float32))
    first, *_, last = [jnp.cumsum(x, axis=1) for _ in range(4)]
    np.testing.assert_allclose(first, np.cumsum(np.asarray(x, np.float64), 1), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(last, np.cumsum(np.asarray(x, np.float64), 1), rtol=1e-4, atol=1e-3)


def workloads() -> dict:
    """The calls that the benchmark times."""
    path = pathlib.Path(__file__).parents[2] / "benchmarks" / "numpy_overhead.py"
    spec = importlib.util.spec_from_file_location("numpy_overhead", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path.parent))
        spec.loader.exec_module(module)
    return module.small(jax)


TO_PYTHON = {"float(x[0])", "bool(mask[0])", "x.item(0)", "len(x)", "x.shape", "shape"}
WORKLOADS = workloads()


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in TO_PYTHON])
def test_what_the_benchmark_times(name):
    check(WORKLOADS[name], signs="linalg" not in name)


def test_spelt_dtypes_are_remembered_only_where_flags_do_not_change_them():
    for _ in range(2):
        assert jnp.zeros(1, float).dtype == np.float32
        assert jnp.zeros(1, jnp.int32).dtype == jnp.zeros(1, "int32").dtype == np.int32
        with jax.enable_x64(True):
            assert jnp.zeros(1, float).dtype == np.float64
            assert jnp.zeros(1, "int32").dtype == np.int32
    for wrong in ("no dtype", np.ones(1), [np.float32], object):
        with pytest.raises(TypeError):
            jnp.zeros(1, wrong)
    with pytest.raises(ValueError, match="dtype"):
        jnp.zeros(1, jnp.ones(1))


OPERATORS = "add sub mul floordiv mod and_ or_ xor lshift rshift eq ne lt le gt ge".split()
INTEGERS = "int8 uint8 int16 uint16 int32 uint32".split()


@pytest.mark.share(5)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", [*OPERATORS, "divmod", "jnp.divmod", "jnp.fmod", "jnp.add", "jnp.floor_divide"])
def test_integers_of_every_size(name, dtype):
    """Also beyond their ends, by zero, and with numbers of Python, which may not fit."""
    fun = getattr(jnp, name[4:]) if name[:4] == "jnp." else divmod if name == "divmod" else getattr(infix, name)
    most = np.iinfo(dtype)
    some = np.array([0, 1, 3, 7, most.max // 2, most.max, most.min], dtype)
    some = np.concatenate([some, some[:4] * np.array(255 if most.min == 0 else -1).astype(dtype)])
    x, y = (jnp.asarray(a.ravel()) for a in np.meshgrid(some, some))
    calls = [lambda x, y: fun(x, y), lambda x, y: fun(x, y[:1]), lambda x, y: fun(x, y[3])]
    calls.append(lambda x, y: fun(x, y[:1].astype(jnp.int16)))
    calls += [lambda x, y, s=s: fun(x, s) for s in (0, 1, 3, -1, 127, 128, -200, 70_000)]
    calls += [lambda x, y, s=s: fun(s, y) for s in (7, -1, 300)]
    for call in calls:
        check(call, x, y)
        if not isinstance(found := outcome(call, x, y), type):
            for ours, general in zip(found, generally(call)(x, y), strict=True):
                np.testing.assert_array_equal(ours, general)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "eq"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "complex64", "bfloat16"])
def test_numbers_of_python_that_are_complex(name, dtype):
    """To the bits, dtypes and weakness of the general path."""
    fun, xs = getattr(infix, name), jnp.array([0, 1, -2, 3]).astype(dtype)
    for number in (1j, 2 - 3j, complex("inf"), complex("nanj"), 2 + 0j):
        for call in (lambda x, s=number: fun(x, s), lambda x, s=number: fun(s, x)):
            for x in (xs, jnp.asarray(2.0)):
                (ours,), (general,) = outcome(call, x), generally(call)(x)
                np.testing.assert_array_equal(ours, general)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_divmod_of_a_number_by_an_array(dtype):
    y = jnp.array([1, 2, 3, 7]).astype(dtype)
    for number in (7, 5.5, -3.0, True):
        for ours, general in zip(divmod(number, y), generally(lambda y, s=number: divmod(s, y))(y), strict=True):
            assert ours.aval == general.aval
            np.testing.assert_array_equal(ours, general)


@pytest.mark.parametrize("name", [*OPERATORS, "divmod", "truediv"])
def test_keys_are_no_numbers(name):
    fun = divmod if name == "divmod" else getattr(infix, name)
    kinds = [jax.random.key(0, impl=impl) for impl in ("threefry2x32", "rbg", "unsafe_rbg")]
    for keys in (*kinds, jax.random.split(kinds[0], 3)):
        calls = [lambda key: fun(key, 1), lambda key: fun(1, key)]
        if name not in ("eq", "ne"):
            calls.append(lambda key: fun(key, key))
        for call in calls:
            with pytest.raises(TypeError):
                call(keys)


OF_NUMPY = {
    "outer": jnp.outer,
    "kron": jnp.kron,
    "inner": jnp.inner,
    "vdot": jnp.vdot,
    "matmul": jnp.matmul,
    "dot": jnp.dot,
    "isclose": jnp.isclose,
    "isin": jnp.isin,
    "interp": lambda x, y: jnp.interp(x, jnp.sort(y), y) if isinstance(x, jax.Array) else jnp.interp(x, np.sort(y), y),
    "trapezoid": jnp.trapezoid,
    "gradient": lambda x, y: jnp.gradient(x),
    "percentile": lambda x, y: jnp.percentile(x, 30),
    "median of one": lambda x, y: jnp.median(x[:1]),
    "nansum": lambda x, y: jnp.nansum(x),
    "nanmax": lambda x, y: jnp.nanmax(x),
    "matrix_rank": lambda x, y: jnp.linalg.matrix_rank(x[:, None] * y),
    "solve": lambda x, y: jnp.linalg.solve(x[:9].reshape(3, 3), y[:3]),
    "window": lambda x, y: jax.lax.dynamic_slice(x, (2,), (3,)),
}


@pytest.mark.parametrize("name", OF_NUMPY)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_numpy_arrays_have_the_bits_of_arrays_and_are_not_kept(name, dtype):
    x, y = (np.random.default_rng(7).normal(size=(2, 12)) * 5).astype(dtype)
    kept = OF_NUMPY[name](x, y)
    want = OF_NUMPY[name](jnp.asarray(x), jnp.asarray(y))
    assert kept.dtype == want.dtype and kept.shape == want.shape and kept.weak_type == want.weak_type
    x[...], y[...] = 77, 77
    assert np.asarray(kept).tobytes() == np.asarray(want).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "bool", "uint8", "bfloat16"])
def test_windows_of_concrete_arrays_are_where_programs_have_them(dtype):
    x, sizes = jnp.arange(35).reshape(5, 7).astype(dtype), (2, 3)
    compiled = jax.jit(lambda x, *at: jax.lax.dynamic_slice(x, at, sizes))
    for at in [(0, 0), (3, 4), (-1, -7), (-9, 9), (2**40, -(2**40)), (jnp.int32(2), 1), (np.int32(-2), jnp.int32(3))]:
        want = compiled(x, *[int(np.clip(int(i), -100, 100)) for i in at])
        for operand in (x, np.asarray(x)):
            found = jax.lax.dynamic_slice(operand, at, sizes)
            assert found.dtype == want.dtype and np.array_equal(found, want), at
    for wrong in [(2, 8), (2,), (-1, 2)]:
        with pytest.raises((TypeError, ValueError)):
            jax.lax.dynamic_slice(x, (0, 0), wrong)
    for at in [(0,), (np.int32(0), jnp.uint8(0)), (0.0, 1), (jnp.int32(0), np.int64(0))][
        : 3 + jax.config.jax_enable_x64
    ]:
        with pytest.raises((TypeError, ValueError)):
            jax.lax.dynamic_slice(x, at, sizes)


HALVES = ("float16", "bfloat16")
INFIX = {name: getattr(infix, name) for name in "add sub mul truediv eq ne lt le gt ge".split()}


def halves(dtype, count: int):
    x = RNG.standard_normal(count) * 10.0 ** RNG.integers(-3, 4, count)
    x[:: max(count // 5, 1)] = RNG.choice([NAN, INF, -INF, -0.0, 0.0], len(x[:: max(count // 5, 1)]))
    with np.errstate(all="ignore"):
        return jnp.asarray(x, dtype)


def assert_as_compiled(f, *xs):
    """The result of a function and that of its program: dtypes, weakness, and bits but those of NaN."""
    assert_all_as_compiled(lambda *xs: [f(*xs)], *xs)


def assert_all_as_compiled(f, *xs):
    """The same of several results."""
    for got, want in zip(f(*xs), jax.jit(f)(*xs), strict=True):
        assert (got.dtype, got.weak_type, got.shape) == (want.dtype, want.weak_type, want.shape)
        assert_bits(np.asarray(got), np.asarray(want))


def assert_bits(a, b):
    wide = [v if v.dtype.itemsize > 2 else v.astype(np.float32) for v in (a, b)]
    np.testing.assert_array_equal(*wide)
    there = ~np.isnan(wide[0])
    np.testing.assert_array_equal(*[np.signbit(v[there]) for v in wide])


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", sorted(INFIX))
def test_halves_and_numbers(name, dtype):
    """A number becomes one of the array's dtype first, as in the program, whatever the array's length."""
    op = INFIX[name]

    def of_all(x):
        return [made for n in (2, -3, 0.1, 1e-7, -0.0, NAN, 1e6, 70000) for made in (op(x, n), op(n, x))]

    for count in (1, 31, 32, 33, 100):
        assert_all_as_compiled(of_all, halves(dtype, count))
    with jax.enable_x64(True):
        x = halves(dtype, 40)
        assert_as_compiled(lambda x: op(x, 0.1), x)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", sorted(INFIX))
def test_two_arrays_of_halves(name, dtype):
    x, y = halves(dtype, 60), halves(dtype, 60)
    for xs in ((x, y), (x[::2], y[:30]), (x.reshape(2, 30), y[:30]), (x.reshape(2, 30).T, y[0]), (x[:, None], y)):
        assert_as_compiled(INFIX[name], *xs)
    many = halves(dtype, MANY_HALVES // 2 + 50)
    assert_as_compiled(INFIX[name], many, many[::-1])


@pytest.mark.parametrize("dtype", HALVES)
def test_halves_are_computed_at_once(monkeypatch, dtype):
    x = halves(dtype, 40)

    def refuse(*_):
        raise AssertionError("the general path is taken")

    monkeypatch.setattr(boundary, "operands", refuse)
    for op in INFIX.values():
        op(x, x), op(x, 2), op(0.5, x)
    jnp.add(x, 1.5), jnp.multiply(x, x), jnp.divide(2, x)


LARGE_CALLS = {
    "trunc": lambda x, y: jnp.trunc(x),
    "copysign": lambda x, y: jnp.copysign(x, y),
    "frexp": lambda x, y: jnp.frexp(x),
    "modf": lambda x, y: jnp.modf(x),
    "norm": lambda x, y: jnp.linalg.norm(x.reshape(-1, 64), axis=1),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(LARGE_CALLS))
def test_large_arrays_have_the_bits_of_programs_each_time(name, dtype):
    """The first time, again, and of NumPy's arrays: numbers of all bits, subnormal ones and NaN among them."""
    f = LARGE_CALLS[name]
    with jax.enable_x64(dtype == "float64"):
        word = f"uint{8 * np.dtype(dtype).itemsize}"
        x, y = RNG.integers(0, np.iinfo(word).max, (2, LARGE), word, endpoint=True).view(dtype)
        arrays = jnp.asarray(x), jnp.asarray(y)
        want = jax.tree.leaves(jax.jit(f)(*arrays))
        for given in (arrays, arrays, arrays, (x, y), (x, y)):
            for one, other in zip(jax.tree.leaves(f(*given)), want, strict=True):
                assert_bits(np.asarray(one), np.asarray(other))


MIXTURES = {
    "dtypes": lambda x, i, row: x * i,
    "booleans": lambda x, i, row: x + (i > 0),
    "complex": lambda x, i, row: x + (1j * row),
    "rows": lambda x, i, row: x - row,
    "columns": lambda x, i, row: x[:, :1] * i,
    "compared": lambda x, i, row: x < i,
    "outer": lambda x, i, row: jnp.outer(row, x[0]),
}


@pytest.mark.parametrize("name", sorted(MIXTURES))
def test_large_arrays_of_two_kinds_are_what_numpy_makes_of_them_each_time(name):
    x, row = RNG.standard_normal((500, 700), np.float32), RNG.standard_normal(700, np.float32)
    i = RNG.integers(-100, 100, (500, 700), np.int32)
    arrays = tuple(map(jnp.asarray, (x, i, row)))
    want = MIXTURES[name](x, i.astype(np.float32), row)
    for _ in range(4):
        found = MIXTURES[name](*arrays)
        assert found.dtype == jax.eval_shape(MIXTURES[name], *arrays).dtype
        np.testing.assert_array_equal(found, want)


def test_a_diagonal_of_numpys_matrix_is_a_copy_of_the_diagonal_alone():
    x = RNG.standard_normal((800, 900))
    taken = buffers.pool.made + buffers.pool.reused
    found = jnp.diagonal(x), jnp.diag(x, 3), jnp.diagonal(x.reshape(2, 400, 900), 1, 1, 2)
    assert buffers.pool.made + buffers.pool.reused == taken, "the matrix is not copied"
    want = x.diagonal().astype("float32"), np.diag(x, 3).astype("float32")
    x[:] = 0
    for one, other in zip(found, want, strict=False):
        assert one.dtype == other.dtype and not one.weak_type
        np.testing.assert_array_equal(one, other)
    with pytest.raises(TypeError, match="not a valid JAX array type"):
        jnp.diagonal(np.full((2, 2), "a"))


def test_large_arrays_of_two_dtypes_are_not_converted_first():
    x, i = jnp.ones((500, 700)), jnp.ones((500, 700), np.int32)
    for _ in range(3):
        found = x * i
    taken = buffers.pool.made + buffers.pool.reused
    found = x * i
    assert buffers.pool.made + buffers.pool.reused == taken + 1, "there is memory for the result alone"
    assert found.dtype == np.float32


LONG = {
    "add": jnp.add, "divide": jnp.divide, "maximum": jnp.maximum, "less": jnp.less, "floor_divide": jnp.floor_divide,
    "power": jnp.power, "hypot": jnp.hypot, "+": infix.add, "<": infix.lt, "%": infix.mod,
}  # fmt: skip
LONG_ALONE = "isnan isfinite exp signbit logical_not reciprocal sign rint abs".split()
DTYPES = ("float32", "bfloat16", "int8", "int32", "bool", "complex64")


def often(f, *args):
    """The result of a call that is made again and again, at last by a program: the same bits each time."""
    want = jax.jit(f)(*args)
    for _ in range(4):
        found = f(*args)
        assert (found.dtype, found.shape, found.weak_type) == (want.dtype, want.shape, want.weak_type)
        assert np.asarray(found).tobytes() == np.asarray(want).tobytes()


def long_array(shape, dtype):
    x = jnp.asarray(RNG.uniform(0.25, 9, shape))
    return x > 3 if dtype == "bool" else (x + 1j * x[::-1]).astype(dtype) if dtype == "complex64" else x.astype(dtype)


@pytest.mark.share(5)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LONG)
def test_long_arrays_have_the_bits_of_a_program_however_often(name, dtype):
    """Of one shape and of two, with gaps, beside numbers, and of two dtypes."""
    f, x, y = LONG[name], long_array((70, 300), dtype), long_array((70, 300), dtype)
    pairs = [
        (x, y),
        (x, y[0]),
        (y[:, :1], x),
        (x.T, y.T),
        (x.T, y[:, 0]),
        (x[:, ::-1], y),
        (x, long_array(300, "float32")),
    ]
    try:
        jax.eval_shape(f, x, y)
    except (TypeError, ValueError):
        pytest.skip("not of this dtype")
    for a, b in pairs:
        often(f, a, b)
    if dtype != "bool":
        often(lambda x: f(x, 2), x)
        often(lambda x: f(3, x), x)


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LONG_ALONE)
def test_a_long_array_has_the_bits_of_a_program_however_often(name, dtype):
    f, x = getattr(jnp, name), long_array((70, 300), dtype)
    try:
        jax.eval_shape(f, x)
    except (TypeError, ValueError):
        pytest.skip("not of this dtype")
    often(f, x)
    often(f, x.T)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["sum", "mean", "var", "max", "prod", "any", "norm"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_folds_of_many_numbers_have_the_bits_of_a_program(name, axis):
    f = jnp.linalg.norm if name == "norm" else getattr(jnp, name)
    x = long_array((130, 300), "float32")
    often(lambda x: f(x if axis is not None else x.reshape(-1), axis=axis), x)


@pytest.mark.share(10)
@pytest.mark.parametrize("number", [np.float32(2.5), np.float64(2.5), np.int32(3), np.bool_(True), np.complex64(1j)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [3, 5000])
def test_numpys_numbers_are_arrays_without_axes(size, dtype, number):
    x = long_array(size, dtype)
    for f in (infix.mul, infix.add, jnp.power, jnp.equal):
        often(lambda x: f(x, number), x)
        often(lambda x: f(number, x), x)
        often(lambda x: f(x, jnp.asarray(number)), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ldexp_of_concrete_arrays_is_that_of_compiled_ones(dtype):
    with override("jax_enable_x64", True):
        x = jnp.asarray(np.array([0.0, -0.0, 1.5, -3.0, np.inf, np.nan, 1e-38, 3e38]).astype(dtype))
        for exponent in (
            3, -4000, 2**31 - 1, -(2**31), 2**40, True, np.int8(-3), jnp.int16(5), jnp.int64(2**40), np.arange(-4, 4),
            jnp.arange(-4, 4, dtype="int32"), jnp.arange(8, dtype="uint8"), jnp.full(8, -1060, "int32"), jnp.full((8, 1), 2),
        ):  # fmt: skip
            eager, compiled = jnp.ldexp(x, exponent), jax.jit(jnp.ldexp)(x, exponent)
            assert (eager.dtype, eager.weak_type) == (compiled.dtype, compiled.weak_type)
            np.testing.assert_array_equal(np.signbit(eager), np.signbit(compiled))
            np.testing.assert_array_equal(eager, compiled)


def test_imaginary_parts_of_real_numbers_are_zeros_of_their_type():
    for x in (jnp.ones((2, 3)), jnp.ones(3, "bfloat16"), jnp.ones(2, bool), jnp.arange(3), jnp.asarray(1.5), 2.0):
        eager, compiled = jnp.imag(x), jax.jit(jnp.imag)(x)
        assert (eager.dtype, eager.weak_type, eager.shape) == (compiled.dtype, compiled.weak_type, compiled.shape)
        assert not eager.any()


def test_variances_without_nan_and_with_it():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(7, 5)), "float32")
    holes = x.at[2, 1].set(jnp.nan).at[:, 3].set(jnp.nan)
    for values in (x, holes, x.at[0, 0].set(jnp.inf)):
        for axis in (None, 0, 1, (0, 1)):
            for ddof in (0, 1, 0.5, 5, 7):
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    expected = np.nanvar(np.asarray(values, float), axis, ddof=ddof)
                found = jnp.nanvar(values, axis, ddof=ddof)
                expected = np.where(np.isfinite(expected), expected, np.nan)
                np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_truth_of_halves_is_that_of_compiled_ones(dtype):
    x = jnp.asarray(np.array([0.0, -0.0, 1.0, -2.0, np.inf, np.nan, 6e-8, 0.0])).astype(dtype)
    for y in (x[::-1], x > 0, jnp.arange(8) % 2, jnp.arange(8.0), x.astype("float32"), jnp.asarray(1.0), x[:0].sum()):
        for name in ("logical_and", "logical_or", "logical_xor"):
            for first, second in ((x, y), (y, x)):
                eager, compiled = getattr(jnp, name)(first, second), jax.jit(getattr(jnp, name))(first, second)
                assert (eager.dtype, eager.weak_type) == (compiled.dtype, compiled.weak_type)
                np.testing.assert_array_equal(eager, compiled)
