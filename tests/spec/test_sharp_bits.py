"""What `spec/sharp-bits.md` claims: purity, in-place updates, bounds, control flow, shapes, NaNs, types.

Random numbers have their own tests. Where the page shows an older message, `api/behaviour-notes.md` decides.
"""

import functools
import warnings

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import grad, jit, lax


def equal(actual, expected):
    np.testing.assert_array_equal(np.asarray(actual), expected)


# ------------------------------------------------------------------------------- pure functions


def test_side_effects_happen_once_per_type_and_shape():
    printed = []

    @jit
    def impure_print(x):
        printed.append("Executing function")
        return x

    assert float(impure_print(4.0)) == 4.0
    assert float(impure_print(5.0)) == 5.0
    assert len(printed) == 1
    equal(impure_print(jnp.array([5.0])), [5.0])
    assert len(printed) == 2


def test_a_global_is_read_when_tracing():
    state = {"g": 0.0}
    impure_uses_globals = jit(lambda x: x + state["g"])
    assert float(impure_uses_globals(4.0)) == 4.0
    state["g"] = 10.0
    assert float(impure_uses_globals(5.0)) == 5.0
    equal(impure_uses_globals(jnp.array([4.0])), [14.0])


def test_a_saved_value_is_a_tracer_that_may_not_be_used():
    saved = []

    @jit
    def impure_saves(x):
        saved.append(x)
        return x

    assert float(impure_saves(4.0)) == 4.0
    assert isinstance(saved[0], jax.core.Tracer)
    assert repr(saved[0]) == "JitTracer(~float32[])"
    with pytest.raises(jax.errors.UnexpectedTracerError, match="impure_saves"):
        saved[0] + 1


def test_state_inside_a_function_is_pure():
    def pure_uses_internal_state(x):
        state = dict(even=0, odd=0)
        for i in range(10):
            state["even" if i % 2 == 0 else "odd"] += x
        return state["even"] + state["odd"]

    assert float(jit(pure_uses_internal_state)(5.0)) == 50.0


def test_iterators_are_state():
    array = jnp.arange(10)
    assert int(lax.fori_loop(0, 10, lambda i, x: x + array[i], 0)) == 45
    iterator = iter(range(10))
    assert int(lax.fori_loop(0, 10, lambda i, x: x + next(iterator), 0)) == 0  # next() ran once, when tracing


@pytest.mark.filterwarnings("ignore:Python iterable type:DeprecationWarning")
def test_iterators_are_no_operands():
    with pytest.raises((TypeError, AttributeError)):
        jax.make_jaxpr(lambda arr: lax.scan(lambda c, x: (c + x, c), 0.0, arr))(iter(range(16)))
    with pytest.raises(TypeError):
        lax.cond(True, lambda x: next(x) + 1, lambda x: next(x) - 1, iter(range(10)))


def test_printing_in_a_jitted_function_shows_tracers_once():
    seen = []

    @jit
    def f(x):
        seen.append(str(x))
        y = 2 * x
        seen.append(str(y))
        return y

    assert repr(f(2)) == "Array(4, dtype=int32, weak_type=True)"
    f(3)
    assert seen == ["JitTracer(~int32[])"] * 2


# ------------------------------------------------------------------------------ in-place updates


def test_item_assignment_says_what_to_write_instead():
    x = jnp.zeros((3, 3), dtype=jnp.float32)
    with pytest.raises(TypeError, match=r"immutable.*x = x\.at\[idx\]\.set\(y\)"):
        x[1, :] = 1.0
    equal(x, np.zeros((3, 3)))


def test_at_set_returns_a_new_array():
    x = jnp.zeros((3, 3))
    equal(x.at[1, :].set(1.0), [[0, 0, 0], [1, 1, 1], [0, 0, 0]])
    equal(x, np.zeros((3, 3)))


def test_at_add_with_slices():
    expected = np.ones((5, 6))
    expected[::2, 3:] += 7.0
    x = jnp.ones((5, 6))
    equal(x.at[::2, 3:].add(7.0), expected)
    equal(jit(lambda x: x.at[::2, 3:].add(7.0))(x), expected)
    equal(x, np.ones((5, 6)))


