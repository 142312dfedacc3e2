"""The primitive ``shard_map``: a call of the program of one device, which knows how arguments and results are laid out.

Its rules transform that program, and say how what they add is laid out; so the derivative of a program of many devices
is such a program as well. It is evaluated and compiled by ``vectorised``.
"""

from __future__ import annotations

import numpy as np

from catena.core import failures
from catena.core.array import Array, typed_array
from catena.core.aval import ShapedArray
from catena.core.axes import at_front
from catena.core.context import context
from catena.core.dead_code import dead_code_elimination
from catena.core.evaluate import check_results, concrete, varying_axes
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.lazy import LazyModule
from catena.core.manual_axes import ManualAxisType
from catena.core.mesh import Mesh
from catena.core.named import NamedTuple
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec
from catena.core.placed import layout_of, place
from catena.core.primitive import Primitive, as_bodies_say
from catena.core.sharding import placement_of
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.zeros import UndefinedPrimal, Zero, get_aval
from catena.lax.arithmetic import div
from catena.lax.collectives import psum_p
from catena.lax.shape import reshape
from catena.parallel import execution
from catena.parallel.region import Region, inside
from catena.parallel.specs import global_aval, spec_names, with_explicit
from catena.parallel.vectorised import as_whole, region_of, whole_types
from catena.transform import interpreted
from catena.transform.batch import Axis, batch_flat
from catena.transform.execute import physical_type, run_jaxpr, typed
from catena.transform.jit_primitive import checking, jaxpr_axis_names, scatter_cotangents, split_tangents
from catena.transform.jvp import jvp_jaxpr
from catena.transform.linearize import partial_eval_jaxpr
from catena.transform.memo import memoised
from catena.transform.transpose import transpose_jaxpr

across = LazyModule("catena.parallel.across")


def chosen(items, flags) -> tuple:
    """The items with a flag."""
    return tuple(x for x, f in zip(items, flags, strict=True) if f)


def _abstract(*avals, **params):
    region = region_of(params)
    around = frozenset().union(*map(varying_axes, avals))
    out_avals = params["jaxpr"].out_avals
    return [global_aval(a, spec, region, around) for a, spec in zip(out_avals, params["out_specs"], strict=True)]


def _evaluate(*args, **params):
    arrays = [concrete(x, shard_map_p) for x in args]
    mesh = mesh_of_devices(params["mesh"], arrays)
    if mesh.is_multi_process and execution.executor() == "mpi":
        return across.run_shard_map(arrays, mesh, params)
    outs = run([place(x, None) for x in arrays], params)
    types = _abstract(*map(get_aval, arrays), **params)
    specs = [with_explicit(spec, a) for spec, a in zip(params["out_specs"], types, strict=True)]
    layouts = [NamedSharding(mesh, spec) for spec in specs]
    return [place(x, placement_of(own)) if isinstance(x, Array) else x for x, own in zip(outs, layouts, strict=True)]


def run(arrays, params: dict) -> list:
    """Whole results, by the executor in force."""
    if execution.executor() == execution.VECTORISED:
        return run_jaxpr(as_whole(params), arrays, shard_map_p, (), "shard_map")
    in_avals, out_avals = whole_types(params)
    values = [typed(x, a, shard_map_p)._value for x, a in zip(arrays, in_avals, strict=True)]
    outs = [typed_array(x, a) for x, a in zip(execution.run(values, params), out_avals, strict=True)]
    if context.debug_nans or context.debug_infs:
        check_results("the results of shard_map", outs, arrays)  # which no device has found in its own operations
    return outs


def _lower(b, *operands, **params):
    if execution.executor() == execution.VECTORISED:
        return b.call(as_whole(params), operands)
    out_types = [ShapedArray(*physical_type(a)) for a in whole_types(params)[1]]
    checks = ",".join(kind for kind in failures.KINDS if kind in b.checks.kinds)
    return b.host_call(_call(params, checks), operands, out_types, ordered=True)


