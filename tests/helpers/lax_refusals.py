"""Calls of ``lax`` and ``lax.linalg`` with arguments that do not fit: shapes, dtypes, axes, sizes, numbers.

They stand in `data/lax_refusals.txt`, expressions in the names of ``names(jax)``, so that both libraries can be
asked: `benchmarks/differential_lax.py` compares what they raise, `lax/test_refusals.py` what ours says.
"""

from pathlib import Path

import numpy as np

FILE = Path(__file__).parents[1] / "data" / "lax_refusals.txt"


def names(jax) -> dict:
    """What the expressions are made of: arrays by the first letters of their dtypes, and all of ``lax``."""
    lax, jnp = jax.lax, jax.numpy

    def array(dtype, low, high):
        return lambda *shape: jnp.asarray(np.linspace(low, high, int(np.prod(shape))).reshape(shape)).astype(dtype)

    found = {name: getattr(lax, name) for name in dir(lax) if not name.startswith("_")}
    return found | {
        "jax": jax, "jnp": jnp, "lax": lax, "linalg": lax.linalg, "np": np,
        "f": array("float32", 0.3, 1.7), "c": array("complex64", 0.3, 1.7), "h": array("bfloat16", 0.3, 1.7),
        "i": array("int32", 0, 1), "u": array("uint8", 0, 5), "b": array("bool", 0, 1),
        "key": lambda *n: jax.random.split(jax.random.key(0), *n) if n else jax.random.key(0),
        "G": lax.GatherDimensionNumbers, "S": lax.ScatterDimensionNumbers, "R": lax.RaggedDotDimensionNumbers,
    }  # fmt: skip


def calls() -> list[tuple[str, str, str]]:
    """Function, what is raised (``-``: nothing), call."""
    found, function = [], ""
    for line in FILE.read_text().splitlines():
        if line.startswith("  "):
            raised, _, call = line.strip().partition(" ")
            found.append((function, raised, call))
        elif line and not line.startswith("#"):
            function = line
    return found
