"""307 recorded misuses, replayed: the type of each error is JAX's, and its message says the name, what was expected,
what came, and the user's line.

    python benchmarks/misuses.py                    # the counts, and what falls short
    python benchmarks/misuses.py --show             # every message, to be read as by somebody who made the mistake
    python benchmarks/misuses.py --only scan

The programs stand in ``misuses.txt``; what JAX 0.10.2 did with them in ``../shared/api/error_messages.json``.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import linecache
import logging
import re
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.traceback import user_frames

HERE = Path(__file__).resolve().parent
RECORDED = HERE.parents[1] / "shared" / "api" / "error_messages.json"

# Where another type, or no error, is right, and why; docs/differences.md says so, too.
EXPLAINED = {
    "`x.foo = 1`": "an attribute that nobody reads is refused: a name mistyped, mostly, and 16 bytes for every array",
    "`jax.random.poisson` with rbg key": "drawn with every generator",
    "reverse-mode through while_loop": "differentiated",
    "fori_loop with traced trip under jit: grad": "differentiated",
    "jvp of custom_vjp function": "differentiated: the backward rule is linear, and is transposed",
    '`config.update("jax_enable_x64","maybe")`': "a bool that is none is refused; JAX takes it for true",
    "transfer_guard disallow (implicit host array)": "arrays of NumPy are read where they are: nothing is transferred",
    "jax.Array()": "refused; JAX returns an array that fails when it is used",
}

# Where a misuse that is no error has another value than the recorded one, and why.
OTHER_VALUES = {
    "`jnp.linalg.solve` singular": "the last pivot is a zero or not, by the rounding of LAPACK on a machine",
    "`jax.random.clone` under debug_key_reuse": "the recorded program drew from another key",
    "`grad(allow_int=True)` of int input": "NumPy's words for an array of float0",
    "fori_loop float bounds": "an array, as where the body computes; JAX hands the Python number back",
    "`np.ones(2) + jnp.ones(2)` type": "the class has no other name: Array",
}


class Misuse(NamedTuple):
    """A program that goes wrong, and what its message must say."""

    name: str
    code: str
    words: tuple[str, ...]


class Outcome(NamedTuple):
    """What became of it: the error's classes, or the printed value; message; is the user's line the last; warnings."""

    classes: tuple[str, ...]
    value: str | None
    message: str
    line: bool
    warned: tuple[str, ...]


class Text(str):
    """Text that is shown as it is."""

    __repr__ = str.__str__


def read_misuses() -> list[Misuse]:
    """The programs of ``misuses.txt``."""
    found = []
    for block in re.split(r"\n\n(?=# )", (HERE / "misuses.txt").read_text().strip())[1:]:
        head, *lines = block.splitlines()
        words = [line for line in lines if line.startswith("> ")]
        code = "\n".join(line for line in lines if not line.startswith("> "))
        found.append(Misuse(head.removeprefix("# "), code, tuple(words[0][2:].split(" & ")) if words else ()))
    return found


def surroundings() -> dict:
    """The names that the programs use."""
    key = jax.random.key(0)
    return {
        "jax": jax, "jnp": jnp, "lax": lax, "np": np, "Text": Text, "__name__": "__main__",
        "A": jnp.arange(3.0), "ONES": jnp.ones(2), "INTS": jnp.arange(3), "KEY": key, "KEYS": jax.random.split(key),
    }  # fmt: skip


def replay(misuse: Misuse) -> Outcome:
    """Run a program, and see what becomes of it."""
    file_name, names = f"<{misuse.name}>", surroundings()
    lines = [line + "\n" for line in misuse.code.splitlines()]
    linecache.cache[file_name] = (len(misuse.code), None, lines, file_name)
    body = ast.parse(misuse.code).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            exec(compile(ast.Module(body, []), file_name, "exec"), names)
            value = eval(compile(ast.Expression(last.value), file_name, "eval"), names) if last is not None else None
        except Exception as error:
            message = "\n".join([str(error), *getattr(error, "__notes__", ())])
            classes = tuple(c.__name__ for c in type(error).__mro__)
            return Outcome(classes, None, message, ends_in(error, file_name), ())
    return Outcome((), repr(value), "", True, tuple(warning.category.__name__ for warning in seen))


def ends_in(error: Exception, file_name: str) -> bool:
    """Whether the last frame that a user is shown is one of this file."""
    frame = user_frames(error.__traceback__)
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and frame.tb_frame.f_code.co_filename == file_name


def same_type(outcome: Outcome, recorded: dict) -> bool:
    """Whether the error has the recorded type, or there is none in both."""
    if "type" not in recorded:
        return not outcome.classes
    return recorded["type"].rpartition(".")[2] in outcome.classes


def same_end(outcome: Outcome, recorded: dict) -> bool:
    """Whether a misuse that is no error has the recorded value, and warns where JAX's warns first."""
    first = [text.split(":")[0].removeprefix("warning ") for text in recorded["warnings"][:1]]
    return outcome.value == recorded["returns"] and list(outcome.warned[:1]) == first


def missing(misuse: Misuse, outcome: Outcome) -> list[str]:
    """What the message does not say."""
    parts = zip(("name", "expected", "got"), misuse.words, strict=False)
    lacking = [part for part, pattern in parts if not re.search(pattern, outcome.message, re.DOTALL)]
    return lacking if outcome.line else [*lacking, "line"]


def judged(misuse: Misuse, outcome: Outcome, recorded: dict) -> tuple[str, str]:
    """How a misuse ended beside the recording, and what is wrong with that, if anything."""
    lacking = missing(misuse, outcome) if outcome.classes else []
    if lacking:
        return "lacking", f"the message lacks {', '.join(lacking)}: {outcome.message[:200]!r}"
    if not same_type(outcome, recorded):
        text = f"{recorded.get('type', 'no error')} in JAX, here {[*outcome.classes, outcome.value][0]}"
        return "refused here" if outcome.classes else "accepted here", "" if misuse.name in EXPLAINED else text
    if outcome.classes:
        return "same error", ""
    if same_end(outcome, recorded):
        return "same value", ""
    text = f"{recorded['returns']}, {recorded['warnings']} in JAX, here {outcome.value}, {outcome.warned}"
    return "other value", "" if misuse.name in OTHER_VALUES else text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a part of the names of cases")
    parser.add_argument("--show", action="store_true", help="print every message")
    parser.add_argument("--recorded", type=Path, default=RECORDED, help="what JAX does (error_messages.json)")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # failing callbacks are logged too
    recorded = {case["case"]: case for case in json.loads(options.recorded.read_text())["cases"]}
    chosen = [misuse for misuse in read_misuses() if options.only in misuse.name]
    ends, wrong = collections.Counter(), 0
    for misuse in chosen:
        outcome = replay(misuse)
        end, trouble = judged(misuse, outcome, recorded[misuse.name])
        ends[end] += 1
        wrong += bool(trouble)
        if options.show and outcome.classes:
            print(f"\n{misuse.name}\n  {misuse.code}\n{outcome.classes[0]}: {outcome.message}")
        if trouble:
            print(f"{misuse.name}: {trouble}")
    errors = ends["same error"] + ends["refused here"]
    print(f"{len(chosen)} misuses: in JAX's type of error end {ends['same error']}, in JAX's value and warning")
    print(f"{ends['same value']}, in another value for a reason {ends['other value']}, in an error here only")
    print(f"{ends['refused here']}, in a result here only {ends['accepted here']}")
    print(f"{errors + ends['lacking']} errors: the message says name, expected, got and line in {errors}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
