"""The programs of the golden texts (`golden_texts.py`): small ones that between them reach every part of the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena import lax

DTYPES = {
    "f32": jnp.float32, "f64": jnp.float64, "f16": jnp.float16, "bf16": jnp.bfloat16, "c64": jnp.complex64,
    "c128": jnp.complex128, "i1": jnp.bool_, "i4": jnp.int4, "i8": jnp.int8, "i16": jnp.int16, "i32": jnp.int32,
    "i64": jnp.int64, "u8": jnp.uint8, "u32": jnp.uint32, "u64": jnp.uint64,
}  # fmt: skip


class Case(NamedTuple):
    """A program: a function, the types of its arguments, and which of these are donated."""

    function: Callable
    arguments: list
    donated: tuple[bool, ...]


CASES: dict[str, Case] = {}


def add(name: str, types: str, function: Callable, donated: tuple[bool, ...] = ()) -> None:
    """Adds a case; `types` as in "f32[3,4] i32[]"."""
    assert name not in CASES, name
    CASES[name] = Case(function, [_type(t) for t in types.split()], donated)


def _type(text: str):
    dtype, _, shape = text.rstrip("]").partition("[")
    return jax.ShapeDtypeStruct(tuple(int(n) for n in shape.split(",") if n), DTYPES[dtype])


# ---- elementwise -------------------------------------------------------------------------------------------

add("chain", "f32[700,901] f32[901]", lambda x, y: jnp.tanh(x * 2 + y) * jnp.where(x > 0, x, -y))
add("chain_small", "f32[5] f32[5]", lambda x, y: (x + y) * x - y)
add("scalars", "f32[] f32[]", lambda x, y: jnp.exp(x) / (1 + y * y))
add("transcendental", "f32[3000]", lambda x: (
    jnp.exp(x) + jnp.log(x) + jnp.sin(x) + jnp.cos(x) + jnp.arctan(x) + lax.erf(x) + lax.lgamma(x) + x**1.5 + jnp.cbrt(x)
))  # fmt: skip
add(
    "transcendental_f64", "f64[3000]", lambda x: jnp.expm1(x) + jnp.log1p(x) + jnp.tan(x) + lax.erf_inv(x) + jnp.sinh(x)
)
add("complex", "c64[40,50] c64[50]", lambda x, y: jnp.exp(x) * y / (x + 1j) + jnp.abs(y) + jnp.conj(x))
add("complex_f64", "c128[400]", lambda x: jnp.sqrt(x) + jnp.log(x) + jnp.tanh(x) + x**2.5)
add("bfloat16", "bf16[64,128] bf16[128]", lambda x, y: jnp.tanh(x) * y + jnp.sum(x, axis=1, keepdims=True))
add("float16", "f16[1000] f32[1000]", lambda x, y: (jnp.exp(x) + y.astype(jnp.float16), jnp.max(x)))
add("float16_apart", "f16[100]", lambda x: [x[i : i + 24 : 3].astype(jnp.float32) for i in range(0, 75, 3)])
add("int4", "i4[200] i4[200]", lambda x, y: (x + y) * x)
add("integers", "i32[4000] i32[4000]", lambda x, y: (x // y, x % y, x**3, lax.clz(x), lax.population_count(y), x >> 3))
add("integers_8", "i8[4000] u8[4000]", lambda x, y: (x * x + 1, y // 3, jnp.abs(x), x.astype(jnp.int32) + y))
add("integers_64", "i64[300] u64[300]", lambda x, y: (x * 7 - x // 5, y ^ (y >> np.uint64(7)), x.astype(jnp.float64)))
add("booleans", "i1[500] f32[500]", lambda m, x: (m & (x > 1), jnp.where(m, x, 0.0), jnp.any(m), jnp.all(x < 3)))
add(
    "casts",
    "f32[900] i32[900]",
    lambda x, i: (x.astype(jnp.int8), i.astype(jnp.float32), lax.bitcast_convert_type(x, jnp.int32)),
)
add("next_after_and_rounding", "f32[900]", lambda x: (jnp.round(x), jnp.floor(x), lax.nextafter(x, x + 1), jnp.sign(x)))
add("optimiser", "f32[512,300] f32[512,300] f32[512,300] f32[512,300]", lambda p, g, m, v: (
    p - 1e-3 * (0.9 * m + 0.1 * g) / (jnp.sqrt(0.99 * v + 0.01 * g * g) + 1e-8), 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
), (True, False, True, True))  # fmt: skip
add("donated", "f32[300,40] f32[40]", lambda x, y: (x + y, x * 2), (True, True))


def relu(x):
    return jnp.maximum(x, 0)


# ---- reductions and rows -----------------------------------------------------------------------------------


def softmax(x):
    e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    return e / jnp.sum(e, axis=-1, keepdims=True)


def layer_norm(x, scale, shift):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def cross_entropy(logits, labels):
    log_p = logits - jnp.log(jnp.sum(jnp.exp(logits), axis=1, keepdims=True))
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))


add("softmax", "f32[512,1000]", softmax)
add("softmax_small", "f32[3,10]", softmax)
add("softmax_gradient", "f32[256,300] f32[256,300]", lambda x, w: jax.grad(lambda x: jnp.sum(softmax(x) * w))(x))
add("layer_norm", "f32[512,768] f32[768] f32[768]", layer_norm)
add(
    "layer_norm_gradient",
    "f32[64,96] f32[96] f32[96]",
    jax.grad(lambda *a: jnp.sum(layer_norm(*a) ** 2), argnums=(0, 1, 2)),
)
add("cross_entropy_gradient", "f32[128,1000] i32[128]", jax.grad(cross_entropy))
add("sums", "f32[60,70,80]", lambda x: [jnp.sum(x, axis) for axis in (0, 1, 2, (0, 1), (0, 2), (1, 2), None)])
add("sum_large", "f32[3000000]", lambda x: (jnp.sum(x), jnp.max(x), jnp.sum(x * x)))
add("sums_f64", "f64[500,33]", lambda x: (jnp.sum(x, 0), jnp.prod(x, 1), jnp.mean(x), jnp.var(x, 0)))
add(
    "extremes",
    "f32[300,200]",
    lambda x: (jnp.max(x, 0), jnp.min(x, 1), jnp.argmax(x, 0), jnp.argmin(x, 1), jnp.argmax(x)),
)
add("argmax_integers", "i32[300,20]", lambda x: (jnp.argmax(x, 0), jnp.argmax(x, 1), jnp.max(x)))
add(
    "bitwise_reductions", "i32[300,20]", lambda x: (jnp.bitwise_or.reduce(x, axis=0), jnp.bitwise_xor.reduce(x, axis=1))
)
add(
    "cumulative", "f32[50,60]", lambda x: (jnp.cumsum(x, 0), jnp.cumsum(x, 1), lax.cummax(x, 1), lax.cumlogsumexp(x, 0))
)
add("reduce_general", "f32[30,40] i32[30,40]", lambda x, i: lax.reduce(
    (x, i), (jnp.float32(-1e9), jnp.int32(0)),
    lambda a, b: (jnp.maximum(a[0], b[0]), jnp.where(a[0] >= b[0], a[1], b[1])), (1,)
))  # fmt: skip
add("variance_and_norm", "f32[100,64]", lambda x: (jnp.std(x, 1), jnp.linalg.norm(x, axis=0), jnp.ptp(x, axis=1)))

# ---- shapes, indices, windows ------------------------------------------------------------------------------

add("views", "f32[40,50,6]", lambda x: (jnp.transpose(x, (2, 0, 1)) + 1, x[::-1, 3:40:2] * 2, x.reshape(2000, 6).T))
add("transpose_large", "f32[1000,900]", lambda x: x.T)
add("pad", "f32[30,40]", lambda x: (lax.pad(x, 0.0, ((1, 2, 1), (-1, 3, 0))), jnp.pad(x, 2, mode="edge")))
add("concatenate", "f32[30,40] f32[20,40]", lambda x, y: (jnp.concatenate([x, y * 2]), jnp.stack([x[:20], y], axis=1)))
add("dynamic_slice", "f32[90,40] i32[] i32[]", lambda x, i, j: lax.dynamic_slice(x, (i, j), (10, 20)) * 2)
add(
    "dynamic_update_slice",
    "f32[90,40] f32[10,20] i32[]",
    lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 3)),
    (True, False, False),
)
add("gather", "f32[900,40] i32[70]", lambda x, i: (x[i], x[i, i % 40], jnp.take(x, i, axis=0, mode="clip")))
add("scatter", "f32[900,40] i32[70] f32[70,40]", lambda x, i, y: (x.at[i].add(y), x.at[i].set(y), x.at[i].max(y)))
add("scatter_many", "f32[50] i32[400000] f32[400000]", lambda x, i, y: x.at[i].add(y))
add("segment_sum", "f32[3000,8] i32[3000]", lambda x, i: jnp.zeros((20, 8)).at[i].add(x))
add("windows", "f32[2,30,30,8]", lambda x: (
    lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"),
))  # fmt: skip
add("max_pool_gradient", "f32[2,16,16,4]", jax.grad(lambda x: jnp.sum(
    lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2
)))  # fmt: skip
add("one_hot_and_iota", "i32[300]", lambda i: (i[:, None] == jnp.arange(10), jnp.arange(300) * i, jnp.eye(7)))
add("constants", "f32[3,200]", lambda x: x * np.arange(600, dtype=np.float32).reshape(3, 200) + np.float32(np.pi))

# ---- order -------------------------------------------------------------------------------------------------

add("sort_rows", "f32[200,64]", lambda x: jnp.sort(x, axis=1))
add("sort_columns", "f32[200,64]", lambda x: jnp.sort(x, axis=0))
add("sort_large", "f32[200000]", jnp.sort)
add("sort_integers", "i32[3000] u8[5000] i64[300]", lambda x, y, z: (jnp.sort(x), jnp.sort(y), jnp.sort(z)))
add("argsort", "f32[50,300]", lambda x: (jnp.argsort(x, axis=1), jnp.argsort(x, axis=0, descending=True)))
add("sort_pairs", "i32[3000] f32[3000]", lambda k, v: lax.sort((k, v), num_keys=1))
add("top_k", "f32[20,5000]", lambda x: lax.top_k(x, 10))
add("median", "f32[3000] f32[30,41]", lambda x, y: (jnp.median(x), jnp.median(y, axis=1), jnp.quantile(y, 0.3, axis=0)))
add("search_and_unique", "f32[500] f32[90]", lambda x, y: (jnp.searchsorted(x, y), jnp.unique(y, size=40)))

# ---- products ----------------------------------------------------------------------------------------------

add("dot", "f32[512,256] f32[256,384]", jnp.matmul)
add("dot_epilogue", "f32[512,256] f32[256,384] f32[384]", lambda x, w, b: relu(x @ w + b))
add("dot_epilogue_softmax", "f32[256,64] f32[64,100] f32[100]", lambda x, w, b: softmax(x @ w + b))
add("dot_transposed", "f32[256,512] f32[384,256]", lambda x, y: x.T @ y.T)
add("dot_small", "f32[3,4] f32[4,5]", jnp.matmul)
add("dot_vector", "f32[700,300] f32[300]", lambda x, v: (x @ v, x.T @ (x @ v), jnp.dot(v, v), jnp.outer(v, v)))
add("dot_batched", "f32[12,64,32] f32[12,32,48]", jnp.matmul)
add("dot_batched_small", "f32[500,3,3] f32[500,3,3]", jnp.matmul)
add("dot_tall", "f32[20000,8] f32[8,8]", jnp.matmul)
add("dot_long", "f32[16,60000] f32[60000,16]", jnp.matmul)
add("dot_f64", "f64[300,200] f64[200,100]", jnp.matmul)
add("dot_bf16", "bf16[128,256] bf16[256,64]", jnp.matmul)
add("dot_bf16_odd", "bf16[101,67] bf16[67,53] bf16[53]", lambda x, y, b: relu(x @ y + b))
add("dot_integers", "i8[64,128] i8[128,32]", lambda x, y: lax.dot(x, y, preferred_element_type=jnp.int32))
add("dot_complex", "c64[64,50] c64[50,70]", jnp.matmul)
add("dot_odd", "f32[101,67] f32[67,53]", lambda x, y: jnp.tanh(x @ y))
add("einsum", "f32[6,7,8] f32[8,7,9]", lambda x, y: jnp.einsum("abc,cbd->ad", x, y))
add("convolution", "f32[2,30,30,16] f32[3,3,16,32]", lambda x, w: lax.conv_general_dilated(
    x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))  # fmt: skip
add("convolution_gradient", "f32[2,3,17,17] f32[8,3,3,3]", jax.grad(
    lambda x, w: jnp.sum(lax.conv(x, w, (2, 2), "SAME") ** 2), argnums=(0, 1)))  # fmt: skip
add("convolution_grouped", "f32[2,16,16,8] f32[3,3,1,8]", lambda x, w: lax.conv_general_dilated(
    x, w, (1, 1), "VALID", rhs_dilation=(2, 2), dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=8))  # fmt: skip

# ---- transforms and linear algebra -------------------------------------------------------------------------

add("fft", "c64[20,64] c64[1000] c64[37]", lambda x, y, z: (jnp.fft.fft(x), jnp.fft.ifft(y), jnp.fft.fft(z)))
add("fft_real", "f32[16,128] c64[16,65]", lambda x, y: (jnp.fft.rfft(x), jnp.fft.irfft(y), jnp.fft.fft2(x)))
add("fft_large", "c128[65536]", jnp.fft.fft)
add("cholesky", "f32[30,30]", jnp.linalg.cholesky)
add("cholesky_batched", "f64[40,8,8]", lambda x: jnp.linalg.cholesky(x))
add(
    "triangular_solve",
    "f32[20,20] f32[20,3]",
    lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
)
add("solve", "f32[6,9,9] f32[6,9,2]", jnp.linalg.solve)
add("determinant", "f64[12,12]", jnp.linalg.det)

# ---- loops and branches ------------------------------------------------------------------------------------


def lstm(params, carry, x):
    w, u, b = params
    h, c = carry
    i, f, g, o = jnp.split(x @ w + h @ u + b, 4, axis=-1)
    c = lax.logistic(f) * c + lax.logistic(i) * jnp.tanh(g)
    h = lax.logistic(o) * jnp.tanh(c)
    return (h, c), h


def lstm_loss(w, u, b, xs):
    start = (jnp.zeros((8, 32)), jnp.zeros((8, 32)))
    return jnp.sum(lax.scan(lambda carry, x: lstm((w, u, b), carry, x), start, xs)[1] ** 2)


def newton(x):
    return lax.while_loop(lambda y: jnp.abs(y * y - x) > 1e-5, lambda y: (y + x / y) / 2, x)


def steps(x, n):
    return lax.while_loop(lambda c: c[1] < n, lambda c: (jnp.sin(c[0]) * 1.1, c[1] + 1), (x, 0))[0]


LSTM = "f32[16,128] f32[32,128] f32[128] f32[20,8,16]"
add("scan", "f32[10] f32[100,10]", lambda c, xs: lax.scan(lambda c, x: (c * 0.9 + x, jnp.sum(c)), c, xs))
add("scan_reverse", "f32[] f32[50]", lambda c, xs: lax.scan(lambda c, x: (c * x + 1, c), c, xs, reverse=True))
add("scan_matrix", "f32[30,30] f32[12,30,30]", lambda c, xs: lax.scan(lambda c, x: (jnp.tanh(c @ x), None), c, xs)[0])
add("lstm", LSTM, lstm_loss)
add("lstm_gradient", LSTM, jax.grad(lstm_loss, argnums=(0, 1, 2)))
add("while", "f32[]", newton)
add("while_batched", "f32[100]", jax.vmap(newton))
add("while_matrix", "f32[20,20] i32[]", lambda x, n: lax.while_loop(
    lambda c: c[1] < n, lambda c: (c[0] @ x * 0.1, c[1] + 1), (x, 0))[0])  # fmt: skip
add("while_gradient", "f32[4] i32[]", jax.grad(lambda x, n: jnp.sum(steps(x, n))))
add("nested_loops", "f32[5] i32[]", lambda x, n: lax.fori_loop(
    0, n, lambda i, x: lax.scan(lambda c, y: (c + jnp.sin(y) * i, None), jnp.float32(0), x)[0] + x, x))  # fmt: skip
add("logistic_map", "f32[]", lambda x: lax.fori_loop(0, 1000, lambda i, x: 3.7 * x * (1 - x), x))
add("cond", "i1[] f32[300]", lambda p, x: lax.cond(p, jnp.sin, lambda x: x * 2, x))
add("switch", "i32[] f32[300]", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x[::-1]], x))
add("cond_batched", "i1[30] f32[30]", jax.vmap(lambda p, x: lax.cond(p, jnp.sin, lambda x: x * 2, x)))
add("associative_scan", "f32[64]", lambda x: lax.associative_scan(jnp.multiply, x))

# ---- whole steps -------------------------------------------------------------------------------------------


def attention(x, wq, wk, wv, wo):
    split = lambda y: y.reshape(4, 32, 4, 16).transpose(0, 2, 1, 3)
    q, k, v = split(x @ wq), split(x @ wk), split(x @ wv)
    scores = jnp.einsum("bhid,bhjd->bhij", q, k) / 4 + jnp.where(jnp.tril(jnp.ones((32, 32))) > 0, 0, -1e9)
    y = jnp.einsum("bhij,bhjd->bhid", softmax(scores), v)
    return x + y.transpose(0, 2, 1, 3).reshape(4, 32, 64) @ wo


def mlp_step(w1, b1, w2, b2, x, y):
    loss = lambda w1, b1, w2, b2: cross_entropy(relu(x @ w1 + b1) @ w2 + b2, y)
    grads = jax.grad(loss, argnums=(0, 1, 2, 3))(w1, b1, w2, b2)
    return [p - 0.1 * g for p, g in zip((w1, b1, w2, b2), grads)]


def layers_step(*weights_and_x):
    """Of layers so small that threads do products at the same time which they do not share."""

    def loss(weights, x):
        for w in weights:
            x = relu(x @ w)
        return jnp.sum(x * x)

    *weights, x = weights_and_x
    return [w - 0.1 * g / (jnp.sqrt(g * g) + 1) for w, g in zip(weights, jax.grad(loss)(weights, x))]


ATTENTION = "f32[4,32,64] f32[64,64] f32[64,64] f32[64,64] f32[64,64]"
add("attention", ATTENTION, attention)
add("attention_gradient", ATTENTION, jax.grad(lambda *a: jnp.sum(attention(*a) ** 2), argnums=(0, 1, 2, 3, 4)))
add("mlp_step", "f32[64,128] f32[128] f32[128,10] f32[10] f32[256,64] i32[256]", mlp_step, (True,) * 4 + (False,) * 2)
add("layers_step", "f32[128,128] " * 4 + "f32[32,128]", layers_step)
add(
    "random",
    "u32[2]",
    lambda k: (jax.random.bits(k, (300,)), jax.random.normal(k, (40, 50)), jax.random.uniform(k, ())),
)
add("random_split", "u32[2]", lambda k: jax.random.permutation(jax.random.split(k)[0], 200))
add("callback", "f32[30]", lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((30,), jnp.float32), x * 2) + 1)
add("empty", "f32[0,3] f32[0]", lambda x, y: (jnp.sum(x, 0), y + 1))