def _steps(**params):
    if execution.executor() == execution.VECTORISED:
        return interpreted.steps(as_whole(params))
    return _call(params, context.checks)


def _call(params: dict, checks: str):
    """A call from a program, which looks for what the program does: when it runs, only flags are still in force."""

    def call(*values):
        with checking(checks):
            return execution.run(values, params)

    return call


def mesh_of_devices(mesh, arrays) -> Mesh:
    """The mesh with devices that an abstract one speaks of: the one in force, or that of an argument.

    Raises:
      ValueError: there is none.
    """
    layouts = [layout_of(x) for x in arrays]
    for known in (mesh, context.mesh, *[x.mesh for x in layouts if isinstance(x, NamedSharding)]):
        if isinstance(known, Mesh) and known.shape_tuple == mesh.shape_tuple:
            return known
    raise ValueError(
        f"shard_map over {mesh!s} was called on arrays that are not laid out over devices: put them there by "
        "jax.device_put(x, NamedSharding(mesh, spec)), or use jax.set_mesh(mesh) with a Mesh"
    )


# ---- derivatives


def _jvp(primals, tangents, *, jaxpr, in_specs, out_specs, **params):
    nonzeros = tuple(type(t) is not Zero for t in tangents)
    with inside(region_of(params)):
        derivative, nonzeros_out = jvp_jaxpr(jaxpr, nonzeros, False)
    outs = shard_map_p.bind(
        *primals,
        *[t for t in tangents if type(t) is not Zero],
        jaxpr=derivative,
        in_specs=in_specs + chosen(in_specs, nonzeros),
        out_specs=out_specs + chosen(out_specs, nonzeros_out),
        **params,
    )
    out_avals = [get_aval(x) for x in outs[: len(out_specs)]]
    return split_tangents(outs, nonzeros_out, out_avals)


class Split(NamedTuple):
    """A program in two parts: the first takes what is known and returns residuals after its results, the second takes
    residuals, which are laid out as ``specs`` say. ``forwarded`` gives for each the known argument that it is.
    """

    known: ClosedJaxpr
    rest: ClosedJaxpr
    unknown_out: tuple
    forwarded: tuple
    specs: tuple


@memoised
def split(closed: ClosedJaxpr, unknown: tuple, region: Region) -> Split:
    """A program split where its unknown arguments begin to matter.

    A residual that each device has for itself is laid out along its first axis; a number becomes an array of one.
    """
    with inside(region):
        known, rest, unknown_out, forwarded = partial_eval_jaxpr(closed, unknown, False)
        count = len(known.out_avals) - forwarded.count(None)
        saved = known.out_avals[count:]
        layout = [residual_spec(a, region) for a in saved]
        numbers = [bool(spec) and not a.ndim for a, spec in zip(saved, layout, strict=True)]

        def known_part(*args):
            outs = eval_jaxpr(known.jaxpr, known.consts, *args)
            return outs[:count] + [reshape(x, (1,)) if n else x for x, n in zip(outs[count:], numbers, strict=True)]

        def rest_part(*args):
            given = list(args)
            for i, n in zip(own, numbers, strict=True):
                given[i] = reshape(given[i], ()) if n else given[i]
            return eval_jaxpr(rest.jaxpr, rest.consts, *given)

        own = [i for i, f in enumerate(forwarded) if f is None]
        if any(numbers):
            avals = list(rest.in_avals)
            for i, n in zip(own, numbers, strict=True):
                avals[i] = avals[i].update(shape=(1,)) if n else avals[i]
            known = retraced(known_part, known.in_avals, known)
            rest = retraced(rest_part, avals, rest)
    return Split(known, rest, unknown_out, forwarded, tuple(layout))


def retraced(fun, avals, like: ClosedJaxpr) -> ClosedJaxpr:
    """``fun``, made of the jaxpr ``like``, traced."""
    jaxpr, consts = trace_to_jaxpr(fun, avals, like.jaxpr.debug_info or DebugInfo("shard_map", "a jaxpr"))
    return ClosedJaxpr(jaxpr, consts)


