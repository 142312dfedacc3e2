"""Extents: every public function at sizes 0 and 1, with 40 axes, and with more than 2**31 elements.

    python benchmarks/extents.py [--part axes|empty|large] [--only NAME] [--every N]

``axes``: each example of `tests/helpers/numpy_examples.py` with arrays that have axes of size 1 in front, as many
as make 40, against the same call with four of them: the same numbers, eager and compiled, wherever four give any. The
primitives of `tests/rules` are mapped over such axes one by one, and samplers draw numbers of such shapes. ``empty``:
each array of an example in turn, and all at once, with each of its axes of size 0 or 1: eager and compiled calls agree,
in their errors too. ``large``: functions of vectors of 2**31 + 8 bytes, in a process each that may take 10 GB: right,
or an error that says what does not fit. What is neither is printed, and counted at the end. `make extents` calls this.
"""

import argparse
import resource
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

import catena as jax  # noqa: E402
import catena.numpy as jnp  # noqa: E402
from catena.core.array import make_array  # noqa: E402

AXES, FEW = 40, 4
# Whose results are arbitrary, or that know arrays of a fixed number of axes, files, text or Python functions.
LEFT_OUT = frozenset(
    "save savez load fromfile frombuffer from_dlpack fromiter fromstring fromfunction frompyfunc vectorize empty "
    "empty_like get_printoptions set_printoptions printoptions array_repr array_str einsum_path apply_along_axis "
    "apply_over_axes piecewise iterable isscalar result_type linalg.eig".split()
)
# Whose results depend on the number of axes, on which axis is the third, or grow along all of them.
BY_AXES = frozenset("argwhere nonzero where shape ndim dsplit pad".split())
OURS = (TypeError, ValueError, IndexError, OverflowError, NotImplementedError, ZeroDivisionError)
FOREIGN = ("only supports up to", "maximum supported dimension", "maximum number of dimension", "out of bounds for int")


# ----------------------------------------------------------------------------------------------------
# What a call gives, and whether two calls give the same


def outcome(function):
    """The leaves of the result as NumPy arrays, or the exception."""
    try:
        return [_plain(x) for x in jax.tree.leaves(function())]
    except Exception as error:  # whatever is raised is what is compared
        return error


def _plain(x) -> np.ndarray:
    if hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    x = np.asarray(x)
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def difference(first, second, shapes: bool = True) -> str | None:
    """How two outcomes differ, in words; with ``shapes`` unset only their elements count."""
    errors = [isinstance(o, Exception) for o in (first, second)]
    if any(errors):
        same = all(errors) and (
            type(first) is type(second) or all(isinstance(o, ValueError | TypeError) for o in (first, second))
        )
        return None if same else f"{_said(first)} | {_said(second)}"
    if len(first) != len(second):
        return f"{len(first)} | {len(second)} results"
    for a, b in zip(first, second, strict=True):
        if a.dtype != b.dtype or (shapes and a.shape != b.shape) or a.size != b.size:
            return f"{a.dtype}{list(a.shape)} | {b.dtype}{list(b.shape)}"
        if not close(a.ravel(), b.ravel()):
            return f"{a.ravel()[:4]} | {b.ravel()[:4]}"
    return None


