"""The digits of `digits.py`, learned by many devices: each has some of the images of a batch, and all the parameters.

A jitted step of whole arrays, as on one device; only the arrays say where they lie, and what is to be sent follows from
that. Each process makes its own images of a batch only. Run it as `stencil.py` says.
"""

import time

import digits
import numpy as np

import catena as jax

jnp, P = jax.numpy, jax.P

EPOCHS = 8


def main():
    jax.distributed.initialize()
    mesh = jax.make_mesh((jax.device_count(),), ("data",), (jax.sharding.AxisType.Auto,))
    rows, everywhere = jax.NamedSharding(mesh, P("data")), jax.NamedSharding(mesh, P())
    train, (images, labels) = digits.load_data()
    params = jax.device_put(digits.init_params(), everywhere)
    state = jax.device_put(digits.init_adam(params), everywhere)
    size = digits.BATCH // jax.process_count()
    own = slice(jax.process_index() * size, (jax.process_index() + 1) * size)
    rng, steps, seconds = np.random.default_rng(1), 0, 0.0
    for epoch in range(EPOCHS):
        begin, values = time.perf_counter(), []
        for part in digits.batches(*train, rng, own):
            batch = jax.make_array_from_process_local_data(rows, part)
            params, state, value = digits.train_step(params, state, *batch)
            values.append(float(value))
        if epoch:  # the first compiles
            steps, seconds = steps + len(values), seconds + time.perf_counter() - begin
    accuracy = float(digits.accuracy(params, *jax.device_put((images, labels), everywhere)))
    if jax.process_index() == 0:
        print(f"{jax.device_count()} devices in {jax.process_count()} processes: {seconds / steps * 1e6:.0f} us a step")
        print(f"loss {np.mean(values):.4f}, held-out accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
