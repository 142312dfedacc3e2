"""Functions that are to be one kernel. The compiler fuses whole programs as it is; a call keeps its name in jaxprs."""

from __future__ import annotations

import functools
from collections.abc import Callable

from catena.core.namespace import shown as _shown
from catena.core.sequences import safe_map as map  # noqa: F401
from catena.core.sequences import safe_zip as zip  # noqa: F401
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent
from catena.experimental.compute_on import checked_spaces
from catena.lax.composites import annotated_call, call_annotated
from catena.transform.functions import check_callable

fused_p = annotated_call("fused_call")


def fused(*, out_spaces: tuple) -> Callable[[Callable], Callable]:
    """A decorator for functions that are to be one kernel.

    Arguments:
      out_spaces: a tuple of memory spaces, one for each array in the result.
    Returns:
      A decorator; the decorated function takes positional arguments.
    Raises:
      TypeError: ``out_spaces`` is no tuple of memory spaces. ValueError: there are more or fewer of them than results.

    >>> import catena as jax
    >>> from types import SimpleNamespace
    >>> double = fused(out_spaces=(SimpleNamespace(name="Device"),))(lambda x: 2 * x)
    >>> jax.make_jaxpr(double)(1.0).eqns[0].primitive
    fused_call
    """
    if not isinstance(out_spaces, tuple):
        raise TypeError(f"fused: out_spaces must be a tuple of memory spaces, got {out_spaces!r}")

    def parameters(tree) -> dict:
        if len(out_spaces) != tree.num_leaves:
            raise ValueError(f"fused: {len(out_spaces)} out_spaces for {tree.num_leaves} results")
        return {"out_spaces": checked_spaces("out_spaces", out_spaces)}

    def decorate(f: Callable) -> Callable:
        check_callable(f)

        @functools.wraps(f)
        def call(*args):
            return call_annotated(fused_p, f, args, parameters)

        return call

    return decorate


_open_door(globals(), "catena.experimental.fused", own=True)
__dir__ = _shown(globals())

_absent(globals())
