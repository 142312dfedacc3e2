"""Helpers of functions of mathematics by instructions of the processor that LLVM does not choose by itself, or not
without others beside them. They compute the same bits.
"""

from __future__ import annotations

from functools import cache

from catena.compiler.vector_math import helpers

CHOOSING = {  # by what is chosen: the feature, what chooses (of the low bits of places, whatever the others are)
    ("float", 16): ("avx512f", "llvm.x86.avx512.permvar.sf.512"),
    ("double", 8): ("avx512f", "llvm.x86.avx512.permvar.df.512"),
    ("float", 8): ("avx2", "llvm.x86.avx2.permps"),
    ("i32", 8): ("avx2", "llvm.x86.avx2.permd"),
}
PARTS = {
    which: f"llvm.x86.avx512.mask.{name}.pd.512" for which, name in (("exponent", "getexp"), ("significand", "getmant"))
}
OF_HALVES = ("avx512fp16", "fullfp16")  # the features of processors that compute float16
IS_SUBNORMAL = 32  # among the kinds of numbers that `vfpclassps` tells


def with_instructions(text: str, features: frozenset[str]) -> str:
    """The module with helpers that a processor with these features has instructions for."""
    if helpers.PREFIX not in text:
        return text
    declares: dict[str, None] = {}
    for general, own in _own(features).items():
        if general in text:
            text = text.replace(general, own.definition)
            declares.update(dict.fromkeys(own.declares))
    return "\n".join([*(line for line in declares if not _is_declared(line, text)), text])


def _is_declared(line: str, text: str) -> bool:
    """Whether a function that `line` declares is declared in the module, as those are by which lanes are chosen."""
    called = line[line.index("@") : line.index("(") + 1]
    at = text.find(called)
    while at >= 0:  # a few places, where to look at each line would take a millisecond for 50 kB
        if text.startswith("declare ", text.rfind("\n", 0, at) + 1):
            return True
        at = text.find(called, at + 1)
    return False


@cache
def _own(features: frozenset[str]) -> dict[str, helpers.Own]:
    """The definitions of this processor by the general ones."""
    made = {}
    for (elem, width), (feature, instruction) in CHOOSING.items():
        if feature in features:
            choice = helpers.Choice(elem, width)
            made[choice.definition] = choice.by(instruction)
    for which, instruction in PARTS.items() if "avx512f" in features else ():
        part = helpers.Part(which, "double", 8)
        made[part.definition] = part.by(instruction)
    if "avx512f" in features:
        steps = helpers.Steps(helpers.LONGEST)
        made[steps.definition] = steps.by("llvm.x86.avx512.mask.cvtps2dq.512")
    if "avx512dq" in features:
        made[helpers.subnormal(16)] = helpers.subnormal_by("llvm.x86.avx512.fpclass.ps.512", IS_SUBNORMAL, 16)
    if not features.isdisjoint(OF_HALVES):
        made |= {helpers.spread(width): helpers.spread_by(width) for width in helpers.SPREAD}
        extremes = [helpers.HalfExtreme(which, width) for which in ("maximum", "minimum") for width in helpers.HALVES]
        made |= {extreme.definition: extreme.by_halves() for extreme in extremes}
    return made
