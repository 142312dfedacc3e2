"""``checkpoint``: trade memory for time by computing intermediate values again in the backward pass.

A checkpointed call is one equation. Its derivative keeps only the arguments of the call (and what a policy
says) and runs the function again when cotangents come back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from catena.core.array import Array
from catena.core.aval import AbstractRef
from catena.core.context import context
from catena.core.dead_code import dead_code_elimination, prune_call
from catena.core.effects import SHOWN, check_effect, check_effects
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, Var, eval_jaxpr, subjaxprs
from catena.core.log import announce
from catena.core.named import NamedTuple
from catena.core.namespace import alias
from catena.core.primitive import NoRule, Primitive, as_bodies_say
from catena.core.source import function_place
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.trace import Tracer, leaf_value
from catena.core.traceback import api_boundary
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.treedef import PyTreeDef
from catena.core.zeros import UndefinedPrimal, Zero, get_aval
from catena.transform import interpreted
from catena.transform.arguments import Static, argument_names, check_aliasing, resolve_argnums, signature_of
from catena.transform.batch import batch_jaxpr, move_to_front
from catena.transform.call_primitive import CallPrimitive, lift_body
from catena.transform.discharge import call_rule, pure
from catena.transform.execute import run_jaxpr
from catena.transform.functions import check_callable, wraps
from catena.transform.jit import NOT_GIVEN
from catena.transform.jit_primitive import jaxpr_axis_names, scatter_cotangents, split_tangents
from catena.transform.jvp import jvp_jaxpr
from catena.transform.linearize import partial_eval_jaxpr
from catena.transform.memo import call_cache, memoised
from catena.transform.saving import SavedEquation, saving
from catena.transform.transpose import transpose_jaxpr

P = ParamSpec("P")
R = TypeVar("R")

# ---- the primitive


def _abstract(*avals, jaxpr, **params):
    return jaxpr.out_avals


def _evaluate(*args, jaxpr, **params):
    if has_interpreted(jaxpr.jaxpr):
        return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
    return run_jaxpr(jaxpr, args, checkpoint_p, (), "checkpoint")


def has_interpreted(jaxpr: Jaxpr) -> bool:
    """Whether functions of the user's evaluate some operations; then all of it is evaluated step by step."""
    return any(
        e.primitive.interpreted or any(has_interpreted(inner) for inner in subjaxprs(e.own_params)) for e in jaxpr.eqns
    )


def _jvp(primals, tangents, *, jaxpr, **params):
    nonzeros = tuple(type(t) is not Zero for t in tangents)
    derivative, nonzeros_out = jvp_jaxpr(jaxpr, nonzeros, False)
    given = [t for t in tangents if type(t) is not Zero]
    outs = checkpoint_p.bind(*primals, *given, jaxpr=derivative, **params)
    return split_tangents(outs, nonzeros_out, jaxpr.out_avals)


def _partial_eval(tape, args, *, jaxpr, policy, **params):
    check_effects(
        jaxpr.effects, SHOWN | {check_effect}, "partial-eval of `checkpoint`/`remat`, which would have them twice"
    )
    unknown = tuple(tape.is_unknown(x) for x in args)
    known, rest, unknown_out, saved_count, read = split_by_policy(jaxpr, unknown, policy)
    if params["differentiated"] and all(unknown_out):  # it is what is computed again, and that is not done twice
        return tape.record(checkpoint_p, args, {**params, "jaxpr": jaxpr, "policy": policy})
    known_args = [x for x, u in zip(args, unknown, strict=True) if not u]
    if context.log_checkpoint_residuals:
        log_residuals([x for x, r, u in zip(args, read, unknown, strict=True) if r and not u], known.jaxpr, saved_count)
    with tape.known():
        outs = checkpoint_p.bind(*known_args, jaxpr=known, policy=policy, **params)
    known_outs, saved = iter(outs[: len(outs) - saved_count]), outs[len(outs) - saved_count :]
    unknowns = iter(())
    if any(unknown_out):
        rest_params = {**params, "jaxpr": rest, "policy": policy, "differentiated": True}
        given = [x for x, r in zip(args, read, strict=True) if r]
        unknowns = iter(tape.record(checkpoint_p, [*given, *saved], rest_params))
    return [next(unknowns) if u else next(known_outs) for u in unknown_out]


def log_residuals(inputs, known: Jaxpr, count: int):
    """Log what is kept for the backward pass: inputs, and the last ``count`` results of what is computed forward."""
    made = {v: e for e in known.eqns for v in e.outvars}
    kept = [
        f"  {v.aval.str_short()} from output of {made[v].primitive} from {made[v].source}" if v in made else
        f"  {v.aval.str_short()}" for v in known.outvars[len(known.outvars) - count :]
    ]  # fmt: skip
    types = [f"  {get_aval(x).str_short()}" for x in inputs]
    message = "checkpoint keeps inputs of these types:\n%s\nand these intermediate values:\n%s"
    announce(message, "\n".join(types) or "  none", "\n".join(kept) or "  none", loud=True)


