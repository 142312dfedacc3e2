"""docs/ecosystem.md, from what `ecosystem.py` found and kept in ``ecosystem.json``, and from what stands here."""

import math
import re

# Patterns of library, of "file::test" and of the message: why a test fails here and is not for catena to mend.
EXPLAINED = [
    ("", "", "dialect must be", "it looks at the program in HLO, XLA's language, which catena does not write"),
    ("flax", "", "whose type has a state", "a variable of hijax's is closed over by what is traced, and refused"),
    ("flax", "test_eval_shape_mutable_array", "", "a variable of hijax's is the result of a function that is traced"),
    ("flax", "test_cache_tracing", "2 != 1", "loops trace a body again that is an object equal to itself alone"),
    ("quax", "test_while_vmap", "", "lanes of a loop are selected in its body here, for which the class has no rule"),
    ("quax", "trace_context", "trace_ctx", "it asks for `jax._src.core.trace_ctx`"),
    (
        "quax",
        "eigvalsh",
        "assert False",
        "an eigenvalue that is 0 is so up to rounding, 6e-7, in both ways to compute it",
    ),
    ("quax", "", "^NotImpl", "the function is made of other operations here, for which the tests' class has no rule"),
    ("quax", "unravel_index", "", "indices that are no integers are refused"),
    ("flax", "summary_test", "", "it knows by heart how many operations XLA counts"),
    ("flax", "fp8_meta_dtype", "", "its dtype says by `jax._src.dtypes`' protocol what it is made of"),
    ("flax", "exclusion_remove_frames", "", "it asks for `jax._src.traceback_util.UnfilteredStackTrace`"),
    (
        "optax",
        "LBFGSTest::test_against_plain_implementation",
        "Not equal to tolerance",
        "fifteen steps that amplify rounding: in double precision both runs are as far off as from each other, 1e-4",
    ),
]
# What is to be known of a library's tests besides.
NOTES = {
    "dm-pix": "5 files import TensorFlow, which neither environment has",
    "e3nn-jax": "`s2grid_test.py` asks for `jax.scipy.special.lpmn_values`, which is here since these were run: of 326 "
    "tests 122 fail on both, about 204 JAX did not answer in time",
    "flashbax": "what fails on both asks for `jax.tree_map`, which has gone from JAX",
    "gymnax": "what fails on both is `test_visualizer.py`",
    "jraph": "what fails on both asks for `jax.lib` and `flax.optim`, which have gone, or reads absl's flags unparsed",
    "quadax": "7 files import `problems.py`, which its source distribution does not have",
    "tinygp": "its tests compare by `jax._src.public_test_util.check_close`, which is in `catena/compat/private.py`",
    "tree-math": "what fails on both asks for `jax.tree_flatten`, which has gone from JAX",
}

HEAD = """# Libraries written for JAX

Written by `make clients WRITE=1` (examples) and `make clients TESTS=1 WRITE=1` (tests) from what these keep in
`benchmarks/ecosystem.json`: released wheels, unchanged, on JAX 0.10.2 and on catena (`python -m catena run`).
Ratios are JAX's figure by ours, so above 1 catena is quicker or smaller: the time from the start of the process to the
first result, the least time of a step, the peak memory of the process. An example's results are compared over ten
steps.

| library | example | results | first result | step | memory |
|---|---|---|---|---|---|
"""
COSTS = """
Where a step is little quicker, it is Python around a small program: two thirds of a step of equinox and quax are
`filter_jit`, which takes the module apart and puts it together on every call (trees are taken apart in Python here, in
C++ in JAX); in a step of jaxns it is a tree of its own kind of dictionary; one of orbax writes and reads files.
"""
TESTS_HEAD = """
## Tests

Those in the wheel or the source distribution, counted on catena; JAX is asked about those that fail. A library whose
row has fewer files than it carries was not run to its end yet. A file that cannot be imported counts as one test.
What has "test" in its name in orbax-checkpoint is helpers.

{none} carry none in their wheels, nor does `TESTS` know of any elsewhere.{unrun}

| library | files | pass | skipped | fail here | fail on both |
|---|---|---|---|---|---|
"""


