"""What calls of the NumPy API on small arrays cost beside JAX, eagerly; and sorting and scanning a million.

`python benchmarks/numpy_overhead.py --jax-python PYTHON` prints the ratios, worst first, and their median; with
``--large``, those of `sort`, `median` and their kin at 1e6 elements, eager and under ``jit``. What a workload
computes stands in the tables below, once for both libraries; results must agree. See ``side_by_side`` for how
time is taken.

On small arrays an operation's time ends when the call returns, although JAX may still be computing; with
``--large`` every call is waited for.
"""

import functools
import importlib
import operator
import statistics
import sys

import numpy as np
from side_by_side import OURS, THEIRS, Worker, alternate, best, check_equal, options_of, serve, show

MEDIAN_GOAL, WORST_GOAL, LARGE_GOAL = 3, 1, 3
LARGE = 10**6

# ----------------------------------------------------------------------- the workloads, written once

ONE_ARRAY = (  # functions of one array of floats, then of more
    "mean var std argmax max min sum prod exp log sign isnan abs round median cumsum sort argsort unique diff "
    "flip ravel squeeze any all count_nonzero zeros_like ones_like nan_to_num floor ceil trunc sqrt square "
    "reciprocal sin cos tanh log1p expm1 isfinite isinf copy cumprod nansum nanmean nanmax ptp average shape "
    "atleast_2d flatnonzero negative argmin real degrees sinc"
)
TWO_ARRAYS = (
    "add subtract multiply divide floor_divide remainder minimum maximum logaddexp power dot vdot inner outer "
    "matmul arctan2 equal less isclose hypot kron append array_equal convolve fmax copysign heaviside"
)
ONE_MATRIX = "transpose tril triu trace diag vstack fliplr rot90 diagonal matrix_transpose linalg.det"
DECOMPOSITIONS = "cholesky qr svd eigh slogdet matrix_rank pinv eigvalsh"


