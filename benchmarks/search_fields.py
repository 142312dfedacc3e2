"""Operations of other fields than learning, for programs that `search.py` times: pictures, geometry, finance, physics,
control, graphs and strings, as programs of these fields have them at their heart.
"""

from search_families import images, signals
from search_steps import least, operation, rows

rows("f", {
    "equalised": lambda jax, x: _equalised(jax, jax.nn.sigmoid(x)),
    "call_price": lambda jax, x: _call_price(jax, jax.numpy.abs(x) + 0.5),
    "call_delta": lambda jax, x: jax.grad(lambda s: jax.numpy.sum(_call_price(jax, s)))(jax.numpy.abs(x) + 0.5),
    "planck": lambda jax, x: x**3 / (jax.numpy.expm1(jax.numpy.abs(x) + 0.1)),
    "hashed": lambda jax, x: jax.numpy.zeros(4096, x.dtype).at[_hashes(jax, x)].add(x.ravel()),
    "folded": lambda jax, x: x - 6 * jax.numpy.round(x / 6),
}, lambda rng, m, *rest: {} if m.ndim and m.size else None)  # fmt: skip


def _equalised(jax, x):
    """Grey levels by the share of those that are darker."""
    level = (x * 255).astype("int32")
    return (jax.numpy.cumsum(jax.numpy.bincount(level.ravel(), length=256)) / x.size)[level].astype(x.dtype)


def _call_price(jax, s):
    """Of Black and Scholes, for a strike of 1 in a year."""
    d = (jax.numpy.log(s) + 0.04) / 0.2
    return s * jax.scipy.stats.norm.cdf(d) - 0.98 * jax.scipy.stats.norm.cdf(d - 0.2)


def _hashes(jax, x):
    bits = jax.numpy.arange(x.size, dtype="uint32") * jax.numpy.uint32(2654435761)
    return (bits ^ bits >> 15) % 4096


@operation("f", least(2))
def suppression(jax, x):
    """Boxes that no better one overlaps by half."""
    x = jax.nn.sigmoid(x.reshape(-1, x.shape[-1])[:200, :4])
    if x.shape[-1] < 4:
        return x
    low = x[jax.numpy.argsort(-x[:, 0])][:, :2]
    high = low + x[:, 2:] * 0.3
    sides = jax.numpy.minimum(high[:, None], high) - jax.numpy.maximum(low[:, None], low)
    area, common = jax.numpy.prod(high - low, -1), jax.numpy.prod(jax.numpy.maximum(sides, 0), -1)
    overlap = common / (area[:, None] + area - common + 1e-6)
    later = jax.numpy.arange(len(x))

    def step(k, kept):
        return kept & ~((overlap[k] > 0.5) & (later > k) & kept[k])

    return jax.lax.fori_loop(0, len(x), step, jax.numpy.ones(len(x), bool))


@operation("f", least(2))
def smoothed_edges(jax, x):
    """A bilateral filter of 5 x 5 pixels."""
    x = x.reshape(-1, x.shape[-1])[:256]
    padded = jax.numpy.pad(x, 2, mode="edge")
    total, weights = 0, 0
    for i in range(5):
        for j in range(5):
            near = padded[i : i + x.shape[0], j : j + x.shape[1]]
            weight = jax.numpy.exp(-((i - 2) ** 2 + (j - 2) ** 2) / 8 - (near - x) ** 2 / 0.02)
            total, weights = total + weight * near, weights + weight
    return total / weights


@operation("f", least(1))
def sphere_march(jax, x):
    """How far rays go before they meet a sphere: a loop of unknown length for each."""

    def one(angle):
        y = jax.numpy.sin(angle)

        def step(state):
            far, _, count = state
            gap = jax.numpy.sqrt((far - 3) ** 2 + y * y * far * far) - 1
            return far + gap, gap, count + 1

        def going(state):
            return (state[1] > 1e-3) & (state[0] < 10) & (state[2] < 50)

        return jax.lax.while_loop(going, step, (jax.numpy.zeros_like(y), jax.numpy.ones_like(y), 0))[0]

    return jax.vmap(one)(x.ravel()[:4096].astype("float32"))


