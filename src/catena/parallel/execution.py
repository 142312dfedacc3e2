"""Which executor runs the program of one device on all devices of a mesh, and that program between arrays and parts.

The flag ``jax_executor`` chooses: ``vectorised`` compiles the program of all devices as one (``vectorised.py``),
``threads`` runs a thread for each device, ``mpi`` a process for each. By default several processes are ``mpi``, and one
is ``vectorised``.
"""

from __future__ import annotations

import numpy as np

from catena.core import failures
from catena.core.array import typed_array
from catena.core.context import context
from catena.core.device import process_count
from catena.core.jaxpr import ClosedJaxpr
from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.parallel.communicator import Communicator
from catena.parallel.local_program import local_program
from catena.parallel.region import Region
from catena.parallel.specs import partition_of, spec_names
from catena.parallel.vectorised import region_of, vectorised, whole
from catena.transform.execute import Program, physical_type, program_of, run_entry
from catena.transform.memo import memoised

VECTORISED = "vectorised"
EXECUTORS = {
    "threads": LazyModule("catena.parallel.executors.threads"),
    "mpi": LazyModule("catena.parallel.executors.mpi"),
}


def executor() -> str:
    """The name of the executor in force."""
    chosen = context.executor
    return chosen if chosen is not None else "mpi" if process_count() > 1 else VECTORISED


class Local(NamedTuple):
    """A call of ``shard_map`` as programs of one device: the program, what it was made of, and how arguments and
    results are laid out over the axes of the mesh.
    """

    program: Program
    closed: ClosedJaxpr
    region: Region
    in_specs: tuple
    out_specs: tuple
    out_types: list  # shapes and NumPy dtypes of whole results

    @property
    def sizes(self) -> dict:
        """The axes of the mesh that the program is mapped over, and their sizes."""
        return dict(zip(self.region.axes, self.region.sizes, strict=True))

    def places(self, communicator: Communicator) -> list[tuple]:
        """Where the parts of one device lie in the arguments."""
        avals = self.program.closed.in_avals
        return [place(spec, a.shape, communicator) for spec, a in zip(self.in_specs, avals, strict=True)]

    def parts(self, values, communicator: Communicator) -> list:
        """Of whole arguments, the parts of one device."""
        return [x[where] for x, where in zip(values, self.places(communicator), strict=True)]

    def run(self, parts) -> list[np.ndarray]:
        """Run the program of the device that speaks in this thread on its parts."""
        return run_program(self.program, parts)

    def run_as_one(self, values) -> list[np.ndarray]:
        """The whole results, by the vectorised program: on a process that has no device of the mesh."""
        return run_program(program_of(vectorised(self.closed, self.region, self.in_specs, self.out_specs)), values)

    def returns(self, spec, communicator: Communicator) -> bool:
        """Whether a device gives its part of a result: of those that have the same, the first does."""
        return not any(communicator.coordinates[name] for name in self.region.others(spec_names(spec)))


def run_program(program: Program, values) -> list[np.ndarray]:
    """Run a program on NumPy values, wherever these are."""
    cell = failures.new_cell() if program.executable is not None and program.executable.checks else None
    if cell is None and program.simple and not program.stacks and program.entry is not None:
        outs = program.empty_results(values)
        run_entry(program.entry, tuple([np.asarray(values[i]) for i in program.used]), outs)
        return list(outs)
    arrays = [typed_array(x, a) for x, a in zip(values, program.closed.in_avals, strict=True)]
    used = [arrays[i]._value for i in program.used]
    computed = program.compute(used, cell) if program.executable is not None else []
    results = [program.result(kind, x, computed, arrays) for kind, x in program.results]
    if cell is not None and failures.found(program.executable.checks, cell) is not None:
        program.check(arrays, results, cell)  # what other devices made is found there, or in the whole
    return [x._value for x in results]


def place(spec, shape: tuple, communicator: Communicator) -> tuple:
    """Where the part of a device lies in an array, by the shape of the part."""
    starts = [communicator.index(names) * n for names, n in zip(partition_of(spec, len(shape)), shape, strict=True)]
    return (*[slice(start, start + n) for start, n in zip(starts, shape, strict=True)], ...)  # an array, of no axes too


def deposit(out: np.ndarray, part: np.ndarray, spec, communicator: Communicator) -> None:
    """Put the part of a device into the whole."""
    out[place(spec, part.shape, communicator)] = part


@memoised
def _local(closed: ClosedJaxpr, region: Region, in_specs: tuple, out_specs: tuple) -> Local:
    sizes = tuple(zip(region.axes, region.sizes, strict=True))
    place = EXECUTORS["mpi"].place_alone(region.mesh) if executor() == "mpi" else None
    program = program_of(local_program(closed, sizes, place), (), "shard_map")
    program.compile()  # by one of the threads, for all
    types = [physical_type(whole(a, spec, region)) for a, spec in zip(program.closed.out_avals, out_specs, strict=True)]
    return Local(program, closed, region, in_specs, out_specs, types)


def local_of(params: dict) -> Local:
    """The call of ``shard_map`` with these parameters."""
    return _local(params["jaxpr"], region_of(params), params["in_specs"], params["out_specs"])


def run(values, params: dict) -> list[np.ndarray]:
    """The whole results of a call of ``shard_map``, by the executor in force, which is not the vectorised one."""
    return EXECUTORS[executor()].run(local_of(params), values)
