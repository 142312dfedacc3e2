"""The lattice of type promotion: what is the least type that can stand for values of several types.

Its nodes are dtypes and three kinds of weak number, those of Python scalars. A type promotes to all that are
above it; several types promote to their least upper bound, and where there is none they must be cast.
The bound is taken of all of them at once: taken two by two it would depend on the order.
"""

from functools import cache

from catena.core.dtype_table import (
    ALL,
    BFLOAT16,
    BOOL,
    COMPLEX,
    FLOAT4,
    FLOAT6,
    FLOAT8,
    FLOATS,
    NARROW_SIGNED,
    NARROW_UNSIGNED,
    SIGNED,
    UNSIGNED,
    python_scalar_dtypes,
)


class TypePromotionError(ValueError):
    """Dtypes that do not promote to a common one implicitly."""


TypePromotionError.__module__ = "catena.dtypes"

WEAK_INT, WEAK_FLOAT, WEAK_COMPLEX = "weak int", "weak float", "weak complex"
WEAK_NODES = {"i": WEAK_INT, "u": WEAK_INT, "f": WEAK_FLOAT, "c": WEAK_COMPLEX}
WEAK_DEFAULTS = {
    WEAK_INT: python_scalar_dtypes[int],
    WEAK_FLOAT: python_scalar_dtypes[float],
    WEAK_COMPLEX: python_scalar_dtypes[complex],
}
_I8, _I16, _I32, _I64 = SIGNED[-4:]
_U8, _U16, _U32, _U64 = UNSIGNED[-4:]
_F16, _F32, _F64 = FLOATS[-3:]
_C64, _C128 = COMPLEX

# Each node with those just above it. Narrow types have nothing above: they meet only weak numbers (and bool).
_STANDARD = {
    BOOL: (WEAK_INT,),
    WEAK_INT: (*NARROW_SIGNED, *NARROW_UNSIGNED, _I8, _U8),
    _U8: (_U16, _I16),
    _U16: (_U32, _I32),
    _U32: (_U64, _I64),
    _U64: (WEAK_FLOAT,),
    _I8: (_I16,),
    _I16: (_I32,),
    _I32: (_I64,),
    _I64: (WEAK_FLOAT,),
    WEAK_FLOAT: (WEAK_COMPLEX, BFLOAT16, _F16, *FLOAT8, *FLOAT6, *FLOAT4),
    BFLOAT16: (_F32,),
    _F16: (_F32,),
    _F32: (_F64, _C64),
    _F64: (_C128,),
    WEAK_COMPLEX: (_C64,),
    _C64: (_C128,),
}
_STRICT = {
    WEAK_INT: (WEAK_FLOAT, *SIGNED, *UNSIGNED),
    WEAK_FLOAT: (WEAK_COMPLEX, *FLOATS),
    WEAK_COMPLEX: COMPLEX,
}
_NODES = (*ALL, WEAK_INT, WEAK_FLOAT, WEAK_COMPLEX)


def _upper_bounds(above: dict) -> dict:
    @cache
    def bounds(node):
        return frozenset({node}).union(*map(bounds, above.get(node, ())))

    return {node: bounds(node) for node in _NODES}


_UPPER_BOUNDS = {"standard": _upper_bounds(_STANDARD), "strict": _upper_bounds(_STRICT)}


@cache
def join(mode: str, *nodes):
    """The least upper bound of ``nodes``: the common upper bound that is below all the others."""
    bounds = _UPPER_BOUNDS[mode]
    common = frozenset.intersection(*(bounds[n] for n in nodes))
    least = [n for n in common if common <= bounds[n]]
    if len(least) != 1:
        raise TypePromotionError(_no_path(mode, nodes))
    return least[0]


def _no_path(mode: str, nodes) -> str:
    names = tuple(dict.fromkeys(map(str, nodes)))
    text = f"Input dtypes {names} have no available implicit dtype promotion path"
    if mode == "strict":
        return (
            f"{text} when jax_numpy_dtype_promotion=strict. Cast the inputs explicitly to the dtype that "
            "you want, or set jax_numpy_dtype_promotion=standard."
        )
    target = "float32" if any(n in FLOAT8 + FLOAT6 + FLOAT4 for n in nodes) else "int32"
    return (
        f"{text}. Floats of 4, 6 or 8 bits and integers of 1, 2 or 4 bits are not promoted implicitly, lest values "
        "be widened unawares: they meet only booleans, Python numbers and, for floats, wider integers. "
        f"Cast explicitly, for example with x.astype('{target}')."
    )
