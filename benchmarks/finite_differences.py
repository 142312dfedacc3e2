"""Derivatives of the libraries around the core beside finite differences, by the tables of `make compare-libraries`.

`make compare-slopes` takes each expression of `benchmarks/libraries/` that has an inexact operand, in double precision,
and compares, for each of these operands ``x`` and a random direction ``d`` (in proportion to the operand's sizes, zero
where it is not finite):

- ``jvp(f, x, d)`` with central differences of ``f(x + h * d)``, element by element. Their error is taken from three
  steps, of which each is half of the one before, and from the rounding of `f`; what they leave open (a step across
  the edge of a domain, a jump, a function that is known to few digits) is counted as not determined, and so is a kink,
  where one-sided differences do not meet;
- ``vjp(f, x)`` with ``jvp``: ``sum(w * jvp(d)) == sum(vjp(w) * d)`` for random weights ``w``, where all is finite.

Expressions that name a narrower dtype are left out: it would hide the steps. What differs is printed. Differences of a
table that are meant stand in its ``SLOPES_EXPLAINED = [(pattern, reason)]``, patterns of "OPERAND EXPRESSION".
"""

import argparse
import importlib
import re
import sys
import warnings
import zlib
from dataclasses import dataclass, field

import numpy as np
from differential_libraries import HERE, SCIPY, is_array, used_in

import catena as jax

STEP, EPS = 2.0**-13, np.finfo(float).eps
NARROW = re.compile("float16|float32|complex64|[a-z]int|int[0-9]|'int'|bool")  # what does not see small steps
ENOUGH = 1e-6  # of a slope: what derivatives are known to
ROUNDING = 64  # units in the last place: the error of an evaluation that differences take for granted


@dataclass
class Counts:
    """What became of a table's slopes."""

    slopes: int = 0
    elements: int = 0
    determined: int = 0
    raised: int = 0
    constant: int = 0
    adjoints: int = 0
    differ: int = 0
    explained: dict = field(default_factory=dict)


def wide(x):
    """An operand in double precision."""
    if not is_array(x) or x.dtype.kind in "iub":
        return jax.numpy.asarray(x) if is_array(x) else x
    return jax.numpy.asarray(x, complex if x.dtype.kind == "c" else float)


def inexact_leaves(tree) -> list:
    return [x for x in jax.tree.leaves(tree) if jax.numpy.issubdtype(jax.numpy.result_type(x), np.inexact)]


def numbers(tree) -> np.ndarray:
    """All inexact leaves as one vector of real numbers."""
    leaves = map(np.asarray, inexact_leaves(tree))
    parts = [np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x for x in leaves]
    return np.concatenate([np.zeros(0), *(np.asarray(x, float).ravel() for x in parts)])


def direction(x, rng) -> np.ndarray:
    """In proportion to the sizes of elements; of a Hermitian matrix it is one, as half of it is what is read."""
    x = np.asarray(x)
    size = np.where(np.isfinite(x), np.where(x == 0, 1, np.abs(x)), 0)
    d = rng.normal(size=x.shape)
    d = size * (d + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else d)
    square = x.ndim > 1 and x.shape[-1] == x.shape[-2]
    other = np.swapaxes(x, -1, -2).conj() if square else None
    return (d + np.swapaxes(d, -1, -2).conj()) / 2 if square and np.allclose(x, other) else d


class Differences:
    """Central differences of a function along a direction, and how far they are known."""

    def __init__(self, f, x, d, each: bool):
        middle = numbers(f(x))
        steps = [STEP, STEP / 2, STEP / 4]
        pairs = [(numbers(f(x + h * d)), numbers(f(x - h * d))) for h in steps]
        central = [(up - down) / (2 * h) for (up, down), h in zip(pairs, steps)]
        bends = [abs(up + down - 2 * middle) / h for (up, down), h in zip(pairs, steps)]
        size = np.max([abs(middle), *(abs(part) for pair in pairs for part in pair)], axis=0)
        self.slope = (4 * central[2] - central[1]) / 3
        self.noise = ROUNDING * EPS * size / steps[2]
        self.error = 2 * np.maximum(abs(central[0] - central[1]), abs(central[1] - central[2])) + self.noise
        if not each:  # what is computed together is rounded together
            self.error += 1e-12 * abs(self.slope).max(initial=0, where=np.isfinite(self.slope))
        self.kink = (bends[2] > 0.75 * bends[0]) & (bends[0] > self.noise)

    def beside(self, slope) -> tuple[np.ndarray, np.ndarray]:
        """For each element: whether differences determine the slope, and whether it is another one."""
        greatest = np.maximum(abs(slope), abs(self.slope))
        allowed = ENOUGH * greatest + self.error
        least = np.where(np.isfinite(slope), 1e-9, 0)  # else differences must show that there is one
        determined = np.isfinite(self.slope) & ~self.kink & (self.error <= 1e-2 * abs(self.slope) + least)
        return determined, determined & ~(abs(slope - self.slope) <= allowed)


