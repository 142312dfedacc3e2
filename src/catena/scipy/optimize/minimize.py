"""``minimize``: what it takes, and the methods it chooses from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.core.named import NamedTuple
from catena.numpy.boundary import as_array_argument
from catena.scipy.optimize.bfgs import bfgs, lbfgs
from catena.transform.grad import value_and_grad
from catena.typing import ArrayLike

_LBFGS = "l-bfgs-experimental-do-not-rely-on-this"
_METHODS = {"bfgs": bfgs, _LBFGS: lbfgs}
_TOLERANCES = {"bfgs": ("gtol",), _LBFGS: ("gtol", "ftol")}  # what ``tol`` sets


class OptimizeResults(NamedTuple):
    """What ``minimize`` returns.

    ``x`` is the solution, with the value ``fun`` and the gradient ``jac`` there and an approximate inverse of the
    Hessian ``hess_inv`` (None for L-BFGS); ``success`` says whether the gradient is small, and ``status`` why the
    method stopped: 0 for that, 1 after the greatest number of iterations, 2 and 3 (L-BFGS) after that of evaluations
    and of gradients, 3 (BFGS) where the interval that a line search has to look through is too small for floats, 4
    (L-BFGS) where the value hardly changes, 5 where a line search found no step. ``nfev`` and ``njev`` count
    evaluations of the function and its gradient, ``nit`` iterations.
    """

    x: Array
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array


def minimize(
    fun: Callable,
    x0: ArrayLike,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """The point near ``x0`` where a function is least.

    Arguments:
      fun: ``fun(x, *args)``, a function of an array of the shape of ``x0`` to a scalar that can be differentiated.
      x0: where to begin, ``(n,)``, floats or complex numbers.
      args: further arguments of ``fun``.
      method: ``"BFGS"``, or ``"l-bfgs-experimental-do-not-rely-on-this"``, which keeps no matrix.
      tol: the norm of the gradient from which on it counts as zero (``gtol``); for L-BFGS also the relative change of
        the value (``ftol``).
      options: of both methods ``maxiter``, ``gtol`` and the order ``norm`` of the gradient's norm; of BFGS
        ``line_search_maxiter``; of L-BFGS ``maxcor`` (how many steps are kept), ``ftol``, ``maxfun``, ``maxgrad`` and
        ``maxls``.
    Returns:
      An ``OptimizeResults``.
    Raises:
      TypeError: ``args`` is no tuple, ``x0`` does not have one axis or is not inexact, ``options`` has a name that the
        method does not know, or ``fun`` returns no scalar.
      ValueError: there is no such ``method``.

    Source: Nocedal and Wright, "Numerical optimization" (2006), algorithms 3.5, 3.6, 6.1, 7.4 and 7.5.

    >>> import catena.numpy as jnp
    >>> from catena.scipy.optimize import minimize
    >>> found = minimize(lambda x: jnp.sum((x - 2) ** 4 + x**2), jnp.zeros(2), method="BFGS")
    >>> found.success.item(), found.x.round(3)
    (True, Array([1.165, 1.165], dtype=float32))
    """
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args must be a tuple, got {args!r}")
    if not isinstance(method, str) or method.lower() not in _METHODS:
        raise ValueError(f"minimize: method must be 'BFGS' or {_LBFGS!r}, got {method!r}")
    x0, method = as_array_argument("minimize", x0), method.lower()
    if x0.ndim != 1:
        raise TypeError(f"minimize: x0 must have one axis, got the shape {x0.shape}")
    if not isinstance(options, Mapping | None):
        raise TypeError(f"minimize: options must be a mapping or None, got {options!r}")
    options = dict.fromkeys(_TOLERANCES[method], tol) | dict(options or {}) if tol is not None else dict(options or {})
    known = _METHODS[method].__kwdefaults__
    for name in options:
        if name not in known:
            raise TypeError(f"minimize: {method} has no option {name!r}, only {', '.join(known)}")

    def evaluate(x):
        return value_and_grad(fun)(x, *args)

    if dtypes.is_complex(x0.dtype):
        return _of_complex(evaluate, x0, _METHODS[method], options)
    return OptimizeResults(**_METHODS[method](evaluate, x0, **options))


def _of_complex(evaluate, x0, method, options) -> OptimizeResults:
    """The same of the real and imaginary parts, as one real vector."""
    n = x0.size

    def joined(parts):
        return parts[:n] + 1j * parts[n:]

    def of_parts(parts):
        value, gradient = evaluate(joined(parts).astype(x0.dtype))
        return value, jnp.concatenate([gradient.real, -gradient.imag])

    found = method(of_parts, jnp.concatenate([x0.real, x0.imag]), **options)
    if found["hess_inv"] is not None:
        real, imaginary = found["hess_inv"][:n], found["hess_inv"][n:]
        found["hess_inv"] = ((real[:, :n] + imaginary[:, n:]) + 1j * (imaginary[:, :n] - real[:, n:])) / 2
    return OptimizeResults(**found | {"x": joined(found["x"]), "jac": jnp.conj(joined(found["jac"]))})
