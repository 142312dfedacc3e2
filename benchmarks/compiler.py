"""Compiled programs beside JAX: run time and compile time of the workloads in `workloads/`.

`make bench` runs this and prints the ratios (JAX's time / ours), worst first, with the geometric mean of each
group; `make bench WRITE=1` writes them to `docs/benchmarks.md` too. Both must give the same numbers. See
``side_by_side`` for how time is taken. Disk caches are off: what is compiled is compiled anew each time; only the
second run of a script has them, in a process of its own, as has the peak of memory (``fresh``). What the machine's
memory gives at most is measured in turns with the workloads that it bounds (``ceiling``).

`--only TEXT` and `--group NAME` select; `--long` adds what takes JAX minutes to compile.
"""

import functools
import importlib
import math
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import ceiling
import fresh
import history
from side_by_side import OURS, THEIRS, Pair, alternate, best, check_equal, options_of, serve, show
from workloads import (
    attention,
    checks,
    compilation,
    elementwise,
    images,
    indexing,
    linear_algebra,
    loops,
    memory,
    models,
    products,
    programs,
    reductions,
    references,
    rows,
    segments,
    small_matrices,
    sparse,
    special,
    statistics,
    transforms,
    trees,
    updates,
)
from workloads.inputs import Inputs

GROUPS = {
    "elementwise": elementwise,
    "rows": rows,
    "reductions": reductions,
    "products": products,
    "small matrices": small_matrices,
    "images": images,
    "bound by memory": memory,
    "indexing": indexing,
    "updates": updates,
    "segments": segments,
    "references": references,
    "special": special,
    "transforms": transforms,
    "statistics": statistics,
    "linear algebra": linear_algebra,
    "loops": loops,
    "checks": checks,
    "sparse": sparse,
    "trees": trees,
    "programs": programs,
    "models": models,
    "attention": attention,
    "compilation": compilation,
}
SCRIPTS, MEMORY = "second run of a script", "peak memory"
GOALS = {
    "loops": 5.0,
    "models": 3.0,
    "compilation": 4.0,
    SCRIPTS: 5.0,
    MEMORY: 1.0,
}  # of the geometric mean; 1.5 for others
NOT_RUN_TIME = ("compilation", SCRIPTS, MEMORY)
FLOOR = 0.9  # of every workload at run time
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
NO_DISK_CACHE = {"JAX_ENABLE_COMPILATION_CACHE": "0", "CATENA_CACHE": "0"}
TOLERANCE = {"rtol": 2e-3, "atol": 2e-4}  # f32 sums in another order, through long loops
COARSE = {"rtol": 1e-2, "atol": 0.1}  # the same of bfloat16


class Calls(Mapping):
    """The calls of one library by name; arguments are made when needed, for one workload at a time."""

    def __init__(self, jax):
        self.jax, self.kept = jax, (None, None)
        modules = ((group, module.workloads(jax, Inputs(jax))) for group, module in GROUPS.items())
        self.makers = {name: (group, make) for group, found in modules for name, make in found.items()}

    def __getitem__(self, name):
        if self.kept[0] != name:
            self.kept = name, self._call(*self.makers[name])
        return self.kept[1]

    def _call(self, group, make):
        function, arguments = make()
        if group == "compilation":
            self.jax.jit(lambda x: x + 1).lower(1.0).compile()  # what is made once in a process is made
            return lambda: self.jax.jit(lambda *args: function(*args))(*arguments)  # as if never seen
        compiled = function if hasattr(function, "is_compiled") else self.jax.jit(function)
        return lambda: compiled(*arguments)

    def __iter__(self):
        return iter(self.makers)

    def __len__(self):
        return len(self.makers)


@dataclass
class Row:
    group: str
    name: str
    ours: float = math.nan  # seconds
    theirs: float = math.nan
    fault: str = ""
    unit: str = "s"
    moved: ceiling.Moved | None = None  # what a workload must move that memory bounds,
    most: ceiling.Ceiling | None = None  # and how quickly that was possible meanwhile

    @property
    def share(self) -> float:
        """Of the ceiling."""
        return self.most.seconds(self.moved) / self.ours

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    def cells(self) -> list[str]:
        if self.fault:
            return [self.group, self.name, "", "", self.fault]
        mark = " (below the floor)" if self.misses else ""
        ours, theirs = (show(x) if self.unit == "s" else f"{x / 1e6:.3g} MB" for x in (self.ours, self.theirs))
        return [self.group, self.name, ours, theirs, f"{self.ratio:.2f}x{mark}"]

    @property
    def misses(self) -> bool:
        return self.ratio < FLOOR and self.group not in NOT_RUN_TIME


