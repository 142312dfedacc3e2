"""Derivatives beside finite differences, for tests of functions and rules.

A derivative in a random direction is compared with the central difference of the function along it; reverse
derivatives by the identity of transposes, ``<ct, J t> = <Jt ct, t>`` (Griewank & Walther 2008, "Evaluating
Derivatives", section 3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as _np

from catena.core import dtypes as _dtypes
from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.tree import tree_flatten as _flatten
from catena.core.tree import tree_map as _tree_map
from catena.core.tree import tree_unflatten as _unflatten
from catena.transform.grad import jvp as _jvp
from catena.transform.grad import vjp as _vjp

_SEED = 0
# Of values and derivatives, relative and absolute, by the least precise dtype that takes part.
_TOLERANCE = {
    "bfloat16": 1e-1,
    "float16": 1e-2,
    "float32": 2e-3,
    "complex64": 1e-3,
    "float64": 1e-5,
    "complex128": 1e-5,
}


def check_grads(
    f: Callable,
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of a function against finite differences, and those of its derivatives.

    Arguments:
      f: a function of trees of floats and complex numbers.
      args: the point.
      order: up to which order.
      modes: "fwd", "rev" or both.
      atol, rtol: tolerances; by default those of the dtypes.
      eps: the step of differences; by default 1e-4 in double precision, else 1e-2.
    Raises:
      AssertionError: a derivative is off. ValueError: a mode is unknown.

    >>> import catena.numpy as jnp
    >>> from catena.test_util import check_grads
    >>> check_grads(jnp.sin, (1.0,), order=2)
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise ValueError(f"check_grads: modes must be 'fwd' or 'rev', got {', '.join(map(repr, sorted(unknown)))}")
    args = tuple(args)
    step = eps or (1e-4 if all(_is_double(x) for x in _flatten(args)[0]) else 1e-2)
    derivatives = {"fwd": _forward, "rev": _reverse}

    def check(f, modes_so_far: tuple, left: int):
        if not left:
            return
        for mode in modes:
            path = (*modes_so_far, mode)
            checks = {"fwd": partial(check_jvp, f, partial(_jvp, f)), "rev": partial(check_vjp, f, partial(_vjp, f))}
            checks[mode](args, atol, rtol, step, err_msg=f"derivative {' of '.join(reversed(path))}")
            check(derivatives[mode](f, args), path, left - 1)

    check(f, (), order)


def check_jvp(
    f: Callable,
    f_jvp: Callable,
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Check a forward derivative against finite differences, in a random direction.

    Arguments:
      f: a function of trees of arrays.
      f_jvp: from a tuple of primals and one of tangents to the value of ``f`` and its tangent.
      args: the point.
      atol, rtol: tolerances; by default those of the dtypes.
      eps: the step of differences.
      err_msg: what to say besides where it is off.
    Raises:
      AssertionError: the value or the tangent is off.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.test_util import check_jvp
    >>> check_jvp(jnp.sin, lambda p, t: (jnp.sin(p[0]), jnp.cos(p[0]) * t[0]), (1.0,))
    """
    args = tuple(args)
    tangents = _random_like(args, 1)
    value, tangent = f_jvp(args, tangents)
    _close(value, f(*args), atol, rtol, f"{err_msg} JVP primal".strip())
    _close(tangent, _difference(f, args, tangents, eps), atol, rtol, f"{err_msg} JVP tangent".strip())


