"""Row groups: right numbers, no memory for what only the group reads, no wrong neighbours."""

import numpy as np
import pytest

from catena.runtime import threads
from compiled import compile_fn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 200)).astype(np.float32)


def wide(b, v, shape):
    """A value of one element per row along the rows of `shape`."""
    return b.broadcast_in_dim(v, shape, range(v.ndim))


def softmax(b, x):
    axis = x.ndim - 1
    e = b.map("exp", b.map("sub", x, wide(b, b.reduce("max", x, [axis]), x.shape)))
    return b.map("div", e, wide(b, b.reduce("sum", e, [axis]), x.shape))


def np_softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(b, x, scale):
    n = b.constant(np.float32(x.shape[-1]))
    rows = x.shape[:-1]
    mean = b.map("div", b.reduce("sum", x, [x.ndim - 1]), b.full(rows, n))
    centred = b.map("sub", x, wide(b, mean, x.shape))
    variance = b.map("div", b.reduce("sum", b.map("mul", centred, centred), [x.ndim - 1]), b.full(rows, n))
    factor = b.map("rsqrt", b.map("add", variance, b.full(rows, np.float32(1e-5))))
    scaled = b.map("mul", centred, wide(b, factor, x.shape))
    return b.map("mul", scaled, b.broadcast_in_dim(scale, x.shape, [x.ndim - 1])), mean


def np_layer_norm(x, scale):
    mean = x.mean(-1)
    centred = x - mean[..., None]
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale, mean


def close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6)


SHAPES = [(300, 200), (7, 5000), (2, 40000), (4, 3, 50, 33), (1, 300, 1, 77), (5000, 17)]


@pytest.mark.parametrize("shape", SHAPES)
def test_softmax(shape):
    x = RNG.normal(size=shape).astype(np.float32)
    program = compile_fn(softmax, x)
    close(program(x)[0], np_softmax(x))
    assert program.temporary_bytes == 0, "exponentials should stay in the scratch block"


def for_wide_vectors(f, *args):
    """The program of a function and its text, for a processor with vectors of 64 bytes."""
    import catena as jax
    from catena.compiler.machine import X86_64_V4
    from catena.compiler.native import compile as compiler

    closed = jax.make_jaxpr(f)(*args)
    return str(compiler.program_of(closed, machine=X86_64_V4)), compiler.text_of(closed, machine=X86_64_V4)


def gated(x):
    """Rows, each times a number of its own that takes some functions."""
    from catena import numpy as jnp

    s = jnp.mean(x, axis=-1)
    return x * (jnp.tanh(s) * jnp.exp(-s * s) + jnp.sin(s))[..., None]


