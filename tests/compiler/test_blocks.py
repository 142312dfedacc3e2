"""Attention that is written by hand: the scores are not stored, and the bits are those of the program that stores them."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.native import lengths
from catena.compiler.plan import blocks, passes

D = 16


def plain(q, k, v):
    return jax.nn.softmax(q @ k.T * 0.25) @ v


def masked(q, k, v):
    """Some heads, and positions that see none behind them."""
    scores = jnp.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
    seen = jnp.tril(jnp.ones((q.shape[0], k.shape[0]), bool))
    return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)), v)


def batched(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.25
    seen = lax.broadcasted_iota(np.int32, scores.shape, 2) >= lax.broadcasted_iota(np.int32, scores.shape, 3) - 100
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores + jnp.where(seen, 0.0, -1e30), -1), v)


def shared(q, k, v):
    """Several heads of queries for each of keys."""
    scores = jnp.einsum("tgd,sd->tgs", q, k[:, 0])
    return jnp.einsum("tgs,sd->tgd", jax.nn.softmax(scores), v[:, 0])


def twice(q, k, v):
    """Each position of the second one sees all of the first."""
    x = plain(q, k, v)
    x = x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-3)
    return plain(x @ v[:D], x, jnp.tanh(x))


def kernel(q, k, v):
    """A sum over a kernel, and the nearest point, of distances that nobody stores."""
    squares = jnp.sum(q * q, 1)[:, None] + jnp.sum(k * k, 1) - 2 * q @ k.T
    return jnp.exp(-squares) @ v, jnp.argmin(squares, 1), jax.nn.logsumexp(squares, 1)


def by_rows(f):
    return lambda *xs: jnp.sum(jnp.sin(f(*xs)))


def by_all(f):
    """What comes back to a row hangs on all of them."""
    return lambda *xs: jnp.sum(jnp.linalg.norm(f(*xs), axis=0))


def gradient(f):
    return jax.grad(f, (0, 1, 2))


LONG = 1500  # more than the terms of a sum that are added up at a time; the last block of rows is not whole
CASES = {
    "plain": (plain, (LONG, D)),
    "masked": (masked, (1050, 2, D)),
    "batched": (batched, (2, 2, 800, D)),
    "shared": (shared, (800, 2, D)),
    "twice": (twice, (LONG, D)),
    "kernel": (kernel, (LONG, D)),
    "float64": (plain, (800, D)),
    "bfloat16": (plain, (LONG, 32)),
    "of few columns": (plain, (LONG, 5)),
    "gradient, few columns": (gradient(by_all(plain)), (LONG, 3)),
    "gradient": (gradient(by_rows(plain)), (LONG, D)),
    "gradient over rows": (gradient(by_all(plain)), (LONG, D)),
    "gradient, masked": (gradient(by_all(masked)), (1050, 2, D)),
    "gradient, batched": (gradient(by_rows(batched)), (2, 2, 800, D)),
    "gradient, twice": (gradient(by_rows(twice)), (LONG, D)),
    "gradient, float64": (gradient(by_all(plain)), (800, D)),
}


def operands(name: str) -> list:
    rng, shape = np.random.default_rng(0), CASES[name][1]
    dtype = next((t for t in ("float64", "bfloat16") if t in name), "float32")
    return [jnp.asarray(rng.standard_normal(shape), dtype) for _ in range(3)]


def compiled(f, args, monkeypatch, stored: bool = False, repeated: int = blocks.LARGE):
    """A program, compiled for itself; as it would be without blocks where it is `stored`. Products of so many bytes in
    all are `repeated`.
    """
    kept = tuple(p for p in passes.PASSES if p[0] != "block") if stored else passes.PASSES
    with monkeypatch.context() as m:
        m.setenv("CATENA_CACHE", "0")
        m.setattr(blocks, "REPEATED", repeated)
        m.setattr(passes, "PASSES", kept)
        m.setattr(lengths, "_families", {})
        return jax.jit(lambda *xs: f(*xs)).lower(*args).compile()


def temporaries(program) -> int:
    return program.memory_analysis().temp_size_in_bytes


@pytest.mark.share(2)
@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_stored_scores(name, monkeypatch):
    f = CASES[name][0]
    with jax.enable_x64(name.endswith("float64")):
        args = operands(name)
        here, stored = compiled(f, args, monkeypatch), compiled(f, args, monkeypatch, stored=True)
        assert 3 * temporaries(here) < 2 * temporaries(stored)
        for x, y in zip(jax.tree.leaves(here(*args)), jax.tree.leaves(stored(*args)), strict=True):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_values_and_derivatives_are_those_of_mathematics(monkeypatch):
    """Beside sums in double precision, and differences along a direction."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(1)
        args = [jnp.asarray(rng.standard_normal((800, D))) for _ in range(3)]
        q, k, v = map(np.asarray, args)
        scores = np.exp(q @ k.T * 0.25)
        found = compiled(plain, args, monkeypatch)(*args)
        np.testing.assert_allclose(np.asarray(found), scores @ v / scores.sum(1, keepdims=True), rtol=1e-11, atol=1e-14)
        loss, way = by_all(plain), [rng.standard_normal((800, D)) for _ in range(3)]
        slope = sum(np.vdot(g, w) for g, w in zip(compiled(gradient(loss), args, monkeypatch)(*args), way))
        up, down = (loss(*(x + s * 1e-5 * w for x, w in zip(args, way))) for s in (1, -1))
        np.testing.assert_allclose(slope, float(up - down) / 2e-5, rtol=1e-6)


