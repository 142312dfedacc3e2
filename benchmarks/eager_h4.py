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

HERE = Path(__file__).resolve().parent
FEW = 16
DTYPES = "float32 bfloat16 int8 int32 bool float16 complex64".split()
LEFT_OUT = frozenset(  # files, printing, Python functions
    "save savez load fromfile frombuffer from_dlpack fromiter fromstring frompyfunc vectorize get_printoptions "
    "set_printoptions printoptions array_repr array_str piecewise apply_along_axis apply_over_axes fromfunction".split()
)


def operands(size: int) -> dict:
    """Arrays by the names that the expressions have for them: of so many elements, those of capital letters of 1e5."""
    rng, half, large = np.random.default_rng(0), "bfloat16", 100_000
    u = lambda *shape: rng.uniform(0.1, 0.9, shape).astype(np.float32)
    n, side = size, int(size**0.5)
    base, wide = rng.uniform(-1, 1, (side, side)).astype(np.float32), int(large**0.5)
    return {
        "x": (u(n), None), "y": (np.sort(u(n) + 1), None), "p": (u(n), None), "h": (u(n), half),
        "b": (u(n) > 0.5, None), "c": (u(n) + 1j * u(n), "complex64"), "cm": (base + 1j * base.T, "complex64"),
        "i": (rng.integers(0, 9, n), "int32"), "m": (u(side, side), None), "x4": (u(side), None),
        "h4": (u(side, side), half), "s": (base @ base.T + 2 * np.eye(side, dtype=np.float32), None),
        "i4": (rng.integers(0, 4, side), "int32"), "i44": (rng.integers(0, 4, (side, side)), "int32"),
        "q": (u(1, 4, 2, n // 2), None), "piv": (np.arange(side), "int32"), "u": (rng.integers(0, 255, n), "uint8"),
        "im": (u(1, 2, side, side), None), "ke": (u(2, 2, 3, 3), None),
        "X": (u(large), None), "M": (u(wide, wide), None), "B": (u(large) > 0.5, None), "H": (u(large), half),
        "I": (rng.integers(0, 50, large), "int32"), "T": (u(large // 3, 3), None),
        "U": (rng.integers(0, 255, large), "uint8"),
        "D": (u(large // 16, 4, 4) + 4 * np.eye(4, dtype=np.float32), None),
    }  # fmt: skip


def others(jax, named: dict) -> dict:
    """What else the expressions name: NumPy's arrays, an array that was put on its device, a key, functions."""
    lax = jax.lax
    return {
        "nx": np.asarray(named["x"]), "ni": np.asarray(named["i"]),
        "d": jax.device_put(named["x"], jax.devices()[0]), "key": jax.random.key(0),
        "step": lambda carry, x: (carry * 0.5 + x, carry), "times": lambda i, x: x * 1.5,
        "double": lambda x: x * 2.0, "halve": lambda x: x * 0.5, "below": lambda x: x < 1e6,
        "lossf": lambda x: jax.numpy.sum(lax.sin(x) * x),
    }  # fmt: skip


# ----------------------------------------------------------------------------- in the worker process


def converted(x, dtype: str):
    """The numbers in another dtype: a quarter or so of a float becomes a small integer where it must."""
    if dtype[0] in "ib" and dtype != "bfloat16" and x.dtype.kind in "fc":
        x = np.ceil(np.abs(x * 2))
    return x.astype(np.int32) if dtype == "int32" else x


def calls_of(jax, rows: list, size: int, of_numpy: bool) -> dict:
    """Functions without arguments, by the names of rows; ``of_numpy``: their arrays are NumPy's."""
    jnp = jax.numpy
    named = {name: jnp.asarray(x) if d is None else jnp.asarray(x).astype(d) for name, (x, d) in operands(size).items()}
    if of_numpy:
        named = {name: np.array(x) for name, x in named.items()}
    names = {"jax": jax, "jnp": jnp, "nn": jax.nn, "lax": jax.lax, "jsp": jax.scipy} | named
    names |= others(jax, named)
    for part in "special stats linalg signal fft ndimage integrate cluster.vq".split():
        importlib.import_module(f"{jax.__name__}.scipy.{part}")
    importlib.import_module(f"{jax.__name__}.image")
    calls = {}
    for label, row in rows:
        if isinstance(row, str):
            calls[label] = eval(f"lambda: {row}", names)
        else:
            name, dtype, args, kwargs = row
            calls[label] = example(jnp, name, dtype, args, kwargs, of_numpy)
    return calls


def example(jnp, name, dtype, args, kwargs, of_numpy: bool):
    def walk(x):
        if isinstance(x, np.ndarray) and x.ndim:
            x = jnp.asarray(converted(x, dtype)).astype(dtype if x.dtype.kind == "f" else x.dtype)
            return np.array(x) if of_numpy else x
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


def serve(library: str, file: str, size: int, x64: bool, of_numpy: bool) -> None:
    """Answer requests on stdin for the seconds a call takes; null where the library refuses the call."""
    warnings.simplefilter("ignore")
    jax = importlib.import_module(library)
    jax.config.update("jax_enable_x64", x64)
    calls, refused = calls_of(jax, pickle.loads(Path(file).read_bytes()), size, of_numpy), set()
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
    lines = (HERE / "eager_rows.txt").read_text().splitlines()
    start = [i for i, line in enumerate(lines) if line.startswith("#")]
    small, large = lines[start[0] + 1 : start[1]], lines[start[1] + 1 :]
    rows = [(row, row) for row in (large if options.large else small)]
    if not (options.large or options.expressions or options.size > FEW):
        sys.path.insert(0, str(HERE.parent / "tests" / "helpers"))
        dtypes = ["float64"] if options.x64 else DTYPES
        rows += [
            (f"{name} {i} {dtype}", (name, dtype, args, kwargs))
            for name, examples in importlib.import_module("numpy_examples").EXAMPLES.items()
            if name not in LEFT_OUT
            for i, (args, kwargs) in enumerate(examples)
            for dtype in dtypes
        ]
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
    more = [
        file,
        "--size",
        str(options.size),
        *(["--x64"] if options.x64 else []),
        *(["--numpy"] if options.numpy else []),
    ]
    workers = [
        Worker(python, __file__, library, "--file", *more)
        for python, library in ((sys.executable, OURS), (options.jax_python, THEIRS))
    ]
    for k, (label, _) in enumerate(rows):
        answers: list = [[], []]
        first = workers[0].ask(workload=label, seconds=options.seconds)["seconds"]
        if first is None:
            print(f"refused here: {label}", file=sys.stderr)
        if first is None or first < options.least * 1e-6:
            continue
        for _ in range(options.rounds):
            for kept, worker in zip(answers, workers, strict=True):
                kept.append(worker.ask(workload=label, seconds=options.seconds))
        if all(a["seconds"] for kept in answers for a in kept):
            print(
                "ROW",
                label,
                *[f"{best(a) * 1e6:.1f}" for a in answers],
                f"{best(answers[1]) / best(answers[0]):.2f}",
                file=sys.stderr,
                flush=True,
            )
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
    parser.add_argument("--numpy", action="store_true", help="with NumPy's arrays as arguments")
    parser.add_argument("--large", action="store_true", help="the expressions that are of 100,000 elements")
    parser.add_argument(
        "--size", type=int, default=FEW, help="elements of the operands; of more, the expressions alone"
    )
    parser.add_argument("--expressions", action="store_true", help="without the examples of the tests")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.file, options.size, options.x64, options.numpy)
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
