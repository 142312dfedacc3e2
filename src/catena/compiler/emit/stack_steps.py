"""Steps that make, write and read stacks, as calls of the functions in `compiler/stacks.py`.

The stacks of a run hang on the slot `%stacks` of the entry function. They are freed when the program returns,
unless it returns stacks: then the head of their chain goes to one more result, and the caller owns them.
"""

from __future__ import annotations

import numpy as np

from catena.compiler import stacks
from catena.compiler.graph import Region
from catena.runtime.status import OUT_OF_MEMORY


def need(w) -> None:
    w.uses_stacks = True


def new(w, frame, i: int, node) -> None:
    need(w)
    (out,) = node.results
    made = w.e.op(f"call ptr @catena_stack_new(ptr %stacks, i64 {node.params['item_bytes']})")
    w.stop_if(w.e.op(f"icmp eq ptr {made}, null"), OUT_OF_MEMORY)
    w.e.do(f"store ptr {made}, ptr {w.define(frame, out)}")


def length(w, frame, i: int, node) -> None:
    need(w)
    (out,) = node.results
    count = w.e.op(f"call i64 @catena_stack_length(ptr {_load(w, frame, node.args[0], 'ptr')})")
    w.e.do(f"store i32 {w.e.op(f'trunc i64 {count} to i32')}, ptr {w.define(frame, out)}")


def write(w, frame, i: int, node) -> None:
    need(w)
    stack, at, item = node.args
    (out,) = node.results
    pointer, k = _load(w, frame, stack, "ptr"), _load(w, frame, at, "i64")
    status = w.e.op(f"call i64 @catena_stack_write(ptr {pointer}, i64 {k}, ptr {w.address(frame, item)})")
    w.stop_if(w.e.op(f"icmp ne i64 {status}, 0"), OUT_OF_MEMORY)
    w.e.do(f"store ptr {pointer}, ptr {w.define(frame, out)}")


def read(w, frame, i: int, node) -> None:
    need(w)
    stack, at = node.args
    (out,) = node.results
    e, size = w.e, out.nbytes
    item = e.op(f"call ptr @catena_stack_item(ptr {_load(w, frame, stack, 'ptr')}, i64 {_load(w, frame, at, 'i64')})")
    target = w.define(frame, out)
    absent, present, done = e.label(), e.label(), e.label()
    e.branch(e.op(f"icmp eq ptr {item}, null"), absent, present)
    e.start(absent)
    e.do(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {size}, i1 false)")
    e.jump(done)
    e.start(present)
    w.copy(target, item, size)
    e.jump(done)
    e.start(done)


def in_iteration(w, region, write) -> None:
    """Writes one iteration of a loop by `write()`; stacks that it makes and nobody can see after it are freed
    at its end.
    """
    if not makes(region) or escape(region):
        write()
        return
    need(w)
    before = w.e.op("load ptr, ptr %stacks")
    write()
    w.e.do(f"call void @catena_stack_free_until(ptr %stacks, ptr {before})")


def makes(region) -> bool:
    """Whether a region makes stacks."""
    return any(v.params["op"] == "stack_new" or any(map(makes, inner(v))) for v in steps(region))


def escape(region) -> bool:
    """Whether stacks that a region makes may outlive it: their addresses are results, or items of other stacks."""
    return any(v.dtype == np.uint64 for v in region.outputs) or stores_addresses(region)


def stores_addresses(region) -> bool:
    return any(
        v.params["op"] == "stack_write" and v.args[2].dtype == np.uint64 or any(map(stores_addresses, inner(v)))
        for v in steps(region)
    )


def steps(region):
    """The nodes of a region that do more than compute one value."""
    return (v for v in region.values if v.form == "multi")


def inner(node) -> list:
    """The regions inside a loop or branch."""
    p = node.params
    return [r for r in (p.get("cond"), p.get("body"), *p.get("branches", ())) if isinstance(r, Region)]


def _load(w, frame, v, type_: str) -> str:
    return w.e.op(f"load {type_}, ptr {w.address(frame, v)}")


def frame_lines(w) -> tuple[list[str], list[str]]:
    """The lines at the entry and the exit of a program with stacks."""
    if not w.uses_stacks:
        return [], []
    w.helpers["catena_stacks"] = ("stacks",)
    start = ["  %stacks = alloca ptr", "  store ptr null, ptr %stacks"]
    if w.returned_stacks is None:
        return start, ["  call void @catena_stack_free(ptr %stacks)"]
    return start, [
        "  %stack_head = load ptr, ptr %stacks",
        f"  store ptr %stack_head, ptr {w.returned_stacks}",
    ]


def runtime_lines() -> list[str]:
    """Declarations one by one (they are merged with others'), then the definitions."""
    lines = stacks.RUNTIME.splitlines()
    declared = [line for line in lines if line.startswith("declare")]
    return [*declared, "\n".join(line for line in lines if not line.startswith("declare"))]