def test_an_update_inside_jit_leaves_the_callers_array_alone():
    x = jnp.zeros(4)
    updated = jit(lambda x: lax.fori_loop(0, 4, lambda i, x: x.at[i].set(i), x))(x)
    equal(updated, [0, 1, 2, 3])
    equal(x, np.zeros(4))


@pytest.mark.parametrize(
    ("method", "value", "expected"),
    [
        ("set", 9.0, [0, 9, 2, 3, 4]),
        ("add", 1.0, [0, 2, 2, 3, 4]),
        ("subtract", 1.0, [0, 0, 2, 3, 4]),
        ("multiply", 2.0, [0, 2, 2, 3, 4]),
        ("mul", 2.0, [0, 2, 2, 3, 4]),
        ("divide", 2.0, [0, 0.5, 2, 3, 4]),
        ("power", 3.0, [0, 1, 2, 3, 4]),
        ("min", -1.0, [0, -1, 2, 3, 4]),
        ("max", 7.0, [0, 7, 2, 3, 4]),
    ],
)
def test_every_update_method(method, value, expected):
    def f(x):
        return getattr(x.at[1], method)(value)

    equal(f(jnp.arange(5.0)), expected)
    equal(jit(f)(jnp.arange(5.0)), expected)


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (lambda at: at[jnp.array([0, 0, 0])].add(1.0), [3, 1, 2, 3, 4]),
        (lambda at: at[jnp.array([1, 1])].mul(2.0), [0, 4, 2, 3, 4]),
        (lambda at: at[jnp.array([1, 1])].divide(2.0), [0, 0.25, 2, 3, 4]),
        (lambda at: at[jnp.array([1, 1])].min(-1.0), [0, -1, 2, 3, 4]),
        (lambda at: at[jnp.array([0, 0])].set(jnp.array([1.0, 2.0])), [2, 1, 2, 3, 4]),
        (lambda at: at[::2].subtract(1.0), [-1, 1, 1, 3, 3]),
    ],
    ids=["add", "mul", "divide", "min", "set: the last one stays", "strided"],
)
def test_repeated_indices_all_count(update, expected):
    equal(update(jnp.arange(5.0).at), expected)
    equal(jit(lambda x: update(x.at))(jnp.arange(5.0)), expected)


def test_apply_maps_a_function_over_what_is_indexed():
    np.testing.assert_allclose(jnp.arange(3.0).at[1].apply(jnp.sin), [0, np.sin(1), 2], rtol=1e-6)