@operation("f", least(2))
def implicit_heat(jax, x):
    """Steps that solve a system of three diagonals."""
    x = x.reshape(-1, x.shape[-1])[:50, :512].astype("float32")
    n = x.shape[-1]
    beside = jax.numpy.full(n, -0.5, x.dtype)
    below, above, middle = beside.at[0].set(0), beside.at[-1].set(0), jax.numpy.full(n, 2.0, x.dtype)

    def step(u, force):
        u = jax.lax.linalg.tridiagonal_solve(below, middle, above, (u + force)[:, None])[:, 0]
        return u, u[0]

    return jax.lax.scan(step, jax.numpy.zeros(n, x.dtype), x)[0]


@operation("f", least(2))
def resampled(jax, x):
    """A particle filter that resamples systematically."""
    x = x.reshape(-1, x.shape[-1])[:100]
    count = min(x.shape[-1], 500)
    even = (jax.numpy.arange(count, dtype=x.dtype) + 0.5) / count

    def step(particles, noise):
        particles = 0.9 * particles + noise
        sums = jax.numpy.cumsum(jax.nn.softmax(-(particles**2)))
        particles = particles[jax.numpy.minimum(jax.numpy.searchsorted(sums, even), count - 1)]
        return particles, particles.mean()

    return jax.lax.scan(step, jax.numpy.zeros(count, x.dtype), x[:, :count])[1]


@operation("f", least(2))
def paths_between_all(jax, x):
    """Floyd's and Warshall's shortest paths."""
    x = jax.numpy.abs(x.reshape(-1, x.shape[-1])[:128, :128])
    n = min(x.shape)
    return jax.lax.fori_loop(0, n, lambda k, d: jax.numpy.minimum(d, d[:, k, None] + d[k]), x[:n, :n])


@operation("f", least(2))
def flow_of_a_lattice(jax, x):
    """A step of a lattice gas: nine densities that move to neighbours."""
    moves = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    x = x.reshape(-1, x.shape[-1])[:256, :256]
    gas = jax.numpy.stack([0.1 * jax.numpy.roll(x, move, (0, 1)) + 1 for move in moves])
    density = gas.sum(0)
    flow = [sum(m[k] * g for m, g in zip(moves, gas, strict=True)) / density for k in range(2)]
    calm = [density / 9 * (1 + 3 * (m[0] * flow[0] + m[1] * flow[1])) for m in moves]
    gas = gas - (gas - jax.numpy.stack(calm)) * 0.6
    return jax.numpy.stack([jax.numpy.roll(g, m, (0, 1)) for g, m in zip(gas, moves, strict=True)])


@operation("f", least(2))
def local_medians(jax, x):
    x = images(x)[0, :, :, 0] if x.ndim > 3 else x.reshape(-1, x.shape[-1])[:128, :128]
    padded = jax.numpy.pad(x, 1, mode="reflect") if min(x.shape) > 1 else jax.numpy.pad(x, 1)
    windows = [padded[i : i + x.shape[0], j : j + x.shape[1]] for i in range(3) for j in range(3)]
    return jax.numpy.median(jax.numpy.stack(windows), 0)


@operation("f", least(2))
def mel_spectrum(jax, x):
    x = signals(x)[..., :4096].astype("float32")
    size, hop = 256, 64
    count = (x.shape[-1] - size) // hop + 1
    if count < 1:
        return x
    frames = x[..., jax.numpy.arange(count)[:, None] * hop + jax.numpy.arange(size)] * jax.numpy.hanning(size)
    return jax.numpy.log(jax.numpy.abs(jax.numpy.fft.rfft(frames)) ** 2 + 1e-6)


@operation("f", least(2))
def riccati(jax, x):
    """The gains of a regulator, backwards."""
    x = 0.1 * x.reshape(-1, x.shape[-1])[:, :4].astype("float32")
    count = len(x) // 4
    if x.shape[-1] < 4 or not count:
        return x
    steps = x[: 4 * min(count, 50)].reshape(-1, 4, 4) + jax.numpy.eye(4)

    def step(value, a):
        b = a[:, :2]
        gain = jax.numpy.linalg.solve(jax.numpy.eye(2) + b.T @ value @ b, b.T @ value @ a)
        return jax.numpy.eye(4) + a.T @ value @ (a - b @ gain), gain

    return jax.lax.scan(step, jax.numpy.eye(4), steps, reverse=True)[1]
