"""The machine that programs are planned and written for: one object, handed on as an argument, never a global.

`host.this_machine` is the one at hand; another one is another object, for which programs can be planned and written, if
not run, anywhere. Costs and sizes have the values that were found best on x86 processors of the last ten years. They
are not measured anew on each: the order in which a sum is added up, and so its last bits, hangs on some of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What planning and writing a program hang on."""

    triple: str  # as LLVM names it
    cpu: str  # likewise: for which processor code is generated
    features: frozenset[str]  # that this processor has, as LLVM names them
    absent: frozenset[str] = frozenset()  # features that `cpu` stands for, and that are not there
    vector_bytes: int  # of a SIMD register
    vector_registers: int
    threads: bool = True  # whether loops may be shared out among threads
    huge_pages: bool = False  # whether `madvise` takes 14 for the advice that a piece of memory may have huge pages

    @property
    def flags(self) -> str:
        """The features as LLVM's code generator takes them."""
        signs = dict.fromkeys(self.absent, "-") | dict.fromkeys(self.features, "+")
        return ",".join(f"{signs[name]}{name}" for name in sorted(signs))

    @property
    def converts_halves(self) -> bool:
        """Whether the processor has instructions between f16 and f32."""
        return "f16c" in self.features or not self.triple.startswith("x86_64")

    def compresses(self, bits: int) -> bool:
        """Whether the processor packs chosen lanes of a vector of such integers together."""
        needed = {"avx512f", "avx512bw", "avx512dq", "avx512vl"} | ({"avx512vbmi2"} if bits < 32 else set())
        return needed <= self.features


# Processors of today, and the levels of x86-64 that compilers and distributions know.
V1 = frozenset("cx8 fxsr mmx sse sse2".split())
V3 = V1 | set("avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe popcnt sahf sse3 sse4.1 sse4.2 ssse3 xsave".split())
V4 = V3 | set("avx512bw avx512cd avx512dq avx512f avx512vl".split())


def _x86(cpu: str, features: frozenset[str], vector_bytes: int, vector_registers: int = 16) -> Machine:
    return Machine(
        triple="x86_64-unknown-linux-gnu",
        cpu=cpu,
        features=features,
        vector_bytes=vector_bytes,
        vector_registers=vector_registers,
        huge_pages=True,
    )


X86_64, X86_64_V3, X86_64_V4 = _x86("x86-64", V1, 16), _x86("x86-64-v3", V3, 32), _x86("x86-64-v4", V4, 64, 32)
ICE_LAKE = _x86("icelake-server", V4 | {"avx512vbmi2"}, 64, 32)
AARCH64 = Machine(
    triple="aarch64-unknown-linux-gnu",
    cpu="generic",
    features=frozenset(("neon",)),
    vector_bytes=16,
    vector_registers=32,
    huge_pages=True,
)
LEVELS = {m.cpu: m for m in (X86_64, X86_64_V3, X86_64_V4)}
