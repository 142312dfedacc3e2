"""Derivatives written next to values: ``custom_gradient``, ``closure_convert`` and ``linear_call``."""

from __future__ import annotations

from collections.abc import Callable

from catena.core import dtypes
from catena.core.axes import at_front
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.primitive import Primitive
from catena.core.source import function_place
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.trace import Tracer, leaf_value
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.tree_partial import Partial
from catena.core.zeros import UndefinedPrimal, Zero, add_tangents, get_aval, instantiate
from catena.transform import interpreted
from catena.transform.batch import batch_jaxpr, move_to_front
from catena.transform.custom_vjp import custom_vjp
from catena.transform.execute import run_jaxpr
from catena.transform.functions import check_callable
from catena.transform.jvp import jvp_jaxpr


def custom_gradient(fun: Callable) -> Callable:
    """A function whose gradient is given by what it returns.

    Arguments:
      fun: returns a pair: the value, and a function from its cotangent to the cotangent(s) of the arguments.
    Returns:
      A function that returns the value and is differentiated in reverse by that function.

    >>> import catena as jax
    >>> @jax.custom_gradient
    ... def f(x):
    ...     return x**2, lambda g: (g * x,)
    >>> jax.grad(f)(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    check_callable(fun)

    @custom_vjp
    def wrapped(*args):
        return fun(*args)[0]

    def fwd(*args):
        value, rule = fun(*args)
        value_leaves, value_tree = tree_flatten(value)
        saved = {}

        def flat_rule(*cts):
            result = rule(tree_unflatten(value_tree, cts))
            single = not isinstance(result, (tuple, list)) or len(args) == 1 and len(result) != 1
            outs, saved["tree"] = tree_flatten((result,) if single else tuple(result))
            return [leaf_value(x) for x in outs]

        avals = [get_aval(x).to_tangent_aval() for x in value_leaves]
        jaxpr, consts = trace_to_jaxpr(flat_rule, avals, DebugInfo("custom_gradient", function_place(rule)))
        return value, Partial(RuleCall(jaxpr, saved["tree"]), *consts)

    def bwd(rule, ct):
        return rule(ct)

    wrapped.defvjp(fwd, bwd)
    wrapped.__name__ = getattr(fun, "__name__", "custom_gradient")  # type: ignore[attr-defined]
    wrapped.__doc__ = fun.__doc__
    return wrapped


class RuleCall:
    """The traced rule of a ``custom_gradient`` function, of its constants and a cotangent."""

    __slots__ = ("jaxpr", "tree")

    def __init__(self, jaxpr, tree):
        self.jaxpr, self.tree = jaxpr, tree

    def __call__(self, *consts_and_ct):
        *consts, ct = consts_and_ct
        outs = eval_jaxpr(self.jaxpr, consts, *tree_flatten(ct)[0])
        return tree_unflatten(self.tree, outs)


def closure_convert(fun: Callable, *example_args) -> tuple[Callable, list]:
    """Turn the differentiable values that a function closes over into arguments.

    Arguments:
      fun: the function.
      example_args: arguments of the types it will be called with.
    Returns:
      ``(converted, consts)``, where ``converted(*args, *consts)`` equals ``fun(*args)``, and ``consts`` are
      the values of float or complex dtype that were closed over.

    >>> import catena as jax
    >>> f, consts = jax.closure_convert(lambda x: 2.0 * x, 1.0)
    >>> f(3.0, *consts)
    Array(6., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    leaves, in_tree = tree_flatten(example_args)
    result = {}

    def flat_fun(*xs):
        outs, result["tree"] = tree_flatten(fun(*tree_unflatten(in_tree, xs)))
        return outs

    jaxpr, consts = trace_to_jaxpr(
        flat_fun, [get_aval(x) for x in leaves], DebugInfo("closure_convert", function_place(fun))
    )
    hoisted = [isinstance(c, Tracer) and dtypes.is_inexact(c.dtype) for c in consts]
    given = [c for c, h in zip(consts, hoisted, strict=True) if h]
    fixed = [c for c, h in zip(consts, hoisted, strict=True) if not h]

    def converted(*args_and_consts):
        count = len(args_and_consts) - len(given)
        args, new_consts = args_and_consts[:count], iter(args_and_consts[count:])
        leaves, tree = tree_flatten(args)
        if tree != in_tree:
            raise TypeError(f"the converted function takes arguments of structure {in_tree}, got {tree}")
        kept = iter(fixed)
        values = [next(new_consts) if h else next(kept) for h in hoisted]
        return tree_unflatten(result["tree"], eval_jaxpr(jaxpr, values, *leaves))

    return converted, given


# ---- linear_call


def _abstract(*avals, fun, **params):
    return fun.out_avals


def _evaluate(*args, fun, **params):
    return run_jaxpr(fun, args, linear_call_p, (), "linear_call")


def _jvp(primals, tangents, *, num_residuals, **params):
    """The linear part of the derivative is the same call of the tangents; as a function of the residuals, ``fun`` is
    differentiated like any other.
    """
    outs = linear_call_p.bind(*primals, num_residuals=num_residuals, **params)
    residuals, linear = tangents[:num_residuals], tangents[num_residuals:]
    changes = [Zero.of_primal(x) for x in outs]
    if any(type(t) is not Zero for t in linear):
        linear = [instantiate(t) for t in linear]
        changes = linear_call_p.bind(*primals[:num_residuals], *linear, num_residuals=num_residuals, **params)
    if any(type(t) is not Zero for t in residuals):
        nonzero = tuple(type(t) is not Zero for t in residuals) + (False,) * len(linear)
        derivative, _ = jvp_jaxpr(params["fun"], nonzero, True)
        given = [t for t in residuals if type(t) is not Zero]
        more = eval_jaxpr(derivative.jaxpr, derivative.consts, *primals, *given)[len(outs) :]
        changes = [add_tangents(x, y) for x, y in zip(changes, more, strict=True)]
    return outs, changes


def _transpose(cts, *args, num_residuals, fun, transpose):
    residuals = args[:num_residuals]
    cts = [instantiate(ct) for ct in cts]
    for number, (x, found) in enumerate(zip(args[num_residuals:], transpose.out_avals, strict=True)):
        if type(x) is UndefinedPrimal and x.aval.shape != found.shape:
            raise ValueError(
                f"linear_call: fun_transpose must return cotangents of the shapes of linear_args; number {number} is "
                f"{x.aval.str_short()}, got {found.str_short()}"
            )
    outs = linear_call_p.bind(*residuals, *cts, num_residuals=num_residuals, fun=transpose, transpose=fun)
    return [None] * num_residuals + [
        ct if type(x) is UndefinedPrimal else None for x, ct in zip(args[num_residuals:], outs, strict=True)
    ]


def _batch(axis, args, dims, *, num_residuals, fun, transpose):
    moved, mapped = move_to_front(axis, args, dims)
    residuals = mapped[:num_residuals]
    moved = [
        *moved[:num_residuals],
        *[
            at_front(axis.size, x, 0 if m else None)
            for x, m in zip(moved[num_residuals:], mapped[num_residuals:], strict=True)
        ],
    ]
    forward, _ = batch_jaxpr(fun, axis, residuals + (True,) * (len(args) - num_residuals), True)
    backward, _ = batch_jaxpr(transpose, axis, residuals + (True,) * (len(transpose.in_avals) - num_residuals), True)
    outs = linear_call_p.bind(*moved, num_residuals=num_residuals, fun=forward, transpose=backward)
    return outs, [0] * len(outs)


linear_call_p = Primitive(
    "linear_call",
    multiple_results=True,
    takes_arrays=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=lambda b, *operands, fun, **params: b.call(fun, operands),
)
interpreted.calls[linear_call_p] = interpreted.call_of("fun")


def linear_call(fun: Callable, fun_transpose: Callable, residual_args, linear_args):
    """Call a linear function whose transpose is given.

    Arguments:
      fun: from ``(residual_args, linear_args)`` to a tree of arrays, linear in the second.
      fun_transpose: from ``(residual_args, cotangent)`` to a tree like ``linear_args``.
      residual_args: what the function depends on without being linear in it.
      linear_args: what it is linear in.
    Returns:
      ``fun(residual_args, linear_args)``.

    >>> from catena.custom_derivatives import linear_call
    >>> linear_call(lambda r, x: r * x, lambda r, ct: r * ct, 2.0, 3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    residuals, residual_tree = tree_flatten(residual_args)
    linear, linear_tree = tree_flatten(linear_args)
    residuals, linear = [leaf_value(x) for x in residuals], [leaf_value(x) for x in linear]
    trees = {}

    def trace(function, second_tree, second_avals, key):
        def flat(*xs):
            second = tree_unflatten(second_tree, xs[len(residuals) :])
            outs, trees[key] = tree_flatten(function(tree_unflatten(residual_tree, xs[: len(residuals)]), second))
            return [leaf_value(x) for x in outs]

        avals = [*[get_aval(x) for x in residuals], *second_avals]
        jaxpr, consts = trace_to_jaxpr(flat, avals, DebugInfo("linear_call", function_place(function)))
        return ClosedJaxpr(jaxpr, consts)

    forward = trace(fun, linear_tree, [get_aval(x) for x in linear], "out")
    backward = trace(fun_transpose, trees["out"], forward.out_avals, "linear")
    if trees["linear"] != linear_tree:
        raise TypeError(
            f"the transpose of a linear_call must return a tree like its linear arguments, {linear_tree}, "
            f"got {trees['linear']}"
        )
    outs = linear_call_p.bind(*residuals, *linear, num_residuals=len(residuals), fun=forward, transpose=backward)
    return tree_unflatten(trees["out"], outs)
