"""The process's pool of threads, compiled when first needed; its code is kept on disk as that of programs is."""

from __future__ import annotations

from catena.compiler.machine import Machine
from catena.compiler.native import cache, host
from catena.core.lazy import LazyModule
from catena.core.locks import made_once
from catena.runtime import threads
from catena.runtime.native import Code

link = LazyModule("catena.compiler.native.link")
LEVEL = 0  # LLVM's effort


def parallel_for(machine: Machine) -> threads.ParallelFor | None:
    """What runs parallel loops; None when programs run on one thread."""
    return threads.ParallelFor(pool) if machine.threads else None


@made_once
def pool() -> threads.Pool:
    """The pool of this process, started."""
    name = cache.key(threads.text(), *host.identity(), str(LEVEL))
    code = cache.load(name)
    if code is None:
        code, _ = link.compile_text(threads.text(), link.Times(), LEVEL)
        cache.save(name, code)
    return threads.Pool(Code(code, host.new_generator))
