"""Stacks: what loops of unknown length remember for the way back, and the loop that reads and writes them.

A stack is a growing list of items of one type (``core/stack.py``). ``while_save`` fills stacks with what each
iteration leaves for the derivative; ``stack_scan`` runs a body ``n`` times over the items of stacks, forwards or
backwards, and fills new ones: it is ``scan`` with stacks in place of arrays, and has its rules. Reading beyond the end
gives zeros, so the empty stack stands for zeros of any length.

In compiled programs a stack is an address; the loops below become plain ``while`` loops whose bodies read and write
stacks (the ``lower`` rule of ``stack_scan``).
"""

import functools

import numpy as np

from catena.core.array import typed_array
from catena.core.aval import ShapedArray
from catena.core.axes import at_front
from catena.core.failures import FOUND, note_iteration
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.primitive import NoRule, Primitive, as_bodies_say
from catena.core.stack import stack_aval
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.structural import stack_add_p, stack_empty_p
from catena.core.trace import leaf_value
from catena.core.zeros import Zero, add_tangents, get_aval
from catena.lax.arithmetic import add_p, max_p, sub_p
from catena.lax.comparison import lt_p
from catena.lax.control_flow import common
from catena.lax.control_flow.loop_rules import loop_jvp, loop_partial_eval, loop_prune, loop_transpose
from catena.lax.control_flow.per_lane import batch_per_lane
from catena.lax.control_flow.scan import scan_p
from catena.runtime import stacks as runtime
from catena.transform import interpreted
from catena.transform.call_primitive import CallPrimitive, lift_body
from catena.transform.execute import physical_type
from catena.transform.jit_primitive import jaxpr_axis_names
from catena.transform.memo import memoised

INT = ShapedArray((), np.int32)

# ---- single stacks

COMPILED = NoRule("it stands only in the loops of compiled programs, which are not transformed any more")

stack_empty_p.define(
    abstract=lambda *, item: stack_aval(item),
    evaluate=lambda *, item: runtime.empty_stacks(()),
    jvp=NoRule("it has no arguments"),
    transpose=NoRule("it has no arguments"),
    batch=NoRule("it has no arguments"),
    lower=lambda b, *, item: b.constant(np.zeros((), np.uint64)),
)


def _length_batch(axis, args, dims):
    outs, out_dims = batch_per_lane(stack_length_p, axis, args, dims, {})
    return outs[0], out_dims[0]


stack_length_p = Primitive(
    "stack_length",
    abstract=lambda stack: INT,
    evaluate=lambda stack: np.asarray(len(stack[()]), np.int32),
    jvp=lambda primals, tangents: (stack_length_p.bind(*primals), Zero(INT.to_tangent_aval())),
    transpose=NoRule("an integer does not depend linearly on anything"),
    batch=_length_batch,
    lower=lambda b, stack: b.stack_length(stack),
)

stack_write_p = Primitive(  # (stack, i, item) -> the same stack with item i replaced or added, in place
    "stack_write",
    abstract=lambda stack, i, item: stack,
    evaluate=COMPILED, jvp=COMPILED, transpose=COMPILED, batch=COMPILED,
    lower=lambda b, stack, i, item: b.stack_write(stack, i, item),
)  # fmt: skip

stack_read_p = Primitive(  # (stack, i) -> item i, or zeros beyond the end
    "stack_read",
    abstract=lambda stack, i, *, item: item,
    evaluate=COMPILED, jvp=COMPILED, transpose=COMPILED, batch=COMPILED,
    lower=lambda b, stack, i, *, item: b.stack_read(stack, i, *physical_type(item)),
)  # fmt: skip


# ---- the loop over stacks


def _abstract(*avals, jaxpr, num_consts, num_carry, **params):
    carry, ys = common.split(jaxpr.out_avals, num_carry)
    return [*carry, *[stack_aval(a) for a in ys]]


def _evaluate(*args, **params):
    if common.jit_is_disabled():
        return common.converted(run_steps(args, **params), _abstract(**params))
    return common.run_alone(stack_scan_p, params["jaxpr"], args, params)


def run_steps(args, *, jaxpr, num_consts, num_carry, reverse) -> list:
    """Run the loop iteration by iteration in Python, operation by operation."""
    n, *args = [leaf_value(x) for x in args]
    consts, carry, xs = common.split(args, num_consts, num_carry)
    rows = []
    for i in reversed(range(int(n))) if reverse else range(int(n)):
        items = [read(x, i) for x in xs]
        outs = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *consts, *carry, *items)
        carry = outs[:num_carry]
        rows.append(outs[num_carry:])
    if reverse:
        rows.reverse()
    return [*carry, *collect(rows, jaxpr.out_avals[num_carry:])]


def _interpreted(*, jaxpr, num_consts, num_carry, reverse):
    """The loop on NumPy values, where there is no compiler."""
    body = interpreted.steps(jaxpr)
    item_avals = jaxpr.in_avals[num_consts + num_carry :]

    def run(n, *values) -> list:
        consts, carry, xs = common.split(values, num_consts, num_carry)
        made: list = [[] for _ in jaxpr.out_avals[num_carry:]]
        for i in reversed(range(int(n))) if reverse else range(int(n)):
            rows = [x[()].read(i, a) for x, a in zip(xs, item_avals, strict=True)]
            try:
                outs = body(*consts, *carry, *rows)
            except FOUND as error:
                note_iteration(error, i)
                raise
            carry = outs[:num_carry]
            for items, item in zip(made, outs[num_carry:], strict=True):
                items.append(item)
        return [*carry, *[runtime.one_stack(runtime.Stack(items[::-1] if reverse else items)) for items in made]]

    return run


