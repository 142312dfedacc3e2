"""Every primitive, evaluated eagerly, beside JAX: at a million elements, and at a thousand.

`make bench-primitives` runs this and prints the ratios, worst first. What a workload computes stands in the
tables below, once for both libraries; results must agree. See ``side_by_side`` for how time is taken.
"""

import functools
import importlib
import math
import sys
from dataclasses import dataclass

import numpy as np
from side_by_side import OURS, THEIRS, Worker, alternate, best, options_of, serve, show

SLOW = 0.5  # seconds; what takes longer is measured once
SIZES = {"1e6": 10**6, "1e3": 10**3}

# ----------------------------------------------------------------------- the workloads, written once


class Inputs:
    """Makes arguments: random, and the same in both libraries."""

    def __init__(self, jax, size: int):
        self.asarray, self.size, self.side = jax.numpy.asarray, size, math.isqrt(size)
        self.rng = np.random.default_rng(0)

    def floats(self, low=-2.0, high=2.0, dtype="float32", shape=None):
        x = self.rng.uniform(low, high, self.size if shape is None else shape)
        return self.asarray(x.astype(np.float32)).astype(dtype)

    def matrix(self, *bounds, dtype="float32"):
        return self.floats(*bounds, dtype=dtype, shape=(self.side, self.side))

    def ints(self, low=-1000, high=1000, dtype="int32", shape=None):
        return self.asarray(self.rng.integers(low, high, self.size if shape is None else shape).astype(dtype))

    def complexes(self, shape=None):
        shape = self.size if shape is None else shape
        parts = self.rng.uniform(0.1, 2.0, shape), self.rng.uniform(0.1, 2.0, shape)
        return self.asarray((parts[0] + 1j * parts[1]).astype(np.complex64))

    def bools(self):
        return self.asarray(self.rng.random(self.size) < 0.5)


# Functions of one float array, by the interval of their arguments.
UNARY = {
    (-2.0, 2.0): "neg abs sign floor ceil round is_finite exp exp2 expm1 sin cos tan atan sinh cosh tanh "
    "asinh logistic square erf erfc cbrt bessel_i0e bessel_i1e stop_gradient",
    (-0.9, 0.9): "asin acos atanh erf_inv",
    (0.1, 3.0): "log log1p sqrt rsqrt reciprocal lgamma digamma",
    (1.1, 3.0): "acosh",
}
HALF = "neg exp tanh log logistic sqrt"
COMPLEX_UNARY = (
    "neg abs real imag conj exp log sin cos tanh sqrt rsqrt expm1 log1p sinh cosh tan asin acos atan asinh "
    "acosh atanh square"
)
INTEGER_UNARY = "neg abs sign population_count clz bitwise_not"
BINARY = {
    (0.5, 2.0): "add sub mul div rem max min pow atan2 nextafter complex eq ne lt le gt ge igamma igammac "
    "igamma_grad_a random_gamma_grad",
    (1.5, 4.0): "zeta",
}
INTEGER_BINARY = (
    "add sub mul div rem max min eq lt bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical "
    "shift_right_arithmetic mulhi"
)
REDUCTIONS = "reduce_sum reduce_prod reduce_max reduce_min"
CUMULATIVE = "cumsum cumprod cummax cummin cumlogsumexp"


