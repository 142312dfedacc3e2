"""The machine that programs are planned and written for: one object, handed on as an argument, never a global.

`host.this_machine` is the one at hand; another one is another object, for which programs can be planned and written, if
not run, anywhere. Costs and sizes have the values that were found best on x86 processors of the last ten years. They
are not measured anew on each: the order in which a sum is added up, and so its last bits, hangs on some of them.
"""

from __future__ import annotations

import functools

from catena.core.named import NamedTuple

LONG_VECTOR = 64  # bytes: of AVX-512, where vectors of integers go through fewer units, and lanes are dear to join


class Memory(NamedTuple):
    """The memory of one core, and from what size on it matters."""

    first_cache: int = 48 << 10  # bytes of the nearest: of rows that stay there, a block takes half
    second_cache: int = 1 << 20  # bytes of the one behind it: the panel of a product, or a row, takes half
    line: int = 64  # bytes that are read and written together: two threads that write into one wait for each other
    page: int = 1 << 12  # bytes that have one address translated, and that processors read ahead in
    huge_pages: bool = True  # whether `madvise` takes 14 for the advice that a piece of memory may have huge pages
    streamed: int = 1 << 24  # that a loop writes, from which on they go past the caches: they would not stay there
    streamed_squares: int = 1 << 23  # the same of a transposition, whose squares write lines that lie far apart
    staged_squares: int = 5 << 22  # the same, where lines are shared: below, what is written in part stays in caches
    copied: int = 1 << 17  # that a thread copies at a time, where there are twice as many
    least_kernel: int = 1 << 14  # elements of a kernel below which everything stays in cache anyhow
    least_row: int = 16  # elements of a row that is worth being kept there between kernels


