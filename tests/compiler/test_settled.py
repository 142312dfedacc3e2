"""What depends on no argument is computed once, when the program is compiled, with the bits that it has otherwise."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.graph.settled import MOST_BYTES
from catena.compiler.native import lengths
from catena.compiler.native.compile import compile_jaxpr, program_of
from catena.core.context import context

rng = np.random.default_rng(5)
K = rng.standard_normal((80, 80), np.float32)
SPD = K @ K.T + 80 * np.eye(80, dtype=np.float32)
LONG = rng.standard_normal(40_000, np.float32)

CASES = {
    "running sum": (lambda k: jnp.cumsum(k), LONG),
    "running sum, turned": (lambda k: lax.cumsum(k, reverse=True) * 2, LONG),
    "sum": (lambda k: jnp.sum(k * k), LONG),
    "sums of columns": (lambda k: jnp.sum(k.reshape(200, 200), 0), LONG),
    "position": (lambda k: jnp.argmax(k), LONG),
    "product": (lambda k: k @ k.T, K),
    "sort": (lambda k: jnp.sort(k), LONG),
    "positions of a sort": (lambda k: jnp.argsort(k), LONG),
    "factor": (lambda k: jnp.linalg.cholesky(k), SPD),
    "two results": (lambda k: jnp.linalg.qr(k), K),
    "one of two results": (lambda k: jnp.linalg.eigh(k)[0], SPD),
    "transform": (lambda k: jnp.abs(jnp.fft.rfft(k)), LONG),
    "scatter": (lambda k: jnp.zeros(50).at[jnp.arange(40_000) % 50].add(k), LONG),
    "one after another": (lambda k: jnp.sum(jnp.cumsum(jnp.sort(k))[::2]), LONG),
    "draws": (lambda k: jax.random.normal(jax.random.key(k.astype(int)[0]), (1000,)), np.array([7, 1])),
    "positions": (
        lambda k: jnp.sin(jnp.exp(-k / 1e4) * jnp.arange(40_000)).reshape(400, 100) + jnp.zeros((3, 400, 100)),
        LONG,
    ),
    "positions in half precision": (lambda k: jnp.cos(jnp.exp(k.astype("bfloat16") * 0.1) * 3) * 2 + 1, LONG),
    "half precision": (lambda k: jnp.sum(k.astype("bfloat16")), LONG),
}


def steps(f, *args) -> list[str]:
    return [step.name for _, step in program_of(jax.make_jaxpr(f)(*args)).steps()]


def sizes(f, *args) -> list[int]:
    """The bytes of the arrays that a program holds, but for small tables of its own."""
    return [x.nbytes for x in compile_jaxpr(jax.make_jaxpr(f)(*args)).parts.constants if x.nbytes > 5000]


@pytest.mark.share(2)
@pytest.mark.parametrize("name", CASES)
def test_it_has_the_bits_of_what_is_computed_in_each_call(name):
    f, k = CASES[name]
    given = jax.jit(lambda k, x: jax.tree.map(lambda y: y + x, f(k)))(k, 1)
    settled = jax.jit(lambda x: jax.tree.map(lambda y: y + x, f(jnp.asarray(k))))(1)
    for a, b in zip(jax.tree.leaves(given), jax.tree.leaves(settled), strict=True):
        assert a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_calls_do_not_compute_it_again():
    assert "contract" in steps(lambda k, x: k @ k.T + x, K, 1.0)
    assert "contract" not in steps(lambda x: jnp.asarray(K) @ jnp.asarray(K).T + x, 1.0)


def test_what_is_computed_where_it_is_read_stays_there():
    x = np.ones((200, 200), np.float32)
    assert steps(lambda x: jnp.where(jnp.arange(200) > jnp.arange(200)[:, None], x, 0), x) == ["launch"]
    assert sizes(lambda x: jnp.where(jnp.arange(200) > jnp.arange(200)[:, None], x, 0), x) == []


def test_there_is_room_for_some():
    n = MOST_BYTES // 8
    f = lambda x: [jnp.sin(jnp.exp((lax.iota(int, n) + k) * 1e-5)) + x for k in range(5)]
    assert sizes(f, 1.0) == [4 * n] * 4
    np.testing.assert_allclose(
        jax.jit(f)(1.0), [np.sin(np.exp(np.arange(k, k + n) * 1e-5)) + 1 for k in range(5)], 2e-6
    )


def test_the_gradient_of_a_running_sum():
    x = jnp.zeros(30_000)
    slope = jax.jit(jax.grad(lambda x: jnp.sum(jnp.cumsum(x))))
    assert np.array_equal(slope(x), np.arange(30_000, 0, -1))
    assert np.array_equal(jax.jit(jax.vmap(slope))(jnp.zeros((2, 30_000)))[1], np.arange(30_000, 0, -1))


def test_one_number_everywhere_is_no_array():
    """As where ones are gathered, in the gradient of numbers that are added at known places."""
    f = lambda x: jnp.zeros(4096).at[(jnp.arange(40_000) * 7 ^ 5) % 4096].add(x)
    gradient = jax.grad(lambda x: jnp.sum(f(x)))
    assert sizes(gradient, np.ones(40_000, np.float32)) == []
    np.testing.assert_array_equal(jax.jit(gradient)(jnp.ones(40_000)), np.ones(40_000, np.float32))
    both = lambda x: jnp.cumsum(jnp.zeros(40_000) - 0.0) + x  # -0.0 and 0.0 are two numbers
    np.testing.assert_array_equal(jax.jit(both)(1.0), np.ones(40_000, np.float32))


def test_two_functions_with_other_constants():
    functions = [jax.jit(lambda x, k=k: jnp.asarray(k) @ jnp.asarray(k).T @ x) for k in (K, 2 * K)]
    x = np.ones(80, np.float32)
    one, other = (f(x) for f in functions)
    assert np.array_equal(4 * np.asarray(one), other)


def test_what_is_before_a_loop():
    def f(x):
        k = jnp.asarray(K)
        return lax.fori_loop(0, 3, lambda i, x: (k.T @ k) @ x * 0.01, x)

    x = np.ones(80, np.float32)
    expected = np.linalg.matrix_power(K.T.astype(float) @ K * 0.01, 3) @ x
    np.testing.assert_allclose(jax.jit(f)(x), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_large_results_and_loops_stay():
    n = MOST_BYTES // 4
    sums = [steps(lambda x, n=n: jnp.cumsum(lax.iota(np.float32, n)) + x, 1.0) for n in (n, n + 1)]
    assert [len(made) for made in sums] == [1, 2]
    assert "while" in steps(lambda x: lax.while_loop(lambda k: k < 1e6, lambda k: k + 1, 0.0) + x, 1.0)


def test_what_takes_long_is_a_call():
    n = 1 << 29
    assert sizes(lambda x: lax.top_k(jnp.sin(lax.iota(np.float32, n)), 5)[0] + x, 1.0) == []


def test_what_is_tested_is_computed_in_each_call():
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError):
            jax.jit(lambda x: jnp.sum(jnp.asarray(LONG) * np.nan) + x)(1.0)


# Functions of any length, and lengths on both sides of the work from which on something is computed now.
OF_LENGTHS = {
    "draws in sums": (
        lambda x: jnp.sum(x * jax.random.normal(jax.random.key(3), x.shape, x.dtype), 1),
        lambda n: (n, 33),
        [64, 256, 243, 230, 60, 270, 8, 199],
    ),
    "an order": (
        lambda x: x[jnp.argsort(jax.random.bits(jax.random.key(1), x.shape))] - jnp.argsort(-jnp.arange(x.size)),
        lambda n: (n,),
        [300, 2000, 2100, 2011, 340, 1999, 2222, 17],
    ),
    "one number": (
        lambda x: jax.lax.cumsum(jnp.sort(jnp.zeros(x.size))) + x,
        lambda n: (n,),
        [3000, 3100, 3011, 4000, 700, 3999],
    ),
    "a Jacobian": (
        jax.jacfwd(lambda x: jnp.sin(x) * jnp.cumsum(x)),
        lambda n: (n,),
        [130, 140, 133, 151, 177, 20, 166],
    ),
}


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
@pytest.mark.parametrize("case", OF_LENGTHS)
def test_other_lengths_compute_theirs(case, monkeypatch):
    """What is computed now is stored, so sums beside it may be fused otherwise: bits would hang on what came before, if
    a plan were used where something else is computed.
    """
    f, shape, lengths_ = OF_LENGTHS[case]
    monkeypatch.setenv("CATENA_CACHE", "0")
    families = {}
    monkeypatch.setattr(lengths, "_families", families)
    xs = [np.sin(np.arange(np.prod(shape(n)), dtype=np.float32)).reshape(shape(n)) for n in lengths_]
    step = jax.jit(f)
    found = [np.asarray(step(x)).tobytes() for x in xs]
    assert sum(family.found for family in families.values())
    monkeypatch.setattr(lengths, "family_of", lambda *_: None)
    alone = [np.asarray(jax.jit(lambda x: f(x))(x)).tobytes() for x in xs]
    assert [a == b for a, b in zip(found, alone, strict=True)] == [True] * len(xs)
