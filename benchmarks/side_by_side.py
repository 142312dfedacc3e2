"""Two libraries side by side: a worker process for each, which take turns, so that both meet the same noise.

The parent asks one worker to time one workload, then the other, round after round; the least of the rounds
counts. A script that measures so gives ``serve`` its workloads (in the workers) and ``Worker`` its own path.
"""

import argparse
import importlib
import itertools
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

OURS, THEIRS = "catena", "jax"
SAMPLES = 257  # elements of a large result that are compared
WARMING = 3  # calls before the first that counts: what is repeated may be compiled
WAITED = 1e-4  # seconds from which a call is waited for; waiting itself takes a few microseconds
# On a busy machine: the processor's time, which others do not add to, for libraries that are held to one core
clock = time.process_time if os.environ.get("BENCH_CLOCK") == "processor" else time.perf_counter

# ------------------------------------------------------------------------------ in the worker process


def numbers(jax, result) -> list:
    """The dtypes and values of a result; of large arrays, samples."""
    return [_leaf(np.asarray(leaf)) for leaf in jax.tree.leaves(result)]


def _leaf(x: np.ndarray) -> dict:
    few = x if x.size <= 2 * SAMPLES else x.reshape(-1)[:: x.size // SAMPLES]
    if few.dtype.kind == "c":
        few = np.stack([few.real, few.imag])
    values = few.astype(np.float64) if few.dtype.kind in "fV" else few
    return {"dtype": str(x.dtype), "shape": x.shape, "values": values.tolist()}


def time_calls(jax, function, seconds: float, warming: int = WARMING) -> float:
    """Seconds per call: one batch that takes about `seconds`.

    JAX runs what takes long in the background, up to 32 calls at a time; so every call that takes longer than
    `WAITED` is waited for, and what is left of an earlier batch never counts as time of the next.
    """
    for _ in range(warming):
        jax.block_until_ready(function())
    took = batch(jax, function, 1, True)
    wait, count = took >= WAITED, 1
    while took < seconds / 10:
        count *= 2 if took > seconds / 100 else 10
        took = batch(jax, function, count, wait)
    more = int(count * seconds / took)
    return took / count if more <= count else batch(jax, function, more, wait) / more


def batch(jax, function, count: int, wait: bool) -> float:
    """Seconds for `count` calls; `wait`: for each result before the next call."""
    start = clock()
    if wait:
        for _ in itertools.repeat(None, count):
            jax.block_until_ready(function())
    else:
        for _ in itertools.repeat(None, count - 1):
            function()
        jax.block_until_ready(function())
    return clock() - start


def serve(library: str, workloads) -> None:
    """Answer requests on stdin, a JSON object a line, until it closes; ``workloads(jax)``: calls by name."""
    jax = importlib.import_module(library)
    calls, results = workloads(jax), {}
    for line in sys.stdin:
        request = json.loads(line)
        name = request["workload"]
        if request.get("cold"):  # one call, without any before it
            start = time.perf_counter()
            result = jax.block_until_ready(calls[name]())
            answer = {"seconds": time.perf_counter() - start, "result": numbers(jax, result)}
            print(json.dumps(answer), flush=True)
            continue
        if name not in results:
            results[name] = numbers(jax, calls[name]())
        seconds = time_calls(jax, calls[name], request["seconds"])
        answer = {"seconds": seconds, "result": results[name]}
        print(json.dumps(answer), flush=True)


# ------------------------------------------------------------------------------ in the parent process


def environment() -> dict[str, str]:
    """The environment, with byte code kept, as installed libraries have it: else first calls compile modules anew."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


class Worker:
    """One library in a process of its own that times what it is asked to."""

    def __init__(self, python, script, library, *options):
        command = [python, script, "--serve", library, *options]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, **pipes, text=True, env=environment())

    def ask(self, **request):
        self.send(request)
        return self.answer()

    def send(self, request: dict):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def answer(self):
        if not (answer := self.process.stdout.readline()):
            raise SystemExit(f"the worker {self.process.args} ended; its error stands above")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


class Pair:
    """A worker for each library, by their Pythons; one that ends is started again."""

    def __init__(self, pythons, script):
        self.pythons, self.script = pythons, script
        self.workers = {library: self._start(library) for library in pythons}

    def _start(self, library):
        return Worker(self.pythons[library], self.script, library)

    def ask(self, library, **request):
        return self._watched(library, lambda worker: worker.ask(**request))

    def ask_all(self, **request) -> dict:
        """The answers of all, who work at the same time."""
        for library in self.workers:
            self._watched(library, lambda worker: worker.send(request))
        answers, failed = {}, None
        for library in self.workers:
            try:
                answers[library] = self._watched(library, Worker.answer)
            except RuntimeError as error:
                failed = error
        if failed:
            raise failed
        return answers

    def _watched(self, library, do):
        try:
            return do(self.workers[library])
        except (SystemExit, BrokenPipeError):
            self.workers[library] = self._start(library)
            raise RuntimeError(f"{library} failed") from None

    def close(self):
        for worker in self.workers.values():
            worker.close()


def alternate(rounds, *measures):
    """Every measure once per round; all answers, by measure."""
    answers = [[] for _ in measures]
    for _ in range(rounds):
        for measure, kept in zip(measures, answers):
            kept.append(measure())
    return answers


def best(answers) -> float:
    return min(answer["seconds"] for answer in answers)


def check_equal(name, ours, theirs, rtol=2e-6, atol=1e-6):
    """Same dtypes, same numbers; elementary functions and sums may differ in the last bits."""
    if [leaf["dtype"] for leaf in ours] != [leaf["dtype"] for leaf in theirs]:
        raise SystemExit(f"{name}: dtypes differ: {ours} and {theirs}")
    for left, right in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(left["values"], right["values"], rtol=rtol, atol=atol, err_msg=name)


def show(seconds: float) -> str:
    for unit, scale in (("s ", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def options_of(description: str, **defaults) -> argparse.ArgumentParser:
    """The options that all such scripts have; ``defaults`` for ``rounds`` and ``seconds``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--jax-python", default=".venv-jax/bin/python", help="a Python that has JAX")
    parser.add_argument("--rounds", type=int, default=defaults["rounds"], help="turns per workload")
    parser.add_argument("--seconds", type=float, default=defaults["seconds"], help="length of one turn")
    parser.add_argument("--only", default="", help="only workloads whose name contains this")
    parser.add_argument("--strict", action="store_true", help="fail when a goal is missed")
    parser.add_argument("--serve", metavar="LIBRARY", help=argparse.SUPPRESS)
    return parser


def run_side_by_side(script: str, pythons: dict, calls: list) -> dict:
    """Library -> what `script --run LIBRARY CALLS RESULTS` leaves of the calls; the libraries work at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder, "calls")
        given.write_bytes(pickle.dumps(calls))
        workers = [
            subprocess.Popen([python, script, "--run", library, str(given), f"{folder}/{library}"])
            for library, python in pythons.items()
        ]
        if any(worker.wait() for worker in workers):
            raise SystemExit("a worker failed")
        return {library: pickle.loads(Path(folder, library).read_bytes()) for library in pythons}
