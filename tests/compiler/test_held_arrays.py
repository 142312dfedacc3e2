"""Arrays that a jaxpr holds, as NumPy has made them for a length: at other ones its program is looked up, too."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.graph import thresholds
from catena.compiler.native import lengths
from catena.core.config import override

rng = np.random.default_rng(3)


def _mask(x):
    n = x.shape[-1]
    return jax.nn.softmax(jnp.where(np.tril(np.ones((n, n), bool)), x[:, None] * x[:, :, None], -1e9))


def _scan(x):
    kept = (np.arange(x.shape[-1]) % 7 < 5).astype(np.float32)
    return lax.scan(lambda c, item: (c * 0.9 + item[0] * item[1], c), 0.0, (x[0], kept))


def _places(x):
    n = x.shape[-1]
    return x[:, np.random.default_rng(0).permutation(n)], x[:, np.array([0, n // 2, n - 1])]


HELD = {
    "a mask": _mask,
    "items of a scan": _scan,
    "places": _places,
    "a window": lambda x: jnp.sum((x * np.hanning(x.shape[-1]).astype(np.float32)) ** 2, -1),
    "what is computed of it": lambda x: x + jnp.cumsum(np.sin(np.arange(x.shape[-1])).astype(np.float32)),
    "derivatives": jax.grad(lambda x: jnp.sum(jnp.sin(x * x.shape[-1]) @ jnp.eye(x.shape[-1]))),
}


@pytest.fixture
def families(monkeypatch):
    monkeypatch.setenv("CATENA_CACHE", "0")
    monkeypatch.setattr(lengths, "_families", {})
    with override("jax_check_bounds", False):
        yield lambda: lengths._families.values()


def same(f, ns, arguments=lambda n: (rng.standard_normal((3, n), np.float32),)) -> None:
    """Each call of one jitted function has the bits of a program that is compiled alone."""
    together = jax.jit(f)
    for n in ns:
        given = arguments(n)
        found = together(*given)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lengths, "family_of", lambda *_: None)
            alone = jax.jit(lambda *x: f(*x))(*given)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(alone), strict=True):
            assert a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes(), n


@pytest.mark.parametrize("name", HELD)
def test_other_lengths_are_looked_up(name, families):
    same(HELD[name], [203, 217, 221, 225, 229, 233])
    (family,) = families()
    assert family.found >= 2


def test_what_is_in_an_array_decides_where_it_is_asked(families, monkeypatch):
    """Whether divisors are one number, how large places are: a plan serves where the answers are the same."""
    monkeypatch.setattr(thresholds, "NEAR", 1 << 62)

    def divided(x):
        n = x.shape[-1]
        by = np.full(n, 3, np.int32)
        by[: n % 3] = 5  # nothing, where the length is a multiple of three
        return x.astype(np.int32) // by, jnp.cumsum(jnp.full(n, 2)) * by, x[:, np.minimum(np.arange(n), 220)]

    same(divided, [210, 211, 213, 212, 216, 214, 217, 219, 222, 221, 223, 225, 240, 242])


def test_equal_arrays_that_differ_elsewhere(families):
    """Of two arrays that are the same at a length, each is its own at another one."""

    def two(x):
        n = x.shape[-1]
        a, b = np.arange(n), np.minimum(np.arange(n), 214)
        return jnp.sin(x[:, a]) - jnp.sin(x[:, b]), jnp.cumsum(jnp.asarray(a)) - jnp.cumsum(jnp.asarray(b))

    same(two, [203, 205, 213, 218, 220, 211, 230, 207])


def test_other_weights_of_the_same_shape_are_looked_up(families):
    """Functions that hold what they are trained to be: one program, which reads others."""
    kept = []
    for _ in range(4):
        weights = [jnp.asarray(rng.standard_normal((32, 32), np.float32)) for _ in range(2)]
        kept.append(jax.jit(lambda x, w=weights: jnp.tanh(jnp.tanh(x @ w[0]) @ w[1])))
        x = rng.standard_normal((5, 32), np.float32)
        expected = np.tanh(np.tanh(x @ np.asarray(weights[0])) @ np.asarray(weights[1]))
        np.testing.assert_allclose(kept[-1](x), expected, rtol=1e-5, atol=1e-5)
    (family,) = families()
    assert family.found >= 2


def test_plans_keep_no_array(families):
    """What a family knows of the arrays of a program is how they are told."""
    f = jax.jit(lambda x: x + np.arange(x.shape[-1]))
    kept = [f(np.zeros((3, n), np.float32)) for n in (303, 317, 321)]
    (family,) = families()
    assert len(family.plans) == 1 and len(kept) == 3
    numbers = [*family.first, *(x for plan in family.plans for x in plan.alike)]
    assert all(x.array is None for x in numbers if type(x) is lengths.Content)
    assert any(type(x) is lengths.Content for x in family.first)
