"""The program of one device: the function in a ``shard_map``, its collectives as calls of the device's communicator.

A jaxpr becomes a jaxpr over the same local shapes, without named axes, that is compiled once for all devices. Axes of
arrays are moved by ordinary operations, which the compiler sees; a communicator is handed whole rows. It is called in
the order of the program, in loops and branches too, and no call is left out that another device makes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from catena.core.aval import ShapedArray
from catena.core.axes import move_axis
from catena.core.context import context
from catena.core.errors import JaxRuntimeError
from catena.core.jaxpr import ClosedJaxpr, Literal, eval_jaxpr, with_jaxprs
from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.core.primitive import NoRule, Primitive
from catena.core.staging import trace_to_jaxpr
from catena.core.zeros import get_aval, zeros
from catena.lax import collectives, exchanges, named_axes, varying
from catena.lax.identity import optimization_barrier_p
from catena.lax.ragged_exchange import ragged_all_to_all_p, received, row_of
from catena.lax.shape import reshape
from catena.parallel.communicator import running
from catena.parallel.packing import in_messages, packed
from catena.parallel.region import outside
from catena.parallel.vectorised import as_whole, without_types
from catena.transform.memo import memoised

mpi_calls = LazyModule("catena.parallel.executors.mpi_calls")

# ---- the primitive: a call of the communicator


def perform(*operands: np.ndarray, kind: str, names: tuple, partition, detail, where: str, **params) -> np.ndarray:
    """What a collective gives the device whose program runs in this thread."""
    communicator = running.communicator
    if communicator is None:
        raise JaxRuntimeError(f"the program of one device ran outside of its mesh; its collective is {where}")
    if kind == "index":
        return np.asarray(communicator.index(names), np.int32)
    communicator.where = where
    group = communicator.group(names, partition)
    own = np.ascontiguousarray(operands[0])
    given = () if detail is None else (detail,)
    return getattr(group, kind)(own.reshape(operands[0].shape), *given)


SHAPES: dict[str, Callable] = {
    "index": lambda size: (),
    "reduce": lambda size, shape: shape,
    "permute": lambda size, shape: shape,
    "broadcast": lambda size, shape: shape,
    "exchange": lambda size, shape: shape,
    "gather": lambda size, shape: (size, *shape),
    "scatter_sum": lambda size, shape: shape[1:],
}


def _abstract(*avals, kind, size, **params):
    if not avals:
        return ShapedArray((), np.dtype(np.int32))
    return avals[0].update(shape=SHAPES[kind](size, avals[0].shape))


def _lower(b, *operands, **params):
    kind, shapes = params["kind"], [x.shape for x in operands]
    dtype = operands[0].dtype if operands else np.dtype(np.int32)
    out = ShapedArray(SHAPES[kind](params["size"], *shapes), dtype)
    call = functools.partial(perform, **params)
    if params["native"] and operands:
        call = mpi_calls.native_call(*shapes, dtype, params, call) or call
    return b.host_call(call, operands, [out], ordered=True)[0]


ONCE = NoRule("the program of one device is made when all transformations are done")
communicate_p = Primitive(
    "communicate",
    abstract=_abstract,
    evaluate=perform,
    jvp=ONCE,
    transpose=ONCE,
    batch=ONCE,
    lower=_lower,
    sharding=NoRule("it is part of the program of one device, whose arrays have no parts"),
)


# ---- collectives in terms of it


class Axes(NamedTuple):
    """The sizes of the axes of the mesh; and where the device stands along them, if the program is for it alone."""

    sizes: dict
    place: dict | None


class Along:
    """Devices along named axes, perhaps in groups, and what a value becomes by their collectives."""

    def __init__(self, names, partition, axes: Axes):
        self.names, self.partition, self.axes = tuple(names), partition, axes
        along = [axes.sizes[name] for name in self.names]
        self.size = int(np.prod(along, dtype=int)) if partition is None else len(partition[0])

    @property
    def own(self) -> int | None:
        """The number of the device that the program is for, if it is for one alone."""
        place = self.axes.place
        along = [self.axes.sizes[name] for name in self.names]
        return None if place is None else int(np.ravel_multi_index([place[name] for name in self.names], along))

    def __call__(self, kind: str, *operands, detail=None):
        where = f"{kind}{'' if detail is None else f' ({detail})'} at {context.source or 'a line that nobody noted'}"
        params = {"kind": kind, "names": self.names, "partition": self.partition, "size": self.size}
        return communicate_p.bind(*operands, **params, detail=detail, where=where, native=self.axes.place is not None)


def reduction(operation: str) -> Callable:
    def rule(mesh, *args, axes, axis_index_groups=None):
        along = Along(axes, axis_index_groups, mesh)
        return in_messages(args, lambda x: along("reduce", x, detail=operation)) if axes else list(args)

    return rule


def _psum_invariant(mesh, x, *, axes):
    return Along(axes, None, mesh)("reduce", x, detail="sum")


def _gather(axes, x, *, axis_name, all_gather_dimension, axis_size, tiled, axis_index_groups=None):
    rows = move_axis(Along(axis_name, axis_index_groups, axes)("gather", x), 0, all_gather_dimension)
    return merged(rows, all_gather_dimension) if tiled else rows


def _scatter(axes, x, *, axis_name, scatter_dimension, axis_size, tiled, axis_index_groups):
    along = Along(axis_name, axis_index_groups, axes)
    x = cut(x, scatter_dimension, along.size) if tiled else x
    return along("scatter_sum", move_axis(x, scatter_dimension, 0))


def _exchange(axes, x, *, axis_name, split_axis, concat_axis, axis_size, axis_index_groups):
    along = Along(axis_name, axis_index_groups, axes)
    rows = along("exchange", move_axis(cut(x, split_axis, along.size), split_axis, 0))
    return merged(move_axis(rows, 0, concat_axis), concat_axis)


def _permute(axes, x, *, axis_name, perm):
    if not perm:
        return zeros(get_aval(x))
    along = Along(axis_name, None, axes)
    got = along("permute", x, detail=perm)
    if along.own is None or along.own in dict(perm).values():
        return got
    return optimization_barrier_p.bind(got, zeros(get_aval(x)))[1]  # a call that only sends writes no result


def _broadcast(axes, x, *, axis_name, source):
    return Along(axis_name, None, axes)("broadcast", x, detail=source)


def _index(axes, *, axis_name, varies=False):
    return Along((axis_name,), None, axes)("index") if axes.place is None else np.int32(axes.place[axis_name])


def _ragged(axes, operand, output, starts, lengths, targets, _, *, axis_name, axis_index_groups, adds=False):
    """Everybody has all operands, and is told which rows of each are for it."""
    along = Along(axis_name, axis_index_groups, axes)
    rows = along("gather", operand)
    n = along.size
    places = [along("exchange", reshape(x, (n, get_aval(x).shape[0] // n))) for x in (starts, lengths, targets)]
    for sender in range(n):
        output = received(row_of(rows, sender), output, [row_of(x, sender) for x in places], 0, 1, adds)
    return output


def cut(x, axis: int, count: int):
    """``x`` with an axis cut into ``count`` parts."""
    shape = get_aval(x).shape
    return reshape(x, (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :]))


def merged(x, axis: int):
    """``x`` with two neighbouring axes as one."""
    shape = get_aval(x).shape
    return reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


RULES: dict[Primitive, Callable] = {
    collectives.psum_p: reduction("sum"),
    collectives.pmax_p: reduction("max"),
    collectives.pmin_p: reduction("min"),
    varying.psum_invariant_p: _psum_invariant,
    exchanges.all_gather_p: _gather,
    exchanges.all_gather_invariant_p: _gather,
    exchanges.reduce_scatter_p: _scatter,
    exchanges.all_to_all_p: _exchange,
    exchanges.ppermute_p: _permute,
    exchanges.pbroadcast_p: _broadcast,
    named_axes.axis_index_p: _index,
    ragged_all_to_all_p: _ragged,
}


# ---- the program


@memoised
def local_program(closed: ClosedJaxpr, sizes: tuple, place: tuple | None = None) -> ClosedJaxpr:
    """The program of one device of a mesh, which calls its communicator.

    Arguments:
      closed: what a ``shard_map`` traced.
      sizes: the names and sizes of the axes.
      place: where the device stands along each, if the program is for this one alone: then it calls MPI itself.
    """
    with outside():
        return with_calls(without_types(closed), Axes(dict(sizes), None if place is None else dict(place)))


def with_calls(closed: ClosedJaxpr, axes: Axes) -> ClosedJaxpr:
    """A jaxpr with its collectives along these axes as calls, those in bodies inside it too."""
    closed = packed(closed)
    jaxpr = closed.jaxpr

    def fun(*args):
        env = dict(zip(jaxpr.constvars, closed.consts, strict=True)) | dict(zip(jaxpr.invars, args, strict=True))
        read = lambda v: v.val if type(v) is Literal else env[v]  # noqa: E731
        before = context.source
        try:
            for eqn in jaxpr.eqns:
                context.source = eqn.source or before
                out = applied(eqn, [read(v) for v in eqn.invars], axes)
                env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else (out,), strict=True))
        finally:
            context.source = before
        return [read(v) for v in jaxpr.outvars]

    traced, consts = trace_to_jaxpr(fun, closed.in_avals, jaxpr.debug_info)
    return ClosedJaxpr(traced, consts)


def applied(eqn, values: list, axes: Axes):
    """What an equation gives."""
    rule = RULES.get(eqn.primitive)
    if rule is not None:
        return rule(axes, *values, **eqn.own_params)
    if eqn.primitive.name == "shard_map":  # over axes that are left: all of them on this device
        whole = with_calls(as_whole(eqn.own_params), axes)
        return eval_jaxpr(whole.jaxpr, whole.consts, *values)
    return eqn.primitive.bind(*values, **with_jaxprs(lambda inner: with_calls(inner, axes), eqn.own_params))
