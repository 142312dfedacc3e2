"""``lax`` and ``lax.linalg`` beside JAX: what good calls return, and what bad calls raise.

`make compare-lax` (or `python benchmarks/differential_lax.py --jax-python PYTHON`) makes under both libraries
the bad calls of `tests/data/lax_refusals.txt`, eagerly and traced, and compares the kinds of the exceptions; and
the good calls below, every primitive over dtypes, with scalar and empty operands: values, dtypes, weak types,
shapes. What differs is printed, then how many calls there were. Differences that are meant stand in `EXPLAINED`,
each with its reason. JAX takes about two minutes.
"""

import argparse
import importlib
import pickle
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from answers import difference, explanation, outcome
from side_by_side import run_side_by_side

HELPERS = Path(__file__).resolve().parent.parent / "tests" / "helpers"
sys.path.insert(0, str(HELPERS))
import lax_refusals  # noqa: E402  it imports neither library

# ------------------------------------------------------------------------------------ what is called

FLOATS = "float32 bfloat16 float16 float8_e4m3fn".split()
COMPLEX, INTEGERS, BOOL = ["complex64"], "int32 int8 uint8 uint32 int4".split(), ["bool"]
ALL = FLOATS + COMPLEX + INTEGERS + BOOL
SHAPES = ("3, 2", "", "0, 2")
UNARY = (
    "abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz conj cos cosh digamma erf "
    "erf_inv erfc exp exp2 expm1 floor imag is_finite lgamma log log1p logistic neg population_count real reciprocal "
    "round rsqrt sign sin sinh sqrt square stop_gradient tan tanh"
).split()
BINARY = (
    "add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt igamma igamma_grad_a igammac le lt max min mul "
    "mulhi ne nextafter pow random_gamma_grad rem shift_left shift_right_arithmetic shift_right_logical sub zeta"
).split()
SPECIALS = "jnp.asarray([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5], 'float32')"
REDUCTIONS = "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor".split()
CUMULATIVE = "cumsum cumprod cummax cummin cumlogsumexp".split()
SCATTERS = "scatter scatter_add scatter_sub scatter_mul scatter_min scatter_max".split()
WINDOW = "(2, 2), (1, 2), 'SAME'"

