"""What all control flow shares: tracing bodies, comparing their types, and running one equation natively."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence

from catena.core import config, dtypes
from catena.core.aval import same_type
from catena.core.context import context, set_trace
from catena.core.effects import check_effects, control_flow_allowed_effects
from catena.core.evaluate import varying_axes
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from catena.core.named import NamedTuple
from catena.core.ref import Cell
from catena.core.source import function_place
from catena.core.staging import DebugInfo, hoist_constants, trace_to_jaxpr
from catena.core.trace import Tracer, leaf_value
from catena.core.tree import LEAF as LEAF
from catena.core.tree import PyTreeDef, tree_flatten, tree_flatten_with_path, tree_unflatten
from catena.core.tree_errors import equality_errors_treedef
from catena.core.tree_keys import keystr
from catena.core.zeros import get_aval
from catena.lax.convert import convert
from catena.transform.arguments import argument_names, leaf_paths
from catena.transform.canonical import canonical, traced_bodies
from catena.transform.execute import run_jaxpr
from catena.transform.memo import memoised

# ---- values


def flatten_values(tree) -> tuple[list, PyTreeDef]:
    """The leaves of a tree as values of the language, and its structure."""
    leaves, treedef = tree_flatten(tree)
    return [leaf_value(x) for x in leaves], treedef


def is_concrete(x) -> bool:
    """Whether the value of ``x`` is known in Python: not traced, or only differentiated."""
    return not isinstance(x, Tracer) or x.concrete_value() is not None


def jit_is_disabled() -> bool:
    """Whether loops and branches run step by step in Python, so that functions see concrete values."""
    return config.read("jax_disable_jit")


# ---- tracing


class Body(NamedTuple):
    """A traced function: its jaxpr, the values for its leading arguments (what it closes over), the result's tree."""

    jaxpr: ClosedJaxpr
    consts: list
    out_tree: PyTreeDef

    @property
    def out_avals(self) -> list:
        return self.jaxpr.out_avals


def trace_body(fun: Callable, in_tree: PyTreeDef, in_avals: Sequence, name: str, adapt: Callable | None = None) -> Body:
    """The body ``fun`` traced for arguments of these types; remembered while the function lives.

    Arguments:
      fun: a function of trees.
      in_tree: the structure of its tuple of arguments.
      in_avals: the types of their leaves.
      name: what it is traced for, in error messages.
      adapt: from ``fun`` to the function that is traced in its place.
    """
    key = (
        in_tree,
        tuple(in_avals),
        name,
        adapt,
        context.global_key,
        context.local_key,
        tuple(context.axis_env.items()),
    )
    known = traces_of(fun)
    found = known.get(key)
    if found is None:
        found = _trace_body(fun, in_tree, in_avals, name, adapt)
        if not any(isinstance(c, Tracer) for c in found.consts):
            known[key] = found
    return found


def traces_of(fun: Callable) -> dict:
    """What is remembered of a body, by types: of functions, and of objects of classes with an equality of their own,
    which hold all that tells them apart. Another object may change between calls.
    """
    if type(fun) is not types.FunctionType and type(fun).__hash__ in (object.__hash__, None):
        return {}
    try:
        return traced_bodies.setdefault(fun, {})
    except TypeError:  # not hashable after all, or without weak references
        return {}


def _trace_body(fun, in_tree, in_avals, name, adapt) -> Body:
    call = fun if adapt is None else adapt(fun)
    result: dict = {}

    def flat(*leaves):
        outs, result["tree"] = tree_flatten(call(*tree_unflatten(in_tree, leaves)))
        return outs

    def paths():
        return leaf_paths(result["tree"])

    names = argument_names(call, tree_unflatten(in_tree, list(in_avals)), {})
    jaxpr, consts = trace_to_jaxpr(flat, in_avals, DebugInfo(name, function_place(fun), names, paths))
    if jaxpr.effects:
        check_effects(jaxpr.effects, control_flow_allowed_effects, f"`{name}`")
    info = DebugInfo(name, function_place(fun), [None] * len(consts) + names)
    hoisted = hoist_constants(jaxpr).replace(debug_info=info, effects=jaxpr.effects)
    return Body(canonical(ClosedJaxpr(hoisted, [])), consts, result["tree"])


def with_common_consts(bodies: Sequence[Body]) -> tuple[tuple, list]:
    """The jaxprs of bodies that are called with the same operands, each taking the constants of all of them first."""
    consts = {id(c): c for body in bodies for c in body.consts}
    position = {key: i for i, key in enumerate(consts)}
    places = tuple(tuple(position[id(c)] for c in body.consts) for body in bodies)
    jaxprs = tuple(body.jaxpr for body in bodies)
    avals = tuple(get_aval(c) for c in consts.values())
    return with_constant_places(jaxprs[0], jaxprs, places, avals), list(consts.values())