def close(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    tolerance = 1e-2 if a.dtype.itemsize <= 2 else 1e-4
    return bool(np.allclose(a, b, tolerance, tolerance, equal_nan=True))


def _said(result) -> str:
    if isinstance(result, Exception):
        return f"{type(result).__name__}: {str(result).splitlines()[0][:110] if str(result) else ''}"
    return ", ".join(f"{x.dtype}[{x.ndim} axes, {x.size}]" for x in result)


def is_unclear(result) -> bool:
    """Whether an outcome is an error in the words of NumPy's machinery, or of a kind that says nothing."""
    if not isinstance(result, Exception):
        return False
    said = isinstance(result, OURS) or "incompatible numbers of samples" in str(
        result
    )  # cov's, as NumPy and JAX have it
    return not said or any(words in str(result) for words in FOREIGN)


# ----------------------------------------------------------------------------------------------------
# The calls


def numpy_calls() -> Iterator[tuple]:
    """``(name, function, args, kwargs)`` for the examples of the NumPy API."""
    from numpy_examples import EXAMPLES
    from numpy_variations import function_of

    for name, examples in EXAMPLES.items():
        if name not in LEFT_OUT:
            for args, kwargs in examples:
                yield name, function_of(jnp, name), args, kwargs


def eager_and_compiled(function, args, kwargs):
    """The outcomes of a call and of the same call compiled, in which all NumPy arrays are arguments."""
    from numpy_variations import mapped

    found: list = []
    mapped((args, kwargs), lambda x, _: found.append(x))

    def call(*arrays):
        new_args, new_kwargs = mapped((args, kwargs), lambda _, k: arrays[k])
        return function(*new_args, **new_kwargs)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return outcome(lambda: call(*map(jnp.asarray, found))), outcome(lambda: jax.jit(call)(*found))


_CONCRETE = ("concrete", "abstract tracer", "Traced", "static", "Abstract", "jit-compil", "hashable", "boolean indices")


def refused_when_traced(error) -> bool:
    """Whether a compiled call is refused for what tracing cannot know."""
    said = f"{type(error)} {error}" if isinstance(error, Exception) else error if isinstance(error, str) else ""
    return any(words in said for words in _CONCRETE)


def many_axes(only: str) -> Iterator[tuple[str, str]]:
    """What is wrong with 40 axes."""
    yield from numpy_with_axes(only)
    yield from primitives_with_axes(only)
    yield from samplers_with_axes(only)


def in_front(args, kwargs, rank: int):
    from numpy_variations import mapped

    return mapped((args, kwargs), lambda x, _: x.reshape((1,) * (rank - x.ndim) + x.shape))


def numpy_with_axes(only: str):
    for name, function, args, kwargs in numpy_calls():
        if only not in name or name in BY_AXES:
            continue
        few = eager_and_compiled(function, *in_front(args, kwargs, FEW))
        many = eager_and_compiled(function, *in_front(args, kwargs, AXES))
        for how, a, b in zip(("eager", "jit"), few, many, strict=True):
            if (what := _compared(a, b)) is not None:
                yield f"{name}, {how}", what


def _compared(few, many) -> str | None:
    if isinstance(many, Exception) and str(many).startswith("arrays have at most 64 axes"):
        return None
    if (
        is_unclear(many)
        and not refused_when_traced(many)
        and not (isinstance(few, Exception) and type(few) is type(many))
    ):
        return f"{_said(few)} | {_said(many)}"
    return difference(few, many, shapes=False)


def primitives_with_axes(only: str):
    import structured_cases  # noqa: F401  it fills the table
    from rule_cases import CASES

    for name, case in CASES.items():
        if only not in name:
            continue
        dtype = "float32" if "float32" in case.dtypes else case.dtypes[-1]
        args = case.make(np.random.default_rng(7), dtype)
        if not args or jax.tree.structure(args) != jax.tree.structure((0,) * len(args)):
            continue
        rank = max([np.ndim(x) for x in args], default=0)
        plain = outcome(lambda: case.fun(*args))
        if isinstance(plain, Exception):
            continue
        mapped, count = case.fun, AXES - rank
        for _ in range(count):
            mapped = jax.vmap(mapped)
        spread = [np.reshape(x, (1,) * count + np.shape(x)) for x in args]
        for how, fun in (("eager", mapped), ("jit", jax.jit(mapped))):
            if (what := _compared(plain, outcome(lambda fun=fun: fun(*spread)))) is not None:
                yield f"primitive {name}, {how}", what


_SAMPLERS = """
ball(key, 2, shape=S) bernoulli(key, 0.3, S) beta(key, 2.0, 3.0, S) binomial(key, 9.0, 0.3, S) bits(key, S)
categorical(key, jnp.zeros(3), shape=S) cauchy(key, S) chisquare(key, 3.0, shape=S) choice(key, 9, S)
dirichlet(key, jnp.ones(3), S) double_sided_maxwell(key, 0.5, 2.0, S) exponential(key, S) f(key, 3.0, 5.0, shape=S)
gamma(key, 2.5, S) generalized_normal(key, 1.5, S) geometric(key, 0.3, S) gumbel(key, S) laplace(key, S)
loggamma(key, 2.5, S) logistic(key, S) lognormal(key, 0.5, S) maxwell(key, S) normal(key, S) normal(key, S, 'complex64')
multivariate_normal(key, jnp.zeros(2), jnp.eye(2), S) multinomial(key, 9.0, jnp.ones(3) / 3, shape=S)
orthogonal(key, 2, S) pareto(key, 3.0, S) poisson(key, 9.0, S) uniform(key, S) uniform(key, S, 'bfloat16')
rademacher(key, S) randint(key, S, 0, 9) rayleigh(key, 1.5, S) t(key, 3.0, S) triangular(key, -1.0, 0.3, 2.0, S)
truncated_normal(key, -1.0, 1.0, S) wald(key, 1.5, S) weibull_min(key, 2.0, 1.5, S) split(key, S)
permutation(key, jnp.arange(12).reshape(S + (4,)), -1) key_data(split(key, S))
permutation(key, jnp.arange(12).reshape(S + (4,)), -1, independent=True)"""


def samplers_with_axes(only: str):
    import re

    for text in re.findall(r"\w+\(.*?\)(?=\s+\w+\(|\s*$)", _SAMPLERS):
        if only not in text:
            continue

        def draw(key, rank, text=text):
            return eval(
                text,
                {
                    **{n: getattr(jax.random, n) for n in jax.random.__all__},
                    "jnp": jnp,
                    "key": key,
                    "S": (1,) * (rank - 1) + (3,),
                },
            )

        for impl in ("threefry2x32", "rbg"):
            key = jax.random.key(7, impl=impl)
            few = outcome(lambda: draw(key, FEW))
            for how, f in (("eager", draw), ("jit", jax.jit(draw, static_argnums=1))):
                many = outcome(lambda f=f: f(key, AXES - 2))
                if (what := _compared(few, many)) is not None:
                    yield f"random.{text}, {impl}, {how}", what


# ----------------------------------------------------------------------------------------------------
# Sizes 0 and 1


def empty(only: str) -> Iterator[tuple[str, str]]:
    """What is wrong with axes of size 0 and 1: eager and compiled calls differ, or an error is not clear."""
    for name, function, args, kwargs in numpy_calls():
        if only not in name or name in ("shape", "ndim", "size"):  # Python integers, which jit makes arrays
            continue
        for label, new_args, new_kwargs in _cut(args, kwargs):
            eager, compiled = eager_and_compiled(function, new_args, new_kwargs)
            if refused_when_traced(compiled):
                compiled = eager
            what = difference(eager, compiled)
            if what is None and is_unclear(eager):
                what = _said(eager)
            if what is not None:
                yield f"{name}, {label}", what


def _cut(args, kwargs) -> Iterator[tuple]:
    """An example with axes of size 0 or 1: of one array after the other, and of all."""
    from numpy_variations import mapped, only

    shapes: list = []
    mapped((args, kwargs), lambda x, _: shapes.append(x.shape))
    for n in (0, 1):
        for axis in range(max(map(len, shapes), default=0)):
            cut = lambda x, axis=axis, n=n: x[(slice(None),) * axis + (slice(n),)] if axis < x.ndim else x  # noqa: E731
            for k in range(len(shapes)):
                yield f"axis {axis} of array {k} of size {n}", *mapped((args, kwargs), only(k, cut))
            yield f"axis {axis} of all of size {n}", *mapped((args, kwargs), lambda x, _, cut=cut: cut(x))


# ----------------------------------------------------------------------------------------------------
# More than 2**31 elements

BYTES = 10 << 30  # of address space for each process
SECONDS = 300  # for each expression
LARGE = ROOT / "benchmarks" / "large_arrays.txt"


def large(only: str) -> Iterator[tuple[str, str]]:
    """What is wrong with more than 2**31 elements: each expression eagerly and compiled, in a process of its own."""
    for line in LARGE.read_text().splitlines():
        if line.startswith("#"):
            continue
        text, _, results = line.partition(" -> ")
        eager, _, compiled = results.partition(" // ")
        for how, expected in (("eager", eager), ("jit", compiled or eager)):
            if only in text:
                found = _in_own_process(text, how)
                if found != expected and not (how == "jit" and refused_when_traced(found)):
                    yield f"{text}, {how}", f"{found}, expected {expected}"


def _in_own_process(text: str, how: str) -> str:
    command = [sys.executable, __file__, "--one", text, "--how", how]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"no result after {SECONDS} s"
    lines = done.stdout.strip().splitlines()
    return lines[-1] if lines else f"ended with status {done.returncode}: {done.stderr[-200:]}"


def one_large(text: str, how: str) -> str:
    """The result of an expression of the table, printed like the expected one."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    warnings.simplefilter("ignore")
    half, n = 2**31, 2**31 + 8
    values = np.zeros(n, np.int8)
    values[-3], values[2], values[half] = 9, 4, 1
    names = {"jax": jax, "jnp": jnp, "lax": jax.lax, "np": np, "B": half, "n": n, "key": jax.random.key(0)}
    code = compile(text, "<expression>", "eval")

    def call(x, i):
        return eval(code, names | {"x": x, "i": i})

    x = make_array(values)  # without a copy: pages of zeros that nobody touches cost no memory
    try:
        found = (jax.jit(call) if how == "jit" else call)(x, jnp.int32(-3))
    except Exception as error:
        clear = (OverflowError, ValueError, MemoryError, jax.errors.CompileError)
        kinds = [kind for kind in clear if isinstance(error, kind)]
        return kinds[0].__name__ if kinds and str(error) else f"{type(error).__name__}: {error}".splitlines()[0]
    leaves = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(found)]
    return str(leaves[0] if len(leaves) == 1 else leaves)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("axes", "empty", "large"), action="append")
    parser.add_argument("--only", default="")
    parser.add_argument("--one", help="an expression of the table of large arrays: print its result")
    parser.add_argument("--how", default="eager")
    options = parser.parse_args()
    if options.one:
        print(one_large(options.one, options.how))
        sys.exit(0)
    wrong = 0
    for part in options.part or ("axes", "empty", "large"):
        for label, what in {"axes": many_axes, "empty": empty, "large": large}[part](options.only):
            wrong += 1
            print(f"{part}: {label}: {what}", flush=True)
    print(f"{wrong} wrong")
    sys.exit(bool(wrong))
