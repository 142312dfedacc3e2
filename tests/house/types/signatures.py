"""What a type checker has to know of the public functions: it reports nothing here."""

from collections.abc import Callable
from typing import assert_type

import catena as jax
import catena.numpy as jnp
from catena import lax

x = jnp.ones((3, 3))
key = jax.random.key(0)


def f(a: jax.Array, n: int = 2) -> jax.Array:
    return a * n


@jax.custom_jvp
def g(a: jax.Array) -> jax.Array:
    return jnp.sin(a)


@jax.checkpoint
def h(a: jax.Array, flag: bool) -> tuple[jax.Array, int]:
    return a, int(flag)


class Model:
    @jax.jit
    def __call__(self, a: jax.Array) -> jax.Array:
        return a


# arrays: operators, methods, properties
assert_type(x + 1, jax.Array)
assert_type(1.0 - x, jax.Array)
assert_type(x @ x, jax.Array)
assert_type(x > 0, jax.Array)
assert_type(-x, jax.Array)
assert_type(x[0, ..., None], jax.Array)
assert_type(x.sum(axis=0), jax.Array)
assert_type(x.astype(jnp.bfloat16), jax.Array)
assert_type(x.T.reshape(9), jax.Array)
assert_type(x.at[0].set(1.0), jax.Array)
assert_type(float(x[0, 0]), float)
assert_type([row for row in x], list[jax.Array])
assert_type(x.is_deleted(), bool)

# functions of arrays
assert_type(jnp.sum(x), jax.Array)
assert_type(jnp.mean(x, axis=0), jax.Array)
assert_type(jnp.sin(x), jax.Array)
assert_type(jnp.fmax(x1=x, x2=1.0), jax.Array)
assert_type(jnp.where(x > 0, x, 0), jax.Array)
assert_type(jnp.where(x > 0), tuple[jax.Array, ...])
assert_type(jnp.linalg.norm(x), jax.Array)
assert_type(jax.random.normal(key, (2,)), jax.Array)
assert_type(jax.random.split(key, 3), jax.Array)

# transformations keep signatures
assert_type(jax.jit(f)(x, n=3), jax.Array)
assert_type(jax.jit(static_argnums=1)(f)(x, 3), jax.Array)
assert_type(jax.vmap(f)(x, 2), jax.Array)
gradient: Callable[[jax.Array], jax.Array] = jax.grad(f)
assert_type(h(x, True), tuple[jax.Array, int])
assert_type(g(x), jax.Array)
assert_type(jax.jit(g)(x), jax.Array)
jax.jit(f).lower(x).compile().as_text()
jax.jit(f).clear_cache()
Model()(x)
lax.cond(x[0, 0] > 0, f, f, x)

jax.nn.rellu(x)  # mistake: no such name
jax.vmapp(f)  # mistake: no such name
x[0] = 1.0  # mistake: arrays are immutable
