"""The NumPy API beside JAX, call by call: values, dtypes, weak types, shapes, tree structures, exception types.

`python benchmarks/differential_numpy.py --jax-python PYTHON` makes the calls of `tests/helpers/numpy_variations.py`
under both libraries and prints those that differ, function by function, and how many there were. Differences that are
meant stand in `EXPLAINED` below, each with its reason. JAX compiles each call anew: all take it about half an
hour; `--every 10` makes a tenth of them, `--only NAME` those of one function. `make differential` calls this.
"""

import argparse
import importlib
import pickle
import re
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from side_by_side import run_side_by_side

ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float64": 1e-10, "complex128": 1e-10}  # else 2e-5

PART = 1000

# Pattern of a call's label, and of "ours | theirs" -> why they differ. The first that fits explains.
EXPLAINED: list[tuple[str, str, str]] = [
    # Both refuse, or JAX fails on the way
    (
        "",
        r"^TypeError: \w+ does not accept dtype.* \| NotImplementedError: \(KeyError",
        "no such dtype in LAPACK: JAX finds out when it compiles",
    ),
    (
        "",
        r" \| ValueError: Non-hashable static arguments",
        "fill_value may be an array, as in JAX's other functions; here JAX hashes it",
    ),
    (
        "",
        r" \| (IndexError: tuple index out of range|TypeError: len\(\) of unsized object)$",
        "scalars are as good as in NumPy; JAX asks for their length",
    ),
    ("", r"requires ndarray or scalar arguments, got <class 'str'>.* \| ", "text is refused before anything else"),
    (
        "array",
        r"^TypeError: Cannot concatenate .* \| ValueError: setting an array element",
        "ragged lists of NumPy arrays are refused like those of any arrays",
    ),
    (
        "linalg",
        r"^ValueError: Argument to .* \| TypeError: (transpose permutation|Input 0 to)",
        "too few dimensions are a ValueError in all of linalg, as for inv and det in JAX",
    ),
    (
        "histogram2d|poly",
        r"^ValueError: .* \| TypeError: Cannot concatenate",
        "refused with a word about the shapes; JAX fails when it joins them",
    ),
    ("cumulative_prod", r"int32.* \| .*int(8|16)", "in the default width, as the array API standard says"),
    (
        "lstsq",
        r"^TypeError: \d-dimensional array given",
        "refused for its dimensions as in NumPy; JAX looks at sizes first",
    ),
    (
        "quantile",
        r" \| TypeError: (floor|sub) does not accept dtype",
        "fractions may be integers or booleans, as in NumPy",
    ),
    ("polyfit", r" \| ValueError: data type <class .*> not inexact", "integers become floats, as in NumPy"),
    ("nanstd", r" \| TypeError: sqrt does not accept dtype int8", "JAX takes the root of an integer"),
    (
        "var|std",
        r" \| TypeError: sub: arrays must have the same number of dimensions",
        "a mean of any shape that broadcasts will do, as in NumPy",
    ),
    (
        "searchsorted",
        r"^TypeError: searchsorted: sorter must hold integers",
        "a TypeError as in NumPy; JAX takes it for a mask",
    ),
    (
        "fft",
        r"^ValueError: jax.numpy.fft.\w+ does not support multiple axes.* axis = None",
        "refused as in NumPy; JAX transforms all axes",
    ),
    (
        "fft",
        r" \| ValueError: RFFT input must be float32",
        "16-bit floats become float32, as for complex transforms in JAX",
    ),
    (
        "linalg",
        r"^ValueError: Argument to .* \| TypeError: add got incompatible shapes",
        "matrices must be square; JAX fails when it adds the transposed one",
    ),
    ("(quantile|percentile).* all empty", r" \| IndexError", "nothing is asked for, nothing is returned"),
    (
        "(quantile|percentile)",
        r" \| TypeError: mul does not accept dtype bool",
        "fractions may be integers or booleans, as in NumPy",
    ),
    (
        "compress|extract",
        r"size must be positive",
        "size may be up to the length of the axis; JAX cuts the array to the condition first",
    ),
    (
        "setdiff1d",
        r" \| ValueError: Cannot broadcast to shape with fewer dim",
        "a fill_value of one element will do, as for union1d in JAX",
    ),
    ("argpartition", r" \| TypeError: neg does not accept dtype bool", "booleans have an order, as in sort"),
    ("rfftfreq", r"int8.* \| .*float32", "the dtype that was asked for, as in JAX's fftfreq"),
    (
        "linalg.(cholesky|eigh|eigvalsh)",
        r"^(Type|Value)Error: Argument to",
        "matrices must be square; JAX broadcasts the transposed one",
    ),
    ("nan(var|std).* 0 (a Python scalar|of rank 0)", r"", "a mask may be larger than the array, as in JAX's var"),
    (
        "place.* empty",
        r" \| ValueError: Cannot place values from an empty",
        "nothing is placed where the mask is nowhere true, as in NumPy",
    ),
    ("poly(add|sub|mul).* empty", r" \| ValueError: Incompatible types", "no coefficients are those of 0, as in NumPy"),
    ("average", r" \| TracerArrayConversionError", "lists are refused; JAX converts them, then fails"),
    (
        "(mean|std|var), .* of size 1",
        r" \| ValueError: Incompatible types for broadcasting: input type=bool",
        "a mask may be larger than the array, as for sum in JAX",
    ),
    ("nan(var|std), example 1, array [01]", r"", "a mask may be larger than the array, as for var in JAX"),
    ("partition", r" \| TypeError: neg does not accept dtype bool", "booleans have an order, as in sort"),
    (
        "(quantile|percentile)",
        r"^ValueError: quantile does not support complex",
        "complex fractions are refused like complex elements",
    ),
    (
        "along_axis",
        r" \| NonConcreteBooleanIndexError",
        "a TypeError for indices that are no integers, as in JAX for floats",
    ),
    (
        "reshape",
        r"^TypeError: cannot reshape .* \| ValueError: cannot reshape",
        "a TypeError as in JAX for its own arrays; those of NumPy it asks themselves",
    ),
    ("trapezoid.*axis=\\(", r"^TypeError", "an axis is an integer, as in NumPy; JAX takes a tuple of one"),
    (
        "axis=\\(",
        r"^TypeError: 'tuple' object cannot be interpreted as an integer",
        "an axis is an integer, as in NumPy; JAX takes a tuple of one, or fails later",
    ),
    ("einsum.* text", r"got <class 'list'>", "subscripts are read as an operand where the operand is text"),
    ("repeat.* with an axis more", r"^ValueError", "refused as in NumPy; JAX flattens the repeats"),
    ("searchsorted", r"^ValueError: searchsorted: sorter should be", "refused as in NumPy; JAX reads rows of sorters"),
    ("trapezoid.* empty", r" \| IndexError", "the area of nothing is 0, as in NumPy"),
    ("choose", r"^ValueError: unstack", "a scalar is no sequence of arrays; both refuse"),
    ("interp.* all empty", r"^ValueError", "refused with a word about the points; JAX looks for the first"),
    (
        "put, .* 0 (a Python scalar|of rank 0)",
        r" \| ValueError: Cannot broadcast",
        "a scalar is flattened to one element, as in NumPy",
    ),
    (
        "poly",
        r"^ValueError: coefficients of polynomials must be 1-D",
        "refused; JAX divides along the last axis, or fails later",
    ),
    ("digitize.* complex", r"^TypeError", "refused as in NumPy; JAX orders complex numbers"),
    (
        "logspace, .* 2 of complex",
        r"",
        "powers of a complex base are complex, as in NumPy; JAX drops the imaginary part",
    ),
    ("(nan)?var, .* dtype=int8", r"", "variances are floats; JAX computes some of them in integers"),
    ("setxor1d, .* 2 of (float16|complex64)", r"", "fill values take the dtype of the elements, as for union1d in JAX"),
    ("ihfft.* a list", r"^TypeError", "lists are refused, as by the other transforms in JAX"),
    (
        "nanmedian.* empty",
        r"^TypeError: nanmedian: a must have elements",
        "refused with a word; JAX looks for the first element",
    ),
    ("take_along_axis.* 0 empty", r"^IndexError", "nothing is taken from an empty axis, as for take in JAX"),
    ("fft.rfftn, .* 0 (a Python scalar|of rank 0)", r"", "a transform over no axes is complex, as for arrays in JAX"),
    (
        "setdiff1d, .* 0 a Python scalar",
        r"weak",
        "a fill value that is not weak makes the result so, as for unique in JAX",
    ),
    (
        "vander.* bool",
        r" \| TypeError: iota does not accept",
        "powers of booleans are booleans; JAX has no range of them",
    ),
    # NumPy's answer instead of JAX's
    ("array_equiv", r"\[False\] \| TypeError", "shapes that do not broadcast are not equivalent, as in NumPy"),
    ("packbits.*axis=", r"^TypeError", "an axis is an integer, as in NumPy; JAX takes a tuple of one"),
    ("unravel_index", r"indices must be integers", "refused as in NumPy; JAX returns floats"),
    ("gradient.* 0 (of rank 0|a Python scalar)", r"^TypeError", "refused as in NumPy; JAX returns nothing"),
    ("histogram_bin_edges.* text", r"^TypeError", "text is refused with a TypeError, as everywhere"),
    ("vector_norm.* extreme", r"", "integers become floats; JAX computes their norm in integers, which overflow"),
    # Numbers
    ("lstsq", r"e-1[3-9]\]", "residuals of exact solutions are rounding errors"),
    ("fftfreq.* extreme", r"", "JAX multiplies n and d in integers, which overflow"),
    ("unique.* 0 empty", r"int32\[0\]", "positions have the size that was asked for; JAX returns none"),
    ("cov.* (negative|extreme)", r"nan", "negative weights have no meaning"),
    ("gradient", r"e-08", "rounding: JAX divides in another order"),
    ("histogram, .* (of rank 0|of size 1|a Python scalar)", r"", "a value on an edge, which is rounded differently"),
    ("cov.*dtype=float16", r"", "roundings to 16 bits in another place"),
    ("kaiser.*float16", r"", "JAX computes the window in 16 bits"),
    ("cov, example 2, int8", r"", "JAX multiplies weights in 8 bits"),
    ("polyfit.*float16", r"", "JAX takes powers in 16 bits"),
    ("partition.* extreme", r"", "JAX negates -2**31, which stays as it is"),
    ("digitize.* special", r"", "edges that are not in order have no meaning"),
    ("histogram2d.* extreme", r"", "edges between -2**31 and 2**31 - 1 are rounded differently"),
    ("roots", r"complex64\[2\]", "roots of equal size come in no order"),
    ("quantile.*float16", r"", "JAX interpolates in the dtype of the fractions, 16 bits"),
    ("percentile.*float16", r"", "JAX divides percentages by 100 in 16 bits"),
    ("(percentile|quantile), example 1, (negative|extreme)", r"", "negative weights have no meaning"),
    ("special values", r"nan", "1e-45 is a number; XLA takes it for 0, and 0 * inf is NaN"),
]

