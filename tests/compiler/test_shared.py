"""One function at many batch sizes: kernels without their extents, linked where their machine code is known."""

import gc
import re
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.emit import contract
from catena.compiler.native import compile as compiling
from catena.compiler.native import lengths, link, shared
from catena.core.context import context
from catena.runtime import native
from shares import alternate

RNG = np.random.default_rng(6)
SIZES = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 1000, 1024, 10007]
DTYPES = ["float32", "float64", "bfloat16", "float16", "int32", "int8", "uint16", "bool", "complex64"]


def values(shape, dtype="float32"):
    x = RNG.normal(size=shape) * 3
    if dtype == "bool":
        return jnp.asarray(x > 0)
    if dtype == "complex64":
        return jnp.asarray((x + 1j * RNG.normal(size=shape)).astype(dtype))
    if dtype in ("int32", "int8", "uint16"):
        return jnp.asarray(np.abs(x * 5).astype(dtype))
    return jnp.asarray(x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype))


def same(f, *args, rtol=2e-5, atol=1e-5):
    """Compiled is as evaluated, within a few ulps of the dtype."""
    got, want = jax.jit(f)(*args), f(*args)
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        kind = np.complex128 if jnp.iscomplexobj(w) else np.float64
        coarse = {"bfloat16": 500, "float16": 100}.get(w.dtype.name, 1)
        np.testing.assert_allclose(
            np.asarray(g).astype(kind), np.asarray(w).astype(kind), rtol=rtol * coarse, atol=atol * coarse
        )


def softmax(x):
    e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    return e / jnp.sum(e, axis=-1, keepdims=True)


def layer_norm(x, scale):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return scale * centred / jnp.sqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