@memoised
def with_constant_places(first, jaxprs: tuple, places: tuple, avals: tuple) -> tuple:
    """The jaxprs with leading arguments of the types ``avals``, of which each reads those at its places."""
    return tuple(widened(closed, place, avals) for closed, place in zip(jaxprs, places, strict=True))


def widened(closed: ClosedJaxpr, place: tuple, avals: tuple) -> ClosedJaxpr:
    own, others = split(closed.jaxpr.invars, len(place))
    invars = [Var(a) for a in avals]
    for i, v in zip(place, own, strict=True):
        invars[i] = v
    return with_invars(closed, invars + others)


# ---- the same jaxpr with other arguments or results


def with_invars(closed: ClosedJaxpr, invars: list[Var]) -> ClosedJaxpr:
    """The jaxpr with its arguments in another order, and possibly others that it does not read."""
    jaxpr = closed.jaxpr
    return ClosedJaxpr(
        Jaxpr(jaxpr.constvars, invars, jaxpr.outvars, jaxpr.eqns, jaxpr.effects, unnamed(jaxpr)),
        closed.consts,
    )


def with_outvars(closed: ClosedJaxpr, outvars: list) -> ClosedJaxpr:
    """The jaxpr with other results."""
    jaxpr = closed.jaxpr
    return ClosedJaxpr(
        Jaxpr(jaxpr.constvars, jaxpr.invars, outvars, jaxpr.eqns, jaxpr.effects, unnamed(jaxpr)),
        closed.consts,
    )


def unnamed(jaxpr: Jaxpr) -> DebugInfo | None:
    """What the jaxpr was traced from, without the names of its arguments, which no longer fit."""
    info = jaxpr.debug_info
    return DebugInfo(info.traced_for, info.func_src_info) if info is not None else None


def retraced(fun: Callable, in_avals, like: ClosedJaxpr) -> ClosedJaxpr:
    """``fun`` traced, with what is known of the function that ``like`` came from."""
    return ClosedJaxpr(*trace_to_jaxpr(fun, in_avals, unnamed(like.jaxpr) or DebugInfo("control flow", "a jaxpr")))


def take(items: Sequence, order: Sequence[int]) -> list:
    """The items at these positions."""
    return [items[i] for i in order]


def split(items: Sequence, *sizes: int) -> list[list]:
    """The items in groups of these sizes, and a last group of the rest."""
    groups, start = [], 0
    for n in sizes:
        groups.append(list(items[start : start + n]))
        start += n
    return [*groups, list(items[start:])]


def partition(items: Sequence, flags: Sequence[bool]) -> tuple[list, list]:
    """The items without and those with a flag."""
    pairs = list(zip(items, flags, strict=True))
    return [x for x, f in pairs if not f], [x for x, f in pairs if f]


def merge(flags: Sequence[bool], unflagged, flagged) -> list:
    """The inverse of ``partition``."""
    unflagged, flagged = iter(unflagged), iter(flagged)
    return [next(flagged) if f else next(unflagged) for f in flags]


def either(a: Sequence[bool], b: Sequence[bool]) -> tuple:
    """Elementwise ``or``."""
    return tuple(x or y for x, y in zip(a, b, strict=True))


def evaluates_alone(primitive, closed: ClosedJaxpr, in_avals: tuple, params: dict, numbers: tuple) -> ClosedJaxpr:
    """A jaxpr that applies ``primitive`` once, remembered on ``closed``, one of its parameters.

    Arguments:
      in_avals: the types of the arguments of the jaxpr.
      numbers: for each operand the argument that it is.
    """
    key = ("alone", primitive, in_avals, tuple(params.items()), numbers)
    found = closed.memo.get(key)
    if found is None:
        invars = [Var(a) for a in in_avals]
        operands = [invars[i] for i in numbers]
        avals = tuple([v.aval for v in operands])
        outvars = [Var(a) for a in primitive.abstract(*avals, **params)]
        eqn = Eqn(operands, outvars, primitive, params, primitive.effects(avals, params))
        found = closed.memo[key] = ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], None, closed.jaxpr.debug_info), [])
    return found