ENDLESS = "^(gcd|lcm), .* extreme"  # of -2**31, whose absolute value is itself

# ----------------------------------------------------------------------------- in the worker process


def described(jax, value):
    """A result by its structure, types and values; floats narrower than 32 bits as float32."""
    leaves = []
    for x in jax.tree.leaves(value):
        if not hasattr(x, "dtype"):
            leaves.append((type(x).__name__, (), False, np.asarray(x) if isinstance(x, bool | int | float) else None))
            continue
        a = np.asarray(x)
        plain = a.astype(np.float32) if a.dtype.kind == "V" and a.dtype.names is None and a.dtype.itemsize else a
        leaves.append((str(a.dtype), a.shape, bool(getattr(x, "weak_type", False)), plain))
    return re.sub(r"CustomNode\(namedtuple\[_?(\w+)\]", r"\1(", str(jax.tree.structure(value))), leaves


def run(library: str, calls_file: str, results_file: str) -> None:
    warnings.simplefilter("ignore")
    jax = importlib.import_module(library)
    results = {}
    for label, name, args, kwargs in pickle.loads(Path(calls_file).read_bytes()):
        try:
            function = jax.numpy
            for part in name.split("."):
                function = getattr(function, part)
            results[label] = described(jax, function(*args, **kwargs))
        except Exception as error:  # whatever is raised is what is compared
            results[label] = [kind.__name__ for kind in type(error).__mro__], str(error).split("\n")[0][:120]
    Path(results_file).write_bytes(pickle.dumps(results))