def test_slice_sizes_come_from_shapes_and_starts_from_values():
    equal(jit(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))(jnp.arange(5.0), 2), [2, 3])
    with pytest.raises(IndexError, match="static"):
        jit(lambda x, n: x[:n])(jnp.arange(5.0), 2)
    equal(jit(lambda x: x[: x.shape[0] // 2])(jnp.arange(5.0)), [0, 1])


# ------------------------------------------------------------------------- out-of-bounds indexing

TEN = jnp.arange(10)
FIVE = jnp.arange(5.0)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda x: x[11], 4.0),
        (lambda x: x[-1], 4.0),
        (lambda x: x[-11], 0.0),
        (lambda x: x[jnp.array([4, 5, 6, -5, -6, -7])], [4, 4, 4, 0, 0, 0]),
        (lambda x: x.at[11].get(), 4.0),
        (lambda x: x.at[11].get(mode="fill", fill_value=jnp.nan), np.nan),
        (lambda x: x.at[11].get(mode="fill"), np.nan),
        (lambda x: x.at[11].get(mode="fill", fill_value=-1), -1.0),
        (lambda x: x.at[-6].get(mode="fill"), np.nan),
        (lambda x: x.at[-6].get(mode="clip"), 0.0),
        (lambda x: x.at[-1].get(mode="clip"), 4.0),
        (lambda x: x.at[11].get(mode="drop"), np.nan),
        (lambda x: x.at[11].get(mode="clip"), 4.0),
        (lambda x: x.at[-1].get(wrap_negative_indices=False), 0.0),
        (lambda x: x.at[-1].get(mode="fill", wrap_negative_indices=False), np.nan),
        (lambda x: x[2:100], [2, 3, 4]),
        (lambda x: x[100:], []),
        (lambda x: x[3:1], []),
        (lambda x: x[-100:2], [0, 1]),
        (lambda x: lax.dynamic_slice(x, (4,), (3,)), [2, 3, 4]),
        (lambda x: lax.dynamic_slice(x, (-1,), (3,)), [2, 3, 4]),
        (lambda x: lax.dynamic_slice(x, (-100,), (3,)), [0, 1, 2]),
        (lambda x: lax.dynamic_update_slice(x, jnp.ones(3), (4,)), [0, 1, 1, 1, 1]),
        (lambda x: lax.dynamic_index_in_dim(x, 9), [4]),
        (lambda x: jnp.take(x, 7), np.nan),
        (lambda x: jnp.take(x, -7), np.nan),
        (lambda x: jnp.take(x, -1), 4.0),
        (lambda x: jnp.take(x, 7, mode="clip"), 4.0),
        (lambda x: jnp.take(x, 7, mode="wrap"), 2.0),
        (lambda x: jnp.take_along_axis(x, jnp.array([7, -1, -7]), 0), [np.nan, 4, np.nan]),
    ],
)
def test_reads_out_of_bounds(read, expected):
    equal(read(FIVE), expected)
    equal(jit(read)(FIVE), expected)


def test_a_read_out_of_bounds_looks_as_the_page_shows_it():
    assert repr(TEN[11]) == "Array(9, dtype=int32)"
    assert repr(jnp.arange(10.0).at[11].get()) == "Array(9., dtype=float32)"
    with pytest.raises(IndexError):
        np.arange(10)[11]


@pytest.mark.parametrize(
    ("x", "fill"), [(TEN, -(2**31)), (jnp.arange(3, dtype="uint8"), 255), (jnp.array([True]), True)], ids=str
)
def test_fill_values_of_types_without_nan(x, fill):
    assert x.at[100].get(mode="fill").item() == fill


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda x: x.at[11].set(9.0), [0, 1, 2, 3, 4]),
        (lambda x: x.at[-6].set(9.0), [0, 1, 2, 3, 4]),
        (lambda x: x.at[-1].set(9.0), [0, 1, 2, 3, 9]),
        (lambda x: x.at[jnp.array([1, 7])].add(10.0), [0, 11, 2, 3, 4]),
        (lambda x: x.at[11].set(9.0, mode="clip"), [0, 1, 2, 3, 9]),
        (lambda x: x.at[-6].set(9.0, mode="clip"), [9, 1, 2, 3, 4]),
    ],
)
def test_writes_out_of_bounds_are_dropped(write, expected):
    equal(write(FIVE), expected)
    equal(jit(write)(FIVE), expected)


def test_nanarg_of_nothing_but_nan_is_minus_one():
    nans = jnp.array([jnp.nan, jnp.nan])
    assert int(jnp.nanargmin(nans)) == int(jnp.nanargmax(nans)) == -1


def test_derivatives_out_of_bounds_follow_the_reads_and_writes():
    equal(grad(lambda x: x[7])(FIVE), [0, 0, 0, 0, 1])
    equal(grad(lambda x: x.at[7].set(1.0).sum())(FIVE), [1, 1, 1, 1, 1])
    equal(grad(lambda x: x.at[1].set(1.0).sum())(FIVE), [1, 0, 1, 1, 1])


# ------------------------------------------------------------------------------ non-array inputs


@pytest.mark.parametrize("value", [[1, 2, 3], (1, 2, 3)], ids=["list", "tuple"])
def test_lists_are_refused_where_numpy_takes_them(value):
    message = f"sum requires ndarray or scalar arguments, got {type(value)} at position 0."
    with pytest.raises(TypeError) as error:
        jnp.sum(value)
    assert str(error.value) == message
    assert "jnp.asarray" in error.value.__notes__[0]
    assert int(jnp.sum(jnp.array(value))) == 6


