"""All that a page shows of one compiled function: its steps and what they took, its memory, its stages."""

from __future__ import annotations

from collections.abc import Iterator

from catena.compiler.native import compile as compiler
from catena.compiler.plan.program import ARENA, ARGUMENT, CONSTANT, RESULT, Block, Buffer, Program, Step
from catena.tools.page import listings
from catena.tools.page.listings import Linked
from catena.tools.page.places import Places
from catena.transform.profile import Profile

SHOWN = (ARGUMENT, RESULT, CONSTANT, ARENA)  # kinds of memory; slots on the stack are not


def program_data(profile: Profile, places: Places, programs: int = 1) -> dict:
    """What a page of so many programs knows of a profile, as JSON has it."""
    program = compiler.program_of(profile.closed)
    linked = Linked(program, places)
    stages = listings.stages(profile.closed, program.fused.region, linked, programs)
    return {
        "name": profile.name,
        "seconds": profile.seconds,
        "ceilings": vars(profile.ceilings),
        "steps": steps(profile, linked),
        "memory": memory(program, linked, profile.closed.debug_info.arg_names),
        "lists": listings.shared_lists(stages),
        "stages": stages,
    }


def steps(profile: Profile, linked: Linked) -> list[dict]:
    """The rows of the profile, with their places."""
    return [
        {
            "depth": row.depth,
            "name": step.name,
            "detail": step.detail(),
            "where": row.places,
            "seconds": row.seconds,
            "runs": row.runs,
            "bytes": row.bytes,
            "flops": row.flops,
            "most": row.most_flops_per_second,
            "places": places,
            "leaf": not step.blocks(),
        }
        for row, step, places in zip(profile.rows, linked.steps, linked.sources, strict=True)
    ]


def memory(program: Program, linked: Linked, names) -> dict:
    """Each piece of memory: where it is, from which step to which it is in use, who writes and who reads it."""
    found: dict[Buffer, dict] = {}
    for number, last, step in spans(program.body):
        for role, buffers in (("reads", step.reads()), ("writes", step.writes()), ("scratch", step.scratch())):
            for buffer in dict.fromkeys(b.owner() for b in buffers):
                if buffer.kind in SHOWN:
                    use = found.setdefault(buffer, described(buffer, names) | {"first": number})
                    use["last"] = max(use.get("last", 0), last)
                    use.setdefault(role, []).append(number)
                    if role == "writes" and "type" not in use:
                        use["type"] = type_of(buffer, step)
    return {"arena": program.arena_bytes, "buffers": list(found.values())}


def described(buffer: Buffer, names) -> dict:
    """What is known of a piece of memory by itself."""
    title = f"{buffer.kind} {buffer.place}" if buffer.kind != ARENA else f"arena+{buffer.place}"
    if buffer.kind == ARGUMENT and buffer.place < len(names or ()):
        title = f"argument {names[buffer.place]}"
    return {"kind": buffer.kind, "at": buffer.place, "bytes": buffer.bytes, "title": title}


def type_of(buffer: Buffer, step: Step) -> str:
    """The type of the value that a step writes there, as far as its size tells."""
    if step.origin is None:
        return ""
    fused, origin = step.origin
    values = [fused.region.values[n] for n in origin.writes]
    return next((v.dtype.name + str(list(v.shape)) for v in values if v.nbytes == buffer.bytes), "")


def spans(block: Block, start: int = 0) -> Iterator[tuple[int, int, Step]]:
    """Each step with its number and that of the last step inside of it."""
    number = start
    for step in block.steps:
        inner = []
        last = number
        for each in step.blocks():
            found = list(spans(each, last + 1))
            inner += found
            last = max([last, *(n for n, _, _ in found)])
        yield number, last, step
        yield from inner
        number = last + 1
