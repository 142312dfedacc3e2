"""Libraries written for JAX, from their released wheels, on JAX and on catena: the same results, and what they cost.

    python benchmarks/ecosystem.py                # every library; writes docs/ecosystem.md with --write
    python benchmarks/ecosystem.py --only optax
    python benchmarks/ecosystem.py --tests        # also the tests that are in the wheels, on both

`make clients` calls this. It makes two environments under ``build/clients``: one with JAX, one without. Both get the
same wheels, without what these say that they need, and that by name below. The examples are in ``clients/``, one for
a library; each returns a step and its state, so that the first result, a step and the memory can be measured.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "clients"
JAX = "jax==0.10.2"

# Wheel -> its example. What is pinned: the newest release asks for a newer JAX than that whose API this is.
LIBRARIES = {
    "optax==0.2.8": "optax_fit",
    "equinox==0.13.8": "equinox_mlp",
    "flax==0.11.2": "flax_linen",
    "diffrax==0.7.2": "diffrax_ode",
    "numpyro==0.22.0": "numpyro_nuts",
    "blackjax==1.7.1": "blackjax_hmc",
    "jaxtyping==0.3.11": "jaxtyping_shapes",
    "lineax==0.1.1": "lineax_solves",
    "optimistix==0.1.0": "optimistix_roots",
    "distrax==0.1.9": "distrax_densities",
    "dm-haiku==0.0.17": "haiku_net",
    "jaxopt==0.8.5": "jaxopt_fits",
    "einops==0.8.2": "einops_layers",
    "chex": "chex_checks",
}
# What these import besides JAX.
BESIDES = (
    "absl-py typing_extensions wadler-lindig msgpack rich multipledispatch tqdm fastprogress toolz PyYAML treescope "
    "tabulate jmp pytest pytest-xdist"
).split()
# Tests in the wheels: library -> where.
TESTS = {"optax": "optax", "einops": "einops/tests", "dm-haiku": "haiku", "distrax": "distrax"}


def environment(kind: str) -> Path:
    """The Python of an environment with every library, and with JAX or with catena."""
    folder = PLACE / kind
    python = folder / "bin" / "python"
    wanted = json.dumps([JAX, *BESIDES, *LIBRARIES])
    made = folder / "made.json"
    if not made.exists() or made.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        base = [JAX] if kind == "jax" else ["--editable", str(ROOT)]
        subprocess.run([*install, *base, *BESIDES], check=True)
        subprocess.run([*install, "--no-deps", *LIBRARIES], check=True)
        made.write_text(wanted)
    return python


def command(kind: str, *module: str) -> list[str]:
    python = str(environment(kind))
    return [python, "-m", *module] if kind == "jax" else [python, "-m", "catena", "run", "-m", *module]


def measure(kind: str, example: str) -> dict:
    """What the worker prints of an example, or under ``error`` how it ended."""
    done = subprocess.run(
        command(kind, "clients", example),
        cwd=ROOT / "benchmarks",
        capture_output=True,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )
    if done.returncode:
        lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
        errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Warning|Exit)\b", line)]
        return {"error": (errors or lines or ["no output"])[-1][:200]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def difference(ours: list, theirs: list) -> float:
    """The greatest difference of two results, relative to their size."""
    a, b = (np.asarray(x, np.float64) for x in (ours, theirs))
    if a.shape != b.shape:
        return math.inf
    size = np.max(np.abs(b), initial=0.0) or 1.0
    return (
        float(np.max(np.abs(a - b), initial=0.0) / size) if np.isfinite(a).all() == np.isfinite(b).all() else math.inf
    )


def row(wheel: str, example: str) -> dict:
    """An example under both: whether it runs, whether it gives the same, and ratios (JAX's figure by ours)."""
    ours, theirs = measure("catena", example), measure("jax", example)
    found = {"library": wheel, "example": example}
    for name, result in (("catena", ours), ("jax", theirs)):
        if "error" in result:
            return found | {"problem": f"{name}: {result['error']}"}
    apart = difference(ours["results"], theirs["results"])
    ratios = {key: theirs[key] / ours[key] for key in ("first", "step", "memory")}
    return found | {"apart": apart, "equal": apart <= theirs["tolerance"], "tolerance": theirs["tolerance"]} | ratios


def tests(wheel: str) -> str:
    """What the tests in a wheel say on catena and on JAX."""
    library = wheel.partition("=")[0]
    if library not in TESTS:
        return ""
    said = []
    for kind in ("catena", "jax"):
        folder = next((PLACE / kind).glob("lib/python*/site-packages")) / TESTS[library]
        files = [str(path) for path in sorted(folder.rglob("*_test.py")) + sorted(folder.rglob("test_*.py"))]
        done = subprocess.run(
            command(kind, "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-W", "ignore", *files),
            capture_output=True,
            text=True,
        )
        (PLACE / f"{library}-{kind}.log").write_text(done.stdout + done.stderr)
        said.append(f"{kind}: {(done.stdout.strip().splitlines() or ['no output'])[-1]}")
    return "; ".join(said)


def line(found: dict) -> str:
    if "problem" in found:
        cells = f"does not run: {found['problem']} | | | | {found.get('tests', '')}"
        return f"| {found['library']} | {found['example']} | {cells} |"
    equal = f"equal to {found['apart']:.0e}" if found["equal"] else f"**differs**: {found['apart']:.0e}"
    ratios = " | ".join(f"{found[key]:.1f}x" for key in ("first", "step", "memory"))
    return f"| {found['library']} | {found['example']} | {equal} | {ratios} | {found.get('tests', '')} |"


HEAD = """# Libraries written for JAX

Written by `make clients`: released wheels, unchanged, on JAX 0.10.2 and on catena (`python -m catena run`). Ratios are
JAX's figure by ours, so above 1 catena is quicker or smaller: the time from the start of the process to the first
result, the least time of a step, the peak memory of the process. An example's results are compared over ten steps.

| library | example | results | first result | step | memory | tests in the wheel |
|---|---|---|---|---|---|---|
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="libraries whose name has this text")
    parser.add_argument("--tests", action="store_true", help="also run the tests in the wheels")
    parser.add_argument("--write", action="store_true", help="write docs/ecosystem.md")
    options = parser.parse_args()
    rows = []
    for wheel, example in LIBRARIES.items():
        if options.only in wheel:
            found = row(wheel, example)
            if options.tests:
                found["tests"] = tests(wheel)
            rows.append(found)
            print(line(found), flush=True)
    measured = [found for found in rows if "problem" not in found]
    for key in ("first", "step", "memory"):
        if measured:
            mean = math.exp(sum(math.log(found[key]) for found in measured) / len(measured))
            print(f"{key}: geometric mean {mean:.2f}x, least {min(found[key] for found in measured):.2f}x")
    if options.write:
        (ROOT / "docs" / "ecosystem.md").write_text(HEAD + "\n".join(map(line, rows)) + "\n")
    sys.exit(any("problem" in found or not found["equal"] for found in rows))


if __name__ == "__main__":
    main()
