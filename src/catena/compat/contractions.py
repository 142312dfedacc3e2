"""What AQT takes from JAX's private `numpy.einsum`: an order of contractions, and these by a given product.

`aqt.jax.v2.aqt_dot_general.einsum` finds the order by the first function and hands it to the second. Neither is jitted
nor promotes its operands, which is why AQT calls these and not `jnp.einsum`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catena import lax
from catena.core.array import Array
from catena.numpy.einstein import einsum, opt_einsum
from catena.typing import ArrayLike, DTypeLike


def _default_poly_einsum_handler(*args: Any, **options: Any) -> tuple[list, list]:
    """The operands of an `einsum` and its contractions, in opt_einsum's order.

    Arguments:
      args: the subscripts and the operands.
      options: opt_einsum's; ``einsum_call=True`` for contractions, and no description that prints.
    Returns:
      The operands, and for each contraction the places of its operands, the labels that it sums over, and its
      subscripts, among others.
    Raises:
      ValueError: the subscripts do not fit the operands.

    >>> import catena.numpy as jnp
    >>> _, found = _default_poly_einsum_handler("ij,jk", jnp.ones((2, 3)), jnp.ones((3, 4)), einsum_call=True)
    >>> len(found)
    1
    """
    return opt_einsum.contract_path(*args, **options)


def _einsum(
    operands: Sequence[ArrayLike],
    contractions: Sequence[tuple],
    precision: Any,
    preferred_element_type: DTypeLike | None,
    _dot_general: Any = lax.dot_general,
    out_sharding: Any = None,
) -> Array:
    """The contractions that opt_einsum found, one after the other.

    Arguments:
      operands: the arrays.
      contractions: for each the places of its operands, the last first, the labels that it sums over, and its
        subscripts; results go to the end of the operands.
      precision, preferred_element_type, out_sharding: as for ``jnp.einsum``.
      _dot_general: the product of two operands, with the parameters of ``lax.dot_general``.
    Returns:
      The result of the last contraction.
    Raises:
      TypeError, ValueError: an operand does not fit.

    >>> import catena.numpy as jnp
    >>> _einsum([jnp.ones((2, 3)), jnp.ones(3)], [((1, 0), frozenset("j"), "j,ij->i")], None, None)
    Array([3., 3.], dtype=float32)
    """
    operands = list(operands)
    options = {"precision": precision, "preferred_element_type": preferred_element_type, "_dot_general": _dot_general}
    for places, _, subscripts, *_ in contractions:
        chosen = [operands.pop(place) for place in places]
        operands.append(einsum(subscripts, *chosen, **options, out_sharding=out_sharding))
    return operands[-1]
