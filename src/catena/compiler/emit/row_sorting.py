"""How a program sorts rows: by quicksort where the processor compresses vectors, by radix elsewhere; on all threads.

Many rows are shared out among tasks. A long row is cut into chunks that fit a cache; every chunk is split by keys that
divide a sample evenly (the passes are those of the quicksort, only with the same pivots everywhere), the pieces are
brought together in buckets, and the buckets are sorted. Chunks, buckets and tasks depend on sizes alone.

Source: Frazer and McKellar, "Samplesort: a sampling approach to minimal storage tree sorting", JACM 17 (1970).
"""

from __future__ import annotations

from catena.compiler.emit import quicksort, sorting
from catena.compiler.emit.branches import when
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.tasks import in_tasks
from catena.compiler.plan.sorting import Keys

WORK_OF_KEY = 64  # units of work (see `plan.sharing.work`) for each key that is sorted
TOLD = 64  # keys of a row below which the text tells how many: LLVM leaves loops out there


class Rows(Keys):
    """Writes what is done with rows of keys."""

    @classmethod
    def of(cls, keys: Keys) -> Rows:
        return cls(keys.bits, keys.paired, keys.n, keys.quick, keys.limits)

    def asks(self, w) -> bool:
        """Whether sorting a row takes one thread so long that a signal should end it in between."""
        return not self.quick and WORK_OF_KEY * self.n >= w.machine.sharing.group

    def size(self, e: Emitter, n: int, type_: str = "i64") -> int | str:
        """A number that hangs on the length of the rows, as text."""
        return n if self.n < TOLD else e.size(n, type_)

    @property
    def types(self) -> list[str]:
        return [f"i{self.bits}", "i32"][: 1 + self.paired]

    def at(self, e: Emitter, pointers: list[str], offset) -> list[str]:
        return [e.element(p, t, offset) for p, t in zip(pointers, self.types)]

    def copy(self, e: Emitter, to: list[str], source: list[str], count: str) -> None:
        for a, b, size in zip(to, source, self.sizes):
            number = e.op(f"mul i64 {count}, {size}")
            e.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {a}, ptr {b}, i64 {number}, i1 false)")

    def sort(self, w, e: Emitter, rows: list[str], spares: list[str], n, low, high) -> None:
        """The call that brings the keys of the ranks from `low` to `high` of a row to their places."""
        bits, paired = self.bits, self.paired
        if not self.quick:
            asks = e.ask is not None
            key = (bits, paired, None, asks)
            w.helpers[sorting.symbol(*key)] = ("sorting", *key)
            order = [x for pair in zip(rows, spares) for x in pair]
            ask = f", ptr {e.ask}" if asks else ""
            return e.do(f"call void @{sorting.symbol(*key)}({_pointers(order)}, i64 {n}{ask})")
        w.helpers.update(quicksort.needs(bits, paired, self.n))
        if self.n <= quicksort.capacity(bits, paired):
            few = quicksort.network_symbol(bits, paired, quicksort.registers(bits, self.n))
            return e.do(f"call void @{few}({_pointers(rows)}, i64 {n})")
        name = quicksort.symbol(bits, paired, quicksort.REGISTERS[bits, paired])
        depth = self.size(e, 2 * self.n.bit_length())
        return e.do(f"call void @{name}({_pointers([*rows, *spares])}, i64 {n}, i64 {low}, i64 {high}, i64 {depth})")


def _pointers(names: list[str]) -> str:
    return ", ".join(f"ptr {p}" for p in names)


# ---- a long row --------------------------------------------------------------------------------------------


