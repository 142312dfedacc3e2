"""Axes rearranged, reduced and contracted by name."""

import jax
import jax.numpy as jnp
from einops import einsum, rearrange, reduce, repeat


def example():
    @jax.jit
    def step(x):
        patches = rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=4, q=4)
        pooled = reduce(patches, "b n d -> b d", "mean")
        mixed = einsum(patches, repeat(pooled, "b d -> b n d", n=patches.shape[1]), "b n d, b m d -> b n m")
        return x, jnp.stack([patches.sum(), pooled.std(), mixed.mean()])

    return step, jax.random.normal(jax.random.key(0), (8, 32, 32, 3))
