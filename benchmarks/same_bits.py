"""Whether the bits of an eager result depend on anything but the operands: `make same-bits`.

Every case of the primitives (tests/rules) and one in EVERY of the generated calls of the NumPy API
(tests/helpers/numpy_variations.py) is evaluated on arrays as they are and grown, several times, and with operands
laid out in other ways in memory: by columns, strided, backwards, as parts of larger arrays. Elementwise functions are
evaluated in pieces too. All must give the same bits. NaNs are equal, whatever their bits.

    python benchmarks/same_bits.py --write a.json             # one process, or commit
    CATENA_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/same_bits.py --against a.json     # and another
"""

import argparse
import hashlib
import json
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "src")]

import numpy as np  # noqa: E402

import catena  # noqa: E402
import catena.numpy as jnp  # noqa: E402
import structured_cases  # noqa: E402, F401  more cases
from catena import lax  # noqa: E402
from catena.core import dtypes  # noqa: E402
from numpy_variations import calls, function_of, mapped  # noqa: E402
from rule_cases import CASES, arguments  # noqa: E402

REFUSALS = (
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    NotImplementedError,
    OverflowError,
    FloatingPointError,
)
AGAIN = 3
GROWN = (1, 7)  # by how much every axis of more than one element grows


def columns(x):
    """The same array, of which neighbours along the first axis are neighbours in memory."""
    axes = tuple(reversed(range(x.ndim)))
    return lax.transpose(jnp.asarray(np.ascontiguousarray(x.transpose(axes))), axes)


def strided(x):
    """The same array, of which every second element of a larger one is made."""
    return jnp.asarray(np.repeat(x, 2, -1))[..., ::2]


def backwards(x):
    """The same array, whose last axis goes backwards through memory."""
    return jnp.asarray(np.ascontiguousarray(x[..., ::-1]))[..., ::-1]


def part(x):
    """The same array, within a larger one, at an odd place."""
    return jnp.asarray(np.concatenate([x[:1], x, x[:1]]))[1:-1]


LAYOUTS = (columns, strided, backwards, part)


def laid_out(x, layout):
    """A NumPy array as an Array that is laid out so; ranks that have no layouts stay as they are."""
    return layout(x) if x.ndim and x.size and not dtypes.is_extended(x.dtype) else jnp.asarray(x)


def grown(x, factor: int):
    """An array with longer axes, of numbers like those that it has."""
    if factor == 1 or not x.size:
        return x
    out = np.tile(x, [factor if n > 1 else 1 for n in x.shape])
    if dtypes.KIND.get(out.dtype) in ("f", "c"):
        noise = np.random.default_rng(out.size).uniform(0.9, 1.0, out.shape)
        out = (out.astype(np.complex128 if out.dtype.kind == "c" else np.float64) * noise).astype(out.dtype)
    return out


def digest(out) -> str:
    """The types and bits of a tree of results."""
    found = hashlib.sha256()
    for leaf in catena.tree.leaves(out):
        x = np.ascontiguousarray(getattr(leaf, "_value", leaf))
        if x.dtype.hasobject:  # dtypes, names
            found.update(repr(leaf).encode())
            continue
        if x.dtype.kind in "fc" or x.dtype in dtypes.FLOATS:
            x = _with_one_nan(x)
        found.update(f"{x.dtype}{x.shape}".encode() + x.tobytes())
    return found.hexdigest()[:16]


def _with_one_nan(x):
    if x.dtype.kind == "c":
        return np.stack([_with_one_nan(x.real.copy()), _with_one_nan(x.imag.copy())])
    nan = x != x
    if nan.any():
        x = x.copy()
        x[nan] = abs(np.array(np.nan, np.float32)).astype(x.dtype)
    return x


def evaluated(call, *args) -> str | None:
    """The digest of a call; None where it refuses its arguments."""
    try:
        return digest(call(*args))
    except REFUSALS:
        return None


def primitive_calls():
    """(label, function, arrays) for the cases of the primitives."""
    for name, case in CASES.items():
        for dtype in case.dtypes:
            for factor in GROWN:
                yield (
                    f"{name} {dtype} x{factor}",
                    case.fun,
                    [grown(np.asarray(a), factor) for a in arguments(case, dtype)],
                )