# Expressions in {x} and {y}, arrays of one dtype of shape (3, 4); {s} is a scalar of it.
OF_ARRAYS = """
broadcast({x}, (2,))            broadcast_in_dim({x}, (2, 3, 4), (1, 2))  reshape({x}, (4, 3))
reshape({x}, (12,), (1, 0))
collapse({x}, 0)                expand_dims({x}, (0, -1))     squeeze({x}[None], (0,))         transpose({x}, (1, 0))
rev({x}, (0,))                  pad({x}, {s}, ((1, -1, 0), (0, 1, 2)))    concatenate([{x}, {y}], 1)
stack([{x}, {y}], 1)            unstack({x}, 1)               split({x}, (1, 3), 1)            tile({x}, (2, 1))
slice({x}, (0, 1), (3, 4), (2, 1))      slice_in_dim({x}, 1, None, 2, 1)  index_in_dim({x}, -1, 1)
dynamic_slice({x}, (1, 5), (2, 2))      dynamic_slice_in_dim({x}, -1, 2)  dynamic_index_in_dim({x}, 1, 1, False)
dynamic_update_slice({x}, {y}[:2], (2, 0))                    dynamic_update_index_in_dim({x}, {y}[0], 1, 0)
select({x} == {y}, {x}, {y})    select_n(jnp.asarray(1), {x}, {y})        clamp({s}, {x}, {s})
sort({x})                       sort({x}, 0)                  sort(({x}, {y}), num_keys=2)     sort_key_val({x}, {y})
top_k({x}, 2)                   argmax({x}, 1, np.int32)      argmin({x}, 0, np.int8)
dot({x}, {y}.T)                 dot_general({x}, {y}, (((1,), (1,)), ((0,), (0,))))
dot({x}, {y}.T, preferred_element_type=np.float32)
batch_matmul({x}[None], {y}.T[None])    full_like({x}, 1)     full({s}.shape, {s})             integer_pow({x}, 3)
gather({x}, jnp.asarray([[2], [7]]), G((1,), (0,), (0,)), (1, 4), mode='clip')
gather({x}, jnp.asarray([[2], [7]]), G((1,), (0,), (0,)), (1, 4), mode='fill')
reduce_window({x}, {s}, lax.max, (2, 2), (1, 1), 'VALID')     reduce({x}, {s}, lambda a, b: a, (0,))
conv({x}[None, None], {y}[None, None, :2, :2], (1, 1), 'SAME')            optimization_barrier(({x}, {y}))
associative_scan(lax.add, {x})  map(lambda r: r[0], {x})      scan(lambda c, r: (c, r[1]), {s}, {x})
cond(True, lambda a: a, lambda a: a, {x})  switch(1, [lambda a: a, lambda a: a[::-1]], {x})
while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1][::-1]), (0, {x}))  fori_loop(0, 3, lambda i, a: a[::-1], {x})
ragged_dot({x}, {y}.T[None], jnp.asarray([3]))                bitcast_convert_type({x}, {x}.dtype)
"""
OF_FLOATS = """
reduce_precision({x}, 5, 3)     betainc({x}, {y}, {x} / 2)    polygamma(full_like({x}, 2), {x})  integer_pow({x}, -2)
approx_max_k({x}, 2)            approx_min_k({x}, 1)          nextafter({x}, {y})              pow({x}, 2)
fft({x}, 'RFFT', (4,))   fft({x}.astype('complex64'), 'FFT', (3, 4))   fft({x}.astype('complex64'), 'IRFFT', (6,))
linalg.cholesky({x} @ {x}.T + 9 * np.eye(3, dtype='f'))       linalg.eigh({x} @ {x}.T)[1]
linalg.svd({x}, compute_uv=False)
abs(linalg.qr({x}, full_matrices=False)[1])   linalg.lu({x})   linalg.hessenberg({x} @ {x}.T)[0].shape
linalg.triangular_solve({x}[:, :3] + np.eye(3, dtype='f'), {y}[:, :3], left_side=True, lower=True)
linalg.tridiagonal_solve({x}[0], {y}[0] + 5, {x}[1], {y}.T)   linalg.symmetric_product({x}, {x} @ {x}.T, beta=0.5)
linalg.tridiagonal({x} @ {x}.T)[1]      linalg.lu_pivots_to_permutation(jnp.asarray([2, 1]), 3)
linalg.householder_product({x}.T, {y}[0, :3])   linalg.schur({x} @ {x}.T)[0].shape
linalg.eig({x} @ {x}.T)[1].dtype
conv_transpose({x}[None, ..., None], {y}[:2, :2, None, None], (2, 2), 'SAME')
conv_general_dilated_patches({x}[None, None], (2, 2), (1, 1), 'VALID')
conv_general_dilated({x}[None, None], {y}[None, None, :2, :2], (2, 1), ((1, 0), (0, 2)), (1, 2), (2, 1))
custom_root(lambda v: v * v - 2.0, 1.0, lambda g, v: v, lambda g, b: b)
custom_linear_solve(lambda v: 2 * v, {x}, lambda mv, b: b / 2)
"""
# Without arrays, or of Python scalars, whose results are weak.
ALONE = """
iota(np.int32, 4)               iota(np.float32, 0)           broadcasted_iota(np.uint8, (2, 3), 1)  full((2, 0), 1)
full((2,), 1.5)   full((), True)   empty((2,), np.float32)   broadcast_shapes((2, 1), (1, 3))
add(1, 2)                       mul(2.0, 3.0)                 sin(1.0)                         eq(1, 2)
max(1.0, 2.0)   select(True, 1.0, 2.0)   convert_element_type(1, np.float32)   convert_element_type(1.5, int)
neg(1)                          exp(1j)                       integer_pow(2, 3)                clamp(0, 5, 3)
broadcast(1.0, (2,))            reshape(1.0, (1, 1))          full_like(1.0, 2)                stop_gradient(1.0)
bitwise_not(True)   shift_left(1, 3)   reduce_sum(jnp.asarray(1.0), ())
cond(True, lambda x: x, lambda x: -x, 1.0)
rng_bit_generator(jnp.zeros(4, np.uint32), (3,))              padtype_to_pads((8, 8), (3, 3), (2, 2), 'SAME')
conv_shape_tuple((1, 2, 9), (5, 2, 3), (2,), 'VALID')         associative_scan(lax.add, jnp.arange(5.), reverse=True)
scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.), reverse=True)  scan(lambda c, _: (c * 2, None), 1, None, length=3)
while_loop(lambda x: x < 10, lambda x: x * 2, 1)              fori_loop(0, 5, lambda i, x: x + i, 0)
"""


