"""How a thread computes with subnormal numbers: a register of the processor, which programs and the pool read and set.

Processors take a hundred cycles and more for each product that has to do with subnormal numbers, unless this register
says that they may count as zero. A thread has its own.
"""

from __future__ import annotations

import ctypes
import functools
import platform
from collections.abc import Callable

from catena.core.named import NamedTuple
from catena.runtime import images


class Control(NamedTuple):
    """The register: its `kind` in LLVM IR, the bits that say that what is subnormal, given or made, counts as zero, and
    the text that keeps the register at address `%at`, and that sets it to what is there.
    """

    kind: str
    flushing: int
    declarations: str
    keep: str
    set: str


CONTROLS = {
    "x86_64": Control(
        "i32",
        1 << 15 | 1 << 6,
        "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)",
        "call void @llvm.x86.sse.stmxcsr(ptr %at)",
        "call void @llvm.x86.sse.ldmxcsr(ptr %at)",
    ),
    "aarch64": Control(
        "i64",
        1 << 24,
        "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)",
        "%x = call i64 @llvm.aarch64.get.fpcr()\n  store i64 %x, ptr %at",
        "%x = load i64, ptr %at\n  call void @llvm.aarch64.set.fpcr(i64 %x)",
    ),
}
UNKNOWN = Control("i64", 0, "", "store i64 0, ptr %at", "")  # other processors: nothing is set


def text(machine: str = platform.machine()) -> str:
    """LLVM IR of functions that keep this thread's register at an address, and set it to what is there; and of one that
    keeps it there and has the thread take subnormal numbers as zeros, as the register says that is kept behind it.
    """
    kind, flushing, declarations, keep, set_to = CONTROLS.get(machine, UNKNOWN)
    return f"""
{declarations}
define internal void @keep_control(ptr %at) nounwind {{
  {keep}
  ret void
}}
define internal void @set_control(ptr %at) nounwind {{
  {set_to}
  ret void
}}
define internal void @flush_subnormals(ptr %kept) nounwind {{
  call void @keep_control(ptr %kept)
  %usual = load {kind}, ptr %kept
  %flushing = or {kind} %usual, {flushing}
  %behind = getelementptr i64, ptr %kept, i64 1
  store {kind} %flushing, ptr %behind
  call void @set_control(ptr %behind)
  ret void
}}
"""


NOTED_RESULT = 1 << 4  # the bit that x86 processors set where a result is one, and rounded to steps of the least
NOTED = 1 << 1 | NOTED_RESULT  # or where an operand is a subnormal number
# sub rsp, 8; stmxcsr [rsp]; and dword [rsp], ~NOTED; ldmxcsr [rsp]; add rsp, 8; ret
_FORGET = bytes.fromhex(f"4883ec08 0fae1c24 832424{0xFF - NOTED:02x} 0fae1424 4883c408 c3")


def forget_subnormal() -> None:
    """Has an x86 processor forget that this thread has met subnormal numbers, which it notes in this register too."""
    _forgetting()()


@functools.cache
def _forgetting() -> Callable[[], None]:
    pages = images.pages(_FORGET)
    if pages is None:
        raise MemoryError("the system gives no memory for code")
    function = ctypes.CFUNCTYPE(None)(images.address(pages))
    function._kept = pages  # type: ignore[attr-defined]
    return function
