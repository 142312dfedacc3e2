"""Libraries written for JAX, from their released wheels, on JAX and on catena: the same results, and what they cost.

    python benchmarks/ecosystem.py                # an example for every library, on both
    python benchmarks/ecosystem.py --only optax
    python benchmarks/ecosystem.py --tests        # the tests that they carry, on both
    python benchmarks/ecosystem.py --only no-library --write    # docs/ecosystem.md, from what was found last of each
    python benchmarks/ecosystem.py --tests --only optax --files losses    # some of these alone
    python benchmarks/ecosystem.py --tests --only distrax --left    # those that were not run to their end yet
    python benchmarks/ecosystem.py --tests --only numpyro --share 2/24    # every 24th, from the second on

`make clients` calls this. It makes two environments under ``build/clients``: one with JAX, one without. Both get the
same wheels, without what these say that they need, and that by name below. The examples are in ``clients/``, one or
two for a library; each returns a step and its state, so that the first result, a step and the memory can be measured.
What is found is kept in ``ecosystem.json``, from which ``ecosystem_page.py`` writes the page.
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
from ecosystem_page import cells, counted, page, reasons
from ecosystem_tests import TESTS, Limits, compare, folder_of, names_of

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "clients"
KEPT = ROOT / "benchmarks" / "ecosystem.json"
PAGE = ROOT / "docs" / "ecosystem.md"
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
    "ott-jax==0.6.0": "ott_transport",
    "jaxlie==1.5.0": "jaxlie_poses",
    "jax-md==0.2.29": "jax_md_fluid",
    "pgx==2.6.0": "pgx_games",
    "folx==0.2.30": "folx_laplacian",
    "dynamiqs==0.3.7": "dynamiqs_cavity",
    "s2fft==1.5.0": "s2fft_sphere",
    "penzai==0.2.5": "penzai_mlp",
    "keras==3.15.1": "keras_net",
    "dynamax==1.0.3": "dynamax_states",
    "distreqx==0.0.3": "distreqx_densities",
    "qpax==0.1.4": "qpax_portfolio",
    "exponax==0.2.0": "exponax_burgers",
    "aqtp==0.9.0": "aqt_products",
    "qwix==0.1.8": "qwix_models",
    "asdex==0.5.1": "asdex_jacobian",
    "cuthbert==0.1.1": "cuthbert_filter",
    "fmmax==1.7.1": "fmmax_layers",
    # These have tests and no example.
    "dm-pix==0.4.5": "",
    "flashbax==0.1.3": "",
    "jmp==0.0.4": "",
    "jraph==0.0.6.dev0": "",
    "paramax==0.0.5": "",
    "tree-math==0.2.1": "",
}
# What these import besides JAX. pytest 9's `approx` asks arrays for `flat`, which JAX's do not have.
BESIDES = (
    "absl-py typing_extensions wadler-lindig msgpack rich multipledispatch tqdm fastprogress toolz PyYAML treescope "
    "tabulate pytest<9 pytest-xdist six decorator cloudpickle gast dm-tree dm-env tensorstore aiofiles psutil "
    "humanize simplejson scikit-learn dill etils[epath,epy] matplotlib seaborn gymnasium dotmap "
    "prometheus-client protobuf plum-dispatch beartype packaging flask flask-cors jinja2 ml-collections pillow "
    "tensorboardx trimesh mujoco imageio tifffile pyabel sympy attrs svgwrite ordered-set cmap qutip ipython "
    "namex h5py optree ihoop numba"
).split()
# The same, where they would bring JAX along.
WITHOUT_NEEDS = "tfp-nightly jaxkd jaxctx mujoco-mjx cuthbertlib==0.1.1".split()


def environment(kind: str) -> Path:
    """The Python of an environment with every library, and with JAX or with catena; what it lacks is installed."""
    folder = PLACE / kind
    python, made = folder / "bin" / "python", folder / "made.json"
    there = json.loads(made.read_text()) if made.exists() else []
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not there:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([*install, *([JAX] if kind == "jax" else ["--editable", str(ROOT)])], check=True)
    for names, options in ((BESIDES, []), ([*WITHOUT_NEEDS, *LIBRARIES], ["--no-deps"])):
        lacking = [name for name in names if name not in there]
        if lacking:
            subprocess.run([*install, *options, *lacking], check=True)
            there += lacking
    made.write_text(json.dumps(there))
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


def tests(wheel: str, options: argparse.Namespace) -> None:
    """What a library's own tests say on catena and on JAX, file by file."""
    environments = {kind: environment(kind).parent.parent for kind in ("catena", "jax")}
    sites = {kind: next(folder.glob("lib/python*/site-packages")) for kind, folder in environments.items()}
    folders = {kind: folder_of(wheel, site, PLACE, download) for kind, site in sites.items()}
    commands = {kind: command(kind, "pytest") for kind in sites}
    names = names_of(folders["catena"])
    before = known()["tests"].get(wheel, {"files": {}})
    files = {name: said for name, said in before["files"].items() if name in names}

    def wanted(name: str) -> bool:
        done = name in files and not files[name].keys() & {"late", "share"}
        return bool(re.search(options.files, name)) and not (options.left and done)

    found = before | {"of": len(names), "files": files}
    for name, said in compare(wheel, commands, folders, PLACE, wanted, Limits(options.share, options.seconds)):
        files[name] = said
        for test, message in said["here"]:
            print(f"    {test}: {message.splitlines()[0] if message else 'no message'}")
        keep("tests", wheel, found)
    print(f"| {' | '.join(counted(wheel, found))} |")
    print(*reasons(wheel, found), sep="\n")