# ------------------------------------------------------------------------------ in the parent process


def difference(ours, theirs) -> str | None:
    """What differs, said as "ours | theirs"."""
    failed = isinstance(ours[0], list), isinstance(theirs[0], list)
    if any(failed):
        if all(failed) and theirs[0][0] in ours[0]:  # the same kind of exception or a special one of it
            return None
        return " | ".join(f"{r[0][0]}: {r[1]}" if f else short(r) for r, f in zip((ours, theirs), failed, strict=True))
    same = ours[0] == theirs[0] and len(ours[1]) == len(theirs[1]) and all(map(leaves_agree, ours[1], theirs[1]))
    return None if same else f"{short(ours)} | {short(theirs)}"


def short(result) -> str:
    tree, leaves = result
    shown = [f"{dtype}{list(shape)}{' weak' * weak} {np.ravel(v)[:6] if v is not None else ''}"
             for dtype, shape, weak, v in leaves[:3]]  # fmt: skip
    return f"{tree[:60]} {', '.join(shown)}"


def leaves_agree(a, b) -> bool:
    if a[:3] != b[:3] or (a[3] is None) != (b[3] is None):
        return False
    if a[3] is None or a[3].dtype.kind not in "fc":
        return a[3] is None or np.array_equal(a[3], b[3])
    finite = np.abs(b[3][np.isfinite(b[3])])
    tolerance = TOLERANCE.get(a[0], 2e-5)
    with np.errstate(all="ignore"):
        return np.allclose(a[3], b[3], tolerance, tolerance * max(1e-30, finite.max(initial=0)), equal_nan=True)


