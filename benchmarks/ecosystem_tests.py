"""The tests that released libraries carry, in their wheels or their source distributions, on JAX and on catena.

`ecosystem.py --tests` calls this, a process for each file of tests, so that one that ends badly takes no other along.
What JAX answers is kept under ``build/clients/tests``: it does not change while the wheel does not.
"""

import json
import re
import subprocess
import tarfile
import xml.etree.ElementTree as xml
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
    "tinygp": "sdist:src",
    "blackjax": "sdist:tests",
    "numpyro": "sdist:test",
    "flax": "sdist:tests",
}
SECONDS = 600  # that a file may take
# Library, pattern of "file::test", pattern of the message: why it fails here, where it is not for catena to mend.
EXPLAINED: list[tuple[str, str, str, str]] = []


Outcomes = dict[str, list[str]]  # test -> "passed", "failed" or "skipped", and the message


def outcomes(report: Path) -> Outcomes:
    """What a report of pytest's says."""
    found = {}
    for case in xml.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        name = re.sub(r"0x[0-9a-f]+", "0x", name)  # addresses in names of cases
        kinds = {child.tag: child.get("message", "") for child in case}
        failed = kinds.get("failure", kinds.get("error"))
        if failed is not None:
            found[name] = ["failed", failed]
        else:
            found[name] = ["skipped", kinds["skipped"]] if "skipped" in kinds else ["passed", ""]
    return found


def run(command: list[str], file: Path, kept: Path, again: bool) -> Outcomes:
    """The outcomes of a file of tests; one failure of the whole file where it did not end by itself.

    Arguments:
      command: what runs pytest.
      file: the tests.
      kept: where the answer is kept; beside it, what was printed.
      again: whether to run them if there is an answer.
    """
    if kept.exists() and not again:
        return json.loads(kept.read_text())
    kept.parent.mkdir(parents=True, exist_ok=True)
    report, log = kept.with_suffix(".xml"), kept.with_suffix(".log")
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "-o", "addopts=", f"--junitxml={report}"]
    try:
        with log.open("w") as output:
            done = subprocess.run(
                [*command, *options, str(file)], cwd=kept.parent, stdout=output, stderr=output, timeout=SECONDS
            )
        said = f"pytest ended with {done.returncode}; see {log}"
    except subprocess.TimeoutExpired:
        said = f"did not end in {SECONDS} s"
    found = outcomes(report) if report.exists() else {"the file": ["failed", said]}
    kept.write_text(json.dumps(found, indent=1))
    return found


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


def reason(library: str, test: str, message: str) -> str:
    """Why a test fails here, if that is known."""
    for which, tests, messages, why in EXPLAINED:
        if which == library and re.search(tests, test) and re.search(messages, message):
            return why
    return ""


def compare(
    wheel: str, commands: dict[str, list[str]], folders: dict[str, Path], place: Path, only: str, fresh: bool
) -> dict:
    """Counts of a library's tests here, and those that fail here and pass on JAX.

    Arguments:
      wheel: the library.
      commands: "catena" and "jax" -> the command that runs pytest there.
      folders: likewise -> where the tests are.
      place: where answers are kept.
      only: pattern of files.
      fresh: whether to ask JAX again. It is asked about files in which a test fails here.
    """
    library = wheel.partition("=")[0]
    found = {"passed": 0, "skipped": 0, "fail on both": 0, "fail here": []}
    for file in files(folders["catena"], only):
        name = str(file.relative_to(folders["catena"]))

        def ask(kind: str, again: bool, name: str = name) -> Outcomes:
            kept = place / "tests" / wheel / kind / name.replace("/", ".").replace(".py", ".json")
            return run(commands[kind], folders[kind] / name, kept, again)

        ours = ask("catena", True)
        counts = {
            kind: sum(outcome == kind for outcome, _ in ours.values()) for kind in ("passed", "skipped", "failed")
        }
        theirs = ask("jax", fresh) if counts["failed"] else {}
        expected = {test for test, (outcome, _) in theirs.items() if outcome == "passed"}
        whole = next((said for said in ours.values() if len(ours) == 1 and said[0] == "failed"), None)
        bad = expected if whole else {test for test in expected if ours.get(test, [""])[0] == "failed"}
        for test in sorted(bad):
            message = ours.get(test, whole)[1]
            first = (message.strip().splitlines() or ["no message"])[0][:200]
            found["fail here"].append((f"{name}::{test}", first, reason(library, f"{name}::{test}", message)))
        found["passed"] += counts["passed"]
        found["skipped"] += counts["skipped"]
        found["fail on both"] += 0 if whole and bad else counts["failed"] - len(bad)
        print(f"  {name}: {counts['passed']} passed, {len(bad)} fail here only, {counts['failed']} fail", flush=True)
    return found
