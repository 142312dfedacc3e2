"""Compositions of transformations beside JAX: values, dtypes, weak types, tree structures, exception types.

`python benchmarks/differential_transformations.py --jax-python PYTHON` runs every function of
`tests/helpers/compositions.py` through every transformation under both libraries and lists what differs by more than
rounding. JAX takes about ten minutes of it.
"""

import argparse
import importlib
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

HELPERS = Path(__file__).resolve().parent.parent / "tests" / "helpers"
RTOL, ATOL = 1e-3, 1e-3  # of the largest element: third derivatives in float32


def described(jax, value) -> dict:
    leaves = [(x, np.asarray(x)) for x in jax.tree.leaves(value)]
    return {
        "tree": str(jax.tree.structure(value)),
        "types": [[str(a.dtype), list(a.shape), bool(getattr(x, "weak_type", False))] for x, a in leaves],
        "values": [[] if a.dtype.kind == "V" else np.asarray(a, float).ravel().tolist() for _, a in leaves],
    }


def run(library: str) -> None:
    """Print one line of JSON for each composition."""
    sys.path.insert(0, str(HELPERS))
    jax, cases = importlib.import_module(library), importlib.import_module("compositions")
    x = jax.numpy.asarray(cases.POINT)
    pairs = itertools.product(cases.functions(jax).items(), cases.transformations(jax).items())
    for (name, function), (transformation, apply) in pairs:
        try:
            result = described(jax, apply(function, x))
        except Exception as error:  # whatever a library raises is what is compared
            result = {"error": type(error).__name__}
        print(json.dumps([f"{transformation} of {name}", result]), flush=True)


def results_of(python: str, library: str) -> dict:
    output = subprocess.run([python, __file__, "--run", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(map(json.loads, output.splitlines()))


def agree(a: dict, b: dict) -> bool:
    if {**a, "values": 0} != {**b, "values": 0}:
        return False
    return all(map(close, a.get("values", ()), b.get("values", ())))


def close(a: list, b: list) -> bool:
    scale = max([1.0, *np.abs(np.nan_to_num(b))])
    return np.allclose(a, b, RTOL, ATOL * scale, equal_nan=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", help="the interpreter of an environment with JAX")
    parser.add_argument("--run", choices=("jax", "catena"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(options.run)
        return 0
    if not options.jax_python:
        parser.error("--jax-python is needed")
    ours, theirs = results_of(sys.executable, "catena"), results_of(options.jax_python, "jax")
    different = [name for name in theirs if not agree(ours[name], theirs[name])]
    for name in different:
        print(f"{name}\n  catena {ours[name]}\n  jax    {theirs[name]}")
    print(f"{len(theirs)} compositions, {len(different)} differ")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
