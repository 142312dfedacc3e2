"""``custom_vjp``: a function whose reverse derivative is given by a pair of rules.

Under differentiation the forward rule runs and leaves residuals; the derivative itself is one linear
operation, ``custom_vjp_linear``, whose transpose is the backward rule. Forward mode works as well: the
derivative is then computed as the transpose of the backward rule, which is linear in its cotangents.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from catena.core import config, dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import at_front
from catena.core.context import context, users_function
from catena.core.errors import UnexpectedTracerError
from catena.core.evaluate import concrete, varying_axes
from catena.core.jaxpr import ClosedJaxpr
from catena.core.named import NamedTuple
from catena.core.primitive import Primitive
from catena.core.ref import for_users
from catena.core.source import function_name, function_place
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.trace import Tracer, leaf_value
from catena.core.tree import (
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)
from catena.core.tree_keys import keystr
from catena.core.treedef import PyTreeDef
from catena.core.zeros import UndefinedPrimal, Zero, get_aval, instantiate
from catena.transform.batch import Vectorised, VectorisedBackward, VectorisedForward, batch_flat, move_to_front
from catena.transform.custom_call import (
    CustomCall,
    CustomFunction,
    SymbolicZero,
    call_eagerly,
    check_leaf,
    positional,
    symbolic,
    without_nondiff,
)
from catena.transform.custom_jvp import with_tree
from catena.transform.forward_call import call_forward
from catena.transform.functions import flatten_function
from catena.transform.jvp import jvp_flat
from catena.transform.linearize import linearize_linear
from catena.transform.transpose import backward_pass

P = ParamSpec("P")
R = TypeVar("R")

# ---- the primitives


class CustomVJPCall(CustomCall):
    """The call of a function together with its forward and backward rules."""

    __slots__ = ()

    def batch_of_functions(self, functions, trace, dims, outputs):
        fun, fwd, bwd = functions
        forward = VectorisedForward(fwd, trace, dims, outputs)
        return Vectorised(fun, trace, dims, outputs, forward), forward, VectorisedBackward(bwd, trace, dims, outputs)

    def jvp_of_functions(self, functions, primals, tangents, params):
        """The results of the forward rule, and their tangents as one linear operation."""
        _, fwd, bwd = functions
        perturbed = tuple(type(t) is not Zero for t in tangents)
        outs, residuals, residual_tree = fwd(perturbed, *primals)
        out_avals = tuple(get_aval(x).to_tangent_aval() for x in outs)
        given = [t for t in tangents if type(t) is not Zero]
        tangents_out = custom_vjp_linear_p.bind(
            *residuals,
            *given,
            num_residuals=len(residuals),
            residual_tree=residual_tree,
            bwd=bwd,
            perturbed=perturbed,
            out_avals=out_avals,
            symbolic_zeros=params["symbolic_zeros"],
        )
        return outs, [Zero(a) if a.dtype == dtypes.float0 else t for a, t in zip(out_avals, tangents_out, strict=True)]


custom_vjp_call_p = CustomVJPCall("custom_vjp_call", ("fwd", "bwd"))


class CustomVJPPrimal:
    """An argument as a forward rule with ``symbolic_zeros`` sees it: its ``value``, and whether it is ``perturbed``."""

    __slots__ = ("value", "perturbed")

    def __init__(self, value, perturbed: bool):
        self.value, self.perturbed = value, perturbed


def custom_vjp_primal_tree_values(tree):
    """The tree of the values of a tree of ``CustomVJPPrimal``s.

    >>> from catena.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
    >>> custom_vjp_primal_tree_values((CustomVJPPrimal(1.0, True), 2.0))
    (1.0, 2.0)
    """
    return tree_map(lambda x: x.value if isinstance(x, CustomVJPPrimal) else x, tree)


def pull(residuals, cts, bwd, residual_tree, symbolic_zeros: bool) -> list:
    """The cotangents of all arguments by the backward rule; ``None`` becomes a symbolic zero later."""
    cts = cts if symbolic_zeros else [instantiate(ct) for ct in cts]
    with users_function():
        return bwd(residual_tree, *residuals, *cts)


def forward(residuals, tangents, *, bwd, residual_tree, perturbed, out_avals, symbolic_zeros, num_residuals) -> list:
    """The derivative in forward mode: the transpose of the backward rule."""
    differentiable = [a for a in out_avals if a.dtype != dtypes.float0]

    def backward(*cts):
        given = iter(cts)
        all_cts = [Zero(a) if a.dtype == dtypes.float0 else next(given) for a in out_avals]
        cts_in = pull(residuals, all_cts, bwd, residual_tree, symbolic_zeros)
        return [ct for ct, on in zip(cts_in, perturbed, strict=True) if on]

    try:
        cts_in, program = linearize_linear(backward, differentiable, [None] * len(differentiable))
        tangents = [instantiate(t) for t in tangents]
        outs = iter([instantiate(x) for x in backward_pass(program, tangents)])
    except NotImplementedError as error:
        raise TypeError(
            "can't apply forward-mode autodiff (jvp) to a custom_vjp function by transposing its backward rule, which "
            f"must be made of linear operations on the cotangents: {error}. Use reverse mode (grad, vjp, jacrev), or "
            "give the function a custom_jvp."
        ) from error
    return [instantiate(Zero(a)) if a.dtype == dtypes.float0 else next(outs) for a in out_avals]


def _linear_abstract(*avals, out_avals, **params):
    return out_avals


def forward_jaxpr(avals, num_residuals: int, params) -> ClosedJaxpr:
    """``forward`` as a jaxpr of residuals and tangents."""
    run = lambda *args: forward(args[:num_residuals], args[num_residuals:], num_residuals=num_residuals, **params)  # noqa: E731
    jaxpr, consts = trace_to_jaxpr(run, avals, DebugInfo("custom_vjp", function_name(params["bwd"])))
    return ClosedJaxpr(jaxpr, consts)


def _linear_evaluate(*args, num_residuals, **params):
    args = [concrete(x, custom_vjp_linear_p) for x in args]
    return forward(args[:num_residuals], args[num_residuals:], num_residuals=num_residuals, **params)


def _linear_jvp(primals, tangents, *, num_residuals, **params):
    run = lambda *args: forward(args[:num_residuals], args[num_residuals:], num_residuals=num_residuals, **params)  # noqa: E731
    return jvp_flat(run, primals, tangents)


def _linear_transpose(cts, *args, num_residuals, bwd, residual_tree, perturbed, out_avals, symbolic_zeros):
    cts_in = pull(args[:num_residuals], cts, bwd, residual_tree, symbolic_zeros)
    given = [ct for ct, on in zip(cts_in, perturbed, strict=True) if on]
    tangents = args[num_residuals:]
    return [None] * num_residuals + [
        Zero(x.aval) if ct is None and type(x) is UndefinedPrimal else ct for ct, x in zip(given, tangents, strict=True)
    ]


def _linear_batch(axis, args, dims, *, num_residuals, bwd, out_avals, perturbed, **params):
    moved, mapped = move_to_front(axis, args, dims)
    residual_dims = [0 if m else None for m in mapped[:num_residuals]]
    tangents = [
        at_front(axis.size, x, 0 if m else None)
        for x, m in zip(moved[num_residuals:], mapped[num_residuals:], strict=True)
    ]

    def batched_bwd(residual_tree, *residuals_and_cts):
        cts_dims = [None if type(x) is Zero else 0 for x in residuals_and_cts[num_residuals:]]
        one = functools.partial(bwd, residual_tree)
        outs, out_dims = batch_flat(one, axis, residuals_and_cts, [*residual_dims, *cts_dims])
        return [
            ct if ct is None or type(ct) is Zero else at_front(axis.size, ct, d)
            for ct, d in zip(outs, out_dims, strict=True)
        ]

    batched_avals = tuple(a.with_axis(0, axis.size, axis.split) for a in out_avals)
    outs = custom_vjp_linear_p.bind(
        *moved[:num_residuals],
        *tangents,
        num_residuals=num_residuals,
        bwd=functools.wraps(bwd)(batched_bwd),
        out_avals=batched_avals,
        perturbed=perturbed,
        **params,
    )
    return outs, [0] * len(outs)


def _linear_lower(b, *operands, num_residuals, **params):
    avals = [ShapedArray(x.shape, x.dtype) for x in operands]
    return b.call(forward_jaxpr(avals, num_residuals, params), operands)


custom_vjp_linear_p = Primitive(
    "custom_vjp_linear",
    multiple_results=True,
    takes_arrays=True,
    takes_references=True,  # among the residuals, for the backward rule to write to
    abstract=_linear_abstract,
    evaluate=_linear_evaluate,
    jvp=_linear_jvp,
    transpose=_linear_transpose,
    transpose_zeros=_linear_transpose,
    batch=_linear_batch,
    lower=_linear_lower,
)


# ---- the decorator


class ForwardRule:
    """The forward rule of one call as a flat function.

    ``rule(perturbed, *leaves)`` gives the flat results, the flat residuals and the tree of these;
    ``perturbed`` says which leaves are differentiated by. ``trees`` notes the tree of the result.
    """

    __slots__ = ("custom", "nondiff", "tree", "trees", "__name__")

    def __init__(self, custom: custom_vjp, nondiff: dict, tree, trees: dict):
        self.custom, self.nondiff, self.tree, self.trees = custom, nondiff, tree, trees
        self.__name__ = function_name(custom.fwd)

    def __call__(self, perturbed, *leaves):
        if not self.custom.optimize_remat:
            return self.call(perturbed, *leaves)
        rule = functools.partial(self.call, perturbed)
        return call_forward(self.value, rule, leaves, function_name(self.custom.fun))

    def value(self, *leaves) -> list:
        """What the function itself gives."""
        outs = tree_leaves(self.custom.fun(*self.arguments(tree_unflatten(self.tree, for_users(leaves)))))
        return [leaf_value(x) for x in outs]

    def call(self, perturbed, *leaves):
        if self.custom.symbolic_zeros:
            leaves = [CustomVJPPrimal(x, on) for x, on in zip(leaves, perturbed, strict=True)]
        value, residuals = check_pair(
            self.custom, self.custom.fwd(*self.arguments(tree_unflatten(self.tree, for_users(leaves))))
        )
        outs, out_tree = tree_flatten(value)
        if self.trees.setdefault("out", out_tree) != out_tree:
            raise TypeError(
                f"Custom VJP fwd rule {self.__name__} for function {function_name(self.custom.fun)} must produce a "
                f"primal output of the structure of the function's, {self.trees['out']}, but got {out_tree}."
            )
        residuals, residual_tree = ResidualTree.flatten(residuals)
        return [leaf_value(x) for x in outs], [leaf_value(x) for x in residuals], residual_tree

    def arguments(self, diff) -> list:
        """All arguments, those that are not differentiated put back in their places."""
        rest = iter(diff)
        return [self.nondiff[i] if i in self.nondiff else next(rest) for i in range(len(diff) + len(self.nondiff))]

    def __reduce__(self):
        return ForwardRule, (self.custom, self.nondiff, self.tree, self.trees)


def check_pair(custom: custom_vjp, pair):
    """What a forward rule returned, or an error where it is not a pair."""
    if isinstance(pair, (tuple, list)) and len(pair) == 2:
        return pair
    name, fun_name = function_name(custom.fwd), function_name(custom.fun)
    raise TypeError(
        f"Custom VJP fwd rule {name} for function {fun_name} must produce a pair (list or tuple of length two) where "
        "the first element represents the primal output (equal to those of the custom_vjp-decorated function "
        f"{fun_name}) and the second element represents residuals (i.e. values stored from the forward pass for use on "
        f"the backward pass), but instead of a pair the fwd rule {name} produced {pair}."
    )


class ResidualTree(NamedTuple):
    """The structure of residuals, with those in it that are ``True`` or ``False``: the backward rule may ask ``if``."""

    tree: PyTreeDef
    known: tuple[tuple[int, bool], ...]

    @staticmethod
    def flatten(residuals) -> tuple[list, ResidualTree]:
        """The residuals to carry along, and their structure."""
        leaves, tree = tree_flatten(residuals)
        known = tuple((i, x) for i, x in enumerate(leaves) if type(x) is bool)
        return [x for x in leaves if type(x) is not bool], ResidualTree(tree, known)

    @property
    def num_leaves(self) -> int:
        """How many residuals are carried along."""
        return self.tree.num_leaves - len(self.known)

    def unflatten(self, leaves):
        """The residuals as the forward rule returned them."""
        all_leaves = list(leaves)
        for i, x in self.known:  # in order, so that each finds its place
            all_leaves.insert(i, x)
        return tree_unflatten(self.tree, all_leaves)


class BackwardRule:
    """The backward rule of one call as a flat function of the residuals' tree, residuals and cotangents."""

    __slots__ = ("custom", "nondiff", "tree", "in_avals", "trees", "__name__")

    def __init__(self, custom: custom_vjp, nondiff, tree, in_avals, trees: dict):
        self.custom, self.nondiff, self.tree, self.in_avals, self.trees = (
            custom,
            nondiff,
            tree,
            in_avals,
            trees,
        )
        self.__name__ = function_name(custom.bwd)

    def __call__(self, residual_tree, *residuals_and_cts):
        n = residual_tree.num_leaves
        residuals = residual_tree.unflatten(for_users(residuals_and_cts[:n]))
        ct = tree_unflatten(self.trees["out"], [symbolic(x) for x in residuals_and_cts[n:]])
        return flatten_cotangents(self.custom.bwd(*self.nondiff, residuals, ct), self.tree, self.in_avals)

    def __reduce__(self):
        return BackwardRule, (self.custom, self.nondiff, self.tree, self.in_avals, self.trees)