def small(jax):
    """Calls on small arrays: names to functions without arguments."""
    jnp = jax.numpy
    x, y, ints = jnp.arange(32.0) / 32 + 0.5, jnp.linspace(2.0, 0.5, 32), jnp.arange(32)
    m = jnp.arange(256.0).reshape(16, 16) / 256
    regular = m[:4, :4] + jnp.diag(jnp.arange(1.0, 5.0))
    mask, rows, i = x > 1, jnp.array([3, 1, 2]), jnp.array(5)
    column, order, numbers = x.reshape(32, 1), jnp.argsort(y), np.arange(8, dtype=np.float32)
    calls = {}
    for names, arguments in ((ONE_ARRAY, (x,)), (TWO_ARRAYS, (x, y)), (ONE_MATRIX, (m,))):
        for name in names.split():
            calls[name] = functools.partial(operator.attrgetter(name)(jnp), *arguments)
    for name in DECOMPOSITIONS.split():
        calls[f"linalg.{name}"] = functools.partial(getattr(jnp.linalg, name), regular)
    return calls | {
        "where": lambda: jnp.where(mask, x, y),
        "where, scalar": lambda: jnp.where(mask, x, 0.0),
        "clip": lambda: jnp.clip(x, 0.6, 1.2),
        "concatenate": lambda: jnp.concatenate([x, y]),
        "stack": lambda: jnp.stack([x, y]),
        "hstack": lambda: jnp.hstack([x, y]),
        "mean, axis": lambda: jnp.mean(m, axis=1, keepdims=True),
        "var, axis": lambda: jnp.var(m, axis=0),
        "argmax, axis": lambda: jnp.argmax(m, axis=1),
        "max, axis": lambda: jnp.max(m, axis=1),
        "einsum": lambda: jnp.einsum("ij,jk->ik", m, m),
        "einsum, batched": lambda: jnp.einsum("ij,kj,k->i", m, m, m[0]),
        "tensordot": lambda: jnp.tensordot(m, m, 1),
        "x ** 2": lambda: x**2,
        "x ** 2.5": lambda: x**2.5,
        "x ** y": lambda: x**y,
        "x > y": lambda: x > y,
        "x > 1": lambda: x > 1,
        "any, bools": lambda: jnp.any(mask),
        "cumsum, axis": lambda: jnp.cumsum(m, axis=1),
        "linspace": lambda: jnp.linspace(0.0, 1.0, 32),
        "arange": lambda: jnp.arange(32),
        "arange, floats": lambda: jnp.arange(0.0, 1.0, 0.125),
        "zeros": lambda: jnp.zeros((4, 8)),
        "ones": lambda: jnp.ones((4, 8)),
        "full": lambda: jnp.full((4, 8), 1.5),
        "eye": lambda: jnp.eye(8),
        "array": lambda: jnp.array([1.0, 2.0, 3.0]),
        "asarray": lambda: jnp.asarray(2.0),
        "reshape": lambda: jnp.reshape(m, (4, 64)),
        "swapaxes": lambda: jnp.swapaxes(m, 0, 1),
        "moveaxis": lambda: jnp.moveaxis(m, 0, 1),
        "squeeze, axis": lambda: jnp.squeeze(column, 1),
        "expand_dims": lambda: jnp.expand_dims(x, 0),
        "broadcast_to": lambda: jnp.broadcast_to(x, (4, 32)),
        "take": lambda: jnp.take(x, rows),
        "take, axis": lambda: jnp.take(m, rows, axis=0),
        "take_along_axis": lambda: jnp.take_along_axis(x, order, axis=0),
        "x[ints]": lambda: x[rows],
        "m[ints, ints]": lambda: m[rows, rows],
        "x[bools]": lambda: x[mask],
        "m[:, None]": lambda: m[:, None],
        "x[i], i an array": lambda: x[i],
        "x.at[ints].add": lambda: x.at[rows].add(1.0),
        "x.at[bools].set": lambda: x.at[mask].set(0.0),
        "m.at[0].set": lambda: m.at[0].set(1.0),
        "astype": lambda: x.astype("int32"),
        "percentile": lambda: jnp.percentile(x, 30.0),
        "quantile": lambda: jnp.quantile(x, 0.3),
        "linalg.norm": lambda: jnp.linalg.norm(x),
        "linalg.norm, axis": lambda: jnp.linalg.norm(m, axis=1),
        "linalg.solve": lambda: jnp.linalg.solve(regular, regular),
        "linalg.inv": lambda: jnp.linalg.inv(regular),
        "split": lambda: jnp.split(x, 4),
        "pad": lambda: jnp.pad(x, 2),
        "roll": lambda: jnp.roll(x, 3),
        "tile": lambda: jnp.tile(x, 3),
        "repeat": lambda: jnp.repeat(x, 3),
        "searchsorted": lambda: jnp.searchsorted(x, y),
        "diag, vector": lambda: jnp.diag(x),
        "ints + floats": lambda: ints + x,
        "ints * 2.5": lambda: ints * 2.5,
        "true_divide, ints": lambda: ints / 2,
        "x + m[0, 0]": lambda: x + m[0, 0],
        "x % 1": lambda: x % 1,
        "m @ m": lambda: m @ m,
        "m + column": lambda: m + column[:16],
        "x.sum()": lambda: x.sum(),
        "m.mean(0)": lambda: m.mean(0),
        "meshgrid": lambda: jnp.meshgrid(x, y)[0],
        "bincount": lambda: jnp.bincount(ints, length=32),
        "allclose": lambda: jnp.allclose(x, y),
        "minimum, scalar": lambda: jnp.minimum(x, 1.0),
        "logical_and": lambda: jnp.logical_and(mask, mask),
        "mask & mask": lambda: mask & mask,
        "sum, where": lambda: jnp.sum(x, where=mask),
        "x + 1": lambda: x + 1,
        "1 + x": lambda: 1 + x,
        "x - y": lambda: x - y,
        "2.0 / x": lambda: 2.0 / x,
        "x // 2": lambda: x // 2,
        "-x": lambda: -x,
        "abs(x)": lambda: abs(x),
        "x == y": lambda: x == y,
        "~mask": lambda: ~mask,
        "ints << 1": lambda: ints << 1,
        "x[3]": lambda: x[3],
        "x[-1]": lambda: x[-1],
        "m[1, 2]": lambda: m[1, 2],
        "m[i]": lambda: m[i],
        "x[2:9]": lambda: x[2:9],
        "x[::-1]": lambda: x[::-1],
        "m[1:3, ::2]": lambda: m[1:3, ::2],
        "m[..., 0]": lambda: m[..., 0],
        "m[:, ints]": lambda: m[:, rows],
        "x.at[3].set": lambda: x.at[3].set(2.0),
        "x.at[i].add": lambda: x.at[i].add(1.0),
        "x.at[2:9].multiply": lambda: x.at[2:9].multiply(2.0),
        "m.T": lambda: m.T,
        "m.reshape": lambda: m.reshape(4, 64),
        "m.reshape, -1": lambda: m.reshape(-1),
        "m.flatten()": lambda: m.flatten(),
        "m.max(1)": lambda: m.max(1),
        "m.argmax(1)": lambda: m.argmax(1),
        "x.astype, float16": lambda: x.astype(jnp.float16),
        "x.dot(y)": lambda: x.dot(y),
        "float(x[0])": lambda: float(x[0]),
        "bool(mask[0])": lambda: bool(mask[0]),
        "x.item(0)": lambda: x[0].item(),
        "list(x)": lambda: list(x),
        "len(x)": lambda: len(x),
        "x.shape": lambda: x.shape,
        "where, indices": lambda: jnp.where(mask),
        "nonzero, size": lambda: jnp.nonzero(mask, size=32),
        "interp": lambda: jnp.interp(y, x, x),
        "cross": lambda: jnp.cross(m[:, :3], m[:, 3:6]),
        "histogram": lambda: jnp.histogram(x, bins=10),
        "digitize": lambda: jnp.digitize(y, x),
        "polyval": lambda: jnp.polyval(y[:4], x),
        "fft.fft": lambda: jnp.fft.fft(x),
        "fft.ifft": lambda: jnp.fft.ifft(x),
        "fft.rfft": lambda: jnp.fft.rfft(x),
        "einsum, trace": lambda: jnp.einsum("ii", m),
        "full_like": lambda: jnp.full_like(x, 2.0),
        "array, copied": lambda: jnp.array(x),
        "asarray, NumPy": lambda: jnp.asarray(numbers),
        "asarray, as it is": lambda: jnp.asarray(x),
        "float32(1)": lambda: jnp.float32(1),
        "select": lambda: jnp.select([mask, x > 0.7], [x, y], 0.0),
        "isin": lambda: jnp.isin(ints, rows),
        "delete": lambda: jnp.delete(x, 3),
        "insert": lambda: jnp.insert(x, 3, 1.0),
        "dstack": lambda: jnp.dstack([x, y]),
        "array_split": lambda: jnp.array_split(x, 3),
        "triu_indices": lambda: jnp.triu_indices(4),
        "indices": lambda: jnp.indices((4, 4)),
        "logspace": lambda: jnp.logspace(0.0, 1.0, 8),
        "identity": lambda: jnp.identity(4),
        "tri": lambda: jnp.tri(4),
        "cov": lambda: jnp.cov(m),
        "corrcoef": lambda: jnp.corrcoef(m),
        "gradient": lambda: jnp.gradient(x),
        "trapezoid": lambda: jnp.trapezoid(y, x),
        "unravel_index": lambda: jnp.unravel_index(ints, (4, 8)),
        "linalg.lstsq": lambda: jnp.linalg.lstsq(regular, regular[0])[0],
        "linalg.matrix_power": lambda: jnp.linalg.matrix_power(regular, 3),
        "linalg.multi_dot": lambda: jnp.linalg.multi_dot([m, m, m]),
        "apply_along_axis": lambda: jnp.apply_along_axis(jnp.sum, 0, m),
        "vectorize": lambda: jnp.vectorize(jnp.dot, signature="(n),(n)->()")(m, x[:16]),
        "sum, axes": lambda: jnp.sum(m, axis=(0, 1)),
        "max, axes": lambda: jnp.max(m, axis=(0, 1)),
        "mean, ints": lambda: jnp.mean(ints),
        "sum, bools": lambda: jnp.sum(mask),
        "sum, dtype": lambda: jnp.sum(ints, dtype=jnp.float32),
        "sort, axis": lambda: jnp.sort(m, axis=0),
        "argsort, axis": lambda: jnp.argsort(m, axis=0),
        "median, axis": lambda: jnp.median(m, axis=0),
        "exp, ints": lambda: jnp.exp(ints),
        "sqrt, ints": lambda: jnp.sqrt(ints),
        "log, scalar": lambda: jnp.log(2.0),
        "maximum, ints, floats": lambda: jnp.maximum(ints, x),
        "concatenate, axis": lambda: jnp.concatenate([m, m], axis=1),
        "concatenate, mixed": lambda: jnp.concatenate([ints, x]),
        "stack, axis": lambda: jnp.stack([x, y], axis=1),
        "block": lambda: jnp.block([[m, m], [m, m]]),
        "pad, edge": lambda: jnp.pad(m, 1, mode="edge"),
        "roll, axis": lambda: jnp.roll(m, 1, axis=0),
        "clip, arrays": lambda: jnp.clip(x, y, x),
        "where, mixed": lambda: jnp.where(mask, ints, 0.5),
    }