def elementwise(lax, make):
    """Elementwise functions: names to calls."""
    calls = {}

    def put(label, name, *args):
        calls[label] = functools.partial(getattr(lax, name), *args)

    for bounds, names in UNARY.items():
        for name in names.split():
            put(name, name, make.floats(*bounds))
    for name in COMPLEX_UNARY.split():
        put(f"{name} c64", name, make.complexes())
    for dtype in ("bfloat16", "float16"):
        for name in HALF.split():
            put(f"{name} {dtype}", name, make.floats(0.1, 2.0, dtype=dtype))
        for name in ("add", "mul", "div", "max", "lt"):
            put(f"{name} {dtype}", name, make.floats(0.1, 2.0, dtype), make.floats(0.1, 2.0, dtype))
    for name in INTEGER_UNARY.split():
        put(f"{name} i32", name, make.ints())
    for bounds, names in BINARY.items():
        for name in names.split():
            put(name, name, make.floats(*bounds), make.floats(*bounds))
    for name in ("add", "mul", "div", "pow", "eq"):
        put(f"{name} c64", name, make.complexes(), make.complexes())
    for name in INTEGER_BINARY.split():
        shifts = name.startswith("shift")
        put(f"{name} i32", name, make.ints(), make.ints(0, 31) if shifts else make.ints(1, 100))
    for name in ("add", "mul", "max", "shift_left"):
        put(f"{name} u8", name, make.ints(0, 100, "uint8"), make.ints(0, 7, "uint8"))
    x, y = make.floats(), make.floats()
    a, b, unit = make.floats(0.5, 2.0), make.floats(0.5, 2.0), make.floats(0.1, 0.9)
    return calls | {
        "add, scalar": lambda: lax.add(x, 1.0),
        "integer_pow 3": lambda: lax.integer_pow(x, 3),
        "integer_pow -2": lambda: lax.integer_pow(x, -2),
        "pow, integer exponents": functools.partial(lax.pow, a, make.ints(-2, 4)),
        "polygamma": functools.partial(lax.polygamma, lax.full_like(x, 2), make.floats(1.0, 3.0)),
        "betainc": lambda: lax.betainc(a, b, unit),
        "bessel_i0e, wide": functools.partial(lax.bessel_i0e, make.floats(-30, 30)),
        "bessel_i1e, wide": functools.partial(lax.bessel_i1e, make.floats(-30, 30)),
        "clamp": lambda: lax.clamp(-1.0, x, 1.0),
        "select": functools.partial(lax.select, make.bools(), x, y),
        "reduce_precision": lambda: lax.reduce_precision(x, 5, 10),
        "round to even": lambda: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        "bitwise_not, bools": functools.partial(lax.bitwise_not, make.bools()),
        "bitwise_and, bools": functools.partial(lax.bitwise_and, make.bools(), make.bools()),
    }


CONVERSIONS = {
    "float32": "int32 bfloat16 float16 bool complex64 float8_e4m3fn",
    "int32": "float32 int8 uint8",
    "bfloat16": "float32",
    "float16": "float32",
    "bool": "float32",
}


def shapes(lax, make):
    """Conversions, and operations that move elements."""
    x, n, half = make.matrix(), make.side, make.side // 2
    line = make.floats()
    calls = {}
    for before, others in CONVERSIONS.items():
        for after in others.split():
            convert = functools.partial(lax.convert_element_type, line.astype(before), after)
            calls[f"convert {before} to {after}"] = convert
    return calls | {
        "bitcast_convert_type": lambda: lax.bitcast_convert_type(x, np.int32),
        "broadcast_in_dim": lambda: lax.broadcast_in_dim(x[0], (n, n), (1,)),
        "full": lambda: lax.full((n, n), 1.5, np.float32),
        "iota": lambda: lax.iota(np.int32, make.size),
        "iota f32": lambda: lax.iota(np.float32, make.size),
        "broadcasted_iota": lambda: lax.broadcasted_iota(np.int32, (n, n), 0),
        "reshape": lambda: lax.reshape(x, (n * n,)),
        "reshape, transposed": lambda: lax.reshape(x, (n * n,), (1, 0)),
        "squeeze": lambda: lax.squeeze(x[None], (0,)),
        "expand_dims": lambda: lax.expand_dims(x, (0,)),
        "transpose": lambda: lax.transpose(x, (1, 0)),
        "rev": lambda: lax.rev(x, (0,)),
        "slice": lambda: lax.slice(x, (0, 1), (n, n), (2, 1)),
        "dynamic_slice": lambda: lax.dynamic_slice(x, (3, 2), (half, half)),
        "dynamic_update_slice": lambda: lax.dynamic_update_slice(x, x[:half], (3, 0)),
        "pad": lambda: lax.pad(x, np.float32(0), ((1, 1, 0), (2, 0, 0))),
        "pad, interior": lambda: lax.pad(x, np.float32(0), ((0, 0, 0), (0, 0, 1))),
        "pad, negative": lambda: lax.pad(x, np.float32(0), ((-1, 0, 0), (0, -2, 0))),
        "concatenate": lambda: lax.concatenate([x, x], 1),
        "stack": lambda: lax.stack([x, x], 1),
        "unstack": lambda: lax.unstack(x[:10], 0),
        "split": lambda: lax.split(x, (half, n - half), 1),
        "tile": lambda: lax.tile(x[:half], (2, 1)),
    }


