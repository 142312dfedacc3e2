"""Products and convolutions as one form: C[batch, rows, columns] is a sum over terms of A times B.

Each axis says how far apart its steps lie in A, B and C. Windows of a convolution are row and term axes that
overlap in A, so no patches are ever written down. `plan` chooses the tile that registers hold, whether A and
B are packed, and when, the part of the terms that stays in cache, and what one thread does at a time; it looks at
sizes alone, so results do not depend on the number of threads. `emit.contract` writes the loops around the tiles.
"""

from __future__ import annotations

import functools
import math

from catena.compiler.graph.symbols import computed, decided
from catena.compiler.graph.thresholds import reaches
from catena.compiler.graph.types import Type
from catena.compiler.machine import Machine, Products
from catena.compiler.plan.sharing import evenly
from catena.core.named import NamedTuple

# Where there is one row, B is read once, from where it lies: so many of its terms at a time, along as many lines.
TERMS_FROM_AFAR = 8  # from no near cache: these lines may all meet in one set of a cache
TERMS_FROM_NEAR = 32  # from the second one, whose lines come ahead where they are read one after the other
MOST_OF_ROW = 8  # vectors of a tile of one row: additions to so many sums do not wait for each other
SOONER = 0.02  # of the time: what another tile than that which is quickest when full has to save
EVEN = 1.06  # times as long may tiles take that halve the rows
RAGGED = 0.03  # of the time: what one function for all numbers of rows that are left may cost
LEAST_TERMS = 128  # of tiles that read A across: with fewer, starting a tile takes the time that copying it does
SQUARES = (4, 8, 16)  # lanes of a square that is transposed in registers
FAR = 4.0  # times as long: tiles that find about each number of A in another line, not in the nearest cache
TASKS_OF_ROW = 4, 8  # at most, each of columns that lie side by side: the more where these are a page of memory


class Axis(NamedTuple):
    """Steps, and the elements of A, B and C from one to the next."""

    extent: int
    a: int
    b: int
    c: int


class Contraction(NamedTuple):
    """The axes, outermost first; the columns of B and C lie side by side (of B unless it is packed)."""

    type: Type
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: int
    terms: tuple[Axis, ...]
    small: bool = False  # whether A or B may have subnormal numbers (see `graph.small`)
    watched: bool = False  # whether these are looked out for
    right: Type | None = None  # of what B holds, where that is narrower: it is widened as it is packed

    @property
    def products(self) -> int:
        return math.prod(x.extent for x in (*self.batch, *self.rows, *self.terms)) * self.columns


