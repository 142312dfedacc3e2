"""Heat spreads over a plate: each device of a mesh has a block of it, and sends its neighbours the edges.

The same program on one device, on several virtual ones, as threads, and as processes:

    python examples/stencil.py
    CATENA_NUM_CPU_DEVICES=4 python examples/stencil.py
    CATENA_NUM_CPU_DEVICES=4 CATENA_EXECUTOR=threads python examples/stencil.py
    mpiexec -n 4 python examples/stencil.py

``SIDE`` and ``STEPS`` in the environment make it larger.
"""

import functools
import math
import os
import time

import numpy as np

import catena as jax

jnp, P = jax.numpy, jax.P

SIDE, STEPS, RATE = int(os.environ.get("SIDE", 240)), int(os.environ.get("STEPS", 200)), 0.2


def grid(count):
    """The most square grid of this many devices."""
    rows = max(n for n in range(1, math.isqrt(count) + 1) if count % n == 0)
    return rows, count // rows


def neighbour(x, axis, step):
    """What the neighbour has that stands ``step`` devices before, along an axis of the mesh; zeros outside."""
    size = jax.lax.axis_size(axis)
    return jax.lax.ppermute(x, axis, [(i, i + step) for i in range(size) if 0 <= i + step < size])


def spread(block):
    """A step of the heat equation on the block of one device; the rim of the plate is cold."""
    above, below = neighbour(block[-1:], "rows", 1), neighbour(block[:1], "rows", -1)
    left, right = neighbour(block[:, -1:], "columns", 1), neighbour(block[:, :1], "columns", -1)
    tall = jnp.concatenate([above, block, below])
    wide = jnp.concatenate([left, block, right], axis=1)
    return block + RATE * (tall[:-2] + tall[2:] + wide[:, :-2] + wide[:, 2:] - 4 * block)


def main():
    jax.distributed.initialize()
    mesh = jax.make_mesh(grid(jax.device_count()), ("rows", "columns"), (jax.sharding.AxisType.Auto,) * 2)
    blocks = jax.NamedSharding(mesh, P("rows", "columns"))
    x, y = np.meshgrid(np.linspace(-1, 1, SIDE), np.linspace(-1, 1, SIDE))
    plate = np.exp(-8 * ((x - 0.2) ** 2 + (y + 0.1) ** 2)).astype(np.float32)
    start = jax.make_array_from_callback(plate.shape, blocks, lambda index: plate[index])

    on_blocks = functools.partial(jax.shard_map, mesh=mesh, in_specs=P("rows", "columns"))

    @jax.jit
    @functools.partial(on_blocks, out_specs=P("rows", "columns"))
    def run(block):
        return jax.lax.fori_loop(0, STEPS, lambda i, b: spread(b), block)

    @jax.jit
    @functools.partial(on_blocks, out_specs=P())
    def measure(block):
        axes = ("rows", "columns")
        return jnp.stack([jax.lax.psum(jnp.sum(block), axes), jax.lax.pmax(jnp.max(block), axes)])

    run(start).block_until_ready()  # compiled now
    begin = time.perf_counter()
    plate = run(start).block_until_ready()
    seconds = time.perf_counter() - begin
    heat, hottest = np.asarray(measure(plate)).tolist()
    if jax.process_index() == 0:
        print(f"{jax.device_count()} devices in {jax.process_count()} processes: {seconds / STEPS * 1e6:.0f} us a step")
        print(f"heat {heat:.6g}, hottest {hottest:.6g}")


if __name__ == "__main__":
    main()
