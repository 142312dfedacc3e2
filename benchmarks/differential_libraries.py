"""The libraries around the core beside JAX: what calls return and raise, eagerly, under ``jit``, and their gradients.

`make compare-libraries` (or `python benchmarks/differential_libraries.py --jax-python PYTHON`) reads the tables in
`benchmarks/libraries/`, modules with

- ``OPERANDS = {"x": lambda rng: array, ...}``: NumPy arrays made from a seeded generator, and what else calls need;
- ``CASES = ["jsp.special.gammainc(a, x)", ...]``: expressions over ``jax jnp lax nn np``, ``jsp`` (``jax.scipy``)
  and operands; ``(expression, tolerance)`` where results are known to less than the dtype's;
- ``GRADIENTS = [...]``, optional: expressions whose gradient by each inexact operand is compared, that of the sum of
  the real parts of what is returned;
- ``EXPLAINED = [(pattern, pattern, reason), ...]``, optional: differences that are meant, by patterns of "eager
  EXPRESSION", "jit EXPRESSION" or "grad OPERAND EXPRESSION" and of "ours | theirs"; the first that fits explains;
- ``JIT = [...]``, optional: the cases that are compiled too, where JAX takes too long for all;
- ``IMPORTS = ["experimental.sparse"]``, optional: modules that JAX only has when they are imported;
- ``EACH = True``, optional: each element is compared for itself, not beside the greatest of its array;
- ``SHARP = True``, optional: tolerances are those of single precision, and double precision has its own share of them.

Where numbers differ and SciPy has ours (`judge.py`), that explains. Arrays among the operands are the arguments of the
compiled function. JAX's answers are kept in `.jax-answers/`, and the programs that it compiled, so that only new calls
wait for it (``--answered``: none does, as those without an answer are left out); a call that does not end has no
answer. Dtypes, weak types, shapes, tree structures, values and kinds of exceptions are compared. What differs is
printed, then the counts; a misspelt name, which both refuse, counts as a difference.
"""

import argparse
import ast
import contextlib
import fcntl
import hashlib
import importlib
import pickle
import re
import subprocess
import sys
import tempfile
import warnings
import zlib
from functools import partial
from pathlib import Path

import numpy as np
from answers import NO_ANSWER, difference, explanation, outcome
from judge import sides_with_us

HERE = Path(__file__).resolve().parent
ANSWERS = HERE.parent / ".jax-answers"
SCIPY = "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats".split()
SCIPY += ["cluster.vq", "interpolate", "sparse.linalg", "spatial.transform"]
LIMIT = 120  # seconds, or up to twice as many: a call that takes longer has no answer
BATCH = 100  # calls after which JAX's answers are kept, and its programs forgotten

# ----------------------------------------------------------------------------- in the worker process


def run(library: str, calls_file: str, results_file: str) -> None:
    warnings.simplefilter("ignore")
    given = pickle.loads(Path(calls_file).read_bytes())
    jax = importlib.import_module(library)
    jax.config.update("jax_enable_x64", given["x64"])
    if library == "jax":  # it compiles thousands of programs, each of which runs once
        jax.config.update("jax_disable_most_optimizations", True)
        jax.config.update("jax_compilation_cache_dir", str(ANSWERS / "programs"))  # many of which another batch needs
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_enable_xla_caches", "none")
    for module in [*(f"scipy.{name}" for name in SCIPY), *given["imports"]]:
        with contextlib.suppress(ModuleNotFoundError):  # of what is not there, the calls are differences
            importlib.import_module(f"{library}.{module}")
    names = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "jsp": getattr(jax, "scipy", None), "nn": jax.nn, "np": np}
    operands = {name: jax.numpy.asarray(x) if is_array(x) else x for name, x in given["operands"].items()}
    call = partial(answer, jax, names | operands, {name for name, x in given["operands"].items() if is_array(x)})
    with Path(results_file).open("wb") as file:
        for of in given["calls"]:
            pickle.dump(outcome(jax, partial(call, *of)), file)
            file.flush()


