"""``custom_vmap``: a function whose vectorised form is given by a rule."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

from catena.core.axes import at_front
from catena.core.primitive import Primitive
from catena.core.source import function_name
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.trace import leaf_value
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.zeros import Zero, get_aval, instantiate
from catena.transform import interpreted
from catena.transform.batch import move_to_front
from catena.transform.custom_call import positional
from catena.transform.execute import run_jaxpr
from catena.transform.functions import check_callable
from catena.transform.jit_primitive import jit_p, split_tangents
from catena.transform.jvp import jvp_flat, jvp_jaxpr


class custom_vmap:  # noqa: N801
    """A function whose vectorised form is given by a rule.

    ``vmap`` calls the rule. Forward derivatives are those of the function, and under ``vmap`` those of the rule;
    reverse derivatives inside of ``vmap`` are those of the function, which ``vmap`` vectorises by itself.

    Arguments:
      fun: the function of arrays and trees of arrays.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.custom_batching import custom_vmap
    >>> @custom_vmap
    ... def f(x, y):
    ...     return x + y
    >>> @f.def_vmap
    ... def f_vmap(axis_size, in_batched, x, y):
    ...     print(axis_size, in_batched)
    ...     return x + y, True
    >>> jax.vmap(f, in_axes=(0, None))(jnp.arange(3.0), 1.0)
    3 [True, False]
    Array([1., 2., 3.], dtype=float32)
    """

    def __init__(self, fun: Callable[..., Any]):
        check_callable(fun)
        functools.update_wrapper(cast(Callable, self), fun)
        self.fun = fun
        self.vmap_rule: Callable | None = None

    def __repr__(self):
        return f"<custom_vmap function {function_name(self.fun)}>"

    def def_vmap(self, vmap_rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Set the rule.

        Arguments:
          vmap_rule: from ``(axis_size, in_batched, *args)`` to ``(out, out_batched)``. ``in_batched`` is a list of
            trees like the arguments, of bools: which arrays have an axis of length ``axis_size``, in front.
            ``out_batched`` is a tree like ``out`` that says the same of the results.
        Returns:
          ``vmap_rule``, so that this may be used as a decorator.
        Raises:
          TypeError: ``vmap_rule`` is not callable.
        """
        check_callable(vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args, **kwargs):
        name = function_name(self.fun)
        if self.vmap_rule is None:
            raise AttributeError(f"No batching rule defined for custom_vmap function {name} using def_vmap.")
        args = positional(self, args, kwargs)
        leaves, in_tree = tree_flatten(list(args))
        leaves = [leaf_value(x) for x in leaves]
        trees = {}

        def flat(*xs):
            outs, trees["out"] = tree_flatten(self.fun(*tree_unflatten(in_tree, xs)))
            return [leaf_value(x) for x in outs]

        call, outer = trace_to_closed_jaxpr(flat, [get_aval(x) for x in leaves], DebugInfo("custom_vmap", name))
        rule = Rule(self.vmap_rule, len(outer), in_tree, trees["out"], tuple(call.out_avals))
        outs = custom_vmap_call_p.bind(*outer, *leaves, call=call, rule=rule)
        return tree_unflatten(trees["out"], outs)