def check_vjp(
    f: Callable,
    f_vjp: Callable,
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Check a reverse derivative against finite differences, in a random direction, with a random cotangent.

    Arguments:
      f: a function of trees of arrays.
      f_vjp: from the arguments to the value of ``f`` and a function from its cotangent to those of the arguments.
      args: the point.
      atol, rtol: tolerances; by default those of the dtypes.
      eps: the step of differences.
      err_msg: what to say besides where it is off.
    Raises:
      AssertionError: the value or the product of cotangent, derivative and tangent is off.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.test_util import check_vjp
    >>> check_vjp(jnp.sin, lambda x: jax.vjp(jnp.sin, x), (1.0,))
    """
    args = tuple(args)
    tangents = _random_like(args, 1)
    value, pull_back = f_vjp(*args)
    _close(value, f(*args), atol, rtol, f"{err_msg} VJP primal".strip())
    cotangent = _random_like(value, 2)
    tangent = _difference(f, args, tangents, eps)
    forward, backward = _product(cotangent, tangent), _product(pull_back(cotangent), tangents)
    size = max(1.0, sum(_np.size(x) for x in _flatten(value)[0]) ** 0.5)  # of the sum of as many errors
    tolerance = _tolerance([*_flatten(args)[0], *_flatten(value)[0]])
    atol, rtol = (tolerance if x is None else x for x in (atol, rtol))
    _np.testing.assert_allclose(
        backward, forward, atol=atol * size, rtol=rtol, err_msg=f"{err_msg} VJP cotangent projected".strip()
    )


def _forward(f: Callable, args) -> Callable:
    """The derivative of ``f`` in a direction, as a function of the point."""
    tangents = _random_like(args, 3)
    return lambda *args: _jvp(f, args, tangents)[1]


def _reverse(f: Callable, args) -> Callable:
    """The cotangents by ``f`` of a cotangent, as a function of the point."""

    def pulled_back(*args):
        value, pull_back = _vjp(f, *args)
        return pull_back(_random_like(value, 4))

    return pulled_back


def _is_double(x) -> bool:
    return _dtype(x).name in ("float64", "complex128")


def _dtype(x):
    return _dtypes.result_type(x)


def _random_like(tree, seed: int):
    """A tree of normal numbers of the types of its leaves; what is not differentiable has no tangent (float0)."""
    rng = _np.random.default_rng((_SEED, seed))

    def draw(x):
        dtype, shape = _dtype(x), _np.shape(x)
        if not _dtypes.is_inexact(dtype):
            return _np.zeros(shape, _dtypes.float0)
        real = rng.standard_normal(shape)
        return _np.asarray(real + 1j * rng.standard_normal(shape) if dtype.kind == "c" else real).astype(dtype)

    leaves, structure = _flatten(tree)
    return _unflatten(structure, [draw(x) for x in leaves])


def _difference(f: Callable, args, tangents, eps: float):
    """The central difference of ``f`` along the tangents."""

    def moved(sign: int):
        return f(*_tree_map(lambda x, t: _moved(x, t, sign * eps / 2), args, tangents))

    return _tree_map(lambda a, b: (_wide(a) - _wide(b)) / eps, moved(1), moved(-1))


def _moved(x, tangent, step: float):
    dtype = _dtype(x)
    return (_wide(x) + step * _wide(tangent)).astype(dtype) if _dtypes.is_inexact(dtype) else x


def _wide(x) -> _np.ndarray:
    x = _np.asarray(x)
    if x.dtype == _dtypes.float0:
        return _np.zeros(x.shape)
    return x.astype(_np.complex128 if _dtypes.KIND[x.dtype] == "c" else _np.float64)


def _product(xs, ys) -> float:
    """The real part of the sum of products, which pairs cotangents with tangents."""
    pairs = zip(_flatten(xs)[0], _flatten(ys)[0], strict=True)
    return float(sum(_np.real(_np.sum(_wide(x) * _wide(y))) for x, y in pairs))


def _tolerance(leaves) -> float:
    return max((_TOLERANCE.get(_dtype(x).name, 0.0) for x in leaves), default=0.0)


def _close(actual, expected, atol, rtol, what: str) -> None:
    (xs, structure), (ys, other) = _flatten(actual), _flatten(expected)
    assert structure == other, f"{what}: a tree {structure}, expected {other}"
    for x, y in zip(xs, ys, strict=True):
        tolerance = _tolerance([x])
        a, r = (tolerance if t is None else t for t in (atol, rtol))
        _np.testing.assert_allclose(_wide(x), _wide(y), atol=a, rtol=r, err_msg=what)


_open_door(globals(), "catena.test_util")

__dir__ = _shown(globals())
