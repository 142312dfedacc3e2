"""``f.explain(...)``: what a jitted function was compiled to, and why more than once, in words."""

from catena.core.lazy import LazyModule, has_compiler
from catena.core.source import function_place
from catena.transform import misses
from catena.transform.arguments import argument_name
from catena.transform.execute import as_values

compiler = LazyModule("catena.compiler.native.compile")


def explanation(compiled, fun, calls: dict) -> str:
    """The text of ``f.explain(...)``.

    Arguments:
      compiled: the function, compiled (``stages.Compiled``).
      fun: the function.
      calls: what was traced, by cache key, oldest first.
    """
    equations = counted(len(compiled._call.closed.eqns), "equation")
    if not has_compiler():
        nothing = compiled.runtime_executable() is None
        how = " became 0 steps" if nothing else ", evaluated one after the other, since there is no compiler here"
        head = f"{compiled.fun_name}: {equations}{how}"
        return "\n".join([head, *(recompilations(fun, calls) if len(calls) > 1 else [])])
    lines = compiler.explain(as_values(compiled._call.closed)[0])
    memory = compiled.memory_analysis()
    count = sum(not line.startswith(" ") for line in lines)
    head = f"{compiled.fun_name}: {equations} became {counted(count, 'step')}"
    history = [*recompilations(fun, calls), *linked(compiled.runtime_executable())] if len(calls) > 1 else []
    return "\n".join([head, *("  " + line for line in lines), sizes(memory), *history])


def counted(number: int, noun: str) -> str:
    """A number of things, in the singular where there is one."""
    return f"{number} {noun}" + "s" * (number != 1)


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


def recompilations(fun, calls: dict) -> list[str]:
    """Why a function was traced each time after the first, and what to do about it."""
    return [f"traced {len(calls)} times:", *reasons(fun, calls)]


def reasons(fun, calls: dict) -> list[str]:
    """For each trace but the first, numbered, what changed; then a cure for each kind of change."""
    keys = list(calls)
    names = [misses.leaf_names(call) for call in calls.values()]
    found = [misses.changes(fun, keys[i], keys[:i], names[i]) for i in range(1, len(keys))]
    lines = [f"  {i}. {'; '.join(map(str, changes))}" for i, changes in enumerate(found, 2)]
    return [*lines, *("  " + cure for cure in misses.cures([change for changes in found for change in changes]))]


def all_traces(fun, calls: dict) -> str:
    """The text of ``f.explain()`` without arguments: all that was traced, and why.

    Arguments:
      fun: the function.
      calls: what was traced, by cache key, oldest first.
    """
    place = function_place(fun)
    if not calls:
        return f"{place}: not traced yet; call it, or give explain the arguments of a call"
    (key, call), *_ = calls.items()
    times = "once" if len(calls) == 1 else f"{len(calls)} times"
    return "\n".join(
        [f"{place}: traced {times}", f"  1. {first_types(fun, key, misses.leaf_names(call))}", *reasons(fun, calls)]
    )


def first_types(fun, key: tuple, names: list[str]) -> str:
    """The types of the arguments of a trace, and its static arguments."""
    types = [f"{name}: {aval}" for name, aval in zip(names, key[1], strict=True)]
    statics = [f"{k if isinstance(k, str) else argument_name(fun, k)}={static.value!r}" for k, static in key[2]]
    return ", ".join(types + statics) or "no arguments"
