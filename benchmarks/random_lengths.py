"""Random programs at random lengths: what is had from plans of other lengths, beside what is compiled by itself.

`make random-lengths MINUTES=10` writes the programs of `search.py` with small shapes, jits each once, and calls it at
seven lengths. Results must have the bits of the same program compiled without `native.lengths`. A plan that is used
where something was decided otherwise is a wrong number.
"""

import argparse
import importlib
import logging
import os
import random
import sys
import time

import numpy as np
import search

SHAPES = [(10,), (100,), (300,), (7, 12), (32, 64), (300, 3), (16, 16), (4, 8, 8), (3, 5, 7), (2, 8, 8, 3), (64, 33)]
LENGTHS = 7  # of each program
NO_FIT = (TypeError, ValueError, IndexError, ZeroDivisionError)  # a program that does not take another length


def other_shapes(draw: random.Random, shapes: list) -> list:
    """The shapes with another first extent, wherever it is, and sometimes another last one."""
    first, last = shapes[0][0], shapes[0][-1]
    near, any_, even = first + draw.randrange(1, 40), draw.randrange(2, 300), 2 ** draw.randrange(2, 9)
    beside = max(2, first + draw.randrange(-6, 7))  # where numbers of the program meet by chance
    n = draw.choice([near, beside, any_, even, first * draw.randrange(2, 4)])
    m = draw.choice([last, last, last + draw.randrange(1, 20)])
    return [[n if d == first else m if d == last else d for d in shape] for shape in shapes]


def same(a, b) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and (a.tobytes() == b.tobytes() or bool(np.array_equal(a, b, equal_nan=True)))


def is_as_alone(jax, lengths, f, arguments, found) -> bool:
    """Whether results are those of the function compiled for these arguments without plans of other lengths."""
    family_of, lengths.family_of = lengths.family_of, lambda *_: None
    try:
        alone = jax.jit(lambda *xs: f(*xs))(*arguments)
    finally:
        lengths.family_of = family_of
    return all(map(same, jax.tree.leaves(found), jax.tree.leaves(alone)))


def compared(jax, lengths, program: search.Program, draw: random.Random, counts: dict) -> None:
    """Calls one jitted function at several lengths."""
    run = search.WAY[program.way](jax, search.function(jax, program))
    search.precision(jax, program)
    jitted, shapes = jax.jit(run), program.shapes
    for _ in range(LENGTHS):
        given = program._replace(shapes=shapes)
        shapes = other_shapes(draw, program.shapes)
        try:
            arguments = search.arguments(jax, given)
            found = jitted(*arguments)
        except NO_FIT:
            counts["do not fit"] += 1
            continue
        counts["calls"] += 1
        if not is_as_alone(jax, lengths, run, arguments, found):
            counts["wrong"] += 1
            print(f"wrong: seed {program.seed}, {given.shapes}: {program}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    options = parser.parse_args()
    os.environ["CATENA_CACHE"] = "0"
    logging.disable(logging.CRITICAL)
    jax, lengths = importlib.import_module("catena"), importlib.import_module("catena.compiler.native.lengths")
    search.SHAPES[:] = SHAPES
    draw, seed, end = random.Random(options.seed), options.seed, time.monotonic() + 60 * options.minutes
    counts = dict.fromkeys(("programs", "calls", "do not fit", "wrong"), 0)
    while time.monotonic() < end:
        program, seed = search.write(seed), seed + 1
        if program.steps and program.way != "eager":
            counts["programs"] += 1
            compared(jax, lengths, program, draw, counts)
    from_plans = sum(family.found for family in lengths._families.values())
    print(f"{counts}; from plans of other lengths, of the families that are left: {from_plans}")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