# ----------------------------------------------------------------------------------- control flow


def branch(x):
    if x < 3:
        return 3.0 * x**2
    return -4 * x


def test_python_control_flow_with_grad():
    assert float(grad(branch)(2.0)) == 12.0
    assert float(grad(branch)(4.0)) == -4.0


def test_python_loops_unroll_under_jit():
    @jit
    def f(x):
        for _ in range(3):
            x = 2 * x
        return x

    @jit
    def g(x):
        y = 0.0
        for i in range(x.shape[0]):
            y = y + x[i]
        return y

    assert int(f(3)) == 24
    assert float(g(jnp.array([1.0, 2.0, 3.0]))) == 6.0


def test_a_branch_on_a_value_fails_under_jit_and_says_why():
    with pytest.raises(jax.errors.TracerBoolConversionError) as error:
        jit(branch)(2)
    message = str(error.value)
    assert message.startswith("Attempted boolean conversion of traced array with shape bool[].")
    assert "branch at " in message and "test_sharp_bits.py" in message
    assert "depends on the value of the argument x" in message


def test_static_arguments_bring_values_back():
    assert float(jit(branch, static_argnums=(0,))(2.0)) == 12.0

    def f(x, n):
        y = 0.0
        for i in range(n):
            y = y + x[i]
        return y

    assert float(jit(f, static_argnums=(1,))(jnp.array([2.0, 3.0, 4.0]), 2)) == 5.0
    assert float(jit(f, static_argnames="n")(jnp.array([2.0, 3.0, 4.0]), n=3)) == 9.0


def test_shapes_may_not_depend_on_values():
    def example_fun(length, val):
        return jnp.ones((length,)) * val

    equal(example_fun(5, 4), [4.0] * 5)
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values of integer type") as error:
        jit(example_fun)(10, 4)
    assert "static_argnums" in str(error.value)
    assert "depends on the value of the argument length" in str(error.value)
    traced = []
    good = jit(lambda length, val: (traced.append(length), example_fun(length, val))[1], static_argnums=(0,))
    equal(good(10, 4), [4.0] * 10)
    equal(good(5, 4), [4.0] * 5)
    equal(good(5, 3), [3.0] * 5)
    assert traced == [10, 5]


def test_cond():
    operand = jnp.array([0.0])
    for wrap in (lambda f: f, jit):
        f = wrap(lambda p, x: lax.cond(p, lambda x: x + 1, lambda x: x - 1, x))
        equal(f(True, operand), [1.0])
        equal(f(False, operand), [-1.0])


def test_relatives_of_cond():
    x = jnp.array([-1.0, 0.5, 2.0])
    equal(lax.select(x > 0, x, -x), [1, 0.5, 2])
    equal(jnp.where(x > 0, x, 0), [0, 0.5, 2])
    equal(jnp.select([x < 0, x < 1], [x - 10, x + 10], 0.0), [-11, 10.5, 0])
    equal(jnp.piecewise(x, [x < 0, x >= 1], [-1.0, lambda v: v * 2, 7.0]), [-1, 7, 4])
    assert int(lax.switch(1, [lambda v: v, lambda v: v * 2], 21)) == 42


def test_while_loop():
    result = lax.while_loop(lambda x: x < 10, lambda x: x + 1, 0)
    assert repr(result) == "Array(10, dtype=int32, weak_type=True)"