def measure(pair, group, name, options) -> Row:
    cold, bound = group == "compilation", name in ceiling.BOUND
    request = {"workload": name, "seconds": options.seconds, "cold": cold}
    asks = [functools.partial(pair.ask, library, **request) for library in (OURS, THEIRS)]
    try:
        ours, theirs, *reached = alternate(1 if cold else options.rounds, *asks, *([measured_ceiling()] * bound))
        if cold and best(theirs) < 5:
            more = alternate(1, *asks)
            ours, theirs = ours + more[0], theirs + more[1]
        coarse = any(leaf["dtype"] == "bfloat16" for leaf in ours[0]["result"])
        check_equal(name, ours[0]["result"], theirs[0]["result"], **(COARSE if coarse else TOLERANCE))
    except RuntimeError as error:
        return Row(group, name, fault=str(error))
    except (AssertionError, SystemExit) as error:
        print(error, file=sys.stderr)
        return Row(group, name, fault="numbers differ")
    row = Row(group, name, best(ours), best(theirs))
    if bound:
        row.moved, row.most = moved(name), ceiling.best_of(reached[0])
    return row


@functools.cache
def measured_ceiling() -> ceiling.Measure:
    return ceiling.Measure(importlib.import_module(f"{OURS}.runtime.threads").count())


def moved(name) -> ceiling.Moved:
    jax = importlib.import_module(OURS)
    return ceiling.moved(jax, name, *Calls(jax).makers[name][1]())


def measure_script(pythons, name, jax_cache: bool, options) -> Row:
    """The second run of a script: ours as installed, JAX with its cache of compiled programs or without."""
    seconds = fresh.script_seconds(pythons, name, {OURS: True, THEIRS: jax_cache}, min(options.rounds, 3))
    title = f"{name}; JAX {'with its cache' if jax_cache else 'as installed'}"
    return Row(SCRIPTS, title, seconds[OURS], seconds[THEIRS])


def measure_memory(pythons, name) -> Row:
    peaks = {library: fresh.peak_bytes(python, library, name) for library, python in pythons.items()}
    return Row(MEMORY, name, peaks[OURS], peaks[THEIRS], unit="bytes")


def plan(pair, options) -> dict:
    """What is to be measured: (group, name) -> function that measures it."""
    todo = {}
    for name, group in names_of(OURS).items():
        if options.long or name not in compilation.LONG:
            todo[group, name] = functools.partial(measure, pair, group, name, options)
    for name in fresh.SCRIPTS:
        for cache in (True, False):
            todo[SCRIPTS, f"{name}, {cache}"] = functools.partial(measure_script, pair.pythons, name, cache, options)
    for name in fresh.MEMORY:
        todo[MEMORY, name] = functools.partial(measure_memory, pair.pythons, name)
    return {key: f for key, f in todo.items() if options.only in key[1] and options.group in key[0]}


def names_of(library) -> dict[str, str]:
    """The group of each workload."""
    return {name: group for name, (group, _) in Calls(importlib.import_module(library)).makers.items()}


def mean(rows) -> float:
    return math.exp(sum(math.log(r.ratio) for r in rows) / len(rows)) if rows else math.nan


def means(rows) -> list[list[str]]:
    """Lines of the table of groups."""
    out = []
    good = [r for r in rows if not r.fault]
    for group in (*GROUPS, SCRIPTS, MEMORY):
        of_group = [r for r in good if r.group == group]
        if of_group:
            out.append(line_of_means(group, of_group, GOALS.get(group, 1.5)))
    run = [r for r in good if r.group not in NOT_RUN_TIME]
    return [*out, line_of_means("all at run time", run, 1.5)] if run else out


def line_of_means(label: str, rows, goal: float) -> list[str]:
    least = min(r.ratio for r in rows)
    return [label, str(len(rows)), f"{mean(rows):.2f}x", f"{least:.2f}x", f"{goal}x"]


