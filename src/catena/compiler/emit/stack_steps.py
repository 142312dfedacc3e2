"""Steps that make, write and read stacks, as calls of the functions in `compiler/emit/stacks.py`.

The stacks of a run hang on the slot `%stacks` of the entry function. They are freed when the program returns,
unless it returns stacks: then the head of their chain goes to one more result, and the caller owns them.
"""

from __future__ import annotations

from catena.compiler.emit import stacks
from catena.compiler.emit.branches import each_way
from catena.compiler.plan.steps import NewStack, ReadStack, StackLength, WriteStack
from catena.runtime.status import OUT_OF_MEMORY


def new(w, step: NewStack) -> None:
    w.uses.add("stacks")
    made = w.e.op(f"call ptr @catena_stack_new(ptr %stacks, i64 {step.item_bytes})")
    w.stop_if(w.e.op(f"icmp eq ptr {made}, null"), OUT_OF_MEMORY)
    w.e.do(f"store ptr {made}, ptr {w.pointer(step.out)}")


def length(w, step: StackLength) -> None:
    w.uses.add("stacks")
    count = w.e.op(f"call i64 @catena_stack_length(ptr {_load(w, step.stack, 'ptr')})")
    w.e.do(f"store i32 {w.e.op(f'trunc i64 {count} to i32')}, ptr {w.pointer(step.out)}")


def write(w, step: WriteStack) -> None:
    w.uses.add("stacks")
    pointer, k = _load(w, step.stack, "ptr"), _load(w, step.at, "i64")
    status = w.e.op(f"call i64 @catena_stack_write(ptr {pointer}, i64 {k}, ptr {w.pointer(step.item)})")
    w.stop_if(w.e.op(f"icmp ne i64 {status}, 0"), OUT_OF_MEMORY)
    w.e.do(f"store ptr {pointer}, ptr {w.pointer(step.out)}")


def read(w, step: ReadStack) -> None:
    w.uses.add("stacks")
    e, size = w.e, step.out.bytes
    item = e.op(f"call ptr @catena_stack_item(ptr {_load(w, step.stack, 'ptr')}, i64 {_load(w, step.at, 'i64')})")
    target = w.pointer(step.out)
    for absent in each_way(e, e.op(f"icmp eq ptr {item}, null")):
        if absent:
            e.do(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {size}, i1 false)")
        else:
            w.copy_bytes(target, item, size)


def _load(w, buffer, type_: str) -> str:
    return w.e.op(f"load {type_}, ptr {w.pointer(buffer)}")


def frame_lines(w, returned_at: str | None) -> tuple[list[str], list[str]]:
    """The lines at the entry and the exit of a program with stacks; their chain's head goes to `returned_at`."""
    if "stacks" not in w.uses:
        return [], []
    w.helpers["catena_stacks"] = ("stacks",)
    start = ["  %stacks = alloca ptr", "  store ptr null, ptr %stacks"]
    if returned_at is None:
        return start, ["  call void @catena_stack_free(ptr %stacks)"]
    return start, ["  %stack_head = load ptr, ptr %stacks", f"  store ptr %stack_head, ptr {returned_at}"]


def runtime_lines() -> list[str]:
    """Declarations one by one (they are merged with others'), then the definitions."""
    lines = stacks.RUNTIME.splitlines()
    declared = [line for line in lines if line.startswith("declare")]
    return [*declared, "\n".join(line for line in lines if not line.startswith("declare"))]
