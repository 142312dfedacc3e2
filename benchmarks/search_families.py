"""More operations of programs that `search.py` times: reductions over several axes, indices, attention, convolutions
of other kinds, loops within loops, and blocks of whole models.
"""

from random_steps import axis, place, softmax
from search_steps import least, normalised, operation, rows, weighted

# ---- reductions over any axes, of what is computed, and several of one operand


def axes(rng, m, *rest):
    """Some of the axes of a value that has two at least."""
    if m.ndim < 2 or not m.size:
        return None
    return {"axes": sorted(int(d) for d in rng.choice(m.ndim, int(rng.integers(1, m.ndim + 1)), replace=False))}


rows("f", {
    "sum_axes": lambda jax, x, axes: jax.numpy.sum(x, tuple(axes)),
    "max_axes": lambda jax, x, axes: jax.numpy.max(x, tuple(axes)),
    "all_axes": lambda jax, x, axes: jax.numpy.all(x < 3, tuple(axes)),
    "mean_of_gaps": lambda jax, x, axes: jax.numpy.mean(jax.numpy.abs(x - 0.5), tuple(axes)),
    "standardised": lambda jax, x, axes: (x - x.mean(tuple(axes), keepdims=True)) / (
        x.std(tuple(axes), keepdims=True) + 1e-3),
    "count_axes": lambda jax, x, axes: jax.numpy.count_nonzero(x > 0.5, tuple(axes)),
    "scaled_by_extent": lambda jax, x, axes: x / (
        jax.numpy.max(x, tuple(axes), keepdims=True) - jax.numpy.min(x, tuple(axes), keepdims=True) + 1),
}, axes)  # fmt: skip
rows("f", {
    "moments": lambda jax, x, axis: x.mean(axis) + (x * x).mean(axis) * (x**3).mean(axis),
    "extremes": lambda jax, x, axis: (x.max(axis) - x.min(axis)) * (x.argmax(axis) - x.argmin(axis)),
    "sum_of_kept": lambda jax, x, axis: jax.numpy.sum(jax.numpy.where(x > 0, x * x, 0), axis),
    "variance": lambda jax, x, axis: jax.numpy.var(x, axis),
    "rms": lambda jax, x, axis: x * jax.lax.rsqrt(jax.numpy.mean(x * x, axis, keepdims=True) + 1e-6),
    "cumsum_of_square": lambda jax, x, axis: jax.numpy.cumsum(x * x, axis),
    "cumulative_logsumexp": lambda jax, x, axis: jax.lax.cumlogsumexp(x, axis),
    "top_three": lambda jax, x, axis: jax.lax.top_k(jax.numpy.moveaxis(x, axis, -1), min(3, x.shape[axis]))[0],
    "quantiles": lambda jax, x, axis: jax.numpy.quantile(x, jax.numpy.asarray([0.1, 0.9], x.dtype), axis),
}, axis)  # fmt: skip
rows("ff", {
    "dot_rows": lambda jax, x, y: jax.numpy.sum(x * y, -1),
    "gap_rows": lambda jax, x, y: jax.numpy.sum((x - y) ** 2, -1),
    "agreement": lambda jax, x, y: jax.numpy.mean((x > 0) == (y > 0)),
    "cosine": lambda jax, x, y: jax.numpy.sum(x * y, -1) / jax.numpy.sqrt(
        jax.numpy.sum(x * x, -1) * jax.numpy.sum(y * y, -1) + 1e-6),
    "nearest": lambda jax, x, y: jax.numpy.argmin(jax.numpy.sum((x[:256, None] - y[None, :64]) ** 2, -1), -1)
        if x.ndim == y.ndim == 2 else jax.numpy.argmin((x - y) ** 2, -1),
    "pairs_of_rows": lambda jax, x, y: jax.numpy.exp(-jax.numpy.sum((x[:200, None] - y[None, :200]) ** 2, -1)),
    "outer": lambda jax, x, y: jax.numpy.einsum("...i,...j->...ij", x[..., :256], y[..., :256]),
    "interpolated": lambda jax, x, y: jax.numpy.interp(x, jax.numpy.linspace(-3, 3, 100), jax.numpy.arange(100.0)) + y,
}, lambda rng, m, *rest: {} if m.ndim and m.size else None)  # fmt: skip
rows("ff", {
    "products_of_batch": lambda jax, x, y: x[..., :32, :32] @ y[..., :32, :32],
    "by_its_transpose": lambda jax, x, y: x[..., :512, :] @ jax.numpy.swapaxes(y[..., :512, :], -1, -2),
    "form": lambda jax, x, y: jax.numpy.einsum("...i,...ij->...j", x[..., 0, :], jax.numpy.swapaxes(y, -1, -2)),
}, least(2))  # fmt: skip

