"""SciPy as the judge of the calls in which two libraries return other numbers.

A call of `differential_libraries.py` is evaluated once more with SciPy in the place of ``jsp``, NumPy in that of
``jnp``, and the formulas of `neural.py` in that of ``nn``, in double precision, at the very numbers that the libraries
were given. Where the libraries differ, and SciPy has our numbers, the difference is JAX's. Derivatives are judged by
central differences of what SciPy returns, element by element. What SciPy does not know, or refuses, it does not judge,
nor what it does not end (the entropy of 1e30 outcomes).
Of hypergeometric functions mpmath is the judge, of their derivatives by differences of 60 digits.
"""

import importlib
import re
import signal
import warnings

import ml_dtypes
import neural
import numpy as np
import scipy.special
from answers import NO_ANSWER, TOLERANCE

SLOPES = 1e-6  # to what the differences of functions in double precision are known, of the derivative
STEP = 3e-4  # of differences, of an argument: the formula's error is its fourth power
NARROW = {"float64": "float32", "complex128": "complex64"}
UNJUDGED = (
    *(ValueError, TypeError, ArithmeticError, AttributeError, NameError, LookupError, NotImplementedError, ImportError),
    TimeoutError,
)
PATIENCE = 30  # seconds


class Scipy:
    """SciPy, whose parts are imported when they are asked for; in `special`, the names that JAX has and SciPy lacks."""

    def __init__(self, part: str = ""):
        self.part = part

    def __getattr__(self, name: str):
        if self.part:
            return RENAMED.get(name) or getattr(importlib.import_module(f"scipy.{self.part}"), name)
        return Scipy(name) if name == "special" else importlib.import_module(f"scipy.{name}")


def bessel_jn(z, *, v, n_iter=50):
    return scipy.special.jv(np.arange(v + 1).reshape(-1, *[1] * np.ndim(z)), z)


def log_ndtr(x, series_order=3):
    return scipy.special.log_ndtr(x)


def rounded(x, dtype: str):
    """In double precision, with the digits of a half."""
    return np.asarray(x).astype(getattr(ml_dtypes, dtype, dtype)).astype("float64")


def by_mpmath(name: str, digits: int = 30, rounded=float):
    """A hypergeometric function of real numbers: SciPy's lose some digits, or all, for many parameters."""

    def value(*arguments):
        mpmath = importlib.import_module("mpmath")  # which JAX's environment lacks
        with mpmath.workdps(digits):
            try:
                return rounded(mpmath.re(getattr(mpmath, name)(*arguments)))
            except ZeroDivisionError:  # a pole
                return np.inf
            except (ValueError, mpmath.libmp.NoConvergence):
                return np.nan

    return np.vectorize(value, otypes=["float64" if rounded is float else object])


RENAMED = {"bessel_jn": bessel_jn, "log_ndtr": log_ndtr, "hyp1f1": by_mpmath("hyp1f1"), "hyp2f1": by_mpmath("hyp2f1")}


def seen(x, x64: bool):
    """An operand in double precision, with the digits that it has in a library."""
    if not isinstance(x, np.ndarray | np.generic):
        return x
    x = np.asarray(x)
    if x.dtype.kind in "fc":
        narrow = x.dtype if x64 else NARROW.get(str(x.dtype), x.dtype)
        return x.astype(narrow).astype("complex128" if x.dtype.kind == "c" else "float64")
    return x.astype("int64") if x.dtype.kind in "iub" else x


def leaves(value) -> list[np.ndarray]:
    values = list(value) if isinstance(value, tuple | list) else [value]
    return [np.asarray(x, "complex128" if np.iscomplexobj(x) else "float64") for x in values]


def evaluated(expression: str, operands: dict, x64: bool, **replaced) -> list[np.ndarray]:
    names = {"jsp": Scipy(), "nn": neural, "jnp": np, "np": np, "rounded": rounded}
    names |= {key: seen(x, x64) for key, x in operands.items()} | replaced
    expression = re.sub(r"\b(\w+)\.astype\(('b?float16')\)", r"rounded(\1, \2)", expression)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return leaves(eval(compile(expression, "<case>", "eval"), names))


