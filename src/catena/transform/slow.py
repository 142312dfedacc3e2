"""One line in the log where tracing and compiling a function took long: what of it took how long, and what there was to
compile. ``jax_slow_compile_secs`` says what is long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from catena.core import log
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from catena.core.named import NamedTuple
from catena.core.source import PACKAGE, shown_name, user_source

# What the stages of the compiler are called here (`Executable.report`). In none of them, code is loaded: what is on
# the disk, LLVM, the compiler itself.
STAGES = {
    "planning": ("lower", "plan", "emit"),
    "LLVM": ("parse", "optimise", "generate"),
}
MOST = 0.5  # of the equations: a line that made so many is named


class Line(NamedTuple):
    """A line of a user's program, and the name of the function that it stands in."""

    file: str
    number: int
    function: str

    def __str__(self) -> str:
        return f"{shown_name(self.file)}:{self.number} ({self.function})"


def tell(closed: ClosedJaxpr, name: str, tracing: float, compiling: float, stages: Mapping[str, float]) -> None:
    """Log the line.

    Arguments:
      closed: what was compiled.
      name: its name, for where nothing more is known.
      tracing, compiling: the seconds that it took.
      stages: those of them that the compiler's stages took.
    """
    seconds = tracing + compiling
    took = {"tracing": tracing} | {part: sum(stages.get(x, 0.0) for x in each) for part, each in STAGES.items()}
    took["loading"] = seconds - sum(took.values())
    parts = sorted([(s, part) for part, s in took.items() if s >= 0.01 * seconds], reverse=True)
    text = "%s took %.2f s to trace and compile (%s): %s. jax_slow_compile_secs says from how many on this is said"
    shown = ", ".join(f"{part} {s:.2f} s" for s, part in parts)
    place = place_of(closed.jaxpr.debug_info, name)
    log.announce(text, place, seconds, shown, equations(closed.jaxpr), loud=True)


def place_of(info, name: str) -> str:
    """The function and where it is defined; if that is not in the user's program, where it is called there."""
    place = getattr(info, "func_src_info", "")
    if " at " in place and PACKAGE not in place:
        return place
    caller = user_source()
    return name if caller is None else f"{name}, called at {caller},"


def equations(jaxpr: Jaxpr) -> str:
    """How many there are, those of calls as often as they are called; the line that made most of them, if one did."""
    lines = counted(jaxpr, {})
    total = lines.total()
    text = f"{total:,} equation{'s' * (total != 1)}"
    (line, most), *_ = [*lines.most_common(1), (None, 0)]
    return f"{text}, {most:,} of them made at {line}" if line is not None and total > most >= MOST * total else text


def counted(jaxpr: Jaxpr, known: dict[int, Counter]) -> Counter:
    """The equations of a jaxpr and of those in it by the lines that made them; each jaxpr is gone through once."""
    if id(jaxpr) not in known:
        lines: Counter = Counter()
        for eqn in jaxpr.eqns:
            inner = [*subjaxprs(eqn.own_params)]
            for each in inner:
                lines.update(counted(each, known))
            if not inner:
                source = eqn.source
                lines[source and Line(source.file_name, source.line, source.function_name)] += 1
        known[id(jaxpr)] = lines
    return known[id(jaxpr)]
