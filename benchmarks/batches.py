"""A function at one batch size after another: what the first call at each takes, beside JAX.

`make bench-batches` runs this. Kernels do not depend on the extent of their outermost loop, so the first call at
another batch size links those that the first one compiled (`docs/compiler.md`); JAX compiles anew. Disk caches are off,
and every round forgets the programs of the round before. Both must give the same numbers.
"""

import functools
import gc
import importlib
import os
import sys

from side_by_side import OURS, THEIRS, Worker, alternate, best, check_equal, options_of, serve, show
from workloads.inputs import Inputs

CALLS = ("first", "second", "third")
NO_DISK_CACHE = {"JAX_ENABLE_COMPILATION_CACHE": "0", "CATENA_CACHE": "0"}
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}

# ------------------------------------------------------------------------------ in the worker process


def functions(jax):
    """Name -> (function, its arguments for a batch size, batch sizes)."""
    jnp, make = jax.numpy, Inputs(jax)

    def log_softmax(x):
        x = x - jnp.max(x, -1, keepdims=True)
        return x - jnp.log(jnp.sum(jnp.exp(x), -1, keepdims=True))

    def cross_entropy(x, labels):
        return -jnp.mean(jnp.take_along_axis(log_softmax(x), labels[:, None], -1))

    def mlp_loss(layers, x, labels):
        for w, b in layers[:-1]:
            x = jnp.tanh(x @ w + b)
        w, b = layers[-1]
        return cross_entropy(x @ w + b, labels)

    def step(layers, x, labels):
        value, slopes = jax.value_and_grad(mlp_loss)(layers, x, labels)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, layers, slopes)

    def layer_norm(x, scale, bias):
        centred = x - jnp.mean(x, -1, keepdims=True)
        return centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5) * scale + bias

    def chain(x):
        for k in range(100):
            x = jnp.sin(x) * (1 + 0.001 * k) + 0.5
        return x

    sizes = [64, 128, 128, 10]
    layers = [(make.normal(m, n, scale=m**-0.5), make.normal(n)) for m, n in zip(sizes, sizes[1:])]
    scale, bias = make.normal(768), make.normal(768)
    slopes = jax.grad(lambda *args: jnp.sum(jnp.sin(layer_norm(*args))), (0, 1, 2))
    return {
        "MLP training step": (step, lambda n: (layers, make.normal(n, 64), make.ints(10, n)), (128, 192, 256)),
        "softmax cross entropy and gradient": (
            jax.value_and_grad(cross_entropy),
            lambda n: (make.normal(n, 1000), make.ints(1000, n)),
            (500, 700, 900),
        ),
        "layer norm gradient": (slopes, lambda n: (make.normal(n, 768), scale, bias), (512, 700, 1000)),
        "chain of 300 operations": (chain, lambda n: (make.normal(n),), (1000, 1500, 2001)),
    }


def calls(jax):
    """What the worker is asked to time: the call at each size in its turn, and to forget what is compiled."""
    made = functions(jax)
    jitted, arguments = {}, {}
    jax.jit(lambda x: x + 1)(1.0)  # loads the compiler

    def forget():
        jitted.clear()
        gc.collect()
        for name, (f, make, sizes) in made.items():
            jitted[name] = jax.jit(lambda *args, f=f: f(*args))
            arguments[name] = arguments.get(name) or [make(n) for n in sizes]
        return jax.numpy.zeros(())

    def call(name, k):
        return jitted[name](*arguments[name][k])

    timed = {f"{name}, {CALLS[k]}": functools.partial(call, name, k) for name in made for k in range(len(CALLS))}
    return {"forget": forget, **timed}


# ------------------------------------------------------------------------------ in the parent process


def measure(workers, name, rounds):
    """The least seconds of each call, by library."""
    times = {library: {} for library in workers}
    for _ in range(rounds):
        for worker in workers.values():
            worker.ask(workload="forget", cold=True)
        for k in CALLS:
            asks = [functools.partial(w.ask, workload=f"{name}, {k}", cold=True) for w in workers.values()]
            answers = alternate(1, *asks)
            check_equal(name, *(a[0]["result"] for a in answers), **TOLERANCE)
            for library, answer in zip(workers, answers, strict=True):
                times[library].setdefault(k, []).extend(answer)
    return {library: [best(found[k]) for k in CALLS] for library, found in times.items()}


def main():
    options = options_of(__doc__.splitlines()[0], rounds=3, seconds=1.0).parse_args()
    if options.serve:
        serve(options.serve, calls)
        return
    os.environ |= NO_DISK_CACHE
    pythons = {OURS: sys.executable, THEIRS: options.jax_python}
    workers = {library: Worker(python, __file__, library) for library, python in pythons.items()}
    for name in functions(importlib.import_module(OURS)):
        if options.only in name:
            times = measure(workers, name, options.rounds)
            ratios = [theirs / ours for ours, theirs in zip(times[OURS], times[THEIRS], strict=True)]
            print(name)
            for library, seconds in times.items():
                print(f"  {library:8}", *(f"{k} {show(s):9}" for k, s in zip(CALLS, seconds, strict=True)))
            print("  ratio   ", *(f"{k} {r:<6.1f}   " for k, r in zip(CALLS, ratios, strict=True)))
    for worker in workers.values():
        worker.close()


if __name__ == "__main__":
    main()
