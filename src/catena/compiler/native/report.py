"""What became of a program: a line for each kernel, library call and loop, with the lines of the user's that they do.

`describe` reports the steps in order, as the passes left them. What stands in one line is one pass over memory.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from catena.compiler.graph.forms import FORMS
from catena.compiler.graph.region import Value
from catena.compiler.plan.fuse import Fused, Kernel, Step
from catena.compiler.plan.product_kinds import sizes
from catena.compiler.plan.stitch import RowGroup


def describe(fused: Fused) -> list[str]:
    """The steps of a region, after all passes, as lines of text; those of loops and branches are indented."""
    return [line for step in fused.steps for line in step_lines(fused, step)]


def step_lines(fused: Fused, step: Step) -> list[str]:
    """One step as lines of text."""
    if step.kernel is not None:
        return _kernel(fused, step.kernel, step.writes)
    if step.group is not None:
        return _rows(fused, step.group)
    lines = _node(step.own_node, step.bodies)
    if step.follower is not None:
        lines += [f"  | on its rows: {line}" for line in _kernel(fused, step.follower.own_kernel, step.writes)]
    return lines


# ---- kernels -----------------------------------------------------------------------------------------------


def _kernel(fused: Fused, kernel: Kernel, writes: list[int]) -> list[str]:
    made = computed(fused, kernel.roots)
    results = [v for v in kernel.roots if v.number in writes]
    return [_line(f"kernel over {_extents(kernel.space)}", _operations(made), results, made)]


def _rows(fused: Fused, group: RowGroup) -> list[str]:
    """A row group: its kernels one by one, marked, below a line for all."""
    steps = group.members
    head = f"rows: {len(steps)} kernels together, on {group.block} of {group.count} rows at a time"
    if group.private:
        head += f"; {len(group.private)} arrays between them stay in cache"
    inner = [line for s in steps for line in _kernel(fused, s.own_kernel, s.writes)]
    return [head, *("  | " + line for line in inner)]


def computed(fused: Fused, roots: Iterable[Value]) -> list[Value]:
    """The values that a kernel computes: its roots, and what they read that is not in memory."""
    roots = list(roots)
    found: dict[int, Value] = {}
    pending = list(roots)
    while pending:
        v = pending.pop()
        if v.number in found or (fused.is_stored(v) and v not in roots):
            continue
        found[v.number] = v
        pending.extend(v.args)
    return [found[n] for n in sorted(found)]


def _operations(values: list[Value]) -> str:
    names = Counter(_operation(v) for v in values)
    del names[""]
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in names.items())


def _operation(v: Value) -> str:
    if v.form == "map":
        return v.params.op
    if FORMS[v.form].fold:
        arg = "arg" if v.form == "argreduce" else ""
        return f"{arg}{v.params.kind} over axis {', '.join(map(str, v.params.axes))}"
    return FORMS[v.form].title


# ---- the other steps ---------------------------------------------------------------------------------------


def _node(v: Value, bodies: list[Fused]) -> list[str]:
    if v.form == "convolve":
        return [_line("convolution", f"{_extents(v.args[0].shape)} with {_extents(v.args[1].shape)}", [v], [v])]
    if v.form == "dot":
        batch, m, n, k = sizes(v)
        times = f"{batch} times " if batch > 1 else ""
        return [_line("product", f"{times}{m} x {k} x {n}", [v], [v])]
    form = FORMS[v.form]
    results = v.results if form.several else [v]
    if form.control:
        return _loop(v, results, bodies)
    if v.form == "lapack":
        return [_line("library call", v.params.routine, results, [v])]
    if v.form == "small_matrices":
        return [_line("small matrices", v.params.routine, results, [v])]
    return [_line("step", form.title or v.form, results, [v])]


def _loop(v: Value, results: list[Value], bodies: list[Fused]) -> list[str]:
    if v.form == "branch":
        lines = [_line("branch", f"one of {len(bodies)}", results, [v])]
        for k, case in enumerate(bodies):
            lines += [f"  case {k}:", *("    " + line for line in describe(case))]
        return lines
    count = f"{v.params.length} iterations" if v.form == "scan" else "until its condition fails"
    inner = [line for body in bodies for line in describe(body)]
    return [_line("loop", count, results, [v]), *("  " + line for line in inner)]


def members(step: Step) -> list[Step]:
    """The steps that run together as this one."""
    return step.group.members if step.group is not None else [step, *([step.follower] if step.follower else [])]


def values(fused: Fused, step: Step) -> list[Value]:
    """What a step computes, in memory or not."""
    made = [] if step.node is None else [step.node, *step.node.results]
    for member in members(step):
        if member.kernel is not None:
            made += computed(fused, member.kernel.roots)
    return made


def places(fused: Fused, step: Step) -> str:
    """The user's lines that a step does, by file."""
    return _places(values(fused, step))


# ---- text --------------------------------------------------------------------------------------------------


def _line(kind: str, what: str, results: list[Value], made: list[Value]) -> str:
    out = ", ".join(f"{v.dtype.name}[{','.join(map(str, v.shape))}]" for v in results) or "nothing in memory"
    places = _places(made)
    return f"{kind}: {what or 'copy'} -> {out}" + (f"   ({places})" if places else "")


def _extents(space: tuple) -> str:
    return " x ".join(map(str, space)) or "one element"


def _places(values: list[Value]) -> str:
    """The user's lines, by file."""
    lines: dict[str, set[int]] = {}
    for v in values:
        if v.source is not None:
            lines.setdefault(os.path.basename(v.source.file_name), set()).add(v.source.line)
    return "; ".join(f"{name}:{_ranges(sorted(found))}" for name, found in lines.items())


def _ranges(numbers: list[int]) -> str:
    """`1, 2, 3, 7` as `1-3,7`."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
