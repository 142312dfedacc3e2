"""A program of a user, with two mistakes in it, for a type checker: it has to report these two and nothing else."""

import functools

import catena as jax
import catena.numpy as jnp
from catena import lax

Params = dict[str, jax.Array]


def init(key: jax.Array, sizes: tuple[int, int]) -> Params:
    key_w, key_b = jax.random.split(key)
    w = jax.random.normal(key_w, sizes) * 0.1
    return {"w": w, "b": jnp.zeros(sizes[1], dtype=jnp.float32) + jax.random.uniform(key_b)}


def predict(params: Params, x: jax.Array) -> jax.Array:
    h = x @ params["w"] + params["b"]
    return jnp.tanh(h) / (1 + jnp.exp(-h)).sum(axis=-1, keepdims=True)


def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    error = (predict(params, x) - y) ** 2
    return jnp.mean(error[..., 0]) + jnp.where(error > 0, error, 0.0).max()


@jax.jit
def step(params: Params, x: jax.Array, y: jax.Array) -> Params:
    value, grads = jax.value_and_grad(loss)(params, x, y)
    jax.debug.print("{}", value)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


@functools.partial(jax.jit, static_argnums=1)
def power(x: jax.Array, n: int) -> jax.Array:
    return lax.fori_loop(0, n, lambda i, acc: acc * x, jnp.ones_like(x))


@jax.jit(donate_argnums=0)
def update(x: jax.Array, value: float) -> jax.Array:
    return x.at[0].set(value).at[1:].add(1).T.reshape(-1)


def main(steps: int) -> float:
    params = init(jax.random.key(0), (3, 2))
    x, y = jnp.arange(12.0).reshape(4, 3), jnp.ones((4, 2), jnp.float32)
    for _ in range(steps):
        params = step(params, x, y)
    print(step.lower(params, x, y).as_text(), power(x, 3).shape, float(update(x[0], 2.0)[0]))
    slopes = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, x, y)
    print(jax.make_jaxpr(loss)(params, x, y), slopes, len(x), x.ndim, x.dtype, [row.mean() for row in x])
    total, _ = lax.scan(lambda c, row: (c + row, None), jnp.zeros(3), x)
    power(x, "three")  # mistake 1: a string for an integer
    print(x.summ())  # mistake 2: no such method
    return float(total.sum() + (x > 1).astype(int).any() + abs(-x)[0, 0] + 2 * jnp.linalg.norm(x))


if __name__ == "__main__":
    main(10)
