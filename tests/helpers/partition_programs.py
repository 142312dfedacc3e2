"""Programs of whole arrays with layouts of their arguments: what is partitioned, here and beside JAX.

Each is written over a namespace ``jax``, so that the same mathematics runs in both libraries.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Program(NamedTuple):
    """A function of a namespace, that gives a function of arrays; their shapes and dtypes, and how they are split.

    ``outs`` says how results are to be, where that is asked for.
    """

    make: Callable
    shapes: tuple
    specs: tuple
    outs: tuple | None = None


SIZES = {"data": 2, "model": 4}
PROGRAMS: dict[str, Program] = {}


def arguments(program: Program) -> list[np.ndarray]:
    """Arrays for a program: integers are small indices."""
    rng = np.random.default_rng(7)
    found = []
    for shape in program.shapes:
        if shape and shape[-1] == "int32":
            found.append(rng.integers(0, 8, size=shape[:-1]).astype(np.int32))
        else:
            found.append(rng.normal(size=shape).astype(np.float32))
    return found


def program(*shapes, specs, outs=None):
    """Enter a function of the namespace into the table."""

    def enter(make):
        PROGRAMS[make.__name__] = Program(make, shapes, specs, outs)
        return make

    return enter


D, M, BOTH = "data", "model", ("data", "model")

# ---- elementwise operations, structure, reductions


@program((16, 32), (16, 32), specs=((D, M), (D, M)))
def elementwise(jax):
    return lambda x, y: jax.numpy.tanh(x) * y + 1


@program((16, 32), (16, 32), specs=((D, M), (M, D)))
def disagreeing(jax):
    return lambda x, y: x * y + 1


@program((16, 32), (32,), specs=((D, M), (M,)))
def bias(jax):
    return lambda x, b: jax.nn.relu(x + b)


@program((16, 32), specs=((D, M),), outs=((M, D),))
def transposed(jax):
    return lambda x: x.T


@program((16, 32), specs=((D, M),))
def total(jax):
    return lambda x: (x * x).sum()


@program((16, 32), specs=((D, M),))
def rows_and_columns(jax):
    return lambda x: (x.sum(0), x.max(1), x.mean())


@program((16, 32), specs=((None, M),))
def variance(jax):
    return lambda x: jax.numpy.var(x, axis=1)


@program((16, 32), specs=((None, M),))
def norm(jax):
    return lambda x: x / jax.numpy.linalg.norm(x, axis=1, keepdims=True)


@program((16, 32), specs=((None, M),))
def softmax(jax):
    return lambda x: jax.nn.softmax(x, 1)


@program((16, 32), specs=((D, M),))
def log_sum_exp(jax):
    return lambda x: jax.nn.logsumexp(x, axis=1)


@program((16, 32), (32,), (32,), specs=((D, M), (M,), (M,)))
def layer_norm(jax):
    def f(x, scale, shift):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift

    return f


@program((16, 8, 4), specs=((D, M, None),))
def merged(jax):
    return lambda x: jax.numpy.sin(x.reshape(128, 4))


@program((64, 8), specs=((BOTH, None),))
def split_axis(jax):
    return lambda x: jax.numpy.cos(x.reshape(8, 8, 8)).sum(2)


@program((16, 32), specs=((None, M),))
def largest_index(jax):
    return lambda x: jax.numpy.argmax(x, axis=1)


@program((16, 32), specs=((None, M),))
def sorted_rows(jax):
    return lambda x: jax.numpy.sort(x, axis=1)


@program((16, 32), specs=((None, M),))
def running_sums(jax):
    return lambda x: jax.numpy.cumsum(x, axis=1)


@program((16, 32), specs=((None, M),))
def differences(jax):
    return lambda x: x[:, 1:] - x[:, :-1]


@program((16, 32), specs=((None, M),))
def rolled(jax):
    return lambda x: jax.numpy.roll(x, 1, axis=1) * x


@program((16, 32), (16, 32), specs=((None, M), (None, M)))
def joined(jax):
    return lambda x, y: jax.numpy.concatenate([x, y], axis=0) * 2


# ---- products


@program((16, 64), (64, 32), specs=((D, M), (M, None)))
def product(jax):
    return lambda x, w: x @ w


@program((16, 64), (64, 32), specs=((D, M), (M, None)), outs=((D, M),))
def product_scattered(jax):
    return lambda x, w: x @ w


@program((16, 64), (64, 32), specs=((D, None), (D, M)))
def weights_in_parts(jax):
    return lambda x, w: jax.nn.relu(x @ w)


@program((8, 16, 32), (8, 32, 16), specs=((D, None, M), (D, M, None)))
def products_of_stacks(jax):
    return lambda x, y: jax.numpy.einsum("bij,bjk->bik", x, y)


@program((64, 128), (128, 32), (16, 64), specs=((None, M), (M, None), (D, None)))
def mlp(jax):
    return lambda w1, w2, x: jax.nn.relu(x @ w1) @ w2


@program(
    (64, 128),
    (128, 32),
    (64, 64),
    (64, 32),
    specs=((None, M), (M, None), (D, None), (D, None)),
    outs=((None, M), (M, None)),
)
def mlp_step(jax):
    def loss(w1, w2, x, y):
        return jax.numpy.mean((jax.nn.relu(x @ w1) @ w2 - y) ** 2)

    def step(w1, w2, x, y):
        g1, g2 = jax.grad(loss, (0, 1))(w1, w2, x, y)
        return w1 - 0.1 * g1, w2 - 0.1 * g2

    return step


@program((32, 64), (64,), (256, 32), (256, 64), specs=((), (), (BOTH, None), (BOTH, None)), outs=((), ()))
def data_parallel_step(jax):
    def loss(w, b, x, y):
        return jax.numpy.mean((jax.numpy.tanh(x @ w + b) - y) ** 2)

    def step(w, b, x, y):
        g, h = jax.grad(loss, (0, 1))(w, b, x, y)
        return w - 0.1 * g, b - 0.1 * h

    return step


@program((64, 64), (64, 64), (256, 64), specs=((D, None), (D, None), (D, None)), outs=((D, None), (D, None)))
def sharded_parameters_step(jax):
    def loss(w, v, x):
        return jax.numpy.mean((jax.nn.relu(x @ w) @ v - x) ** 2)

    def step(w, v, x):
        g, h = jax.grad(loss, (0, 1))(w, v, x)
        return w - 0.1 * g, v - 0.1 * h

    return step


@program((256, 16), (256,), (16,), specs=((D, None), (D,), ()))
def logistic_gradient(jax):
    def loss(x, y, w):
        return jax.numpy.mean(jax.nn.softplus(x @ w) - y * (x @ w))

    return jax.grad(loss, 2)


# ---- transformers


def attention(jax, q, k, v):
    scores = jax.numpy.einsum("bqhd,bkhd->bhqk", q, k) / 4.0
    return jax.numpy.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)


HEADS = ((4, 16, 8, 16),) * 3


@program(*HEADS, specs=((D, None, M, None),) * 3)
def attention_by_heads(jax):
    return lambda q, k, v: attention(jax, q, k, v)


@program(*HEADS, specs=((D, M, None, None),) * 3)
def attention_by_sequence(jax):
    return lambda q, k, v: attention(jax, q, k, v)


def block(jax, x, wq, wk, wv, wo, w1, w2):
    def normal(x):
        x = x - x.mean(-1, keepdims=True)
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    q, k, v = (jax.numpy.einsum("bsd,dhe->bshe", normal(x), w) for w in (wq, wk, wv))
    x = x + jax.numpy.einsum("bshe,hed->bsd", attention(jax, q, k, v), wo)
    return x + jax.nn.gelu(normal(x) @ w1) @ w2


BLOCK = ((4, 16, 32), (32, 4, 8), (32, 4, 8), (32, 4, 8), (4, 8, 32), (32, 64), (64, 32))
TENSOR_PARALLEL = ((D,), (None, M), (None, M), (None, M), (M,), (None, M), (M,))


@program(*BLOCK, specs=TENSOR_PARALLEL)
def transformer_block(jax):
    return lambda *args: block(jax, *args)


@program(*BLOCK, specs=TENSOR_PARALLEL, outs=TENSOR_PARALLEL[1:])
def transformer_gradient(jax):
    return jax.grad(lambda *args: (block(jax, *args) ** 2).mean(), tuple(range(1, 7)))


# ---- convolutions and windows


def conv(jax, x, w, strides=(1, 1)):
    return jax.lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@program((4, 16, 16, 8), (3, 3, 8, 16), specs=((D, None, None, None), ()))
def convolution(jax):
    return lambda x, w: jax.nn.relu(conv(jax, x, w))


@program((4, 16, 16, 8), (3, 3, 8, 16), specs=((D, M, None, None), ()))
def convolution_of_space(jax):
    return lambda x, w: jax.nn.relu(conv(jax, x, w))


@program((4, 16, 16, 8), (3, 3, 8, 16), specs=((None, D, M, None), ()))
def convolution_of_tiles(jax):
    return lambda x, w: conv(jax, x, w)


@program((4, 16, 16, 8), (3, 3, 8, 16), specs=((D, None, None, M), (None, None, M, None)))
def convolution_of_channels(jax):
    return lambda x, w: conv(jax, x, w)


@program((8, 16, 16, 4), (3, 3, 4, 8), specs=((BOTH, None, None, None), ()), outs=((),))
def convolution_gradient(jax):
    return jax.grad(lambda x, w: (conv(jax, x, w) ** 2).mean(), 1)


@program((4, 16, 16, 8), specs=((D, M, None, None),))
def pooled(jax):
    return lambda x: jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@program((64, 64), specs=((D, M),))
def heat(jax):
    def f(u):
        p = jax.numpy.pad(u, 1)
        return u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)

    return f


# ---- gathers and scatters


@program((64, 32), (16, "int32"), specs=((None, M), (D,)))
def embedding(jax):
    return lambda table, i: table[i]


@program((64, 32), (16, "int32"), specs=((M, None), (D,)))
def embedding_of_parts(jax):
    return lambda table, i: table[i]


@program((64, 32), (64, "int32"), specs=((None, M), (D,)), outs=((None, M),))
def embedding_gradient(jax):
    return jax.grad(lambda table, i: (table[i] ** 2).sum())


@program((64, 8), (64, "int32"), specs=((D, None), (D,)))
def segments(jax):
    return lambda x, i: jax.ops.segment_sum(x, i, 8)


@program((16, 8), (16, "int32"), specs=((D, M), (D,)))
def cross_entropy(jax):
    def f(logits, labels):
        hot = jax.nn.one_hot(labels, 8)
        return -(hot * jax.nn.log_softmax(logits)).sum(-1).mean()

    return f


# ---- loops, conditions, random numbers


@program((32, 32), (8, 16, 32), (16, 32), specs=((None, M), (None, D, None), (D, M)))
def recurrent(jax):
    def f(w, xs, h):
        step = lambda h, x: (jax.numpy.tanh(h @ w + x),) * 2  # noqa: E731
        return jax.lax.scan(step, h, xs)

    return f


@program((32, 32), (8, 16, 32), (16, 32), specs=((), (None, D, None), (D, None)), outs=((),))
def recurrent_gradient(jax):
    def f(w, xs, h):
        h, ys = jax.lax.scan(lambda h, x: (jax.numpy.tanh(h @ w + x), h.sum()), h, xs)
        return (h**2).sum() + ys.sum()

    return jax.grad(f)


@program((4, 64, 64), (16, 64), specs=((None, None, M), (D, None)))
def layers(jax):
    return lambda ws, x: jax.lax.scan(lambda x, w: (jax.nn.relu(x @ w), None), x, ws)[0]


@program((32, 32), (32,), specs=((D, M), (D,)))
def power_iteration(jax):
    def f(a, x):
        def step(i, x):
            x = a @ x
            return x / jax.numpy.sqrt((x * x).sum())

        return jax.lax.fori_loop(0, 5, step, x)

    return f


@program((16, 32), specs=((D, M),))
def until_small(jax):
    return lambda x: jax.lax.while_loop(lambda x: (x * x).sum() > 1, lambda x: x * 0.5, x)


@program((16, 32), specs=((D, M),))
def condition(jax):
    return lambda x: jax.lax.cond(x.sum() > 0, jax.numpy.sin, lambda x: x * 2, x)


@program((64, 64), specs=((D, M),))
def dropout(jax):
    def f(x):
        keep = jax.random.bernoulli(jax.random.key(3), 0.5, x.shape)
        return jax.numpy.where(keep, x / 0.5, 0)

    return f


@program((64, 64), specs=((D, M),))
def causal(jax):
    def f(x):
        i, j = jax.numpy.arange(64)[:, None], jax.numpy.arange(64)[None, :]
        return jax.numpy.where(i >= j, x, 0.0)

    return f


@program((32, 32), (32,), specs=((D, None), (D,)))
def conjugate_gradient(jax):
    def f(a, b):
        a = a @ a.T / 32 + jax.numpy.eye(32)

        def step(_, state):
            x, r, p = state
            q = a @ p
            alpha = (r @ r) / (p @ q)
            after = r - alpha * q
            return x + alpha * p, after, after + (after @ after) / (r @ r) * p

        return jax.lax.fori_loop(0, 4, step, (jax.numpy.zeros(32), b, b))[0]

    return f


@program((8, 16, 16), (8, 16), specs=((M, None, None), (M, None)))
def solved(jax):
    return lambda a, b: jax.vmap(jax.numpy.linalg.solve)(a + 20 * jax.numpy.eye(16), b)


@program((16, 32), specs=((D, M),))
def spectrum(jax):
    return lambda x: jax.numpy.abs(jax.numpy.fft.fft(x, axis=1))
