"""The operations of programs that `search.py` times: those of `random_steps`, and what programs of many elements do.

An operation reads values of some kinds (see `random_steps.KINDS`); ``choose(rng, *metas)`` gives its parameters, or
None where it does not fit. A parameter ``weights`` lists shapes of float arrays that the program has as arguments, and
that the operation is given in their place. Whether an operation fits otherwise, and what it makes, tracing tells.
"""

import random_steps
from random_steps import Meta, Operation, axis, nothing, softmax, table

HEADS = 4
TAKEN_OVER = (
    "add sub mul maximum where_less less logical_and floor_divide bitwise neg abs relu half floor round sign "
    "to_int to_float sin tanh bell log sqrt logistic div sum max min cumsum associative_scan cummax argmax argsort "
    "sort flip roll softmax concatenate transpose ravel broadcast pad tril slice gather scatter_add dynamic_slice "
    "one_hot matmul cond scan scan_reverse fori_loop lax_map vmap"
).split()
OPERATIONS: dict[str, Operation] = {name: random_steps.OPERATIONS[name] for name in TAKEN_OVER}


def operation(kinds: str, choose=nothing):
    def register(run):
        OPERATIONS[run.__name__] = Operation(kinds, run, None, choose)
        return run

    return register


def rows(kinds: str, made: dict, choose=nothing):
    before = set(random_steps.OPERATIONS)
    table(kinds, None, made, choose)
    for name in set(random_steps.OPERATIONS) - before:
        OPERATIONS[name] = random_steps.OPERATIONS.pop(name)


def least(rank: int, extra=lambda rng, m: {}):
    """Of values with so many axes at least."""
    return lambda rng, m, *rest: extra(rng, m) if m.ndim >= rank and m.size else None


def weighted(rank: int, shapes):
    """With weights of shapes that the value's shape tells."""
    return lambda rng, m, *rest: {"weights": shapes(rng, m)} if m.ndim >= rank and m.size else None


def width(rng) -> int:
    return int(rng.choice([1, 3, 10, 16, 64, 100, 256, 512]))


# ---- elementwise

rows("f", {
    "exp": lambda jax, x: jax.numpy.exp(x - 3),
    "gelu": lambda jax, x: jax.nn.gelu(x),
    "silu": lambda jax, x: jax.nn.silu(x),
    "softplus": lambda jax, x: jax.nn.softplus(x),
    "erf": lambda jax, x: jax.lax.erf(x),
    "arctan2": lambda jax, x: jax.numpy.arctan2(x, x * x + 1),
    "power": lambda jax, x: (x * x + 0.1) ** 1.7,
    "cube": lambda jax, x: x**3,
    "reciprocal": lambda jax, x: 1 / (x * x + 1),
    "isfinite": lambda jax, x: jax.numpy.where(jax.numpy.isfinite(x), x, 0),
    "to_uint8": lambda jax, x: (x * 40).astype("uint8"),
    "through_bfloat16": lambda jax, x: x.astype("bfloat16").astype(x.dtype),
})  # fmt: skip
rows("n", {
    "clip_to": lambda jax, x: jax.numpy.clip(x, -1, 2),
    "square": lambda jax, x: x * x,
    "count": lambda jax, x: jax.numpy.sum(x > 1),
})  # fmt: skip

# ---- special functions, some with a parameter that is the same for all elements

