"""A block of a transformer whose weights are shared out: each device has some of the heads and hidden units.

Attention heads and the columns of the first product of the network stand on the devices of a mesh; what they give is
added up over it, twice in a block (Shoeybi et al., 2019: Megatron-LM). Run it as `stencil.py` says.
"""

import functools
import time

import numpy as np

import catena as jax

jnp, P = jax.numpy, jax.P

BATCH, LENGTH, WIDTH, HEADS, HIDDEN, STEPS = 4, 32, 64, 8, 256, 5

# How the weights lie: by heads, by hidden units, or whole on every device.
SPECS = {
    "query": P(None, "model"),
    "key": P(None, "model"),
    "value": P(None, "model"),
    "out": P("model"),
    "up": P(None, "model"),
    "down": P("model"),
}


def init():
    rng = np.random.default_rng(0)
    shapes = dict.fromkeys(("query", "key", "value"), (WIDTH, HEADS, WIDTH // HEADS))
    shapes |= {"out": (HEADS, WIDTH // HEADS, WIDTH), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
    return {name: (rng.normal(size=s) / np.sqrt(WIDTH)).astype(np.float32) for name, s in shapes.items()}


def normalised(x):
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-5)


def block(w, x, add):
    """The block, for the heads and hidden units that ``w`` has; ``add`` adds up what all devices give."""
    y = normalised(x)
    q, k, v = (jnp.einsum("blw,whd->bhld", y, w[name]) for name in ("query", "key", "value"))
    weights = jax.nn.softmax(q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1]))
    x = x + add(jnp.einsum("bhld,hdw->blw", weights @ v, w["out"]))
    return x + add(jax.nn.gelu(normalised(x) @ w["up"]) @ w["down"])


def loss(w, x, add):
    return jnp.mean((block(w, x, add) - jnp.roll(x, 1, axis=1)) ** 2)


def step(w, x, add):
    """A step of gradient descent."""
    value, grads = jax.value_and_grad(loss)(w, x, add)
    return jax.tree.map(lambda p, g: p - 0.5 * g, w, grads), value


def main():
    jax.distributed.initialize()
    mesh = jax.make_mesh((jax.device_count(),), ("model",), (jax.sharding.AxisType.Auto,))
    weights = init()
    x = np.random.default_rng(1).normal(size=(BATCH, LENGTH, WIDTH)).astype(np.float32)

    add = functools.partial(jax.lax.psum, axis_name="model")
    parts = jax.shard_map(lambda w, x: step(w, x, add), mesh=mesh, in_specs=(SPECS, P()), out_specs=(SPECS, P()))
    run = jax.jit(parts)
    w = {name: jax.device_put(p, jax.NamedSharding(mesh, SPECS[name])) for name, p in weights.items()}
    everywhere = jax.device_put(x, jax.NamedSharding(mesh, P()))
    run(w, everywhere)[1].block_until_ready()  # compiled now
    values, seconds = [], []
    for _ in range(STEPS):
        begin = time.perf_counter()
        w, value = run(w, everywhere)
        values.append(float(value))
        seconds.append(time.perf_counter() - begin)

    alone = weights  # the same with all weights in one place
    whole = jax.jit(lambda w, x: step(w, x, lambda y: y))
    for value in values:
        alone, wanted = whole(alone, x)
        assert np.isclose(value, wanted, rtol=1e-4), (value, wanted)
    if jax.process_index() == 0:
        print(f"{jax.device_count()} devices in {jax.process_count()} processes: {min(seconds) * 1e3:.1f} ms a step")
        print(f"losses {', '.join(f'{v:.5f}' for v in values)}, as on one device")


if __name__ == "__main__":
    main()