# ---- indices in pairs, selections, counts


def pairs(jax, x, i):
    return place(jax, x, i), (i * 7 + 3) % x.shape[1]


rows("fi", {
    "pair_gather": lambda jax, x, i: x[pairs(jax, x, i)],
    "pair_add": lambda jax, x, i: x.at[pairs(jax, x, i)].add(1),
    "take_sorted": lambda jax, x, i: jax.numpy.take_along_axis(x, jax.numpy.argsort(x, -1), -1),
    "chosen_column": lambda jax, x, i: jax.numpy.take_along_axis(x, jax.numpy.argmax(x, -1, keepdims=True), -1),
    "one_hot_product": lambda jax, x, i: jax.nn.one_hot(place(jax, x, i)[:4096], min(x.shape[0], 1000), dtype=x.dtype)
        @ x[:1000],
    "embedding_bag": lambda jax, x, i: x[place(jax, x, i)[: len(i) // 5 * 5].reshape(-1, 5)].mean(1),
    "sum_of_gathered": lambda jax, x, i: jax.numpy.sum(x[place(jax, x, i)] * 2, -1),
    "gaps_of_edges": lambda jax, x, i: jax.numpy.sum((x[place(jax, x, i)] - x[place(jax, x, i[::-1])]) ** 2, -1),
    "messages": lambda jax, x, i: jax.ops.segment_sum(
        jax.nn.relu(x[place(jax, x, i)]), place(jax, x, i[::-1]), num_segments=x.shape[0]),
    "columns_added": lambda jax, x, i: x.at[:, i % x.shape[1]].add(1),
}, least(2))  # fmt: skip
rows("fi", {
    "counts": lambda jax, x, i: jax.numpy.bincount(i, length=100),
    "segment_softmax": lambda jax, x, i: segment_softmax(jax, x.ravel()[: len(i)], i[: x.size] % 50),
    "batch_of_rows": lambda jax, x, i: jax.vmap(lambda k: jax.lax.dynamic_slice_in_dim(x, k, min(4, len(x))))(
        i[:1000] % len(x)),
    "places_found": lambda jax, x, i: jax.numpy.searchsorted(jax.numpy.sort(x.ravel()[:1000]), x.ravel()[:20000]),
    "histogram": lambda jax, x, i: jax.numpy.histogram(x, 20, (-3, 3))[0],
    "positions": lambda jax, x, i: jax.numpy.nonzero(x.ravel() > 1, size=100, fill_value=0)[0].astype("int32"),
    "kept_values": lambda jax, x, i: x.ravel()[jax.numpy.nonzero(x.ravel() > 0, size=x.size // 4, fill_value=0)[0]],
    "masked_set": lambda jax, x, i: jax.numpy.where(x < 0, 0, x),
    "masked_mean": lambda jax, x, i: jax.numpy.mean(x, where=x > 0),
    "prefix_mask": lambda jax, x, i: jax.numpy.where(jax.numpy.arange(x.shape[-1]) < i[0] % 50, x, 0),
    "row_of_each": lambda jax, x, i: jax.lax.dynamic_update_slice_in_dim(x, x[:1] * 2, i[0], 0),
    "dropout": lambda jax, x, i: x * jax.random.bernoulli(jax.random.key(3), 0.9, x.shape),
    "noise": lambda jax, x, i: x + jax.random.normal(jax.random.key(3), x.shape, x.dtype),
    "permuted": lambda jax, x, i: x[jax.random.permutation(jax.random.key(3), x.shape[0])],
    "triangle": lambda jax, x, i: jax.numpy.triu(x[..., None] + x[..., None, :16])[..., 0],
}, least(1))  # fmt: skip


def segment_softmax(jax, x, i):
    e = jax.numpy.exp(x - jax.ops.segment_max(x, i, num_segments=50)[i])
    return e / jax.ops.segment_sum(e, i, num_segments=50)[i]


# ---- attention by hand


@operation("ff", least(3))
def masked_attention(jax, x, y):
    """Of each row of one to those of the other, some of which a mask leaves out, with a bias by distance."""
    q, k = x.reshape(-1, *x.shape[-2:])[:, :512], y.reshape(-1, *y.shape[-2:])[:, :512]
    scores = jax.numpy.einsum("nqd,nkd->nqk", q, k) / q.shape[-1] ** 0.5
    distance = jax.numpy.abs(jax.numpy.arange(q.shape[1])[:, None] - jax.numpy.arange(k.shape[1]))
    scores = jax.numpy.where(k[:, None, :, 0] > -1, scores - 0.1 * distance, -1e9).astype(x.dtype)
    return jax.nn.softmax(scores, -1) @ k


@operation("f", weighted(2, lambda rng, m: [[4, 8, m.shape[-1]], [4, m.shape[-1] // 4]]))
def decoding(jax, x, weights):
    """One position of several heads beside all that were before."""
    keys = x.reshape(-1, *x.shape[-2:])[:4]
    scores = jax.numpy.einsum("btd,bhd->bht", keys, weights[0][: len(keys)])
    return jax.numpy.einsum("bht,btd->bhd", softmax(jax, scores, -1), keys)


@operation("f", least(2))
def rotated(jax, x):
    """Rotary positions."""
    half = x.shape[-1] // 2
    angles = jax.numpy.arange(x.shape[-2])[:, None] / 100.0 ** (jax.numpy.arange(half) / half)
    a, b, s, c = x[..., :half], x[..., half : 2 * half], jax.numpy.sin(angles), jax.numpy.cos(angles)
    return jax.numpy.concatenate([a * c - b * s, a * s + b * c], -1).astype(x.dtype)


# ---- convolutions


def channels(rng, m):
    return {"weights": [[3, m.shape[-1], int(rng.choice([1, 8, 32]))], [5, 5, 1, m.shape[-1]]]}


def convolved(jax, x, w, **how):
    how = {"window_strides": (1,) * (w.ndim - 2), "padding": "SAME"} | how
    numbers = ("NHWC", "HWIO", "NHWC") if w.ndim == 4 else ("NHC", "HIO", "NHC")
    return jax.lax.conv_general_dilated(x, w, dimension_numbers=numbers, **how)


def images(x):
    return x if x.ndim == 4 else x.reshape(-1, *x.shape[-3:])


def signals(x):
    return x.reshape(-1, *x.shape[-2:])


rows("f", {
    "convolution_along": lambda jax, x, weights: convolved(jax, signals(x), weights[0]),
    "convolution_causal": lambda jax, x, weights: convolved(
        jax, signals(x), weights[0], padding=[(4, 0)], rhs_dilation=(2,)),
}, lambda rng, m: channels(rng, m) if m.ndim >= 2 and m.shape[-2] > 8 else None)  # fmt: skip
rows("f", {
    "depthwise": lambda jax, x, weights: convolved(jax, images(x), weights[1], feature_group_count=x.shape[-1]),
    "blurred": lambda jax, x, weights: convolved(
        jax, images(x)[:1], weights[1], feature_group_count=x.shape[-1], window_strides=(2, 2), padding="VALID"),
    "pooled": lambda jax, x, weights: jax.lax.reduce_window(
        images(x), 0.0, jax.lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
}, lambda rng, m: channels(rng, m) if m.ndim >= 3 and min(m.shape[-3:-1]) > 5 else None)  # fmt: skip
rows("f", {
    "downsampled": lambda jax, x, weights: convolved(
        jax, images(x), weights[0].reshape(3, 1, *weights[0].shape[1:]), window_strides=(2, 2)),
    "one_image": lambda jax, x, weights: convolved(jax, images(x)[:1], weights[0].reshape(1, 3, *weights[0].shape[1:])),
    "upsampled": lambda jax, x, weights: jax.lax.conv_transpose(
        images(x), weights[0].reshape(1, 3, *weights[0].shape[1:]), (2, 2), "SAME"),
}, lambda rng, m: channels(rng, m) if m.ndim >= 3 and min(m.shape[-3:-1]) > 5 else None)  # fmt: skip

# ---- loops


@operation("f", least(2))
def nested_scans(jax, x):
    x = x.reshape(-1, x.shape[-1])[:100, :100]
    inner = lambda c, v: (0.5 * c + v, c * v)  # noqa: E731
    return jax.lax.scan(lambda c, r: jax.lax.scan(inner, c * 0.1, r), jax.numpy.zeros((), x.dtype), x)[1]


@operation("f", least(2))
def matrix_carry(jax, x):
    x = x.reshape(-1, x.shape[-1])[:200, :64]
    step = lambda c, r: (0.9 * c + r[:, None] * r, c @ r)  # noqa: E731
    return jax.lax.scan(step, jax.numpy.zeros((x.shape[1],) * 2, x.dtype), x)[1]


@operation("f", least(2))
def conditional_scan(jax, x):
    x = x.reshape(-1, x.shape[-1])[:1000]
    step = lambda c, r: (jax.lax.cond(jax.numpy.sum(r) > 0, lambda: c * 0.5 + r, lambda: c - r),) * 2  # noqa: E731
    return jax.lax.scan(step, x[0], x)[1]


@operation("ff", least(1))
def alignment(jax, x, y):
    """The table of a dynamic program, row by row."""
    a, b = x.ravel()[:200], y.ravel()[:200]

    def row(above, v):
        cost = jax.numpy.abs(v - b) + jax.numpy.minimum(above, jax.numpy.roll(above, 1))
        return (jax.lax.cummin(cost),) * 2

    return jax.lax.scan(row, jax.numpy.zeros_like(b), a)[1]


@operation("f", least(1))
def averages(jax, x):
    """An exponential average of single numbers."""
    return jax.lax.scan(lambda c, v: (0.9 * c + 0.1 * v,) * 2, x.ravel()[0], x.ravel()[:20000])[1]


@operation("f", least(1))
def turning(jax, x):
    """Products of all matrices up to each."""
    x = x.ravel()[:4000]
    turns = jax.numpy.stack([jax.numpy.cos(x), -jax.numpy.sin(x), jax.numpy.sin(x), jax.numpy.cos(x)], -1)
    return jax.lax.associative_scan(lambda a, b: a @ b, turns.reshape(-1, 2, 2))


@operation("f", weighted(2, lambda rng, m: [[m.shape[-1], 96], [32, 96]]))
def gru(jax, x, weights):
    x = signals(x)[:64]

    def step(h, r):
        a, b = r @ weights[0], h @ weights[1]
        z, f = jax.nn.sigmoid(a[:, :32] + b[:, :32]), jax.nn.sigmoid(a[:, 32:64] + b[:, 32:64])
        h = z * h + (1 - z) * jax.numpy.tanh(a[:, 64:] + f * b[:, 64:])
        return h, h

    return jax.lax.scan(step, jax.numpy.zeros((x.shape[1], 32), x.dtype), x)[1]


@operation("f", least(2))
def filtering(jax, x):
    """A Kalman filter of four numbers."""
    x = x.reshape(-1, x.shape[-1])[:200, :2]
    move = jax.numpy.eye(4, dtype=x.dtype) + 0.1 * jax.numpy.eye(4, k=2, dtype=x.dtype)
    see = jax.numpy.eye(4, dtype=x.dtype)[: x.shape[1]]

    def step(carry, r):
        m, p = carry
        m, p = move @ m, move @ p @ move.T + 0.1 * jax.numpy.eye(4, dtype=x.dtype)
        s = see @ p @ see.T + jax.numpy.eye(len(see), dtype=x.dtype)
        gain = jax.numpy.linalg.solve(s.astype("float32"), (see @ p).astype("float32")).T.astype(x.dtype)
        return (m + gain @ (r - see @ m), p - gain @ see @ p), m

    return jax.lax.scan(step, (x[0, 0] * move[0], move), x)[1]


@operation("f", least(2))
def power_iteration(jax, x):
    x = signals(x)[0][:300, :300]
    step = lambda _, v: (w := x.T @ (x @ v)) / (jax.numpy.max(jax.numpy.abs(w)) + 1e-3)  # noqa: E731
    return jax.lax.fori_loop(0, 20, step, x[0])


@operation("f", least(1))
def runge_kutta(jax, x):
    def step(_, v):
        a = jax.numpy.sin(v)
        b = jax.numpy.sin(v + 0.05 * a)
        return v + 0.1 * jax.numpy.sin(v + 0.1 * b)

    return jax.lax.fori_loop(0, 10, step, x)


@operation("f", least(2))
def diffusion(jax, x):
    x = signals(x)[0][:300, :300]
    roll = jax.numpy.roll
    step = lambda _, v: v + 0.1 * (roll(v, 1, 0) + roll(v, -1, 0) + roll(v, 1, 1) + roll(v, -1, 1) - 4 * v)  # noqa: E731
    return jax.lax.fori_loop(0, 20, step, x)


# ---- blocks of models


@operation("f", weighted(2, lambda rng, m: [[m.shape[-1], 64], [64, m.shape[-1]], [64]]))
def autoencoder(jax, x, weights):
    hidden = jax.numpy.tanh(x @ weights[0] + weights[2])
    return jax.numpy.mean((hidden @ weights[1] - x) ** 2, -1)


@operation("f", weighted(3, lambda rng, m: [[3, 3, m.shape[-1], m.shape[-1]], [m.shape[-1]]]))
def residual_block(jax, x, weights):
    x = images(x)
    y = convolved(jax, x, weights[0])
    y = (y - y.mean((0, 1, 2))) * jax.lax.rsqrt(y.var((0, 1, 2)) + 1e-5) * weights[1]
    return x + jax.nn.relu(y)


@operation("fi", weighted(2, lambda rng, m: [[m.shape[-1], 32]]))
def graph_layer(jax, x, i, weights):
    x = x.reshape(-1, x.shape[-1])
    a, b = place(jax, x, i), place(jax, x, i[::-1])
    sums = jax.ops.segment_sum(x[a], b, num_segments=x.shape[0])
    degrees = jax.ops.segment_sum(jax.numpy.ones_like(a, x.dtype), b, num_segments=x.shape[0])
    return jax.nn.relu(sums / (degrees[:, None] + 1) @ weights[0])


@operation("ff", least(2))
def contrastive(jax, x, y):
    x, y = (normalised(jax, v.reshape(-1, v.shape[-1])[:256], -1) for v in (x, y))
    return -jax.numpy.mean(jax.numpy.diagonal(jax.nn.log_softmax(x @ y.T / 0.1, -1)))


@operation("f", least(2))
def gaussian_process(jax, x):
    x = x.reshape(-1, x.shape[-1])[:100, :8].astype("float32")
    gaps = jax.numpy.sum((x[:, None] - x[None]) ** 2, -1)
    factor = jax.numpy.linalg.cholesky(jax.numpy.exp(-0.5 * gaps) + 0.1 * jax.numpy.eye(len(x), dtype=x.dtype))
    white = jax.scipy.linalg.solve_triangular(factor, x[:, 0], lower=True)
    return 0.5 * white @ white + jax.numpy.sum(jax.numpy.log(jax.numpy.diagonal(factor)))


@operation("f", weighted(2, lambda rng, m: [[16, m.shape[-1]]]))
def quantised(jax, x, weights):
    """Each row as the nearest of a code book, with the gradient passed on."""
    x = x.reshape(-1, x.shape[-1])[:4096]
    gaps = jax.numpy.sum(weights[0] ** 2, -1) - 2 * x @ weights[0].T
    return x + jax.lax.stop_gradient(weights[0][jax.numpy.argmin(gaps, -1)] - x)


@operation("f", weighted(2, lambda rng, m: [[m.shape[-1], 15]]))
def mixture(jax, x, weights):
    """The log density of a mixture whose parameters a layer makes."""
    weight, mean, scale = jax.numpy.split(x @ weights[0], 3, -1)
    z = (x[..., :1] - mean) * jax.numpy.exp(-scale)
    return jax.scipy.special.logsumexp(jax.nn.log_softmax(weight, -1) - 0.5 * z * z - scale, -1)


@operation("f", weighted(1, lambda rng, m: [[16]] * int(rng.choice([10, 100, 300]))))
def momentum(jax, x, weights):
    """An optimiser's step on many small leaves, with the norm of all."""
    gradients = [w * x.ravel()[0] for w in weights]
    norm = jax.numpy.sqrt(sum(jax.numpy.sum(g * g) for g in gradients))
    new = [
        w - 0.1 * g * jax.numpy.minimum(1, 1 / norm).astype(g.dtype) for w, g in zip(weights, gradients, strict=True)
    ]
    return jax.numpy.concatenate(new)