def read(stack, i: int):
    """Item ``i`` of a concrete stack."""
    item = get_aval(stack).dtype.item
    return typed_array(stack._value[()].read(i, item), item)


def collect(rows: list[list], avals) -> list:
    """Stacks of the columns of ``rows``."""
    columns = [[np.asarray(leaf_value(row[k])._value) for row in rows] for k in range(len(avals))]
    return [
        typed_array(runtime.one_stack(runtime.Stack(c)), stack_aval(a)) for c, a in zip(columns, avals, strict=True)
    ]


def _batch(axis, args, dims, **params):
    return batch_per_lane(stack_scan_p, axis, args, dims, params)


def _lower(b, n, *operands, jaxpr, num_consts, num_carry, reverse):
    consts, carry, xs = common.split(operands, num_consts, num_carry)
    test, body = counted_loop(jaxpr, num_consts, num_carry, reverse)
    made = [b.stack_new(*physical_type(a)) for a in jaxpr.out_avals[num_carry:]]
    start = b.constant(np.zeros((), np.int32))
    outs = b.while_loop(test, [n], body, [n, *consts, *xs], [start, *carry, *made])
    return outs[1:]


@memoised
def counted_loop(jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, reverse: bool):
    """The condition and the body of a ``while`` loop that runs ``jaxpr`` over stacks.

    The condition maps ``[n, k, *carry, *made]``, the body ``[n, *consts, *stacks, k, *carry, *made]``.
    """
    consts, carry, items = common.split(jaxpr.in_avals, num_consts, num_carry)
    stacks = [stack_aval(a) for a in items]
    made_avals = [stack_aval(a) for a in jaxpr.out_avals[num_carry:]]

    def body(n, *args):
        consts_in, stacks_in, (k, *state) = common.split(args, num_consts, len(stacks))
        i = sub_p.bind(sub_p.bind(n, k), np.int32(1)) if reverse else k
        xs = [stack_read_p.bind(s, i, item=a) for s, a in zip(stacks_in, items, strict=True)]
        outs = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *consts_in, *state[:num_carry], *xs)
        made = [stack_write_p.bind(s, i, y) for s, y in zip(state[num_carry:], outs[num_carry:], strict=True)]
        return [add_p.bind(k, np.int32(1)), *outs[:num_carry], *made]

    def test(n, k, *state):
        return [lt_p.bind(k, n)]

    info = DebugInfo("stack_scan", "a loop over stacks")
    state_avals = [INT, *carry, *made_avals]
    return (
        ClosedJaxpr(*trace_to_jaxpr(test, [INT, *state_avals], info)),
        ClosedJaxpr(*trace_to_jaxpr(body, [INT, *consts, *stacks, *state_avals], info)),
    )


stack_scan_p = CallPrimitive(
    "stack_scan",
    lift=lift_body(before=lambda params: 1, count="num_consts"),
    multiple_results=True,
    takes_arrays=True,
    effects=lambda avals, params: params["jaxpr"].effects,
    axis_names=lambda params: jaxpr_axis_names(params["jaxpr"]),
    abstract=_abstract,
    varying=as_bodies_say,
    evaluate=_evaluate,
    batch=_batch,
    lower=_lower,
)
stack_scan_p.jvp = loop_jvp(stack_scan_p, 1)
stack_scan_p.partial_eval = loop_partial_eval(stack_scan_p, 1)
stack_scan_p.transpose = loop_transpose(stack_scan_p, 1)
stack_scan_p.prune = loop_prune(1)
interpreted.calls[stack_scan_p] = _interpreted


# ---- sums of stacks: cotangents that meet


def added(x, y, *, aval):
    """The sum of two stacks, or arrays of stacks, of the type ``aval``, item by item."""
    if aval.shape:
        body = add_jaxpr(aval.without_axis(0))
        sizes = {"length": aval.shape[0], "num_carry": 0, "num_consts": 0}
        return scan_p.bind(x, y, jaxpr=body, reverse=False, unroll=1, **sizes)[0]
    n = max_p.bind(stack_length_p.bind(x), stack_length_p.bind(y))
    body = add_jaxpr(aval.dtype.item)
    return stack_scan_p.bind(n, x, y, jaxpr=body, num_consts=0, num_carry=0, reverse=False)[0]


@functools.cache
def add_jaxpr(aval) -> ClosedJaxpr:
    """The jaxpr of one addition."""
    return ClosedJaxpr(*trace_to_jaxpr(lambda x, y: [add_tangents(x, y)], [aval, aval], SUM))


@functools.cache
def sum_jaxpr(aval) -> ClosedJaxpr:
    """The jaxpr of ``added``."""
    return ClosedJaxpr(*trace_to_jaxpr(lambda x, y: [added(x, y, aval=aval)], [aval, aval], SUM))


SUM = DebugInfo("transposition", "a sum of stacks")


def _add_batch(axis, args, dims, *, aval):
    x, y = [at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)]
    return stack_add_p.bind(x, y, aval=aval.with_axis(0, axis.size)), 0


stack_add_p.define(
    takes_arrays=True,
    abstract=lambda x, y, *, aval: aval,
    evaluate=added,
    jvp=lambda primals, tangents, *, aval: (stack_add_p.bind(*primals, aval=aval), add_tangents(*tangents)),
    transpose=lambda ct, x, y, *, aval: [ct, ct],
    batch=_add_batch,
    lower=lambda b, x, y, *, aval: b.call(sum_jaxpr(aval), [x, y])[0],
)