def page(kept: dict, libraries: dict[str, str], without: list[str]) -> str:
    """The text of docs/ecosystem.md.

    Arguments:
      kept: "examples" -> example -> what was found; "tests" -> library -> "files" -> file -> likewise, and "before":
        what was counted of the library before counts were kept by file.
      libraries: library -> its examples.
      without: the libraries that carry no tests.
    """
    examples = [kept["examples"][e] for names in libraries.values() for e in names.split() if e in kept["examples"]]
    tested = {wheel: kept["tests"][wheel] for wheel in libraries if wheel in kept["tests"]}
    rows = "\n".join(f"| {' | '.join(cells(found))} |" for found in examples)
    counts = "\n".join(f"| {' | '.join(counted(wheel, found))} |" for wheel, found in tested.items())
    unrun = [library(wheel) for wheel in libraries if wheel not in tested and library(wheel) not in without]
    some = f" Those of {listed(unrun)} were not run yet." if unrun else ""
    head = TESTS_HEAD.format(none=listed(without).capitalize(), unrun=some)
    said = "".join(f"- {line}\n" for wheel, found in tested.items() for line in reasons(wheel, found))
    return (
        f"{HEAD}{rows}\n\n{means(examples)}\n{COSTS}{head}{counts}\n\n"
        f"{clean(tested)}\n\nWhat fails here and passes on JAX, and why:\n\n{said}"
    )


def cells(found: dict) -> list[str]:
    """The row of the table for what was found of an example."""
    names = [found["library"], found["example"]]
    if "problem" in found:
        return [*names, f"does not run: {found['problem']}", "", "", ""]
    equal = f"equal to {found['apart']:.0e}" if found["equal"] else f"**differs**: {found['apart']:.0e}"
    return [*names, equal, *(f"{found[key]:.1f}x" for key in ("first", "step", "memory"))]


def means(examples: list[dict]) -> str:
    """Geometric means of the ratios, and the least."""
    measured = [found for found in examples if "first" in found]
    said = []
    for key, what in (("first", "first result"), ("step", "step"), ("memory", "memory")) if measured else ():
        mean = math.exp(sum(math.log(found[key]) for found in measured) / len(measured))
        said.append(f"{what} {mean:.2f}x, least {min(found[key] for found in measured):.2f}x")
    return f"Geometric means: {'; '.join(said)}." if said else ""


def counted(wheel: str, found: dict) -> list[str]:
    """The row of the table for a library's tests."""
    if not whole(found) and "before" in found:
        return [wheel, *(str(found["before"][key]) for key in ("files", "passed", "skipped", "here", "both"))]
    files = found["files"].values()
    shares = sorted({file["share"] for file in files if "share" in file})
    ran = str(found["of"]) if whole(found) else f"{sum('late' not in file for file in files)} of {found['of']}"
    ran += f", {', '.join(shares)} of their tests" if shares else ""
    here = sum(len(file["here"]) for file in files)
    passed, skipped, both = (sum(file[key] for file in files) for key in ("passed", "skipped", "both"))
    return [wheel, ran, *map(str, (passed, skipped, here, both))]


def whole(found: dict) -> bool:
    """Whether all tests of a library ran to their end."""
    files = found["files"].values()
    return 0 < len(files) == found["of"] and not any("late" in file or "share" in file for file in files)


def clean(tested: dict[str, dict]) -> str:
    """Which libraries pass all tests that pass on JAX."""
    names = [library(wheel) for wheel, found in tested.items() if passes(found)]
    return f"Every test that passes on JAX passes here, of {len(names)} libraries: {listed(names)}."


def passes(found: dict) -> bool:
    """Whether all tests of a library ran to their end, and all that pass on JAX pass here."""
    if whole(found):
        return not any(file["here"] for file in found["files"].values())
    return found.get("before", {}).get("whole", False) and not found["before"]["here"]


def listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def reasons(wheel: str, found: dict) -> list[str]:
    """Why tests fail here that pass on JAX: a line for each reason, with the first test and how many there are."""
    name = library(wheel)
    if not whole(found) and "before" in found:
        return [f"{name}: {why}" for why in found["before"]["why"]]
    why_of: dict[str, list[str]] = {}
    for place, said in found["files"].items():
        for test, message in said["here"]:
            why = reason(name, f"{place}::{test}", message) or quoted(message)
            why_of.setdefault(why, []).append(f"{place}::{test}")
    lines = [
        f"{name}, `{tests[0]}`{f' and {len(tests) - 1} more' if tests[1:] else ''}: {why}"
        for why, tests in why_of.items()
    ]
    return [*lines, *([f"{name}: {NOTES[name]}"] if name in NOTES else [])]


def library(wheel: str) -> str:
    """The name of a library without its version."""
    return wheel.partition("=")[0]


def reason(name: str, test: str, message: str) -> str:
    """Why a test fails here, if that is known."""
    for which, tests, messages, why in EXPLAINED:
        if re.search(which, name) and re.search(tests, test) and re.search(messages, message):
            return why
    return ""


def quoted(message: str) -> str:
    """The first line of a message, without addresses and folders."""
    first = (message.splitlines() or ["no message"])[0][:200]
    return f"`{re.sub('0x[0-9a-f]+|/[^ ]*/', '', first).replace('`', '')}`"
