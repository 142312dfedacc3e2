"""Elementwise primitives take operands with axes of size 1: so do the rules of their derivatives."""

import numpy as np
import pytest

import catena as jax
import catena.scipy.special  # whose primitives are elementwise too
from catena.core.primitive import registry

SHAPES = [(3, 1), (1, 2), (3, 2)]
OPERANDS = [np.linspace(0.3, 0.9, np.prod(s), dtype=np.float32).reshape(s) for s in SHAPES]
COUNTS = {
    **dict.fromkeys("add sub mul div rem pow max min atan2 igamma igammac zeta polygamma".split(), 2),
    **dict.fromkeys(
        "log_gamma_density log_igamma log_igammac log_quotient digamma_difference beta log_beta owens_t poch binomial expn".split(),
        2,
    ),
    **dict.fromkeys("regularized_incomplete_beta log_betainc log_betaincc hyp1f1".split(), 3),
}


def spread(xs):
    return [np.broadcast_to(x, (3, 2)) for x in xs]


@pytest.mark.share(3)
@pytest.mark.parametrize("name", [name for name in COUNTS if name in registry])
def test_tangents_are_those_of_operands_of_one_shape(name):
    primitive, xs = registry[name], OPERANDS[: COUNTS[name]]
    for i in range(len(xs)):
        directions = [np.ones_like(y) if k == i else np.zeros_like(y) for k, y in enumerate(xs)]
        try:
            expected = jax.jvp(primitive.bind, spread(xs), spread(directions))
        except ValueError as error:
            assert "not supported" in str(error) or "not defined" in str(error)  # a derivative by this operand
            continue
        np.testing.assert_allclose(jax.jvp(primitive.bind, xs, directions), expected, rtol=1e-3)


def test_the_gradient_of_a_density_by_its_rate():
    counts, rate = np.array([1, 2, 4])[:, None], np.linspace(0.5, 3, 9, dtype=np.float32)
    got = jax.grad(lambda a: jax.scipy.stats.poisson.logpmf(counts, a).sum())(rate)
    np.testing.assert_allclose(got, (counts / rate - 1).sum(0), rtol=1e-5)