def nothing(*avals, **params) -> bool:
    """The policy where there is none."""
    return False


@memoised
def split_by_policy(closed: ClosedJaxpr, unknown: tuple, policy):
    """Split a jaxpr for checkpointing.

    Returns:
      ``(known, rest, unknown_out, saved_count, read)``: ``known`` maps the known arguments to the known
      results and the ``saved_count`` values that are saved; ``rest`` maps those of all arguments that ``read`` marks
      and the saved values to the unknown results, computing again what was not saved.
    """
    forward, whole, count = saving(pure(closed), unknown, policy or nothing)
    known, _, unknown_out, _ = partial_eval_jaxpr(forward, unknown, False)
    num_known = len(unknown_out) - sum(unknown_out) - count
    unknown_out = unknown_out[: len(unknown_out) - count]
    rest, read = dead_code_elimination(whole.jaxpr, unknown_out)
    read, kept = read[: len(unknown)], read[len(unknown) :]
    residuals = len(known.out_avals) - num_known - count
    known = without_results(known, [True] * num_known + kept + [False] * residuals)
    return known, ClosedJaxpr(rest, whole.consts), unknown_out, sum(kept), read


def without_results(closed: ClosedJaxpr, used) -> ClosedJaxpr:
    """A closed jaxpr with only the results in use and all its arguments."""
    smaller, _ = dead_code_elimination(closed.jaxpr, used)
    return ClosedJaxpr(smaller.replace(invars=closed.jaxpr.invars), closed.consts)


def _save(eqn, unknown: tuple, saving: Callable) -> SavedEquation:
    """The policy of the checkpoint around it reaches inside; what that computes again, this need not once more."""
    forward, rest, count = saving(eqn.own_params["jaxpr"], unknown)
    saved = [Var(a) for a in forward.out_avals[len(eqn.outvars) :]]
    return SavedEquation(
        [eqn.replace(outvars=[*eqn.outvars, *saved], params={**eqn.own_params, "jaxpr": forward})],
        saved,
        [eqn.replace(invars=[*eqn.invars, *saved], params={**eqn.own_params, "jaxpr": rest, "differentiated": True})],
    )


def _transpose(cts, *args, jaxpr, **params):
    linear = tuple(type(x) is UndefinedPrimal for x in args)
    backward, nonzero_in = transpose_jaxpr(jaxpr, linear, tuple(type(ct) is Zero for ct in cts), True)
    residuals = [x for x, lin in zip(args, linear, strict=True) if not lin]
    given = [ct for ct in cts if type(ct) is not Zero]
    outs = checkpoint_p.bind(*residuals, *given, jaxpr=backward, **{**params, "differentiated": True})
    return scatter_cotangents(outs, nonzero_in, args)


def _batch(axis, args, dims, *, jaxpr, **params):
    moved, mapped = move_to_front(axis, args, dims)
    batched, mapped_out = batch_jaxpr(jaxpr, axis, mapped, False)
    outs = checkpoint_p.bind(*moved, jaxpr=batched, **params)
    return outs, [0 if m else None for m in mapped_out]


def _lower(b, *operands, jaxpr, prevent_cse, differentiated, **params):
    if differentiated and prevent_cse:
        operands = b.barrier(operands)
    return b.call(jaxpr, operands)


checkpoint_p = CallPrimitive(
    "remat2",
    lift=lift_body(),
    multiple_results=True,
    takes_arrays=True,
    takes_tokens=True,
    effects=lambda avals, params: params["jaxpr"].effects,
    axis_names=lambda params: jaxpr_axis_names(params["jaxpr"]),
    abstract=_abstract,
    varying=as_bodies_say,
    evaluate=_evaluate,
    jvp=_jvp,
    partial_eval=_partial_eval,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    prune=prune_call,
    save=_save,
)
checkpoint_p.discharge = call_rule(checkpoint_p)  # type: ignore[attr-defined]
interpreted.calls[checkpoint_p] = interpreted.call_of("jaxpr")


# ---- names for values, which policies refer to


name_p: Primitive = Primitive(
    "name",
    abstract=lambda aval, *, name: aval,
    evaluate=lambda x, *, name: x,
    jvp=lambda primals, tangents, *, name: (name_p.bind(primals[0], name=name), tangents[0]),
    transpose=NoRule("its tangent does not pass through it"),
    batch=lambda axis, args, dims, *, name: (name_p.bind(args[0], name=name), dims[0]),
    lower=lambda b, x, *, name: x,
)


