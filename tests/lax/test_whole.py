"""Functions that are evaluated as one program: the values, types and errors that they have step by step, at every call."""

import warnings

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
import catena.scipy as jsp
from catena import lax
from catena.lax import whole as module
from catena.lax.policy import REPEATS, WHOLE
from catena.lax.whole import whole

X = np.array([0.3, 0.9, 0.1, 0.5, 0.7, 0.2, 0.8, 0.4], np.float32)
M = X.reshape(2, 4)
S = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]], np.float32)
HALF = jnp.bfloat16
CALLS = {  # of functions in the table; whether step by step they have the same bits stands there
    "round": lambda: jnp.round(jnp.asarray(X), 2),
    "round, halves": lambda: jnp.round(jnp.asarray(X, HALF), 1),
    "clip": lambda: jnp.clip(jnp.asarray(X, HALF), 0.2, jnp.asarray(0.6, HALF)),
    "clip, zeros": lambda: jnp.clip(jnp.asarray(X, HALF) - 0.5, -0.0, 0.3),
    "isclose": lambda: jnp.isclose(jnp.asarray(X, HALF), 0.3),
    "allclose": lambda: jnp.allclose(jnp.asarray(X), jnp.asarray(X + 1e-7), equal_nan=True),
    "sign": lambda: jnp.sign(jnp.asarray([-0.0, 0.0, np.nan, -np.inf, 2.0])),
    "heaviside": lambda: jnp.heaviside(jnp.asarray(X, "int32"), jnp.asarray(X)),
    "polyval": lambda: jnp.polyval(jnp.asarray(X), jnp.asarray(M)),
    "cross": lambda: jnp.cross(jnp.asarray(M[:, :3]), jnp.asarray(M[:, 1:])),
    "lexsort": lambda: jnp.lexsort((jnp.asarray(X), jnp.asarray(X > 0.5))),
    "argsort": lambda: jnp.argsort(jnp.asarray(X, HALF)),
    "searchsorted": lambda: jnp.searchsorted(jnp.asarray(np.sort(X)), jnp.asarray(M), method="sort"),
    "packbits": lambda: jnp.packbits(jnp.asarray(X > 0.5)),
    "unpackbits": lambda: jnp.unpackbits(jnp.asarray(X * 9, "uint8"), axis=0, count=-1),
    "where": lambda: jnp.where(jnp.asarray(X > 0.5), jnp.asarray(X, HALF), 0),
    "max": lambda: jnp.max(jnp.asarray(M), 0, where=jnp.asarray(M > 0.3), initial=0.0),
    "any": lambda: jnp.any(jnp.asarray(M, HALF), 1, keepdims=True),
    "count_nonzero": lambda: jnp.count_nonzero(jnp.asarray(M), axis=1),
    "histogram": lambda: jnp.histogram(jnp.asarray(X), 4),
    "isin": lambda: jnp.isin(jnp.asarray(X, HALF), jnp.asarray(X[:3], HALF)),
    "argsort, descending": lambda: jnp.argsort(jnp.asarray(M), descending=True),
    "repeat": lambda: jnp.repeat(jnp.asarray(M), 3, axis=1),
    "kron": lambda: jnp.kron(jnp.asarray(M), jnp.asarray(X)),
    "diff": lambda: jnp.diff(jnp.asarray(M), axis=0, prepend=0.0),
    "ediff1d": lambda: jnp.ediff1d(jnp.asarray(X), to_end=jnp.asarray(X)),
    "gradient": lambda: jnp.gradient(jnp.asarray(M), 0.5, axis=1),
    "triu": lambda: jnp.triu(jnp.asarray(S), -1),
    "at, max": lambda: jnp.asarray(X).at[jnp.asarray([1, 1, -1])].max(0.5),
    "at, set": lambda: jnp.asarray(M, HALF).at[..., 1:3].set(7),
    "segment_max": lambda: jax.ops.segment_max(jnp.asarray(X), jnp.asarray(X * 4, "int32"), 5),
    "glu": lambda: jax.nn.glu(jnp.asarray(X)),
    "sinc": lambda: jnp.sinc(jnp.asarray(X, HALF)),
    "take": lambda: jnp.take(jnp.asarray(X), jnp.asarray([0, -1, 9]), fill_value=5),
    "ptp": lambda: jnp.ptp(jnp.asarray(M, "int8"), 0),
    "nanmin": lambda: jnp.nanmin(jnp.asarray(M, HALF), axis=1),
    "quantile": lambda: jnp.quantile(jnp.asarray(M, HALF), 0.3, axis=1),
    "nanmedian": lambda: jnp.nanmedian(jnp.asarray(M)),
    "unwrap": lambda: jnp.unwrap(jnp.asarray(9 * X)),
    "vander": lambda: jnp.vander(jnp.asarray(X), 3),
    "vander, halves": lambda: jnp.vander(jnp.asarray(X, HALF), 5, increasing=True),
    "vander, integers": lambda: jnp.vander(jnp.asarray(9 * X, "int8"), 4),
    "polyadd": lambda: jnp.polyadd(jnp.asarray(X), jnp.asarray(9 * X[:3], "int8")),
    "polysub": lambda: jnp.polysub(jnp.asarray(X[:3]), jnp.asarray(M.T)[:, 0]),
    "poly": lambda: jnp.poly(jnp.asarray(X[:5])),
    "poly of complex roots": lambda: jnp.poly(jnp.asarray(X[:3] * (1 - 2j))),
    "polydiv": lambda: jnp.polydiv(jnp.asarray(X), jnp.asarray(X[:3])),
    "polydiv, complex, without zeros": lambda: jnp.polydiv(
        jnp.asarray([0j, 1, 2, 1j]), jnp.asarray([1j, 2.0]), trim_leading_zeros=True
    ),
    "nanprod": lambda: jnp.nanprod(jnp.asarray([[0.3, np.nan], [2.5, 3.5]]), axis=0),
    "polyder": lambda: jnp.polyder(jnp.asarray(X), 2),
    "polyint": lambda: jnp.polyint(jnp.asarray(X), 2, jnp.asarray(X[:2])),
    "partition": lambda: jnp.partition(jnp.asarray(M, HALF), 1, axis=0),
    "argpartition": lambda: jnp.argpartition(jnp.asarray(X), -3),
    "sort_complex": lambda: jnp.sort_complex(jnp.asarray(M, "int8")),
    "fftshift": lambda: jnp.fft.fftshift(jnp.asarray(M), axes=1),
    "ifftshift": lambda: jnp.fft.ifftshift(jnp.asarray(S)),
    "resize": lambda: jnp.resize(jnp.asarray(M), (3, 7)),
    "nanargmin": lambda: jnp.nanargmin(jnp.asarray([[np.nan, 2.0], [np.nan, np.nan]]), axis=1, keepdims=True),
    "nanargmax": lambda: jnp.nanargmax(jnp.asarray(M, "int8")),
    "spacing": lambda: jnp.spacing(jnp.asarray(X - 0.5)),
    "i0": lambda: jnp.i0(jnp.asarray(9 * X)),
    "angle": lambda: jnp.angle(jnp.asarray(X - 0.5 + 1j), deg=True),
    "angle of real numbers": lambda: jnp.angle(jnp.asarray([-0.0, 0.0, -1.0, np.nan])),
    "iscomplex": lambda: jnp.iscomplex(jnp.asarray(M)),
    "isreal": lambda: jnp.isreal(jnp.asarray([1j, 2.0])),
    "bitwise_count": lambda: jnp.bitwise_count(jnp.asarray(9 * X - 4, "int8")),
    "one_hot": lambda: jax.nn.one_hot(jnp.asarray(X * 9, "int32"), 4),
    "gelu": lambda: jax.nn.gelu(jnp.asarray(X, HALF)),
    "leaky_relu": lambda: jax.nn.leaky_relu(jnp.asarray(X - 0.5, HALF), 0.1),
    "xlogy": lambda: jsp.special.xlogy(jnp.asarray(X), jnp.asarray(X)),
    "boxcox": lambda: jsp.special.boxcox(jnp.asarray(X), 0.3),
    "fresnel": lambda: jsp.special.fresnel(jnp.asarray(X)),
    "factorial": lambda: jsp.special.factorial(jnp.asarray(X * 9, "int32")),
    "norm.logpdf": lambda: jsp.stats.norm.logpdf(jnp.asarray(X), 0.5),
    "beta.cdf": lambda: jsp.stats.beta.cdf(jnp.asarray(X), 2, scale=3.0, b=1.5),
    "rankdata": lambda: jsp.stats.rankdata(jnp.asarray(M), axis=0),
    "toeplitz": lambda: jsp.linalg.toeplitz(jnp.asarray(X)),
    "get": lambda: jnp.asarray(X).at[jnp.asarray([1, -1, 9])].get(mode="fill", fill_value=5),
    "take_along_axis": lambda: jnp.take_along_axis(jnp.asarray(X), jnp.asarray([9, 1]), 0, mode="fill", fill_value=5),
    "get, of what is known to be out of bounds": lambda: jnp.asarray(M).at[7, 1:].get(mode="fill"),
    "mode": lambda: jsp.stats.mode(jnp.asarray(X * 4, "int32")),
    "top_k": lambda: jax.lax.top_k(jnp.asarray(M), 2),
    "approx_max_k": lambda: jax.lax.approx_max_k(jnp.asarray(X), 3),
    "index_take": lambda: jax.lax.index_take(jnp.asarray(M), (jnp.asarray([1, 0]),), (0,)),
    "linspace": lambda: jnp.linspace(-0.3, 1e6, 5000),
    "linspace of one": lambda: jnp.linspace(2, 3, 1, retstep=True),
    "linspace, integers": lambda: jnp.linspace(0, 9, 5, dtype="int8", endpoint=False, retstep=True),
    "linspace, complex": lambda: jnp.linspace(-0.0, 1 - 2j, 7),
    "linspace of scalars": lambda: jnp.linspace(jnp.float32(0.1), 3, 8193),
    "linspace of rows": lambda: jnp.linspace(jnp.asarray(M, HALF), 1.5, 5, axis=-1),
    "logspace": lambda: jnp.logspace(-1, 6, 8, base=2),
    "logspace of rows": lambda: jnp.logspace(jnp.asarray(X), 2, 4, base=3.5, axis=1),
    "geomspace": lambda: jnp.geomspace(-1, -1000, 5000),
    "geomspace of scalars": lambda: jnp.geomspace(jnp.asarray(1, HALF), 100, 5),
    "geomspace of rows": lambda: jnp.geomspace(jnp.asarray(X), 2, 5, endpoint=False),
    "companion": lambda: jsp.linalg.companion(jnp.asarray(X)),
    "hankel": lambda: jsp.linalg.hankel(jnp.asarray(X)),
    "segment_min": lambda: jax.ops.segment_min(jnp.asarray(X), jnp.asarray(X * 4, "int32")),
    "block_diag": lambda: jsp.linalg.block_diag(jnp.asarray(M), jnp.asarray(S)),
}
SUMMING = {
    "mean": lambda: jnp.mean(jnp.asarray(M, HALF), 1),
    "mean, masked": lambda: jnp.mean(jnp.asarray(M), where=jnp.asarray(M > 0.3)),
    "std": lambda: jnp.std(jnp.asarray(M, "int8"), ddof=1),
    "average": lambda: jnp.average(jnp.asarray(M), 0, jnp.asarray(M), returned=True),
    "nanmean": lambda: jnp.nanmean(jnp.asarray(M, HALF)),
    "nanstd": lambda: jnp.nanstd(jnp.asarray(M)),
    "sum": lambda: jnp.sum(jnp.asarray(M, HALF), dtype=jnp.float32),
    "nansum": lambda: jnp.nansum(jnp.asarray(M, HALF), initial=1.0),
    "cumsum": lambda: jnp.cumsum(jnp.asarray(M, HALF), 1),
    "trapezoid": lambda: jnp.trapezoid(jnp.asarray(X), dx=0.5),
    "cov": lambda: jnp.cov(jnp.asarray(M)),
    "corrcoef": lambda: jnp.corrcoef(jnp.asarray(M)),
    "matmul": lambda: jnp.asarray(S, HALF) @ jnp.asarray(S, HALF),
    "matmul of a stack": lambda: jnp.asarray(S)[None] @ jnp.asarray(S)[None],
    "matvec": lambda: jnp.matvec(jnp.asarray(M), jnp.asarray(X[:4], HALF)),
    "vecmat": lambda: jnp.vecmat(jnp.asarray(1j * X[:2]), jnp.asarray(M)),
    "matrix_power": lambda: jnp.linalg.matrix_power(jnp.asarray(S)[None], -3),
    "matrix_power, integers": lambda: jnp.linalg.matrix_power(jnp.asarray(S, "int32"), 5),
    "det of few rows": lambda: jnp.linalg.det(np.tile(S, (500, 1, 1))),
    "det of more rows": lambda: jnp.linalg.det(np.tile(np.kron(np.eye(2), S), (200, 1, 1))),
    "slogdet": lambda: jnp.linalg.slogdet(np.tile(S, (500, 1, 1))),
    "slogdet by qr": lambda: jnp.linalg.slogdet(np.tile(S * np.complex64(1j), (500, 1, 1)), method="qr"),
    "polymul": lambda: jnp.polymul(jnp.asarray(X), jnp.asarray(X[:3])),
    "polyfit": lambda: jnp.polyfit(jnp.asarray(X), jnp.asarray(X * X), 2, w=jnp.asarray(X)),
    "qr, r": lambda: jnp.linalg.qr(jnp.asarray(S), mode="r"),
    "dot": lambda: jnp.dot(jnp.asarray(X, "int8"), jnp.asarray(X, "int8")),
    "softmax": lambda: jax.nn.softmax(jnp.asarray(M), axis=0, where=jnp.asarray(M > 0.3)),
    "log_softmax": lambda: jax.nn.log_softmax(jnp.asarray(M)),
    "logsumexp": lambda: jax.nn.logsumexp(jnp.asarray(M), 0, b=jnp.asarray(-M), return_sign=True),
    "standardize": lambda: jax.nn.standardize(jnp.asarray(M)),
    "attention": lambda: jax.nn.dot_product_attention(*[jnp.asarray(X.reshape(1, 2, 2, 2))] * 3, is_causal=True),
    "multivariate_normal": lambda: jsp.stats.multivariate_normal.logpdf(
        jnp.asarray(X[:3]), jnp.asarray(X[:3]), jnp.asarray(S)
    ),
    "cholesky": lambda: jsp.linalg.cholesky(jnp.asarray(S), lower=True),
    "lu": lambda: jsp.linalg.lu(jnp.asarray(S)),
    "lu_solve": lambda: jsp.linalg.lu_solve(jsp.linalg.lu_factor(jnp.asarray(S)), jnp.asarray(X[:3])),
    "solve": lambda: jsp.linalg.solve(jnp.asarray(S), jnp.asarray(X[:3]), assume_a="pos"),
    "triangular_solve": lambda: jax.lax.linalg.triangular_solve(
        jnp.asarray(S), jnp.asarray(S), left_side=True, lower=True
    ),
    "einsum": lambda: jnp.einsum("ij,jk,k->i", jnp.asarray(S), jnp.asarray(S), jnp.asarray(S)[0]),
    "norm": lambda: jnp.linalg.norm(jnp.asarray(M), ord=3, axis=1),
    "norm, of an order that is a float": lambda: jnp.linalg.norm(jnp.asarray(M), ord=2.5, axis=1),
    "segment_sum": lambda: jax.ops.segment_sum(jnp.asarray(X), jnp.asarray(X * 4, "int32")),
    "convolve": lambda: jsp.signal.convolve(jnp.asarray(X), jnp.asarray(X), mode="same"),
    "dct": lambda: jsp.fft.dct(jnp.asarray(X)),
    "dctn": lambda: jsp.fft.dctn(jnp.asarray(M)),
    "irfft2": lambda: jnp.fft.irfft2(jnp.asarray(M), norm="ortho"),
    "stft": lambda: jsp.signal.stft(jnp.asarray(X), nperseg=4),
    "welch": lambda: jsp.signal.welch(jnp.asarray(X), nperseg=4),
    "map_coordinates": lambda: jsp.ndimage.map_coordinates(jnp.asarray(M), [jnp.asarray(X), jnp.asarray(X)], 1),
    "reduce_window": lambda: jax.lax.reduce_window(jnp.asarray(M), 0.0, jax.lax.add, (2, 2), (1, 1), "SAME"),
    "reduce_window, products": lambda: jax.lax.reduce_window(jnp.asarray(X), 1.0, jax.lax.mul, (3,)),
    "conv": lambda: jax.lax.conv(jnp.asarray(M)[None, None], jnp.asarray(M[:, :2])[None, None], (1, 1), "SAME"),
    "pinv": lambda: jnp.linalg.pinv(jnp.asarray(S), hermitian=True),
    "qdwh": lambda: jax.lax.linalg.qdwh(jnp.asarray(S))[:2],
    "eig": lambda: jnp.linalg.eigvals(jnp.asarray(S)),
    "sqrtm": lambda: jsp.linalg.sqrtm(jnp.asarray(S)),
    "funm": lambda: jsp.linalg.funm(jnp.asarray(S), jnp.sin, disp=False)[0],
    "solve_sylvester": lambda: jsp.linalg.solve_sylvester(jnp.asarray(S), jnp.asarray(S), jnp.asarray(S)),
    "vector_norm": lambda: jnp.linalg.vector_norm(jnp.asarray(M)),
    "matrix_norm": lambda: jnp.linalg.matrix_norm(jnp.asarray(M), ord=1),
    "dirichlet": lambda: jsp.stats.dirichlet.logpdf(jnp.asarray([0.25, 0.75]), jnp.asarray([2.0, 3.0])),
}
REFUSED = {
    "mean": lambda: jnp.mean(jnp.asarray(M, HALF), 2),
    "softmax": lambda: jax.nn.softmax(jnp.asarray(M), where=jnp.asarray(M)),
    "isclose": lambda: jnp.isclose(jnp.asarray(X), jnp.asarray(X[:3])),
    "unpackbits": lambda: jnp.unpackbits(jnp.asarray(X)),
    "lexsort": lambda: jnp.lexsort((jnp.asarray(X), jnp.asarray(M))),
    "logpdf": lambda: jsp.stats.norm.logpdf(jnp.asarray(X), jnp.asarray(X[:3])),
    "cholesky": lambda: jax.lax.linalg.cholesky(jnp.asarray(M)),
    "an axis of floats": lambda: jnp.any(jnp.asarray(M, HALF), axis=(1.0,)),
}


