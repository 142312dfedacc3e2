"""What libraries' own tests take from JAX's private `public_test_util`."""

from __future__ import annotations

from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.tree import tree_map

# By the dtype of what is compared, where nobody says else; integers and booleans are equal.
TOLERANCES = {
    "float4_e2m1fn": 1.0,
    "float8_e8m0fnu": 1.0,
    **{f"float8_{kind}": 0.1 for kind in "e3m4 e4m3 e4m3b11fnuz e4m3fn e4m3fnuz e5m2 e5m2fnuz".split()},
    "bfloat16": 1e-2,
    "float16": 1e-3,
    "float32": 1e-6,
    "complex64": 1e-6,
    "float64": 1e-15,
    "complex128": 1e-15,
}


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Assert that two trees of arrays are equal, up to rounding.

    Arguments:
      xs, ys: the trees.
      atol, rtol: absolute and relative tolerance: a number, or a dictionary from dtypes, or their names, to numbers, of
        which that of the coarser of the two dtypes counts; by default what fits the dtypes.
      err_msg: what the error says besides.
    Raises:
      AssertionError: shapes differ, or values by more. ValueError: the trees have different structures.

    >>> check_close({"a": 1.0}, {"a": 1.0 + 1e-8})
    """
    tree_map(lambda x, y: close(np.asarray(x), np.asarray(y), atol, rtol, err_msg), xs, ys)


def close(x: np.ndarray, y: np.ndarray, atol: Any, rtol: Any, err_msg: str) -> None:
    """`check_close` of two arrays."""
    kinds = [dtypes.canonical(a.dtype) for a in (x, y)]
    assert x.shape == y.shape, f"shapes differ: {x.shape} and {y.shape}. {err_msg}"
    absolute, relative = (max(tolerance(kind, given) for kind in kinds) for given in (atol, rtol))
    wide = np.result_type(*map(wider, kinds))
    np.testing.assert_allclose(x.astype(wide), y.astype(wide), atol=absolute, rtol=relative, err_msg=err_msg)


def tolerance(dtype: np.dtype, given: Any) -> float:
    """What values of a dtype may be apart."""
    if given is not None and not isinstance(given, dict):
        return given
    by_dtype = {np.dtype(key): value for key, value in (given or {}).items()}
    return by_dtype.get(dtype, TOLERANCES.get(dtype.name, 0.0))


def wider(dtype: np.dtype) -> np.dtype:
    """A dtype of NumPy's own that holds the values."""
    return np.dtype(np.float32) if dtypes.issubdtype(dtype, np.floating) and dtype.itemsize < 4 else dtype