def large(jax):
    """Sorting and scanning many elements, eagerly and under ``jit``."""
    jnp = jax.numpy
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal(LARGE).astype(np.float32))
    few = jnp.asarray(rng.integers(0, 1000, LARGE).astype(np.int32))
    functions = {name: getattr(jnp, name) for name in "sort argsort median cumsum".split()} | {
        "quantile": lambda a: jnp.quantile(a, 0.3),
        "unique": lambda a: jnp.unique(a, size=1000, fill_value=0),
    }
    calls = {}
    for name, function in functions.items():
        argument = few if name == "unique" else x
        for kind, fun in (("", function), (", jit", jax.jit(function))):
            calls[name + kind] = lambda fun=fun, a=argument: jax.block_until_ready(fun(a))
    return calls


# ------------------------------------------------------------------------------ in the parent process


def measure(options, names):
    """``(name, our seconds, their seconds)`` of every workload."""
    kind = ["--large"] if options.large else []
    workers = [
        Worker(sys.executable, __file__, OURS, *kind),
        Worker(options.jax_python, __file__, THEIRS, *kind),
    ]
    try:
        for name in names:
            asks = [functools.partial(w.ask, workload=name, seconds=options.seconds) for w in workers]
            ours, theirs = alternate(options.rounds, *asks)
            # Sums of a million float32 numbers depend on their order.
            tolerance = {"rtol": 1e-3, "atol": 2e-2} if options.large else {"rtol": 1e-5, "atol": 1e-5}
            check_equal(name, ours[0]["result"], theirs[0]["result"], **tolerance)
            yield name, best(ours), best(theirs)
    finally:
        for worker in workers:
            worker.close()


