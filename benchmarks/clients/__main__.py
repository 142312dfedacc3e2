# ruff: noqa: E402  (the clock starts before anything is imported)
"""One example, measured in this process: ``python -m clients optax_fit`` prints its figures as JSON.

The library under ``jax`` is whatever this process finds: JAX, or catena by ``python -m catena run``.
"""

import time

STARTED = time.perf_counter()

import importlib
import json
import resource
import sys

STEPS = 10  # whose results are compared


def main(name: str) -> dict:
    module = importlib.import_module(f"clients.{name}")
    import jax
    import numpy as np

    step, state = module.example()
    results = []
    state, value = jax.block_until_ready(step(state))
    first = time.perf_counter() - STARTED
    results.append(np.asarray(value).tolist())
    for _ in range(STEPS - 1):
        state, value = step(state)
        results.append(np.asarray(value).tolist())
    return {
        "library": jax.__name__,
        "results": results,
        "tolerance": getattr(module, "TOLERANCE", 1e-4),
        "first": first,
        "step": least(lambda: jax.block_until_ready(step(state))),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def least(call, seconds: float = 1.0) -> float:
    """Seconds that a call takes, the least of those made in a second."""
    found, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        found = min(found, time.perf_counter() - start)
    return found


if __name__ == "__main__":
    print("\n" + json.dumps(main(sys.argv[1])))
