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
import statistics
import sys

import numpy as np
from side_by_side import OURS, THEIRS, Worker, alternate, best, check_equal, options_of, serve, show

MEDIAN_GOAL, WORST_GOAL, LARGE_GOAL = 3, 1, 3
LARGE = 10**6

# ----------------------------------------------------------------------- the workloads, written once

ONE_ARRAY = (  # functions of one array of floats, then of more
    "mean var std argmax max min sum prod exp log sign isnan abs round median cumsum sort argsort unique diff "
    "flip ravel squeeze any all count_nonzero zeros_like nan_to_num floor"
)
TWO_ARRAYS = "maximum logaddexp power dot vdot outer arctan2 equal less isclose hypot"
ONE_MATRIX = "transpose tril trace diag vstack"


def small(jax):
    """Calls on small arrays: names to functions without arguments."""
    jnp = jax.numpy
    x, y, ints = jnp.arange(32.0) / 32 + 0.5, jnp.linspace(2.0, 0.5, 32), jnp.arange(32)
    m = jnp.arange(256.0).reshape(16, 16) / 256
    regular = m[:4, :4] + 3 * jnp.eye(4)
    mask, rows, i = x > 1, jnp.array([3, 1, 2]), jnp.array(5)
    column, order = x.reshape(32, 1), jnp.argsort(y)
    calls = {}
    for names, arguments in ((ONE_ARRAY, (x,)), (TWO_ARRAYS, (x, y)), (ONE_MATRIX, (m,))):
        for name in names.split():
            calls[name] = functools.partial(getattr(jnp, name), *arguments)
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
