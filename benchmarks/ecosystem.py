"""Libraries written for JAX, from their released wheels, on JAX and on catena: the same results, and what they cost.

    python benchmarks/ecosystem.py                # an example for every library, on both
    python benchmarks/ecosystem.py --only optax
    python benchmarks/ecosystem.py --tests        # the tests that they carry, on both
    python benchmarks/ecosystem.py --only no-library --write    # docs/ecosystem.md, from what was found last of each
    python benchmarks/ecosystem.py --only optax --files losses    # some of these alone

`make clients` calls this. It makes two environments under ``build/clients``: one with JAX, one without. Both get the
same wheels, without what these say that they need, and that by name below. The examples are in ``clients/``, one or
two for a library; each returns a step and its state, so that the first result, a step and the memory can be measured.
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
from ecosystem_tests import TESTS, compare, folder_of

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "clients"
JAX = "jax==0.10.2"

# Wheel -> its examples. What is pinned: the newest release asks for a newer JAX than that whose API this is.
LIBRARIES = {
    "optax==0.2.8": "optax_fit",
    "equinox==0.13.8": "equinox_mlp",
    "flax==0.12.8": "flax_linen flax_nnx",
    "diffrax==0.7.2": "diffrax_ode",
    "numpyro==0.22.0": "numpyro_nuts numpyro_svi",
    "blackjax==1.7.1": "blackjax_hmc",
    "jaxtyping==0.3.11": "jaxtyping_shapes",
    "lineax==0.1.1": "lineax_solves",
    "optimistix==0.1.0": "optimistix_roots",
    "distrax==0.1.9": "distrax_densities",
    "dm-haiku==0.0.17": "haiku_net",
    "jaxopt==0.8.5": "jaxopt_fits",
    "einops==0.8.2": "einops_layers",
    "chex": "chex_checks",
    "evosax==0.3.2": "evosax_search",
    "flowjax==19.1.2": "flowjax_density",
    "gymnax==1.0.1": "gymnax_rollout",
    "interpax==0.3.16": "interpax_splines",
    "mctx==0.0.71": "mctx_search",
    "quadax==0.3.1": "quadax_integrals",
    "rlax==0.1.9": "rlax_losses",
    "tinygp==0.3.1": "tinygp_regression",
    "brax==0.14.2": "brax_pendulum",
    "e3nn-jax==0.21.0": "e3nn_layers",
    "jaxns==3.0.0": "jaxns_evidence",
    "quax==0.4.6": "quax_units",
    "orbax-checkpoint": "orbax_checkpoint",
    "scico==0.0.7": "scico_denoise",
}
# What these import besides JAX. pytest 9's `approx` asks arrays for `flat`, which JAX's do not have.
BESIDES = (
    "absl-py typing_extensions wadler-lindig msgpack rich multipledispatch tqdm fastprogress toolz PyYAML treescope "
    "tabulate jmp pytest<9 pytest-xdist six decorator cloudpickle gast dm-tree dm-env tensorstore aiofiles psutil "
    "humanize simplejson scikit-learn dill etils[epath,epy] matplotlib seaborn gymnasium dotmap "
    "prometheus-client protobuf plum-dispatch beartype packaging flask flask-cors jinja2 ml-collections pillow "
    "tensorboardx trimesh mujoco imageio tifffile pyabel sympy attrs"
).split()
# The same, where they would bring JAX along.
WITHOUT_NEEDS = "tfp-nightly paramax jaxkd jaxctx mujoco-mjx".split()


def environment(kind: str) -> Path:
    """The Python of an environment with every library, and with JAX or with catena."""
    folder = PLACE / kind
    python = folder / "bin" / "python"
    wanted = [JAX, *BESIDES, *WITHOUT_NEEDS, *LIBRARIES]
    made = folder / "made.json"
    if not made.exists() or not set(wanted) <= set(json.loads(made.read_text())):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        base = [JAX] if kind == "jax" else ["--editable", str(ROOT)]
        subprocess.run([*install, *base, *BESIDES], check=True)
        subprocess.run([*install, "--no-deps", *WITHOUT_NEEDS, *LIBRARIES], check=True)
        made.write_text(json.dumps(wanted))
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


def download(wheel: str, folder: Path) -> None:
    """Fetch the source distribution of a library."""
    fetch = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([environment("jax"), *fetch, "--dest", folder, wheel], check=True)


def tests(wheel: str, only: str) -> dict | None:
    """What a library's own tests say on catena and on JAX; None where it carries none."""
    if wheel.partition("=")[0] not in TESTS:
        return None
    sites = {kind: next((PLACE / kind).glob("lib/python*/site-packages")) for kind in ("catena", "jax")}
    folders = {kind: folder_of(wheel, site, PLACE, download) for kind, site in sites.items()}
    commands = {kind: command(kind, "pytest") for kind in sites}
    return compare(wheel, commands, folders, PLACE, only)