rows("f", {
    "erfc": lambda jax, x: jax.scipy.special.erfc(x),
    "lgamma": lambda jax, x: jax.scipy.special.gammaln(x),
    "digamma": lambda jax, x: jax.scipy.special.digamma(x * x + 0.1),
    "bessel_i0": lambda jax, x: jax.scipy.special.i0(x),
    "ndtri": lambda jax, x: jax.scipy.special.ndtri(jax.nn.sigmoid(x)),
    "norm_cdf": lambda jax, x: jax.scipy.stats.norm.cdf(x),
    "gamma_density": lambda jax, x: jax.scipy.stats.gamma.logpdf(x * x + 0.1, 2.5),
    "gamma_density_given": lambda jax, x: jax.scipy.stats.gamma.logpdf(x * x + 0.1, x.ravel()[0] ** 2 + 1),
    "beta_density": lambda jax, x: jax.scipy.stats.beta.logpdf(jax.nn.sigmoid(x), 2.5, 1.5),
    "poisson_mass": lambda jax, x: jax.scipy.stats.poisson.logpmf(jax.numpy.floor(x * x), 3.0),
    "binomial_mass": lambda jax, x: jax.scipy.stats.binom.logpmf(jax.numpy.floor(x * x), 20, 0.3),
})  # fmt: skip
rows("f", {
    "spectrum": lambda jax, x, axis: jax.numpy.abs(jax.numpy.fft.rfft(x, axis=axis)),
}, axis)  # fmt: skip

# ---- along axes

rows("f", {
    "mean": lambda jax, x, axis: jax.numpy.mean(x, axis),
    "std": lambda jax, x, axis: jax.numpy.std(x, axis),
    "norm": lambda jax, x, axis: jax.numpy.sqrt(jax.numpy.sum(x * x, axis) + 1e-6),
    "prod": lambda jax, x, axis: jax.numpy.prod(1 + x * 1e-3, axis),
    "cumprod": lambda jax, x, axis: jax.numpy.cumprod(1 + x * 1e-3, axis),
    "logsumexp": lambda jax, x, axis: jax.scipy.special.logsumexp(x, axis),
    "log_softmax": lambda jax, x, axis: jax.nn.log_softmax(x, axis),
    "normalise": lambda jax, x, axis: normalised(jax, x, axis),
    "extent": lambda jax, x, axis: jax.numpy.max(x, axis) - jax.numpy.min(x, axis),
    "any": lambda jax, x, axis: jax.numpy.any(x > 3, axis),
    "diff": lambda jax, x, axis: jax.numpy.diff(x, axis=axis),
    "windows": lambda jax, x, axis: moving(jax, x, axis),
    "reflected": lambda jax, x, axis: reflected(jax, x, axis),
    "median": lambda jax, x, axis: jax.numpy.median(x, axis),
    "argmin": lambda jax, x, axis: jax.numpy.argmin(x, axis).astype("int32"),
}, axis)  # fmt: skip
rows("f", {"mean_of_all": lambda jax, x: jax.numpy.mean(x), "sum_of_squares": lambda jax, x: jax.numpy.sum(x * x)})
rows("f", {
    "sum_twice": lambda jax, x: jax.numpy.sum(x, (0, -1)),
    "swap": lambda jax, x: jax.numpy.swapaxes(x, -1, -2),
    "plus_transposed": lambda jax, x: x[..., : min(x.shape[-2:]), : min(x.shape[-2:])] * jax.numpy.swapaxes(
        x[..., : min(x.shape[-2:]), : min(x.shape[-2:])], -1, -2),
    "neighbours": lambda jax, x: neighbours(jax, x),
    "pool": lambda jax, x: jax.lax.reduce_window(x, -jax.numpy.inf, jax.lax.max, (1,) * (x.ndim - 2) + (2, 2),
                                                 (1,) * (x.ndim - 2) + (2, 2), "VALID"),
}, least(2))  # fmt: skip


def normalised(jax, x, axis):
    centred = x - jax.numpy.mean(x, axis, keepdims=True)
    return centred * jax.lax.rsqrt(jax.numpy.mean(centred**2, axis, keepdims=True) + 1e-5)


def moving(jax, x, axis):
    n, take = x.shape[axis], jax.lax.slice_in_dim
    return sum(take(x, k, n - 4 + k, axis=axis) for k in range(5)) / 5