# ---- the same function at every size -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise_at_every_size(dtype):
    def f(x, y):
        z = (x + y) * x - y if dtype != "bool" else (x ^ y) | x
        return z, x == y, jnp.where(x == y, x, z)

    for n in alternate(3, SIZES, DTYPES.index(dtype)):
        same(f, values(n, dtype), values(n, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_full_reductions_at_every_size(dtype):
    def f(x):
        out = [jnp.sum(x), jnp.any(x != 0)]
        return out if dtype == "complex64" or not x.size else [*out, jnp.max(x), jnp.argmax(x), jnp.min(x)]

    for n in alternate(3, SIZES, DTYPES.index(dtype)):
        same(f, values(n, dtype), rtol=1e-4, atol=1e-3)


@pytest.mark.share(3)
@pytest.mark.parametrize("columns", [5, 16, 77])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_and_columns_at_every_size(dtype, columns):
    def f(x, b):
        rows, columns = jnp.sum(x, axis=1), jnp.sum(x, axis=0)
        return rows, columns, x + b if dtype != "bool" else x & b

    for n in alternate(3, SIZES, DTYPES.index(dtype)):
        same(f, values((n, columns), dtype), values(columns, dtype), rtol=1e-4, atol=2e-3)


@pytest.mark.share(24)
@pytest.mark.parametrize("columns", [3, 32, 100])
@pytest.mark.parametrize("n", SIZES[1:])
def test_groups_of_rows_at_every_size(n, columns):
    def loss(x, scale):
        return jnp.sum(softmax(layer_norm(x, scale)) ** 2)

    x, scale = values((n, columns)), values(columns)
    same(softmax, x)
    same(layer_norm, x, scale)
    same(jax.grad(loss, (0, 1)), x, scale, rtol=1e-3, atol=1e-4)


def test_groups_of_rows_in_two_dimensions():
    for a, b in [(2, 300), (3, 300), (70, 9), (64, 64), (65, 33)]:
        same(lambda x: softmax(x.transpose(1, 0, 2)), values((a, b, 40)))


@pytest.mark.parametrize("columns", [1, 8, 50])
def test_arguments_and_running_sums_at_every_size(columns):
    def f(x):
        return jnp.argmax(x, 0), jnp.argmin(x, 1), jnp.cumsum(x, 0), jnp.cumsum(x, 1), jnp.cumprod(x[:, 0])

    for n in alternate(2, SIZES[1:], (1, 8, 50).index(columns)):
        same(f, values((n, columns)) / 4, rtol=1e-4, atol=1e-3)


def test_views_at_every_size():
    def f(x):
        wide = jnp.pad(x, ((1, 2), (0, 3)))
        return x.T + 1, x[::-1] * 2, x[:, ::-1] * 3, x[::2] - 1, x[:, ::3] - 1, jnp.concatenate([x, -x]), wide * 2

    for n in SIZES:
        same(f, values((n, 24)))


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_updates_in_place_at_every_size(dtype):
    step = jax.jit(lambda p, g: p - g * p, donate_argnums=0)
    for n in SIZES:
        p, g = values((n, 7), dtype), values((n, 7), dtype)
        want = np.asarray(p) - np.asarray(g) * np.asarray(p)
        np.testing.assert_allclose(step(jnp.array(p), g), want, rtol=2e-5, atol=1e-5)


def test_scatters_at_every_size():
    for n in SIZES[1:]:
        at = jnp.asarray(RNG.integers(0, 13, n).astype(np.int32))
        same(lambda x, at, u: x.at[at].add(u), values((13, 6)), at, values((n, 6)), rtol=1e-3, atol=1e-3)
        same(lambda x, at: x.at[:, 1].set(2.0)[at % x.shape[0]], values((n, 6)), at)


def test_loops_at_every_size():
    def f(x):
        return jax.lax.fori_loop(0, 3, lambda _, y: jnp.sin(y) * 0.5 + x, x)

    for n in (1, 7, 16, 33, 1000, 10007, 70001):
        same(f, values(n))


@pytest.mark.parametrize("n", [1 << 20, (1 << 20) + 5, 300_007])
def test_chunks_of_large_arrays(n):
    def f(x):
        y = jnp.tanh(x) * 2
        return y, jnp.sum(x), jnp.max(x), jnp.argmin(x)

    same(f, values(n), rtol=1e-4, atol=1e-2)
    same(lambda x: (jnp.sum(x, 0), jnp.max(x, 0), jnp.sum(x, 1)), values((n // 64, 64)), rtol=1e-3, atol=1e-2)


def test_threads_do_not_change_results(monkeypatch):
    def f(x):
        return jnp.sum(x), jnp.sum(x, 0), softmax(x), jnp.argmax(x), jnp.tanh(x.T)

    for n in (5000, 5001, 20_000):
        x = values((n, 67))
        threaded = jax.jit(lambda x: f(x))(x)
        with monkeypatch.context() as patch:
            patch.setenv("CATENA_NUM_THREADS", "1")
            patch.setenv("CATENA_CACHE", "0")
            alone = jax.jit(lambda x: f(x))(x)
        for a, b in zip(threaded, alone, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


# ---- linking -----------------------------------------------------------------------------------------------


def forget(monkeypatch):
    """Programs that are loaded are not found by those that are compiled from now on."""
    for registry in ("_codes", "_by_name"):
        monkeypatch.setattr(native, registry, type(native._codes)())


@pytest.fixture
def compiled(monkeypatch):
    """The plans of all programs that are compiled, without what was on disk or loaded before, each by itself."""
    plans, plan = [], shared.plan
    monkeypatch.setattr(lengths, "family_of", lambda *told: None)
    forget(monkeypatch)
    monkeypatch.setenv("CATENA_CACHE", "0")

    def watched(*args, **kwargs):
        plans.append(plan(*args, **kwargs))
        return plans[-1]

    monkeypatch.setattr(compiling.shared, "plan", watched)
    return plans


def defined(plan) -> int:
    return sum(part.text.count("define dso_local void @f") for part in plan.kernels)


def imported(plan) -> set:
    return {function.key for function in plan.entry.imports}


CASES = {
    "elementwise": (lambda x: jnp.sin(x) * 2 + x, lambda n: values((n, 64))),
    "softmax": (softmax, lambda n: values((n, 100))),
    "gradient": (jax.grad(lambda x: jnp.sum(softmax(x) ** 2)), lambda n: values((n, 100))),
    "columns": (lambda x: jnp.sum(jnp.exp(x), axis=0), lambda n: values((n, 100))),
    "everything": (lambda x: jnp.sum(jnp.exp(x)), lambda n: values((n, 64))),
    "chunks": (lambda x: jnp.tanh(x) + 1, lambda n: values((n, 2048))),
    "ragged": (lambda x: jnp.exp(x) + 1, lambda n: values(n * 10 + 1)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_a_second_batch_size_compiles_nothing_again(case, compiled):
    f, make = CASES[case]
    step = jax.jit(f)
    for n in (400, 450, 480):  # one number of levels of sums (see `plan.cascades`), on vectors of any width
        np.testing.assert_allclose(step(make(n)).shape, jax.eval_shape(f, make(n)).shape)
    first, *others = compiled
    assert defined(first) > 0 and not first.codes
    for plan in others:
        assert defined(plan) == 0 and imported(plan) and imported(plan) <= set(first.kernels[-1].exports.values())
    assert others[0].entry.text == others[1].entry.text  # the first may be too little work for threads


ROWS = {
    "elementwise": lambda x, b: jnp.sin(x) * b + 1,
    "sums": lambda x, b: jnp.sum(x, axis=1),
    "extremes": lambda x, b: (jnp.max(x, axis=1), jnp.argmin(x + b, axis=1)),
    "softmax": lambda x, b: softmax(x),
    "layer norm": lambda x, b: layer_norm(x, b),
    "mean of all": lambda x, b: x - jnp.mean(x),
}


# Of one number of levels of sums (see `plan.cascades`), on vectors of any width; of the shorter ones, all vectors are
# written.
@pytest.mark.share(2)
@pytest.mark.parametrize("lengths", [(301, 311, 323), (101, 103, 110)])
@pytest.mark.parametrize("case", ROWS)
@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_another_length_of_rows_compiles_nothing_again(case, lengths, compiled):
    step = jax.jit(ROWS[case])
    for n in lengths:
        step(values((100, n)), values(n))
    first, *others = compiled
    assert defined(first) > 0
    assert [defined(plan) for plan in others] == [0, 0]


PRODUCTS = {
    "rows": (lambda x, w: x @ w, lambda n: (values((n, 64)), values((64, 128)))),
    "terms": (lambda x, w: x @ w, lambda n: (values((64, n)), values((n, 128)))),
    "an epilogue": (lambda x, w: jnp.tanh(x @ w) + 1, lambda n: (values((n, 64)), values((64, 128)))),
    "a gradient": (jax.grad(lambda w, x: jnp.mean((x @ w) ** 2)), lambda n: (values((64, 128)), values((n, 64)))),
}


@pytest.mark.parametrize("case", PRODUCTS)
@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_products_of_other_sizes_compile_nothing_again(case, compiled):
    f, make = PRODUCTS[case]
    step = jax.jit(f)
    for n in (305, 311, 317):  # which leave rows below tiles of 2, 4, 6 and 8
        step(*make(n))
    first, *others = compiled
    assert defined(first) > 0
    assert [defined(plan) for plan in others] == [0, 0]


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_the_size_of_a_panel_is_in_no_text(compiled):
    step = jax.jit(lambda x, w: x @ w)
    for n in (251, 261, 241):
        x, w = values((96, n)), values((n, 640))
        np.testing.assert_allclose(step(x, w), np.asarray(x) @ np.asarray(w), rtol=1e-4, atol=1e-4)
    assert [defined(plan) for plan in compiled[1:]] == [0, 0]


TURNED = {
    "transposition": (lambda x: x.T + 1, lambda n: (values((n, n + 16)),)),
    "transposition of a batch": (lambda x: x.swapaxes(1, 2) * 2, lambda n: (values((5, n, n + 16)),)),
    "product with a vector": (lambda x, y: x @ y, lambda n: (values((200, n)), values(n))),
}


@pytest.mark.parametrize("case", TURNED)
@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_rows_done_at_once_lie_at_any_distance(case, compiled):
    f, make = TURNED[case]
    step = jax.jit(f)
    for n in (301, 411, 523):
        args = make(n)
        np.testing.assert_allclose(np.asarray(step(*args)), f(*map(np.asarray, args)), rtol=1e-4, atol=1e-3)
    first, *others = compiled
    assert defined(first) > 0
    assert [defined(plan) for plan in others] == [0, 0]


SORTS = {
    "keys": (jnp.sort, lambda n: (values(n),)),
    "rows": (lambda x: jnp.sort(x, axis=-1), lambda n: (values((40, n)),)),
    "places": (jnp.argsort, lambda n: (values(n),)),
    "several keys": (lambda x, y: jnp.lexsort((x, y)), lambda n: (values(n), jnp.round(values(n)))),
    "the greatest": (lambda x: jax.lax.top_k(x, 10)[1], lambda n: (values(20 * n),)),
    "long": (lambda x: (jnp.sort(x), jnp.argsort(x)), lambda n: (values(300 * n),)),
}


@pytest.mark.parametrize("case", SORTS)
@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_sorts_of_other_lengths_compile_nothing_again(case, compiled):
    f, make = SORTS[case]
    step = jax.jit(f)
    for n in (301, 411, 501):  # whose places take nine bits
        step(*make(n))
    first, *others = compiled
    assert defined(first) > 0
    assert [defined(plan) for plan in others] == [0, 0]


PLACES = {
    "positions": (lambda x: jnp.nonzero(x > 0, size=9, fill_value=-1)[0], lambda n: (values(n),)),
    "rows": (lambda x, i: x[i], lambda n: (values((n, 7)), jnp.asarray(RNG.integers(-n, n, 300)))),
    "elements of rows": (
        lambda x, i: jnp.take_along_axis(x, i, 1),
        lambda n: (values((40, n)), jnp.asarray(RNG.integers(0, n, (40, 20)))),
    ),
    "updates": (lambda x, i: x.at[i].add(2.0), lambda n: (values(n), jnp.asarray(RNG.integers(-n, n, 300)))),
    "a part": (lambda x, i: jax.lax.dynamic_slice(x, (i,), (100,)), lambda n: (values(n), jnp.int32(n - 50))),
    "the median": (lambda x, i: jnp.median(x), lambda n: (values(3 * n), 0)),
    "one place": (lambda x, i: jnp.where(i > 2, x[-1], x[x.shape[0] - 9]), lambda n: (values(n), jnp.arange(900))),
    "divisors": (lambda x, i: x / (0.3 * x.shape[0]) + x / 4, lambda n: (values((n, 40)), 0)),
    "parts that are joined": (lambda x, i: jnp.concatenate([x, x * 2, x + 1]), lambda n: (values(3 * n + 1), 0)),
    "rows far from each other": (lambda x, i: x[:-2] + x[1:-1] - x[2:], lambda n: (values((9, 3 * n)), 0)),
    "halves": (lambda x, i: x[: x.size // 2] - x[x.size // 2 :], lambda n: (values(8 * n), 0)),
    "comparisons": (lambda x, i: jnp.where(i < x.shape[0], i, x.shape[0] - 1), lambda n: (values(n), jnp.arange(900))),
}


@pytest.mark.parametrize("case", PLACES)
@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_places_in_other_lengths_compile_nothing_again(case, compiled):
    f, make = PLACES[case]
    step = jax.jit(f)
    of_lengths = [make(n) for n in (301, 411, 501)]
    results = [np.asarray(step(*args)) for args in of_lengths]
    plans = [*compiled]
    assert len({plan.entry.text for plan in plans}) == 1
    assert [defined(plan) for plan in plans[1:]] == [0, 0]
    for args, got in zip(of_lengths, results, strict=True):
        np.testing.assert_array_equal(got, np.asarray(f(*args)))


def repeated(f):
    return lambda x: jax.lax.fori_loop(0, 3, lambda _, c: f(c), x)


APART = {  # whose lanes may not be done twice, or lie apart
    "a light loop in place": (repeated(lambda c: c * 0.5 + 1), lambda n: (values(n),)),
    "a loop in place": (repeated(jnp.sin), lambda n: (values(n),)),
    "running sums of rows": (lambda x: jnp.cumsum(x, 1), lambda n: (values((n, 9)),)),
    "a diagonal": (jnp.trace, lambda n: (values((n, n)),)),
}


@pytest.mark.parametrize("case", APART)
@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_the_last_lanes_are_in_no_text(case, compiled):
    f, make = APART[case]
    step = jax.jit(f)
    of_lengths = [make(n) for n in (1301, 1411, 1423, 1501)]
    results = [np.asarray(step(*args)) for args in of_lengths]
    plans = [*compiled]
    assert len({plan.entry.text for plan in plans}) == 1
    assert [defined(plan) for plan in plans[1:]] == [0, 0, 0]
    for args, got in zip(of_lengths, results, strict=True):
        np.testing.assert_allclose(got, np.asarray(f(*args)), rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_arrays_on_the_stack_are_of_few_sizes(compiled):
    step = jax.jit(lambda x: jnp.searchsorted(jnp.linspace(0, 1, 100), x))
    for n in (131, 147, 201, 222):
        step(values(n))
    assert len({plan.entry.text for plan in compiled}) == 1


ROUTINES = {
    "eigenvalues": (jnp.linalg.eigvalsh, lambda n: (jnp.eye(n) + 1,)),
    "factors of a batch": (jnp.linalg.cholesky, lambda n: (jnp.stack([jnp.eye(n) + 1, jnp.eye(n) * n]),)),
    "means of short rows": (jax.grad(lambda x: jnp.mean(jnp.sum(softmax(x) * x, -1))), lambda n: (values((n, 10)),)),
}


@pytest.mark.parametrize("case", ROUTINES)
@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_routines_and_short_rows_of_other_lengths_compile_nothing_again(case, compiled):
    f, make = ROUTINES[case]
    step = jax.jit(f)
    of_lengths = [make(n) for n in (301, 311, 317)]
    results = [step(*args) for args in of_lengths]
    plans = [*compiled]
    assert len({plan.entry.text for plan in plans}) == 1
    assert defined(plans[0]) > 0
    assert [defined(plan) for plan in plans[1:]] == [0, 0]
    for args, got in zip(of_lengths, results, strict=True):
        for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(f(*args)), strict=True):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-4, atol=2e-4)


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_what_is_equal_by_chance_is_not_in_the_text_of_an_entry(compiled):
    """Tiles of two products are the same functions where as many rows are left; lengths of one number are one size."""

    def f(x, w, y, v):
        return jnp.tanh(x @ w), jnp.tanh(y @ v)

    step = jax.jit(f)
    for m, n in [(305, 311), (307, 307), (311, 305), (317, 317)]:
        args = values((m, 64)), values((64, 128)), values((n, 96)), values((96, 128))
        for got, x, w in zip(step(*args), args[::2], args[1::2], strict=True):
            np.testing.assert_allclose(np.asarray(got), np.tanh(np.asarray(x) @ np.asarray(w)), rtol=1e-4, atol=1e-4)
    assert len({plan.entry.text for plan in compiled}) == 1


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, the entry defines what notes a violation")
def test_entries_that_only_call_take_llvm_no_effort(compiled):
    jax.jit(lambda x: softmax(x) @ x.T)(values((300, 64)))
    jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda _, c: jnp.sin(c) @ x, x))(values((40, 40)))
    of_calls, of_loop = (plan.entry.text for plan in compiled)
    assert [link.entry_level(text, 2) for text in (of_calls, of_loop)] == [0, 2]
    assert link.entry_level(of_calls + "\ndefine internal float @helper(float %x) {\n  ret float %x\n}", 2) == 2


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_equal_products_are_written_once_whatever_comes_after_them(compiled, monkeypatch):
    written, write = [], contract._Loops.written
    monkeypatch.setattr(contract._Loops, "written", lambda self: written.append(self) or write(self))
    x, w = values((40, 40)), values((40, 40)) * 0.05

    def f(x):
        made = [jnp.tanh((x + 1) @ w), jnp.exp((x * 2) @ w)]
        for _ in range(20):
            x = x @ w
        return made, x

    same(f, x, rtol=1e-3, atol=1e-3)
    (plan,) = compiled
    assert len(written) <= 3  # by itself, and before each of two others
    assert len(re.findall(r"^define \S+ void @f\w+\(ptr %args, i64 %k\)", plan.kernels[-1].text, re.MULTILINE)) <= 2
    assert plan.entry.text.count("\n") < 25 * 22 + 100


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_many_small_arrays_are_done_by_few_functions(compiled):
    xs = [values(10) for _ in range(200)]
    same(lambda *xs: [jnp.sum(x) for x in xs], *xs)
    same(lambda *xs: [x * 2 for x in xs], *xs)
    same(lambda x: [jnp.exp(x * k) for k in range(3)], values(4))  # few steps of one vector stay where they are
    rows = 3  # the loops over arguments and over calls, and what makes one
    assert all(defined(plan) <= 2 + rows for plan in compiled[:2]) and defined(compiled[2]) == 0
    assert all(" optnone " in plan.entry.text for plan in compiled[:2])


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, the entry defines what notes a violation")
def test_the_entry_of_a_training_step_only_calls(compiled):
    layers = [(values((m, n)), values(n)) for m, n in [(8, 16), (16, 16), (16, 4)]]

    def loss(layers, x, y, t):
        for w, b in layers:
            x = jnp.tanh(x @ w + b)
        return jnp.mean((x - y) ** 2) / (1 - 0.9**t)

    step = lambda *args: jax.tree.map(lambda p, g: p - 0.1 * g, args[0], jax.grad(loss)(*args))
    jax.jit(step)(layers, values((5, 8)), values((5, 4)), 3.0)
    assert link.entry_level(compiled[0].entry.text, 2) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_a_row_of_a_product_does_not_hang_on_its_tile(dtype):
    with jax.enable_x64(True):
        x, w = values((301, 40), dtype), values((40, 77), dtype)
        whole = np.asarray(jax.jit(jnp.matmul)(x, w))
        for n in (*range(2, 34), 100, 127, 254, 299):
            np.testing.assert_array_equal(jax.jit(jnp.matmul)(x[:n], w), whole[:n])
        long = values((70, 2000), dtype), values((2000, 40), dtype)
        parts = np.asarray(jax.jit(jnp.matmul)(*long))
        want = np.asarray(long[0], np.float64) @ np.asarray(long[1], np.float64)
        np.testing.assert_allclose(parts, want, rtol=1e-3, atol=1e-2)
        for n in (50, 51, 55, 69):
            np.testing.assert_array_equal(jax.jit(jnp.matmul)(long[0][:n], long[1]), parts[:n])


ROW_LENGTHS = [1, 31, 32, 63, 64, 65, 127, 128, 129, 144, 150, 191, 192, 255, 256, 300, 1000, 4100, 4200]


@pytest.mark.parametrize("k, dtype", [*enumerate(["float32", "float64", "bfloat16", "int32"])])
def test_rows_of_every_length(k, dtype):
    with jax.enable_x64(True):
        for n in alternate(4, ROW_LENGTHS, k):
            x, whole = values((5, n), dtype), np.arange(5 * n, dtype=np.int64).reshape(5, n) % 7
            same(lambda x: (jnp.max(x, 1), jnp.argmax(x, 1), x * 2 - 1, x[:, ::-1]), x)
            np.testing.assert_array_equal(jax.jit(lambda x: jnp.sum(x, 1))(whole), whole.sum(1))
            if dtype != "int32":
                same(lambda x: (softmax(x), jnp.mean(x, 1), jnp.sum(x * x, 1)), x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [32, 100, 128, 1000, 1024])
def test_counts_divide_alike_alone_and_in_rows(n):
    x = values((9, n))
    means = jax.jit(lambda x: jnp.mean(x, axis=1))(x)
    scaled = jax.jit(lambda x: (x / n, x * (1 / n), x / (1 / n)))(x)
    y = np.asarray(x)
    for got, want in zip(scaled, (y / np.float32(n), y * np.float32(1 / n), y / np.float32(1 / n)), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(means, jax.jit(lambda x: jnp.sum(x, axis=1) / n)(x))


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_what_runs_a_program_keeps_the_code_of_its_kernels(compiled, young):
    x = values((400, 64))
    step = jax.jit(lambda x: jnp.log1p(jnp.abs(x)) + 4).lower(x).compile()
    run = step._program.executable.native  # draws keep no more of a program
    keys = imported(compiled[-1])
    compiled.clear()
    del step
    gc.collect()
    assert run.entry is not None and keys and all(native.known(key) is not None for key in keys)


def test_programs_of_one_text_have_the_bits_of_programs_alone(monkeypatch):
    monkeypatch.setenv("CATENA_CACHE", "0")

    def scanned(x):
        return jax.lax.scan(lambda c, y: (0.9 * c + jnp.tanh(y), c), jnp.zeros(x.shape[1]), x)

    def chained(x):
        return jnp.sort(softmax(x @ x.T), axis=0), jnp.cumsum(x), jnp.mean(x[::2] ** 2)

    for f in (scanned, chained):
        xs = [values((n, 24)) for n in range(30, 50)]
        together = [jax.tree.leaves(step(x)) for step in [jax.jit(f)] for x in xs]
        for x, got in zip(xs[::6], together[::6], strict=True):
            with monkeypatch.context() as patch:
                forget(patch)
                alone = jax.tree.leaves(jax.jit(lambda x, f=f: f(x))(x))
            for a, b in zip(got, alone, strict=True):
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_what_hardly_ever_runs_is_compiled_by_itself(compiled):
    """Once for all products of a dtype: what multiplies where a tile has met subnormal numbers."""
    w = values((64, 96))
    first, second = jax.jit(lambda x: jnp.tanh(x @ w)), jax.jit(lambda x: jnp.exp(x @ w))
    for f in (first, second):
        f(values((100, 64))).block_until_ready()
    cold, others = compiled[0].kernels
    assert (len(cold.exports), cold.imports) == (1, [])
    assert set(cold.exports.values()) <= imported(compiled[0]) & imported(compiled[1])
    assert others.level > cold.level and all(part.level > cold.level for part in compiled[1].kernels)


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_code_lives_as_long_as_a_program_that_calls_it(compiled, young):
    x, y = values((400, 64)), values((500, 64))
    first, second = (jax.jit(lambda x: jnp.cosh(x) + 2) for _ in range(2))
    want = np.asarray(first(x))
    second(y)
    (key,) = imported(compiled[1])
    assert key in compiled[0].kernels[-1].exports.values() and native.known(key) is not None
    compiled.clear()
    first.clear_cache()
    del first
    gc.collect()
    assert native.known(key) is not None
    np.testing.assert_array_equal(np.asarray(second(x)), want)
    compiled.clear()
    second.clear_cache()
    del second
    gc.collect()
    assert native.known(key) is None


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_programs_say_what_they_linked(compiled):
    step = jax.jit(lambda x: jnp.sinh(x) + 2)
    texts = [step.lower(values((n, 64))).compile().as_text("llvm") for n in (400, 500)]
    assert "linked" not in texts[0]
    assert texts[1].startswith("; linked, not compiled again: f")
    assert "1 of 1 kernels linked" in step.explain(values((500, 64)))


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_a_second_run_finds_on_disk_what_it_links(tmp_path, monkeypatch, young):
    monkeypatch.setenv("CATENA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CATENA_CACHE", "1")
    compile_text, texts = link.compile_text, []
    monkeypatch.setattr(link, "compile_text", lambda text, *rest: texts.append(text) or compile_text(text, *rest))

    def run():
        gc.collect()
        forget(monkeypatch)
        step = jax.jit(lambda x: jnp.arctan(x) + 2)
        return [np.asarray(step(jnp.full((n, 64), 0.5))) for n in (400, 500)]

    first, count = run(), len(texts)
    assert count >= 2
    for a, b in zip(first, run(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(texts) == count


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_a_program_on_disk_brings_its_kernels_along(tmp_path, monkeypatch, young):
    monkeypatch.setenv("CATENA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CATENA_CACHE", "1")
    make = lambda: jax.jit(lambda x: jnp.arcsinh(x) + 2)
    forget(monkeypatch)  # what other tests had is not on this disk
    step, x = make(), jnp.full((500, 64), 0.5)
    want = [np.asarray(step(jnp.full((n, 64), 0.5))) for n in (400, 500)][1]
    forget(monkeypatch)
    monkeypatch.setattr(link, "compile_text", lambda *_: pytest.fail("compiled again"))
    np.testing.assert_array_equal(np.asarray(make()(x)), want)


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_a_program_on_disk_whose_kernels_are_gone_is_written_anew(tmp_path, monkeypatch, young):
    monkeypatch.setenv("CATENA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CATENA_CACHE", "1")
    make, x = lambda: jax.jit(lambda x: jnp.arccosh(x + 1) + 2), jnp.full((500, 64), 0.5)
    want = np.asarray(make()(x))
    for name in [code.unit.name for code in native._by_name.values() if code.unit.exports]:
        (tmp_path / name).unlink(missing_ok=True)
    forget(monkeypatch)
    np.testing.assert_array_equal(np.asarray(make()(x)), want)


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_threads_compile_and_free_the_same_kernels_at_once(compiled, young):
    def rounds(seed):
        for k in range(6):
            x = jnp.full((300 + 7 * seed + k, 64), 0.25)
            f = jax.jit(lambda x: jnp.exp2(x) * 3 + jnp.sum(x, axis=1, keepdims=True))
            np.testing.assert_allclose(np.asarray(f(x)), 2**0.25 * 3 + 16, rtol=1e-6)
            held = f  # until the next one is compiled: it links this one's kernels, whatever the other threads do
            gc.collect()
        del held
        return seed

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(rounds, range(4))) == [0, 1, 2, 3]
    assert any(plan.codes for plan in compiled)


def test_what_is_empty_is_no_kernel_of_others():
    """The text of a kernel tells nothing of its outermost extent, unless there is nothing to do."""
    f = jax.jit(lambda v, i, n: [jnp.zeros(n).at[i].add(v * k) for k in range(1, 15)], static_argnums=2)
    v, i = np.float32([1, 2, 4, 8]), np.array([0, 2, 2, 9])
    for n in (0, 4, 0, 3):
        for k, found in enumerate(f(v, i, n), 1):
            assert np.array_equal(found, np.float32([k, 0, 6 * k, 0])[:n])


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_long_functions_are_written_once(name, monkeypatch):
    """Where a nest calls them for several vectors; they have the bits of those that are written in place."""
    monkeypatch.setenv("CATENA_CACHE", "0")
    function, x = getattr(jax.lax, name), jnp.asarray(np.abs(RNG.normal(size=(50, 300))).astype(np.float32) + 0.1)

    def compiled():
        f = jax.jit(lambda x: jnp.sum(function(x) * 1.25, 1))
        found, text = np.asarray(f(x)), f.lower(x).compile().as_text("llvm")
        return found.tobytes(), re.search(rf"define internal .*@catena[.]{name}[.].* (\w+) nounwind", text)[1]

    called = compiled()
    monkeypatch.setattr(link, "LONG", 10**6)
    for registry in ("_codes", "_by_name"):
        monkeypatch.setattr(native, registry, type(native._codes)())
    assert called == (compiled()[0], "noinline") and compiled()[1] == "alwaysinline"
