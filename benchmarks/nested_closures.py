"""Transformations within transformations, each body closing over the tracers of those around it, beside JAX.

`make nested-closures` nests the wrappers below two deep:
``outer(lambda x: c * inner(lambda x: sin(d * x) + d)(x) + x)``, where `c` and `d` are arguments of the whole program
and so tracers of whatever transforms it (`modes`), from several levels. A wrapper leaves its function's value and
derivatives as they are, so mathematics says what each program gives: what the bare function gives in the same mode.
What raises, or differs from that, is listed beside what JAX does; where both refuse nothing is said.
"""

import argparse
import functools
import importlib
import json
import subprocess
import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
X, C, D = np.array([0.3, -0.7, 1.1]), np.array([0.5, 1.5, -0.8]), np.array(0.9)
RTOL = 1e-9


# ----------------------------------------------------------------------------- what wraps a function of one array


def wrappers(jax) -> dict:
    """Functions from a function of `x`, an array, to one of the same value and derivatives, by name."""
    jnp, lax = jax.numpy, jax.lax

    def custom_jvp(f):
        g = jax.custom_jvp(f)
        g.defjvp(lambda primals, tangents: jax.jvp(f, primals, tangents))
        return g

    def custom_vjp(f):
        g = jax.custom_vjp(f)
        g.defvjp(lambda x: jax.vjp(f, x), lambda pull, ct: pull(ct))
        return g

    def custom_vjp_of_residuals(f):
        g = jax.custom_vjp(f)
        g.defvjp(lambda x: (f(x), x), lambda x, ct: jax.vjp(f, x)[1](ct))
        return g

    def custom_gradient(f):
        return jax.custom_gradient(lambda x: jax.vjp(f, x))

    def custom_vmap(f):
        g = jax.custom_batching.custom_vmap(f)

        @g.def_vmap
        def rule(size, batched, x):
            return (jax.vmap(f)(x), True) if batched[0] else (f(x), False)

        return g

    def sequential_vmap(f):
        return jax.custom_batching.sequential_vmap(f)

    def scan(f):
        def run(x):
            return lax.scan(lambda carry, s: (carry, f(carry) * s), x, jnp.ones(2))[1][1]

        return run

    def scan_of_carry(f):
        def run(x):
            return lax.scan(
                lambda carry, first: (jnp.where(first, f(carry), carry), None), x, jnp.array([True, False])
            )[0]

        return run

    def while_loop(f):
        def run(x):
            return lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]

        return run

    def fori_loop(f):
        return lambda x: lax.fori_loop(0, 1, lambda i, y: f(y), x)

    def cond(f):
        return lambda x: lax.cond(x.sum() > -100, f, lambda x: x, x)

    def cond_of_closures(f):
        return lambda x: lax.cond(x.sum() > -100, lambda: f(x), lambda: x)

    def switch(f):
        return lambda x: lax.switch((x.sum() > -100).astype(int), [lambda x: x, f], x)

    def mapped(f):
        return lambda x: lax.map(f, jnp.stack([x, x]))[1]

    def mapped_in_batches(f):
        return lambda x: lax.map(f, jnp.stack([x, x, x]), batch_size=2)[2]

    def vmap(f):
        return lambda x: jax.vmap(f)(jnp.stack([x, x]))[0]

    def vmap_with_axis_name(f):
        return lambda x: jax.vmap(lambda x: lax.pmean(f(x), "i"), axis_name="i")(jnp.stack([x, x]))[0]

    def vmap_of_nothing_mapped(f):
        return lambda x: jax.vmap(lambda i: f(x))(jnp.arange(2))[1]

    def jvp_primal(f):
        return lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[0]

    def linearize(f):
        return lambda x: jax.linearize(f, x)[0]

    def vjp_primal(f):
        return lambda x: jax.vjp(f, x)[0]

    def has_aux(f):
        return lambda x: jax.value_and_grad(lambda x: (f(x).sum(), f(x)), has_aux=True)(x)[0][1]

    def transpose_of_linear(f):  # of multiplication by f(x), applied to ones
        return lambda x: jax.linear_transpose(lambda t: t * f(x), x)(jnp.ones_like(x))[0]

    def gradient(f):  # of t . f(x) by t
        return lambda x: jax.grad(lambda t: (t * f(x)).sum())(jnp.zeros_like(x))

    def forward_jacobian(f):
        return lambda x: jnp.diagonal(jax.jacfwd(lambda t: t * f(x))(x))

    def closure_convert(f):
        def run(x):
            converted, constants = jax.closure_convert(f, x)
            return converted(x, *constants)

        return run

    def custom_linear_solve(f):
        return lambda x: lax.custom_linear_solve(
            lambda y: 2.0 * y, 2.0 * f(x), lambda _, b: b / 2.0, lambda _, b: b / 2.0
        )

    def custom_root(f):
        return lambda x: lax.custom_root(
            lambda y: y - f(x), jnp.zeros_like(x), lambda g, y: y - g(y), lambda g, y: y / g(1.0)
        )

    def associative_scan(f):
        return lambda x: lax.associative_scan(lambda a, b: b + 0.0 * a, jnp.stack([x, f(x)]))[1]

    def shard_map(f):
        mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:1])
        spec = jax.sharding.PartitionSpec()
        return jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)

    def eval_jaxpr(f):
        def run(x):
            closed = jax.make_jaxpr(f)(x)
            return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]

        return run

    def reference(f):
        def run(x):
            ref = jax.new_ref(jnp.zeros_like(x))
            ref[...] = f(x)
            return ref[...]

        return run

    return {
        "jit": jax.jit,
        "inlined jit": functools.partial(jax.jit, inline=True),
        "checkpoint": jax.checkpoint,
        "checkpoint with a policy": functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable),
        "named_call": functools.partial(jax.named_call, name="name"),
        **{
            f.__name__.replace("_", " "): f
            for f in (
                *(custom_jvp, custom_vjp, custom_vjp_of_residuals, custom_gradient, custom_vmap, sequential_vmap),
                *(
                    scan,
                    scan_of_carry,
                    while_loop,
                    fori_loop,
                    cond,
                    cond_of_closures,
                    switch,
                    mapped,
                    mapped_in_batches,
                ),
                *(vmap, vmap_with_axis_name, vmap_of_nothing_mapped, jvp_primal, linearize, vjp_primal, has_aux),
                *(transpose_of_linear, gradient, forward_jacobian, closure_convert, custom_linear_solve, custom_root),
                *(associative_scan, shard_map, eval_jaxpr, reference),
            )
        },
    }