def test_memory_is_linear_in_the_length(monkeypatch):
    """Eight times the positions: eight times the memory, and not sixty-four times."""
    for f in (plain, gradient(by_rows(plain)), gradient(by_all(plain))):
        small, large = (temporaries(compiled(f, [jnp.ones((n, 64))] * 3, monkeypatch)) for n in (2048, 8 * 2048))
        assert large <= 10 * small


def test_small_products_are_rather_kept_than_computed_twice(monkeypatch):
    """Those of one layer here; those of two together are too many."""
    few, many = by_all(plain), by_all(lambda q, k, v: plain(plain(q, k, v), k, v))
    args = [jnp.ones((1900, D))] * 3
    for f, are_kept in ((few, True), (many, False)):
        program = compiled(gradient(f), args, monkeypatch, repeated=blocks.REPEATED)
        assert (temporaries(program) >= 2 * 4 * 1900**2) is are_kept


def test_masks_of_many_heads_are_not_stored(monkeypatch):
    small, large = (temporaries(compiled(masked, [jnp.ones((n, 2, 64))] * 3, monkeypatch)) for n in (2048, 8 * 2048))
    assert large <= 10 * small


def test_what_is_asked_for_is_stored(monkeypatch):
    """Weights that are a result, and the gradient by a bias, are arrays of all scores anyhow."""

    def weights(q, k, v, bias):
        p = jax.nn.softmax(q @ k.T + bias)
        return p @ v, p

    args = [*operands("plain"), jnp.zeros((LONG, LONG))]
    by_bias = jax.grad(lambda *xs: jnp.sum(jnp.sin(weights(*xs)[0])), (0, 3))
    for f in (weights, by_bias):
        here, stored = compiled(f, args, monkeypatch), compiled(f, args, monkeypatch, stored=True)
        for x, y in zip(here(*args), stored(*args), strict=True):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_layers_in_a_loop_and_recomputed(monkeypatch):
    def layers(x, w):
        step = jax.checkpoint(lambda x, w: (x + plain(x @ w, x, x), None))
        return jnp.sum(lax.scan(step, x, w)[0] ** 2)

    rng = np.random.default_rng(2)
    args = [jnp.asarray(rng.standard_normal(s).astype(np.float32) * 0.3) for s in ((LONG, D), (3, D, D))]
    f = jax.grad(layers, (0, 1))
    here, stored = compiled(f, args, monkeypatch), compiled(f, args, monkeypatch, stored=True)
    assert 2 * temporaries(here) < temporaries(stored)
    for x, y in zip(here(*args), stored(*args), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_products_of_many_terms_are_stored(monkeypatch):
    """A layer of a network is more work to compute again than to keep."""
    f, args = (
        (lambda x, w, y: jnp.tanh(x @ w) @ y),
        [jnp.ones((2048, 512)), jnp.ones((512, 1024)), jnp.ones((1024, 512))],
    )
    assert temporaries(compiled(f, args, monkeypatch)) >= 2048 * 1024 * 4


def test_the_order_of_what_is_seen_from_outside_stays(monkeypatch):
    """A program that calls Python is left as it is."""
    seen = []

    def f(q, k, v):
        x = plain(q, k, v)
        jax.debug.callback(lambda y: seen.append(float(y)), jnp.sum(x))
        jax.debug.callback(lambda y: seen.append(float(y)), q[0, 0], ordered=True)
        return x

    args = operands("plain")
    compiled(f, args, monkeypatch)(*args)
    jax.effects_barrier()
    assert len(seen) == 2


def test_lengths_that_are_planned_by_others(monkeypatch):
    """The third length of a function is computed from what the second one wrote down."""
    monkeypatch.setenv("CATENA_CACHE", "0")
    f = jax.jit(lambda *xs: gradient(by_rows(plain))(*xs))
    for n in (1200, 1300, 1400, 1500, 2100):
        rng = np.random.default_rng(n)
        args = [jnp.asarray(rng.standard_normal((n, D)).astype(np.float32)) for _ in range(3)]
        alone = compiled(gradient(by_rows(plain)), args, monkeypatch, stored=True)
        for x, y in zip(f(*args), alone(*args), strict=True):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_what_a_loop_would_make_of_nothing_large_is_made_outside(monkeypatch):
    """As of the slope of the gradient of attention whose probabilities are scaled row by row."""

    def loss(q, k, v):
        scores = q @ k.T * 0.25
        e = jnp.exp(scores - jnp.max(scores, 1, keepdims=True))
        p = e / jnp.sum(e, 1, keepdims=True) * q[:, :1]
        return jnp.sum(jnp.sin(p @ v)) + jnp.sum(jnp.sin(p.T @ q))

    def slope(*xs):
        return jax.jvp(jax.grad(loss, (0, 1, 2)), xs, tuple(map(jnp.cos, xs)))

    args = [jnp.asarray(np.random.default_rng(k).standard_normal((1050, D)), "float32") for k in range(3)]
    here, stored = compiled(slope, args, monkeypatch), compiled(slope, args, monkeypatch, stored=True)
    assert temporaries(here) < temporaries(stored)
    for x, y in zip(jax.tree.leaves(here(*args)), jax.tree.leaves(stored(*args)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
