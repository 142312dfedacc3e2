"""Contractions by a product of the caller's own, as AQT asks for them."""

import numpy as np
import pytest

import catena.numpy as jnp
from catena import lax
from catena.compat.contractions import _default_poly_einsum_handler, _einsum


@pytest.mark.parametrize("subscripts", ["ij,jk->ki", "ij,jk,kl->li", "ij,jk->i", "bij,bjk->bik", "ii,ij->j"])
def test_contractions_in_the_order_found_are_those_of_einsum(subscripts):
    shapes = [{"b": 2, "i": 3, "j": 3, "k": 4, "l": 5}[label] for label in "bijkl"]
    sizes = dict(zip("bijkl", shapes, strict=True))
    rng = np.random.default_rng(0)
    operands = [
        jnp.asarray(rng.integers(-4, 5, [sizes[label] for label in term]).astype("float32"))
        for term in subscripts.partition("->")[0].split(",")
    ]
    left, found = _default_poly_einsum_handler(
        subscripts, *operands, einsum_call=True, use_blas=True, optimize="optimal"
    )
    assert all(any(x is y for y in operands) for x in left)
    contractions = tuple((places, frozenset(labels), text) for places, labels, text, *_ in found)
    assert (_einsum(left, contractions, None, None) == jnp.einsum(subscripts, *operands)).all()


def test_the_product_is_the_callers():
    asked = []

    def product(a, b, numbers, precision=None, preferred_element_type=None):
        asked.append(numbers)
        return 2 * lax.dot_general(a, b, numbers, precision, preferred_element_type)

    x, y = jnp.arange(6.0).reshape(2, 3), jnp.ones((3, 4))
    left, found = _default_poly_einsum_handler("ij,jk", x, y, einsum_call=True)
    assert (_einsum(left, found, None, None, _dot_general=product) == 2 * x @ y).all()
    assert len(asked) == 1
