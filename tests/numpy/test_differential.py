"""The generated calls of ``numpy_variations``: values as NumPy's, compiled as eager.

One call in eight is compared with NumPy (all of them with `make test-every`); one in ``EVERY`` is compiled too, or
every one with ``CATENA_DIFFERENTIAL=1`` in the environment. Where JAX's semantics differ from NumPy's, ``DIFFERENT``
says how; the other half of the comparison, with JAX itself, is ``make differential``.
"""

import os
import re
import warnings

import numpy as np
import pytest

import catena
import catena.numpy as jnp
from catena.errors import (
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from numpy_variations import calls, function_of, mapped
from shares import alternate

CALLS = list(calls())
PARTS = 20
EVERY = 1 if os.environ.get("CATENA_DIFFERENTIAL") else 60
UNKNOWN_WHILE_TRACING = (
    ConcretizationTypeError,
    TracerBoolConversionError,
    TracerArrayConversionError,
    TracerIntegerConversionError,
    NonConcreteBooleanIndexError,
)
TOLERANCE = {"float16": 1e-2, "bfloat16": 6e-2, "float32": 3e-5, "complex64": 3e-5}

REFUSALS = (TypeError, ValueError, IndexError, NotImplementedError)  # beside JAX's in `make differential`

# Pattern of a call's label -> why the values differ.
DIFFERENT: list[tuple[str, str]] = [
    ("extreme integers:", "in 32 bits integers overflow and floats round, where NumPy has 64"),
    ("^(promote|result)_type", "JAX's lattice of dtypes, whose floats have 32 bits"),
    ("^(spacing|nextafter)", "the next number in float32, NumPy's in float16 or float64"),
    ("^(polymul|convolve|correlate), .* bool:", "sums of booleans are floats, as in JAX"),
    ("^trapezoid, .*(bool|uint8|uint32):", "coordinates become floats before they are subtracted, as in JAX"),
    ("^modf, .* special", "the fraction of infinity is NaN, as in JAX"),
    ("^astype, .* special", "casts of what does not fit saturate, as in JAX"),
    ("^logspace, .* dtype=int8", "casts of what does not fit saturate, as in JAX"),
    ("^logspace, .* array 2 with an axis more", "the base broadcasts with the exponents, as in JAX"),
    ("^linspace, .* special", "the steps are computed in another order"),
    ("^(cov|var|std|nanvar|nanstd), .* ddof=5", "NaN or negative where there are too few elements, as in JAX"),
    ("^(var|nanvar), .* dtype=int8", "variances are floats, as in JAX"),
    ("^cov, .* dtype=float16", "16 bits on the way"),
    ("^linalg.cholesky, .* special", "how far a NaN spreads in a factor is a matter of the library's kernels"),
    ("^linalg.lstsq", "residuals are returned where NumPy's are empty (see numpy_resid)"),
    ("^linalg.eigh, .* bool", "eigenvectors of equal eigenvalues"),
    ("^linalg.eigvals, .* bool", "eigenvalues are complex, as in JAX"),
    ("^linalg.eigv?a?l?s?h, .* backwards", "the matrix is made symmetric first, as in JAX"),
    ("^linalg.slogdet, .* special", "a sign that is NaN, as in JAX"),
    ("^roots, .* complex64", "the order of conjugate roots"),
    ("^unique_values", "in order; NumPy's have none"),
    ("^nan(percentile|quantile), .* all empty", "no fractions, no results"),
    ("^arange, .* bfloat16", "numbers, where NumPy's are objects"),
    ("^digitize, .* special", "edges that are not in order have no meaning"),
    ("^gradient, .* of bool", "1 / 0 in another order"),
    ("^histogram, .* special", "edges that are not in order have no meaning"),
    ("^polydiv", "remainders keep their leading zeros, as in JAX"),
]


# What is compared of the results where rounding decides the rest: of a singular matrix, that 1 / cond is nearly 0.
DETERMINED = {"linalg.cond": np.reciprocal}

COMPILED_DIFFERENT: list[tuple[str, str]] = [
    ("^(iscomplexobj|isrealobj|isdtype|issubdtype|can_cast|result_type|promote_types|broadcast_shapes)", "no arrays"),
    ("^(histogram|digitize), .* special", "edges that are not in order have no meaning"),
]


def outcome(fun, *args, **kwargs):
    """What a call returns, or the exception that it raises."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return fun(*args, **kwargs)
    except Exception as error:
        return error


def numbers(out, name: str) -> list:
    """The leaves of the result of a function as NumPy arrays, narrow floats as float32."""
    leaves = [np.asarray(x) for x in catena.tree.leaves(tuple(out) if isinstance(out, list | tuple) else out)]
    leaves = [x.astype(np.float32) if x.dtype.kind == "V" and x.dtype.names is None else x for x in leaves]
    with np.errstate(all="ignore"):
        return list(map(DETERMINED.get(name, np.asarray), leaves))


def precision(*leaves) -> float:
    """The greatest tolerance of the dtypes in arguments and results."""
    return max((TOLERANCE.get(str(x.dtype), 3e-5) for x in leaves if hasattr(x, "dtype")), default=3e-5)


def agree(ours: list, theirs: list, tolerance: float) -> bool:
    return len(ours) == len(theirs) and all(close(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))


def close(a, b, tolerance: float) -> bool:
    if a.shape != b.shape or a.dtype.kind not in "biufc" or b.dtype.kind not in "biufc":
        return a.shape == b.shape and a.dtype.kind == b.dtype.kind and a.tolist() == b.tolist()
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        return np.array_equal(a, b)
    a, b = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (a, b))
    finite = np.abs(b[np.isfinite(b)])
    with np.errstate(all="ignore"):
        return np.allclose(a, b, tolerance, tolerance * finite.max(initial=1e-2), equal_nan=True)


def difference(label, name, args, kwargs):
    """None where both agree, "" where there is nothing to compare, else what differs."""
    try:
        theirs = outcome(function_of(np, name), *args, **kwargs)
    except AttributeError:  # NumPy has no such function
        return ""
    ours = outcome(function_of(jnp, name), *args, **kwargs)
    if isinstance(theirs, Exception) or isinstance(ours, REFUSALS):
        return ""
    if isinstance(ours, Exception):
        return f"{label}: {type(ours).__name__}: {ours}"
    ours, theirs = numbers(ours, name), numbers(theirs, name)
    tolerance = precision(*catena.tree.leaves((args, kwargs)), *ours, *theirs)
    return None if agree(ours, theirs, tolerance) else f"{label}: {ours} instead of {theirs}"


def compiled_difference(label, name, args, kwargs):
    """What differs between a call and the same one compiled, None if nothing does, "" if it cannot be compiled."""
    arrays = arrays_of(args, kwargs)
    function = function_of(jnp, name)

    @catena.jit
    def compiled(*arrays):
        given = iter(arrays)
        new_args, new_kwargs = mapped((args, kwargs), lambda *_: next(given))
        return function(*new_args, **new_kwargs)

    eager, ours = outcome(function, *args, **kwargs), outcome(compiled, *arrays)
    if isinstance(ours, UNKNOWN_WHILE_TRACING):
        return ""
    if isinstance(eager, Exception) or isinstance(ours, Exception):
        return None if type(eager) is type(ours) else f"{label}: {ours!r} instead of {eager!r}"
    if types(ours) != types(eager):
        return f"{label}: {types(ours)} instead of {types(eager)}"
    ours, eager = numbers(ours, name), numbers(eager, name)
    return None if agree(ours, eager, precision(*ours)) else f"{label}: {ours} instead of {eager}"


def arrays_of(args, kwargs) -> list:
    found = []
    mapped((args, kwargs), lambda x, _: found.append(x))
    return found


def types(out) -> list:
    return [catena.typeof(x) if hasattr(x, "aval") else type(x) for x in catena.tree.leaves(out)]


@pytest.mark.parametrize("part", range(PARTS))
def test_numpy_gives_the_same(part):
    found = [difference(*call) for call in alternate(8, CALLS[part::PARTS], part)]
    unexplained = [what for what in found if what and not any(re.search(p, what) for p, _ in DIFFERENT)]
    assert not unexplained, "\n".join(unexplained)
    assert sum(what is None for what in found) >= 49  # 980 in all


@pytest.mark.parametrize("part", range(PARTS))
def test_compiled_calls_give_the_same(part):
    found = [compiled_difference(*call) for call in CALLS[part::PARTS][::EVERY]]
    unexplained = [what for what in found if what and not any(re.search(p, what) for p, _ in COMPILED_DIFFERENT)]
    assert not unexplained, "\n".join(unexplained)
    assert sum(what is None for what in found) >= len(found) / 2
