"""Linear solves by factors and by iteration, through operators with structure, and their derivative."""

import jax
import jax.numpy as jnp
import lineax as lx


def example():
    a = jax.random.normal(jax.random.key(0), (50, 50))
    matrix = a @ a.T + 50 * jnp.eye(50)
    positive = lx.positive_semidefinite_tag

    @jax.jit
    def step(b):
        direct = lx.linear_solve(lx.MatrixLinearOperator(matrix, positive), b, lx.Cholesky()).value
        general = lx.linear_solve(lx.MatrixLinearOperator(a), b, lx.QR()).value
        by_steps = lx.FunctionLinearOperator(lambda x: matrix @ x, b, positive)
        iterated = lx.linear_solve(by_steps, b, lx.CG(rtol=1e-5, atol=1e-5)).value
        gradient = jax.grad(lambda b: lx.linear_solve(lx.MatrixLinearOperator(matrix), b).value.sum())(b)
        return b / jnp.linalg.norm(b), jnp.stack([direct.sum(), general.sum() * 0.01, iterated.sum(), gradient.sum()])

    return step, jax.random.normal(jax.random.key(1), (50,))