def reflected(jax, x, axis):
    padded = jax.numpy.pad(x, [(1, 1) if d == axis else (0, 0) for d in range(x.ndim)], mode="reflect")
    take = jax.lax.slice_in_dim
    return take(padded, 0, x.shape[axis], axis=axis) + take(padded, 2, None, axis=axis)


def neighbours(jax, x):
    roll = jax.numpy.roll
    return roll(x, 1, -1) + roll(x, -1, -1) + roll(x, 1, -2) + roll(x, -1, -2) - 4 * x


# ---- indices


def places(jax, x, i):
    return jax.numpy.clip(i, 0, x.shape[0] - 1)


rows("fi", {
    "take_along": lambda jax, x, i: jax.numpy.take_along_axis(
        x, (jax.numpy.arange(x.shape[-1]) + i.ravel()[0]) % x.shape[-1] + jax.numpy.zeros_like(x, "int32"), -1),
    "take_columns": lambda jax, x, i: x[..., jax.numpy.clip(i, 0, x.shape[-1] - 1)],
    "segment_sum": lambda jax, x, i: jax.ops.segment_sum(
        x[: i.shape[0]], places(jax, x, i)[: x.shape[0]], num_segments=min(x.shape[0], 100)),
    "segment_max": lambda jax, x, i: jax.ops.segment_max(
        x[: i.shape[0]], places(jax, x, i)[: x.shape[0]], num_segments=min(x.shape[0], 100)),
    "sorted_segments": lambda jax, x, i: jax.ops.segment_sum(
        x, jax.numpy.arange(x.shape[0]) // 10, num_segments=x.shape[0] // 10 + 1, indices_are_sorted=True),
    "lookup": lambda jax, x, i: (i[..., None] == jax.numpy.arange(x.shape[0])).astype(x.dtype) @ x
        if x.ndim == 2 and x.shape[0] <= 512 else x[places(jax, x, i)],
    "shifted": lambda jax, x, i: x[jax.numpy.arange(x.shape[0] - 8)[:, None] + jax.numpy.arange(8)],
    "row_updates": lambda jax, x, i: x.at[places(jax, x, i)].set(0.5),
}, least(1))  # fmt: skip

# ---- products

rows("f", {
    "gram": lambda jax, x: jax.numpy.swapaxes(x, -1, -2) @ x,
    "distances": lambda jax, x: distances(jax, x, x[..., :64, :]),
    "bilinear": lambda jax, x: jax.numpy.einsum("...ij,...ij,...j->...i", x, x + 1, x[..., 0, :]),
    "scaled": lambda jax, x: jax.numpy.einsum("...ij,...j->...ij", x, x[..., 0, :]),
    "trace_of": lambda jax, x: jax.numpy.einsum("...ij,...ij->...", x, x + 1),
}, least(2))  # fmt: skip
rows("f", {
    "times_vector": lambda jax, x, weights: x @ weights[0],
    "vector_times": lambda jax, x, weights: jax.numpy.einsum("i,...ij->...j", weights[1], x),
}, weighted(2, lambda rng, m: [m.shape[-1:], m.shape[-2:-1]]))  # fmt: skip
rows("f", {
    "linear": lambda jax, x, weights: x @ weights[0],
    "dense": lambda jax, x, weights: jax.nn.relu(x @ weights[0] + weights[1]),
    "dense_gelu": lambda jax, x, weights: jax.nn.gelu(x @ weights[0] + weights[1]),
    "by_transposed": lambda jax, x, weights: x @ weights[2].T,
}, weighted(2, lambda rng, m: layer(m.shape[-1], width(rng))))  # fmt: skip
rows("f", {
    "inverse": lambda jax, x: jax.numpy.linalg.inv(definite(jax, x)),
    "solve": lambda jax, x: jax.numpy.linalg.solve(definite(jax, x), x),
    "cholesky": lambda jax, x: jax.numpy.linalg.cholesky(definite(jax, x)),
    "determinant": lambda jax, x: jax.numpy.linalg.slogdet(definite(jax, x))[1],
}, lambda rng, m: {} if m.ndim >= 2 and m.shape[-1] <= 128 and m.shape[-2] <= 128 else None)  # fmt: skip


def distances(jax, x, y):
    return jax.numpy.sum(y * y, -1)[..., None] - 2 * y @ jax.numpy.swapaxes(x, -1, -2)


def layer(n: int, out: int) -> list:
    return [[n, out], [out], [out, n]]


def definite(jax, x):
    x = x.astype("float32")
    return x @ jax.numpy.swapaxes(x, -1, -2) / x.shape[-1] + jax.numpy.eye(x.shape[-2])


# ---- loops


@operation("f", least(1))
def recurrence(jax, x):
    return jax.lax.scan(lambda c, r: (0.9 * c + r, (c, jax.numpy.sum(c))), x[0] * 0, x)[1][0]


@operation("f", least(1))
def smoother(jax, x):
    return jax.lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x * 0.1, x))[1]


