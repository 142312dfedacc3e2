"""Writing LLVM IR text: names, blocks, stack slots, and the small idioms (splats, lanes, memory
access) built on them.
"""

from __future__ import annotations

from catena.compiler.emit import masks, small_floats, strided
from catena.compiler.emit.sizes import LEAST, Sizes, bits, is_size
from catena.compiler.graph.symbols import as_float
from catena.compiler.graph.types import Type, constant, mangled, vector
from catena.compiler.kernels.scheduling import most_stride
from catena.compiler.vector_math import helpers


class Emitter:
    """The text of one function while it is being written."""

    def __init__(self):
        self.lines: list[str] = []
        self.slots: list[str] = []  # allocas, placed in the entry block
        self.codes: dict[str, tuple] = {}  # widened floats -> their dtype's name, what they were in memory
        self.needs: dict = {}  # helper functions: name -> declaration or definition, or what defines it
        self.count = 0
        self.nowhere: dict[tuple[int, bool], str] = {}  # slots for accesses with a false mask
        self.block = "entry"
        self.ask: str | None = None  # the address of the table by which long work asks whether to go on
        self.sizes: Sizes | None = None  # numbers that the text does not tell, if other programs may call it

    def name(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def op(self, text: str) -> str:
        """Appends an instruction that has a result; returns its name."""
        self.count += 1
        name = f"%t{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def label(self) -> str:
        self.count += 1
        return f"L{self.count}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")

    def slot(self, type_: str, align: int = 0) -> str:
        self.count += 1
        name = f"%s{self.count}"
        self.slots.append(f"  {name} = alloca {type_}" + (f", align {align}" if align else ""))
        return name

    def least(self, x, y) -> str:
        """The smaller of two counts or places."""
        return self.op(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")

    def most(self, x, y) -> str:
        return self.op(f"call i64 @llvm.smax.i64(i64 {x}, i64 {y})")

    def size(self, n, type_: str = "i64"):
        """A number that hangs on extents, as text: its name, where the text does not tell it."""
        return n if self.sizes is None or not isinstance(n, int) or not is_size(n) else self.sizes.named(type_, n)

    # ---- loops ---------------------------------------------------------------------------------------------

    def begin_loop(self, start, stop, step: int | str = 1) -> tuple:
        """Opens a loop that runs at least once; returns its variable and what `end_loop` needs."""
        head, before = self.label(), self.block
        self.jump(head)
        self.start(head)
        i, after = self.name(), self.name()
        at = len(self.lines)
        self.lines.append("")
        return i, (i, after, head, before, at, start, stop, step)

    def end_loop(self, opened: tuple) -> None:
        i, after, head, before, at, start, stop, step = opened
        self.lines[at] = f"  {i} = phi i64 [ {start}, %{before} ], [ {after}, %{self.block} ]"
        self.do(f"{after} = add nuw nsw i64 {i}, {step}")
        more = self.op(f"icmp slt i64 {after}, {stop}")
        exit_ = self.label()
        self.branch(more, head, exit_)
        self.start(exit_)

    # ---- lanes ---------------------------------------------------------------------------------------------

    def splat(self, x: str, register: str, width: int) -> str:
        if width == 1:
            return x
        if x[0] != "%" and not x.startswith(("splat", "<")):
            return f"splat ({register} {x})"
        one = self.op(f"insertelement <{width} x {register}> poison, {register} {x}, i64 0")
        v = f"<{width} x {register}>"
        return self.op(f"shufflevector {v} {one}, {v} poison, <{width} x i32> zeroinitializer")

    def lanes(self, width: int, scale: int = 1) -> str:
        return "<" + ", ".join(f"i64 {k * scale}" for k in range(width)) + ">"

    def multiples(self, width: int, step: int) -> str:
        """Vector 0, step, 2 step ...; of a step that may hang on an extent, as a number that the program is told."""
        told = self.size(step)
        if not isinstance(told, str):
            return self.lanes(width, step)
        return self.op(f"mul nsw <{width} x i64> {self.splat(told, 'i64', width)}, {self.lanes(width)}")

    def call(self, symbol: str, result: str, args: list[tuple[str, str]]) -> str:
        """A call of an external function, declared as needed."""
        if symbol not in self.needs:
            self.needs[symbol] = f"declare {result} @{symbol}({', '.join(t for t, _ in args)})"
        return self.op(f"call {result} @{symbol}({', '.join(f'{t} {x}' for t, x in args)})")

    def scalarised(self, symbol: str, register: str, xs: list[str], width: int) -> str:
        """A scalar function applied to each lane."""
        if width == 1:
            return self.call(symbol, register, [(register, x) for x in xs])
        v, out = vector(register, width), "poison"
        for k in range(width):
            lane = [(register, self.op(f"extractelement {v} {x}, i64 {k}")) for x in xs]
            out = self.op(f"insertelement {v} {out}, {register} {self.call(symbol, register, lane)}, i64 {k}")
        return out

    # ---- memory --------------------------------------------------------------------------------------------

    def element(self, pointer: str, memory: str, offset) -> str:
        """The address of an element, `offset` elements of type `memory` further."""
        if offset == 0:
            return pointer
        return self.op(f"getelementptr {memory}, ptr {pointer}, i64 {offset}")

    def load(self, t: Type, pointer: str, width: int, stride: int = 1, mask: str | None = None) -> str:
        """A value in registers, read from memory: `width` elements `stride` apart."""
        raw = self.load_raw(t, pointer, width, stride, mask)
        return self.widen(raw, t, width)

    def load_raw(self, t: Type, pointer: str, width: int, stride: int, mask: str | None) -> str:
        m = t.memory
        if width == 1:
            if mask is not None:
                pointer = self.op(f"select i1 {mask}, ptr {pointer}, ptr {masks.nowhere(self)}")
            return self.op(f"load {m}, ptr {pointer}, align {t.bytes}")
        if stride == -1:
            pointer = self.element(pointer, m, 1 - width)
            if mask is not None:
                mask = self.reversed(mask, "i1", width)
            return self.reversed(self.load_raw(t, pointer, width, 1, mask), m, width)
        if stride == 1:
            if mask is not None:
                return masks.load(self, t, pointer, width, mask)
            return strided.neighbours(self, m, pointer, width, t.bytes)
        if stride == 2:
            return strided.load_every_second(self, t, pointer, width, mask)
        if 2 < stride <= most_stride(t.bytes * width) and mask is None:
            return strided.load(self, t, pointer, width, stride)
        if (found := strided.load_apart(self, t, pointer, width, stride, mask)) is not None:
            return found
        addresses = self.op(f"getelementptr {m}, ptr {pointer}, <{width} x i64> {self.multiples(width, stride)}")
        return self.gather(t, addresses, width, mask)

    def load_interleaved(self, t: Type, pointer: str, width: int, masks=(None, None)) -> list[str]:
        """Two raw vectors, of the elements at even places and of those at odd ones. Masks tell which of the first and
        of the last `width` elements are read.
        """
        v = vector(t.memory, width)
        parts = zip((0, width), masks)
        halves = [self.load_raw(t, self.element(pointer, t.memory, at), width, 1, mask) for at, mask in parts]
        both = ", ".join(f"{v} {half}" for half in halves)
        orders = [", ".join(f"i32 {k}" for k in range(first, 2 * width, 2)) for first in (0, 1)]
        return [self.op(f"shufflevector {both}, <{width} x i32> <{order}>") for order in orders]

    def store_interleaved(self, t: Type, parts: list[str], pointer: str, width: int, masks=(None, None)) -> None:
        """Writes the elements of two raw vectors in turn, those that the masks tell."""
        v = vector(t.memory, width)
        for start, mask in zip((0, width), masks):
            order = ", ".join(f"i32 {k // 2 + k % 2 * width}" for k in range(start, start + width))
            mixed = self.op(f"shufflevector {v} {parts[0]}, {v} {parts[1]}, <{width} x i32> <{order}>")
            self.store_raw(t, mixed, self.element(pointer, t.memory, start), width, mask)

    def gather(self, t: Type, addresses: str, width: int, mask: str | None) -> str:
        v = vector(t.memory, width)
        mask = mask if mask is not None else "splat (i1 true)"
        return self.op(
            f"call {v} @llvm.masked.gather.v{width}{mangled(t.memory)}.v{width}p0("
            f"<{width} x ptr> {addresses}, i32 {t.bytes}, "
            f"<{width} x i1> {mask}, {v} zeroinitializer)"
        )

    def store(self, t: Type, x: str, pointer: str, width: int, stride: int = 1, mask: str | None = None) -> None:
        """Writes a register value to memory."""
        raw, m = self.narrow(x, t, width), t.memory
        if width == 1:
            if mask is not None:
                pointer = self.op(f"select i1 {mask}, ptr {pointer}, ptr {masks.nowhere(self, written=True)}")
            self.do(f"store {m} {raw}, ptr {pointer}, align {t.bytes}")
        elif stride == -1:
            raw = self.reversed(raw, m, width)
            mask = self.reversed(mask, "i1", width) if mask is not None else None
            self.store_raw(t, raw, self.element(pointer, m, 1 - width), width, mask)
        elif stride == 1:
            self.store_raw(t, raw, pointer, width, mask)
        elif stride == 2 and mask is None:
            strided.store_every_second(self, t, raw, pointer, width)
        else:
            addresses = self.op(f"getelementptr {m}, ptr {pointer}, <{width} x i64> {self.multiples(width, stride)}")
            self.scatter(t, raw, addresses, width, mask)

    def store_raw(self, t: Type, raw: str, pointer: str, width: int, mask: str | None) -> None:
        m, v = t.memory, vector(t.memory, width)
        if mask is None:
            self.do(f"store {v} {raw}, ptr {pointer}, align {t.bytes}")
        else:
            self.do(
                f"call void @llvm.masked.store.v{width}{mangled(m)}.p0({v} {raw}, "
                f"ptr {pointer}, i32 {t.bytes}, <{width} x i1> {mask})"
            )

    def scatter(self, t: Type, raw: str, addresses: str, width: int, mask: str | None) -> None:
        v = vector(t.memory, width)
        mask = mask if mask is not None else "splat (i1 true)"
        self.do(
            f"call void @llvm.masked.scatter.v{width}{mangled(t.memory)}.v{width}p0({v} {raw}, "
            f"<{width} x ptr> {addresses}, i32 {t.bytes}, "
            f"<{width} x i1> {mask})"
        )

    def reversed(self, x: str, element: str, width: int) -> str:
        v = vector(element, width)
        order = ", ".join(f"i32 {k}" for k in range(width - 1, -1, -1))
        return self.op(f"shufflevector {v} {x}, {v} poison, <{width} x i32> <{order}>")

    def transposed(self, rows: list[str], element: str) -> list[str]:
        """The columns of a square of vectors: blocks beside the diagonal change places, ever smaller ones."""
        width, v = len(rows), vector(element, len(rows))
        size = width // 2
        while size:
            low = ", ".join(f"i32 {k + (width - size if k & size else 0)}" for k in range(width))
            high = ", ".join(f"i32 {k + (width if k & size else size)}" for k in range(width))
            out = list(rows)
            for i in (i for i in range(width) if not i & size):
                pair = f"{v} {rows[i]}, {v} {rows[i + size]}"
                out[i] = self.op(f"shufflevector {pair}, <{width} x i32> <{low}>")
                out[i + size] = self.op(f"shufflevector {pair}, <{width} x i32> <{high}>")
            rows, size = out, size // 2
        return rows

    # ---- between memory and registers ----------------------------------------------------------------------

    def widen(self, raw: str, t: Type, width: int) -> str:
        if t.kind == "b":  # any byte but 0 is true
            out = self.op(f"icmp ne {vector('i8', width)} {raw}, {self.splat('0', 'i8', width)}")
            self.codes[out] = t.name, raw
            return out
        if not t.narrow:
            return raw
        if t.kind != "f":
            return self.wrap(raw, t, width)
        out = self._widen_float(raw, t, width)
        self.codes[out] = t.name, raw
        return out

    def _widen_float(self, raw: str, t: Type, width: int) -> str:
        if t.name == "float16":
            return self.op(f"fpext {vector('half', width)} {raw} to {vector('float', width)}")
        if t.name == "bfloat16":
            wide = self.op(f"zext {vector('i16', width)} {raw} to {vector('i32', width)}")
            high = self.op(f"shl {vector('i32', width)} {wide}, {self.splat('16', 'i32', width)}")
            return self.op(f"bitcast {vector('i32', width)} {high} to {vector('float', width)}")
        return self._small_float("decode", raw, t, "i8", "float", width)

    def narrow(self, x: str, t: Type, width: int) -> str:
        """The memory form of a register value (floats are already rounded to the dtype, most by way of that form)."""
        name, code = self.codes.get(x, (None, None))
        if name == t.name:
            return code
        if t.kind == "b":
            return self.op(f"zext {vector('i1', width)} {x} to {vector('i8', width)}")
        if not t.narrow:
            return x
        if t.kind != "f":
            return self.op(f"and {vector('i8', width)} {x}, {self.splat(str((1 << t.bits) - 1), 'i8', width)}")
        if t.name == "float16":
            return self.op(f"fptrunc {vector('float', width)} {x} to {vector('half', width)}")
        if t.name == "bfloat16":
            bits = self.op(f"bitcast {vector('float', width)} {x} to {vector('i32', width)}")
            high = self.op(f"lshr {vector('i32', width)} {bits}, {self.splat('16', 'i32', width)}")
            return self.op(f"trunc {vector('i32', width)} {high} to {vector('i16', width)}")
        return self._small_float("encode", x, t, "float", "i8", width)

    def wrap(self, x: str, t: Type, width: int) -> str:
        """A narrow integer extended from its own bits to its register."""
        r, by = vector(t.register, width), self.splat(str(8 - t.bits), "i8", width)
        return self.op(f"{'ashr' if t.kind == 'i' else 'lshr'} {r} {self.op(f'shl {r} {x}, {by}')}, {by}")

    def _small_float(self, what: str, x: str, t: Type, source: str, target: str, width: int) -> str:
        symbol = small_floats.symbol(what, t.name, width)
        self.needs[symbol] = f"; {symbol}"
        if width == 1 or t.name not in small_floats.BY_TABLE:
            return self.op(f"call {vector(target, width)} @{symbol}({vector(source, width)} {x})")
        out, v = "poison", vector(target, width)
        for k in range(width):
            lane = self.op(f"extractelement {vector(source, width)} {x}, i64 {k}")
            one = self.op(f"call {target} @{symbol}({source} {lane})")
            out = self.op(f"insertelement {v} {out}, {target} {one}, i64 {k}")
        return out


def constant_of(e: Emitter, value, t: Type, width: int) -> str:
    """A constant of the program, in all lanes; a float that is not told, such as a count, is read where sizes are."""
    if e.sizes is None or t.kind != "f" or e.sizes.tells(as_float(value), t.narrow):
        return constant(value, t, width)
    return e.splat(e.sizes.named(t.register, bits(value, t.register)), t.register, width)


def told_elsewhere(e: Emitter, size: int) -> int | str:
    """A number that hangs on a length, though it may be small: how many rows a block has, where the last vector is."""
    return e.size(size) if e.sizes is None or size >= LEAST else e.sizes.named("i64", size, 4)


def spread(e: Emitter, x: str, t: Type, width: int) -> str:
    """A value of a dtype in all lanes."""
    name, code = e.codes.get(x, (None, None))
    if t.name != "float16" or name != t.name or width not in helpers.SPREAD:
        return e.splat(x, t.register, width)
    symbol = helpers.spread_name(width)
    e.needs.setdefault(symbol, ("text", helpers.spread(width)))
    return e.op(f"call {vector(t.register, width)} {symbol}(half {code})")


def shortened(e: Emitter, x: str, type_: str) -> str:
    """A number of 64 bits in a type that has no more."""
    return x if type_ == "i64" else e.op(f"trunc i64 {x} to {type_}")


def divide(e: Emitter, x: str, n: int | str) -> tuple[str, str]:
    """Quotient and remainder of a place or count."""
    if n == 1:
        return x, "0"
    quotient = e.op(f"udiv i64 {x}, {n}")
    return quotient, e.op(f"sub i64 {x}, {e.op(f'mul i64 {quotient}, {n}')}")
