"""Programs on arrays of which each process holds parts: partitioned, and run on the parts by the executor ``mpi``.

All processes call the same program. What cannot be partitioned (random keys among arguments or results, references,
layouts that are none over one mesh) runs on the wholes, which all gather.
"""

from __future__ import annotations

from catena.core.array import Array, typed_array
from catena.core.context import context
from catena.core.named_sharding import NamedSharding
from catena.core.parts import Parts, spans
from catena.core.placed import in_one_piece, layout_of, place, results_placement, typed_parts
from catena.core.propagation import split_of
from catena.core.sharding import placement_of
from catena.parallel.execution import local_of
from catena.parallel.executors import mpi
from catena.parallel.partition import partition
from catena.transform.execute import Program
from catena.transform.layouts import layouts_of_program


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
    known = all(s is None or isinstance(s, NamedSharding) and s.mesh == mesh and not s.spec.unreduced for s in layouts)
    extended = any(a.extended for a in (*closed.in_avals, *closed.out_avals))
    return mesh if mesh is not None and plain and known and not extended else None


def run_in_parts(program: Program, arrays, mesh) -> list:
    """The results, of which each process computes its parts."""
    closed, layouts = program.closed, tuple(map(layout_of, arrays))
    out_layouts = layouts_of_program(closed, layouts, mesh)
    sides = (layouts, closed.in_avals), (out_layouts, closed.out_avals)
    splits = [
        tuple(None if s is None else split_of(s, mesh, a.ndim) for s, a in zip(*side, strict=True)) for side in sides
    ]
    local = local_of(partition(closed, mesh, *splits).params)
    found = mpi.run_parts(local, [x._value for x in arrays])
    devices = {number: mesh._flat[number] for number in found}
    outs: list[Array] = []
    for k, (aval, layout) in enumerate(zip(closed.out_avals, out_layouts, strict=True)):
        placement = placement_of(layout)
        shards = {devices[number]: parts[k] for number, parts in found.items()}
        if spans(placement):
            outs.append(typed_parts(Parts(aval, placement, shards)))
        else:
            outs.append(place(typed_array(next(iter(shards.values())), aval), placement))
    return outs
