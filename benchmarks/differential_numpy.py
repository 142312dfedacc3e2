"""The NumPy API beside JAX, call by call: values, dtypes, weak types, shapes, tree structures, exception types.

`python benchmarks/differential_numpy.py --jax-python PYTHON` makes the calls of `tests/numpy_variations.py` under
both libraries and prints those that differ, function by function, and how many there were. Differences that are
meant stand in `EXPLAINED` below, each with its reason. JAX compiles each call anew: all take it about half an
hour; `--every 10` makes a tenth of them, `--only NAME` those of one function.
"""

import argparse
import importlib
import pickle
import re
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float64": 1e-10, "complex128": 1e-10}  # else 2e-5

# Pattern of a call's label, and of "ours | theirs" -> why they differ. The first that fits explains.
EXPLAINED: list[tuple[str, str, str]] = []

# ----------------------------------------------------------------------------- in the worker process


def described(jax, value):
    """A result by its structure, types and values; floats narrower than 32 bits as float32."""
    leaves = []
    for x in jax.tree.leaves(value):
        if not hasattr(x, "dtype"):
            leaves.append((type(x).__name__, (), False, np.asarray(x) if isinstance(x, bool | int | float) else None))
            continue
        a = np.asarray(x)
        plain = a.astype(np.float32) if a.dtype.kind == "V" and a.dtype.names is None and a.dtype.itemsize else a
        leaves.append((str(a.dtype), a.shape, bool(getattr(x, "weak_type", False)), plain))
    return re.sub(r"CustomNode\(namedtuple\[(\w+)\]", r"\1(", str(jax.tree.structure(value))), leaves


def run(library: str, calls_file: str, results_file: str) -> None:
    warnings.simplefilter("ignore")
    jax = importlib.import_module(library)
    results = {}
    for label, name, args, kwargs in pickle.loads(Path(calls_file).read_bytes()):
        try:
            function = jax.numpy
            for part in name.split("."):
                function = getattr(function, part)
            results[label] = described(jax, function(*args, **kwargs))
        except Exception as error:  # whatever is raised is what is compared
            results[label] = [kind.__name__ for kind in type(error).__mro__], str(error).split("\n")[0][:120]
    Path(results_file).write_bytes(pickle.dumps(results))


# ------------------------------------------------------------------------------ in the parent process


def difference(ours, theirs) -> str | None:
    """What differs, said as "ours | theirs"."""
    failed = isinstance(ours[0], list), isinstance(theirs[0], list)
    if any(failed):
        if all(failed) and theirs[0][0] in ours[0]:  # the same kind of exception or a special one of it
            return None
        return " | ".join(f"{r[0][0]}: {r[1]}" if f else short(r) for r, f in zip((ours, theirs), failed, strict=True))
    same = ours[0] == theirs[0] and len(ours[1]) == len(theirs[1]) and all(map(leaves_agree, ours[1], theirs[1]))
    return None if same else f"{short(ours)} | {short(theirs)}"


def short(result) -> str:
    tree, leaves = result
    shown = [f"{dtype}{list(shape)}{' weak' * weak} {np.ravel(v)[:6] if v is not None else ''}"
             for dtype, shape, weak, v in leaves[:3]]  # fmt: skip
    return f"{tree[:60]} {', '.join(shown)}"


def leaves_agree(a, b) -> bool:
    if a[:3] != b[:3] or (a[3] is None) != (b[3] is None):
        return False
    if a[3] is None or a[3].dtype.kind not in "fc":
        return a[3] is None or np.array_equal(a[3], b[3])
    finite = np.abs(b[3][np.isfinite(b[3])])
    tolerance = TOLERANCE.get(a[0], 2e-5)
    with np.errstate(all="ignore"):
        return np.allclose(a[3], b[3], tolerance, tolerance * max(1e-30, finite.max(initial=0)), equal_nan=True)


def explanation(label: str, what: str) -> str | None:
    return next((why for call, text, why in EXPLAINED if re.search(call, label) and re.search(text, what)), None)


def results_of(pythons: dict, calls: list) -> dict:
    """Library -> label -> result; both libraries work side by side."""
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder, "calls")
        given.write_bytes(pickle.dumps(calls))
        workers = [
            subprocess.Popen([python, __file__, "--run", library, str(given), f"{folder}/{library}"])
            for library, python in pythons.items()
        ]
        if any(worker.wait() for worker in workers):
            raise SystemExit("a worker failed")
        return {library: pickle.loads(Path(folder, library).read_bytes()) for library in pythons}


def chosen_calls(options) -> list:
    sys.path.insert(0, str(ROOT))
    calls = list(importlib.import_module("tests.numpy_variations").calls())
    if options.only:
        calls = [call for call in calls if call[1] == options.only]
    picklable = []
    for call in calls[options.start :: options.every]:
        try:
            picklable.append(pickle.loads(pickle.dumps(call)))
        except (pickle.PicklingError, AttributeError, TypeError):  # functions without a name
            print(f"left out: {call[0]}")
    return picklable


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", help="the interpreter of an environment with JAX")
    parser.add_argument("--every", type=int, default=1, help="make one call in so many")
    parser.add_argument("--start", type=int, default=0, help="beginning with this one")
    parser.add_argument("--only", help="the calls of one function")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(*options.run)
        return 0
    calls = chosen_calls(options)
    results = results_of({"catena": sys.executable, "jax": options.jax_python}, calls)
    unexplained, explained = defaultdict(list), defaultdict(int)
    for label, name, _, _ in calls:
        what = difference(results["catena"][label], results["jax"][label])
        if what is not None:
            why = explanation(label, what)
            if why:
                explained[why] += 1
            else:
                unexplained[name].append(f"  {label}\n    {what}")
    for lines in unexplained.values():
        print("\n".join(lines))
    for why, count in explained.items():
        print(f"explained, {count} times: {why}")
    print(f"{len(calls)} calls, {sum(map(len, unexplained.values()))} unexplained differences")
    return bool(unexplained)


if __name__ == "__main__":
    sys.exit(main())