def test_fori_loop():
    result = lax.fori_loop(0, 10, lambda i, x: x + i, 0)
    assert repr(result) == "Array(45, dtype=int32, weak_type=True)"


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_loops_and_branches_are_differentiable(wrap):
    def by_cond(x):
        return lax.cond(x > 0, lambda x: x**2, lambda x: -x, x)

    def by_scan(x):
        return lax.scan(lambda c, _: (c * x, None), 1.0, None, length=3)[0]

    def by_fori(x):
        return lax.fori_loop(0, 3, lambda _, c: c * x, 1.0)

    def by_while(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))[1]

    assert float(wrap(grad(by_cond))(3.0)) == 6.0
    assert float(wrap(grad(by_cond))(-3.0)) == -1.0
    for f in (by_scan, by_fori, by_while):
        assert float(wrap(lambda x, f=f: jax.jvp(f, (x,), (1.0,))[1])(2.0)) == 12.0
    for f in (by_scan, by_fori):
        assert float(wrap(grad(f))(2.0)) == 12.0


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_while_loops_are_differentiable_in_reverse_too(wrap):
    """The page's table says forward mode only. Here the runtime owns its memory: no trip count is needed."""

    def power(x, n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))[1]

    def power_by_fori(x, n):
        return lax.fori_loop(0, n, lambda _, c: c * x, 1.0)

    for f in (power, power_by_fori):
        assert float(wrap(grad(f))(2.0, 3)) == 12.0
        equal(wrap(jax.vmap(grad(f)))(jnp.array([2.0, 3.0, 5.0]), jnp.array([3, 2, 0])), [12.0, 6.0, 0.0])
        scanned = wrap(grad(lambda x, f=f: lax.scan(lambda c, n: (c + f(x, n), None), 0.0, jnp.arange(4))[0]))
        assert float(scanned(2.0)) == 1 + 2 * 2 + 3 * 4


# --------------------------------------------------------------------------------- dynamic shapes


def nansum(x):
    return x[~jnp.isnan(x)].sum()


def test_boolean_masks_need_concrete_values():
    x = jnp.array([1, 2, jnp.nan, 3, 4])
    assert float(nansum(x)) == 10.0
    assert float(jit(nansum)(x)) == 10.0  # JAX raises, although the sum has a static shape
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError, match=r"must be concrete; got bool\[5\]"):
        jit(lambda x: x[~jnp.isnan(x)])(x)


def test_where_does_the_same_with_static_shapes():
    nansum_2 = jit(lambda x: jnp.where(~jnp.isnan(x), x, 0).sum())
    assert float(nansum_2(jnp.array([1, 2, jnp.nan, 3, 4]))) == 10.0


def test_size_makes_dynamic_results_static():
    x = jnp.array([0, 1, 1])
    with pytest.raises(jax.errors.ConcretizationTypeError, match="size argument of jnp.nonzero"):
        jit(jnp.nonzero)(x)
    equal(jit(functools.partial(jnp.nonzero, size=3, fill_value=-1))(x)[0], [1, 2, -1])


# ---------------------------------------------------------------------------------- debugging NaNs


def test_nan_checker_eager():
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="invalid value"):
        jnp.divide(0.0, 0.0)
    assert np.isnan(jnp.divide(0.0, 0.0))


def test_nan_checker_finds_the_operation_inside_a_jitted_function():
    @jit
    def f(x, y):
        a = x * y
        b = (x + y) / (x - y)
        c = a + 2
        return a + b * c

    x, y = jnp.array([2.0, 0.0]), jnp.array([3.0, 0.0])
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=r"invalid value \(nan\).*div"):
        f(x, y)
    assert np.isnan(f(x, y)[1])


def test_nan_checker_lets_finite_and_infinite_values_pass():
    with jax.debug_nans(True):
        assert np.isinf(jnp.log(jnp.zeros(1))[0])
        assert float(jit(jnp.sqrt)(4.0)) == 2.0
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        jnp.log(jnp.zeros(1))


def test_nan_checker_by_flag():
    jax.config.update("jax_debug_nans", True)
    try:
        with pytest.raises(FloatingPointError, match="invalid value"):
            jnp.log(-jnp.ones(5))
    finally:
        jax.config.update("jax_debug_nans", False)


# -------------------------------------------------------------------------------- 64-bit precision