def checkpoint_name(x, name: str):
    """Name a tree of values, so that checkpoint policies can refer to them.

    Arguments:
      x: a tree of arrays.
      name: the name.
    Returns:
      ``x``, unchanged.

    >>> from catena.ad_checkpoint import checkpoint_name
    >>> checkpoint_name(1.0, "loss")
    Array(1., dtype=float32, weak_type=True)
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name takes a str as name, got {name!r}")
    leaves, tree = tree_flatten(x)
    return tree_unflatten(tree, [name_p.bind(leaf, name=name) for leaf in leaves])


# ---- the transformation


def by_value(x):
    """A static argument as part of a cache key; one that cannot be hashed is different each time."""
    return Static(x) if isinstance(x, Hashable) and not isinstance(x, (Array, Tracer)) else object()


class _Given(NamedTuple):
    """The arguments of a call: static ones as they are, others as the leaves of a tree."""

    args: tuple
    static: set[int]  # positions
    static_kwargs: dict[str, Any]
    leaves: list
    tree: PyTreeDef

    @property
    def statics(self) -> tuple:
        """The static ones as part of a cache key."""
        positional = [(i, by_value(self.args[i])) for i in sorted(self.static)]
        return *positional, *((k, by_value(v)) for k, v in sorted(self.static_kwargs.items()))

    def call(self, fun: Callable, leaves: Sequence) -> Any:
        """Calls a function with other leaves."""
        dynamic, kwargs = tree_unflatten(self.tree, leaves)
        rest = iter(dynamic)
        args = [x if i in self.static else next(rest) for i, x in enumerate(self.args)]
        return fun(*args, **kwargs, **self.static_kwargs)


def _split(args: tuple, kwargs: dict, nums, names) -> _Given:
    """The arguments of a call, of which those at such positions and of such names are static."""
    static = {i % len(args) for i in nums if -len(args) <= i < len(args)}
    dynamic = tuple(x for i, x in enumerate(args) if i not in static)
    leaves, tree = tree_flatten((dynamic, {k: v for k, v in kwargs.items() if k not in names}))
    static_kwargs = {k: v for k, v in kwargs.items() if k in names}
    return _Given(args, static, static_kwargs, [leaf_value(x) for x in leaves], tree)


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool = ...,
    policy: Callable | None = ...,
    static_argnums: Any = ...,
    static_argnames: Any = ...,
) -> Callable[P, R]: ...


@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: bool = ...,
    policy: Callable | None = ...,
    static_argnums: Any = ...,
    static_argnames: Any = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def checkpoint(
    fun: Callable | None = None,
    *,
    prevent_cse: bool = True,
    policy: Callable | None = None,
    static_argnums=(),
    static_argnames=(),
    concrete: Any = NOT_GIVEN,
) -> Callable:
    """Make a function compute its intermediate values again in the backward pass instead of keeping them.

    Arguments:
      fun: a function of trees of arrays. Without it, a decorator is returned.
      prevent_cse: whether the compiler is kept from merging the second computation with the first.
      policy: which intermediate values to keep all the same; see ``catena.checkpoint_policies``. Default:
        none.
      static_argnums, static_argnames: arguments passed as they are; where they cannot be hashed, each call
        traces anew.
      concrete: what JAX took once and refuses now; use ``static_argnums`` for values that decide Python control flow.
    Returns:
      A function with the same results.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if fun is None:
        options = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(checkpoint, **options)
    check_callable(fun)
    if concrete is not NOT_GIVEN:
        raise NotImplementedError(
            f"checkpoint with concrete={concrete!r} is not supported; use static_argnums and ensure_compile_time_eval"
        )
    none_static = static_argnums in ((), None) and static_argnames in ((), None)
    signature = None if none_static else signature_of(fun)  # 10 us
    given_nums, given_names = (None if static in ((), None) else static for static in (static_argnums, static_argnames))
    nums, names = resolve_argnums(signature, given_nums, given_names, "static")

    calls = call_cache(fun, ("checkpoint", nums, names))

    @wraps(fun)
    @api_boundary
    def checkpointed(*args, **kwargs):
        given = _split(args, kwargs, nums, names)
        named = lambda: argument_names(fun, args, kwargs, given.static, names)
        result = {}

        def flat_fun(*xs):
            outs, result["tree"] = tree_flatten(given.call(fun, xs))
            return outs

        avals, statics = tuple([get_aval(x) for x in given.leaves]), given.statics
        flags = context.global_key, context.local_key, tuple(context.axis_env.items())
        key = given.tree, avals, statics, len(args), *flags
        found = calls.entries.get(key)
        if found is None:
            closed, outer = trace_to_closed_jaxpr(
                flat_fun, avals, DebugInfo("checkpoint", function_place(fun), named())
            )
            found = closed, outer, result["tree"]
            if not any(isinstance(x, Tracer) for x in outer) and all(type(x) is Static for _, x in statics):
                calls.entries[key] = found
        closed, outer, out_tree = found
        if any(type(a) is AbstractRef for a in avals):
            check_aliasing([fun], outer, given.leaves, named, "checkpoint")
        outs = checkpoint_p.bind(
            *outer, *given.leaves, jaxpr=closed, prevent_cse=prevent_cse, differentiated=False, policy=policy
        )
        return tree_unflatten(out_tree, outs)

    return checkpointed


remat = alias(checkpoint, "remat")
