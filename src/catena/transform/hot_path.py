"""The hot path of a call: a program is run again on arrays of the types that it was seen with.

What a call needs is looked up once (`how_to_run`); then the native entry reads the data pointers straight out of two
tuples of NumPy arrays.
"""

from __future__ import annotations

import functools
from itertools import count
from typing import Any

import numpy as np

from catena.core import dtypes, failures
from catena.core.array import Array, fresh_array, live, typed_array
from catena.core.job import job
from catena.core.lazy import LazyModule
from catena.core.placed import PlacedArray, spans_processes
from catena.runtime import buffers
from catena.transform.execute import Program, is_ours, on_mesh, run_entry, run_program

across: Any = LazyModule("catena.parallel.across")  # where there are several processes
_new = object.__new__


def how_to_run(program: Program, call, placed: bool, outs=None, arrays=()) -> tuple:
    """What ``run_fast`` needs: the native entry, how to make the memory of its results, their types and their tree,
    which arguments are used, if not all are, and the program, which owns the entry's code: another thread may have
    replaced it meanwhile.
    Where there is more to do than to call the entry, a function of the arguments and None stand for the first two.

    Arguments:
      program, call: what is run.
      placed: whether somebody said where arguments or results are.
      outs: the results of a call on arguments of the same types, if these say where results belong.
      arrays: the arguments of that call.
    """
    one_result = call.out_tree.num_nodes == call.out_tree.num_leaves == 1  # an empty tuple is one node as well
    out_tree = None if one_result else call.out_tree
    out_avals = [v.aval for v in call.closed.jaxpr.outvars]
    placed = placed or call.placing is not None or on_mesh(program.closed) is not None
    if job.shared and call.placing is None and any(map(spans_processes, arrays)):
        run = across.again(program, arrays)
        if run is not None:
            return run, None, out_avals, out_tree, None, program
    direct = (
        not (placed and outs is None)  # in parts, perhaps: then it is not compiled
        and type(program) is Program
        and not any(a.dtype == dtypes.float0 for a in out_avals)
    )
    entry = program.entry if direct else None
    checked = entry is not None and program.executable.checks
    specs = [*program.specs, (failures.new_cell, None, None)] if checked else program.specs
    used = None if len(program.used) == len(program.closed.in_avals) else program.used
    simple = entry is not None and program.simple and not program.donated and not any(a.extended for a in out_avals)
    told = placed and outs is not None and not call.closed.effects  # of which `debug` may ask how values lie
    if simple and told and all(type(x._value) is np.ndarray for x in outs):
        makers = [(PlacedArray if type(x) is PlacedArray else Array, x.aval.weak_type, type_of(x)) for x in outs]
        run = functools.partial(run_placed, entry, specs, used, makers)
        return run, None, out_avals, out_tree, None, program
    if call.placing is not None:
        run = functools.partial(run_program, program)
        return functools.partial(call.placing.run, run, call.donated), None, out_avals, out_tree, None, program
    if simple and not placed and out_avals == program.computed_avals:
        return entry, specs, out_avals, out_tree, used, program
    run = None if placed or not direct else with_others(program, entry, specs, used)
    return run or functools.partial(run_program, program), None, out_avals, out_tree, None, program


def type_of(x: Array):
    """The type of an array; for one that was placed, with its place."""
    return x.aval if x._aval is None else x._aval


def run_placed(entry, specs, used, makers, args, out_avals) -> list:
    """Run a native entry on arrays of which some were placed; its results are of known types at known places."""
    outs = tuple([make(shape, dtype) for make, shape, dtype in specs])
    values = tuple([x._value for x in args] if used is None else [args[i]._value for i in used])
    if entry(values, outs):
        run_entry(entry, values, outs, args)
    arrays = []
    for value, (kind, weak, known) in zip(outs, makers):  # noqa: B905 (hot)
        array = _new(kind)
        array._value, array._weak, array._aval = value, weak, known
        arrays.append(array)
    return arrays


def with_others(program: Program, entry, specs, used):
    """What runs a program on arrays that nobody placed some of whose results are arguments, constants, or the same
    twice; ``None`` where this is not so simple.
    """
    found = {kind: [x for k, x in program.results if k == kind] for kind in ("argument", "constant")}
    constants = found["constant"]
    if program.executable is not None and entry is None or any(type(x) is not Array for x in constants):
        return None
    start = len(specs)
    rest = {"argument": count(start), "constant": count(start + len(found["argument"]))}
    order = [next(rest[kind]) if kind in rest else x for kind, x in program.results]
    others = found["argument"], constants, order
    if program.donated:
        return functools.partial(run_donated, program, entry, specs, *others) if entry is not None else None
    return functools.partial(run_with_others, entry, specs, used, *others)


def run_with_others(entry, specs, used, arguments, constants, order, args, out_avals) -> list:
    """Run a native entry, if there is one; each result has a place in ``order`` among what is computed, the arguments
    and the constants that are results.
    """
    outs = tuple([make(shape, dtype) for make, shape, dtype in specs])
    if entry is not None:
        values = tuple([x._value for x in args] if used is None else [args[i]._value for i in used])
        if entry(values, outs):
            run_entry(entry, values, outs, args if used is None else [args[i] for i in used])
    found = (*outs, *[args[i]._value for i in arguments], *map(live, constants))
    return [typed_array(found[k], a) for k, a in zip(order, out_avals)]  # noqa: B905 (hot)


def run_donated(program: Program, entry, specs, arguments, constants, order, args, out_avals) -> list:
    """As ``run_with_others``, where arguments are deleted; results take the memory of those that nobody else holds."""
    program.check_donation(args)
    values, reused = [args[i]._value for i in program.used], program.reused
    for i in reused.values():
        if not is_ours(values, i):
            values[i] = buffers.copy(values[i])
    outs = [make(shape, dtype) if k not in reused else None for k, (make, shape, dtype) in enumerate(specs)]
    for k, i in reused.items():
        outs[k] = values[i]
    try:
        if entry(tuple(values), tuple(outs)):
            run_entry(entry, tuple(values), tuple(outs))
        found = (*outs, *[args[i]._value for i in arguments], *map(live, constants))
        return [typed_array(found[k], a) for k, a in zip(order, out_avals)]  # noqa: B905 (hot)
    finally:
        for i in program.donated:
            args[i].delete()


def run_fast(found, args):
    """Run a program that was seen before on Arrays of its types."""
    entry, specs, avals, out_tree, used, _ = found
    if specs is None:
        outs = entry(args, avals)
        return outs[0] if out_tree is None else out_tree.unflatten(outs)
    outs = tuple([make(shape, dtype) for make, shape, dtype in specs])
    values = tuple([x._value for x in args] if used is None else [args[i]._value for i in used])
    if entry(values, outs):
        run_entry(entry, values, outs, args if used is None else [args[i] for i in used])
    if out_tree is None:
        return fresh_array(outs[0], avals[0])
    return out_tree.unflatten([fresh_array(o, a) for o, a in zip(outs, avals)])  # noqa: B905 (hot)
