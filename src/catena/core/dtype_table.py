"""The dtypes: which there are, of which kind, and how they are called."""

import builtins
from typing import Any

import ml_dtypes
import numpy as np

BOOL = np.dtype(np.bool_)
NARROW_SIGNED = tuple(np.dtype(n) for n in (ml_dtypes.int1, ml_dtypes.int2, ml_dtypes.int4))
NARROW_UNSIGNED = tuple(np.dtype(n) for n in (ml_dtypes.uint1, ml_dtypes.uint2, ml_dtypes.uint4))
SIGNED = (*NARROW_SIGNED, *map(np.dtype, ("int8", "int16", "int32", "int64")))
UNSIGNED = (*NARROW_UNSIGNED, *map(np.dtype, ("uint8", "uint16", "uint32", "uint64")))
FLOAT4 = (np.dtype(ml_dtypes.float4_e2m1fn),)
FLOAT6 = (np.dtype(ml_dtypes.float6_e2m3fn), np.dtype(ml_dtypes.float6_e3m2fn))
FLOAT8 = tuple(
    np.dtype(getattr(ml_dtypes, f"float8_{n}"))
    for n in ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = (*FLOAT4, *FLOAT6, *FLOAT8, BFLOAT16, np.dtype("float16"), np.dtype("float32"), np.dtype("float64"))
COMPLEX = (np.dtype("complex64"), np.dtype("complex128"))
ALL = (BOOL, *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX)

# The dtype of tangents of integers and booleans: its only value is zero, and it takes no memory.
float0 = np.dtype([("float0", np.void, 0)])


class ByDType(dict):
    """What is known of each dtype; asked about another, such as that of keys, the error that NumPy's users know."""

    def __missing__(self, dtype):
        message = f"Cannot interpret '{dtype}' as a data type"
        if str(dtype).startswith("key<"):
            message += (
                ": a random key is no number. Draw numbers from it, jax.random.normal(key), or look at its words, "
            )
            message += "jax.random.key_data(key)."
        raise TypeError(message)


# One letter for each family, by dtype: 'b', 'i', 'u', 'f' or 'c'. NumPy's own `kind` is 'V' for all those of
# ml_dtypes.
KIND = ByDType({
    BOOL: "b",
    **dict.fromkeys(SIGNED, "i"),
    **dict.fromkeys(UNSIGNED, "u"),
    **dict.fromkeys(FLOATS, "f"),
    **dict.fromkeys(COMPLEX, "c"),
})  # fmt: skip

# How many bits an element holds; the narrow ones take a byte in memory.
BITS = ByDType({d: 8 * d.itemsize for d in ALL})
BITS.update({
    d: int(d.name.lstrip("uintfloa").split("_")[0]) for d in (*NARROW_SIGNED, *NARROW_UNSIGNED, *FLOAT4, *FLOAT6)
})  # fmt: skip

# The 64-bit dtypes, which arrays have only when x64 is on, with what they are otherwise.
TO_32_BITS: dict[np.dtype, np.dtype] = {
    np.dtype("int64"): np.dtype("int32"),
    np.dtype("uint64"): np.dtype("uint32"),
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}
python_scalar_dtypes = {
    bool: BOOL,
    int: np.dtype("int64"),
    float: np.dtype("float64"),
    complex: np.dtype("complex128"),
}


class extended(np.generic):  # noqa: N801
    """The scalar type above all extended dtypes."""


class prng_key(extended):  # noqa: N801
    """The scalar type of the dtypes of random keys."""


extended.__module__ = prng_key.__module__ = "catena.dtypes"


class ExtendedDType:
    """A dtype that NumPy does not know, such as that of random keys.

    ``type`` is its scalar type (a subclass of ``extended``), ``_rules`` says how arrays of it are held, and
    ``_impl`` tells dtypes of the same class apart: two are equal when their class and ``_impl`` are.
    """

    __slots__ = ("name", "itemsize", "_impl")
    _impl: Any
    type = extended
    _rules = None

    def __init__(self, name: str, itemsize: int, impl=None):
        self.name, self.itemsize, self._impl = name, itemsize, name if impl is None else impl

    def __eq__(self, other):
        return builtins.type(self) is builtins.type(other) and self._impl == other._impl

    def __hash__(self):
        return hash((builtins.type(self), self._impl))

    def __repr__(self):
        return self.name

    def tangent_dtype(self):
        """The dtype of the tangents of values of this dtype."""
        return float0

    def physical(self, shape: tuple) -> tuple:
        """The shape and NumPy dtype by which compiled programs hold an array of ``shape`` of this dtype."""
        raise TypeError(f"arrays of dtype {self.name} cannot be held by compiled programs")

    def compiled(self, shape: tuple) -> tuple:
        """The shape and NumPy dtype by which the compiler sees such an array, in the same memory: ``physical``, where
        it has numbers of that width.
        """
        return self.physical(shape)

    def by_parts(self, eqn):
        """Where ``compiled`` adds axes: what an equation of arrays of this dtype does, as a closed jaxpr of arrays with
        these axes, or None, where it knows of them.
        """
        return None

    def for_host(self, x):
        """An array of this dtype as functions of the host are given it that are called from programs."""
        return x

    def refuse_numpy(self) -> str:
        """What to say where an array of this dtype is to be converted to NumPy or Python."""
        return f"an array of dtype {self.name} cannot be converted to a NumPy array or a Python value"

    def facts(self) -> dict:
        """What there is to know of the elements, by name."""
        return {}

    def array_repr(self, value) -> str:
        """How an array of this dtype prints; ``value`` is its storage."""
        return f"Array({value.shape}, dtype={self.name})"


def held(dtype):
    """The NumPy dtype by which an element of a dtype is held: itself, where it is none that NumPy does not know."""
    return dtype.physical(())[1] if isinstance(dtype, ExtendedDType) else dtype


def is_extended(dtype) -> bool:
    """Whether ``dtype`` is an extended dtype, or the scalar type of some."""
    return isinstance(dtype, ExtendedDType) or (isinstance(dtype, type) and issubclass(dtype, extended))


def is_inexact(dtype) -> bool:
    """Whether ``dtype`` is a float or complex dtype."""
    return KIND.get(dtype, "") in ("f", "c")


def is_floating(dtype) -> bool:
    """Whether ``dtype`` is a (real) float dtype."""
    return KIND.get(dtype) == "f"


def is_complex(dtype) -> bool:
    """Whether ``dtype`` is a complex dtype."""
    return KIND.get(dtype) == "c"


def is_integer(dtype) -> bool:
    """Whether ``dtype`` is a signed or unsigned integer dtype."""
    return KIND.get(dtype, "") in ("i", "u")


_SHORT_PREFIXES = (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u"), ("int", "i"))


def _shorten(name: str) -> str:
    prefix, short = next((p for p in _SHORT_PREFIXES if name.startswith(p[0])), ("", ""))
    return short + name[len(prefix) :]


_SHORT_NAMES = {d: _shorten(d.name) for d in ALL} | {float0: "float0"}


def dtype_name(dtype) -> str:
    """The name of ``dtype``, as in ``float32[2,3]``."""
    return "float0" if dtype == float0 else dtype.name


def short_dtype_name(dtype) -> str:
    """The short name of ``dtype``, as in jaxprs: ``f32``, ``bf16``, ``i8``, ``bool``, ``key<fry>``."""
    return _SHORT_NAMES.get(dtype) or dtype.name