class Rule:
    """A user's rule on flat values: from the size of the axis, which values have it, and the values to results, and
    which of them have it.
    """

    def __init__(self, rule: Callable, num_consts: int, in_tree, out_tree, out_avals: tuple):
        self.rule, self.num_consts, self.in_tree = rule, num_consts, in_tree
        self.out_tree, self.out_avals = out_tree, out_avals
        self.__name__ = function_name(rule)

    def __call__(self, size: int, batched: tuple, args) -> tuple[list, list]:
        if any(batched[: self.num_consts]):
            raise ValueError(
                f"the function of the custom_vmap rule {self.__name__} closes over a value that vmap maps, which the "
                "rule does not see; pass it as an argument"
            )
        in_batched = tree_unflatten(self.in_tree, batched[self.num_consts :])
        result = self.rule(size, in_batched, *tree_unflatten(self.in_tree, args[self.num_consts :]))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise ValueError(
                f"the custom_vmap rule {self.__name__} must return a pair (out, out_batched), got {result}"
            )
        (outs, tree), (out_batched, batched_tree) = tree_flatten(result[0]), tree_flatten(result[1])
        if tree != self.out_tree:
            raise ValueError(
                f"the custom_vmap rule {self.__name__} returned a tree {tree}, but its function returns {self.out_tree}"
            )
        if batched_tree != tree:
            raise ValueError(
                f"the custom_vmap rule {self.__name__} returned results of the tree {tree}, but says which are batched "
                f"in a tree {batched_tree}"
            )
        outs = [leaf_value(x) for x in outs]
        for x, b, aval in zip(outs, out_batched, self.out_avals, strict=True):
            self.check(get_aval(x), aval.with_axis(0, size) if b else aval)
        return outs, [bool(b) for b in out_batched]

    def check(self, got, expected) -> None:
        if (got.shape, got.dtype) != (expected.shape, expected.dtype):
            raise ValueError(
                f"the custom_vmap rule {self.__name__} returned {got.str_short()} where its function, and what it "
                f"says to be batched, make {expected.str_short()}"
            )


class DerivativeOfRule:
    """The rule of the forward derivative of a call: the derivative of its rule."""

    def __init__(self, rule: Callable, nonzeros: tuple, nonzeros_out: tuple):
        self.rule, self.nonzeros, self.nonzeros_out = rule, nonzeros, nonzeros_out

    def __call__(self, size: int, batched: tuple, args) -> tuple[list, list]:
        out_batched: list[bool] = []
        count = len(self.nonzeros)
        given = iter(zip(args[count:], batched[count:], strict=True))
        primals, tangents, either = [], [], []
        for x, b, nonzero in zip(args[:count], batched[:count], self.nonzeros, strict=True):
            t, tb = next(given) if nonzero else (None, b)
            both = b or tb  # what has the axis in its tangent has it in both
            primals.append(at_front(size, x, None) if both and not b else x)
            tangents.append(
                Zero.of_primal(primals[-1]) if t is None else at_front(size, t, None) if both and not tb else t
            )
            either.append(both)

        def flat(*xs):
            outs, out_batched[:] = self.rule(size, tuple(either), xs)
            return outs

        outs, out_tangents = jvp_flat(flat, primals, tangents)
        kept = [
            (instantiate(t), b) for t, b, nz in zip(out_tangents, out_batched, self.nonzeros_out, strict=True) if nz
        ]
        return [*outs, *(t for t, _ in kept)], [*out_batched, *(b for _, b in kept)]


# ---- the primitive


def _abstract(*avals, call, rule):
    return call.out_avals


def _evaluate(*args, call, rule):
    return run_jaxpr(call, args, custom_vmap_call_p, (), "custom_vmap")


def _jvp(primals, tangents, *, call, rule):
    nonzeros = tuple(type(t) is not Zero for t in tangents)
    derivative, nonzeros_out = jvp_jaxpr(
        call, nonzeros, tuple(a.to_tangent_aval().dtype == a.dtype for a in call.out_avals)
    )
    given = [t for t in tangents if type(t) is not Zero]
    derived = DerivativeOfRule(rule, nonzeros, nonzeros_out)
    outs = custom_vmap_call_p.bind(*primals, *given, call=derivative, rule=derived)
    return split_tangents(outs, nonzeros_out, call.out_avals)


def _partial_eval(tape, args, *, call, rule):
    return jit_p.partial_eval(tape, args, jaxpr=call, name="custom_vmap")


def _transpose(cts, *args, call, rule):
    return jit_p.transpose(cts, *args, jaxpr=call, name="custom_vmap")


def _batch(axis, args, dims, *, call, rule):
    moved, batched = move_to_front(axis, args, dims)
    outs, out_batched = rule(axis.size, batched, moved)
    return outs, [0 if b else None for b in out_batched]


def _lower(b, *operands, call, rule):
    return b.call(call, operands)


custom_vmap_call_p = Primitive(
    "custom_vmap_call",
    multiple_results=True,
    takes_arrays=True,
    takes_tokens=True,
    effects=lambda avals, params: params["call"].effects,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    partial_eval=_partial_eval,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
)
interpreted.calls[custom_vmap_call_p] = interpreted.call_of("call")