def table(head: list[str], lines: list[list[str]]) -> str:
    """A table in Markdown, aligned to be read as text too."""
    widths = [max(len(line[k]) for line in [head, *lines]) for k in range(len(head))]
    row = lambda cells: "| " + " | ".join(c.ljust(n) for c, n in zip(cells, widths, strict=True)) + " |"
    return "\n".join([row(head), row(["-" * n for n in widths]), *map(row, lines)])


def report(rows) -> str:
    ordered = sorted(rows, key=lambda r: (not r.fault, r.group in NOT_RUN_TIME, 0 if r.fault else r.ratio))
    slow = table(["group", "workload", OURS, THEIRS, "ratio"], [r.cells() for r in ordered])
    groups = table(["group", "workloads", "geometric mean", "least", "goal of the mean"], means(rows))
    return f"{slow}\n\n{groups}\n{shares(rows)}"


def shares(rows) -> str:
    """What is bound by memory, beside the ceiling, least share first."""
    bound = sorted((r for r in rows if r.moved is not None), key=lambda r: r.share)
    if not bound:
        return ""
    most = ceiling.best_of([r.most for r in bound])
    rates = ", ".join(f"{x / 1e9:.3g} GB/s {how}" for how, x in vars(most).items())
    missed = f"{sum(r.share < ceiling.GOAL for r in bound)} of {len(bound)}"
    head = ["workload", "must move", "moves", "of the ceiling"]
    return (
        "\nWhat memory bounds: bytes of operands read once and of results written once, and the share of what NumPy's\n"
        f"loops reach on as many threads, in turns with the workload, on arrays of {ceiling.SIZE >> 20} MiB. At most\n"
        f"these reached: {rates} (copies counted twice).\nBelow {ceiling.GOAL:.0%}: {missed}.\n\n"
        f"{table(head, [line_of_share(r) for r in bound])}\n"
    )


def line_of_share(row) -> list[str]:
    size, mark = row.moved.bytes, " (below the goal)" if row.share < ceiling.GOAL else ""
    return [row.name, f"{size / 1e6:.3g} MB", f"{size / row.ours / 1e9:.3g} GB/s", f"{row.share:.0%}{mark}"]


def document(text: str, jax_version: str) -> str:
    machine = f"{os.cpu_count()} processors ({platform.machine()}), Python {platform.python_version()}"
    return (
        "# Benchmarks\n\n"
        f"Compiled programs beside JAX {jax_version} on {machine}; `make bench WRITE=1` writes\n"
        "this page. Ratios are JAX's time divided by ours, worst first: above 1 we are faster. Both libraries\n"
        "ran in turns on the same machine, the least time of each counts, and both gave the same numbers.\n"
        "Nothing comes from a cache of compiled programs, but for the second runs of scripts. Peak memory is the\n"
        f"growth of the process over {fresh.CALLS} calls of a compiled program, its arguments not counted.\n\n{text}"
    )


def keep(measured) -> None:
    """Add what was measured to the history, and draw it."""
    kept = history.record([{"group": r.group, "name": r.name, "ours": r.ours, "theirs": r.theirs} for r in measured])
    if kept:
        history.main()
    print(f"kept in {kept}" if kept else "not kept in the history: the tree differs from its commit")


def main():
    parser = options_of(__doc__.splitlines()[0], rounds=5, seconds=0.1)
    parser.add_argument("--group", default="", help="only this group")
    parser.add_argument("--long", action="store_true", help="also what takes JAX minutes to compile")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md and the history")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, Calls)
        return
    os.environ.update(NO_DISK_CACHE)
    pair = Pair({OURS: sys.executable, THEIRS: options.jax_python}, __file__)
    rows = []
    try:
        for _, take in plan(pair, options).items():
            rows.append(take())
            print("  " + "  ".join(rows[-1].cells()), file=sys.stderr, flush=True)
    finally:
        pair.close()
    text = report(rows)
    print("\n" + text)
    if options.write:
        keep([r for r in rows if not r.fault])
        DOCUMENT.write_text(document(text, "0.10.2"))
    failed = any(r.fault for r in rows)
    missed = any(r.misses for r in rows if not r.fault)
    sys.exit(1 if failed or (options.strict and missed) else 0)


if __name__ == "__main__":
    main()