SHAPES = ((180, 180, 180), (1000, 60, 5), (1, 250, 250), (250, 250, 1), (1, 60_000, 1), (7, 8_000, 1), (300, 300, 300))


def product_calls():
    """The same for products of matrices of many sizes: BLAS has a way of its own for each kind of shape."""
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64", "complex64", "bfloat16"):
        for n, k, m in SHAPES:
            x, y = (rng.standard_normal(shape).astype(np.float32).astype(dtype) for shape in ((n, k), (k, m)))
            yield f"matmul, {dtype} products of {n} {k} {m}", jnp.matmul, [x, y]
            yield (
                f"dot_general {n} {k} {m} {dtype}",
                lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))),
                [x, y],
            )


MATRICES = "cholesky inv solve det slogdet qr svd svdvals eigh eigvalsh eig eigvals pinv lstsq matrix_power".split()


def matrix_calls():
    """The same for functions of matrices that LAPACK shares out among its threads."""
    rng = np.random.default_rng(0)
    for name in MATRICES:
        fun = getattr(jnp.linalg, name)
        call = {"solve": lambda x, f=fun: f(x, x[:, :2]), "lstsq": lambda x, f=fun: f(x, x[:, :2])}.get(name, fun)
        call = (lambda x, f=fun: f(x, 3)) if name == "matrix_power" else call
        for n in (60, 100, 300):
            x = rng.standard_normal((n, n)).astype(np.float32)
            yield f"{name} of {n} x {n}", call, [x @ x.T + n * np.eye(n, dtype=np.float32)]


def numpy_calls(every: int):
    """The same for functions of the NumPy API."""
    for i, (label, name, args, kwargs) in enumerate(calls()):
        if i % every:
            continue
        fun = function_of(jnp, name)
        for factor in GROWN:
            arrays = []
            mapped((args, kwargs), lambda x, k, found=arrays: found.append(x) or x)

            def call(*xs, fun=fun, whole=(args, kwargs)):
                new_args, new_kwargs = mapped(whole, lambda x, k: xs[k])
                return fun(*new_args, **new_kwargs)

            yield f"{label} x{factor}", call, [grown(x, factor) for x in arrays]


def differences(label: str, call, arrays) -> tuple[str | None, list[str]]:
    """The digest of a call, and what in its surroundings changes it."""
    given = [jnp.asarray(x) for x in arrays]
    first = evaluated(call, *given)
    if first is None:
        return None, []
    found = [f"{label}: evaluated again" for _ in range(AGAIN) if evaluated(call, *given) != first]
    for layout in LAYOUTS:
        try:
            others = [laid_out(x, layout) for x in arrays]
        except REFUSALS:
            continue
        if evaluated(call, *others) != first:
            found.append(f"{label}: {layout.__name__}")
    return first, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=5, help="one in so many calls of the NumPy API")
    parser.add_argument("--only", default="", help="a part of the labels")
    parser.add_argument("--write", type=Path, help="write the digests to a file")
    parser.add_argument("--against", type=Path, help="compare with the digests of another process")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    start, digests, found = time.time(), {}, []
    with catena.enable_x64(True):
        todo = [row for row in (*primitive_calls(), *product_calls(), *matrix_calls()) if options.only in row[0]]
    for source, wide in ((todo, True), (numpy_calls(options.every), False)):
        with catena.enable_x64(wide):
            for label, call, arrays in source:
                if options.only in label:
                    digests[label], more = differences(label, call, arrays)
                    found += more
                    for line in more:
                        print(line, flush=True)
    if options.against:
        other = json.loads(options.against.read_text())
        changed = [label for label in digests.keys() & other.keys() if digests[label] != other[label]]
        found += [f"{label}: in another process" for label in sorted(changed)]
        print("\n".join(found[-len(changed) :]) if changed else "the other process gives the same bits")
    if options.write:
        options.write.write_text(json.dumps(digests))
    ran = sum(x is not None for x in digests.values())
    print(f"{ran} calls, {len(found)} differences, {time.time() - start:.0f} s")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