@pytest.fixture
def fresh():
    """Nothing is known of earlier calls."""
    jax.clear_caches()


def step_by_step(monkeypatch, call):
    with monkeypatch.context() as patched:
        patched.setattr(module, "_may_be_one", lambda *args: False)
        found = call()
    jax.clear_caches()
    return found


def same_types(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert (x.shape, x.dtype, x.weak_type) == (y.shape, y.dtype, y.weak_type)


def wide(x):
    return np.asarray(x.astype("float32") if x.dtype == HALF else x)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", CALLS)
def test_the_same_bits(name, monkeypatch, fresh):
    call = CALLS[name]
    expected = step_by_step(monkeypatch, call)
    for _ in range(REPEATS + 2):
        found = call()
        same_types(found, expected)
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.parametrize("signs", [(0.0, -0.0), (1 - 0j, 1 + 0j), (0j, complex(-0.0, 0.0))])
def test_numbers_with_signs_of_zero_are_others(signs, fresh):
    for _ in range(REPEATS + 2):
        for x in signs:
            found = np.asarray(jnp.linspace(x, jnp.asarray(X), 2))[0]
            assert found.tobytes() == np.full(X.shape, x, found.dtype).tobytes()


@pytest.mark.parametrize("name", SUMMING)
def test_sums(name, monkeypatch, fresh):
    """Sums of another order step by step; the same bits at every call."""
    call = SUMMING[name]
    expected, first = step_by_step(monkeypatch, call), call()
    same_types(first, expected)
    for x, y in zip(jax.tree.leaves(first), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(wide(x), wide(y), rtol=2e-2 if x.dtype == HALF else 2e-5, atol=1e-6)
    for _ in range(REPEATS + 1):
        for x, y in zip(jax.tree.leaves(call()), jax.tree.leaves(first), strict=True):
            assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name, monkeypatch, fresh):
    with pytest.raises(Exception) as expected:  # noqa: PT011  (whatever it is, it is the same each time)
        step_by_step(monkeypatch, REFUSED[name])
    for _ in range(REPEATS + 2):
        with pytest.raises(type(expected.value)) as found:
            REFUSED[name]()
        assert str(found.value) == str(expected.value)


@pytest.fixture
def traced(monkeypatch, fresh):
    """A function of the table that says how often Python ran it, as one program from its second repetition on."""
    count = []

    def f(x, y=1, *, z=None):
        count.append(1)
        return x * y

    monkeypatch.setitem(WHOLE, "f", WHOLE["isclose"])
    f.__name__ = "f"
    return whole(f), count


def test_once_compiled_it_is_not_run(traced):
    f, count = traced
    for _ in range(REPEATS + 3):
        np.testing.assert_array_equal(f(jnp.asarray(X), 2), 2 * X)
    assert len(count) == REPEATS + 1


def test_scalars_among_the_arrays_are_known_again(traced):
    f, count = traced
    x, y = jnp.asarray(X), jnp.asarray(2.0)
    for _ in range(REPEATS + 3):
        np.testing.assert_array_equal(f(x, y), 2 * X)
    assert len(count) == REPEATS + 1


def test_values_are_told_apart(traced):
    """True, 1 and 1.0 are equal, and so are zeros of both signs: not so what is computed from them."""
    f, _ = traced
    for _ in range(REPEATS + 2):
        assert f(jnp.asarray([2, 3]), 1).dtype == "int32"
        assert f(jnp.asarray([2, 3]), 1.0).dtype == "float32"
        assert f(jnp.asarray([True]), True).dtype == "bool"
        assert f(jnp.asarray([True]), 1).dtype == "int32"
        assert not np.signbit(f(jnp.asarray(X), 0.0)).any()
        assert np.signbit(f(jnp.asarray(X), -0.0)).all()
        np.testing.assert_array_equal(f(jnp.asarray(X), y=3), 3 * X)
        np.testing.assert_array_equal(f(jnp.asarray(X), 2, z=3), 2 * X)


def test_floats_are_arguments_where_programs_do_not_wait(traced, monkeypatch):
    """So that a step that changes from call to call is no new program each time."""
    monkeypatch.setitem(WHOLE, "f", WHOLE["trapezoid"])
    count = []

    def f(x, y):
        count.append(1)
        return x * y

    summing = whole(f)
    for y in (0.5, -0.0, 0.25, np.inf, 3.0):
        found, expected = summing(jnp.asarray(X), y), X * np.float32(y)
        assert found.dtype == "float32"
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
        np.testing.assert_array_equal(found, expected)
    assert len(count) == 1
    assert summing(jnp.asarray([2, 3]), 2).dtype == "int32"
    assert summing(jnp.asarray(X, HALF), 0.5).dtype == HALF


def test_traced_it_is_what_it_was(traced):
    f, _ = traced
    for _ in range(REPEATS + 2):
        f(jnp.asarray(X), 2)
    assert [str(e.primitive) for e in jax.make_jaxpr(lambda x: f(x, 2))(X).eqns] == ["mul"]
    np.testing.assert_array_equal(jax.grad(lambda x: f(x, 3.0).sum())(jnp.asarray(X)), np.full(8, 3.0))
    np.testing.assert_array_equal(jax.vmap(lambda x: f(x, 3.0))(jnp.asarray(M)), 3 * M)


def test_flags(traced):
    f, count = traced
    for _ in range(REPEATS + 2):
        f(jnp.asarray(X), 2)
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        f(jnp.asarray(X), np.nan)
    before = len(count)
    with jax.disable_jit():
        for _ in range(REPEATS + 2):
            f(jnp.asarray(X), 2)
    assert len(count) - before == REPEATS + 2
    with jax.enable_x64(True):
        for _ in range(REPEATS + 2):
            assert f(jnp.asarray([1.0, 2.0]), 2).dtype == "float64"
    assert f(jnp.asarray([1.0, 2.0]), 2).dtype == "float32"


def test_deleted_arrays_are_refused():
    x = jnp.asarray(M, HALF)
    for _ in range(REPEATS + 2):
        jnp.ptp(x)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        jnp.ptp(x)


def test_warnings_are_given_each_time():
    """Where a dtype is too wide, a warning says so at every call."""
    x = jnp.asarray(M, HALF)
    for _ in range(REPEATS + 2):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            assert jnp.sum(x, dtype=np.float64).dtype == "float32"
        assert len(found) == 2  # one where NumPy might do it, one on the way that all others go


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int64", "uint32"])
def test_positions_of_any_width(dtype):
    places = np.array([0, 2, 7, 7], dtype)
    np.testing.assert_array_equal(jnp.take(jnp.asarray(X), jnp.asarray(places)), X[places.astype(int)])


SUMS = {
    "softmax": lambda x: jax.nn.softmax(x, 1),
    "logsumexp": lambda x: jsp.special.logsumexp(x, axis=0),
    "var": lambda x: jnp.var(x, 0, ddof=1),
    "mean": lambda x: jnp.mean(x, where=x > 0),
    "cov": jnp.cov,
    "matmul": lambda x: jnp.matmul(x, x.T),
    "average": lambda x: jnp.average(x, 1, weights=x[0]),
    "qr": jnp.linalg.qr,
    "solve": lambda x: jnp.linalg.solve(x[:, :60], x[:, 60:65]),
}


@pytest.mark.parametrize("name", SUMS)
def test_numpy_arrays_have_the_bits_of_arrays(name):
    x = np.random.default_rng(2).standard_normal((60, 71)).astype(np.float32)
    for dtype in [np.float32] if name in ("qr", "solve") else [np.float32, np.int16, np.float16]:
        given = (9 * x).astype(dtype)
        one, other = SUMS[name](jnp.asarray(given)), SUMS[name](given)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            assert type(a) is type(b) and a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes()


EXACT = {
    "where": lambda x: jnp.where(x > 3, x, x[0]),
    "cross": lambda x: jnp.cross(x[:, :3], x[:, 3:6]),
    "clip": lambda x: jnp.clip(x, -1, 2),
    "nothing to clip": lambda x: jnp.clip(x, None, None),
    "diff": lambda x: jnp.diff(x, axis=0),
    "vander": lambda x: jnp.vander(x[0], 5),
    "kron": lambda x: jnp.kron(x[:3], x[:2]),
}


@pytest.mark.parametrize("name", EXACT)
def test_numpy_arrays_are_operands_that_nobody_keeps(name):
    """Where bits do not hang on it, too: each call has the values of the call, and a result none of the caller's memory."""
    for dtype in (np.float32, np.int16, np.float64):
        for seed in range(5):
            x = (9 * np.random.default_rng(seed).standard_normal((60, 71))).astype(dtype)
            one, other = EXACT[name](jnp.asarray(x)), EXACT[name](x)
            assert one.dtype == other.dtype and np.array_equal(one, other)
            x[...] = 0
            assert np.array_equal(one, other)


def test_names_of_dtypes_are_dtypes():
    x = jnp.asarray(np.random.default_rng(2).standard_normal((300, 7)), np.float32)
    for one, other in ((np.float16, "float16"), (jnp.bfloat16, "bfloat16"), (np.float32, "float32")):
        first, second = (jnp.var(x, 0, dtype=dtype) for dtype in (one, other))
        assert first.dtype == second.dtype and np.asarray(first).tobytes() == np.asarray(second).tobytes()
    with pytest.raises(TypeError):
        jnp.var(x, dtype="floating")


def test_arrays_that_are_none_here_are_refused():
    for x in (np.array(["a", "b"]), np.array([None, 1]), np.array(["2020-01-01"], "datetime64[D]")):
        with pytest.raises(TypeError):
            jnp.mean(x)
        with pytest.raises(TypeError):
            jax.nn.softmax(x)


# ---- arrays on devices, and what converts itself


class Converts:
    """An array once asked."""

    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return jnp.asarray(self.x)


def test_where_arrays_are_put_results_are():
    device = jax.devices()[0]
    plain = jnp.asarray(M)
    put = jax.device_put(plain, device)
    for call in (jax.nn.softmax, jnp.ptp, lambda x: jnp.round(x, 1), lambda x: jsp.linalg.qr(x)[1]):
        expected = call(plain)
        assert not expected.committed
        for _ in range(REPEATS + 2):
            found = call(put)
            assert found.committed and found.devices() == {device}
            same_types(found, expected)
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
    both = jax.nn.softmax(plain, where=jax.device_put(M > 0.3, device))
    assert both.committed
    put.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        jax.nn.softmax(put)


def test_results_that_are_arguments_are_there_too():
    put = jax.device_put(jnp.asarray(X), jax.devices()[0])
    three = whole(lambda x, y: (x, x * y, y), "average")
    for _ in range(3):
        assert all(x.committed for x in three(put, jnp.asarray(X)))


def test_what_converts_itself_has_the_bits_of_its_array():
    x = np.random.default_rng(3).standard_normal((60, 71)).astype(np.float32)
    for call in (lambda x: jax.nn.softmax(x, 1), lambda x: jnp.var(x, 0), jnp.cov, jnp.linalg.svdvals):
        expected = call(jnp.asarray(x))
        for _ in range(2):
            assert np.asarray(call(Converts(x))).tobytes() == np.asarray(expected).tobytes()


def test_classes_that_take_part_are_asked():
    class Asked(Converts):
        def __jax_function__(self, function, types, args, kwargs):
            return "asked"

    for _ in range(REPEATS + 2):
        assert jnp.var(Asked(X)) == "asked"
        assert jnp.ptp(Asked(X)) == "asked"


# ---- functions among the arguments, and numbers that change


def test_functions_of_users_are_called_each_time():
    factor = [2.0]
    for expected in (2.0, 3.0, 4.0, 5.0):
        factor[0] = expected
        found = jax.lax.reduce_window(jnp.asarray(X), 0.0, lambda a, b: a + factor[0] * b, (2,), (2,))
        assert found[0] != 0
        np.testing.assert_allclose(found[0], expected * (X[0] + X[1]), rtol=1e-6)


@pytest.mark.parametrize("kind", [int, float, np.float32])
def test_numbers_that_change_make_few_programs(kind, traced, monkeypatch):
    f, count = traced
    monkeypatch.setattr(module, "_ALIKE", 3)
    for _ in range(REPEATS + 3):
        for k in range(10):
            np.testing.assert_array_equal(f(jnp.asarray(X), kind(k)), k * X)
    programs = 4 if kind is float else 3  # 0.0 is known by its sign, too
    assert len(count) == 10 * REPEATS + programs + (10 - programs) * 3


def test_numbers_of_numpy_are_constants_where_python_floats_are():
    x = jnp.arange(6.0)
    for start in (0.0, -0.0, 1.5, -np.inf, np.nan):
        for kind in (np.float32, float):
            for fold in (lax.add, lax.max):
                fun = lambda x, s=kind(start), f=fold: lax.reduce_window(x, s, f, (2,), (1,), "VALID")  # noqa: B008
                compiled = jax.jit(fun)(x)
                for _ in range(3):
                    eager = fun(x)
                    assert (eager.dtype, eager.weak_type) == (compiled.dtype, compiled.weak_type)
                    np.testing.assert_array_equal(eager, compiled)
                    np.testing.assert_array_equal(np.signbit(eager), np.signbit(compiled))


def test_numbers_of_numpy_are_operands_elsewhere():
    x = jnp.arange(4.0)
    for dtype in ("float32", "float16", "float64"):
        for value in (2.0, -3.0):
            number = np.dtype(dtype).type(value)
            eager, array = jnp.vecdot(x, x + number), jnp.vecdot(x, x + jnp.asarray(number))
            assert eager.dtype == array.dtype and eager == array
            eager, array = jnp.trapezoid(x, dx=number), jnp.trapezoid(x, dx=jnp.asarray(number))
            assert (eager.dtype, eager.weak_type) == (array.dtype, array.weak_type) and eager == array