def residual_spec(aval, region: Region) -> PartitionSpec:
    """How the parts of a residual of this type are laid out: all along one axis, or once if they are the same."""
    varies = varying_axes(aval)
    names = tuple(name for name in region.axes if name in varies or not region.typed)
    return PartitionSpec(names) if names else PartitionSpec()


def _partial_eval(tape, args, *, jaxpr, in_specs, out_specs, **params):
    unknown = tuple(tape.is_unknown(x) for x in args)
    parts = split(jaxpr, unknown, region_of(params))
    known_args = [x for x, u in zip(args, unknown, strict=True) if not u]
    known_specs = [spec for spec, u in zip(in_specs, unknown, strict=True) if not u]
    count = len(out_specs) - sum(parts.unknown_out)
    with tape.known():
        outs = shard_map_p.bind(
            *known_args,
            jaxpr=parts.known,
            in_specs=tuple(known_specs),
            out_specs=chosen(out_specs, [not u for u in parts.unknown_out]) + parts.specs,
            **params,
        )
    known_outs, saved, saved_specs = iter(outs[:count]), iter(outs[count:]), iter(parts.specs)
    residuals = [next(saved) if f is None else known_args[f] for f in parts.forwarded]
    specs = tuple(next(saved_specs) if f is None else known_specs[f] for f in parts.forwarded)
    unknowns = iter(())
    if any(parts.unknown_out):
        recorded = {
            "jaxpr": parts.rest,
            "in_specs": specs + chosen(in_specs, unknown),
            "out_specs": chosen(out_specs, parts.unknown_out),
        }
        operands = [*residuals, *[x for x, u in zip(args, unknown, strict=True) if u]]
        unknowns = iter(tape.record(shard_map_p, operands, {**params, **recorded}))
    return [next(unknowns) if u else next(known_outs) for u in parts.unknown_out]


@memoised
def backward(closed: ClosedJaxpr, linear: tuple, zero_cts: tuple, region: Region, in_specs: tuple) -> tuple:
    """The transpose of a program, as ``transpose_jaxpr`` gives it. Where types do not say it, the cotangent of an
    argument that is the same on devices is the sum of theirs.
    """
    with inside(region):
        transposed, nonzero_in = transpose_jaxpr(closed, linear, zero_cts, True)
        if region.typed:
            return transposed, nonzero_in
        specs = chosen(chosen(in_specs, linear), nonzero_in)

        def summed(*args):
            outs = eval_jaxpr(transposed.jaxpr, transposed.consts, *args)
            return [over(x, region.others(spec_names(spec))) for x, spec in zip(outs, specs, strict=True)]

        def over(x, names):
            return psum_p.bind(x, axes=names, axis_index_groups=None)[0] if names else x

        return retraced(summed, transposed.in_avals, transposed), nonzero_in


def _transpose(cts, *args, jaxpr, in_specs, out_specs, **params):
    region = region_of(params)
    linear = tuple(type(x) is UndefinedPrimal for x in args)
    zero_cts = tuple(type(ct) is Zero for ct in cts)
    transposed, nonzero_in = backward(jaxpr, linear, zero_cts, region, in_specs)
    given = [(ct, spec) for ct, spec in zip(cts, out_specs, strict=True) if type(ct) is not Zero]
    residuals = [(x, spec) for x, spec in zip(args, in_specs, strict=True) if type(x) is not UndefinedPrimal]
    outs = shard_map_p.bind(
        *[x for x, _ in residuals],
        *[ct if region.typed else shared_out(ct, spec, region) for ct, spec in given],
        jaxpr=transposed,
        in_specs=tuple(spec for _, spec in residuals + given),
        out_specs=chosen(chosen(in_specs, linear), nonzero_in),
        **params,
    )
    return scatter_cotangents(iter(outs), nonzero_in, args)


def shared_out(ct, spec: PartitionSpec, region: Region):
    """The cotangent of a result that all devices along some axes return: each has its share of it."""
    count = region.size(region.others(spec_names(spec)))
    return ct if count == 1 else div(ct, np.asarray(count, get_aval(ct).dtype))


