"""The tests that released libraries carry, in their wheels or their source distributions, on JAX and on catena.

`ecosystem.py --tests` calls this, a process for each file of tests, so that one that ends badly takes no other along.
What JAX answers is kept under ``build/clients/tests``: it does not change while the wheel does not.
"""

import json
import os
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_outcomes import WHOLE

HERE = Path(__file__).resolve().parent
# Library -> where its tests are: a folder in its wheel, or "sdist:" and a folder in its source distribution.
TESTS = {
    "optax": "optax",
    "chex": "chex",
    "dm-haiku": "haiku",
    "einops": "einops/tests",
    "distrax": "distrax",
    "rlax": "rlax",
    "mctx": "mctx",
    "tinygp": "sdist:tests",
    "quadax": "sdist:tests",
    "interpax": "sdist:tests",
    "flowjax": "sdist:tests",
    "blackjax": "sdist:tests",
    "e3nn-jax": "sdist:tests",
    "quax": "sdist:tests",
    "numpyro": "sdist:test",
    "flax": "sdist:tests",
    "gymnax": "sdist:tests",
    "brax": "brax",
    "scico": "scico/test",
    "dm-pix": "sdist:dm_pix",
    "flashbax": "sdist:flashbax",
    "jmp": "sdist:jmp",
    "jraph": "sdist:jraph",
    "paramax": "sdist:tests",
    "tree-math": "sdist:tree_math",
    "dynamax": "dynamax",
    "aqtp": "aqt",
}
ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "EINOPS_TEST_BACKENDS": "numpy,jax"}
PASSED, FAILED, NONE = 0, 1, 5  # how pytest ends where it ran what there is


class Limits(NamedTuple):
    """How many of a file's tests are run, as ``"2/24"``, all where it is empty; and how long a file may take."""

    share: str = ""
    seconds: float = 600


Outcomes = dict[str, list[str]]  # test -> "passed", "failed", "skipped" or "late", and the message


def outcomes(report: Path) -> Outcomes:
    """What the plugin wrote down; of a test that failed in one phase and passed in another, that it failed."""
    found: Outcomes = {}
    for line in report.read_text().splitlines() if report.exists() else ():
        test, outcome, message = json.loads(line)
        if found.get(test, [""])[0] != "failed":
            found[test] = [outcome, message]
    return found


def run(command: list[str], file: Path, kept: Path, limits: Limits, tests: list[str] | None = None) -> Outcomes:
    """The outcomes of a file of tests; `WHOLE` stands for the file, where it could not be imported or did not end.

    Arguments:
      command: what runs pytest.
      file: the tests.
      kept: where the outcomes are kept; beside it, what was printed.
      limits: which tests, and how long.
      tests: those that are wanted and are not in what is kept; None for all, again. `WHOLE`: can the file be imported?
    """
    known: Outcomes = json.loads(kept.read_text()) if tests is not None and kept.exists() else {}
    if tests is not None and not set(tests) - known.keys():
        return known
    kept.parent.mkdir(parents=True, exist_ok=True)
    report, log, wanted = (kept.with_suffix(end) for end in (".lines", ".log", ".wanted"))
    report.unlink(missing_ok=True)
    paths = filter(None, [os.environ.get("PYTHONPATH"), str(HERE)])
    environment = (
        os.environ | ENVIRONMENT | {"OUTCOMES": str(report), "OUTCOMES_SHARE": limits.share if tests is None else ""}
    )
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    options = ["-q", "-p", "pytest_outcomes", "-p", "no:cacheprovider", "-W", "ignore", "-o", "addopts="]
    if tests == [WHOLE]:
        options.append("--collect-only")
    elif tests is not None:
        wanted.write_text("\n".join(tests))
        environment["OUTCOMES_WANTED"] = str(wanted)
    try:
        with log.open("w") as output:
            ended = subprocess.run(
                [*command, *options, str(file)],
                cwd=kept.parent,
                stdout=output,
                stderr=output,
                timeout=limits.seconds,
                env=environment,
            ).returncode
        found = outcomes(report)
        if ended not in (PASSED, FAILED, NONE) and WHOLE not in found:
            found[WHOLE] = ["failed", f"pytest ended with {ended}; see {log}"]
        elif tests == [WHOLE] and not found:
            found[WHOLE] = ["passed", ""]
    except subprocess.TimeoutExpired:
        found = outcomes(report) | {WHOLE: ["late", f"did not end in {limits.seconds} s"]}
    kept.write_text(json.dumps(known | found, indent=1))
    return known | found


