"""dot_product_attention beside its definition in NumPy, and computed by blocks beside computed with all scores."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.nn import attention, blockwise, dot_product_attention

RNG = np.random.default_rng(0)
B, T, S, N, K, H = 2, 11, 14, 4, 2, 3
Q, KEYS, VALUES = (RNG.normal(size=shape) for shape in [(B, T, N, H), (B, S, K, H), (B, S, K, H)])
ROWS, COLUMNS = np.arange(T)[:, None], np.arange(S)
LENGTHS = {"query_seq_lengths": np.array([7, 0], np.int32), "key_value_seq_lengths": np.array([9, 14], np.int32)}
FEW = RNG.random((T, S)) < 0.15  # some queries see no key
CASES = {
    "plain": {},
    "causal": {"is_causal": True},
    "window": {"local_window_size": (3, 1)},
    "causal window": {"local_window_size": 2, "is_causal": True},
    "nothing": {"local_window_size": (2, -30)},
    "lengths": LENGTHS,
    "no keys": {"key_value_seq_lengths": np.array([0, 5], np.int32), "is_causal": True},
    "full bias": {"bias": RNG.normal(size=(B, N, T, S))},
    "bias of keys": {"bias": RNG.normal(size=(B, 1, 1, S)), "scale": 0.3},
    "bias of heads": {"bias": RNG.normal(size=(N, T, 1))},
    "full mask": {"mask": RNG.random((B, N, T, S)) < 0.5},
    "thin mask": {"mask": FEW, "bias": RNG.normal(size=(T, S)), "is_causal": True},
}


def by_definition(q, k, v, bias=0.0, mask=True, scale=None, is_causal=False, local_window_size=None, **lengths):
    k, v = (np.repeat(x, N // K, 2) for x in (k, v))
    scores = np.einsum("btnh,bsnh->bnts", q, k) * (H**-0.5 if scale is None else scale) + bias
    seen = np.broadcast_to(mask, scores.shape).copy()
    if is_causal:
        seen &= COLUMNS <= ROWS
    if local_window_size is not None:
        left, right = local_window_size if isinstance(local_window_size, tuple) else (local_window_size,) * 2
        seen &= (COLUMNS >= ROWS - left) & (COLUMNS <= ROWS + right)
    alive = np.ones((B, 1, T, 1), bool)
    if lengths:
        seen &= COLUMNS < lengths["key_value_seq_lengths"][:, None, None, None]
        if "query_seq_lengths" in lengths:
            alive = ROWS < lengths["query_seq_lengths"][:, None, None, None]
            seen &= alive
    scores = np.where(seen, scores, blockwise.MASKED)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bnts,bsnh->btnh", weights * alive, v)


@pytest.fixture
def by_blocks(monkeypatch):
    """Computes by small blocks, or not: ``by_blocks(False)``."""

    def choose(yes: bool):
        monkeypatch.setattr(attention, "STORED", 0 if yes else 1 << 60)

    monkeypatch.setattr(blockwise, "BLOCK", 8)
    monkeypatch.setattr(attention, "_BY_BLOCKS", jax.jit(attention._by_blocks, static_argnums=0))
    return choose


@pytest.mark.share(3)
@pytest.mark.parametrize("blocks", [False, True], ids=["stored", "blocks"])
@pytest.mark.parametrize("case", CASES)
def test_values(case, blocks, by_blocks):
    by_blocks(blocks)
    with jax.enable_x64(True):
        out = dot_product_attention(Q, KEYS, VALUES, **CASES[case])
        np.testing.assert_allclose(out, by_definition(Q, KEYS, VALUES, **CASES[case]), rtol=1e-10, atol=1e-12)


def derivatives(case, with_bias: bool):
    """What is compared between the two ways: the residual, a gradient and a tangent."""
    options = dict(CASES[case])
    bias = jnp.asarray(options.pop("bias", 0.0), float)
    xs = [jnp.asarray(x) for x in (Q, KEYS, VALUES)] + [bias] * with_bias
    call = lambda *xs: dot_product_attention(*xs, return_residual=True, **options)

    def loss(*xs):
        out, residual = call(*xs)
        return jnp.sin(out).sum() + jnp.where(residual > -1e30, jnp.cos(residual), 0).sum()

    tangents = tuple(jnp.cos(x + 1) for x in xs)
    everything = jax.jit(
        lambda *xs: (call(*xs)[1], jax.grad(loss, tuple(range(len(xs))))(*xs), jax.jvp(call, xs, tangents))
    )
    return jax.tree.leaves(everything(*xs))


@pytest.mark.parametrize("case", ["lengths", "full bias", "bias of heads", "thin mask"])
def test_derivatives_by_blocks(case, by_blocks):
    with_bias = "bias" in CASES[case]
    with jax.enable_x64(True):
        by_blocks(False)
        expected = derivatives(case, with_bias)
        by_blocks(True)
        for found, x in zip(derivatives(case, with_bias), expected, strict=True):
            np.testing.assert_allclose(found, x, rtol=1e-9, atol=1e-11)


def test_transformations_of_transformations_by_blocks(by_blocks):
    w, bias = RNG.normal(size=(1, 9, 2, 3)), RNG.normal(size=(2, 9, 9))
    q, k, v = (RNG.normal(size=(1, 9, 2, 3)) for _ in range(3))
    loss = lambda q, b: jnp.sum(w * dot_product_attention(q, k, v, b, is_causal=True))
    size_of_gradient = lambda q, b: sum(jnp.sum(jnp.sin(x)) for x in jax.grad(loss, (0, 1))(q, b))

    def everything():
        few = jnp.array([[3], [0]], jnp.int32)
        return jax.tree.leaves([
            jax.grad(size_of_gradient, (0, 1))(q, bias),
            jax.vmap(jax.grad(loss, (0, 1)), (0, None))(jnp.stack([q, 2 * q]), bias),
            jax.vmap(lambda n: dot_product_attention(q, k, v, key_value_seq_lengths=n))(few),
        ])  # fmt: skip

    with jax.enable_x64(True):
        by_blocks(False)
        expected = everything()
        by_blocks(True)
        for found, x in zip(everything(), expected, strict=True):
            np.testing.assert_allclose(found, x, rtol=1e-9, atol=1e-11)


def test_no_value_is_as_large_as_the_scores():
    """At 16,384 positions, forward and backward; what the loops hold is looked at, too."""
    length, sizes = 1 << 14, []

    def look(jaxpr):
        for eqn in jaxpr.eqns:
            sizes.extend(v.aval.size for v in eqn.outvars)
            for inner in jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "jaxpr")):
                if hasattr(inner, "jaxpr"):
                    look(inner.jaxpr)

    x = jax.ShapeDtypeStruct((length, 2, 64), "float32")
    loss = lambda q, k, v: dot_product_attention(q, k, v, is_causal=True).sum()
    look(jax.make_jaxpr(jax.grad(loss, (0, 1, 2)))(x, x, x).jaxpr)
    assert max(sizes) <= 2 * length * 64


def test_small_floats(by_blocks):
    q, k, v = (jnp.array(x, "bfloat16") for x in (Q, KEYS, VALUES))
    for blocks in (False, True):
        by_blocks(blocks)
        out, residual = dot_product_attention(q, k, v, return_residual=True)
        assert out.dtype == residual.dtype == "bfloat16" and residual.shape == (B, T, N)
        np.testing.assert_allclose(out.astype("float32"), by_definition(Q, KEYS, VALUES), rtol=0.1, atol=0.05)


def test_shapes_and_dtypes():
    q, k, v = (jnp.array(x, "float32") for x in (Q, KEYS, VALUES))
    assert dot_product_attention(q[0], k[0], v[0]).shape == (T, N, H)
    assert dot_product_attention(q[:, :0], k, v).shape == (B, 0, N, H)
    assert dot_product_attention(q[..., :0], k[..., :0], v[..., :0]).shape == (B, T, N, 0)
    assert dot_product_attention(q.astype(int), k.astype(int), v.astype(int)).dtype == "int32"
    out, residual = dot_product_attention(q, k[:, :0], v[:, :0], return_residual=True)
    assert not out.any() and (residual == -np.inf).all()
    np.testing.assert_allclose(
        jax.grad(lambda s: dot_product_attention(q, k, v, scale=s).sum())(0.5),
        (dot_product_attention(q, k, v, scale=0.51).sum() - dot_product_attention(q, k, v, scale=0.49).sum()) / 0.02,
        rtol=1e-2,
    )


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (ValueError, {"key": KEYS[..., :2]}),
        (ValueError, {"value": VALUES[:, :3]}),
        (ValueError, {"query": Q[:, :, :3]}),
        (ValueError, {"query": Q[None]}),
        (ValueError, {"query": Q.astype(np.float16)}),
        (ValueError, {"query": None}),
        (TypeError, {"bias": np.ones((3, N, T, S))}),
        (ValueError, {"bias": np.ones((1, 1, 1, 1, 1))}),
        (ValueError, {"mask": np.ones((T, S))}),
        (ValueError, {"mask": np.ones((3, T, S), bool)}),
        (ValueError, {"query_seq_lengths": [1.0, 2.0]}),
        (ValueError, {"query_seq_lengths": [1, 2, 3]}),
        (ValueError, {"key_value_seq_lengths": 3}),
        (ValueError, {"local_window_size": (1, 2, 3)}),
        (TypeError, {"local_window_size": 1.5}),
        (RuntimeError, {"implementation": "cudnn"}),
        (ValueError, {"implementation": "flash"}),
    ],
)
def test_bad_input(error, options):
    with pytest.raises(error):
        dot_product_attention(**{"query": Q, "key": KEYS, "value": VALUES} | options)