def is_array(x) -> bool:
    return isinstance(x, (np.ndarray, np.generic))


def answer(jax, names: dict, arrays: set, how: str, expression: str):
    """The value of the expression, or its gradient by an operand: ``how`` is "eager", "jit" or "grad OPERAND"."""
    code = compile(expression, "<case>", "eval")
    if how == "eager":
        return eval(code, names)
    traced = [how.split()[1]] if how != "jit" else sorted(used_in(expression) & arrays)

    def function(*values):
        out = eval(code, names | dict(zip(traced, values)))
        return out if how == "jit" else real_sum(jax, out)

    return jax.jit(function if how == "jit" else jax.grad(function))(*(names[name] for name in traced))


def used_in(expression: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)}


def real_sum(jax, value):
    leaves = [x for x in jax.tree.leaves(value) if jax.numpy.issubdtype(x.dtype, np.inexact)]
    return sum(jax.numpy.sum(jax.numpy.real(x)) for x in leaves)


# ------------------------------------------------------------------------------ in the parent process


class Table:
    """One module of `libraries/`: its operands, made, and its calls as (how, expression)."""

    def __init__(self, name: str, x64: bool):
        table = importlib.import_module(f"libraries.{name}")
        self.name, self.x64 = name, x64
        self.operands = {
            key: make(np.random.default_rng(zlib.crc32(key.encode()))) for key, make in table.OPERANDS.items()
        }
        self.explained = getattr(table, "EXPLAINED", [])
        self.imports = getattr(table, "IMPORTS", [])
        self.each, self.sharp = getattr(table, "EACH", False), getattr(table, "SHARP", False)
        cases = dict(case if isinstance(case, tuple) else (case, None) for case in table.CASES)
        slopes = dict(case if isinstance(case, tuple) else (case, None) for case in getattr(table, "GRADIENTS", []))
        inexact = {key for key, x in self.operands.items() if is_array(x) and x.dtype.kind in "fc"}
        compiled = set(getattr(table, "JIT", cases))
        self.tolerances = {("eager", case): tolerance for case, tolerance in cases.items()}
        self.tolerances |= {("jit", case): tolerance for case, tolerance in cases.items() if case in compiled}
        for case, tolerance in slopes.items():
            self.tolerances |= {(f"grad {key}", case): tolerance for key in sorted(used_in(case) & inexact)}

    def calls(self, only: str) -> list:
        return [of for of in self.tolerances if re.search(only, f"{self.name}: {of[0]} {of[1]}")]

    def answers(self, library: str, python: str, calls: list) -> dict:
        """By a worker, of which another takes the place behind a call that does not end."""
        found = {}
        while left := [of for of in calls if of not in found]:
            given = {"x64": self.x64, "imports": self.imports, "operands": self.operands, "calls": left}
            results = answered(library, python, given)
            found |= dict(zip(left, results))
            if len(results) < len(left):
                found[left[len(results)]] = [NO_ANSWER, f"none in {LIMIT} seconds"]
        return found

    def kept(self, calls: list, python: str) -> dict:
        """JAX's answers, of which those that it was asked before stand in a file."""
        known = kept_with(self.file(), {})
        new = [of for of in calls if self.digest(of) not in known]
        for start in range(0, len(new), BATCH):
            print(f"{self.name}: JAX answers {start} of {len(new)} calls", file=sys.stderr)
            found = self.answers("jax", python, new[start : start + BATCH])
            known = kept_with(self.file(), {self.digest(of): result for of, result in found.items()})
        return {of: known[self.digest(of)] for of in calls}

    def asked_before(self, calls: list) -> list:
        """Those of the calls that JAX has answered."""
        known = kept_with(self.file(), {})
        return [of for of in calls if self.digest(of) in known]

    def file(self) -> Path:
        return ANSWERS / f"libraries-{self.name}{'-x64' * self.x64}.pickle"

    def digest(self, of: tuple) -> str:
        """Of a call with the values of its operands."""
        values = {key: self.operands[key] for key in sorted(used_in(of[1]) & set(self.operands))}
        return hashlib.sha256(pickle.dumps((of, values))).hexdigest()


