"""Compiled programs beside JAX: run time and compile time of the workloads in `workloads/`.

`make bench` runs this and prints the ratios (JAX's time / ours), worst first, with the geometric mean of each
group; `make bench WRITE=1` writes them to `docs/benchmarks.md` too. Both must give the same numbers. See
``side_by_side`` for how time is taken. Disk caches are off: what is compiled is compiled anew each time.
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

import numpy as np
from side_by_side import OURS, THEIRS, Worker, alternate, best, check_equal, options_of, serve, show
from workloads import compilation, elementwise, indexing, loops, models, products, rows
from workloads.inputs import Inputs

GROUPS = {
    "elementwise": elementwise,
    "rows": rows,
    "products": products,
    "indexing": indexing,
    "loops": loops,
    "models": models,
    "compilation": compilation,
}
GOALS = {"loops": 3.0, "compilation": 4.0}  # of the geometric mean; 1.5 for the others
FLOOR = 0.9  # of every workload
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
NO_DISK_CACHE = {"JAX_ENABLE_COMPILATION_CACHE": "0", "CATENA_CACHE": "0"}
TOLERANCE = {"rtol": 2e-3, "atol": 2e-4}  # f32 sums in another order, through long loops


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
            return functools.partial(compile_anew, self.jax, function, arguments)
        compiled = self.jax.jit(function)
        return lambda: compiled(*arguments)

    def __iter__(self):
        return iter(self.makers)

    def __len__(self):
        return len(self.makers)


def compile_anew(jax, function, arguments):
    """Compile a function as if it had never been seen; the result says nothing."""
    jax.jit(lambda *args: function(*args)).lower(*arguments).compile()
    return np.zeros(1, np.float32)


@dataclass
class Row:
    group: str
    name: str
    ours: float = math.nan  # seconds
    theirs: float = math.nan
    fault: str = ""

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    def cells(self) -> list[str]:
        if self.fault:
            return [self.group, self.name, "", "", self.fault]
        mark = " (below the floor)" if self.ratio < FLOOR and self.group != "compilation" else ""
        return [self.group, self.name, show(self.ours), show(self.theirs), f"{self.ratio:.2f}x{mark}"]


class Pair:
    """A worker for each library; one that ends is started again."""

    def __init__(self, pythons):
        self.pythons = pythons
        self.workers = {library: self._start(library) for library in pythons}

    def _start(self, library):
        return Worker(self.pythons[library], __file__, library)

    def ask(self, library, **request):
        try:
            return self.workers[library].ask(**request)
        except (SystemExit, BrokenPipeError):
            self.workers[library] = self._start(library)
            raise RuntimeError(f"{library} failed") from None

    def close(self):
        for worker in self.workers.values():
            worker.close()


def measure(pair, group, name, options) -> Row:
    request = {"workload": name, "seconds": options.seconds}
    rounds = 2 if group == "compilation" else options.rounds
    asks = [functools.partial(pair.ask, library, **request) for library in (OURS, THEIRS)]
    try:
        ours, theirs = alternate(rounds, *asks)
        check_equal(name, ours[0]["result"], theirs[0]["result"], **TOLERANCE)
    except RuntimeError as error:
        return Row(group, name, fault=str(error))
    except (AssertionError, SystemExit) as error:
        print(error, file=sys.stderr)
        return Row(group, name, fault="numbers differ")
    return Row(group, name, best(ours), best(theirs))


def names_of(library) -> dict[str, str]:
    """The group of each workload."""
    return {name: group for name, (group, _) in Calls(importlib.import_module(library)).makers.items()}


def mean(rows) -> float:
    return math.exp(sum(math.log(r.ratio) for r in rows) / len(rows)) if rows else math.nan


def means(rows) -> list[list[str]]:
    """Lines of the table of groups."""
    out = []
    good = [r for r in rows if not r.fault]
    for group in GROUPS:
        of_group = [r for r in good if r.group == group]
        if of_group:
            out.append(line_of_means(group, of_group, GOALS.get(group, 1.5)))
    run = [r for r in good if r.group != "compilation"]
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
    ordered = sorted(rows, key=lambda r: (not r.fault, r.group == "compilation", 0 if r.fault else r.ratio))
    slow = table(["group", "workload", OURS, THEIRS, "ratio"], [r.cells() for r in ordered])
    groups = table(["group", "workloads", "geometric mean", "least", "goal of the mean"], means(rows))
    return f"{slow}\n\n{groups}\n"


def document(text: str, jax_version: str) -> str:
    machine = f"{os.cpu_count()} processors ({platform.machine()}), Python {platform.python_version()}"
    return (
        "# Benchmarks\n\n"
        f"Compiled programs beside JAX {jax_version} on {machine}; `make bench WRITE=1` writes\n"
        "this page. Ratios are JAX's time divided by ours, worst first: above 1 we are faster. Both libraries\n"
        "ran in turns on the same machine, the least time of each counts, and both gave the same numbers.\n"
        f"Nothing comes from a cache of compiled programs.\n\n{text}"
    )


def main():
    parser = options_of(__doc__.splitlines()[0], rounds=5, seconds=0.1)
    parser.add_argument("--group", default="", help="only this group")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, Calls)
        return
    os.environ.update(NO_DISK_CACHE)
    pair = Pair({OURS: sys.executable, THEIRS: options.jax_python})
    rows = []
    try:
        for name, group in names_of(OURS).items():
            if options.only in name and options.group in group:
                rows.append(measure(pair, group, name, options))
                print("  " + "  ".join(rows[-1].cells()), file=sys.stderr, flush=True)
    finally:
        pair.close()
    text = report(rows)
    print("\n" + text)
    if options.write:
        DOCUMENT.write_text(document(text, "0.10.2"))
    failed = any(r.fault for r in rows)
    missed = any(r.ratio < FLOOR for r in rows if not r.fault)
    sys.exit(1 if failed or (options.strict and missed) else 0)


if __name__ == "__main__":
    main()