def examine(names: dict, expression: str, key: str, counts: Counts, each: bool) -> str | None:
    """What is wrong with the derivatives of an expression by an operand; whether elements are for themselves."""
    code = compile(expression, "<case>", "eval")
    rng = np.random.default_rng(zlib.crc32(f"{key} {expression}".encode()))
    x = names[key]
    d = direction(x, rng)

    def f(value):
        return inexact_leaves(eval(code, names | {key: value}))

    try:
        value, tangent = jax.jvp(f, (x,), (jax.numpy.asarray(d),))
    except Exception:  # as compare-libraries says beside JAX, for each case
        counts.raised += 1
        return None
    if not sum(np.size(leaf) for leaf in value):
        counts.constant += 1
        return None
    differences = Differences(f, x, d, each)
    slope = numbers(tangent)
    determined, wrong = differences.beside(slope)
    if not np.isfinite(np.asarray(x)).all():  # zero times the slope at infinity may be anything
        wrong &= np.isfinite(slope)
    counts.slopes += 1
    counts.elements += determined.size
    counts.determined += determined.sum()
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        by_steps = f"{differences.slope[i]:.10g} +- {differences.error[i]:.1g}"
        return f"jvp: element {i} is {slope[i]:.10g}, differences {by_steps}"
    if not np.isfinite(slope).all() or not np.isfinite(numbers(value)).all():
        return None
    return adjoint(f, x, d, value, tangent, rng, counts)


def adjoint(f, x, d, value, tangent, rng, counts: Counts) -> str | None:
    """What is wrong with the derivative backward, beside the one forward."""
    weights = [jax.numpy.asarray(random_like(leaf, rng)) for leaf in value]
    try:
        (back,) = jax.vjp(f, x)[1](weights)
    except Exception:  # a loop of unknown length: as compare-libraries says beside JAX
        counts.raised += 1
        return None
    terms = np.concatenate([(np.asarray(w) * np.asarray(t)).real.ravel() for w, t in zip(weights, tangent)])
    other = (np.asarray(back) * d).real.ravel()
    counts.adjoints += 1
    allowed = 1e-7 * (abs(terms).sum() + abs(other[np.isfinite(other)]).sum()) + 1e-14 * norm(weights) * norm([d])
    if abs(terms.sum() - other.sum()) <= allowed:
        return None
    return f"vjp: {other.sum():.10g}, jvp: {terms.sum():.10g}"


def norm(arrays) -> float:
    return float(np.sqrt(sum((abs(np.asarray(x)) ** 2).sum() for x in arrays)))


def random_like(leaf, rng) -> np.ndarray:
    leaf = np.asarray(leaf)
    values = rng.normal(size=leaf.shape)
    return (values + 1j * rng.normal(size=leaf.shape) if leaf.dtype.kind == "c" else values).astype(leaf.dtype)


def table_slopes(name: str, only: str) -> Counts:
    """Examine the slopes of a table, and print what is wrong."""
    table = importlib.import_module(f"libraries.{name}")
    for module in [*(f"scipy.{part}" for part in SCIPY), *getattr(table, "IMPORTS", [])]:
        importlib.import_module(f"catena.{module}")
    operands = {key: make(np.random.default_rng(zlib.crc32(key.encode()))) for key, make in table.OPERANDS.items()}
    inexact = {key for key, x in operands.items() if is_array(x) and x.dtype.kind in "fc"}
    names = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "jsp": jax.scipy, "nn": jax.nn, "np": np}
    names |= {key: wide(x) for key, x in operands.items()}
    cases = [case if isinstance(case, str) else case[0] for case in [*getattr(table, "GRADIENTS", []), *table.CASES]]
    explained, counts = getattr(table, "SLOPES_EXPLAINED", []), Counts()
    for case in dict.fromkeys(cases):
        for key in sorted(used_in(case) & inexact):
            what = f"{name}: {key} {case}"
            if NARROW.search(case) or not re.search(only, what):
                continue
            if not (wrong := examine(names, case, key, counts, getattr(table, "EACH", False))):
                continue
            why = next((reason for pattern, reason in explained if re.search(pattern, f"{key} {case}")), None)
            if why:
                counts.explained[why] = counts.explained.get(why, 0) + 1
            else:
                counts.differ += 1
                print(f"  {what}\n    {wrong}", flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", default="", help='pattern: only slopes, "table: operand expression", where it is found'
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    jax.config.update("jax_enable_x64", True)
    differ = 0
    for path in sorted((HERE / "libraries").glob("[a-z]*.py")):
        if options.only and ":" in options.only and not re.search(options.only.split(":")[0], path.stem):
            continue
        counts = table_slopes(path.stem, options.only)
        differ += counts.differ
        print(
            f"{path.stem}: {counts.slopes} slopes of {counts.elements} elements, {counts.determined} determined; "
            f"{counts.adjoints} backward; {counts.raised} refused, {counts.constant} constant; {counts.differ} differ, "
            f"{sum(counts.explained.values())} explained",
            flush=True,
        )
        for why, count in counts.explained.items():
            print(f"    {count} times: {why}")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
