"""Elementwise primitives take operands with axes of size 1: so do the rules of their derivatives."""

import numpy as np

import catena as jax
import catena.scipy.special  # whose primitives are elementwise too
from catena.core.primitive import registry
from catena.core.value_checks import is_elementwise

WHOLE = (3, 4)
SHAPES = [(3, 1), (1, 4), (3, 4), (1, 1)]
ONE_TYPE = {"add_any", "clamp"}  # which ask for operands of one shape
OPERANDS = [np.linspace(0.3, 0.9, np.prod(s), dtype=np.float32).reshape(s) for s in SHAPES]


def spread(xs):
    return [np.broadcast_to(x, WHOLE) for x in xs]


def operands(primitive):
    """As many operands as the primitive takes, if that is more than one; None for those that take no floats."""
    for count in (2, 3, 4):
        try:
            out = jax.make_jaxpr(primitive.bind)(*spread(OPERANDS[:count])).out_avals[0]
        except (TypeError, ValueError):
            continue
        return OPERANDS[:count] if np.issubdtype(out.dtype, np.floating) else None
    return None


def test_tangents_are_those_of_operands_of_one_shape():
    tried = [n for n, p in list(registry.items()) if is_elementwise(p) and n not in ONE_TYPE and operands(p)]
    assert {"pow", "atan2", "max", "log_gamma_density"} <= {*tried}
    for name in tried:
        check(name)


def check(name):
    primitive, xs = registry[name], operands(registry[name])
    for i, x in enumerate(xs):
        directions = [np.ones_like(y) if k == i else np.zeros_like(y) for k, y in enumerate(xs)]
        try:
            expected = jax.jvp(primitive.bind, spread(xs), spread(directions))
        except (NotImplementedError, TypeError):
            continue  # it has no derivative by this operand
        got = jax.jvp(primitive.bind, xs, directions)
        np.testing.assert_allclose(got, expected, rtol=1e-3, err_msg=name)
        gradient = jax.grad(lambda y, i=i: primitive.bind(*xs[:i], y, *xs[i + 1 :]).sum())(x)
        assert gradient.shape == x.shape, name