def test_64_bits_are_truncated_with_a_warning():
    with pytest.warns(UserWarning, match="Explicitly requested dtype.*float64.*truncated to dtype float32"):
        x = jnp.zeros(3, dtype=jnp.float64)
    assert x.dtype == np.float32


def test_64_bits_without_having_asked_are_truncated_silently():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jnp.asarray(np.arange(3)).dtype == np.int32
        assert jnp.sin(np.ones(3)).dtype == np.float32
        assert jnp.zeros(3, dtype=float).dtype == np.float32


def test_64_bits_within_a_scope_and_by_flag():
    with jax.enable_x64(True):
        assert jnp.zeros(3, dtype=jnp.float64).dtype == np.float64
        assert jnp.arange(3).dtype == np.int64
        assert jit(lambda x: x + 1)(1.0).dtype == np.float64
    assert jnp.arange(3).dtype == np.int32
    jax.config.update("jax_enable_x64", True)
    try:
        assert jnp.arange(3.0).dtype == np.float64
    finally:
        jax.config.update("jax_enable_x64", False)


# ---------------------------------------------------------------------- divergences from NumPy

EXTREMES = np.array([254, 255, 256, 257, -1, -1.5, 1e10, -1e10, np.nan, np.inf, -np.inf, 1.9], np.float32)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("uint8", [254, 255, 255, 255, 0, 0, 255, 0, 0, 255, 0, 1]),
        ("int8", [127, 127, 127, 127, -1, -1, 127, -128, 0, 127, -128, 1]),
        ("uint16", [254, 255, 256, 257, 0, 0, 65535, 0, 0, 65535, 0, 1]),
        ("int16", [254, 255, 256, 257, -1, -1, 32767, -32768, 0, 32767, -32768, 1]),
        ("uint32", [254, 255, 256, 257, 0, 0, 2**32 - 1, 0, 0, 2**32 - 1, 0, 1]),
        ("int32", [254, 255, 256, 257, -1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31), 1]),
        ("int4", [7, 7, 7, 7, -1, -1, 7, -8, 0, 7, -8, 1]),
        ("uint4", [15, 15, 15, 15, 0, 0, 15, 0, 0, 15, 0, 1]),
        ("bool", [True] * 12),
    ],
)
def test_float_to_integer_casts_saturate(dtype, expected):
    x = jnp.asarray(EXTREMES)
    assert x.astype(dtype).tolist() == expected
    assert jit(lambda x: x.astype(dtype))(x).tolist() == expected


def test_the_cast_on_the_page():
    equal(jnp.arange(254.0, 258.0).astype("uint8"), [254, 255, 255, 255])


@pytest.mark.parametrize(
    ("source", "values", "target", "expected"),
    [
        ("int32", [-1, 300, 2**31 - 1], "uint8", [255, 44, 255]),
        ("int32", [-1], "uint32", [2**32 - 1]),
        ("uint32", [2**32 - 1], "int32", [-1]),
        ("int32", [7, 8, -8, -9, 100], "int4", [7, -8, -8, 7, 4]),
    ],
)
def test_integer_to_integer_casts_wrap(source, values, target, expected):
    x = jnp.array(values, dtype=source)
    assert x.astype(target).tolist() == expected
    assert jit(lambda x: x.astype(target))(x).tolist() == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("int32", "float32", "float32"),
        ("int32", "float16", "float16"),
        ("int32", "uint32", "int32"),
        ("int8", "uint8", "int16"),
        ("bfloat16", "float16", "float32"),
        ("bool", "int8", "int8"),
        ("float32", "complex64", "complex64"),
    ],
)
def test_promotion_keeps_to_narrow_types(left, right, expected):
    assert (jnp.ones(1, left) + jnp.ones(1, right)).dtype == expected
    assert (jnp.ones(1, right) * jnp.ones(1, left)).dtype == expected
    assert jnp.promote_types(left, right) == expected


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "int8", "uint8", "complex64"])
def test_python_scalars_do_not_widen(dtype):
    x = jnp.ones(1, dtype)
    assert (x + 1).dtype == x.dtype
    assert (2 * x).dtype == x.dtype
