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

    def compresses(self, bits: int) -> bool:
        """Whether the processor packs chosen lanes of a vector of such integers together."""
        needed = {"avx512f", "avx512bw", "avx512dq", "avx512vl"} | ({"avx512vbmi2"} if bits < 32 else set())
        return needed <= self.features


V4 = frozenset("avx2 fma avx512f avx512bw avx512cd avx512dq avx512vl".split())  # features of a level of x86-64, in part

X86_64_V4 = Machine(
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64-v4",
    features=V4 | {"avx512vbmi2"},
    vector_bytes=64,
    vector_registers=32,
    huge_pages=True,
)
X86_64_V3 = Machine(
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64-v3",
    features=frozenset(("avx2", "fma")),
    vector_bytes=32,
    vector_registers=16,
    huge_pages=True,
)
X86_64 = Machine(
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64",
    features=frozenset(("sse2",)),
    vector_bytes=16,
    vector_registers=16,
    huge_pages=True,
)
AARCH64 = Machine(
    triple="aarch64-unknown-linux-gnu",
    cpu="generic",
    features=frozenset(("neon",)),
    vector_bytes=16,
    vector_registers=32,
    huge_pages=True,
)
