"""From functions of trees to functions of flat lists, and back."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from catena.core.dtype_table import python_scalar_dtypes
from catena.core.ref import Ref, for_users, made_at
from catena.core.source import function_name
from catena.core.trace import Tracer
from catena.core.tree import tree_flatten, tree_unflatten


def check_callable(fun):
    """Raise TypeError where ``fun`` cannot be called."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")


def check_function(fun):
    """Raise TypeError where ``fun`` cannot be called, or a call of it only makes a generator."""
    check_callable(fun)
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")


TRACED = object()  # stands for a traced leaf of the auxiliary data, which is passed on with the results


def described(result) -> str:
    """What a function returned, in an error: a traced value by its type."""
    if isinstance(result, Tracer):
        return f"type {result.aval.str_short()}"
    return f"type {type(result)} with value {result!r}"


class FlatFunction:
    """A function of a tuple of trees as a function of leaves that returns leaves.

    After a call ``out_tree`` is the tree of the result. With ``has_aux`` the traced leaves of the auxiliary
    data follow the results, so that the transformation strips its tracers from them: ``main`` takes both
    apart, ``aux`` rebuilds the auxiliary data.
    """

    __slots__ = ("call", "in_tree", "has_aux", "out_tree", "count", "aux_tree", "aux_leaves", "aux_arguments")

    def __init__(self, call, in_tree, has_aux: bool = False):
        self.call, self.in_tree, self.has_aux = call, in_tree, has_aux

    def __call__(self, *leaves):
        arguments = for_users(leaves)
        out = self.call(*tree_unflatten(self.in_tree, arguments))
        traced_aux = []
        if self.has_aux:
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                raise TypeError(
                    f"expected function with aux output to return a two-element tuple, but got {described(out)}. With "
                    "has_aux=True the function returns (value, auxiliary data); without it, the value alone."
                )
            out, aux = out
            leaves, self.aux_tree = tree_flatten(aux)
            traced_aux = [x for x in leaves if isinstance(x, Tracer)]
            self.aux_leaves = [TRACED if isinstance(x, Tracer) else x for x in leaves]
            places = {id(x): i for i, x in enumerate(arguments)}
            self.aux_arguments = [places.get(id(x)) for x in leaves]
        outs, self.out_tree = tree_flatten(out)
        self.count = len(outs)
        check_no_references(outs)
        return outs + traced_aux

    def main(self, outs) -> list:
        """The results proper; the rest replaces the traced leaves of the auxiliary data."""
        if self.has_aux:
            stripped = iter(outs[self.count :])
            self.aux_leaves = [next(stripped) if x is TRACED else x for x in self.aux_leaves]
        return list(outs[: self.count])

    def aux(self, given):
        """The auxiliary data of the last call; arguments among them that were ``given`` as Python numbers are these."""
        leaves = list(self.aux_leaves)
        for k, i in enumerate(self.aux_arguments):
            if i is not None and type(given[i]) in python_scalar_dtypes:
                leaves[k] = given[i]
        return tree_unflatten(self.aux_tree, leaves)


def check_no_references(outs):
    """Raise where a reference is among the results of a function."""
    if Ref in map(type, outs):
        ref = next(x for x in outs if type(x) is Ref)
        raise ValueError(
            f"the function returned a reference of type {ref.aval.str_short()}, made at {made_at(ref)}, but references "
            "cannot be returned from transformed functions: ref[...] is the value"
        )


def flatten_function(fun, in_tree, *, has_aux: bool = False) -> FlatFunction:
    """``fun(*args)`` as a flat function of the leaves of ``args``, whose tree is ``in_tree``."""
    return FlatFunction(fun, in_tree, has_aux)


def wraps(fun: Callable) -> Callable:
    """``functools.wraps`` for callables of any class, whose names need not be strings."""
    names = [name for name in functools.WRAPPER_ASSIGNMENTS if isinstance(getattr(fun, name, None), str | dict)]
    return functools.wraps(fun, assigned=names)


def named_after(fun: Callable, what: str) -> Callable:
    """A decorator of the function that a transformation returns: it has the name of ``fun``, and its documentation says
    ``what`` it is of it.
    """

    def decorate(transformed):
        wraps(fun)(transformed)
        own = getattr(fun, "__doc__", None)
        title = f"{what} of {function_name(fun)}, with the same arguments."
        transformed.__doc__ = f"{title}\n\n{function_name(fun)}: {own}" if own else title
        return transformed

    return decorate