class custom_vjp(CustomFunction, Generic[P, R]):  # noqa: N801
    """A function whose reverse derivative is given by a pair of rules.

    Arguments:
      fun: the function.
      nondiff_argnums: positions of arguments that are not differentiated; they come first in the backward
        rule.
      nondiff_argnames: their names, as an alternative.

    >>> import catena as jax, catena.numpy as jnp
    >>> @jax.custom_vjp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (10.0 * jnp.cos(x) * ct,))
    >>> jax.grad(f)(0.0)
    Array(10., dtype=float32, weak_type=True)
    """

    def __init__(self, fun: Callable[P, R], nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable | None = None
        self.bwd: Callable | None = None
        self.optimize_remat = False

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Set the rules.

        Arguments:
          fwd: from the arguments of the function to ``(value, residuals)``.
          bwd: from ``(*nondiff, residuals, cotangent)`` to a tuple with a cotangent for each other argument
            (``None`` for zero).
          symbolic_zeros: whether ``fwd`` is told which arguments are perturbed (``CustomVJPPrimal``) and
            ``bwd`` gets zero cotangents as ``SymbolicZero`` objects.
          optimize_remat: whether the function itself is called in place of ``fwd`` where nobody reads the residuals, as
            in the forward pass of a checkpointed function. ``fwd`` is traced then.
        """
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros, self.optimize_remat = symbolic_zeros, optimize_remat

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {function_name(self.fun)} using defvjp. "
                f"Give it one: {function_name(self.fun)}.defvjp(fwd, bwd), of {function_place(self.fun)}."
            )
        given = positional(self, args, kwargs)
        nondiff, diff, call = without_nondiff(self.fun, self.nondiff_argnums, given)
        if any(isinstance(x, Tracer) for x in tree_leaves(nondiff)):
            raise UnexpectedTracerError(
                "Found a JAX Tracer object passed as an argument to a custom_vjp function in a position indicated by "
                f"nondiff_argnums as non-differentiable: {function_name(self.fun)}. Such arguments are for what cannot "
                "be traced, such as functions; pass an array as an ordinary argument, with None as its cotangent."
            )
        leaves, tree = tree_flatten(diff)
        if context.trace is None:
            return call_eagerly(self.fun, given, leaves)
        leaves = [leaf_value(x) for x in leaves]
        in_avals = [get_aval(x) for x in leaves]
        trees: dict = {}
        flat = with_tree(flatten_function(call, tree), trees)
        fwd = ForwardRule(
            self, dict(zip([i % len(given) for i in self.nondiff_argnums], nondiff, strict=True)), tree, trees
        )
        bwd = BackwardRule(self, nondiff, tree, in_avals, trees)
        params = {"name": function_name(self.fun), "symbolic_zeros": self.symbolic_zeros}
        outs = custom_vjp_call_p.bind_functions((flat, fwd, bwd), leaves, params)
        return tree_unflatten(trees["out"], outs)


def flatten_cotangents(result, tree, in_avals) -> list:
    """The cotangents that a backward rule returned, one for each leaf of the arguments,
    symbolic where zero; checked.
    """
    args = tree_unflatten(tree, in_avals)
    wrong = lambda: TypeError(  # noqa: E731
        "Custom VJP bwd rule must produce an output with the same container (pytree) structure as the args tuple "
        "of the primal function, and in particular must produce a tuple of length equal to the number of "
        f"arguments to the primal function, but got bwd output structure {tree_structure(result)} for primal input "
        f"structure {tree}."
    )
    if not isinstance(result, (tuple, list)) or len(result) != len(args):
        raise wrong()
    flat = [leaf for arg, ct in zip(args, result, strict=True) for leaf in flatten_one(arg, ct, wrong)]
    paths = [keystr(path) for path, _ in tree_flatten_with_path(args)[0]]
    return [checked_cotangent(ct, aval, path) for ct, aval, path in zip(flat, in_avals, paths, strict=True)]


def flatten_one(arg, ct, wrong: Callable[[], TypeError]) -> list:
    """The cotangents of the leaves of one argument; ``None`` stands for zeros of everything below."""
    if ct is None:
        return [None] * len(tree_leaves(arg))
    leaves, structure = tree_flatten(ct)
    if structure == tree_structure(arg):
        return leaves
    children, kind = tree_flatten(arg, is_leaf=lambda x: x is not arg)
    parts, found = tree_flatten(ct, is_leaf=lambda x: x is not ct)
    if kind != found or children == [arg]:
        raise wrong()
    return [leaf for a, c in zip(children, parts, strict=True) for leaf in flatten_one(a, c, wrong)]


def checked_cotangent(ct, aval, path: str):
    """A cotangent that a rule returned, of any dtype, or an error where it is none of the argument's shape."""
    expected = aval.to_tangent_aval()
    if ct is None or isinstance(ct, (SymbolicZero, Zero)) or dtypes.float0 in (expected.dtype, given_dtype(ct)):
        return Zero(expected)
    check_leaf(ct)
    got = get_aval(ct)
    if got.shape != expected.shape and not config.read("jax_disable_bwd_checks"):
        raise ValueError(
            "Custom VJP bwd rule must produce an output with the same type as the args tuple of the primal "
            f"function, but at output{path} the bwd rule produced an output of type {got.str_short()} corresponding to "
            f"an input of type {aval.str_short()}, so the shapes do not match"
        )
    if varying_axes(got) != varying_axes(expected):
        raise ValueError(
            "Custom VJP bwd rule must produce an output with the same type as the args tuple of the primal "
            f"function, but at output{path} the bwd rule produced an output of type {got.str_short()} corresponding to "
            f"an input of type {aval.str_short()}, so the manual axis types do not match; "
            + (
                "sum it over the others by jax.lax.psum"
                if varying_axes(got) - varying_axes(expected)
                else "use jax.lax.pcast(..., to='varying')"
            )
        )
    return ct


def given_dtype(x):
    return getattr(x, "dtype", None)
