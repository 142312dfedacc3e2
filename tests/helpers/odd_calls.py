"""Calls of the NumPy API that no generator makes, and what they give: the answers of JAX are stored.

The calls stand in ``data/numpy_odd_calls.txt``, an expression a line over the names defined here; JAX's answers in
``data/numpy_odd_answers.json``. ``python tests/helpers/odd_calls.py > tests/data/numpy_odd_answers.json``, in an environment
with JAX, makes them anew.
"""

import functools
import json
import math
import operator
import warnings
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / "data"
CALLS = [line for line in (DATA / "numpy_odd_calls.txt").read_text().splitlines() if line and line[0] != "#"]
TOLERANCE = {"bfloat16": 1e-2, "float16": 1e-3}  # else 1e-4
SHOWN = 64  # elements of an array that are stored


def names(jax) -> dict:
    """The names that calls are written with."""
    jnp = jax.numpy
    x, v, i5 = jnp.arange(12.0).reshape(3, 4), jnp.arange(5.0), jnp.arange(5)

    def under(scope):
        def run(f):
            with scope():
                return f()

        return run

    scopes = {
        "x64": under(lambda: jax.enable_x64(True)),
        "strict": under(lambda: jax.numpy_dtype_promotion("strict")),
        "rank": under(lambda: jax.numpy_rank_promotion("raise")),
        "nans": under(lambda: jax.debug_nans(True)),
    }

    class Own:
        """Level 1 of the array protocol."""

        def __init__(self, data):
            self.data = data

        def __jax_array__(self):
            return jnp.asarray(self.data)

    arrays = {
        "x": x, "v": v, "i5": i5, "m": i5 % 2 == 0, "t": jnp.arange(24).reshape(2, 3, 4), "e": jnp.array([]),
        "z": jnp.zeros((0, 3)), "s": jnp.float32(2), "w": jnp.asarray(2.0), "b": jnp.array([True, False, True]),
        "c": jnp.array([1 + 2j, -3j]), "nan": jnp.array([1.0, jnp.nan, -jnp.inf, jnp.inf]),
        "u8": jnp.array([250, 5, 0], jnp.uint8), "i8": jnp.array([-128, 127, 1], jnp.int8),
        "bf": jnp.array([1.5, -2.25, 3], jnp.bfloat16), "f16": jnp.array([1, 2, 3], jnp.float16),
    }  # fmt: skip
    modules = {"jax": jax, "jnp": jnp, "np": np, "operator": operator, "functools": functools, "math": math}
    return arrays | modules | scopes | {"A": Own}


def answer(jax, call: str, given: dict) -> list:
    """What a call gives, in words: of each leaf of the result the type and the elements, or of an error its kind."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = eval(call, dict(given))
            return [describe(jax, leaf) for leaf in jax.tree_util.tree_leaves(result)]
    except Exception as error:
        return [f"raises {kinds(error)[0]}"]


def kinds(error) -> list:
    """The names of the classes of an exception that are Python's own, the nearest first."""
    return [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]


def describe(jax, leaf) -> str:
    """A leaf of a result: dtype, weakness, shape and elements; anything but an array as Python shows it."""
    if not isinstance(leaf, jax.Array | np.ndarray | np.generic):
        return f"{type(leaf).__name__} {leaf!r}"
    value = np.asarray(leaf)
    weak = "~" if getattr(leaf, "weak_type", False) else ""
    elements = value.ravel()[:SHOWN].tolist()
    if value.dtype.kind == "c":
        elements = [part for z in elements for part in (z.real, z.imag)]
    return (
        f"{weak}{value.dtype.name}[{','.join(map(str, value.shape))}] {' '.join(f'{float(y):.6g}' for y in elements)}"
    )


def agree(found: str, stored: str) -> bool:
    """Whether two descriptions say the same, numbers within the tolerance of their dtype."""
    if found == stored:
        return True
    kind, *numbers = found.split(" ")
    expected_kind, *expected = stored.split(" ")
    if kind != expected_kind or "[" not in kind or len(numbers) != len(expected):
        return False
    tolerance = TOLERANCE.get(kind.strip("~").partition("[")[0], 1e-4)
    a, b = (np.array([float(y) for y in row if y]) for row in (numbers, expected))
    return np.allclose(a, b, tolerance, 1e-5, equal_nan=True)


def main():
    import jax
    import jax.numpy

    given = names(jax)
    print(json.dumps({call: answer(jax, call, given) for call in CALLS}, indent=0))


if __name__ == "__main__":
    main()
