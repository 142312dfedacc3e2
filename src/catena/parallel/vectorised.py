"""A ``shard_map`` on one processor: the program of one device, vectorised over the axes of the mesh.

The part of each device is a row; a collective works on the rows. What a device would send another is then a permutation
of rows, which the compiler sees, and a value that is the same on all devices is computed once.
"""

from __future__ import annotations

from catena.core.axes import at_front
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, eval_jaxpr, with_jaxprs
from catena.core.primitive import pcast_p, pvary_p
from catena.core.staging import trace_to_jaxpr
from catena.core.structural import slice_p, squeeze_p
from catena.core.zeros import get_aval
from catena.lax.named_axes import axis_index_p
from catena.lax.shape import reshape
from catena.lax.shape import transpose as transpose_axes
from catena.parallel.region import Region, outside
from catena.parallel.specs import partition_of, spec_names, untyped
from catena.transform.batch import Axis, batch_flat
from catena.transform.memo import memoised


@memoised
def vectorised(closed: ClosedJaxpr, region: Region, in_specs: tuple, out_specs: tuple) -> ClosedJaxpr:
    """The program of one device as a program of whole arrays, without named axes."""
    body = without_types(closed)

    def fun(*args):
        rows = [cut(x, spec, region) for x, spec in zip(args, in_specs, strict=True)]
        outs = over_axes(body, region, 0, rows, in_specs, out_specs)
        return [joined(x, spec, region) for x, spec in zip(outs, out_specs, strict=True)]

    avals = [whole(a, spec, region) for a, spec in zip(body.in_avals, in_specs, strict=True)]
    with outside():
        jaxpr, consts = trace_to_jaxpr(fun, avals, closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts)


def region_of(params: dict) -> Region:
    """The region of the call of ``shard_map`` with these parameters."""
    axes = tuple(name for name in params["mesh"].axis_names if name in params["newly_manual_axes"])
    return Region(params["mesh"], axes, params["check_vma"])


def as_whole(params: dict) -> ClosedJaxpr:
    """That call as a program of whole arrays."""
    return vectorised(params["jaxpr"], region_of(params), params["in_specs"], params["out_specs"])


def whole_types(params: dict) -> tuple[list, list]:
    """The plain types of the arguments and results of that program."""
    region, jaxpr = region_of(params), params["jaxpr"]
    pairs = (jaxpr.in_avals, params["in_specs"]), (jaxpr.out_avals, params["out_specs"])
    return tuple(
        [whole(untyped(a), spec, region) for a, spec in zip(avals, specs, strict=True)] for avals, specs in pairs
    )


def over_axes(body: ClosedJaxpr, region: Region, k: int, args, in_specs, out_specs) -> list:
    """Run ``body`` over the axes of the mesh from number ``k`` on; rows along an axis stand in front."""
    if k == len(region.axes):
        return eval_jaxpr(body.jaxpr, body.consts, *args)
    name = region.axes[k]
    axis = Axis(name, region.mesh.shape[name], on_devices=True)
    dims = [0 if name in spec_names(spec) else None for spec in in_specs]
    run = lambda *xs: over_axes(body, region, k + 1, xs, in_specs, out_specs)  # noqa: E731
    outs, dims = batch_flat(run, axis, args, dims)
    return [
        at_front(axis.size, x, d) if name in spec_names(spec) else of_first(x, d)
        for x, d, spec in zip(outs, dims, out_specs, strict=True)
    ]


def of_first(x, dim):
    """What the first device along an axis has."""
    if dim is None:
        return x
    shape = get_aval(x).shape
    first = tuple(1 if i == dim else n for i, n in enumerate(shape))
    row = slice_p.bind(x, start_indices=(0,) * len(shape), limit_indices=first, strides=None)
    return squeeze_p.bind(row, dimensions=(dim,))


def whole(aval, spec, region: Region):
    """The plain type of an array whose parts have the type ``aval``."""
    parts = partition_of(spec, aval.ndim)
    return aval.update(shape=tuple(n * region.size(names) for n, names in zip(aval.shape, parts, strict=True)))


def in_mesh_order(spec, region: Region) -> list:
    return [name for name in region.axes if name in spec_names(spec)]


def cut(x, spec, region: Region):
    """The parts of an array: an axis in front for each axis of the mesh that it is split over, in the mesh's order."""
    names = in_mesh_order(spec, region)
    if not names:
        return x
    shape, places = [], {}
    for n, split in zip(get_aval(x).shape, partition_of(spec, get_aval(x).ndim), strict=True):
        for name in split:
            places[name] = len(shape)
            shape.append(region.mesh.shape[name])
        shape.append(n // region.size(split))
    front = [places[name] for name in names]
    order = [*front, *(i for i in range(len(shape)) if i not in front)]
    x = reshape(x, tuple(shape))
    return x if order == sorted(order) else transpose_axes(x, order)


def joined(x, spec, region: Region):
    """The array whose parts ``x`` holds, as ``cut`` makes them."""
    names = in_mesh_order(spec, region)
    if not names:
        return x
    local, order, shape = get_aval(x).shape[len(names) :], [], []
    for d, split in enumerate(partition_of(spec, len(local))):
        order += [*(names.index(name) for name in split), len(names) + d]
        shape.append(local[d] * region.size(split))
    x = x if order == sorted(order) else transpose_axes(x, order)
    return reshape(x, tuple(shape))


@memoised
def without_types(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr whose types say nothing of meshes, bodies inside it included; without the ``pvary`` that led there."""
    jaxpr = closed.jaxpr
    plain: dict = {}

    def bound(v):
        aval = untyped(v.aval)
        plain[v] = v if aval is v.aval else Var(aval)
        return plain[v]

    read = lambda v: v if type(v) is Literal else plain[v]  # noqa: E731
    constvars, invars = [bound(v) for v in jaxpr.constvars], [bound(v) for v in jaxpr.invars]
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is pvary_p or eqn.primitive is pcast_p:
            plain[eqn.outvars[0]] = read(eqn.invars[0])
            continue
        params = with_jaxprs(without_types, eqn.own_params)
        if eqn.primitive is axis_index_p:
            params = {"axis_name": params["axis_name"]}
        elif "check_vma" in params:
            params["check_vma"] = False
        invars_read = [read(v) for v in eqn.invars]
        eqns.append(eqn._replace(invars=invars_read, outvars=[bound(v) for v in eqn.outvars], own_params=params))
    outvars = [read(v) for v in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr(constvars, invars, outvars, eqns, jaxpr.effects, jaxpr.debug_info), closed.consts)
