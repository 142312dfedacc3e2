"""Entropic optimal transport between two clouds of points, and points that go down its gradient."""

import jax
from ott.geometry import pointcloud
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn


def example():
    x, y = jax.random.normal(jax.random.key(0), (60, 2)), jax.random.normal(jax.random.key(1), (80, 2)) + 1

    def cost(x):
        geometry = pointcloud.PointCloud(x, y, epsilon=0.1)
        return sinkhorn.Sinkhorn()(linear_problem.LinearProblem(geometry)).reg_ot_cost

    @jax.jit
    def step(x):
        value, slope = jax.value_and_grad(cost)(x)
        return x - 0.5 * slope, value

    return step, x
