"""How three examples would scale: what they send is counted, how long that takes follows from a model of a network.

`python benchmarks/scaling.py` makes, for 2 to 1024 devices, the program of one device of each example, with as much
work for a device as it has alone (weak scaling), and counts its messages and bytes: equations of a program, not of a
model. The step of one device is timed here, on one thread. `--write` puts the table into `docs/scaling.md`.
"""

import argparse
import functools
import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "scaling.md"
SIDE = 1000
os.environ |= {"SIDE": str(SIDE), "CATENA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
sys.path.insert(0, str(ROOT / "examples"))

import digits  # noqa: E402
import numpy as np  # noqa: E402
import stencil  # noqa: E402
import tensor_parallel  # noqa: E402

import catena as jax  # noqa: E402
from catena.core.jaxpr import subjaxprs  # noqa: E402
from catena.parallel.local_program import local_program  # noqa: E402
from catena.parallel.partition import partition  # noqa: E402

P = jax.P
COUNTS = [2**k for k in range(1, 11)]
LATENCY, BANDWIDTH = 2e-6, 12.5e9  # seconds a message, bytes a second: InfiniBand of 100 Gbit/s, a device a node
BEGIN, END = "<!-- written by benchmarks/scaling.py -->", "<!-- end of what is written -->"


class Message(NamedTuple):
    """A collective of the program of one device: what it is, among how many devices, and the bytes of its operand."""

    kind: str
    devices: int
    bytes: int

    @property
    def seconds(self) -> float:
        """How long it takes, by the better of the algorithms for short and for long messages (Thakur, Rabenseifner and
        Gropp, 2005).
        """
        k, n = self.devices, self.bytes
        rounds, each = math.ceil(math.log2(k)), n / BANDWIDTH
        return {
            "reduce": min(rounds * (LATENCY + each), 2 * (rounds * LATENCY + each * (k - 1) / k)),
            "gather": rounds * LATENCY + each * (k - 1),
            "exchange": min(rounds * (LATENCY + each / 2), (k - 1) * LATENCY + each * (k - 1) / k),
            "scatter_sum": rounds * LATENCY + each * (k - 1) / k,
            "permute": LATENCY + each,
        }[self.kind]

    @property
    def sent(self) -> float:
        """The bytes that a device sends, where devices stand in a ring."""
        k, n = self.devices, self.bytes
        return {"reduce": 2 * n * (k - 1) / k, "gather": n * (k - 1), "permute": n}.get(self.kind, n * (k - 1) / k)


def messages(jaxpr) -> Iterator[Message]:
    """The collectives of the program of one device, those of loops as often as these run."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "communicate" and eqn.params["kind"] != "index":
            aval = eqn.invars[0].aval
            yield Message(eqn.params["kind"], eqn.params["size"], aval.size * aval.dtype.itemsize)
        for inner in subjaxprs(eqn.params):
            yield from list(messages(inner)) * eqn.params.get("length", 1)


def typed(tree):
    """The types of arrays."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype), tree)


def local(closed, mesh) -> list[Message]:
    return list(messages(local_program(closed, mesh.shape_tuple).jaxpr))


# ---- the examples: what they send on so many devices in a step, and a step of one device alone


def data_parallel(count: int) -> list[Message]:
    mesh = jax.sharding.AbstractMesh((count,), ("data",))
    params = digits.init_params()
    args = typed((params, digits.init_adam(params), *batch(count)))
    closed = jax.make_jaxpr(digits.train_step)(*args)
    leaves = jax.tree.leaves(args)
    first = lambda i: ("data",) if i >= len(leaves) - 2 else ()  # noqa: E731  (images and labels)
    splits = tuple((first(i), *[()] * x.ndim)[: x.ndim] for i, x in enumerate(leaves))
    whole = tuple(((),) * a.ndim for a in closed.out_avals)
    found = partition(closed, mesh, splits, whole)
    counted = local(found.jaxpr, mesh)
    told = sum(s.bytes * s.times for s in found.sent)
    if not math.isclose(told, sum(m.sent for m in counted), rel_tol=1e-9):
        raise AssertionError(f"the report tells of {told} bytes, and the program sends {counted}")
    return counted


def batch(count: int) -> tuple:
    images, labels = np.zeros((digits.BATCH * count, 64), np.float32), np.zeros(digits.BATCH * count, np.int32)
    return images, labels


def heat(count: int) -> list[Message]:
    mesh = jax.sharding.AbstractMesh(stencil.grid(count), ("rows", "columns"))
    rows, columns = mesh.axis_sizes
    plate = jax.ShapeDtypeStruct((rows * SIDE, columns * SIDE), np.float32)
    return of_shard_map(stencil.spread, mesh, P("rows", "columns"), P("rows", "columns"), plate)


def transformer(count: int) -> list[Message]:
    mesh = jax.sharding.AbstractMesh((count,), ("model",))
    add = functools.partial(jax.lax.psum, axis_name="model")
    specs = (tensor_parallel.SPECS, P())
    return of_shard_map(lambda w, x: tensor_parallel.step(w, x, add), mesh, specs, specs, *typed(weights(count)))


def weights(count: int) -> tuple:
    """Weights of which each device has eight heads and 256 hidden units; and sequences."""
    rng = np.random.default_rng(0)
    shapes = dict.fromkeys(("query", "key", "value"), (64, 8 * count, 8))
    shapes |= {"out": (8 * count, 8, 64), "up": (64, 256 * count), "down": (256 * count, 64)}
    drawn = {name: (rng.normal(size=s) / 8).astype(np.float32) for name, s in shapes.items()}
    return drawn, rng.normal(size=(4, 32, 64)).astype(np.float32)


def of_shard_map(fun, mesh, in_specs, out_specs, *args) -> list[Message]:
    closed = jax.make_jaxpr(jax.shard_map(fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs))(*args)
    (eqn,) = [e for e in closed.eqns if e.primitive.name == "shard_map"]
    return local(eqn.params["jaxpr"], mesh)


def seconds_of(fun, *args, loops: int = 1) -> float:
    """The time of a call, the best of many."""
    run = jax.jit(fun)
    jax.block_until_ready(run(*args))
    best = math.inf
    for _ in range(30):
        begin = time.perf_counter()
        jax.block_until_ready(run(*args))
        best = min(best, time.perf_counter() - begin)
    return best / loops


def alone() -> dict[str, float]:
    """The seconds of a step of one device with its own work."""
    params = digits.init_params()
    plate = np.zeros((SIDE, SIDE), np.float32)
    pad = lambda x: jax.numpy.pad(x, 1)  # noqa: E731

    def spread(x):
        wide = pad(x)
        return x + 0.2 * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4 * x)

    return {
        "data_parallel": seconds_of(digits.train_step, params, digits.init_adam(params), *batch(1)),
        "stencil": seconds_of(lambda x: jax.lax.fori_loop(0, 20, lambda i, x: spread(x), x), plate, loops=20),
        "tensor_parallel": seconds_of(lambda w, x: tensor_parallel.step(w, x, lambda y: y), *weights(1)),
    }


EXAMPLES = {"data_parallel": data_parallel, "stencil": heat, "tensor_parallel": transformer}


def table() -> list[str]:
    """The lines of the table."""
    lines = [
        "| example | devices | messages | bytes a device sends | ms to send | efficiency |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    times = alone()
    for name, count_messages in EXAMPLES.items():
        work = times[name]
        lines.append(f"| {name}, {work * 1e3:.3g} ms alone | 1 | 0 | 0 | 0 | 100 % |")
        for count in COUNTS:
            found = count_messages(count)
            spent = sum(m.seconds for m in found)
            sent = sum(m.sent for m in found)
            share = work / (work + spent)
            lines.append(f"| | {count} | {len(found)} | {sent:,.0f} | {spent * 1e3:.3f} | {100 * share:.0f} % |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    lines = "\n".join(table())
    if not parser.parse_args().write:
        print(lines)
        return
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{lines}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