class Part(NamedTuple):
    """A loop over a term axis that stands around the tiles, which take so many `steps` of it at once."""

    axis: Axis
    steps: int
    is_innermost: bool  # whether tiles are told how many steps are theirs: the last ones may be fewer

    @property
    def turns(self) -> int:
        return -(-self.axis.extent // self.steps)


class Plan(NamedTuple):
    contraction: Contraction
    width: int
    rows: int  # of a tile
    columns: int
    packed: bool  # whether B lies in panels of a tile's columns
    packs: bool  # whether a task copies each panel of B into memory of its own before tiles read it
    in_tiles: bool  # whether A lies in panels of a tile's rows, the last one with room for as many
    outside: tuple[Part, ...]  # loops around the tiles, outermost first
    inside: tuple[Axis, ...]  # the terms of a tile
    apart: int = 1  # elements of B, where it lies unpacked, from one column to the next

    @property
    def read(self) -> Type:
        """The type of what B, or its panels, holds: tasks that pack it may widen it."""
        return self.contraction.right if self.packs and self.contraction.right else self.contraction.type

    @property
    def is_watched(self) -> bool:
        """Whether tiles look out for subnormal numbers: not those of windows, whose operands are not rows."""
        return self.contraction.watched and len(self.inside) == 1

    @property
    def panels(self) -> int:
        return self.contraction.columns // self.columns

    @property
    def row_step(self) -> int:
        """The elements of A from the rows of a tile to those of the next, for each row."""
        return math.prod(x.extent for x in self.contraction.terms) if self.in_tiles else self.row.a

    @property
    def panel_terms(self) -> int:
        """The terms of a panel of B that a task copies, at most."""
        return math.prod(x.extent for x in self.inside)

    @property
    def odd(self) -> int:
        """0 where tiles have an even number of terms of the innermost axis, all of them."""
        return self.inside[-1].extent % 2 + sum(x.axis.extent % 2 for x in self.outside if x.is_innermost)

    @property
    def rest(self) -> int:
        """Columns beyond the panels."""
        return self.contraction.columns % self.columns

    @property
    def strips(self) -> tuple[Axis, ...]:
        """The row axes outside of that which is cut into tiles."""
        return self.contraction.rows[:-1]

    @property
    def row(self) -> Axis:
        """The axis that is cut into tiles."""
        return self.contraction.rows[-1] if self.contraction.rows else Axis(1, 0, 0, 0)

    @property
    def down(self) -> int:
        """Whole tiles along `row`."""
        return self.row.extent // self.rows

    @property
    def left(self) -> int:
        """Rows beyond them."""
        return self.row.extent % self.rows

    @property
    def heights(self) -> tuple[int, int, int]:
        """The tiles of full height, the rows of a tile below them, 0 where there is none, and 1 where that is of full
        height, too, one for any number of rows.
        """
        return _heights(self.row.extent, self.rows, -(-self.columns // self.width), self.in_tiles)

    @property
    def full(self) -> int:
        """The tiles of full height."""
        return self.heights[0]

    @property
    def below(self) -> int:
        """The rows of a tile below them."""
        return self.heights[1]

    @property
    def units(self) -> int:
        """What tasks are made of: strips of rows, or the tiles of the only one."""
        return math.prod(x.extent for x in self.strips) if self.strips else -(-self.row.extent // self.rows)


class Tasks(NamedTuple):
    """How a contraction is shared out: each batch member is cut into blocks of `rows` units and `columns` panels, or
    tasks do several `members` each, whole ones.
    """

    total: int
    row_blocks: int
    rows: int
    column_blocks: int
    columns: int
    members: int = 0

    @property
    def has_whole_members(self) -> bool:
        """Whether tasks do whole members, of a batch."""
        return self.members != 0  # written down either way: tasks of none would do nothing


def merged(axes) -> tuple[Axis, ...]:
    """The axes without those of one step, neighbours made one where A, B and C cross them evenly."""
    out: list[Axis] = []
    for x in axes:
        if x.extent == 1:
            continue
        if out and all(p == q * x.extent for p, q in zip(out[-1][1:], x[1:])):
            x = Axis(out.pop().extent * x.extent, *x[1:])
        out.append(x)
    return tuple(out)


# ---- what to do --------------------------------------------------------------------------------------------


def plan(contraction: Contraction, machine: Machine, apart: int, times: int = 1, moved: int = 0) -> Plan:
    """The plan; `apart` says how many elements lie from one column of B to the next, 0 where tasks do not pack columns
    that lie so, `times` how often B is used as it is, `moved` how often A is once it is copied, 0 where it may not be.
    """
    width, limits = machine.vector_bytes // contraction.type.bytes, machine.products
    contraction = contraction._replace(rows=_tiled_last(contraction, width, machine))
    extent = contraction.rows[-1].extent if contraction.rows else 1
    rows, columns = _tile(extent, contraction.columns, width, machine, contraction.products)
    in_tiles = moved > 0 and _is_read_across(contraction, columns, moved, machine)
    if in_tiles:
        length = math.prod(x.extent for x in contraction.terms)
        member = -(-contraction.rows[0].extent // rows) * rows * length
        contraction = contraction._replace(
            batch=merged(_counting(contraction.batch, "a", member)),
            rows=(contraction.rows[0]._replace(a=1),),
            terms=merged(_counting(contraction.terms, "a", rows)),
        )
    bytes_ = math.prod(x.extent for x in contraction.terms) * contraction.columns * contraction.type.bytes
    repeats = math.prod(x.extent for x in contraction.rows)
    is_large = _exceeds(contraction, bytes_, machine.memory.first_cache)
    longest = _terms_of_row(bytes_, times, machine) if repeats == 1 else limits.terms
    in_panels = is_large and (contraction.columns > columns or contraction.terms[-1].b > contraction.columns)
    is_narrow = contraction.right is not None
    if apart and times == 1 and (is_narrow and not contraction.rows or in_panels and len(contraction.rows) == 1):
        least = (1 if bytes_ > machine.memory.second_cache else 4) * limits.packing.rows_in_tasks
        outside, inside = _blocked(contraction, columns, longest, machine)
        packs = _packs(inside, columns, contraction.type.bytes, machine)
        lies_so = apart == 1 or _is_turned(contraction.type, inside, width) and not _are_many(repeats, machine)
        if (repeats >= least or is_narrow) and packs and lies_so:
            return Plan(contraction, width, rows, columns, False, True, in_tiles, outside, inside, apart)
    packed = apart != 1 or is_narrow or (in_panels and reaches(repeats * times, limits.packing.rows))
    if packed:
        terms, batch = _counting(contraction.terms, "b"), _counting(contraction.batch, "b")
        contraction = contraction._replace(terms=merged(terms), batch=merged(batch))
    outside, inside = _blocked(contraction, columns, longest, machine)
    return Plan(contraction, width, rows, columns, packed, False, in_tiles, outside, inside)


def _terms_of_row(bytes_: int, times: int, machine: Machine) -> int:
    """How many terms of a row are added up at a time, beside a B of so many bytes, which loops find in a near cache."""
    if bytes_ > machine.memory.second_cache:
        return TERMS_FROM_AFAR
    return TERMS_FROM_NEAR if times == 1 and bytes_ > machine.memory.first_cache else machine.products.terms


def _is_read_across(contraction: Contraction, panel: int, times: int, machine: Machine) -> bool:
    """Whether tiles would find the next term of A in another line of memory, so often that copying it costs less."""
    size, limits = contraction.type.bytes, machine.products
    if len(contraction.rows) != 1 or not contraction.terms:
        return False
    row, terms = contraction.rows[0], math.prod(x.extent for x in contraction.terms)
    least = machine.memory.page // 2 if contraction.batch else machine.memory.line  # a member is read by few tasks
    apart = abs(contraction.terms[-1].a) * size
    few = limits.packing.columns
    if times == 1 and not _exceeds(contraction, apart, machine.memory.page // 4):
        few = limits.packing.columns_of_short_rows
    if apart < least or row.extent < limits.most_rows:
        return False
    bytes_, columns = row.extent * terms * size, contraction.columns
    if columns < few and not (columns > panel and _is_afar(bytes_, apart, columns, machine)):
        return False
    if times == 1 and _comes_soon(terms, apart, columns, machine):
        return False
    return _exceeds(contraction, bytes_, machine.memory.first_cache)  # asked last: it hangs on each extent


def _exceeds(contraction: Contraction, bytes_: int, most: int) -> bool:
    """Whether bytes of an operand are more than these. Of several axes of terms, which copying may make one, it decides
    how they are added up, too.
    """
    return reaches(bytes_, most + 1) if len(contraction.terms) < 2 else bytes_ > most


@decided
def _is_afar(bytes_: int, apart: int, columns: int, machine: Machine) -> bool:
    """Whether an A of so many bytes does not stay in caches from one panel to the next: of each of its lines a tile
    takes a part, so they come from memory several times. Of short rows, few lines; those of whole pages all meet in a
    few sets.
    """
    if apart < machine.memory.page // 4:
        return False
    times = 1 if apart % machine.memory.page else 2
    return times * bytes_ * columns >= machine.products.packing.bytes_from_afar


def _comes_soon(terms: int, apart: int, columns: int, machine: Machine) -> bool:
    """Whether lines of A, so many bytes apart, come while tiles multiply: a tile finds those of all its terms in a few
    pages, and few panels of B are read beside them. Of rows of a page and more, each has its own, and those of whole
    pages all meet in a few sets of the nearest cache.
    """
    memory, limits = machine.memory, machine.products
    step = apart if apart < memory.page else 2 * memory.page
    spanned = max(terms, LEAST_TERMS) * step
    return cut(terms, limits.terms) == terms and spanned * columns <= limits.packing.bytes_of_pages


def _packs(inside: tuple[Axis, ...], columns: int, size: int, machine: Machine) -> bool:
    """Whether a task may copy panels: one fits its memory, and its terms lie evenly in B, one after the other."""
    terms = [Axis(x.extent, 0, x.b, 0) for x in inside]
    panel = math.prod(x.extent for x in inside) * columns * size
    return len(merged(terms)) == 1 and panel <= machine.products.packing.panel


def _is_turned(type_: Type, inside: tuple[Axis, ...], width: int) -> bool:
    """Whether a task may copy panels of a B whose columns do not lie side by side: its terms do, and are whole squares
    of as many lanes.
    """
    if type_.memory != type_.register or width not in SQUARES or len(inside) > 1:
        return False
    return inside[0].b == 1 and inside[0].extent >= width


def _counting(axes, operand: str, step: int = 1) -> tuple[Axis, ...]:
    """The axes with strides in an operand as in an array of just these: they count packed rows or members."""
    out: list[Axis] = []
    for x in reversed(axes):
        out.insert(0, x._replace(**{operand: step}))
        step *= x.extent
    return tuple(out)


def _tiled_last(contraction: Contraction, width: int, machine: Machine) -> tuple[Axis, ...]:
    """The row axes, that whose steps are cut into tiles moved to the end."""
    rows, terms = (tuple([(x.extent, x.a) for x in axes]) for axes in (contraction.rows, contraction.terms))
    if len(rows) < 2:
        return contraction.rows
    k = _last(rows, terms, contraction.columns, contraction.type.bytes, width, machine)
    return (*contraction.rows[:k], *contraction.rows[k + 1 :], contraction.rows[k])


Steps = tuple[tuple[int, int], ...]  # extents of axes, and how far apart their elements of A lie


@decided
def _last(rows: Steps, terms: Steps, columns: int, size: int, width: int, machine: Machine) -> int:
    """Of row axes the quickest one, and of those that are about as quick, that of the smallest step."""
    times = []
    for extent, step in rows:
        m, _, time = _best_tile(extent, columns, width, machine)
        times.append(time / extent * _far(rows, terms, step, min(m, extent), size, machine))
    good = [k for k, t in enumerate(times) if t <= 1.1 * min(times)]
    return min(good, key=lambda k: abs(rows[k][1]))


def _far(rows: Steps, terms: Steps, step: int, count: int, size: int, machine: Machine) -> float:
    """How much longer tiles of so many rows, a step apart, take that find hardly two numbers of A in a line, and more
    lines than the nearest cache holds, where those along another axis would find several in each.
    """
    line = machine.memory.line
    if not terms or 2 * min(abs(step) * size, abs(terms[-1][1]) * size) < line:
        return 1.0
    shared = any(0 < abs(a) * size < line for _, a in rows)
    lines = count * math.prod(extent for extent, _ in terms)
    return FAR if shared and lines * line > machine.memory.first_cache else 1.0


@computed
def _tile(rows: int, columns: int, width: int, machine: Machine, products: int) -> tuple[int, int]:
    """The rows and columns of a tile by which all rows and columns take least time."""
    m, n, least = _best_tile(rows, columns, width, machine)
    if products >= machine.products.shared_in_loops and -(-rows // m) == 3:
        m, n = _halving(rows, columns, width, machine, m * n // width, least) or (m, n)
    return min(m, rows), min(n, columns)


def _halving(rows: int, columns: int, width: int, machine: Machine, sums: int, least: float) -> tuple[int, int] | None:
    """A tile of so many sums and more, two of which are all rows, where these take about as long as three of the
    quickest one: of three, one of two threads has twice as many as the other.
    """
    for vectors, m in _tiles(machine):
        if -(-rows // m) == 2 and m * vectors >= sums:
            if _time(rows, columns, m, vectors, width, machine.products.ragged) <= EVEN * least:
                return m, vectors * width
    return None


@functools.lru_cache(maxsize=1024)
def _best_tile(rows: int, columns: int, width: int, machine: Machine) -> tuple[int, int, float]:
    """The rows and columns of the quickest tile, which may be more than there are, and its time."""
    best, least, limits = (1, width), math.inf, machine.products
    for vectors, m in _tiles(machine):
        time = _time(rows, columns, m, vectors, width, limits.ragged)
        if time < (1 - SOONER) * least:
            best, least = (m, vectors * width), time
    return *best, least


@functools.cache
def _tiles(machine: Machine) -> list[tuple[int, int]]:
    """The vectors and rows of tiles that registers hold, those first that are quickest where all are full."""
    limits, registers = machine.products, machine.vector_registers - 1
    found = [
        (vectors, m)
        for vectors in range(1, MOST_OF_ROW + 1)
        for m in range(1, min(_most_rows(vectors, limits), (registers - vectors) // vectors) + 1)
    ]
    return sorted(found, key=lambda tile: _cycles(tile[1], tile[0]) / math.prod(tile))


def _most_rows(vectors: int, limits: Products) -> int:
    return limits.most_rows if vectors <= limits.most_vectors else 1


def _cycles(m: int, vectors: int) -> float:
    return max(m * vectors / 2, 4.0) + 0.1 * (m + vectors) + 0.2 if m and vectors else 0.0


@computed
def _heights(extent: int, rows: int, vectors: int, in_tiles: bool) -> tuple[int, int, int]:
    """See `Plan.heights`. Where rows would be left, so many tiles, the last ones, have a row less that none are: so
    numbers of rows need no tiles of their own, but where they are few, or multiples.
    """
    down, left = divmod(extent, rows)
    lower = rows - left
    if left and not in_tiles and lower <= down:
        return down + 1 - lower, rows - 1, 0
    return down, left, int(left > 0 and _costs_little(left, rows, vectors, down))


def _costs_little(left: int, rows: int, vectors: int, down: int) -> bool:
    """Whether a whole tile where so many rows are left costs little beside so many whole ones."""
    full = _cycles(rows, vectors)
    return full - _cycles(left, vectors) <= RAGGED * down * full


def _time(rows: int, columns: int, m: int, vectors: int, width: int, ragged: float) -> float:
    """Cycles for one term: two multiplications or two loads each, and four until a sum can be added to again."""
    down, left = divmod(rows, m)
    lower, below = (m - left, m - 1) if left and m - left <= down else (bool(left), left)  # see `_heights`
    full = down + bool(left) - lower
    across, rest = divmod(columns, vectors * width)
    rest = -(-rest // width)
    inner = full * _cycles(m, vectors) + lower * _cycles(below, vectors)
    total = across * inner + full * _cycles(m, rest) + lower * _cycles(below, rest)
    return total * (1 + ragged * bool(rest))


def _blocked(contraction: Contraction, columns: int, longest: int, machine: Machine):
    """What is looped over around the tiles, with so many columns, and the terms of a tile: of one axis `longest` at
    most; of several, as many as leave a panel of B in the nearest cache, from which all tiles read it.
    """
    *outer, last = contraction.terms or (Axis(1, 0, 0, 0),)
    outside, inside = [], [last]
    room = machine.memory.first_cache // 2 // (min(columns, contraction.columns) * contraction.type.bytes)
    size = cut(last.extent, longest)
    if size < last.extent:
        outside, inside, room = [Part(last, size, True)], [last._replace(extent=size)], 0
    for x in reversed(outer):
        steps = divisor(x.extent, room // math.prod(y.extent for y in inside))
        if steps > 1:
            inside.insert(0, x._replace(extent=steps))
        if steps < x.extent:
            outside.insert(0, Part(x, steps, False))
            room = 0
    return tuple(outside), tuple(inside)


def cut(terms: int, longest: int) -> int:
    """How many terms of a sum are added up at a time, where these are about so many."""
    return -(-terms // -(-terms // longest)) if terms > longest + longest // 2 else terms


def divisor(n: int, most: int) -> int:
    """The greatest divisor of `n` that is at most `most`; 1 at least."""
    return n if n <= most else _divisor_below(n, most)


@computed
def _divisor_below(n: int, most: int) -> int:
    return max(d for d in range(1, max(most, 1) + 1) if n % d == 0)


def tasks(p: Plan, machine: Machine, awake: bool, by_rows: bool, among_steps: bool = False) -> Tasks:
    """The tasks of a contraction, whose threads are `awake` or not; `by_rows` where each has to compute whole rows,
    `among_steps` where others before made its rows, and others after read them (see `has_halves`).
    """
    c = p.contraction
    rows, terms, members = (math.prod(x.extent for x in axes) for axes in (c.rows, c.terms, c.batch))
    sizes = p.units, p.panels, p.rows, p.row.extent, rows, c.columns, terms, c.type.bytes, c.products, members
    told = p.packs, p.apart == 1, bool(p.strips), bool(c.batch), by_rows, among_steps, is_shared(p, machine, awake)
    found = _numbers_of_tasks(sizes, told, machine.products, machine.memory.second_cache, machine.memory.page)
    return Tasks(found[0], found[1], found[2], found[3], found[4], found[5] if c.batch else 0)


class Work(NamedTuple):
    """What is shared out: tiles or strips of rows (`units`) by panels, rows of a tile, those of the axis that is cut,
    and of all; columns, terms and their bytes, products, members of a batch.
    """

    units: int
    panels: int
    tile: int
    extent: int
    rows: int
    columns: int
    terms: int
    bytes: int
    products: int
    members: int


class Manner(NamedTuple):
    """How: whether panels are packed, of neighbours; whether there are strips, and a batch; whether tasks do whole
    rows, are among other steps, and are shared out.
    """

    packs: bool
    neighbours: bool
    has_strips: bool
    is_batch: bool
    by_rows: bool
    among_steps: bool
    is_shared: bool


@computed
def _numbers_of_tasks(sizes: tuple, told: tuple, limits: Products, cache: int, page: int) -> tuple[int, ...]:
    """The fields of `Tasks`. A task reads its rows of A and its columns of B: of all ways to make about as many tasks
    as are wanted, that one is taken which reads least.
    """
    w, how = Work(*sizes), Manner(*told)
    most = _most_tasks(w, how.has_strips, limits, page)
    wanted = min(most, w.products // limits.task) if how.is_shared else 1
    wanted = max(1, -(-wanted // w.members))
    halves = (
        how.among_steps
        and wanted > 1
        and not (how.has_strips or how.is_batch)
        and _may_halve(w.products, w.extent, limits)
    )
    across = 1 if how.by_rows else _across(wanted, w.units, w.panels, w.rows, w.columns, 1 + halves)
    down = min(w.units, -(-wanted // across))
    units, panels = -(-w.units // down), max(1, -(-w.panels // across))
    if how.packs:
        least = 2 if how.neighbours or halves else 1  # transposing large panels for each half of the rows takes longer
        down = _down(w.extent, 1 if how.by_rows else w.panels, wanted, least, limits)
        units = -(-w.units // max(down, 1 + halves))
        panels = w.panels if how.by_rows else -(-w.panels // min(w.panels, -(-wanted // -(-w.units // units))))
    elif not how.has_strips:
        read = w.terms * w.columns // across * w.bytes
        least = limits.packing.rows // 2 if read > cache else 1
        units = max(min(units, limits.task_rows // w.tile), min(w.units, -(-least // w.tile)), 1)
    down, across = -(-w.units // units), max(1, -(-w.panels // panels))
    each = _members(w, limits, most) if how.is_batch and down * across == 1 else 0
    return -(-w.members // max(each, 1)) * down * across, down, units, across, panels, each


def rows_of_half(p: Plan) -> int:
    """The rows of a tile by which half of the rows take least time, all of them full, with the columns of the plan's
    tile; 0 where these take longer than the plan's.
    """
    return _rows_of_half(p.row.extent, p.rows, -(-p.columns // p.width))


@decided
def _rows_of_half(extent: int, rows: int, vectors: int) -> int:
    sizes = [m for m in range(1, rows + 1) if extent // 2 % m == 0]
    best = min(sizes, key=lambda m: _cycles(m, vectors) / m)
    return best if _cycles(best, vectors) / best <= EVEN * _cycles(rows, vectors) / rows else 0


def has_halves(p: Plan, machine: Machine) -> bool:
    """Whether tasks do halves of the rows at most, in loops and programs of many steps, even if each packs B itself.
    The halves mostly lie in the caches of two cores: those read what they have written, where tasks that each do all
    rows of some columns would read half of it from the other core. Of large products that takes little of the time.
    """
    if p.strips or p.contraction.batch:
        return False
    limits = machine.products.tasks
    return not reaches(p.contraction.products, limits.halved) and reaches(p.row.extent, 2 * limits.half)


def _may_halve(products: int, rows: int, limits: Products) -> bool:
    return products < limits.tasks.halved and rows >= 2 * limits.tasks.half


def _members(w: Work, limits: Products, most: int) -> int:
    """The members that a task does where none is cut: of many small ones as many as make a task. To be given the next
    task takes a third of a microsecond.
    """
    if w.products < limits.tasks.members:
        return w.members
    return evenly(w.members, max(min(most, w.products // limits.task), 2))


def _across(wanted: int, units: int, panels: int, rows: int, columns: int, least: int) -> int:
    """In how many blocks of columns tasks are cut, of which about so many are `wanted`, with `least` blocks of rows."""
    ways = [(min(units, -(-wanted // c)), c) for c in range(1, min(panels, max(wanted // least, 1)) + 1)]
    enough = [way for way in ways if math.prod(way) >= min(wanted, units * panels)] or ways[-1:]
    return min(enough, key=lambda way: way[0] * columns + way[1] * rows, default=(0, 1))[1]


def _down(rows: int, panels: int, wanted: int, least: int, limits: Products) -> int:
    """In how many blocks of rows tasks are cut that pack: the fewest for which there are about as many as `wanted`, but
    the `least` where rows allow it: of two, a thread's rows are likely in its core's cache (see `runtime.threads`).
    """
    fewest, most = (-(-rows // each) for each in (limits.packing.task_rows, limits.task_rows))
    return max(fewest, min(most, max(wanted // panels, least)))


def _most_tasks(w: Work, has_strips: bool, limits: Products, page: int) -> int:
    """The most tasks that a contraction is cut in: few, as each brings its rows and panels to its caches anew. Of one
    row, what a task reads of each row of B is a whole page, or as near to one as it may be.
    """
    if not has_strips and w.extent == 1:
        few, many = TASKS_OF_ROW
        return min(max(w.columns * w.bytes // page, few), many)
    if w.products < limits.tasks.large:
        return limits.tasks.of_small
    return max(limits.tasks.of_large, min(limits.tasks.most, w.products // limits.tasks.large))


def is_shared(p: Plan, machine: Machine, awake: bool) -> bool:
    """Whether a contraction is worth being shared out."""
    limits = machine.products
    return reaches(p.contraction.products, limits.shared_in_loops if awake else limits.shared)


def has_rows_enough(p: Plan, machine: Machine, awake: bool, among_steps: bool) -> bool:
    """Whether tasks of whole rows are enough to share out, where each packs all of B."""
    rows = math.prod(x.extent for x in p.contraction.rows)
    if _are_many(rows, machine) or not p.packs or not is_shared(p, machine, awake):
        return True
    few = not reaches(p.contraction.products, machine.products.tasks.two)
    return among_steps and few and has_halves(p, machine)


def _are_many(rows: int, machine: Machine) -> bool:
    """Whether rows are as many tasks as there may be."""
    return reaches(rows, machine.sharing.row_tasks * machine.products.task_rows)


def has_rows_in_order(p: Plan) -> bool:
    """Whether the rows of C follow each other in memory in the order in which tasks compute them."""
    step = p.contraction.columns
    for x in reversed((*p.contraction.batch, *p.contraction.rows)):
        if x.c != step:
            return False
        step *= x.extent
    return True
