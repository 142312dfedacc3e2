"""``cond`` and ``switch``: one of several branches, chosen by a value.

The primitive takes ``[index, *operands]`` and holds a jaxpr for each branch, all of one type. Derivatives and
halves of the branches are brought to one type by filling in zeros.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.array import Array
from catena.core.aval import AbstractRef, ShapedArray, same_type
from catena.core.axes import at_front, move_axis
from catena.core.dead_code import dead_code_elimination, pruned
from catena.core.effects import of_operands
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, Var, eval_jaxpr
from catena.core.named import NamedTuple
from catena.core.primitive import as_bodies_say
from catena.core.source import function_place
from catena.core.structural import broadcast_in_dim_p, stop_gradient_p
from catena.core.trace import Tracer, leaf_value
from catena.core.tree import tree_flatten_with_path, tree_unflatten
from catena.core.tree_errors import equality_errors_treedef
from catena.core.tree_keys import keystr
from catena.core.zeros import Zero, get_aval, is_undefined_primal, zeros
from catena.lax.comparison import clamp_p, eq_p, ne_p, select_n_p
from catena.lax.control_flow import common
from catena.lax.control_flow.common import either, merge, partition, split, with_invars
from catena.lax.control_flow.loop_rules import undefined
from catena.lax.control_flow.per_lane import batch_per_lane
from catena.lax.control_flow.state import cond_rule
from catena.lax.control_flow.while_loop import choose
from catena.lax.convert import convert
from catena.transform import interpreted
from catena.transform.arguments import argument_names, check_aliasing
from catena.transform.batch import batch_jaxpr
from catena.transform.call_primitive import CallPrimitive, hoisted
from catena.transform.jit_primitive import jaxpr_axis_names, scatter_cotangents, split_tangents
from catena.transform.jvp import jvp_jaxpr
from catena.transform.linearize import partial_eval_jaxpr
from catena.transform.memo import memoised
from catena.transform.saving import SavedEquation
from catena.transform.transpose import transpose_jaxpr

INDEX = ShapedArray((), np.int32)

# ---- type and evaluation


def _abstract(index, *avals, branches):
    return branches[0].out_avals


def _effects(avals, params):
    return of_operands(frozenset().union(*[b.effects for b in params["branches"]]), lambda i: i + 1)


def _axis_names(params):
    return tuple(dict.fromkeys(name for b in params["branches"] for name in jaxpr_axis_names(b)))


def _evaluate(index, *args, branches):
    last = len(branches) - 1
    branch = branches[min(max(int(leaf_value(index)), 0), last)]
    outs = eval_jaxpr(branch.jaxpr, branch.consts, *args)
    return common.converted([leaf_value(x) for x in outs], branches[0].out_avals)


def _interpreted(*, branches):
    """The branch on NumPy values, where there is no compiler."""
    steps, last = [interpreted.steps(b) for b in branches], len(branches) - 1
    return lambda index, *values: steps[min(max(int(index), 0), last)](*values)


def _lower(b, index, *operands, branches):
    return b.branch(index, branches, operands)


def _lift(args, params):
    """The traced constants of branches as operands, which are the same for all of them."""
    bodies = [common.Body(*hoisted(b), None) for b in params["branches"] if b.consts]
    if not any(body.consts for body in bodies):
        return args, params
    branches, lifted = common.with_common_consts([common.Body(*hoisted(b), None) for b in params["branches"]])
    return (args[0], *lifted, *args[1:]), {**params, "branches": branches}


# ---- differentiation


def _jvp(primals, tangents, *, branches):
    nonzeros = tuple(type(t) is not Zero for t in tangents[1:])
    derivatives, nonzeros_out = derivative_branches(branches[0], branches, nonzeros)
    given = [t for t in tangents[1:] if type(t) is not Zero]
    outs = cond_p.bind(*primals, *given, branches=derivatives)
    return split_tangents(outs, nonzeros_out, branches[0].out_avals)


@memoised
def derivative_branches(first, branches: tuple, nonzeros: tuple):
    """The derivatives of the branches, all with the same tangents out, and which results have tangents."""
    flags = (False,) * len(first.out_avals)
    for branch in branches:
        flags = either(flags, jvp_jaxpr(branch, nonzeros, False)[1])
    return tuple(jvp_jaxpr(branch, nonzeros, flags)[0] for branch in branches), flags


class BranchHalves(NamedTuple):
    """Branches split in what is known and the rest.

    The known halves return the known results and ``slots`` residuals; the rest takes these, the known
    operands at the positions ``forwarded``, and the unknown operands.
    """

    known: tuple
    rest: tuple
    unknown_out: tuple
    forwarded: tuple


def _partial_eval(tape, args, *, branches):
    if tape.is_unknown(args[0]):
        return tape.record(cond_p, args, {"branches": branches})
    index, operands = args[0], args[1:]
    unknown = tuple(tape.is_unknown(x) for x in operands)
    halves = split_branches(branches[0], branches, unknown)
    known_operands, unknown_operands = partition(operands, unknown)
    with tape.known():
        outs = cond_p.bind(index, *known_operands, branches=halves.known)
    known_out, residuals = split(outs, len(halves.unknown_out) - sum(halves.unknown_out))
    unknowns = []
    if any(halves.unknown_out):
        forwarded = [known_operands[i] for i in halves.forwarded]
        rest_args = [index, *residuals, *forwarded, *unknown_operands]
        unknowns = tape.record(cond_p, rest_args, {"branches": halves.rest})
    return merge(halves.unknown_out, known_out, unknowns)


@memoised
def split_branches(first, branches: tuple, unknown: tuple) -> BranchHalves:
    """Split branches; ``unknown`` says for each operand whether it is unknown."""
    unknown_out = (False,) * len(first.out_avals)
    for branch in branches:
        unknown_out = either(unknown_out, partial_eval_jaxpr(branch, unknown, False)[2])
    parts = [partial_eval_jaxpr(branch, unknown, unknown_out) for branch in branches]
    num_known = len(unknown_out) - sum(unknown_out)
    forwarded = tuple(sorted({f for *_, fwd in parts for f in fwd if f is not None}))
    slots: list = []  # the types of the residuals, each used by at most one value of a branch
    places = []
    for known, *_ in parts:
        places.append(assign_slots(slots, known.out_avals[num_known:]))
    known_operand_avals = [a for a, u in zip(first.in_avals, unknown, strict=True) if not u]
    known = tuple(filled(part[0], num_known, place, tuple(slots)) for part, place in zip(parts, places, strict=True))
    rest = tuple(
        rearranged(part[1], part[3], place, slots, forwarded, known_operand_avals)
        for part, place in zip(parts, places, strict=True)
    )
    return BranchHalves(known, rest, unknown_out, forwarded)


def assign_slots(slots: list, avals) -> tuple:
    """A slot of the right type for each residual of a branch, new ones where needed."""
    free = list(range(len(slots)))
    place = []
    for aval in avals:
        found = next((i for i in free if same_type(slots[i], aval)), None)
        if found is None:
            found = len(slots)
            slots.append(aval)
        else:
            free.remove(found)
        place.append(found)
    return tuple(place)


def filled(known: ClosedJaxpr, num_known: int, place: tuple, slots: tuple) -> ClosedJaxpr:
    """The known half of a branch with its residuals in their slots and zeros in the others."""

    def fun(*args):
        outs, residuals = split(eval_jaxpr(known.jaxpr, known.consts, *args), num_known)
        row: list = [None] * len(slots)
        for i, x in zip(place, residuals, strict=True):
            row[i] = x
        return [*outs, *[zeros(a) if x is None else x for x, a in zip(row, slots, strict=True)]]

    return common.retraced(fun, known.in_avals, known)


def rearranged(rest: ClosedJaxpr, fwd, place, slots, forwarded, known_operand_avals) -> ClosedJaxpr:
    """The rest of a branch as a function of all slots, all forwarded operands, and the unknown operands."""
    residuals, unknowns = split(rest.jaxpr.invars, len(fwd))
    slot_vars = [Var(a) for a in slots]
    operand_vars = {f: Var(known_operand_avals[f]) for f in forwarded}
    own_slots = iter(place)
    for var, f in zip(residuals, fwd, strict=True):
        if f is None:
            slot_vars[next(own_slots)] = var
        else:
            operand_vars[f] = var
    return with_invars(rest, slot_vars + [operand_vars[f] for f in forwarded] + unknowns)


def _save(eqn, unknown: tuple, saving) -> SavedEquation | None:
    """What a policy saves in the branches, in slots that they share."""
    branches = eqn.own_params["branches"]
    if unknown[0]:
        return None
    parts = [saving(branch, unknown[1:]) for branch in branches]
    slots: list = []
    places = [assign_slots(slots, forward.out_avals[len(forward.out_avals) - n :]) for forward, _, n in parts]
    if not slots:
        return None
    forward = tuple(
        filled(part.forward, len(eqn.outvars), place, tuple(slots)) for part, place in zip(parts, places, strict=True)
    )
    rest = tuple(with_slots(part.rest, place, slots) for part, place in zip(parts, places, strict=True))
    saved = [Var(a) for a in slots]
    return SavedEquation(
        [eqn.replace(outvars=[*eqn.outvars, *saved], params={**eqn.own_params, "branches": forward})],
        saved,
        [eqn.replace(invars=[*eqn.invars, *saved], params={**eqn.own_params, "branches": rest})],
    )


def with_slots(rest: ClosedJaxpr, place: tuple, slots: list) -> ClosedJaxpr:
    """A branch that takes all slots after its operands, and reads its own."""
    operands, saved = split(rest.jaxpr.invars, len(rest.jaxpr.invars) - len(place))
    slot_vars = [Var(a) for a in slots]
    for i, v in zip(place, saved, strict=True):
        slot_vars[i] = v
    return with_invars(rest, operands + slot_vars)


def _transpose(cts, index, *operands, branches):
    linear = undefined(operands)
    zero_cts = tuple(type(ct) is Zero for ct in cts)
    backward, nonzeros = transposed_branches(branches[0], branches, linear, zero_cts)
    residuals = [x for x in operands if not is_undefined_primal(x)]
    given = [ct for ct in cts if type(ct) is not Zero]
    outs = cond_p.bind(index, *residuals, *given, branches=backward)
    return [None, *scatter_cotangents(outs, nonzeros, operands)]


@memoised
def transposed_branches(first, branches: tuple, linear: tuple, zero_cts: tuple):
    """The transposed branches, all with the same cotangents out, and which linear operands get cotangents."""
    parts = [transpose_jaxpr(branch, linear, zero_cts) for branch in branches]
    nonzeros = parts[0][1]
    for _, flags in parts:
        nonzeros = either(nonzeros, flags)
    linear_avals = [a for a, lin in zip(first.in_avals, linear, strict=True) if lin]
    return tuple(with_zeros(part, flags, nonzeros, linear_avals) for part, flags in parts), nonzeros


def with_zeros(closed: ClosedJaxpr, made: tuple, wanted: tuple, avals) -> ClosedJaxpr:
    """The jaxpr with zeros where a wanted result is not made."""
    if made == wanted:
        return closed

    def fun(*args):
        outs = iter(eval_jaxpr(closed.jaxpr, closed.consts, *args))
        return [
            next(outs) if m else zeros(a.to_tangent_aval()) for m, w, a in zip(made, wanted, avals, strict=True) if w
        ]

    return common.retraced(fun, closed.in_avals, closed)


def _prune(eqn, used):
    parts = [dead_code_elimination(b.jaxpr, used) for b in eqn.own_params["branches"]]
    read = (False,) * (len(eqn.invars) - 1)
    for _, flags in parts:
        read = either(read, flags)
    branches = []
    for branch, (smaller, _) in zip(eqn.own_params["branches"], parts, strict=True):
        invars = partition(branch.jaxpr.invars, read)[1]
        jaxpr = Jaxpr(smaller.constvars, invars, smaller.outvars, smaller.eqns, None, common.unnamed(smaller))
        branches.append(ClosedJaxpr(jaxpr, branch.consts))
    return eqn.replace(
        invars=eqn.invars[:1] + partition(eqn.invars[1:], read)[1],
        outvars=partition(eqn.outvars, used)[1],
        params={"branches": tuple(branches)},
    )


# ---- vectorisation


def _batch(axis, args, dims, *, branches):
    if dims[0] is None:
        return batch_one_branch(axis, args, dims, branches)
    passed, smaller = without_passed(branches[0], branches)
    if any(p is not None for p in passed):  # what every branch returns as it came does not depend on the branch
        computed = _batch(axis, args, dims, branches=smaller) if smaller is not None else ((), ())
        rest = zip(*computed, strict=True)
        pairs = [next(rest) if p is None else (args[1 + p], dims[1 + p]) for p in passed]
        return [x for x, _ in pairs], [d for _, d in pairs]
    by_name = axis.name is not None and axis.name in _axis_names({"branches": branches})
    if by_name or is_light(branches):
        return batch_by_choice(axis, args, dims, branches)
    return batch_per_lane(cond_p, axis, args, dims, {"branches": branches})


@memoised
def without_passed(first, branches: tuple):
    """For each result the operand that every branch returns for it, or None; and the branches without these results,
    None where there is nothing left to do.
    """
    columns = zip(*[operands_returned(branch.jaxpr) for branch in branches], strict=True)
    passed = [column[0] if len(set(column)) == 1 else None for column in columns]
    used = [p is None for p in passed]
    if all(used) or not any(used) and not any(branch.effects for branch in branches):
        return passed, None
    return passed, tuple(pruned(branch, used) for branch in branches)


def operands_returned(jaxpr) -> list:
    """For each result the number of the argument that it is, or None."""
    number = {v: i for i, v in enumerate(jaxpr.invars)}
    return [number.get(v) if type(v) is Var else None for v in jaxpr.outvars]


def batch_one_branch(axis, args, dims, branches):
    """All examples take the same branch."""
    mapped = tuple(d is not None for d in dims[1:])
    batched, mapped_out = batched_branches(branches[0], branches, axis, mapped)
    moved = [x if d is None else move_axis(x, d, 0) for x, d in zip(args[1:], dims[1:], strict=True)]
    outs = cond_p.bind(args[0], *moved, branches=batched)
    return outs, [0 if m else None for m in mapped_out]


@memoised
def batched_branches(first, branches: tuple, axis, mapped: tuple):
    """The branches over a mapped axis, all with the same results mapped, and which these are."""
    flags = (False,) * len(first.out_avals)
    for branch in branches:
        flags = either(flags, batch_jaxpr(branch, axis, mapped, False)[1])
    return tuple(batch_jaxpr(branch, axis, mapped, flags)[0] for branch in branches), flags


def batch_by_choice(axis, args, dims, branches):
    """Run every branch for all examples and choose.

    A branch sees its own operands only in the examples that take it, as far as derivatives are concerned:
      elsewhere it sees copies that do not, so that a NaN in the derivative of a branch not taken goes
      nowhere.
    """
    index = move_axis(args[0], dims[0], 0)
    operands = [at_front(axis.size, x, d) for x, d in zip(args[1:], dims[1:], strict=True)]
    results = []
    for i, branch in enumerate(branches):
        batched, _ = batch_jaxpr(branch, axis, (True,) * len(operands), True)
        taken = eq_p.bind(index, np.asarray(i, get_aval(index).dtype))
        own = [choose(taken, x, without_derivative(x)) for x in operands]
        results.append(eval_jaxpr(batched.jaxpr, batched.consts, *own))
    chosen = [choose_case(index, column) for column in zip(*results, strict=True)]
    return chosen, [0] * len(chosen)


def without_derivative(x):
    """``x`` as a constant to derivatives."""
    return stop_gradient_p.bind(x) if dtypes.is_inexact(get_aval(x).dtype) else x


def choose_case(index, cases):
    """For each example the case that its index says; the mapped axis is in front."""
    if len(cases) == 1:
        return cases[0]
    which = eq_p.bind(index, np.asarray(1, get_aval(index).dtype)) if len(cases) == 2 else index
    shape = get_aval(cases[0]).shape
    if len(shape) > 1:
        which = broadcast_in_dim_p.bind(which, shape=shape, broadcast_dimensions=(0,))
    return select_n_p.bind(which, *cases)


LIGHT_EQUATIONS = 16  # more than these, and running the branch not taken costs more than running example by example


def is_light(branches) -> bool:
    """Whether the branches are so cheap and pure that running all of them at once is best."""
    eqns = [e for b in branches for e in b.eqns]
    return len(eqns) <= LIGHT_EQUATIONS and not any(e.effects or e.primitive.multiple_results for e in eqns)


cond_p = CallPrimitive(
    "cond",
    lift=_lift,
    multiple_results=True,
    takes_arrays=True,
    takes_tokens=True,
    effects=_effects,
    axis_names=_axis_names,
    abstract=_abstract,
    varying=as_bodies_say,
    evaluate=_evaluate,
    jvp=_jvp,
    partial_eval=_partial_eval,
    save=_save,
    prune=_prune,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
)
cond_p.discharge = cond_rule(cond_p)
interpreted.calls[cond_p] = _interpreted


# ---- the functions

_MISSING: Any = object()


def cond(pred, true_fun: Callable, false_fun: Callable, *operands, operand: Any = _MISSING) -> Any:
    """``true_fun(*operands)`` where ``pred`` holds, else ``false_fun(*operands)``; only the branch taken runs.

    Arguments:
      pred: a boolean or number, scalar.
      true_fun, false_fun: functions of the operands that return trees of one structure and type. The older
        call ``cond(pred, true_operand, true_fun, false_operand, false_fun)`` is understood as well.
      operands: trees of arrays.
      operand: one operand, as an alternative.
    Returns:
      What the branch returns.
    Raises:
      TypeError: ``pred`` is not a scalar, a branch is not callable, or the branches' results differ in type.

    >>> import catena.lax as lax
    >>> lax.cond(True, lambda x: x + 1, lambda x: x - 1, 3)
    Array(4, dtype=int32, weak_type=True)
    """
    operands = given_operands(operands, operand)
    if len(operands) == 2 and not callable(true_fun) and callable(false_fun) and callable(operands[1]):
        true_operand, true_fun, false_operand, false_fun = true_fun, false_fun, *operands
        return cond(
            pred,
            lambda pair, fun=true_fun: fun(pair[0]),
            lambda pair, fun=false_fun: fun(pair[1]),
            (true_operand, false_operand),
        )
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    pred = as_predicate(pred)
    if common.jit_is_disabled() and common.is_concrete(pred):
        return (true_fun if bool(pred) else false_fun)(*operands)
    index = common.with_type(pred, INDEX)
    names = ("true_fun", "false_fun")
    return bind_branches("cond", index, (false_fun, true_fun), names[::-1], operands)


def given_operands(operands: tuple, operand) -> tuple:
    """The operands, given by position or as the keyword ``operand``."""
    if operand is _MISSING:
        return operands
    if operands:
        raise TypeError(
            "if 'operand' keyword is passed then no positional operands can be passed, got "
            f"operand={operand!r} and positional operands {operands}"
        )
    return (operand,)


def as_predicate(pred):
    """``pred`` as a boolean scalar."""
    if not dtypes.is_scalar_or_numpy(pred) and not isinstance(pred, (Array, Tracer)):
        raise TypeError(f"Pred must be a scalar, got {pred} of type {type(pred)}")
    pred = leaf_value(pred)
    aval = get_aval(pred)
    if aval.shape:
        raise TypeError(f"Pred must be a scalar, got {pred} of shape {aval.shape}.")
    if aval.dtype == np.bool_:
        return pred
    if dtypes.is_extended(aval.dtype) or dtypes.is_complex(aval.dtype):
        raise TypeError(f"Pred type must be either boolean or number, got {dtypes.dtype_name(aval.dtype)}.")
    return ne_p.bind(pred, np.zeros((), aval.dtype))


def switch(index, branches: Sequence[Callable], *operands, operand: Any = _MISSING) -> Any:
    """``branches[index](*operands)``, the index clamped to those there are; only that branch runs.

    Arguments:
      index: an integer scalar.
      branches: functions of the operands that return trees of one structure and type.
      operands: trees of arrays.
      operand: one operand, as an alternative.
    Returns:
      What the branch returns.
    Raises:
      TypeError: ``index`` is not an integer scalar, a branch is not callable, or the results differ in type.
      ValueError: there are no branches.

    >>> import catena.lax as lax
    >>> lax.switch(5, [lambda x: x, lambda x: 10 * x], 3)
    Array(30, dtype=int32, weak_type=True)
    """
    operands = given_operands(operands, operand)
    try:
        branches = tuple(branches)
    except TypeError:
        raise TypeError(f"lax.switch: branches argument should be a sequence of callables, got {branches!r}") from None
    if not all(callable(f) for f in branches):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    index = as_index(index)
    if not branches:
        raise ValueError("Empty branch sequence: lax.switch needs at least one function in branches, got none")
    if len(branches) == 1:
        return branches[0](*operands)
    if common.jit_is_disabled() and common.is_concrete(index):
        return branches[min(max(operator.index(index), 0), len(branches) - 1)](*operands)
    index = clamp_p.bind(np.int32(0), convert(index, INDEX.dtype), np.int32(len(branches) - 1))
    names = [f"branch {i}" for i in range(len(branches))]
    return bind_branches("switch", index, branches, names, operands)


def as_index(index):
    """``index`` as an integer scalar."""
    index = leaf_value(index)
    aval = get_aval(index)
    if aval.shape:
        raise TypeError(f"Branch index must be scalar, got {index} of shape {aval.shape}.")
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"Index type must be an integer, got {index} as {dtypes.dtype_name(aval.dtype)}")
    return index


def bind_branches(what: str, index, functions, names, operands):
    """Trace the branches, bring them to one type, and apply the primitive."""
    leaves, in_tree = common.flatten_values(operands)
    avals = [get_aval(x) for x in leaves]
    bodies = [common.trace_body(f, in_tree, avals, what) for f in functions]
    shown = [*zip(names, functions, bodies, strict=True)]
    if what == "cond":
        shown.reverse()  # messages begin with true_fun
    for other in shown[1:]:
        check_same_results(what, shown[0], other)
    jaxprs, consts = common.with_common_consts(bodies)
    if any(type(a) is AbstractRef for a in avals):
        names = lambda: argument_names(functions[-1], operands, {})  # noqa: E731
        check_aliasing(functions[::-1], consts, leaves, names, what)
    outs = cond_p.bind(index, *consts, *leaves, branches=with_joined_types(jaxprs[0], tuple(jaxprs)))
    return tree_unflatten(bodies[0].out_tree, outs)


@memoised
def with_joined_types(first, jaxprs: tuple) -> tuple:
    """The branches with results as weakly typed as those of the first, which of ``cond`` is ``false_fun``."""
    weak = [a.weak_type for a in first.out_avals]
    return tuple(with_weakness(j, weak) for j in jaxprs)


def with_weakness(closed: ClosedJaxpr, weak) -> ClosedJaxpr:
    """The jaxpr with results that are weakly typed where this is flagged."""
    if all(a.weak_type == w for a, w in zip(closed.out_avals, weak, strict=True)):
        return closed

    def fun(*args):
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        return common.converted(outs, [a.update(weak_type=w) for a, w in zip(closed.out_avals, weak, strict=True)])

    return common.retraced(fun, closed.in_avals, closed)


def check_same_results(what: str, first, other):
    """Raise where two branches return different structures or types; each is ``(name, function, body)``."""
    (name1, fun1, body1), (name2, fun2, body2) = first, other
    places = f"{name1} is {function_place(fun1)}\n{name2} is {function_place(fun2)}\n\n"
    revise = f"Revise {name1} and/or {name2} so that "
    if body1.out_tree != body2.out_tree:
        raise TypeError(
            f"{what} branch outputs must have the same pytree structure, but they differ:\n\n{places}"
            f"{structure_differences(name1, name2, body1.out_tree, body2.out_tree)}\n\n"
            f"{revise}they have the same pytree structure."
        )
    paths = [path for path, _ in tree_flatten_with_path(tree_unflatten(body1.out_tree, body1.out_avals))[0]]
    differences = [
        f"the output of {name1}{at_path(path)} has type {a.str_short()} but the corresponding output of "
        f"{name2} has type {b.str_short()}, so {common.type_difference(a, b)}"
        for path, a, b in zip(paths, body1.out_avals, body2.out_avals, strict=True)
        if not same_type(a, b)
    ]
    if differences:
        raise TypeError(
            f"{what} branches must have equal output types but they differ.\n\n{places}"
            f"{common.listed(differences)}\n\n{revise}all output types match."
        )


def structure_differences(name1: str, name2: str, tree1, tree2) -> str:
    """How the structures of two branches' results differ."""
    differences = [
        f"{name1} output{at_path(path)} is a {a} but {name2} output{at_path(path)} is a {b}, so {reason}"
        for path, a, b, reason in equality_errors_treedef(tree1, tree2)
    ]
    if not differences:
        return f"{name1} output tree structure is:\n{tree1}\n{name2} output tree structure is:\n{tree2}"
    return f"{differences[0]}." if len(differences) == 1 else common.listed(differences)


def at_path(path) -> str:
    return f" at path {keystr(path)}" if path else ""