def array(dtype: str, shape: str = "3, 4", low: float = 0.3) -> str:
    return f"a({dtype!r}, {low}, {shape})" if shape else f"a({dtype!r}, {low})"


def expressions(table: str) -> list[str]:
    return [e for line in table.splitlines() for e in re.split(r"\s{2,}", line.strip()) if e]


def good_calls() -> list[str]:
    """Calls over dtypes and shapes; those that one library does not admit, neither must the other."""
    calls = expressions(ALONE)
    for dtype in ALL:
        for shape in SHAPES:
            x, y = array(dtype, shape), array(dtype, shape, 0.6)
            calls += [f"{name}({x})" for name in UNARY]
            calls += [f"{name}({x}, {y})" for name in BINARY]
            calls += [f"convert_element_type({x}, {other!r})" for other in ALL]
        x, y, s = array(dtype), array(dtype, low=0.6), array(dtype, "")
        calls += [f"{name}({x}, (1,))" for name in REDUCTIONS] + [f"{name}({x}, (0, 1))" for name in REDUCTIONS]
        calls += [f"{name}({array(dtype, '0, 2')}, (0,))" for name in REDUCTIONS]
        calls += [f"{name}({x}, 1)" for name in CUMULATIVE] + [f"{name}({x}, 0, reverse=True)" for name in CUMULATIVE]
        numbers = "S((1,), (0,), (0,))"
        calls += [f"{name}({x}, jnp.asarray([[2], [0], [2]]), {y}, {numbers})" for name in SCATTERS]
        calls += [f"{name}({x}, jnp.asarray([[7], [0], [1]]), {y}, {numbers}, mode='clip')" for name in SCATTERS]
        calls += [e.format(x=x, y=y, s=s) for e in expressions(OF_ARRAYS)]
    for name in UNARY:
        calls.append(f"{name}({SPECIALS})")
    for name in BINARY:
        calls.append(f"{name}({SPECIALS}[:, None], {SPECIALS}[None])")
    x, y, s = array("float32"), array("float32", low=0.6), array("float32", "")
    return calls + [e.format(x=x, y=y, s=s) for e in expressions(OF_FLOATS)]


# ----------------------------------------------------------------------------- in the worker process


def run(library: str, calls_file: str, results_file: str) -> None:
    warnings.simplefilter("ignore")
    jax = importlib.import_module(library)
    jnp, results = jax.numpy, {}
    names = lax_refusals.names(jax) | {"a": lambda d, low, *shape: _ramp(jnp, d, low, shape)}
    for kind, call in pickle.loads(Path(calls_file).read_bytes()):
        code = compile(call, "<call>", "eval")
        if kind == "traced":
            results[kind, call] = outcome(jax, lambda code=code: jax.eval_shape(lambda: eval(code, names)) and None)
        else:
            results[kind, call] = outcome(jax, lambda code=code: eval(code, names))
    Path(results_file).write_bytes(pickle.dumps(results))


def _ramp(jnp, dtype: str, low: float, shape: tuple):
    """Numbers that differ, in (0, 2) for floats and small for integers."""
    count = int(np.prod(shape))
    values = low + np.linspace(0, 1, count) if dtype[0] in "fbc" and dtype != "bool" else np.arange(count) % 7 + 1
    if dtype == "complex64":
        values = values * (1 - 0.5j)
    values = values % 2 if dtype == "bool" else values
    return jnp.asarray(np.asarray(values).reshape(shape)).astype(dtype)


# ------------------------------------------------------------------------------ in the parent process