# ----------------------------------------------------------------------------- what transforms a program of x, c and d


def modes(jax) -> dict:
    """Functions from a program, of `x`, `c` and `d`, to its results in one mode: arrays, in a tree."""
    jnp = jax.numpy

    def total(program):
        return lambda *args: (program(*args) * jnp.array([1.0, 2.0, 3.0])).sum()

    def summed(gradients):
        return lambda *args: sum(g.sum() for g in gradients(*args))

    def rows(*args):
        return tuple(jnp.stack([a, a * 0.5]) for a in args)

    every = (0, 1, 2)
    return {
        "eager": lambda p: p(X, C, D),
        "jit": lambda p: jax.jit(p)(X, C, D),
        "grad": lambda p: jax.grad(total(p), every)(X, C, D),
        "jit grad": lambda p: jax.jit(jax.grad(total(p), every))(X, C, D),
        "grad jit": lambda p: jax.grad(jax.jit(total(p)), every)(X, C, D),
        "jvp": lambda p: jax.jvp(p, (X, C, D), (X, D * C, D)),
        "jvp by constants": lambda p: jax.jvp(lambda c, d: p(X, c, d), (C, D), (C, D)),
        "vmap": lambda p: jax.vmap(p)(*rows(X, C, D)),
        "vmap of constants": lambda p: jax.vmap(p, (None, 0, None))(X, rows(C)[0], D),
        "jit vmap grad": lambda p: jax.jit(jax.vmap(jax.grad(total(p), every)))(*rows(X, C, D)),
        "linearize": lambda p: jax.linearize(p, X, C, D)[1](X, D * C, D),
        "grad of grad": lambda p: jax.grad(summed(jax.grad(total(p), every)), every)(X, C, D),
        "jvp of grad": lambda p: jax.jvp(jax.grad(total(p), every), (X, C, D), (X, D * C, D)),
    }