def indexing(lax, make):
    """Gathers and scatters."""
    x, n = make.matrix(), make.side
    rows = make.ints(0, n, shape=(n,))
    pairs = make.ints(0, n, shape=(make.size // 2, 2))
    row_updates, updates = make.matrix(), make.floats(shape=(make.size // 2,))
    of_rows = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    of_pairs = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0, 1), start_index_map=(0, 1))
    to_rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    to_pairs = lax.ScatterDimensionNumbers((), (0, 1), (0, 1))
    calls = {
        "gather rows": lambda: lax.gather(x, rows[:, None], of_rows, (1, n), mode="clip"),
        "gather pairs": lambda: lax.gather(x, pairs, of_pairs, (1, 1), mode="clip"),
        "gather pairs, fill": lambda: lax.gather(x, pairs, of_pairs, (1, 1), mode="fill"),
    }
    for name in "scatter scatter_add scatter_mul scatter_min scatter_max".split():
        fun = getattr(lax, name)
        # With unique indices the result does not depend on the order.
        unique = make.asarray(np.random.default_rng(1).permutation(n).astype(np.int32))
        calls[f"{name} rows"] = functools.partial(fun, x, unique[:, None], row_updates, to_rows)
        if name != "scatter":
            calls[f"{name} pairs"] = functools.partial(fun, x, pairs, updates, to_pairs)
    return calls


def folds(lax, make):
    """Reductions, cumulative operations and windows."""
    line, x, n = make.floats(0.9, 1.1), make.matrix(0.9, 1.1), make.side
    whole = make.ints(0, 1 << 20, shape=(n, n))
    calls = {}
    for name in REDUCTIONS.split():
        fun = getattr(lax, name)
        calls[name] = functools.partial(fun, x, (0, 1))
        calls[f"{name}, last axis"] = functools.partial(fun, x, (1,))
        calls[f"{name}, first axis"] = functools.partial(fun, x, (0,))
        calls[f"{name} bf16, last axis"] = functools.partial(fun, x.astype("bfloat16"), (1,))
        calls[f"{name} i32, last axis"] = functools.partial(fun, whole, (1,))
    for name in ("reduce_and", "reduce_or", "reduce_xor"):
        calls[f"{name} i32"] = functools.partial(getattr(lax, name), whole, (1,))
        calls[f"{name} bools"] = functools.partial(getattr(lax, name), whole > 5, (0,))
    for name in ("argmax", "argmin"):
        for axis in (0, 1):
            calls[f"{name}, axis {axis}"] = functools.partial(getattr(lax, name), x, axis, np.int32)
    for name in CUMULATIVE.split():
        calls[name] = functools.partial(getattr(lax, name), line)
        calls[f"{name}, last axis"] = functools.partial(getattr(lax, name), x, 1)
        calls[f"{name}, first axis, reverse"] = functools.partial(getattr(lax, name), x, 0, reverse=True)
    image = make.floats(shape=(1, n, n, 1))
    window = ((1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    fold = lambda a, b: a * b + a + b
    zero, small = np.float32(0), make.matrix(-0.01, 0.01)
    return calls | {
        "reduce by a function": lambda: lax.reduce(small, zero, fold, (1,)),
        "reduce_window sum": lambda: lax.reduce_window(image, zero, lax.add, *window),
        "reduce_window max": lambda: lax.reduce_window(image, -np.float32(np.inf), lax.max, *window),
        "reduce_window by a function": lambda: lax.reduce_window(image, zero, fold, *window),
    }


def contractions(lax, make):
    """Products of matrices, convolutions and Fourier transforms."""
    x, n = make.matrix(), make.side
    integers = make.ints(0, 100, shape=(n, n))
    batch = make.floats(shape=(max(make.size // 1024, 1), 32, 32))
    images = make.floats(shape=(max(make.size // 50176, 1), 56, 56, 16))
    kernel = make.floats(shape=(3, 3, 16, 16))
    signal = make.floats(shape=(1, make.size, 1))
    groups = make.asarray(np.array([n // 2, n - n // 2], np.int32))
    conv = functools.partial(lax.conv_general_dilated, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return {
        "dot": lambda: lax.dot(x, x),
        "dot, vector": lambda: lax.dot(x, x[0]),
        "dot bf16": functools.partial(lax.dot, x.astype("bfloat16"), x.astype("bfloat16")),
        "dot i32": lambda: lax.dot(integers, integers),
        "dot_general, batch": lambda: lax.dot_general(batch, batch, (((2,), (1,)), ((0,), (0,)))),
        "ragged_dot": functools.partial(lax.ragged_dot, x, make.floats(shape=(2, n, n)), groups),
        "convolution 3x3": lambda: conv(images, kernel, (1, 1), "SAME"),
        "convolution 3x3, strided": lambda: conv(images, kernel, (2, 2), "VALID"),
        "convolution 1d": lambda: lax.conv_general_dilated(
            signal, kernel[0, :, :1, :1], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
        ),
        "fft": functools.partial(lax.fft, make.complexes((n, n)), "FFT", (n,)),
        "ifft": functools.partial(lax.fft, make.complexes((n, n)), "IFFT", (n,)),
        "rfft": functools.partial(lax.fft, x, "RFFT", (n,)),
        "irfft": functools.partial(lax.fft, make.complexes((n, n)), "IRFFT", (2 * n - 2,)),
        "fft, two axes": functools.partial(lax.fft, make.complexes((n, n)), "FFT", (n, n)),
    }


def orders(lax, make):
    """Sorting and selecting."""
    line, x, keys = make.floats(), make.matrix(), make.ints()
    return {
        "sort": lambda: lax.sort(line),
        "sort rows": lambda: lax.sort(x, dimension=1),
        "sort columns": lambda: lax.sort(x, dimension=0),
        "sort i32": lambda: lax.sort(keys),
        "sort, two operands": lambda: lax.sort((line, keys), num_keys=1),
        "top_k": lambda: lax.top_k(x, 5),
        "approx_max_k": lambda: lax.approx_max_k(x, 5)[0],
    }


def factorizations(lax, make):
    """Linear algebra; square matrices of a quarter of the elements, since it takes long."""
    linalg, n = lax.linalg, max(make.side // 4, 8)
    x = make.floats(shape=(n, n)) + n * make.asarray(np.eye(n, dtype=np.float32))
    symmetric = x + x.T
    many = make.floats(shape=(max(make.size // 256 // 8, 1), 16, 16))
    many = many + 16 * make.asarray(np.eye(16, dtype=np.float32))
    many_symmetric = many + many.transpose(0, 2, 1)
    line = make.floats(1.0, 2.0)
    no_vectors = {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False}
    calls = {
        "cholesky": (linalg.cholesky, symmetric, many_symmetric),
        "eigh": (lambda a: linalg.eigh(a)[1], symmetric, many_symmetric),
        "lu": (linalg.lu, x, many),
        "qr": (lambda a: linalg.qr(a, full_matrices=False)[1], x, many),
        "svd": (lambda a: linalg.svd(a, full_matrices=False, compute_uv=False), x, many),
        "eig": (lambda a: linalg.eig(a, **no_vectors)[0].sum(), x, many),
        "schur": (lambda a: linalg.schur(a)[0].sum(), x, many),
        "hessenberg": (lambda a: linalg.hessenberg(a)[1].sum(), x, many),
        "triangular_solve": (lambda a: linalg.triangular_solve(a, a, left_side=True, lower=True), x, many),
        "tridiagonal": (lambda a: linalg.tridiagonal(a)[1], symmetric, many_symmetric),
        "symmetric_product": (lambda a: linalg.symmetric_product(a, a), x, many),
    }
    named = {name: functools.partial(fun, one) for name, (fun, one, _) in calls.items()}
    batched = {f"{name}, batch": functools.partial(fun, batch) for name, (fun, _, batch) in calls.items()}
    tridiagonal = functools.partial(linalg.tridiagonal_solve, line, 5 * line, line, line[:, None])
    return named | batched | {"tridiagonal_solve": tridiagonal}


def control(lax, make):
    """Loops and branches, over arrays of all sizes."""
    line = make.floats(0.5, 1.0)
    step = lambda carry, x: (carry * 0.5 + x, carry)
    small, double = lambda x: x < np.float32(1e6), lambda x: x * np.float32(2)
    shrink = lambda i, x: x * np.float32(0.9)
    up, down = lambda x: x + 1, lambda x: x - 1
    polynomial = lambda x: x * x + 1
    return {
        "scan": lambda: lax.scan(step, np.float32(0), line),
        "scan of rows": functools.partial(lax.scan, step, make.floats(shape=(make.side,)), make.matrix()),
        "fori_loop": lambda: lax.fori_loop(0, 10, shrink, line),
        "while_loop": lambda: lax.while_loop(small, double, np.float32(1)),
        "cond": lambda: lax.cond(line[0] > 0.2, up, down, line),
        "map": lambda: lax.map(polynomial, line),
        "associative_scan": lambda: lax.associative_scan(lax.add, line),
    }


GROUPS = (elementwise, shapes, indexing, folds, contractions, orders, factorizations, control)


def workloads_of(size: int):
    """Name -> a call without arguments, made group by group."""

    def workloads(jax):
        calls = {}
        for group in GROUPS:
            calls |= group(jax.lax, Inputs(jax, size))
        return calls

    return workloads


# ------------------------------------------------------------------------------ in the parent process


@dataclass
class Row:
    name: str
    ours: float  # seconds
    theirs: float
    difference: str

    @property
    def ratio(self):
        return self.ours / self.theirs

    def __str__(self):
        times = f"{show(self.ours):>10} {show(self.theirs):>10} {self.ratio:>8.2f}"
        return f"{self.name:<34} {times}   {self.difference}"


def difference(ours, theirs) -> str:
    """What tells the results apart, beyond rounding; nothing if they agree."""
    for left, right in zip(ours, theirs, strict=True):
        if left["dtype"] != right["dtype"] or left["shape"] != right["shape"]:
            return f"{left['dtype']}{left['shape']}, theirs {right['dtype']}{right['shape']}"
        coarse = 2e-2 if "bfloat" in left["dtype"] else 4e-3
        x, y = (np.asarray(side["values"], np.float64) for side in (left, right))
        size = np.max(np.abs(y), initial=0, where=np.isfinite(y))
        if not np.allclose(x, y, rtol=coarse, atol=coarse * size, equal_nan=True):
            return "values differ"
    return ""


def measure(options):
    """The rows of all workloads of one size."""
    names = [n for n in workloads_of(1000)(importlib.import_module(OURS)) if options.only in n]
    pythons = ((sys.executable, OURS), (options.jax_python, THEIRS))
    workers = [Worker(python, __file__, library, "--size", options.size) for python, library in pythons]
    try:
        for name in names:
            ask = {"workload": name, "seconds": options.seconds}
            measures = [functools.partial(worker.ask, **ask) for worker in workers]
            ours, theirs = alternate(1, *measures)
            if best(ours) + best(theirs) < SLOW:
                more = alternate(options.rounds - 1, *measures)
                ours, theirs = ours + more[0], theirs + more[1]
            yield Row(name, best(ours), best(theirs), difference(ours[0]["result"], theirs[0]["result"]))
    finally:
        for worker in workers:
            worker.close()


def report(rows, size: str) -> int:
    print(f"\n{f'eager, {size} elements':<34} {OURS:>10} {THEIRS:>10} {'ratio':>8}")
    for row in sorted(rows, key=lambda r: -r.ratio):
        print(row)
    slower = sum(row.ratio > 1 for row in rows)
    middle = math.exp(float(np.median([math.log(r.ratio) for r in rows])))
    print(f"\n{slower} of {len(rows)} slower than {THEIRS}; the median ratio is {middle:.2f}.")
    return slower


def main():
    parser = options_of(__doc__.splitlines()[0], rounds=5, seconds=0.03)
    parser.add_argument("--size", choices=SIZES, default="1e6", help="elements of the operands")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, workloads_of(SIZES[options.size]))
        return
    rows = []
    for row in measure(options):
        print(f"  {row}", file=sys.stderr)
        rows.append(row)
    if report(rows, options.size) and options.strict:
        sys.exit(1)


if __name__ == "__main__":
    main()