@operation("f", weighted(2, lambda rng, m: [[m.shape[-1], 32], [32, 32]]))
def rnn(jax, x, weights):
    x = x.reshape(-1, *x.shape[-2:])[:64]
    step = lambda h, r: (jax.numpy.tanh(r @ weights[0] + h @ weights[1]),) * 2  # noqa: E731
    start = jax.numpy.zeros((x.shape[1], 32), x.dtype)
    return jax.lax.scan(step, start, x)[1]


@operation("f", weighted(2, lambda rng, m: [[m.shape[-1], 128], [32, 128], [128]]))
def lstm(jax, x, weights):
    x = x.reshape(-1, *x.shape[-2:])[:64]
    act = jax.nn.sigmoid

    def step(carry, r):
        h, c = carry
        i, f, g, o = jax.numpy.split(r @ weights[0] + h @ weights[1] + weights[2], 4, -1)
        c = act(f) * c + act(i) * jax.numpy.tanh(g)
        h = act(o) * jax.numpy.tanh(c)
        return (h, c), h

    start = jax.numpy.zeros((x.shape[1], 32), x.dtype)
    return jax.lax.scan(step, (start, start), x)[1]


@operation("f", least(2))
def shortest_paths(jax, x):
    n = min(*x.shape[-2:], 128)
    d = x.reshape(-1, *x.shape[-2:])[0, :n, :n]
    return jax.lax.fori_loop(0, n, lambda k, d: jax.numpy.minimum(d, d[:, k, None] + d[k]), d)


@operation("f", least(2))
def best_paths(jax, x):
    t = x[..., : min(32, x.shape[-1])].reshape(-1, min(32, x.shape[-1]))[:200]
    scores = t[: t.shape[1]].T @ t[: t.shape[1]]
    step = lambda s, r: ((jax.numpy.max(s[:, None] + scores, 0) + r),) * 2  # noqa: E731
    return jax.lax.scan(step, t[0], t)[1]


@operation("f", least(1))
def newton(jax, x):
    done = lambda v: jax.numpy.logical_and(v[0] < 20, jax.numpy.max(jax.numpy.abs(v[1])) > 1e-3)  # noqa: E731
    return jax.lax.while_loop(done, lambda v: (v[0] + 1, v[1] / 2), (0, jax.numpy.clip(x, -9, 9)))[1]


@operation("f", least(2))
def k_means(jax, x):
    x = x.reshape(-1, x.shape[-1])

    def step(_, centres):
        gaps = jax.numpy.sum(centres**2, -1) - 2 * x @ centres.T
        near = jax.numpy.argmin(gaps, -1)
        sums = jax.ops.segment_sum(x, near, num_segments=centres.shape[0])
        counts = jax.ops.segment_sum(jax.numpy.ones_like(x[:, 0]), near, num_segments=centres.shape[0])
        return sums / (counts[:, None] + 1)

    return jax.lax.fori_loop(0, 5, step, x[:8])


# ---- blocks of models