def explanation(label: str, what: str) -> str | None:
    return next((why for call, text, why in EXPLAINED if re.search(call, label) and re.search(text, what)), None)


def results_of(pythons: dict, calls: list) -> dict:
    """Library -> label -> result. New workers make each thousand calls: JAX keeps all that it compiles."""
    results = {library: {} for library in pythons}
    for start in range(0, len(calls), PART):
        for library, found in run_side_by_side(__file__, pythons, calls[start : start + PART]).items():
            results[library] |= found
        print(f"{min(start + PART, len(calls))} of {len(calls)} calls", file=sys.stderr, flush=True)
    return results


def chosen_calls(options) -> list:
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    calls = list(importlib.import_module("numpy_variations").calls())
    if options.only:
        calls = [call for call in calls if call[1] == options.only]
    picklable = []
    for call in calls[options.start :: options.every]:
        if re.search(ENDLESS, call[0]):
            print(f"left out, JAX does not return: {call[0]}")
            continue
        try:
            picklable.append(pickle.loads(pickle.dumps(call)))
        except (pickle.PicklingError, AttributeError, TypeError):  # functions without a name
            print(f"left out: {call[0]}")
    return picklable


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", help="the interpreter of an environment with JAX")
    parser.add_argument("--every", type=int, default=1, help="make one call in so many")
    parser.add_argument("--start", type=int, default=0, help="beginning with this one")
    parser.add_argument("--only", help="the calls of one function")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(*options.run)
        return 0
    calls = chosen_calls(options)
    results = results_of({"catena": sys.executable, "jax": options.jax_python}, calls)
    unexplained, explained = defaultdict(list), defaultdict(int)
    for label, name, _, _ in calls:
        what = difference(results["catena"][label], results["jax"][label])
        if what is not None:
            why = explanation(label, what)
            if why:
                explained[why] += 1
            else:
                unexplained[name].append(f"  {label}\n    {what}")
    for lines in unexplained.values():
        print("\n".join(lines))
    for why, count in explained.items():
        print(f"explained, {count} times: {why}")
    print(f"{len(calls)} calls, {sum(map(len, unexplained.values()))} unexplained differences")
    return bool(unexplained)


if __name__ == "__main__":
    sys.exit(main())
