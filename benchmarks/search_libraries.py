"""Operations of programs that `search.py` times: functions of `numpy`, `scipy`, `nn` and `random` that the other files
do not draw, as programs call them by their names.
"""

from random_steps import axis
from search_steps import least, rows

rows("f", {
    "gradient_along": lambda jax, x, axis: jax.numpy.gradient(x, axis=axis),
    "trapezoid": lambda jax, x, axis: jax.numpy.trapezoid(x, axis=axis),
    "mean_without_nans": lambda jax, x, axis: jax.numpy.nanmean(jax.numpy.where(x > 2, jax.numpy.nan, x), axis),
    "spread_without_nans": lambda jax, x, axis: jax.numpy.nanstd(jax.numpy.where(x > 2, jax.numpy.nan, x), axis),
    "unwrapped": lambda jax, x, axis: jax.numpy.unwrap(3 * x, axis=axis),
    "repeated": lambda jax, x, axis: jax.numpy.repeat(x, 3, axis),
    "packed": lambda jax, x, axis: jax.numpy.packbits(x > 0, axis),
    "unpacked": lambda jax, x, axis: jax.numpy.unpackbits((20 * x).astype("int32").astype("uint8"), axis),
    "half_turned": lambda jax, x, axis: jax.numpy.fft.fftshift(x, axis),
    "remaining_sums": lambda jax, x, axis: jax.numpy.flip(jax.numpy.cumsum(jax.numpy.flip(x, axis), axis), axis),
    "largest_norm": lambda jax, x, axis: jax.numpy.max(jax.numpy.abs(x), axis) + jax.numpy.sum(jax.numpy.abs(x), axis),
    "standardised_by_name": lambda jax, x, axis: jax.nn.standardize(x, axis),
    "detrended": lambda jax, x, axis: jax.scipy.signal.detrend(x, axis, type="constant"),
    "smallest_ten": lambda jax, x, axis: jax.numpy.partition(x, min(10, x.shape[axis] - 1), axis),
}, axis)  # fmt: skip
rows("f", {
    "all_half_turned": lambda jax, x: jax.numpy.fft.fftshift(x),
    "polynomial": lambda jax, x: jax.numpy.polyval(jax.numpy.asarray([1, 2, 3, 4, 5], x.dtype), x),
    "powers_of": lambda jax, x: jax.numpy.vander(x.ravel()[:20000], 6),
    "pieces": lambda jax, x: jax.numpy.select([x < -1, x < 0, x < 1], [x * x, 2 * x, x + 1], 1 - x),
    "remainder": lambda jax, x: jax.numpy.remainder(10 * x, 3),
    "convolved_with": lambda jax, x: jax.numpy.convolve(x.ravel(), x.ravel()[:9], "same"),
    "bins": lambda jax, x: jax.numpy.digitize(x, jax.numpy.linspace(-2, 2, 20, dtype=x.dtype)),
    "sinc": lambda jax, x: jax.numpy.sinc(x),
    "logit": lambda jax, x: jax.scipy.special.logit(jax.nn.sigmoid(x)),
    "entropies": lambda jax, x: jax.scipy.special.entr(x * x),
    "divergence": lambda jax, x: jax.scipy.special.kl_div(x * x + 0.1, x * x + 1),
    "student_density": lambda jax, x: jax.scipy.stats.t.logpdf(x, 3.0),
    "uniform_noise": lambda jax, x: x + jax.random.uniform(jax.random.key(3), x.shape, x.dtype),
    "waiting_times": lambda jax, x: x * jax.random.exponential(jax.random.key(3), x.shape, x.dtype),
    "drawn_of": lambda jax, x: jax.random.choice(jax.random.key(3), x.ravel(), (1000,)),
}, least(1))  # fmt: skip
rows("f", {  # some with slopes of several pieces, which their gradients choose from
    name: lambda jax, x, name=name: getattr(jax.nn, name)(x)
    for name in "elu selu celu hard_sigmoid hard_silu hard_tanh log_sigmoid mish squareplus relu6 soft_sign".split()
})  # fmt: skip
rows("f", {
    "gated": lambda jax, x: jax.nn.glu(x[..., : x.shape[-1] // 2 * 2]),
    "correlations": lambda jax, x: jax.numpy.corrcoef(x.reshape(-1, x.shape[-1])[:, :64], rowvar=False),
    "turned": lambda jax, x: jax.numpy.rot90(x, axes=(-2, -1)),
    "tiled": lambda jax, x: jax.numpy.tile(x, 2),
    "in_blocks": lambda jax, x: jax.numpy.block([[x, 2 * x], [x + 1, -x]]),
    "crossed": lambda jax, x: jax.numpy.cross(x[..., :3], x[..., ::-1][..., :3]),
    "kronecker": lambda jax, x: jax.numpy.kron(*(x.reshape(-1, x.shape[-1])[:n, :n] for n in (32, 8))),
    "drawn_classes": lambda jax, x: jax.random.categorical(jax.random.key(3), x).astype("int32"),
    "convolved_in_two": lambda jax, x: jax.scipy.signal.convolve2d(
        x.reshape(-1, x.shape[-1])[:256, :256], x.reshape(-1, x.shape[-1])[:3, :3], "same"),
    "power_of_matrix": lambda jax, x: jax.numpy.linalg.matrix_power(
        0.1 * x[..., : min(64, *x.shape[-2:]), : min(64, *x.shape[-2:])], 5),
}, least(2))  # fmt: skip
rows("f", {
    "resized": lambda jax, x: jax.image.resize(
        x, (*x.shape[:-2], (x.shape[-2] + 1) // 2, 2 * x.shape[-1]), "bilinear", antialias=False),
}, lambda rng, m: {} if m.ndim >= 2 and m.size and max(m.shape[-2:]) <= 5000 else None)  # fmt: skip
rows("ff", {
    "hypotenuse": lambda jax, x, y: jax.numpy.hypot(x, y),
    "log_of_sum": lambda jax, x, y: jax.numpy.logaddexp(x, y),
    "x_log_y": lambda jax, x, y: jax.scipy.special.xlogy(x, y * y + 0.1),
    "quotient_and_rest": lambda jax, x, y: sum(jax.numpy.divmod(x, y * y + 0.1)),
    "sorted_by": lambda jax, x, y: jax.lax.sort_key_val(x.ravel()[:50000], y.ravel()[:50000])[1],
}, lambda rng, m, *rest: {} if m.ndim and m.size and m.shape == rest[0].shape else None)  # fmt: skip
