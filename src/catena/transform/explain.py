"""``f.explain(...)``: what a jitted function was compiled to, and why more than once, in words."""

from catena.core.lazy import compiler
from catena.transform import misses


def explanation(compiled, keys: list[tuple], names: list[str]) -> str:
    """The text of ``f.explain()``.

    Arguments:
      compiled: the function, compiled (``stages.Compiled``).
      keys: the cache keys of the function, oldest first.
      names: the names of its arguments' leaves.
    """
    lines = compiler.explain(compiled._call.closed)
    memory = compiled.memory_analysis()
    count = sum(not line.startswith(" ") for line in lines)
    head = f"{compiled.fun_name}: {len(compiled._call.closed.eqns)} equations became {count} steps"
    history = [*recompilations(keys, names), *linked(compiled.runtime_executable())] if len(keys) > 1 else []
    return "\n".join([head, *("  " + line for line in lines), sizes(memory), *history])


def linked(executable) -> list[str]:
    """How much of the machine code was there already: kernels do not depend on the batch size."""
    if executable is None or not executable.report["linked"]:
        return []
    return ["machine code: {linked} of {functions} kernels linked, not compiled again".format(**executable.report)]


def sizes(memory) -> str:
    arguments, results = shown(memory.argument_size_in_bytes), shown(memory.output_size_in_bytes)
    return f"memory: arguments {arguments}, results {results}, temporaries {shown(memory.temp_size_in_bytes)}"


def shown(size: int) -> str:
    """Bytes with a unit."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"


def recompilations(keys: list[tuple], names: list[str]) -> list[str]:
    """Why the function was traced each time after the first."""
    lines = [f"traced {len(keys)} times:"]
    for i in range(1, len(keys)):
        reasons = misses.history(keys[i], keys[:i], names)
        lines.append(f"  {i + 1}. {'; '.join(reasons)}")
    return lines
