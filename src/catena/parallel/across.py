"""Programs on arrays of which each process holds parts: partitioned, and run on the parts by the executor ``mpi``.

All processes call the same program. A ``shard_map`` is the program of one device already. What cannot be partitioned
(random keys among arguments or results, references, layouts that are none over one mesh) runs on the wholes, which all
gather.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from catena.core.array import Array, typed_array
from catena.core.context import context
from catena.core.jaxpr import ClosedJaxpr
from catena.core.mesh import Mesh
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec
from catena.core.parts import Parts, spans
from catena.core.placed import (
    in_one_piece,
    layout_of,
    place,
    placed_type,
    placed_value,
    results_placement,
    spans_processes,
    typed_parts,
)
from catena.core.propagation import split_of
from catena.core.sharding import placement_of
from catena.parallel.communicator import Communicator
from catena.parallel.execution import Local, local_of, run_program
from catena.parallel.executors import mpi
from catena.parallel.partition import partition
from catena.parallel.vectorised import whole_types
from catena.runtime.kernels import Callback
from catena.transform.execute import Program
from catena.transform.layouts import layouts_of_program
from catena.transform.memo import memoised


def run(program: Program, arrays) -> list:
    """The results of a program, where they belong."""
    try:
        mesh = mesh_of(program, arrays)
        if mesh is None or context.executor == "vectorised":
            return program([in_one_piece(x) for x in arrays])
        return run_in_parts(program, arrays, mesh)
    finally:
        for i in program.donated:
            arrays[i].delete()


def mesh_of(program: Program, arrays):
    """The mesh over which a program is partitioned; ``None`` if it cannot be."""
    placement = results_placement(f"jit({program.name})", arrays, None)
    layouts = [layout_of(x) for x in arrays]
    mesh = getattr(placement.layout, "mesh", None) if placement is not None else None
    closed = program.closed
    plain = type(program) is Program and not program.stacks and not closed.jaxpr.effects
    known = all(s is None or isinstance(s, NamedSharding) and s.mesh == mesh for s in layouts)
    extended = any(a.extended for a in (*closed.in_avals, *closed.out_avals))
    return mesh if mesh is not None and plain and known and not extended else None


def run_in_parts(program: Program, arrays, mesh: Mesh) -> list:
    """The results, of which each process computes its parts."""
    params = partitioned(program.closed, mesh, tuple(map(layout_of, arrays)))
    return run_shard_map(arrays, mesh, params)


@memoised
def partitioned(closed: ClosedJaxpr, mesh: Mesh, layouts: tuple) -> dict:
    """The parameters of the ``shard_map`` that a program is, for arguments that lie so."""
    out_layouts = layouts_of_program(closed, layouts, mesh)
    sides = (layouts, closed.in_avals), (out_layouts, closed.out_avals)
    splits = [
        tuple(None if s is None else split_of(s, mesh, a.ndim) for s, a in zip(*side, strict=True)) for side in sides
    ]
    params = partition(closed, mesh, *splits).params
    return params | {"out_specs": tuple(map(with_words_of_sums, params["out_specs"], out_layouts))}


def with_words_of_sums(spec: PartitionSpec, layout: NamedSharding) -> PartitionSpec:
    """How a result is split, and what its type says of sums: it is held as the sum."""
    return spec.update(unreduced=layout.spec.unreduced, reduced=layout.spec.reduced)


def again(program: Program, arrays) -> Callable | None:
    """What runs a program once more on arrays of the same types at the same places, without a question: where this
    process has one device of the mesh, and every array lies where its part is wanted. Else ``None``.
    """
    mesh = mesh_of(program, arrays) if context.executor != "vectorised" and not program.donated else None
    here = mpi.devices_here(mesh) if mesh is not None else ()
    if len(here) != 1:
        return None
    params, places, results = planned(partitioned(program.closed, mesh, tuple(map(layout_of, arrays))), mesh)
    local, device = local_of(params), mesh._flat[here[0].number]
    if any(place(x, where)._value is not x._value for x, where in zip(arrays, places, strict=True)):
        return None
    readers = [reader(x, part, device) for x, part in zip(arrays, local.places(here[0]), strict=True)]
    types = [placed_type(aval, where) for aval, (_, where) in zip(program.closed.out_avals, results, strict=True)]
    made = [(known, spans(where)) for known, (_, where) in zip(types, results, strict=True)]
    compute = calls_nobody(local, here[0]) or (lambda values: mpi.run_on(here, local, lambda _: values)[here[0].number])

    def run(args, out_avals) -> list[Array]:
        outs = []
        for value, (known, apart) in zip(compute([read(x._value) for read, x in zip(readers, args)]), made):  # noqa: B905 (hot)
            outs.append(placed_value(Parts(known.aval, known.placement, {device: value}) if apart else value, known))
        return outs

    return run


def reader(x: Array, where: tuple, device) -> Callable:
    """From what an array like ``x`` holds to the part of this process's device, which stands there in the whole."""
    if spans_processes(x):
        return lambda held: held.shards[device]
    return (lambda held: held) if x._value[where].shape == x.shape else (lambda held: held[where])


def calls_nobody(local: Local, communicator: Communicator) -> Callable | None:
    """A program as a function of values, where it can run without a communicator in this thread: its collectives, if it
    has any, are MPI's own, and are connected. Else ``None``.
    """
    program = local.program
    parts = getattr(program.executable, "parts", None)
    if parts is None or not program.simple or any(isinstance(x, Callback) for x in parts.externals):
        return None
    return functools.partial(run_program, program) if mpi.is_prepared(communicator, local) else None


def run_shard_map(arrays, mesh: Mesh, params: dict) -> list[Array]:
    """The results of a ``shard_map`` over a mesh whose devices are in several processes."""
    params, places, results = planned(params, mesh)
    values = [place(x, where)._value for x, where in zip(arrays, places, strict=True)]
    local = local_of(params)
    found = mpi.run_on(mpi.devices_here(mesh), local, lambda communicator: local.parts(values, communicator))
    outs: list[Array] = []
    for k, (aval, placement) in enumerate(results):
        shards = {mesh._flat[number]: parts[k] for number, parts in found.items()}
        if spans(placement):
            outs.append(typed_parts(Parts(aval, placement, shards)))
        else:
            outs.append(place(typed_array(next(iter(shards.values())), aval), placement))
    return outs


def planned(params: dict, mesh: Mesh) -> tuple:
    """``plan`` of a ``shard_map`` with these parameters."""
    rest = tuple(params[key] for key in ("newly_manual_axes", "check_vma", "in_specs", "out_specs"))
    return plan(params["jaxpr"], mesh, *rest)


@memoised
def plan(closed: ClosedJaxpr, mesh: Mesh, axes: frozenset, check_vma: bool, in_specs: tuple, out_specs: tuple) -> tuple:
    """The parameters of a ``shard_map`` over this mesh, the places of its arguments, types and places of results."""
    at = lambda spec: placement_of(NamedSharding(mesh, spec))  # noqa: E731
    specs = {"in_specs": in_specs, "out_specs": out_specs}
    params = {"jaxpr": closed, "mesh": mesh, "newly_manual_axes": axes, "check_vma": check_vma, **specs}
    return params, [at(spec) for spec in in_specs], list(zip(whole_types(params)[1], map(at, out_specs), strict=True))