REFUSED = r"^(Type|Value|Name|Runtime)Error: .* \| "  # ours is an error that says what does not fit
STUMBLES = (
    r"(Index|Assertion|ZeroDivision|Overflow|Attribute|MLIR|JaxRuntime|NotImplemented|Key)Error|.*(Cannot lower"
    r"|safe_map|safe_zip|__len__|not enough values|Too few leaves|len\(\) of unsized)"
)
# Pattern of a call, and of "ours | theirs" -> why they differ. The first that fits explains.
EXPLAINED = [
    ("", REFUSED + STUMBLES, "JAX stumbles over it somewhere within"),
    (
        "^traced linalg",
        r"^NotImplementedError: .* does not accept dtype .* \| returns",
        "JAX refuses it when it compiles",
    ),
    ("^traced", REFUSED + "returns", "JAX refuses it only when it compiles or computes, or never"),
    (
        r"slice\(f\(4\), \(-1,\)|ppermute|psum_scatter|ormqr|length=-1",
        REFUSED + "returns",
        "JAX takes it for something else",
    ),
    (r"unroll=1.5|f\(2, 3\), i\(\), lax.add", REFUSED + "returns", "JAX takes it where it makes no difference"),
    (
        r"traced reduce_window\(f\(4\), i\(\)",
        "",
        "a known zero is one in every dtype; JAX's, when traced, is not known",
    ),
    (r"linalg.(cholesky|eigh)\(f\(2, 3\)", "", "JAX's sum of the matrix with its transpose is what fails"),
    ("random_gamma_grad", "ValueError", "JAX's is not checked as the other elementwise functions are"),
    (r"dot\('x'", "TypeError.*ValueError", "no array is a TypeError everywhere"),
    ("batch_size=-1", "", "JAX complains of its own reshape"),
    (r"psum\(f\(2\), 3\)", "", "a number is taken for a name that is not bound"),
    ("fft.*2, 2, 2, 2", "^returns", "any number of axes is transformed, not only three"),
    ("'float8_e4m3fn'", "Error|nan", "JAX cannot compile it"),
    ("igammac.*'float8_e4m3fn'", "", "JAX computes in eight bits"),
    ("'int4'", r"\| (TypeError|JaxRuntimeError)", "JAX lacks it for integers of four bits"),
    ("mulhi.*'int4'", "", "JAX has zeros where the product does not fit into four bits"),
    ("dot.*complex64.*preferred_element_type", "must be complex", "JAX drops the imaginary parts"),
    (
        r"^good (igamma\w*|random_gamma_grad|zeta)\(jnp",
        "",
        "limits at poles and zeros, where JAX's rows contradict one another",
    ),
    (r"^good (stop_gradient|custom_root)", "weak", "JAX hands Python scalars back as they are"),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", default=".venv-jax/bin/python", help="a Python that has JAX")
    parser.add_argument("--only", default="", help="only calls that contain this")
    parser.add_argument("--part", choices=("bad", "good"), help="only the bad or the good calls")
    parser.add_argument("--show-explained", action="store_true", help="print the calls that are explained, too")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(*options.run)
        return 0
    bad = [call for *_, call in lax_refusals.calls() if options.only in call and options.part != "good"]
    calls = [(kind, call) for call in bad for kind in ("eager", "traced")]
    if options.part != "bad":
        calls += [("good", call) for call in dict.fromkeys(good_calls()) if options.only in call]
    results = run_side_by_side(__file__, {"catena": sys.executable, "jax": options.jax_python}, calls)
    unexplained, explained = 0, {}
    for key in calls:
        what = difference(results["catena"][key], results["jax"][key])
        why = what and explanation(EXPLAINED, f"{key[0]} {key[1]}", what)
        if why:
            explained.setdefault(why, []).append(key[1])
        elif what:
            unexplained += 1
            print(f"  {key[0]} {key[1]}\n    {what}")
    for why, which in explained.items():
        print(f"explained, {len(which)} times: {why}")
        if options.show_explained:
            print("".join(f"    {call}\n" for call in which), end="")
    counts = f"{len(bad)} bad calls, eager and traced, and {len(calls) - 2 * len(bad)} good ones"
    print(f"{counts}: {unexplained} unexplained differences, {sum(map(len, explained.values()))} explained")
    return bool(unexplained)


if __name__ == "__main__":
    sys.exit(main())
