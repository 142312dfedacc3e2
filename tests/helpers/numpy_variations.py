"""Thousands of calls of the NumPy API, made from the examples by varying what goes wrong first.

Each example of `numpy_examples.py` is called as it is, then with other dtypes, mixed dtypes, Python scalars, 0-d,
empty, size-1, long and reversed arrays, special values, extreme integers, and other axes and dtypes by name. The
calls are the same in every run. `numpy/test_differential.py` compares them with NumPy, and eager with compiled;
`benchmarks/differential_numpy.py` compares them with JAX.
"""

import inspect
import pickle
from collections.abc import Iterator

import ml_dtypes
import numpy as np

import catena.numpy as jnp
from numpy_examples import EXAMPLES

DTYPES = ("bool", "int8", "uint8", "int32", "uint32", "float16", ml_dtypes.bfloat16, "float32", "complex64")
SPECIAL = np.array([np.nan, -0.0, np.inf, -np.inf, 1e-45, 3e38, -1.5], np.float32)
EXTREME = np.array([2**31 - 1, -(2**31), -1, 0, 3], np.int32)
AXES = (0, -1, 1, 7, None, (0,), (0, -1), 1.5)
# Functions of files, printing and Python functions; and those whose results are arbitrary.
LEFT_OUT = frozenset(
    "save savez load fromfile frombuffer from_dlpack fromiter fromstring fromfunction frompyfunc vectorize empty "
    "empty_like get_printoptions set_printoptions printoptions array_repr array_str einsum_path apply_along_axis "
    "apply_over_axes mask_indices piecewise iterable ndim size shape isscalar linalg.eig linalg.svd linalg.qr".split()
)

SIZES = frozenset("arange bincount repeat".split())  # their integers say how long results are


def function_of(namespace, name: str):
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


def calls() -> Iterator[tuple]:
    """``(label, name, args, kwargs)`` for every call."""
    for name, examples in EXAMPLES.items():
        if name in LEFT_OUT:
            continue
        names = set(inspect.signature(function_of(jnp, name)).parameters)
        for i, (args, kwargs) in enumerate(examples):
            seen = set()
            for label, new_args, new_kwargs in variations(args, kwargs, names):
                if name in SIZES and label == "extreme integers":  # gigabytes
                    continue
                key = pickle.dumps((new_args, new_kwargs))
                if key not in seen:
                    seen.add(key)
                    yield f"{name}, example {i}, {label}", name, new_args, new_kwargs


def variations(args, kwargs, names) -> Iterator[tuple]:
    whole = (args, kwargs)
    yield "as it is", args, kwargs
    for dtype in DTYPES:
        yield f"{np.dtype(dtype)}", *mapped(whole, lambda x, _, d=dtype: converted(x, d))
    count = number_of_arrays(whole)
    for k in range(count):
        for dtype in ("bool", "uint8", "int32", "float16", "complex64"):
            yield f"array {k} of {dtype}", *mapped(whole, only(k, lambda x, d=dtype: converted(x, d)))
        yield f"array {k} a Python scalar", *mapped(whole, only(k, lambda x: x.ravel()[:1].sum().item()))
        yield f"array {k} of rank 0", *mapped(whole, only(k, lambda x: x.ravel()[:1].sum()[...]))
        yield f"array {k} empty", *mapped(whole, only(k, lambda x: x[:0] if x.ndim else x))
        yield f"array {k} of size 1", *mapped(whole, only(k, lambda x: x[:1] if x.ndim else x))
        yield f"array {k} with an axis more", *mapped(whole, only(k, lambda x: x[None]))
        yield f"array {k} backwards", *mapped(whole, only(k, lambda x: x[::-1].copy() if x.ndim else x))
        yield f"array {k} a list", *mapped(whole, only(k, lambda x: x.tolist()))
        yield f"array {k} text", *mapped(whole, only(k, lambda x: "text"))
    yield "all empty", *mapped(whole, lambda x, _: x[:0] if x.ndim else x)
    yield "special values", *mapped(whole, lambda x, k: filled(x, np.roll(SPECIAL, k)))
    yield "negative", *mapped(whole, lambda x, _: x if x.dtype == bool or x.dtype.kind == "u" else (-x).astype(x.dtype))
    yield "extreme integers", *mapped(whole, lambda x, k: filled(x.real.astype(np.int32), np.roll(EXTREME, k)))
    for axis in AXES if "axis" in names else ():
        yield f"axis={axis}", args, {**kwargs, "axis": axis}
        if "keepdims" in names:
            yield f"axis={axis}, keepdims", args, {**kwargs, "axis": axis, "keepdims": True}
    for dtype in ("int8", "float16", "complex64", "float64", "nonsense") if "dtype" in names else ():
        yield f"dtype={dtype}", args, {**kwargs, "dtype": dtype}
    for parameter, values in OTHERS.items():
        for value in values if parameter in names else ():
            yield f"{parameter}={value}", args, {**kwargs, parameter: value}


OTHERS = {
    "ddof": (1, 5), "descending": (True,), "stable": (False,), "side": ("right", "left", "middle"),
    "mode": ("edge", "reflect", "wrap", "clip", "fill", "same", "valid", "nonsense"), "k": (1, -2), "n": (2, 0, -1, 7),
    "method": ("lower", "higher", "nearest", "midpoint", "linear", "nonsense"), "indexing": ("ij", "xy"),
    "return_counts": (True,), "return_inverse": (True,), "return_index": (True,), "size": (2, 9), "ord": (1, np.inf, "fro"),
    "norm": ("ortho", "forward", "nonsense"), "equal_nan": (True, False), "bins": (3,), "density": (True,),
    "unique_indices": (True,), "endpoint": (False,), "retstep": (True,), "offset": (1, -1, 9), "nan": (2.0,),
    "kind": ("stable", "quicksort"), "order": ("F", "C"), "rowvar": (False,), "bias": (True,), "invert": (True,),
    "assume_unique": (True,), "full_matrices": (False,), "UPLO": ("U",), "hermitian": (True,), "decimals": (2, -1),
    "right": (True,), "fill_value": (7,), "increasing": (True,), "trim": ("f", "b"), "correction": (1,), "copy": (False,),
    "initial": (2,), "upper": (True,),
}  # fmt: skip


def number_of_arrays(tree) -> int:
    if isinstance(tree, np.ndarray):
        return 1
    if isinstance(tree, dict):
        tree = list(tree.values())
    return sum(map(number_of_arrays, tree)) if isinstance(tree, list | tuple) else 0


def mapped(whole, fun) -> tuple:
    """Arguments with ``fun(array, k)`` in place of the ``k``-th array."""
    counter = iter(range(1000))

    def walk(x):
        if isinstance(x, np.ndarray):
            return fun(x, next(counter))
        if isinstance(x, dict):
            return {key: walk(v) for key, v in x.items()}
        return type(x)(map(walk, x)) if type(x) in (list, tuple) else x

    return walk(whole)


def only(k: int, fun):
    return lambda x, i: fun(x) if i == k else x


def converted(x, dtype):
    """The numbers in another dtype: an eighth or so of a float becomes a small integer where it must."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iub" and x.dtype.kind in "fc":
        x = np.ceil(np.abs(x * 2))
    return np.asarray(x.real if dtype.kind != "c" else x).astype(dtype)


def filled(x, values):
    """Numbers of the same dtype taken in turn from ``values``; other kinds of arrays stay."""
    if x.dtype.kind not in "fi" or x.dtype.kind != values.dtype.kind:
        return x
    return np.resize(values, x.shape).astype(x.dtype)
