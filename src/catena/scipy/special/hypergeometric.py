"""Hypergeometric functions, with derivatives by all arguments."""

from __future__ import annotations

from catena.core.array import Array
from catena.scipy.special.arguments import numbers, real, strong
from catena.scipy.special.primitives import hyp1f1_p, hyp2f1_p
from catena.typing import ArrayLike


@numbers
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function.

    Source: Pearson, Olver and Porter, "Numerical methods for the computation of the confluent and Gauss hypergeometric
    functions" (2017).

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.hyp1f1(1.0, 2.0, jnp.array([0.0, 1.0, -50.0]))
    Array([1.       , 1.7182819, 0.02     ], dtype=float32)
    """
    return strong(hyp1f1_p.bind(*real("hyp1f1", a, b, x)))


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function.

    Arguments:
      a, b, c: the parameters, numbers of shapes that broadcast.
      x: numbers, of a shape that broadcasts with theirs.
    Returns:
      An array of the float dtype that the arguments promote to. Beyond 1, polynomials (where ``a`` or ``b`` is an
      integer that is not positive) have values, others are infinite.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or is complex.
      ValueError: shapes do not broadcast.

    Source: as for `hyp1f1`; NIST DLMF 15.8.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.hyp2f1(1.0, 1.0, 2.0, jnp.array([0.5, -1000.0]))
    Array([1.3862944 , 0.00690875], dtype=float32)
    """
    return strong(hyp2f1_p.bind(*real("hyp2f1", a, b, c, x, error=TypeError)))
