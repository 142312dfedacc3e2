"""Random programs of whole arrays on random meshes: partitioned = whole, values and gradients.

`python benchmarks/partitioned_programs.py --count N --seed S` makes programs of the operations of `random_programs.py`,
lays their arguments out over a random mesh, partitions them and their gradients, and lists those whose results differ
from the whole program's; `--executor threads` runs a thread for each device, instead of all devices as one program,
`make random-mpi` two processes of four devices each.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("CATENA_NUM_CPU_DEVICES", str(8 // int(os.environ.get("PMI_SIZE", "1"))))
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

import numpy as np  # noqa: E402
from random_programs import OPERATIONS, applied, difference  # noqa: E402

import catena as jax  # noqa: E402
import catena.numpy as jnp  # noqa: E402
from catena.core.jaxpr import eval_jaxpr  # noqa: E402
from catena.parallel.partition import partition  # noqa: E402
from catena.parallel.vectorised import as_whole  # noqa: E402
from catena.sharding import AbstractMesh, Mesh  # noqa: E402
from sharded_programs import in_turns, whole_of  # noqa: E402

MESHES = [(2,), (4,), (8,), (2, 2), (2, 4), (4, 2), (2, 2, 2), (1, 4)]
ULPS = 64  # for each operation: sums are added up in another order, and gradients pass every one twice
LARGEST = 1 << 14


def program(rng, seed: int):
    """A function of two arrays, these, and the names of its operations."""
    names = [str(n) for n in rng.choice(sorted(OPERATIONS), int(rng.integers(1, 9)))]
    shape = tuple(int(n) for n in rng.choice([4, 6, 8, 16, 24], int(rng.integers(1, 4))))
    arguments = [jnp.asarray(rng.normal(size=shape).astype(np.float32)) for _ in range(2)]

    def function(x, y):
        last = applied(names, seed, LARGEST, x, y)[-1]
        return last, jnp.mean(last**2)

    return function, arguments, names


def random_split(rng, mesh, shape: tuple) -> tuple:
    """A split of an array over some axes of a mesh, each of which divides what it splits."""
    split: list = [()] * len(shape)
    for name in rng.permutation(mesh.axis_names):
        axis = int(rng.integers(len(shape) + 1))
        if axis < len(shape):
            ways = int(np.prod([mesh.shape[n] for n in (*split[axis], name)]))
            split[axis] += (str(name),) if shape[axis] % ways == 0 else ()
    return tuple(split)


def check(seed: int, executor: str) -> str:
    """What is wrong with one program, and its gradient."""
    rng = np.random.default_rng(seed)
    sizes = MESHES[rng.integers(len(MESHES))]
    mesh = AbstractMesh(sizes, tuple("abc"[: len(sizes)]))
    function, arguments, names = program(rng, seed)
    gradient = jax.grad(lambda x, y: function(x, y)[1], (0, 1))
    for what, fun in (("values", function), ("gradient", gradient)):
        closed = jax.make_jaxpr(fun)(*arguments)
        splits = tuple(random_split(rng, mesh, x.shape) for x in arguments)
        outs = tuple(random_split(rng, mesh, a.shape) if rng.random() < 0.5 else None for a in closed.out_avals)
        parts = partition(closed, mesh, splits, outs)
        expected = eval_jaxpr(closed.jaxpr, closed.consts, *arguments)
        for got, value in zip(run(parts, arguments, executor), expected, strict=True):
            ulps = difference(got, value) / len(names)
            if ulps > ULPS:
                return f"{what} over {sizes}, {splits} -> {outs}: {ulps:.3g} ulps for each operation"
    return ""


def run(parts, arguments, executor: str) -> list:
    if executor == "vectorised":
        whole = as_whole(parts.params)
        return eval_jaxpr(whole.jaxpr, whole.consts, *arguments)
    mesh = Mesh(np.array(in_turns(parts.mesh.size)).reshape(parts.mesh.axis_sizes), parts.mesh.axis_names)
    if executor == "threads":
        with jax.set_mesh(mesh):
            return parts(*arguments)
    return [whole_of(x) for x in parts._replace(mesh=mesh)(*arguments)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--executor", default="vectorised", choices=("vectorised", "threads", "mpi"))
    options = parser.parse_args()
    if options.executor == "mpi":
        jax.distributed.initialize()
    jax.config.update("jax_executor", options.executor)
    start, wrong = time.perf_counter(), 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            fault = check(seed, options.executor)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is listed, and the others are run)
            fault = f"{type(error).__name__}: {str(error)[:300]}"
        wrong += bool(fault)
        if fault and jax.process_index() == 0:
            print(f"program {seed} ({', '.join(program(np.random.default_rng(seed), seed)[2])}): {fault}", flush=True)
    if jax.process_index() == 0:
        print(f"{options.count} programs in {time.perf_counter() - start:.0f} s: {wrong} wrong")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