def run_alone(primitive, closed: ClosedJaxpr, args, params: dict) -> list:
    """Evaluate one application of a loop primitive as a native program.

    Arguments:
      primitive: the primitive.
      closed: one of the jaxprs among its parameters; the program is remembered with it.
      args: concrete arguments.
      params: its parameters.
    """
    args = [leaf_value(x) for x in args]
    distinct, numbers = without_repeated_references(args)
    program = evaluates_alone(primitive, closed, tuple(get_aval(x) for x in distinct), params, numbers)
    return run_jaxpr(program, distinct, primitive, (), primitive.name)


def without_repeated_references(args: list) -> tuple[list, tuple]:
    """The arguments, each reference once, and for each its number among these: the condition and the body of a loop may
    close over the same one.
    """
    distinct: list = []
    places: dict = {}
    numbers = []
    for x in args:
        number = places.get(id(x)) if type(x) is Cell else None
        if number is None:
            number = places[id(x)] = len(distinct)
            distinct.append(x)
        numbers.append(number)
    return distinct, tuple(numbers)


# ---- errors: what differs, and where


def check_same_tree(expected: PyTreeDef, found: PyTreeDef, avals, out_avals, what: str, carry_name: str):
    """Raise where the carry that a body returns has another structure than the one it takes."""
    if expected == found:
        return
    differences = [
        f"the input carry {component(carry_name, path)} is {node(first)} but the corresponding component of the "
        f"carry output is {node(second)}, so {reason}"
        for path, first, second, reason in equality_errors_treedef(expected, found)
    ]
    if not differences:
        differences = [f"the input tree structure is:\n{expected}\nthe output tree structure is:\n{found}"]
    raise TypeError(
        f"{what} function carry input and carry output must have the same pytree structure, but they "
        "differ:\n\n"
        f"{listed(differences)}\n\n"
        "Revise the function so that the carry output has the same pytree structure as the carry input."
    )


def node(description: str) -> str:
    """What stands at a place of a tree, with its article."""
    return "an array" if description == "pytree leaf" else f"a {description}"


def check_same_types(tree: PyTreeDef, avals, out_avals, what: str, carry_name: str):
    """Raise where a component of the carry that a body returns has another type than the one it takes."""
    paths = [path for path, _ in tree_flatten_with_path(tree_unflatten(tree, list(avals)))[0]]
    differences = [
        f"the input carry {component(carry_name, path)} has type {a.str_short()} but the corresponding "
        f"output carry component has type {b.str_short()}, so {type_difference(a, b)}"
        for path, a, b in zip(paths, avals, out_avals, strict=True)
        if not same_type(a, b)
    ]
    if differences:
        raise TypeError(
            f"{what} function carry input and carry output must have equal types, but they differ:\n\n"
            f"{listed(differences)}\n\n"
            "Revise the function so that all output types match the corresponding input types."
        )


def component(name: str, path) -> str:
    """``c`` for the whole carry, ``component c[0]`` for a part of it."""
    return f"component {name}{keystr(path)}" if path else name


def type_difference(a, b) -> str:
    """In what two types differ."""
    parts = []
    if a.dtype != b.dtype:
        parts.append("the dtypes do not match")
    if a.shape != b.shape:
        parts.append("the shapes do not match")
    if missing := sorted(varying_axes(a) ^ varying_axes(b)):
        names = ", ".join(map(repr, missing))
        parts.append(
            f"the manual axis types do not match (jax.lax.pcast(..., ({names},), to='varying') makes a value vary)"
        )
    return ", and ".join(parts)


def listed(differences: list[str]) -> str:
    """One difference as a sentence, several as a list."""
    if len(differences) == 1:
        return f"{differences[0][0].upper()}{differences[0][1:]}."
    return ";\n".join(f"  * {d}" for d in differences) + "."


# ---- weak types


def promoted(avals, out_avals) -> list:
    """The types of a carry whose weakly typed components give way to the dtypes that the body returns."""
    return [promote_one(a, b) for a, b in zip(avals, out_avals, strict=True)]


def promote_one(aval, out):
    if not aval.weak_type or aval.dtype == out.dtype or dtypes.is_extended(out.dtype):
        return aval
    dtype, _ = dtypes.promote_pair(aval.dtype, True, out.dtype, out.weak_type)
    return aval.update(dtype=dtype, weak_type=False)


def converted(values, avals) -> list:
    """The values with the dtypes and weakness of these types."""
    return [with_type(x, a) for x, a in zip(values, avals, strict=True)]


def with_type(x, aval):
    """``x`` with the dtype and weakness of ``aval``; constants are converted now, also while tracing."""
    if get_aval(x) is aval or dtypes.is_extended(aval.dtype):
        return x
    with set_trace(context.trace if isinstance(x, Tracer) else None):
        return convert(x, aval.dtype, aval.weak_type)