def program(jnp, outer, inner):
    """The program of `x`, `c` and `d`: the outer wrapper's body closes over `c`, the inner one's over `d` and `c`."""
    return lambda x, c, d: outer(lambda x: c * inner(lambda x: jnp.sin(d * x) + d * c)(x) + x)(x)


def run(library: str, cases: list) -> list:
    """For each case, names of outer and inner wrapper and mode: the results, as lists, or the type of the error."""
    jax = importlib.import_module(library)
    importlib.import_module(f"{library}.custom_batching")
    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    by_name, by_mode = wrappers(jax), modes(jax)
    results = []
    for outer, inner, mode in cases:
        try:
            out = by_mode[mode](program(jax.numpy, by_name[outer], by_name[inner]))
            results.append([np.asarray(leaf).tolist() for leaf in jax.tree.leaves(out)])
        except Exception as error:  # whatever it is, it is the answer that is compared
            results.append(f"{type(error).__name__}: {str(error)[:300]}")
    return results


def expected(library: str) -> dict:
    """What the bare function gives, by mode."""
    jax = importlib.import_module(library)
    jax.config.update("jax_enable_x64", True)
    bare = program(jax.numpy, lambda f: f, lambda f: f)
    return {mode: [np.asarray(leaf) for leaf in jax.tree.leaves(of(bare))] for mode, of in modes(jax).items()}


def agrees(result, value: list) -> bool:
    return not isinstance(result, str) and len(result) == len(value) and all(
        np.shape(a) == b.shape and np.allclose(a, b, rtol=RTOL, atol=RTOL) for a, b in zip(result, value, strict=True)
    )  # fmt: skip


def theirs(python: str, cases: list) -> list:
    """The results of another library in a process of its own."""
    command = [python, __file__, "--worker", "jax"]
    answer = subprocess.run(
        command, input=json.dumps(cases), capture_output=True, text=True, env={"JAX_PLATFORMS": "cpu"}
    )
    if answer.returncode:
        raise RuntimeError(answer.stderr)
    return json.loads(answer.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", help="a Python that has JAX, asked about what differs")
    parser.add_argument("--only", default="", help="only cases whose 'outer / inner / mode' has this text")
    parser.add_argument("--every", type=int, default=1, help="every k-th case")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(run(options.worker, json.load(sys.stdin))))
        return
    jax = importlib.import_module("catena")
    names = list(wrappers(jax))
    cases = [case for case in product(names, names, modes(jax)) if options.only in " / ".join(case)][:: options.every]
    value = expected("catena")
    results = run("catena", cases)
    odd = [(case, got) for case, got in zip(cases, results, strict=True) if not agrees(got, value[case[2]])]
    asked = theirs(options.jax_python, [case for case, _ in odd]) if options.jax_python and odd else [None] * len(odd)
    count = 0
    for (case, got), other in zip(odd, asked, strict=True):
        if isinstance(got, str) and isinstance(other, str):  # refused by both
            continue
        count += 1
        right = "is right" if other is not None and agrees(other, value[case[2]]) else str(other)[:150]
        print(f"{' / '.join(case)}\n    ours: {str(got)[:250]}\n    JAX {right}")
    print(f"{len(cases)} programs, {len(odd)} not as the bare function, {count} of them otherwise than JAX")


if __name__ == "__main__":
    main()
