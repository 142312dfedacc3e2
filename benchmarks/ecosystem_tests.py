"""The tests that released libraries carry, in their wheels or their source distributions, on JAX and on catena.

`ecosystem.py --tests` calls this, a process for each file of tests, so that one that ends badly takes no other along.
What JAX answers is kept under ``build/clients/tests``: it does not change while the wheel does not.
"""

import json
import os
import re
import subprocess
import tarfile
import xml.etree.ElementTree as xml
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

# Library -> where its tests are: a folder in its wheel, or "sdist:" and a folder in its source distribution.
TESTS = {
    "optax": "optax",
    "chex": "chex",
    "dm-haiku": "haiku",
    "einops": "einops/tests",
    "jmp": "jmp",
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
}
ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "EINOPS_TEST_BACKENDS": "numpy,jax"}
SECONDS = 600  # that a file may take
# Patterns of library, of "file::test" and of the message: why it fails here and is not for catena to mend.
EXPLAINED = [
    ("", "", "dialect must be", "it looks at the program in HLO, XLA's language, which catena does not write"),
    ("flax", "", "whose type has a state", "a variable of hijax's is closed over by what is traced, and refused"),
    ("flax", "test_eval_shape_mutable_array", "", "a variable of hijax's is the result of a function that is traced"),
    ("flax", "test_cache_tracing", "2 != 1", "loops trace a body again that is an object equal to itself alone"),
    (
        "quax",
        "",
        "device_put_p|select_and_scatter_p",
        "its classes name rules of primitives that leave no equations",
    ),
    ("quax", "test_while_vmap", "", "lanes of a loop are selected in its body here, for which the class has no rule"),
    ("quax", "unravel_index", "", "indices that are no integers are refused"),
    ("flax", "summary_test", "", "it knows by heart how many operations XLA counts"),
    ("flax", "fp8_meta_dtype", "fp8_meta32", "its dtype says by `jax._src.dtypes`' protocol what it is made of"),
    ("flax", "exclusion_remove_frames", "", "it asks for `jax._src.traceback_util.UnfilteredStackTrace`"),
    (
        "optax",
        "LBFGSTest::test_against_plain_implementation",
        "Not equal to tolerance",
        "fifteen steps that amplify rounding: in double precision both runs are as far off as from each other, 1e-4",
    ),
]


WHOLE = "the file"  # the name of a test that stands for all in its file
Outcomes = dict[str, list[str]]  # test -> "passed", "failed" or "skipped", and the message


def outcomes(report: Path) -> Outcomes:
    """What a report of pytest's says."""
    found = {}
    for case in xml.parse(report).iter("testcase"):
        place, name = case.get("classname", ""), case.get("name")
        test = f"{place.rpartition('.')[2]}::{name}" if place else WHOLE
        test = re.sub(r"0x[0-9a-f]+", "0x", test)  # addresses in names of cases
        kinds = {child.tag: child for child in case}
        failed = kinds.get("failure", kinds.get("error"))
        if failed is not None:
            errors = [line[1:].strip() for line in (failed.text or "").splitlines() if line.startswith("E  ")]
            said = failed.get("message", "").strip()
            found[test] = ["failed", errors[-1] if test == WHOLE and errors else said]
        else:
            found[test] = ["skipped" if "skipped" in kinds else "passed", ""]
    return found


def run(command: list[str], file: Path, kept: Path, tests: list[str] | None = None) -> Outcomes:
    """The outcomes of a file of tests; one failure of the whole file where it did not end by itself.

    Arguments:
      command: what runs pytest.
      file: the tests.
      kept: where the outcomes are kept; beside it, what was printed.
      tests: those that are wanted and are not in what is kept; None for all, again. `WHOLE`: can the file be imported?
    """
    known: Outcomes = json.loads(kept.read_text()) if tests is not None and kept.exists() else {}
    if tests is not None and not set(tests) - known.keys():
        return known
    kept.parent.mkdir(parents=True, exist_ok=True)
    report, log = kept.with_suffix(".xml"), kept.with_suffix(".log")
    report.unlink(missing_ok=True)
    if tests == [WHOLE]:
        asked = ["--collect-only", str(file)]
    else:
        asked = [str(file)] if tests is None else [f"{file}::{node(test, file)}" for test in tests if test not in known]
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "-o", "addopts=", f"--junitxml={report}"]
    try:
        with log.open("w") as output:
            done = subprocess.run(
                [*command, *options, *asked],
                cwd=kept.parent,
                stdout=output,
                stderr=output,
                timeout=SECONDS,
                env=os.environ | ENVIRONMENT,
            )
        ended = "failed" if done.returncode else "passed"
        whole = {WHOLE: [ended, f"pytest ended with {done.returncode}; see {log}"]}
    except subprocess.TimeoutExpired:
        whole = {WHOLE: ["failed", f"did not end in {SECONDS} s"]}
    found = (outcomes(report) if report.exists() else {}) or whole
    kept.write_text(json.dumps(known | found, indent=1))
    return known | found