def slopes(name: str, expression: str, operands: dict, x64: bool) -> list[np.ndarray]:
    """The derivatives of the sum of what is returned by each element of an operand, by differences of four values."""
    x = seen(operands[name], x64)
    out = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        step = STEP * (abs(x[index]) or 1.0)
        found = []
        for count in (-2, -1, 1, 2):
            moved = x.copy()
            moved[index] += count * step
            found.append(evaluated(expression, operands, x64, **{name: moved}))
        with np.errstate(all="ignore"):
            for least, less, more, most in zip(*found):
                parts = np.where(most == least, 0, 8 * (more - less) - (most - least)).real
                parts = np.where(np.isnan(most) & np.isnan(least), 0, parts)
                out[index] += parts.sum() / (12 * step)
    return [out]


HYPERGEOMETRIC = re.compile(r"jsp\.special\.(hyp1f1|hyp2f1)\(([^()]*)\)")


def hypergeometric_slopes(name: str, call: re.Match, operands: dict, x64: bool) -> list[np.ndarray]:
    """As `slopes`, of one call, every element of which depends on one of the operand."""
    mpmath = importlib.import_module("mpmath")
    function, x = by_mpmath(call[1], 60, rounded=lambda y: y), seen(operands[name], x64)
    with mpmath.workdps(60):
        exact = {key: np.vectorize(mpmath.mpf, otypes=[object])(seen(v, x64)) for key, v in operands.items()
                 if re.search(rf"\b{key}\b", call[2])}  # fmt: skip
        step = np.vectorize(lambda v: (abs(v) or 1) * mpmath.mpf(10) ** -20, otypes=[object])(exact[name])
        ends = [function(*eval(call[2], exact | {name: exact[name] + sign * step})) for sign in (1, -1)]
        rises = (ends[0] - ends[1]) / (2 * step)
        lost = tuple(range(rises.ndim - x.ndim)) + tuple(
            k - x.ndim for k, size in enumerate(x.shape) if size == 1 and rises.shape[k - x.ndim] > 1
        )
        return [np.array(np.sum(rises, lost).reshape(x.shape), "float64")]


def close(a, b, tolerance: float, least: float = 0.0) -> np.ndarray:
    """Where numbers agree, each for itself."""
    if a.dtype.kind not in "fc":
        return np.asarray(a == b)
    with np.errstate(all="ignore"):
        near = (np.abs(a - b) <= tolerance * np.abs(b) + least) & np.isfinite(b)  # nothing is near infinity
    return near | (a == b) | (np.isnan(a) & np.isnan(b))


def out_of_patience(*_):
    raise TimeoutError


def sides_with_us(call: tuple, ours: list, theirs: list, operands: dict, x64: bool) -> bool:
    """Whether SciPy returns our numbers wherever theirs differ, or are none; the answers are `answers.described`."""
    how, expression = call
    alike = ours[0] == theirs[0] and [leaf[:3] for leaf in ours[1:]] == [leaf[:3] for leaf in theirs[1:]]
    if not alike and theirs[0] != NO_ANSWER:
        return False
    signal.signal(signal.SIGALRM, out_of_patience)
    signal.alarm(PATIENCE)
    try:
        known = how.startswith("grad ")
        hypergeometric = known and HYPERGEOMETRIC.fullmatch(expression)
        if hypergeometric:
            true = hypergeometric_slopes(how.split()[1], hypergeometric, operands, x64)
        else:
            true = slopes(how.split()[1], expression, operands, x64) if known else evaluated(expression, operands, x64)
    except UNJUDGED:
        return False
    finally:
        signal.alarm(0)
    if [leaf[1] for leaf in ours[1:]] != [leaf.shape for leaf in true]:
        return False
    others = theirs[1:] if alike else [None] * len(true)
    return all(_is_ours(*leaf, SLOPES * (known and not hypergeometric)) for leaf in zip(ours[1:], others, true))


def _is_ours(ours, theirs, true, known: float) -> bool:
    dtype, a = ours[0], ours[3]
    tolerance = max(TOLERANCE.get(dtype, 1e-4), known)
    inexact = a.dtype.kind in "fc"
    with np.errstate(all="ignore"):
        rounded = true.astype(a.dtype) if inexact else true
    least = float(np.finfo(a.dtype).tiny) if inexact else 0.0
    same = False if theirs is None else close(a, theirs[3], tolerance / 4, least)
    return bool(np.all(same | close(a, rounded, tolerance, least)))
