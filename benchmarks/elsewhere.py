"""The tests on other machines than this one: other Pythons and dependencies, or other processors, on one thread.

    python benchmarks/elsewhere.py pythons                 # every Python from 3.11 on, newest and oldest dependencies
    python benchmarks/elsewhere.py machines                # libraries set to older processors, one thread, other hashes
    python benchmarks/elsewhere.py pythons --only 3.13 -- tests/test_tiny.py    # what follows -- goes to pytest

Environments are made under ``build/pythons`` and used again. A run that fails leaves its output beside them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "pythons"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LEAST = tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))


@dataclass
class Run:
    """The tests, by one Python in one environment."""

    name: str
    python: str
    variables: dict[str, str] = field(default_factory=dict)
    busy: int = 0  # processes that keep the machine busy meanwhile

    def __call__(self, arguments: list[str]) -> bool:
        """Whether all tests passed."""
        log = PLACE / f"{re.sub('[^a-z0-9.]+', '-', self.name.lower())}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        print(f"{self.name}: see {log.relative_to(ROOT)}", flush=True)
        company = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.busy)]
        try:
            with log.open("w") as file:
                command = [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
                done = subprocess.run(command, cwd=ROOT, env=os.environ | self.variables, stdout=file, stderr=file)
        finally:
            for process in company:
                process.kill()
        print(f"  {last_line(log)}", flush=True)
        return done.returncode == 0


def last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


# ------------------------------------------------------------------------------------------------------------
# Pythons

FACTS = """
import json, struct, sys
print(json.dumps([sys.version_info[:3], sys.implementation.name, object.__basicsize__, struct.calcsize("P")]))
"""


def interpreters() -> dict[tuple, str]:
    """The newest Python of each release that catena can run on: those on the path, of pyenv and of uv."""
    folders = [Path(p) for p in os.environ["PATH"].split(os.pathsep)] + [Path("/usr/bin"), Path("/usr/local/bin")]
    folders += Path.home().glob(".pyenv/versions/*/bin")
    folders += Path.home().glob(".local/share/uv/python/*/bin")
    found: dict[tuple, tuple] = {}
    for python in {
        p for folder in folders for p in folder.glob("python3*") if re.fullmatch(r"python3(\.\d+)?", p.name)
    }:
        facts = subprocess.run([python, "-c", FACTS], capture_output=True, text=True)
        if facts.returncode:
            continue  # pyenv's stand-in for a version that is not chosen
        version, kind, head, pointer = json.loads(facts.stdout)
        if tuple(version) >= LEAST and (kind, head, pointer) == ("cpython", 16, 8):  # see runtime/layout.py
            found[tuple(version[:2])] = max(found.get(tuple(version[:2]), ()), (tuple(version), str(python)))
    return {release: python for release, (_, python) in sorted(found.items())}


def oldest(requirements: list[str]) -> list[str]:
    """Exactly the least versions that are admitted."""
    return [requirement.replace(">=", "==") for requirement in requirements]


def environment(name: str, python: str, requirements: list[str]) -> str:
    """The Python of an environment with the package and these requirements."""
    folder = PLACE / name
    own = str(folder / "bin" / "python")
    if not folder.exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    install = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([*install, "--upgrade-strategy", "eager", "--editable", str(ROOT), *requirements], check=True)
    return own


def on_pythons(only: str) -> list[Run]:
    """The tests by every Python with the newest dependencies, by the first also with the oldest."""
    tools, demo = (PROJECT["optional-dependencies"][extra] for extra in ("test", "demo"))
    runs = []
    found = interpreters()
    for release, python in found.items():
        kinds = {"newest": [*tools, *demo]}
        if release == min(found):
            kinds["oldest"] = [*oldest(PROJECT["dependencies"]), *oldest(tools), *demo]
        for kind, requirements in kinds.items():
            name = f"{'.'.join(map(str, release))}-{kind}"
            if only in name:
                runs.append(Run(name, environment(name, python, requirements)))
    return runs


# ------------------------------------------------------------------------------------------------------------
# Processors

QUIET = {"CATENA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
DISPATCHED = """
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
print(*[name for name in __cpu_dispatch__ if __cpu_features__[name]])
"""


def dispatched() -> list[str]:
    """What of this processor NumPy chooses code by, beyond what it always needs."""
    return subprocess.run([sys.executable, "-c", DISPATCHED], capture_output=True, text=True, check=True).stdout.split()


def on_machines(only: str) -> list[Run]:
    """The tests by this Python, its libraries set to older processors; and on busy cores."""
    features = dispatched()
    wide = [name for name in features if name.startswith("AVX512") or name == "X86_V4"]
    settings = {
        "oldest processor": ("Nehalem", features, "1"),
        "AVX2": ("Haswell", wide, "2"),
    }
    if wide:
        settings["AVX-512 of another maker"] = ("SkylakeX", [], "3")
    if not any(name.startswith(("AVX", "X86")) for name in features):
        settings = {"oldest processor": ("ARMV8", features, "1")}
    runs = []
    for name, (core, disabled, seed) in settings.items():
        variables = {"OPENBLAS_CORETYPE": core, "NPY_DISABLE_CPU_FEATURES": " ".join(disabled), "PYTHONHASHSEED": seed}
        runs.append(Run(name, sys.executable, QUIET | variables))
    runs.append(Run("under load", sys.executable, {"PYTHONHASHSEED": "4"}, busy=2 * (os.cpu_count() or 1)))
    return [run for run in runs if only in run.name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("where", choices=["pythons", "machines"])
    parser.add_argument("--only", default="", help="runs whose name has this text")
    parser.epilog = "What follows -- goes to pytest; by default -n 2."
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, arguments = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1 :]
    runs = (on_pythons if options.where == "pythons" else on_machines)(options.only)
    failed = [run.name for run in runs if not run(arguments or ["-n", "2"])]
    print(f"{len(runs) - len(failed)} of {len(runs)} runs passed{': not ' + ', '.join(failed) if failed else ''}")
    sys.exit(bool(failed) or not runs)


if __name__ == "__main__":
    main()
