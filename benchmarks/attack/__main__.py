"""``make attack``: all attacks, in worker processes of their own; what crashed, what hung, what was wrong.

Two workers run at a time. A worker that dies or says nothing for too long is ended, its case is reported as a crash or
a hang, and another worker goes on with the next case.
"""

import argparse
import collections
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from itertools import chain
from pathlib import Path

from attack.outcomes import slowness
from attack.worker import SECONDS

HERE = Path(__file__).resolve().parent
SILENCE = object()
FAMILIES = ("signals", "forks", "threads", "memory", "extents", "cache", "values")


class Family:
    """The cases of one family, run until the last one has ended."""

    def __init__(self, name: str, ends: list, folder: str, verbose: bool):
        self.name, self.ends, self.folder, self.verbose = name, ends, folder, verbose
        self.next, self.total = 0, None

    def run(self) -> None:
        while self.total is None or self.next < self.total:
            self.run_worker()

    def run_worker(self) -> None:
        """One worker, until it is through or has to be ended."""
        env = {**os.environ, "CATENA_CACHE_DIR": os.path.join(self.folder, self.name), "CATENA_NUM_THREADS": "2"}
        env["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), *filter(None, [env.get("PYTHONPATH")])])
        command = [sys.executable, "-W", "ignore", "-m", "attack.worker", self.name, str(self.next)]
        with tempfile.TemporaryFile("w+") as errors:
            worker = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env, start_new_session=True
            )
            began = self.read(worker)
            code = worker.wait()
            if began is None and code == 0:
                return
            errors.seek(0)
            text = errors.read()[-2000:]
        if began is None:  # it died between two cases, or before the first
            began = {"begins": self.next, "name": "between cases"}
            self.total = self.total or self.next + 1
        hung = code == -signal.SIGKILL
        self.record(began["name"], "hang" if hung else "crash", f"ended with {code}\n{text}", SECONDS)
        self.next = began["begins"] + 1

    def read(self, worker) -> dict | None:
        """What the worker says, until its end; the case that it was in then."""
        lines: queue.Queue = queue.Queue()
        reader = threading.Thread(target=lambda: [lines.put(x) for x in chain(worker.stdout, [None])], daemon=True)
        reader.start()
        began = None
        while True:
            line = self.next_line(lines)
            if line is SILENCE:
                os.killpg(worker.pid, signal.SIGKILL)
                return began
            if line is None:
                return began
            facts = json.loads(line)
            self.total = facts.get("total", self.total)
            if "begins" in facts:
                began = facts
            elif "ended" in facts:
                self.record(facts["name"], facts["ended"], facts["note"], facts["seconds"])
                self.next, began = facts["number"] + 1, None

    def next_line(self, lines: queue.Queue):
        """What the worker says next, None at its end; `SILENCE` when it takes too long, however busy the machine is."""
        start, slower = time.perf_counter(), 1.0
        while time.perf_counter() - start < SECONDS * slower:
            with contextlib.suppress(queue.Empty):
                return lines.get(timeout=SECONDS)
            slower = slowness()
        return SILENCE

    def record(self, name: str, ended: str, note: str, seconds: float) -> None:
        """Keep how a case ended, and say so where it is not well."""
        self.ends.append((self.name, ended))
        if self.verbose or ended not in ("right", "refused"):
            print(f"{ended:8} {self.name}: {name} ({seconds} s) {note}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="families whose names contain this text")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    options = parser.parse_args()
    start, waiting, ends = time.time(), queue.Queue(), []
    for family in FAMILIES:
        if options.only in family:
            waiting.put(family)
    with tempfile.TemporaryDirectory() as folder:
        runners = [
            threading.Thread(target=run_families, args=(waiting, ends, folder, options.verbose)) for _ in range(2)
        ]
        [r.start() for r in runners]
        [r.join() for r in runners]
    return report(ends, time.time() - start)


def run_families(waiting: queue.Queue, ends: list, folder: str, verbose: bool) -> None:
    """Run what is waiting until nothing is."""
    while True:
        try:
            name = waiting.get_nowait()
        except queue.Empty:
            return
        Family(name, ends, folder, verbose).run()


def report(ends: list, seconds: float) -> int:
    """Print how the cases ended; 1 where one crashed, hung or was wrong."""
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for family, ended in ends:
        counts[family][ended] += 1
    kinds = ("right", "refused", "wrong", "crash", "hang")
    print(f"{'family':10}" + "".join(f"{kind:>9}" for kind in kinds))
    for family, count in counts.items():
        print(f"{family:10}" + "".join(f"{count[kind]:9}" for kind in kinds))
    total = sum(counts.values(), collections.Counter())
    print(f"{'all':10}" + "".join(f"{total[kind]:9}" for kind in kinds))
    print(f"{total.total()} cases in {seconds:.0f} s: ", end="")
    print(f"{total['crash']} crashes, {total['hang']} hangs, {total['wrong']} wrong")
    return int(total["crash"] + total["hang"] + total["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