# ---- vectorisation


@memoised
def mapped(closed: ClosedJaxpr, region: Region, axis: Axis, dims: tuple, spread: tuple) -> tuple:
    """The program of one device over a mapped axis, which stands at ``dims`` in its arguments; and where it stands in
    the results. ``spread`` are the axes of the mesh that the examples are spread over.
    """
    size = axis.size // region.size(spread)
    out_dims: list = []

    def fun(*args):
        run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
        outs, found = batch_flat(run, axis._replace(size=size), args, dims)
        if spread:
            outs, found = [at_front(size, x, d) for x, d in zip(outs, found, strict=True)], [0] * len(outs)
        out_dims[:] = found
        return outs

    avals = [a if d is None else with_mapped(a, d, size, spread, region) for a, d in zip(closed.in_avals, dims)]  # noqa: B905
    with inside(region):
        batched = retraced(fun, avals, closed)
    return batched, tuple(out_dims)


def with_mapped(aval, dim: int, size: int, spread: tuple, region: Region):
    """The type of an argument with its mapped axis."""
    wide = aval.update(shape=(*aval.shape[:dim], size, *aval.shape[dim:]))
    if not (spread and region.typed):
        return wide
    return wide.update(manual_axis_type=ManualAxisType(varying=varying_axes(aval) | set(spread)))


def with_entry(spec: PartitionSpec, dim: int | None, spread: tuple) -> PartitionSpec:
    """A spec for the array with a mapped axis at ``dim``."""
    if dim is None:
        return spec
    parts = [*spec, *[None] * (dim - len(spec))]
    return PartitionSpec(*parts[:dim], spread or None, *parts[dim:])


def _batch(axis, args, dims, *, jaxpr, in_specs, out_specs, **params):
    region = region_of(params)
    spread = tuple(name for name in axis.spread if name in region.axes)
    for spec in in_specs + out_specs if spread else ():
        if set(spread) & set(spec_names(spec)):
            raise ValueError(
                f"vmap spmd_axis_name={axis.spread} spreads examples over axes of the mesh that the specs of a "
                f"shard_map inside use: {spec}"
            )
    own = axis._replace(name=None, spread=()) if axis.name in region.axes else axis._replace(spread=())
    batched, out_dims = mapped(jaxpr, region, own, tuple(dims), spread)
    outs = shard_map_p.bind(
        *args,
        jaxpr=batched,
        in_specs=tuple(with_entry(spec, d, spread) for spec, d in zip(in_specs, dims, strict=True)),
        out_specs=tuple(with_entry(spec, d, spread) for spec, d in zip(out_specs, out_dims, strict=True)),
        **params,
    )
    return outs, list(out_dims)


# ---- the primitive


def _prune(eqn, used):
    params = eqn.own_params
    closed = params["jaxpr"]
    smaller, read = dead_code_elimination(closed.jaxpr, used)
    changed = {
        "jaxpr": ClosedJaxpr(smaller, closed.consts),
        "in_specs": chosen(params["in_specs"], read),
        "out_specs": chosen(params["out_specs"], used),
    }
    return eqn._replace(
        invars=[v for v, r in zip(eqn.invars, read, strict=True) if r],
        outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
        own_params={**params, **changed},
        effects=smaller.effects,
    )


shard_map_p: Primitive = Primitive(
    "shard_map",
    multiple_results=True,
    takes_arrays=True,
    places_results=True,
    effects=lambda avals, params: params["jaxpr"].effects,
    axis_names=lambda params: tuple(
        name for name in jaxpr_axis_names(params["jaxpr"]) if name not in params["newly_manual_axes"]
    ),
    abstract=_abstract,
    varying=as_bodies_say,
    evaluate=_evaluate,
    jvp=_jvp,
    partial_eval=_partial_eval,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    prune=_prune,
)
interpreted.calls[shard_map_p] = _steps