def cells(found: dict) -> list[str]:
    """The row of the table for what was found of a library."""
    wheel = [found["library"], found["example"]]
    said = [tests_cell(found)]
    if "problem" in found:
        return [*wheel, f"does not run: {found['problem']}", "", "", "", *said]
    if "equal" not in found:
        return [*wheel, "", "", "", "", *said]
    equal = f"equal to {found['apart']:.0e}" if found["equal"] else f"**differs**: {found['apart']:.0e}"
    return [*wheel, equal, *(f"{found[key]:.1f}x" for key in ("first", "step", "memory")), *said]


def tests_cell(found: dict) -> str:
    said = found.get("tests")
    if not said:
        if not LIBRARIES[found["library"]].startswith(found["example"]):
            return ""
        return "carries none" if found["library"].partition("=")[0] not in TESTS else ""
    failed = len(said["fail here"])
    here = f"[{failed} fail here](#tests)" if failed else "0 fail here"
    return f"{said['passed']} pass, {here}, {said['fail on both']} on both"


HEAD = """# Libraries written for JAX

Written by `make clients WRITE=1` (examples) and `make clients TESTS=1 WRITE=1` (tests): released wheels, unchanged, on
JAX 0.10.2 and on catena (`python -m catena run`). Ratios are JAX's figure by ours, so above 1 catena is quicker or
smaller: the time from the start of the process to the first result, the least time of a step, the peak memory of the
process. An example's results are compared over ten steps. Tests are those in the wheel or the source distribution,
counted on catena; JAX is asked about those that fail. Equinox, lineax, optimistix, diffrax and jaxtyping carry none:
tinygp, quadax and flowjax, which are built on them, are there for their tests.

| library | example | results | first result | step | memory | its tests |
|---|---|---|---|---|---|---|
"""
COSTS = """
Where a step is no quicker, it is Python around a small program: two thirds of a step of equinox and quax are
`filter_jit`, which takes the module apart and puts it together on every call (trees are taken apart in Python here, in
C++ in JAX); in a step of jaxns it is a tree of its own kind of dictionary; one of orbax writes and reads files.
"""
TESTS_HEAD = """
## Tests

Tests that fail here and pass on JAX, and why.

"""


def page(rows: list[dict]) -> str:
    """The text of docs/ecosystem.md."""
    table = "\n".join(f"| {' | '.join(cells(found))} |" for found in rows)
    failures = "".join(f"- {line}\n" for found in rows for line in reasons(found))
    return f"{HEAD}{table}\n\n{means(rows)}\n{COSTS}" + (TESTS_HEAD + failures if failures else "")


def reasons(found: dict) -> list[str]:
    """Why tests fail here that pass on JAX: a line for each reason, with the first test and how many there are."""
    why_of: dict[str, list[str]] = {}
    for test, message, why in (found.get("tests") or {"fail here": []})["fail here"]:
        said = why or f"`{re.sub('0x[0-9a-f]+|/[^ ]*/', '', message).replace('`', '')}`"
        why_of.setdefault(said, []).append(test)
    return [
        f"{found['library']}, `{tests[0]}`{f' and {len(tests) - 1} more' if tests[1:] else ''}: {why}"
        for why, tests in why_of.items()
    ]


def means(rows: list[dict]) -> str:
    measured = [found for found in rows if "first" in found]
    said = []
    for key, what in (("first", "first result"), ("step", "step"), ("memory", "memory")):
        if measured:
            mean = math.exp(sum(math.log(found[key]) for found in measured) / len(measured))
            said.append(f"{what} {mean:.2f}x, least {min(found[key] for found in measured):.2f}x")
    return f"Geometric means: {'; '.join(said)}." if said else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="libraries whose name has this text")
    parser.add_argument("--tests", action="store_true", help="the tests that libraries carry, not the examples")
    parser.add_argument("--files", default="", help="only tests in files whose path has this pattern; nothing is kept")
    parser.add_argument("--write", action="store_true", help="write docs/ecosystem.md from what was found last of each")
    options = parser.parse_args()
    kept = PLACE / "found.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    asked = [
        (wheel, example)
        for wheel, examples in LIBRARIES.items()
        if options.only in wheel
        for example in examples.split()
    ]
    for wheel, example in asked:
        found = known.get(example, {}) | {"library": wheel, "example": example}
        if not (options.tests or options.files):
            found = {"tests": found.get("tests")} | row(wheel, example)
        first = LIBRARIES[wheel].startswith(example)  # whose row has what the tests say
        if first and (options.tests or options.files):
            said = found["tests"] = tests(wheel, options.files)
            for failure in said["fail here"] if said else ():
                print("   ", ": ".join(filter(None, failure)))
        print(f"| {' | '.join(cells(found))} |", flush=True)
        if not options.files:
            known[example] = found
            kept.write_text(json.dumps(known, indent=1))
    rows = [known[example] for examples in LIBRARIES.values() for example in examples.split() if example in known]
    print(means(rows))
    if options.write:
        (ROOT / "docs" / "ecosystem.md").write_text(page(rows))
    run = {example for _, example in asked}
    bad = [found for found in rows if found["example"] in run and ("problem" in found or not found.get("equal", True))]
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