def known() -> dict:
    """What was found so far: "examples" -> example -> what; "tests" -> library -> "files" -> file -> what."""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {"examples": {}, "tests": {}}


def keep(kind: str, name: str, found: dict) -> None:
    """Keep what was found, a file of tests a line, in the order of the libraries."""
    kept = known()
    kept[kind][name] = found
    libraries = []
    for wheel in filter(kept["tests"].__contains__, LIBRARIES):
        rest = dict(kept["tests"][wheel])
        files = [f"    {json.dumps(file)}: {json.dumps(said)}" for file, said in sorted(rest.pop("files").items())]
        text = f'  {json.dumps(wheel)}: {json.dumps(rest)[:-1]}, "files": {{'
        libraries.append("\n".join([text, *[",\n".join(files)] * bool(files), "  }}"]))
    names = [example for examples in LIBRARIES.values() for example in examples.split()]
    examples = [f"  {json.dumps(n)}: {json.dumps(kept['examples'][n])}" for n in names if n in kept["examples"]]
    parts = ",\n".join(examples), ",\n".join(libraries)
    KEPT.write_text('{{"examples": {{\n{}\n}},\n"tests": {{\n{}\n}}}}\n'.format(*parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="libraries whose name has this text")
    parser.add_argument("--tests", action="store_true", help="the tests that libraries carry, not the examples")
    parser.add_argument("--files", default="", help="only tests in files whose path has this pattern")
    parser.add_argument("--left", action="store_true", help="only files of tests that were not run to their end yet")
    parser.add_argument(
        "--share", default="", help="only a share of each file's tests: 2/24 is every 24th from the second"
    )
    parser.add_argument("--seconds", type=float, default=600, help="that a file of tests may take; what ran counts")
    parser.add_argument("--write", action="store_true", help="write docs/ecosystem.md from what was found last of each")
    options = parser.parse_args()
    bad = False
    for wheel, examples in LIBRARIES.items():
        if options.only not in wheel:
            continue
        if options.tests and carries(wheel):
            tests(wheel, options)
        for example in () if options.tests else examples.split():
            found = row(wheel, example)
            bad |= "problem" in found or not found["equal"]
            print(f"| {' | '.join(cells(found))} |", flush=True)
            keep("examples", example, found)
    if options.write:
        PAGE.write_text(document())
    sys.exit(bad)


def document() -> str:
    """The text of docs/ecosystem.md, from what is kept."""
    return page(known(), LIBRARIES, [wheel.partition("=")[0] for wheel in LIBRARIES if not carries(wheel)])


def carries(wheel: str) -> bool:
    return wheel.partition("=")[0] in TESTS


if __name__ == "__main__":
    main()