@pytest.mark.share(4)
@pytest.mark.parametrize("shape", [(5000, 33), (1003, 40), (7, 301, 40), (3, 2, 40_000), (300, 2000), (90, 4, 2, 50)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_numbers_of_rows_are_computed_in_lanes(shape, dtype):
    """Blocks are no multiples of a vector, and the last ones may be shorter than one."""
    import catena as jax

    with jax.enable_x64(True):
        x = RNG.normal(size=shape).astype(dtype)
        s = x.mean(-1, keepdims=True, dtype=np.float64)
        want = x * (np.tanh(s) * np.exp(-s * s) + np.sin(s))
        tolerance = {"float64": 1e-13, "float32": 2e-6, "float16": 4e-3}[dtype]
        np.testing.assert_allclose(jax.jit(gated)(x).astype(float), want, rtol=tolerance, atol=tolerance)


def test_a_row_has_the_number_that_it_has_alone():
    """Whatever lane of a block it is in."""
    import catena as jax

    x = RNG.normal(size=(1003, 40)).astype(np.float32)
    y = np.asarray(jax.jit(gated)(x))
    for first in (1, 5, 100):
        np.testing.assert_array_equal(jax.jit(gated)(x[first:]), y[first:])


def test_functions_of_rows_have_vectors():
    program, text = for_wide_vectors(gated, np.zeros((5000, 40), np.float32))
    assert "at a time" in program and "call <16 x float> @catena.tanh" in text


def test_rows_that_are_added_up_one_by_one_are_no_groups():
    import catena as jax

    for columns, grouped in ((16, False), (17, True)):
        x = RNG.normal(size=(5000, columns)).astype(np.float32)
        assert ("at a time" in for_wide_vectors(jax.nn.softmax, x)[0]) == grouped
        close(jax.jit(jax.nn.softmax)(x), np_softmax(x))


def test_rows_too_long_for_the_cache_are_not_grouped():
    import catena as jax

    for rows, columns, grouped in ((200, 2000, True), (2, 200_000, False)):
        x = RNG.normal(size=(rows, columns)).astype(np.float32)
        close(compile_fn(softmax, x)(x)[0], np_softmax(x))
        assert ("at a time" in for_wide_vectors(jax.nn.softmax, x)[0]) == grouped


def test_layer_norm_with_two_results():
    scale = RNG.normal(size=200).astype(np.float32)
    got = compile_fn(layer_norm, X, scale)(X, scale)
    for g, want in zip(got, np_layer_norm(X, scale), strict=True):
        close(g, want)


def test_masks_that_keep_row_dimensions_apart():
    x = RNG.normal(size=(3, 4, 40, 50)).astype(np.float32)
    mask = RNG.random((40, 50)) < 0.8

    def masked(b, x, m):
        low = b.full(x.shape, np.float32(-1e9))
        return softmax(b, b.map("select", b.broadcast_in_dim(m, x.shape, [2, 3]), x, low))

    close(compile_fn(masked, x, mask)(x, mask)[0], np_softmax(np.where(mask, x, np.float32(-1e9))))


def test_a_row_that_is_read_from_another_place():
    """The kernel that reads the rows in reverse must wait until all of them are there."""

    def reversed_rows(b, x):
        y = softmax(b, x)
        s = b.reduce("sum", b.map("mul", y, x), [1])
        return y, b.map("add", b.reverse(y, [0]), wide(b, s, x.shape))

    y = np_softmax(X)
    got = compile_fn(reversed_rows, X)(X)
    close(got[0], y)
    close(got[1], y[::-1] + (y * X).sum(1, keepdims=True))


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_picking_one_element_of_each_row(mode):
    labels = RNG.integers(-300, 300, 300).astype(np.int32)

    class Numbers:
        offset_dims, collapsed_slice_dims, start_index_map = (), (1,), (1,)
        operand_batching_dims, start_indices_batching_dims = (0,), (0,)

    def picked(b, x, i):
        y = softmax(b, x)
        fill = b.constant(np.float32(-5))
        one = b.gather(y, b.reshape(i, (300, 1)), Numbers, (1, 1), mode, fill)
        return b.map("sub", wide(b, one, x.shape), y)

    y, at = np_softmax(X), np.clip(labels, 0, 199)
    one = y[np.arange(300), at]
    if mode == "fill":
        one = np.where(at == labels, one, np.float32(-5))
    close(compile_fn(picked, X, labels)(X, labels)[0], one[:, None] - y)


def test_complex_rows():
    z = (X + 1j * X[:, ::-1]).astype(np.complex64)

    def normalised(b, z):
        total = b.reduce("sum", z, [1])
        return b.map("div", z, wide(b, total, z.shape))

    np.testing.assert_allclose(compile_fn(normalised, z)(z)[0], z / z.sum(1, keepdims=True), rtol=1e-3)


def test_a_loop_that_normalises_its_carry_in_place():
    import catena as jax
    from catena import lax
    from catena import numpy as jnp

    def step(_, x):
        e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
        return e / jnp.sum(e, axis=1, keepdims=True) + x[:, ::-1]

    x = X
    for _ in range(3):
        x = np_softmax(x) + x[:, ::-1]
    close(jax.jit(lambda x: lax.fori_loop(0, 3, step, x))(X), x)


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    x = RNG.normal(size=(3000, 333)).astype(np.float32)
    scale = np.ones(333, np.float32)
    shared = compile_fn(layer_norm, x, scale)(x, scale)
    monkeypatch.setenv("CATENA_NUM_THREADS", "1")
    alone = compile_fn(layer_norm, x, scale)(x, scale)
    assert threads.count() >= 1
    for a, b in zip(shared, alone, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("columns", [17, 32, 1000])
def test_lanes_lie_along_rows_that_are_folded_with_numbers_of_their_own(columns):
    """How many arrays have one number for each row does not matter: they are read once for each."""
    import catena as jax
    from catena import numpy as jnp
    from catena.compiler.machine import X86_64_V4
    from catena.compiler.native import compile as compiler

    def scaled(x, *numbers):
        for n in numbers:
            x = (x - n[:, None]) * n[:, None]
        return jnp.sum(x, axis=1), jnp.max(jnp.abs(x), axis=1)

    x = RNG.normal(size=(3000, columns)).astype(np.float32)
    for count in (0, 1, 2, 5):
        numbers = [x[:, k] + 1 for k in range(count)]
        assert "gather" not in compiler.text_of(jax.make_jaxpr(scaled)(x, *numbers), machine=X86_64_V4)
        wide = scaled(jnp.asarray(x), *map(jnp.asarray, numbers))
        for ours, eager in zip(jax.jit(scaled)(x, *numbers), wide, strict=True):
            np.testing.assert_allclose(ours, eager, rtol=1e-4, atol=1e-4)