def kept_with(file: Path, found: dict) -> dict:
    """What a file keeps, and what is found, which is written behind it: parts of a table share the file."""
    file.parent.mkdir(exist_ok=True)
    known = {}
    with file.open("a+b") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)  # until it is closed
        kept.seek(0)
        for part in read(kept):
            known |= part
        if found:
            pickle.dump(found, kept)
    return known | found


def answered(library: str, python: str, given: dict) -> list:
    """What a worker answers to the calls in turn, until one takes longer than `LIMIT`."""
    with tempfile.TemporaryDirectory() as folder:
        calls, results = Path(folder, "calls"), Path(folder, "results")
        calls.write_bytes(pickle.dumps(given))
        results.touch()
        worker = subprocess.Popen([python, __file__, "--run", library, str(calls), str(results)])
        size = -1
        while worker.poll() is None and size != (size := results.stat().st_size):
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(timeout=LIMIT)
        late = worker.poll() is None
        worker.kill()
        if worker.wait() and not late:
            raise SystemExit("a worker failed")
        with results.open("rb") as file:
            return list(read(file))


def read(file):
    """What is whole of the pickles in a file."""
    with contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            yield pickle.load(file)


def compare(table: Table, calls: list, jax_python: str, show_explained: bool) -> tuple[int, int]:
    """Print what differs; how many differences are not explained, and how many are."""
    theirs = table.kept(calls, jax_python)
    ours = table.answers("catena", sys.executable, calls)
    unexplained, explained = 0, {}
    for of in calls:
        how = {"tolerance": table.tolerances[of], "zero_signs": False, "each": table.each, "sharp": table.sharp}
        what = misspelt(theirs[of]) or difference(ours[of], theirs[of], **how)
        judged = what and sides_with_us(of, ours[of], theirs[of], table.operands, table.x64)
        why = "SciPy has our numbers" if judged else what and explanation(table.explained, " ".join(of), what)
        if why:
            explained.setdefault(why, []).append(" ".join(of))
        elif what:
            unexplained += 1
            print(f"  {' '.join(of)}\n    {what}")
    for why, which in explained.items():
        print(f"{table.name}: explained, {len(which)} times: {why}")
        if show_explained:
            print("".join(f"    {call}\n" for call in which), end="")
    both = sum(isinstance(ours[of][0], list) and isinstance(theirs[of][0], list) for of in calls)
    count = sum(map(len, explained.values()))
    print(f"{table.name}: {len(calls)} calls, {both} refused by both, {unexplained} differ, {count} explained")
    return unexplained, count


def misspelt(theirs) -> str | None:
    wrong = isinstance(theirs[0], list) and re.search("is not defined$|^module .* has no attribute|syntax", theirs[1])
    return f"the case itself is wrong: {theirs[1]}" if wrong else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", default=".venv-jax/bin/python", help="a Python that has JAX")
    parser.add_argument("--only", default="", help='pattern: only calls, "table: how expression", where it is found')
    parser.add_argument("--part", default="1/1", help="k/n: the k-th of n parts of each table")
    parser.add_argument("--x64", action="store_true", help="with x64 on, where operands are of 64 bits")
    parser.add_argument("--answered", action="store_true", help="only calls that JAX has answered before")
    parser.add_argument("--show-explained", action="store_true", help="print the calls that are explained, too")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(*options.run)
        return 0
    part, parts = map(int, options.part.split("/"))
    counts = np.zeros(3, int)
    for path in sorted((HERE / "libraries").glob("[a-z]*.py")):
        table = Table(path.stem, options.x64)
        calls = table.calls(options.only)[part - 1 :: parts]
        if calls := table.asked_before(calls) if options.answered else calls:
            counts += [len(calls), *compare(table, calls, options.jax_python, options.show_explained)]
    print(f"{counts[0]} calls: {counts[1]} unexplained differences, {counts[2]} explained")
    return int(counts[1] > 0)


if __name__ == "__main__":
    sys.exit(main())
