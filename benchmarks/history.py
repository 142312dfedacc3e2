"""The history of `make bench`: one JSON a commit in `benchmarks/history`, from which a page draws trends.

`make bench WRITE=1` records a run of a clean tree; runs of parts of the workloads at one commit add up.
`python benchmarks/history.py` writes docs/benchmark_history.md anew. Times of different machines are never compared.
"""

import json
import math
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "history"
PAGE = ROOT / "docs" / "benchmark_history.md"
BARS = "▁▂▃▄▅▆▇█"
SHOWN = 20  # commits of a trend
LISTED = 15  # workloads that changed most
CHANGED = 1.1  # factor from which a change of one workload is shown: below it is noise


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def machine() -> str:
    """What tells machines apart whose times cannot be compared."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} processors"


def record(rows: list[dict], folder: Path = FOLDER) -> Path | None:
    """Keep what was measured at the commit that is checked out.

    Arguments:
      rows: for each workload its ``group``, ``name``, and ``ours`` and ``theirs`` in seconds (memory: in bytes).
      folder: where the history is.

    Returns:
      The file, or None where files differ from the commit: nobody could check out what was measured.
    """
    if git(
        "status", "--porcelain", "--untracked-files=no", "--", "src", "benchmarks/compiler.py", "benchmarks/workloads"
    ):
        return None
    commit, date, subject = git("log", "-1", "--format=%h%n%cI%n%s").split("\n", 2)
    folder.mkdir(exist_ok=True)
    path = folder / f"{date[:10]}-{commit}.json"
    entry = {"commit": commit, "date": date, "subject": subject, "machine": machine(), "rows": []}
    if path.exists() and (before := json.loads(path.read_text()))["machine"] == entry["machine"]:
        entry["rows"] = before["rows"]
    found = {(r["group"], r["name"]): r for r in [*entry["rows"], *rows]}
    lines = ",\n".join(json.dumps(found[key]) for key in sorted(found))
    head = json.dumps({k: x for k, x in entry.items() if k != "rows"}, indent=0)[:-2]
    path.write_text(f'{head},\n"rows": [\n{lines}\n]\n}}\n')
    return path


def entries(folder: Path = FOLDER) -> list[dict]:
    """What was recorded, oldest first."""
    return sorted((json.loads(p.read_text()) for p in folder.glob("*.json")), key=lambda e: e["date"])


def means(entry: dict) -> dict[str, float]:
    """The geometric mean of JAX's time divided by ours, for each group."""
    logs: dict[str, list[float]] = {}
    for row in entry["rows"]:
        logs.setdefault(row["group"], []).append(math.log(row["theirs"] / row["ours"]))
    return {group: math.exp(sum(xs) / len(xs)) for group, xs in logs.items()}


def bars(values: list[float]) -> str:
    """A line of bars, a value each, on a logarithmic scale from the least to the greatest.

    >>> bars([1.0, 2.0, 4.0])
    '▁▄█'
    >>> bars([2.0])
    '▄'
    """
    logs = [math.log(x) for x in values]
    low, width = min(logs), max(logs) - min(logs)
    return "".join(BARS[int((x - low) / width * 7 + 1e-9) if width else 3] for x in logs)


def trends(history: list[dict]) -> list[str]:
    """A table: a group a line, and how its mean went."""
    by_commit = [means(e) for e in history[-SHOWN:]]
    groups = sorted({group for found in by_commit for group in found})
    lines = ["| group | first | last | trend |", "|---|---|---|---|"]
    for group in groups:
        values = [found[group] for found in by_commit if group in found]
        lines.append(f"| {group} | {values[0]:.2f}x | {values[-1]:.2f}x | {bars(values)} |")
    return lines


def changes(before: dict, after: dict) -> list[str]:
    """The workloads whose own time changed most between two commits, slower ones first."""
    old = {(r["group"], r["name"]): r["ours"] for r in before["rows"]}
    factors = {
        (r["group"], r["name"]): r["ours"] / old[k] for r in after["rows"] if (k := (r["group"], r["name"])) in old
    }
    shown = sorted((k for k, x in factors.items() if max(x, 1 / x) >= CHANGED), key=lambda k: -factors[k])
    if len(shown) > LISTED:
        shown = sorted(sorted(shown, key=lambda k: -abs(math.log(factors[k])))[:LISTED], key=lambda k: -factors[k])
    return [f"- {name} ({group}): {factors[group, name]:.2f} of the time before" for group, name in shown]


def document(history: list[dict]) -> str:
    """The page."""
    out = [
        "# History of the benchmarks",
        "",
        "Written by `python benchmarks/history.py` from `benchmarks/history`, which `make bench` fills: JAX's",
        "time divided by ours, the mean over the workloads of a group, above 1 where we are faster, by commit.",
    ]
    machines = dict.fromkeys(e["machine"] for e in history)
    for name in machines:
        own = [e for e in history if e["machine"] == name]
        first, last = own[max(0, len(own) - SHOWN)], own[-1]
        span = " to ".join(f"{e['commit']} ({e['date'][:10]})" for e in (first, last))
        out += ["", f"## {name}", "", f"Commits: {len(own)}, {span}.", "", *trends(own)]
        if len(own) > 1:
            changed = changes(own[-2], last) or ["- none by a tenth or more"]
            out += ["", f"From {own[-2]['commit']} to {last['commit']}, our own times:", "", *changed]
    return "\n".join(out) + "\n"


def main() -> int:
    PAGE.write_text(document(entries()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