def folder_of(wheel: str, site: Path, place: Path, download: Callable[[str, Path], None]) -> Path:
    """Where the tests of a library are; a source distribution is fetched once, and its tests are unpacked."""
    where = TESTS[wheel.partition("=")[0]]
    inside = where.removeprefix("sdist:")
    if inside == where:
        return site / where
    target = place / "sources" / wheel
    if not target.exists():
        name = wheel.replace("-", "[-_]").replace("==", "-") + "*.tar.gz"
        if not any(target.parent.glob(name)):
            download(wheel, target.parent)
        archive = next(target.parent.glob(name))
        with tarfile.open(archive) as source:
            root = source.getnames()[0].partition("/")[0]
            members = [entry for entry in source if entry.name.startswith(f"{root}/{inside}/")]
            source.extractall(target, members, filter="data")
        (target / root).rename(target / "unpacked")
    return target / "unpacked" / inside


def names_of(folder: Path) -> list[str]:
    """The names of the files of tests in a folder."""
    return [str(path.relative_to(folder)) for path in sorted({*folder.rglob("*_test.py"), *folder.rglob("test_*.py")})]


def link_beside(here: Path, folder: Path) -> None:
    """A link to the package beside the folder that its tests run in: mctx's read ``../mctx/_src/tests/test_data``."""
    here.mkdir(parents=True, exist_ok=True)
    link = here.parent / folder.name
    if not link.exists():
        link.symlink_to(folder)


def compare(
    wheel: str,
    commands: dict[str, list[str]],
    folders: dict[str, Path],
    place: Path,
    which: Callable[[str], bool],
    limits: Limits,
) -> Iterator[tuple[str, dict]]:
    """What a library's files of tests say here, one after the other: how many pass, and those that pass on JAX alone.

    Arguments:
      wheel: the library.
      commands: "catena" and "jax" -> the command that runs pytest there.
      folders: likewise -> where the tests are.
      place: where answers are kept.
      which: whether the file of this name is to be run. JAX is asked about tests that fail here.
      limits: which of each file's tests, and how long.
    """
    for kind, folder in folders.items():
        link_beside(place / "tests" / wheel / kind, folder)
    for name in filter(which, names_of(folders["catena"])):
        kept = name.replace("/", ".").replace(".py", ".json")
        places = {kind: place / "tests" / wheel / kind / kept for kind in commands}
        started = time.monotonic()
        ours = run(commands["catena"], folders["catena"] / name, places["catena"], limits)
        seconds = time.monotonic() - started
        failed = {test: message for test, (outcome, message) in ours.items() if outcome == "failed"}
        theirs = run(commands["jax"], folders["jax"] / name, places["jax"], limits, list(failed)) if failed else {}
        bad = sorted(test for test in failed if theirs.get(test, [""])[0] == "passed")
        counts = Counter(outcome for outcome, _ in ours.values())
        found = {"passed": counts["passed"], "skipped": counts["skipped"], "both": counts["failed"] - len(bad)}
        found |= {"late": True} if counts["late"] else {}
        found |= {"share": limits.share} if limits.share else {}
        print(
            f"  {name}: {counts['passed']} pass, {counts['failed']} fail, {len(bad)} of them pass on JAX; "
            f"{'not to its end, ' if counts['late'] else ''}{seconds:.0f} s",
            flush=True,
        )
        yield name, found | {"here": [[test, failed[test].strip()[:300]] for test in bad]}