def sort_long(w, r: Rows, rows: list[str], spares: list[str], tables: list[str], low: int, high: int) -> None:
    """Sorts a long row on several threads as far as the ranks from `low` to `high` ask for it; for
    the `tables` see `Keys.tables`.
    """
    buckets, chunks, count = r.buckets, -(-r.n // r.chunk), len(rows)
    own, other, (bounds, targets, starts) = tables[:count], tables[count : 2 * count], tables[2 * count :]
    _take_sample(w, r, rows, own, other, buckets)

    def split(e, p):
        _split_chunk(e, r, p[:count], p[count : 2 * count], p[-2], p[-1], buckets)

    def gather(e, p):
        _copy_pieces(e, r, p[:count], p[count : 2 * count], p[-2], p[-1], buckets)

    def finish(e, p):
        _sort_bucket(w, e, r, p[:count], p[count : 2 * count], p[-1], low, high)

    units = WORK_OF_KEY * r.n
    in_tasks(w, [*rows, *spares, own[0], bounds], chunks, split, units)
    _place_pieces(w.e, bounds, targets, starts, w.number(chunks), buckets)
    in_tasks(w, [*rows, *spares, bounds, targets], chunks, gather, units)
    in_tasks(w, [*rows, *spares, starts], buckets, finish, units)


def _take_sample(w, r: Rows, rows: list[str], own: list[str], other: list[str], buckets: int) -> None:
    """Some keys at equal distances, in order; by a task, since in the entry all that sorts would be there once more."""
    count, size = len(rows), r.limits.samples * buckets

    def take(e: Emitter, p: list[str]) -> None:
        sample = p[count : 2 * count]
        i, opened = e.begin_loop(0, size)
        at = e.op(f"mul i64 {i}, {e.size(r.n // size)}")
        for t, source, to in zip(r.types, r.at(e, p[:count], at), r.at(e, sample, i)):
            e.do(f"store {t} {e.op(f'load {t}, ptr {source}')}, ptr {to}")
        e.end_loop(opened)
        r.sort(w, e, sample, p[2 * count :], size, 0, size)

    in_tasks(w, [*rows, *own, *other], 1, take)


def _split_chunk(e: Emitter, r: Rows, rows, spares, sample: str, bounds: str, buckets: int) -> None:
    """Splits chunk `%k` at every splitter, the middle one first; `bounds` says where the pieces begin."""
    chunk = e.size(r.chunk)
    start = e.op(f"mul i64 %k, {chunk}")
    stop = e.least(e.op(f"add i64 {start}, {chunk}"), e.size(r.n))
    own = e.element(bounds, "i64", e.op(f"mul i64 %k, {buckets + 1}"))
    e.do(f"store i64 {start}, ptr {own}")
    e.do(f"store i64 {stop}, ptr {e.element(own, 'i64', buckets)}")
    step = buckets // 2
    while step:
        j, opened = e.begin_loop(step, buckets, 2 * step)
        places = [e.element(own, "i64", e.op(f"add i64 {j}, {by}")) for by in (-step, 0, step)]
        low, high = (e.op(f"load i64, ptr {places[k]}") for k in (0, 2))
        at = e.op(f"mul i64 {j}, {r.limits.samples}")
        splitter = e.op(f"load {r.types[0]}, ptr {e.element(sample, r.types[0], at)}")
        parts = _pointers([*r.at(e, rows, low), *r.at(e, spares, low)])
        size = e.op(f"sub i64 {high}, {low}")
        name = quicksort.pass_symbol(r.bits, r.paired)
        less = e.op(f"call i64 @{name}({parts}, i64 {size}, {r.types[0]} {splitter})")
        e.do(f"store i64 {e.op(f'add i64 {low}, {less}')}, ptr {places[1]}")
        e.end_loop(opened)
        step //= 2


def _place_pieces(e: Emitter, bounds: str, targets: str, starts: str, chunks: str, buckets: int) -> None:
    """Where each piece goes: bucket after bucket, and in each the chunks in their order."""
    total = e.slot("i64")
    e.do(f"store i64 0, ptr {total}")
    b, each_bucket = e.begin_loop(0, buckets)
    e.do(f"store i64 {e.op(f'load i64, ptr {total}')}, ptr {e.element(starts, 'i64', b)}")
    c, each_chunk = e.begin_loop(0, chunks)
    place = e.element(bounds, "i64", e.op(f"add i64 {e.op(f'mul i64 {c}, {buckets + 1}')}, {b}"))
    low, high = (e.op(f"load i64, ptr {e.element(place, 'i64', k)}") for k in (0, 1))
    before = e.op(f"load i64, ptr {total}")
    target = e.op(f"add i64 {e.op(f'mul i64 {c}, {buckets}')}, {b}")
    e.do(f"store i64 {before}, ptr {e.element(targets, 'i64', target)}")
    size = e.op(f"sub i64 {high}, {low}")
    e.do(f"store i64 {e.op(f'add i64 {before}, {size}')}, ptr {total}")
    e.end_loop(each_chunk)
    e.end_loop(each_bucket)
    e.do(f"store i64 {e.op(f'load i64, ptr {total}')}, ptr {e.element(starts, 'i64', buckets)}")


def _copy_pieces(e: Emitter, r: Rows, rows, spares, bounds: str, targets: str, buckets: int) -> None:
    """Copies the pieces of chunk `%k` to their buckets in the spare rows."""
    b, opened = e.begin_loop(0, buckets)
    place = e.element(bounds, "i64", e.op(f"add i64 {e.op(f'mul i64 %k, {buckets + 1}')}, {b}"))
    low, high = (e.op(f"load i64, ptr {e.element(place, 'i64', k)}") for k in (0, 1))
    own = e.element(targets, "i64", e.op(f"mul i64 %k, {buckets}"))
    target = e.op(f"load i64, ptr {e.element(own, 'i64', b)}")
    r.copy(e, r.at(e, spares, target), r.at(e, rows, low), e.op(f"sub i64 {high}, {low}"))
    e.end_loop(opened)


def _sort_bucket(w, e: Emitter, r: Rows, rows, spares, starts: str, low: int, high: int) -> None:
    """Sorts bucket `%k` and copies it back, if it holds ranks that are asked for."""
    start, stop = (e.op(f"load i64, ptr {e.element(starts, 'i64', k)}") for k in ("%k", e.op("add i64 %k, 1")))
    low, high = e.size(low), e.size(high)
    wanted = [e.op(f"icmp slt i64 {a}, {b}") for a, b in ((start, stop), (low, stop), (start, high))]
    with when(e, e.op(f"and i1 {wanted[0]}, {e.op(f'and i1 {wanted[1]}, {wanted[2]}')}")):
        first = e.most(e.op(f"sub i64 {low}, {start}"), 0)
        size = e.op(f"sub i64 {stop}, {start}")
        bucket, spare = r.at(e, spares, start), r.at(e, rows, start)
        r.sort(w, e, bucket, spare, size, first, e.op(f"sub i64 {high}, {start}"))
        r.copy(e, spare, bucket, size)