@operation("f", weighted(2, lambda rng, m: [[m.shape[-1], 3 * 64], [64, m.shape[-1]]]))
def attention(jax, x, weights):
    n, t, d = (x := x.reshape(-1, *x.shape[-2:])).shape
    q, k, v = (a.reshape(n, t, HEADS, -1) for a in jax.numpy.split(normalised(jax, x, -1) @ weights[0], 3, -1))
    scores = jax.numpy.einsum("nqhd,nkhd->nhqk", q, k) / 4
    scores = jax.numpy.where(jax.numpy.tril(jax.numpy.ones((t, t), bool)), scores, -1e9)
    return x + jax.numpy.einsum("nhqk,nkhd->nqhd", softmax(jax, scores, -1), v).reshape(n, t, -1) @ weights[1]


@operation("f", weighted(2, lambda rng, m: [[m.shape[-1], 2 * m.shape[-1]], [2 * m.shape[-1], m.shape[-1]]]))
def mlp_block(jax, x, weights):
    return x + jax.nn.gelu(normalised(jax, x, -1) @ weights[0]) @ weights[1]


@operation("f", weighted(3, lambda rng, m: [[3, 3, m.shape[-1], int(rng.choice([4, 16, 32]))]]))
def convolution(jax, x, weights):
    x = x if x.ndim == 4 else x.reshape(-1, *x.shape[-3:])
    return jax.lax.conv_general_dilated(x, weights[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@operation("f", weighted(2, lambda rng, m: [[m.shape[-1], 4], [4, m.shape[-1], 32], [4, 32, m.shape[-1]]]))
def experts(jax, x, weights):
    gates = softmax(jax, x @ weights[0], -1)
    hidden = jax.nn.relu(jax.numpy.einsum("...d,edf->...ef", x, weights[1]))
    return jax.numpy.einsum("...e,...ef,efd->...d", gates, hidden, weights[2])


@operation("fi", weighted(2, lambda rng, m: [[50, 32]]))
def embedding(jax, x, i, weights):
    return weights[0][jax.numpy.clip(i, 0, 49)]


@operation("f", weighted(2, lambda rng, m: [[m.shape[-1], 10]]))
def cross_entropy(jax, x, weights):
    labels = jax.numpy.argmax(x[..., :10], -1)
    return -jax.numpy.mean(jax.numpy.take_along_axis(jax.nn.log_softmax(x @ weights[0]), labels[..., None], -1))


@operation("f", weighted(2, lambda rng, m: [[m.shape[-1], 32], [32, 1]]))
def clipped_gradients(jax, x, weights):
    """The sum of the gradients of each example, none longer than one."""
    x = x.reshape(-1, x.shape[-1])[:256]
    loss = lambda ws, r: jax.numpy.sum(jax.numpy.tanh(r @ ws[0]) @ ws[1])  # noqa: E731
    grads = jax.vmap(jax.grad(loss), (None, 0))(weights, x)
    norms = jax.numpy.sqrt(sum(jax.numpy.sum(g.reshape(len(x), -1) ** 2, 1) for g in grads) + 1e-6)
    return jax.numpy.tensordot(jax.numpy.minimum(1, 1 / norms).astype(x.dtype), grads[0], 1)


@operation(
    "f", weighted(1, lambda rng, m: [list(m.shape)] * int(rng.choice([6, 30, 120])) if m.size < 20000 else [[1]])
)
def adam(jax, x, weights):
    gradient = [w * 0.1 + x for w in weights] if weights[0].shape == x.shape else [x]
    moments = [(0.9 * g, 0.999 * g * g) for g in gradient]
    return sum(m / (jax.numpy.sqrt(v) + 1e-3) for m, v in moments)


def kind_of(dtype) -> str:
    return "b" if dtype.kind == "b" else "i" if dtype.kind in "iu" else "f"


def meta(shape, dtype) -> Meta:
    return Meta(tuple(shape), kind_of(dtype), 1.0, 0)