def names_of(options) -> list:
    """The names of the workloads, which a worker's library makes."""
    library = importlib.import_module(OURS)
    return [name for name in (large if options.large else small)(library) if options.only in name]


def report(rows, worst_goal: float, median_goal: float) -> bool:
    """Print the table; whether a goal is missed."""
    rows = sorted(rows, key=lambda row: row[2] / row[1])
    print(f"\n{'':<24} {OURS:>10} {THEIRS:>10} {'ratio':>9}")
    for name, ours, theirs in rows:
        print(f"{name:<24} {show(ours):>10} {show(theirs):>10} {theirs / ours:>8.1f}x")
    ratios = [theirs / ours for _, ours, theirs in rows]
    print(f"\n{len(rows)} functions: the worst {ratios[0]:.1f}x (goal {worst_goal}x), ", end="")
    print(f"the median {statistics.median(ratios):.1f}x (goal {median_goal}x)")
    return ratios[0] < worst_goal or statistics.median(ratios) < median_goal


def main():
    parser = options_of(__doc__.splitlines()[0], rounds=5, seconds=0.02)
    parser.add_argument("--large", action="store_true", help="sort, median ... at 1e6 elements")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, large if options.large else small)
        return
    rows = measure(options, names_of(options))
    goals = (LARGE_GOAL, LARGE_GOAL) if options.large else (WORST_GOAL, MEDIAN_GOAL)
    if report(rows, *goals) and options.strict:
        sys.exit(1)


if __name__ == "__main__":
    main()
