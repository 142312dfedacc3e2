"""``fwd_and_bwd``: the forward and the backward pass of a function, as two functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from catena.transform.arguments import as_int_tuple
from catena.transform.functions import check_callable
from catena.transform.grad import vjp
from catena.transform.jit import jit


def fwd_and_bwd(
    fun: Callable, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable, Callable]:
    """The forward and the backward pass of a function, to be called apart.

    Arguments:
      fun: a function of trees of arrays.
      argnums: the positions of the arguments to differentiate by.
      has_aux: whether ``fun`` returns a pair whose second part is not differentiated.
      jitted: whether both are compiled.
    Returns:
      ``(fwd, bwd)``: ``fwd(*args)`` returns ``(value, saved)`` or ``(value, saved, aux)``; ``bwd(saved, cotangent)``
      the cotangent of the argument, or a tuple of them.
    Raises:
      TypeError: ``fun`` is not callable. ValueError: by ``fwd``, for positions that there are not.

    >>> import catena as jax
    >>> fwd, bwd = jax.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> value, saved = fwd(2.0, 3.0)
    >>> bwd(saved, 1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    single, numbers = isinstance(argnums, int), as_int_tuple(argnums, "argnums")

    def fwd(*args):
        wrong = next((i for i in numbers if not -len(args) <= i < len(args)), None)
        if wrong is not None:
            raise ValueError(f"fwd_and_bwd: argnums has {wrong}, but there are {len(args)} positional arguments")
        positions = [i % len(args) for i in numbers]

        def of_chosen(*chosen):
            given = list(args)
            for i, x in zip(positions, chosen, strict=True):
                given[i] = x
            return fun(*given)

        return vjp(of_chosen, *[args[i] for i in positions], has_aux=has_aux)

    def bwd(saved, cotangent):
        cotangents = saved(cotangent)
        return cotangents[0] if single else cotangents

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