def node(test: str, file: Path) -> str:
    """A test as pytest's command line has it: without the name of the file where it stands in no class."""
    return test.removeprefix(f"{file.stem}::")


def folder_of(wheel: str, site: Path, place: Path, download: Callable[[str, Path], None]) -> Path:
    """Where the tests of a library are; a source distribution is fetched once, and its tests are unpacked."""
    where = TESTS[wheel.partition("=")[0]]
    inside = where.removeprefix("sdist:")
    if inside == where:
        return site / where
    target = place / "sources" / wheel
    if not target.exists():
        download(wheel, target.parent)
        archive = max(target.parent.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
        with tarfile.open(archive) as source:
            root = source.getnames()[0].partition("/")[0]
            members = [entry for entry in source if entry.name.startswith(f"{root}/{inside}/")]
            source.extractall(target, members, filter="data")
        (target / root).rename(target / "unpacked")
    return target / "unpacked" / inside


def files(folder: Path, only: str) -> Iterator[Path]:
    for path in sorted({*folder.rglob("*_test.py"), *folder.rglob("test_*.py")}):
        if re.search(only, str(path.relative_to(folder))):
            yield path


def link_beside(here: Path, folder: Path) -> None:
    """A link to the package beside the folder that its tests run in: mctx's read ``../mctx/_src/tests/test_data``."""
    here.mkdir(parents=True, exist_ok=True)
    link = here.parent / folder.name
    if not link.exists():
        link.symlink_to(folder)


def reason(library: str, test: str, message: str) -> str:
    """Why a test fails here, if that is known."""
    for which, tests, messages, why in EXPLAINED:
        if re.search(which, library) and re.search(tests, test) and re.search(messages, message):
            return why
    return ""


def compare(wheel: str, commands: dict[str, list[str]], folders: dict[str, Path], place: Path, only: str) -> dict:
    """Counts of a library's tests here, and those that fail here and pass on JAX.

    Arguments:
      wheel: the library.
      commands: "catena" and "jax" -> the command that runs pytest there.
      folders: likewise -> where the tests are.
      place: where answers are kept.
      only: pattern of files. JAX is asked about tests that fail here.
    """
    library = wheel.partition("=")[0]
    found = {"passed": 0, "skipped": 0, "fail on both": 0, "fail here": []}
    for kind, folder in folders.items():
        link_beside(place / "tests" / wheel / kind, folder)
    for file in files(folders["catena"], only):
        name = str(file.relative_to(folders["catena"]))

        places = {
            kind: place / "tests" / wheel / kind / name.replace("/", ".").replace(".py", ".json") for kind in commands
        }
        ours = run(commands["catena"], folders["catena"] / name, places["catena"])
        counts = Counter({"passed": 0, "skipped": 0, "failed": 0})
        counts.update(outcome for outcome, _ in ours.values())
        failed = {test: message for test, (outcome, message) in ours.items() if outcome == "failed"}
        theirs = run(commands["jax"], folders["jax"] / name, places["jax"], list(failed)) if failed else {}
        bad = [test for test, message in failed.items() if theirs.get(test, [""])[0] == "passed"]
        for test in sorted(bad):
            message = failed[test]
            first = (message.splitlines() or ["no message"])[0][:200]
            found["fail here"].append((f"{name}::{test}", first, reason(library, f"{name}::{test}", message)))
        found["passed"] += counts["passed"]
        found["skipped"] += counts["skipped"]
        found["fail on both"] += counts["failed"] - len(bad)
        print(f"  {name}: {counts['passed']} pass, {counts['failed']} fail, {len(bad)} of them pass on JAX", flush=True)
    return found
