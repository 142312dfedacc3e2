"""Every public function on a few elements, called eagerly, beside JAX: what a call costs, worst first.

`make bench-eager` (or `python benchmarks/eager.py --jax-python PYTHON`) takes the examples of
`tests/helpers/numpy_examples.py`, each in several dtypes, and the expressions below, over `jnp`, `nn`, `jsp`, `lax`.
Calls that either library refuses are left out. JAX's eager functions are one compiled program each, so that one with
many operations on few elements shows what ours costs for each of them. See ``side_by_side`` for how time is taken.
"""

import argparse
import importlib
import json
import pickle
import statistics
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from side_by_side import OURS, THEIRS, Worker, batch, best, show

ROOT = Path(__file__).resolve().parent.parent
DTYPES = "float32 bfloat16 int8 int32 bool float16 complex64".split()
LEFT_OUT = frozenset(  # files, printing, Python functions
    "save savez load fromfile frombuffer from_dlpack fromiter fromstring frompyfunc vectorize get_printoptions "
    "set_printoptions printoptions array_repr array_str piecewise apply_along_axis apply_over_axes fromfunction".split()
)
ALSO = {  # functions whose operands are x, y: vectors; m, s: matrices, the second positive; p: in (0, 1); b: of choices
    "nn": "celu elu gelu hard_sigmoid hard_silu hard_tanh leaky_relu log_sigmoid mish relu relu6 selu sigmoid silu "
    "soft_sign softplus sparse_plus sparse_sigmoid squareplus softmax log_softmax logsumexp standardize glu logmeanexp",
    "jsp.special": "dawsn digamma entr erf erfc erfcx erfinv exp1 expi expit factorial fresnel gamma gammaln gammasgn "
    "i0 i0e i1 i1e log_ndtr logit ndtr ndtri sici spence zeta logsumexp softmax log_softmax",
}
ROWS = [
    *(f"{place}.{name}({x})" for place, names in ALSO.items() for name in names.split() for x in ("x", "h", "i")),
    *(f"jsp.special.{name}(x, y)" for name in
      "beta betaln gammainc gammaincc rel_entr kl_div xlogy xlog1py poch zeta owens_t boxcox".split()),
    "jsp.special.betainc(x, y, p)", "jsp.special.multigammaln(y + 3, 2)", "jsp.special.polygamma(1, y)",
    "nn.one_hot(i, 4)", "nn.softmax(m, axis=0)", "nn.logsumexp(m, axis=1)", "nn.relu(m)",
    "nn.dot_product_attention(q, q, q)", "nn.dot_product_attention(q, q, q, is_causal=True)",
    *(f"jnp.linalg.{name}(s)" for name in
      "cholesky cond det eigh eigvalsh inv matrix_rank norm pinv qr slogdet svd svdvals".split()),
    *(f"jsp.linalg.{name}(s)" for name in
      "cholesky det eigh expm inv lu lu_factor qr svd schur sqrtm hessenberg polar".split()),
    "jsp.linalg.solve(s, x4)", "jsp.linalg.solve(s, x4, assume_a='pos')", "jnp.linalg.solve(s, x4)",
    "jsp.linalg.cho_solve((s, True), x4)", "jsp.linalg.cho_factor(s)", "jsp.linalg.lu_solve((s, piv), x4)",
    "jsp.linalg.solve_triangular(s, x4)", "jsp.linalg.block_diag(s, m)", "jsp.linalg.toeplitz(x4)",
    *(f"lax.linalg.{name}(s)" for name in "cholesky eigh lu qr svd hessenberg schur tridiagonal".split()),
    "lax.linalg.triangular_solve(s, m)", "lax.linalg.lu_pivots_to_permutation(piv, 4)",
    "jsp.stats.norm.logpdf(x)", "jsp.stats.norm.cdf(x, y, p)", "jsp.stats.norm.ppf(p)", "jsp.stats.gamma.logpdf(x, y)",
    "jsp.stats.beta.logpdf(p, y, x)", "jsp.stats.poisson.logpmf(i, y)", "jsp.stats.t.logpdf(x, y)",
    "jsp.stats.multivariate_normal.logpdf(x4, x4, s)", "jsp.stats.rankdata(x)", "jsp.stats.mode(i)",
    "jsp.stats.binom.logpmf(i, 5, p)", "jsp.stats.laplace.cdf(x)", "jsp.stats.uniform.pdf(p)", "jsp.stats.sem(x)",
    "jsp.signal.convolve(x, y)", "jsp.signal.fftconvolve(x, y)", "jsp.signal.detrend(x)", "jsp.fft.dct(x)",
    "jsp.ndimage.map_coordinates(m, [x, y], 1)", "jsp.integrate.trapezoid(x)", "jsp.signal.convolve2d(m, s)",
    "jax.ops.segment_sum(x, abs(i))", "jax.ops.segment_max(x, abs(i), 16)", "jnp.round(x, 2)", "jnp.round(h, 2)",
    "x.at[i].set(y)", "x.at[2].add(1.0)", "x.at[2:5].set(0.0)", "x.at[b].set(0.0)", "x[b]", "x[i]", "m[1:, ::2]",
    "m[i4, i4]", "x.at[i].max(y)", "m.at[i4, i4].add(1.0)", "x.at[i].get(mode='fill', fill_value=0)",
    *(f"jnp.take(x, i.astype('{d}'))" for d in "int8 uint8 int16 int32 uint32".split()), "jnp.take(m, i4, axis=1)",
    "jnp.take(x, i, mode='wrap')", "jnp.take(x, i, mode='clip')", "jnp.take_along_axis(m, m.argsort(1), 1)",
    *(f"lax.{name}(x)" for name in "sort cumsum cumlogsumexp cummax rsqrt logistic erf_inv lgamma top_k".split()
      if name != "top_k"),
    "lax.top_k(x, 3)", "lax.argmax(x, 0, 'int32')", "lax.reduce(x, 0.0, lax.add, (0,))", "lax.rev(x, (0,))",
    "lax.pad(x, 0.0, [(1, 2, 1)])", "lax.dynamic_slice(x, (2,), (4,))", "lax.dynamic_update_slice(x, x4, (2,))",
    "lax.dynamic_index_in_dim(m, 2, 0)", "lax.select(b, x, y)", "lax.clamp(0.0, x, 1.0)",
    "lax.reduce_window(m, 0.0, lax.add, (2, 2), (1, 1), 'VALID')", "lax.conv(im, ke, (1, 1), 'SAME')",
    "lax.batch_matmul(q[0], q[0].swapaxes(1, 2))", "lax.bitcast_convert_type(x, 'int32')", "lax.integer_pow(x, 3)",
    "lax.reduce_precision(x, 5, 10)", "lax.population_count(i)", "lax.complex(x, y)", "lax.expand_dims(x, (0,))",
    *(f"jnp.{name}({x})" for name in "sum mean var std max min prod any all argmax argmin sort argsort median ptp "
      "count_nonzero cumsum cumprod nansum nanmean nanvar nanstd nanmax nanmin nanmedian".split()
      for x in ("x", "h", "i.astype('int8')", "b", "m, axis=0", "m, axis=1")),
    *(f"jnp.{name}(m, axis=1, keepdims=True)" for name in "sum mean var std max".split()),
    *(f"jnp.{name}(m, where=m > 0.5)" for name in "sum mean var std".split()), "jnp.sum(jnp.where(m > 0.5, m, 0))",
    "jnp.max(m, where=m > 0.5, initial=0.0)", "jnp.nonzero(b)", "jnp.nonzero(b, size=8)", "jnp.where(b, x, 0)",
    "jnp.where(b, h, 0)", "jnp.searchsorted(x, y)", "jnp.searchsorted(x, y, method='sort')", "jnp.unique(i)",
    "jnp.unique(i, size=8)", "jnp.histogram(x, 4)", "jnp.bincount(abs(i), length=16)", "jnp.quantile(x, 0.3)",
    "jnp.quantile(m, p, axis=0)", "jnp.quantile(h, 0.3)", "jnp.percentile(x, 30.0, method='lower')",
    "jnp.lexsort((x, y))", "jnp.unpackbits(u)", "jnp.packbits(b)", "jnp.argsort(-x)", "jnp.argsort(x, descending=True)",
    "jnp.einsum('ij,jk,kl->il', m, m, m)", "jnp.einsum('ij,ij->', m, m)", "jnp.interp(x, y, x)",
    "jnp.linalg.norm(x, ord=3)",
    "jnp.linalg.norm(m, axis=1)", "jnp.cov(m)", "jnp.corrcoef(m)", "jnp.median(m, axis=1)", "jnp.clip(h, 0, 1)",
    "jnp.unwrap(x)", "jnp.gradient(x)", "jnp.convolve(x, y)", "jnp.fft.fft(x)", "jnp.fft.rfft2(m)", "jnp.fft.irfft(x)",
    "jnp.matmul(h4, h4)", "jnp.matmul(i44, i44)", "jnp.dot(x, y)", "jnp.dot(h, h)", "jnp.outer(x, y)",
]  # fmt: skip
LARGE = [  # the same kinds on many elements
    *(f"jnp.{name}(X)" for name in
      "nonzero argwhere flatnonzero median nanmean nanstd nanmax sort argsort cumsum unique trapezoid diff".split()),
    "jnp.quantile(X, 0.3)", "jnp.quantile(X, p)", "jnp.quantile(M, p, axis=0)", "jnp.quantile(M, p, axis=1)",
    "jnp.percentile(X, 30.0)", "jnp.median(M, axis=0)", "jnp.median(M, axis=1)", "jnp.nanmedian(X)",
    "jnp.nanquantile(X, 0.3)", "jnp.searchsorted(jnp.sort(X), X)", "jnp.searchsorted(x, X)", "jnp.digitize(X, x)",
    "jnp.histogram(X, 50)", "jnp.mean(X, where=B)", "jnp.mean(M, axis=1, where=M > 0.5)", "jnp.sum(X, where=B)",
    "jnp.average(X, weights=X)", "jnp.average(M, axis=0, weights=M)", "jnp.nonzero(B)", "jnp.argwhere(B)", "X[B]",
    "jnp.nonzero(X > 0.5, size=1000)", "jnp.where(B, X, 0)", "jnp.count_nonzero(B)", "jnp.bincount(I, length=50)",
    "jnp.interp(X, x, y)", "jnp.take(X, I)", "X[I]", "X.at[I].add(1.0)", "jnp.clip(X, 0, 1)", "jnp.round(X, 2)",
    "nn.softmax(M)", "nn.log_softmax(M)", "nn.logsumexp(M, axis=1)", "nn.gelu(X)", "nn.silu(X)", "nn.softplus(X)",
    "nn.standardize(M)", "nn.one_hot(I, 50)", "jnp.var(M, axis=0)", "jnp.std(M, axis=1)", "jnp.nanvar(M, axis=1)",
    "jnp.cov(M[:100])", "jnp.corrcoef(M[:100])", "jnp.isin(I, i)", "jnp.ptp(X)", "jnp.allclose(X, X)",
    "jnp.isclose(X, X)",
    "jnp.linalg.norm(M, axis=1)", "jnp.linalg.norm(X, ord=3)", "jnp.gradient(X)", "jnp.unwrap(X)", "jnp.roll(X, 3)",
    "jnp.argmax(M, axis=1)", "jnp.cumsum(M, axis=0)", "jnp.nan_to_num(X)", "jnp.hypot(X, X)", "jnp.logaddexp(X, X)",
    "jnp.mean(H)", "jnp.sum(H)", "jnp.var(H)", "jnp.polyval(y, X)", "jnp.cross(T, T)", "jnp.triu(M)", "jnp.sinc(X)",
    "jsp.special.xlogy(X, X)", "jsp.stats.norm.logpdf(X)", "jsp.stats.norm.cdf(X)", "jsp.special.logsumexp(X)",
    "jnp.convolve(X, y)", "jnp.pad(M, 2)", "jnp.select([B, ~B], [X, -X])", "jnp.lexsort((X, X))",
    "jnp.einsum('ij,ij->i', M, M)",
    "jnp.linalg.det(D)", "jnp.linalg.inv(D)", "jnp.linalg.solve(D, D)", "jnp.linalg.cholesky(D)", "jnp.kron(m, M)",
    "jnp.take_along_axis(M, M.argsort(1), 1)", "lax.top_k(M, 5)", "jnp.partition(X, 100)", "jnp.argpartition(X, 100)",
    "jax.ops.segment_sum(X, I)", "jax.ops.segment_max(X, I, 50)", "jnp.heaviside(X, X)", "jnp.fmod(X, X)", "X % 3",
    "jnp.floor_divide(X, 3)", "jnp.nancumsum(X)", "jnp.fft.fft(X)", "jnp.unpackbits(U)", "jnp.packbits(B)",
    "jnp.sign(X) * X", "jnp.rot90(M)", "jnp.tile(X, 3)", "jnp.repeat(X, 3)",
    "jnp.repeat(X, i4 * 0 + 3, total_repeat_length=3)",
    "jnp.setdiff1d(I, i, size=20)", "jnp.diff(M, axis=0)", "jnp.ediff1d(X)", "jnp.vander(X[:1000], 4)", "jnp.tril(M)",
]  # fmt: skip


