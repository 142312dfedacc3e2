"""A checkpoint of parameters, saved and restored, and a step of training from what was read."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp


def example():
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (64, 8))
    y = jnp.sin(x @ jnp.ones(8))
    state = {"w": jax.random.normal(keys[1], (8, 32)) / 3, "v": jax.random.normal(keys[2], (32,)) / 6, "step": 0}
    folder = Path(tempfile.mkdtemp())
    checkpointer = ocp.PyTreeCheckpointer()

    def loss(state):
        return jnp.mean((jnp.tanh(x @ state["w"]) @ state["v"] - y) ** 2)

    @jax.jit
    def train(state):
        value, slope = jax.value_and_grad(lambda p: loss(state | p))({"w": state["w"], "v": state["v"]})
        moved = jax.tree.map(lambda p, g: p - 0.1 * g, {"w": state["w"], "v": state["v"]}, slope)
        return moved | {"step": state["step"] + 1}, value

    def step(state):
        checkpointer.save(folder / "state", state, force=True)
        like = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
        restored = checkpointer.restore(
            folder / "state", restore_args=ocp.checkpoint_utils.construct_restore_args(like)
        )
        return train(restored)

    return step, state
