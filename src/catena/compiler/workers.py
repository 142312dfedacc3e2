"""The process's pool of threads, compiled when first needed; its code is kept on disk as that of programs is."""

from __future__ import annotations

import functools

from catena.compiler import cache, host
from catena.core.lazy import LazyModule, llvm
from catena.runtime import threads

link = LazyModule("catena.compiler.link")
LEVEL = 0  # LLVM's effort


def parallel_for() -> threads.ParallelFor | None:
    """What runs parallel loops; None when programs run on one thread."""
    return threads.ParallelFor(pool) if threads.available() and threads.count() > 1 else None


@functools.cache
def pool() -> threads.Pool:
    """The pool of this process, started."""
    name = cache.key(threads.text(), *host.identity(), str(LEVEL))
    code = cache.load(name)
    if code is None:
        code, _ = link.compile_text(threads.text(), link.Times(), LEVEL)
        cache.save(name, code)
    with host.lock:
        engine = llvm().create_mcjit_compiler(llvm().parse_assembly(""), host.new_machine(1))
        engine.add_object_file(llvm().ObjectFileRef.from_data(code))
        engine.finalize_object()
    return threads.Pool(engine)