class Sharing(NamedTuple):
    """What threads cost. A unit of work is about a fifth of a nanosecond: one element read, written or combined. Chunks
    follow from these numbers and from sizes, never from the number of threads.
    """

    worthwhile: int = 1 << 19  # units of work below which threads cost more than they give
    worthwhile_in_loops: int = 1 << 18  # the same where the threads are still awake from the iteration before
    worthwhile_awake: int = 1 << 17  # the same where they are likely awake, as other steps are many, or shared
    functions_in_loops: int = 1 << 15  # the same in loops, of several functions of mathematics, which do take that long
    moving: int = 4  # times as long does a unit take of what only moves elements to another layout
    moving_awake: int = 16  # the same where threads are likely awake
    chunk: int = 1 << 16  # units of work that make a chunk
    most_chunks: int = 64  # but for loops so long that a chunk would be more than
    long_chunk: int = 1 << 24  # units of work
    long_rows: int = 1 << 15  # elements of all rows, from which on rows are shared out
    row_tasks: int = 16  # among which rows are shared out, at most
    calls: int = 32  # chunks that a batch of library calls is shared out in, at most

    @property
    def group(self) -> int:
        """Units of work between two questions whether somebody pressed Ctrl-C: about a tenth of a second."""
        return 32 * self.long_chunk

    def least(self, awake: bool) -> int:
        """Units of work from which on threads share a step that is not in a loop."""
        return self.worthwhile_awake if awake else self.worthwhile

    def chunks(self, work: int) -> int:
        """Into how many chunks so much work is cut, where the loops allow it."""
        return max(min(self.most_chunks, max(work // self.chunk, 2)), work // self.long_chunk)

    def tasks(self, rows: int, n: int) -> int:
        """Among how many tasks rows of `n` elements are shared out."""
        return min(self.row_tasks, rows) if rows * n >= self.long_rows else 1


class Packing(NamedTuple):
    """Operands of products that are copied into panels, where that costs less than it gains."""

    rows: int = 96  # from which B is packed before; half as many, to fetch it for a task
    rows_in_tasks: int = 8  # from which tasks pack, if B is beyond the second cache; if not, from four times as many on
    columns: int = 128  # from which an A that is read across is copied
    columns_of_short_rows: int = 256  # the same where four terms lie in a page, and not before a loop
    bytes_from_afar: int = 1 << 29  # of an A, times columns, from which it is copied for a second panel of few columns
    bytes_of_pages: int = 1 << 28  # that the terms of an A span, times columns, up to which it is read where it lies
    panel: int = 1 << 18  # bytes of memory that a task has for a panel, on its stack
    task_rows: int = 768  # of a task that packs, at most: the fewer, the more often is each panel packed


class Tasks(NamedTuple):
    """How many tasks products are cut in, at most."""

    of_small: int = 8
    of_large: int = 16
    most: int = 64  # of those that are many times as large
    large: int = 1 << 29  # multiplications
    members: int = 3 << 17  # multiplications of members of a batch, which stay whole, below which threads do not pay
    half: int = 32  # rows from which, in loops and programs of many steps, each has half of them at most
    halved: int = 5 << 22  # multiplications below which that is so
    two: int = 1 << 23  # multiplications below which two are enough, where they do what follows on their rows
    moved: int = 1 << 19  # bytes of operands and result, from which programs of many steps share them as loops do


class Products(NamedTuple):
    """Products and convolutions by tiles that registers hold, and by BLAS."""

    most_rows: int = 8  # of a tile: each has an address in a general register
    most_vectors: int = 4  # in a row of a tile
    ragged: float = 0.04  # of the time: what tiles at edges, functions of their own, may cost to compile and to call
    terms: int = 512  # of a long sum that are added up at a time: a panel of B then fits a second-level cache
    packing: Packing = Packing()
    shared: int = 1 << 21  # multiplications below which threads do not pay
    shared_in_loops: int = 1 << 20  # the same where the threads are still awake from the iteration before
    task: int = 1 << 19  # multiplications that make a task
    task_rows: int = 256  # of a task that does not pack, at most, so that its part of A stays in a second-level cache
    tasks: Tasks = Tasks()
    blas_shared: int = 160**3  # multiplications by BLAS below which threads do not pay
    blas_task: int = 128**3  # multiplications by BLAS that make a task


class Sorting(NamedTuple):
    """Sorts and selections; numbers are keys where nothing else is said."""

    many_bytes: int = 1 << 11  # keys of a byte, from which on counting them is quickest
    long: int = 1 << 16  # from which on several threads sort a row, or look for its least keys
    least_chunk: int = 1 << 13  # that a thread splits at a time
    most_chunk: int = 1 << 15  # likewise
    least_buckets: int = 16  # parts that a long row is split into
    most_buckets: int = 128  # likewise
    bucket: int = 1 << 16  # about as many are in a part
    samples: int = 16  # for each part, of which its bounds are chosen
    part: int = 1 << 15  # at least, where a row is cut to look for the least keys
    parts: int = 16  # that such a row is cut into, at most
    sparse: int = 256  # for each one that is asked for, from which on few enough pass the threshold
    tasks: int = 64  # of a selection, at most


class Transforms(NamedTuple):
    """Fourier transforms."""

    exchange: float = 4.0  # what bringing rows to lanes costs a number, in the operations of `fourier.cost`
    near: int = 1 << 15  # bytes of scratch memory beyond which passes get slower
    slower: float = 1.5  # by so much
    masked: float = 1.7  # what a vector that is not full costs, in full ones


# Processors whose instruction for gathers takes three quarters of the time (measured on the first) of what LLVM, if it
# is not told, writes for them: for each lane a test of its mask, a jump and a load.
GATHERING = ("znver3", "znver4", "znver5")


TILES = frozenset(("amx-tile", "avx512bw"))  # what products by tiles of the processor's own need
AMX = {"bfloat16": "amx-bf16", "int8": "amx-int8"}  # and for each type of operands
BYTES = frozenset(("avx512vnni", "avx512bw"))  # what products of int8 need without them


class Machine(NamedTuple):
    """What planning and writing a program hang on."""

    triple: str  # as LLVM names it
    cpu: str  # likewise: for which processor code is generated
    features: frozenset[str]  # that this processor has, as LLVM names them
    vector_bytes: int  # of a SIMD register
    vector_registers: int
    absent: frozenset[str] = frozenset()  # features that `cpu` stands for, and that are not there
    threads: bool = True  # whether loops may be shared out among threads
    memory: Memory = Memory()
    sharing: Sharing = Sharing()
    products: Products = Products()
    sorting: Sorting = Sorting()
    transforms: Transforms = Transforms()

    @property
    def flags(self) -> str:
        """The features as LLVM's code generator takes them."""
        return _flags(self.features, self.absent, self.cpu in GATHERING)

    @property
    def streams(self) -> bool:
        """Whether what is stored may go past the caches, so that no line is read before it is written."""
        return self.triple.startswith("x86_64")

    @property
    def stops_at_subnormals(self) -> bool:
        """Whether a product with a subnormal number takes a hundred cycles, which the processor notes."""
        return self.triple.startswith("x86_64")

    @property
    def converts_halves(self) -> bool:
        """Whether the processor has instructions between f16 and f32."""
        return "f16c" in self.features or not self.triple.startswith("x86_64")

    @property
    def multiplied(self) -> frozenset[str]:
        """The numbers of 16 bits and fewer that the processor multiplies as they are (see `emit.narrow_products`)."""
        return self.multiplied_in_tiles | (frozenset(("int8",)) if self.features >= BYTES else frozenset())

    @property
    def multiplied_in_tiles(self) -> frozenset[str]:
        """Those that it multiplies in tiles of its own."""
        return frozenset(name for name, feature in AMX.items() if self.features >= TILES | {feature})

    @property
    def chooses(self) -> int:
        """The bytes of the vectors whose lanes one instruction fills with any lanes of others; 0 if there is none."""
        return 64 if "avx512f" in self.features else 32 if "avx2" in self.features else 0

    @property
    def compares_floats(self) -> bool:
        """Whether extremes of floats are sooner found by comparing these than by their bits: of integers of 64 bits no
        instruction tells the larger, and of those of 32 bits fewer units do than of floats.
        """
        return self.triple.startswith("x86_64") and "avx512f" not in self.features

    @property
    def least_chosen(self) -> int:
        """The bytes of such lanes, at least, in vectors of 64."""
        return 1 if "avx512vbmi" in self.features else 2 if "avx512bw" in self.features else 4

    def masks(self, size: int) -> bool:
        """Whether one instruction reads or writes some lanes of a vector, which are of so many bytes."""
        return size in (4, 8) and not {"avx2", "avx512f"}.isdisjoint(self.features)

    def masks_stores(self, size: int) -> bool:
        """Whether one instruction writes some lanes of a vector, which are of so many bytes."""
        return self.masks(size) or "avx512bw" in self.features

    def compresses(self, bits: int) -> bool:
        """Whether the processor packs chosen lanes of a vector of such integers together."""
        needed = {"avx512f", "avx512bw", "avx512dq", "avx512vl"} | ({"avx512vbmi2"} if bits < 32 else set())
        return needed <= self.features


@functools.lru_cache(maxsize=16)
def _flags(features: frozenset[str], absent: frozenset[str], gathers: bool) -> str:
    """Asked for by the name of each program on disk."""
    signs = dict.fromkeys(absent, "-") | dict.fromkeys(features, "+")
    signs |= {"fast-gather": "+"} if gathers else {}
    return ",".join(f"{signs[name]}{name}" for name in sorted(signs))


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
    )


X86_64, X86_64_V3, X86_64_V4 = _x86("x86-64", V1, 16), _x86("x86-64-v3", V3, 32), _x86("x86-64-v4", V4, 64, 32)
SAPPHIRE_RAPIDS = _x86("sapphirerapids", V4 | {"avx512vbmi2", "avx512fp16"} | TILES | set(AMX.values()), 64, 32)
ICE_LAKE = _x86("icelake-server", V4 | {"avx512vbmi2"}, 64, 32)
CASCADE_LAKE = _x86("cascadelake", V4 | BYTES, 64, 32)
AARCH64 = Machine(
    triple="aarch64-unknown-linux-gnu",
    cpu="generic",
    features=frozenset(("neon",)),
    vector_bytes=16,
    vector_registers=32,
)
LEVELS = {m.cpu: m for m in (X86_64, X86_64_V3, X86_64_V4)}
