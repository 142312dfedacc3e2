"""Arguments of workloads: random, small of magnitude, the same for both libraries."""

import numpy as np


class Inputs:
    """Arrays of a library, made from one seed."""

    def __init__(self, jax):
        self.asarray, self.rng = jax.numpy.asarray, np.random.default_rng(0)

    def normal(self, *shape, scale=1.0):
        return self.asarray((scale * self.rng.normal(size=shape)).astype(np.float32))

    def uniform(self, *shape, low=0.0, high=1.0):
        return self.asarray(self.rng.uniform(low, high, shape).astype(np.float32))

    def ints(self, high, *shape):
        return self.asarray(self.rng.integers(0, high, shape).astype(np.int32))

    def permutation(self, n):
        return self.asarray(self.rng.permutation(n).astype(np.float32))

    def definite(self, n):
        """A positive definite matrix."""
        a = self.rng.normal(size=(n, n))
        return self.asarray((a @ a.T / n + np.eye(n)).astype(np.float32))