def operands(large: int) -> dict:
    """Arrays by the names that the expressions have for them, made by NumPy."""
    rng, half = np.random.default_rng(0), "bfloat16"
    u = lambda *shape: rng.uniform(0.1, 0.9, shape).astype(np.float32)
    base = rng.uniform(-1, 1, (4, 4)).astype(np.float32)
    side = int(large**0.5)
    given = {
        "x": (u(16), None), "y": (np.sort(u(16) + 1), None), "p": (u(16), None), "h": (u(16), half),
        "b": (u(16) > 0.5, None),
        "i": (rng.integers(0, 9, 16), "int32"), "m": (u(4, 4), None), "x4": (u(4), None), "h4": (u(4, 4), half),
        "s": (base @ base.T + 2 * np.eye(4, dtype=np.float32), None), "i4": (rng.integers(0, 4, 4), "int32"),
        "i44": (rng.integers(0, 4, (4, 4)), "int32"), "q": (u(1, 4, 2, 8), None), "piv": (np.arange(4), "int32"),
        "u": (rng.integers(0, 255, 16), "uint8"), "im": (u(1, 2, 4, 4), None), "ke": (u(2, 2, 3, 3), None),
    }  # fmt: skip
    if large:
        given |= {
            "X": (u(large), None), "M": (u(side, side), None), "B": (u(large) > 0.5, None), "H": (u(large), half),
            "I": (rng.integers(0, 50, large), "int32"), "T": (u(large // 3, 3), None),
            "U": (rng.integers(0, 255, large), "uint8"),
            "D": (u(large // 16, 4, 4) + 4 * np.eye(4, dtype=np.float32), None),
        }  # fmt: skip
    return given


# ----------------------------------------------------------------------------- in the worker process


def converted(x, dtype: str):
    """The numbers in another dtype: a quarter or so of a float becomes a small integer where it must."""
    if dtype[0] in "ib" and dtype != "bfloat16" and x.dtype.kind in "fc":
        x = np.ceil(np.abs(x * 2))
    return x.astype(np.int32) if dtype == "int32" else x


def calls_of(jax, rows: list, large: int) -> dict:
    """Functions without arguments, by the names of rows."""
    jnp = jax.numpy
    named = {
        name: jnp.asarray(x) if d is None else jnp.asarray(x).astype(d) for name, (x, d) in operands(large).items()
    }
    names = {"jax": jax, "jnp": jnp, "nn": jax.nn, "lax": jax.lax, "jsp": jax.scipy} | named
    for part in "special stats linalg signal fft ndimage integrate".split():
        importlib.import_module(f"{jax.__name__}.scipy.{part}")
    calls = {}
    for label, row in rows:
        if isinstance(row, str):
            calls[label] = eval(f"lambda: {row}", names)
        else:
            name, dtype, args, kwargs = row
            calls[label] = example(jnp, name, dtype, args, kwargs)
    return calls


def example(jnp, name, dtype, args, kwargs):
    def walk(x):
        if isinstance(x, np.ndarray) and x.ndim:
            return jnp.asarray(converted(x, dtype)).astype(dtype if x.dtype.kind == "f" else x.dtype)
        if isinstance(x, np.ndarray):
            return jnp.asarray(x) if x.dtype.kind == "f" else x.item()
        if isinstance(x, dict):
            return {key: walk(v) for key, v in x.items()}
        return type(x)(map(walk, x)) if type(x) in (list, tuple) else x

    function = jnp
    for part in name.split("."):
        function = getattr(function, part)
    args, kwargs = walk(args), walk(kwargs)
    return lambda: function(*args, **kwargs)


def serve(library: str, file: str, large: int, x64: bool) -> None:
    """Answer requests on stdin for the seconds a call takes; null where the library refuses the call."""
    warnings.simplefilter("ignore")
    jax = importlib.import_module(library)
    jax.config.update("jax_enable_x64", x64)
    calls, refused = calls_of(jax, pickle.loads(Path(file).read_bytes()), large), set()
    for line in sys.stdin:
        request = json.loads(line)
        name, seconds = request["workload"], None
        try:
            if name not in refused:
                seconds = seconds_of(jax, calls[name], request["seconds"])
        except Exception:  # whatever is refused is not compared
            refused.add(name)
        print(json.dumps({"seconds": seconds}), flush=True)


def seconds_of(jax, call, seconds: float) -> float:
    """The processor's or the clock's time of a call: the mean of a batch that takes about so long."""
    for _ in range(3):
        jax.block_until_ready(call())
    took = batch(jax, call, 3, True) / 3
    return batch(jax, call, max(1, min(2000, int(seconds / max(took, 1e-7)))), took > 1e-4) / max(
        1, min(2000, int(seconds / max(took, 1e-7)))
    )


# ------------------------------------------------------------------------------ in the parent process


def rows_of(options) -> list:
    if options.large:
        rows = [(row, row) for row in LARGE]
    else:
        sys.path.insert(0, str(ROOT / "tests" / "helpers"))
        dtypes = ["float64"] if options.x64 else DTYPES
        rows = [
            (f"{name} {i} {dtype}", (name, dtype, args, kwargs))
            for name, examples in importlib.import_module("numpy_examples").EXAMPLES.items()
            if name not in LEFT_OUT
            for i, (args, kwargs) in enumerate(examples)
            for dtype in dtypes
        ]
        rows += [(row, row) for row in ROWS]
    kept = []
    for label, row in rows:
        if options.only in label:
            try:
                pickle.loads(pickle.dumps(row))
            except (pickle.PicklingError, TypeError, AttributeError):
                continue
            kept.append((label, row))
    return kept[:: options.every]


def measured(options, rows: list, file: str):
    """``(label, our seconds, their seconds)`` of every row that both take."""
    more = [file, "--size", str(options.size if options.large else 0), *(["--x64"] if options.x64 else [])]
    workers = [
        Worker(python, __file__, library, "--file", *more)
        for python, library in ((sys.executable, OURS), (options.jax_python, THEIRS))
    ]
    for k, (label, _) in enumerate(rows):
        answers: list = [[], []]
        first = workers[0].ask(workload=label, seconds=options.seconds)["seconds"]
        if first is None or first < options.least * 1e-6:
            continue
        for _ in range(options.rounds):
            for kept, worker in zip(answers, workers, strict=True):
                kept.append(worker.ask(workload=label, seconds=options.seconds))
        if all(a["seconds"] for kept in answers for a in kept):
            yield label, *map(best, answers)
        if k % 100 == 99:
            print(f"{k + 1} of {len(rows)}", file=sys.stderr, flush=True)
    for worker in workers:
        worker.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", default=".venv-jax/bin/python")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.004)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--least", type=float, default=0, help="microseconds: JAX is not asked for what takes us less")
    parser.add_argument("--every", type=int, default=1, help="one row in so many")
    parser.add_argument("--x64", action="store_true", help="with 64-bit types; examples in float64 alone")
    parser.add_argument("--large", action="store_true", help="many elements")
    parser.add_argument("--size", type=int, default=100_000, help="how many")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.file, options.size, options.x64)
        return
    rows = rows_of(options)
    with tempfile.NamedTemporaryFile() as file:
        file.write(pickle.dumps(rows))
        file.flush()
        found = sorted(measured(options, rows, file.name), key=lambda row: row[2] / row[1])
    print(f"{'':<56} {OURS:>10} {THEIRS:>10} {'ratio':>8}")
    for label, ours, theirs in found:
        print(f"{label:<56} {show(ours):>10} {show(theirs):>10} {theirs / ours:>7.2f}x")
    ratios = [theirs / ours for _, ours, theirs in found]
    slow = sum(r < 1 for r in ratios)
    mean = statistics.geometric_mean(ratios)
    print(f"{len(rows)} calls, {len(found)} of which both take: {slow} below 1.0; mean {mean:.2f}x")


if __name__ == "__main__":
    main()
