"""What quaxed takes from JAX's private `numpy.vectorize`: excluded arguments, signatures, and checks against these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from catena.lax import broadcast_shapes
from catena.numpy.vectorization import checked, core_sizes, parse, split_excluded


def _apply_excluded(
    func: Callable, excluded: Collection[int | str], args: Sequence, kwargs: dict[str, Any]
) -> tuple[Callable, Sequence, dict[str, Any]]:
    """A function of the arguments that are not excluded, and these arguments.

    Arguments:
      func: the function.
      excluded: the positions and names of arguments that it is called with as they are.
      args, kwargs: its arguments.
    Returns:
      The function of the others; these, the named ones last; and no named ones.

    >>> fun, args, _ = _apply_excluded(lambda x, n: x * n, {1}, (2, 10), {})
    >>> fun(*args)
    20
    """
    fun, given = split_excluded(func, frozenset(excluded), args, kwargs)
    return fun, given, {}


def _parse_gufunc_signature(signature: str) -> tuple:
    """The core dimensions of each argument and of each result that a signature says.

    Arguments:
      signature: such as ``"(n,m),(m)->(n)"``.
    Raises:
      ValueError: it is none.

    >>> _parse_gufunc_signature("(n,m),(m)->(n)")
    ([('n', 'm'), ('m',)], [('n',)])
    """
    return parse(signature)


def _parse_input_dimensions(args: Sequence, input_core_dims: Sequence[tuple], error_context: str = "") -> tuple:
    """The shape that arguments broadcast to in front of their core dimensions, and the sizes of these.

    Arguments:
      args: arrays.
      input_core_dims: the names of the core dimensions of each.
      error_context: said in errors.
    Returns:
      The shape, and a dictionary of sizes by name.
    Raises:
      TypeError: there are more or fewer arguments. ValueError: shapes do not fit.

    >>> import catena.numpy as jnp
    >>> _parse_input_dimensions((jnp.ones((5, 2, 3)), jnp.ones(3)), [("n", "m"), ("m",)])
    ((5,), {'n': 2, 'm': 3})
    """
    if len(args) != len(input_core_dims):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(input_core_dims)}, got {len(args)} {error_context}"
        )
    sizes = core_sizes(args, input_core_dims, error_context)
    stacks = [array.shape[: array.ndim - len(core)] for array, core in zip(args, input_core_dims, strict=True)]
    return broadcast_shapes(*stacks), sizes


def _check_output_dims(
    func: Callable, dim_sizes: dict[str, int], expected_output_core_dims: Sequence[tuple], error_context: str = ""
) -> Callable:
    """A function whose results are checked against the core dimensions of a signature.

    Arguments:
      func: the function.
      dim_sizes: the sizes of core dimensions by name.
      expected_output_core_dims: the names of the core dimensions of each result.
      error_context: said in errors.
    Returns:
      A function that calls it, and raises TypeError or ValueError where a result does not fit.

    >>> import catena.numpy as jnp
    >>> _check_output_dims(jnp.sin, {"n": 3}, [("n",)])(jnp.zeros(2))
    Traceback (most recent call last):
    ValueError: inconsistent size for core dimension 'n': 2 vs 3
    """
    return checked(func, dict(dim_sizes), expected_output_core_dims, error_context)
