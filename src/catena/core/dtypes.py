"""Dtypes: which there are, how they are named, and how they promote.

A dtype is an ``np.dtype`` of the admitted set (``ALL``), ``float0``, or an ``ExtendedDType`` such as that of
random keys. A value's type is a pair ``(dtype, weak)``: Python scalars are weak: they never widen what they
meet. Three questions are asked here:

* *what is meant*: ``as_dtype`` reads a dtype the way users write it; ``canonicalize_dtype`` maps 64 bits to
  32 when x64 is off; ``check_user_dtype_supported`` does both and tells the user;
* *what is it*: ``issubdtype``, ``isdtype``, ``is_inexact`` and their kin;
* *what do they give together*: ``promote_pair`` (cached, for the hot path), ``result_type`` and
  ``promote_types``, all least upper bounds in the lattice of ``lattice.py``.

Every cache is keyed by the flags that it depends on: x64 and the promotion mode.
"""

import functools
import sys
import warnings
from collections.abc import Callable

import numpy as np
from ml_dtypes import bfloat16, finfo, iinfo  # noqa: F401  (part of this module's interface)

from catena.core.context import context
from catena.core.dtype_table import (  # noqa: F401  (part of this module's interface)
    ALL,
    BFLOAT16,
    BITS,
    BOOL,
    COMPLEX,
    FLOAT4,
    FLOAT6,
    FLOATS,
    KIND,
    NARROW_SIGNED,
    NARROW_UNSIGNED,
    SIGNED,
    TO_32_BITS,
    UNSIGNED,
    ExtendedDType,
    dtype_name,
    extended,
    float0,
    is_complex,
    is_extended,
    is_floating,
    is_inexact,
    is_integer,
    prng_key,
    python_scalar_dtypes,
    short_dtype_name,
)
from catena.core.lattice import WEAK_DEFAULTS, WEAK_NODES, TypePromotionError, join  # noqa: F401
from catena.core.scalar_types import ScalarType
from catena.core.source import PACKAGE

# ----------------------------------------------------------------------------------------------------
# Reading what the user wrote

_WEAK_SCALARS: dict[bool, dict] = {
    x64: {t: (d if x64 else TO_32_BITS.get(d, d), t is not bool) for t, d in python_scalar_dtypes.items()}
    for x64 in (False, True)
}


_DTYPES = np.dtype, ExtendedDType
_WORDS = type, str  # what stands for dtypes; a tuple, as making a union at each call takes as long as asking
_DESCRIPTIONS = str, np.dtype, type


def as_dtype(x):
    """The dtype, at full width, that a dtype, a scalar type, a Python type or a dtype's name stands for."""
    if isinstance(x, _DTYPES):
        return x
    if isinstance(x, ScalarType):
        return x.dtype
    if not isinstance(x, _WORDS) and hasattr(x, "shape"):
        # NumPy, which JAX asks here, refuses arrays of its own by a TypeError.
        error = TypeError if isinstance(x, np.ndarray | np.generic) else ValueError
        raise error(f"expected a dtype, got an array of dtype {x.dtype}; pass x.dtype instead of x")
    return np.dtype(x)


def asked_dtype(dtype, fun_name: str):
    """The same of the argument ``dtype`` of a function, which the error names."""
    try:
        return as_dtype(dtype)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{fun_name}: dtype must stand for a dtype, got {dtype!r}: {error}") from None


def _is_python_scalar_type(x) -> bool:
    return isinstance(x, type) and x in python_scalar_dtypes


def python_scalar_dtype(scalar_type) -> tuple:
    """The ``(dtype, weak)`` of values of a Python type (``bool``, ``int``, ...) under the flags in force."""
    return _WEAK_SCALARS[context.x64][scalar_type]


def canonical(dtype):
    """``dtype`` in this machine's byte order, or its 32-bit kin where it is a 64-bit dtype and x64 is off."""
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    return dtype if context.x64 else TO_32_BITS.get(dtype, dtype)


def available(dtype):
    """``dtype``, that of an array or asked for by name, or its 32-bit kin where it is a 64-bit dtype and no array may
    have it: x64 is off, and ``jax_explicit_x64_dtypes`` does not allow it.
    """
    return dtype if context.explicit_x64_dtypes == "allow" else canonical(dtype)


def canonicalize_dtype(dtype, allow_extended_dtype: bool = False):
    """The dtype that arrays asked for as ``dtype`` have under the flags in force.

    Arguments:
      dtype: a dtype, a scalar type, a Python type, a dtype's name, or None for the default float dtype.
      allow_extended_dtype: whether extended dtypes, such as that of random keys, pass unchanged.
    Returns:
      The dtype itself, or its 32-bit kin where it is a 64-bit dtype and x64 is off.
    Raises:
      ValueError: ``dtype`` is extended and that is not allowed.
      TypeError: ``dtype`` is not a dtype.

    >>> canonicalize_dtype("float64")
    dtype('float32')
    """
    if isinstance(dtype, np.dtype):
        return canonical(dtype)
    if is_extended(dtype):
        if allow_extended_dtype:
            return dtype
        raise ValueError(f"canonicalize_dtype: dtype must not be extended, got {dtype!r}")
    return canonical(as_dtype(dtype))


def check_user_dtype_supported(dtype, fun_name: str):
    """The canonical form of a dtype that the user passed to ``fun_name``.

    Arguments:
      dtype: what the user passed; not None, whose meaning is up to the function.
      fun_name: the function's name, for messages.
    Returns:
      The canonical dtype. A 64-bit dtype asked for by name while x64 is off gives a warning and its 32-bit
      kin, or what ``jax_explicit_x64_dtypes`` says; ``int``, ``float`` and ``complex`` mean the default width, so they
      give no warning.
    Raises:
      TypeError: arrays cannot have this dtype.
      ValueError: it has 64 bits, and ``jax_explicit_x64_dtypes`` is "error".
    """
    if dtype is None:
        raise ValueError(f"{fun_name}: dtype must not be None here")
    if _is_python_scalar_type(dtype):
        return canonical(python_scalar_dtypes[dtype])
    if isinstance(dtype, ExtendedDType):
        return dtype
    if is_extended(dtype):
        raise TypeError(f"{fun_name}: dtype must be that of particular keys, such as key.dtype; got {dtype}")
    full = asked_dtype(dtype, fun_name)
    if full not in KIND and full != float0:
        raise TypeError(f"{fun_name}: dtype must be bool or that of a number, got {full}")
    return full if context.x64 or full not in TO_32_BITS else _without_x64(full, fun_name)


def _without_x64(full: np.dtype, fun_name: str):
    """What arrays have for which the user asked for a 64-bit dtype while x64 is off."""
    mode = context.explicit_x64_dtypes
    if mode == "allow":
        return full
    remedy = (
        "64-bit dtypes are off. To use them, set the jax_enable_x64 configuration option or the JAX_ENABLE_X64 "
        "environment variable, or jax_explicit_x64_dtypes='allow'."
    )
    if mode == "error":
        raise ValueError(f"Explicitly requested dtype {full} in {fun_name} is not available: {remedy}")
    warnings.warn(
        f"Explicitly requested dtype {full} in {fun_name} is not available, and will be truncated to dtype "
        f"{TO_32_BITS[full]}: {remedy}",
        UserWarning,
        stacklevel=levels_to_user(),
    )
    return TO_32_BITS[full]


def levels_to_user() -> int:
    """The ``stacklevel`` with which a warning from the calling function points at the user's line: in it frames of the
    import system do not count.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith((PACKAGE, IMPORTING)):
        frame = frame.f_back
        level += not frame.f_code.co_filename.startswith(IMPORTING)
    return level


IMPORTING = "<frozen importlib"


# ----------------------------------------------------------------------------------------------------
# The type of a value


def dtype(x, *, canonicalize: bool = False):
    """The dtype of ``x``: of a value, or what ``x`` stands for where it is a dtype, a type or a name.

    Arguments:
      x: an array, a NumPy or Python scalar, or anything that ``as_dtype`` reads.
      canonicalize: whether to map 64-bit dtypes to their 32-bit kin when x64 is off.
    Returns:
      The dtype.
    Raises:
      TypeError: ``x`` has no dtype, or one that arrays here cannot have.

    >>> dtype(1.5), dtype("int8"), dtype(1.5, canonicalize=True)
    (dtype('float64'), dtype('int8'), dtype('float32'))
    """
    found = _full_dtype(x)
    if found not in KIND and not isinstance(found, ExtendedDType) and found != float0:
        raise TypeError(f"Value {x!r} with dtype {found} is not a valid array type: not a boolean or a number")
    if not canonicalize:
        return found
    return available(found) if getattr(type(x), "_is_array", False) else canonical(found)


def _full_dtype(x):
    if x is None:
        raise ValueError("expected a value or a dtype, got None")
    if type(x) in python_scalar_dtypes:
        return python_scalar_dtypes[type(x)]
    if isinstance(x, str | type | np.dtype | ExtendedDType):
        return as_dtype(x)
    found = getattr(x, "dtype", None)
    if found is not None:
        return found
    for scalar_type, its_dtype in python_scalar_dtypes.items():  # subclasses, such as members of an IntEnum
        if isinstance(x, scalar_type):
            return its_dtype
    raise TypeError(f"cannot determine the dtype of {x!r}, a {type(x).__name__}")


def is_scalar_or_numpy(x) -> bool:
    """Whether ``x`` is a Python or NumPy scalar or a NumPy array, of a dtype that arrays here can have, or of a class
    that was registered as one of such (``pytype_aval_mappings``).
    """
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype in KIND or x.dtype == float0 or x.dtype.newbyteorder("=") in KIND
    return isinstance(x, bool | int | float | complex) or type(x) in pytype_aval_mappings


# Classes whose instances are taken as arrays: what gives an instance's type, and what makes a NumPy array of it. Those
# of Python and NumPy are entered where their rule is; users enter theirs, by `jax.core` and `interpreters.xla`.
pytype_aval_mappings: dict[type, Callable] = {}
canonicalize_dtype_handlers: dict[type, Callable] = {}


def is_weakly_typed(x) -> bool:
    """Whether the dtype of the value ``x`` is weak: it is a Python number, or an array made of such alone."""
    weak = getattr(x, "weak_type", None)
    if weak is not None:
        return weak
    return isinstance(x, int | float | complex) and not isinstance(x, bool | np.generic)


def scalar_type_of(x) -> type:
    """The Python type of scalars of the kind of ``x``.

    Arguments:
      x: an array, a scalar, a dtype or a scalar type.
    Returns:
      ``bool``, ``int``, ``float`` or ``complex``.
    Raises:
      TypeError: ``x`` has no dtype, or one without a Python counterpart (such as that of keys).

    >>> scalar_type_of(np.float32(1)), scalar_type_of("int4")
    (<class 'float'>, <class 'int'>)
    """
    found = dtype(x)
    if found not in KIND:
        raise TypeError(f"scalar_type_of: x must be a boolean or a number, got dtype {dtype_name(found)}")
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[KIND[found]]


# ----------------------------------------------------------------------------------------------------
# Sizes and families


def itemsize_bits(dtype) -> int:
    """The number of bits that one element of ``dtype`` holds.

    Arguments:
      dtype: a dtype, a scalar type, a Python scalar type or a dtype's name.
    Returns:
      The width in bits, which for int1, int2, int4, float4 and float6 is less than they take in memory.
    Raises:
      ValueError: ``dtype`` is None, or not a boolean or a number.

    >>> itemsize_bits("int4"), itemsize_bits("float32")
    (4, 32)
    """
    if dtype is None:
        raise ValueError("itemsize_bits: dtype must be a dtype, got None")
    found = dtype if is_extended(dtype) else dtype_in_question(dtype)
    if found not in KIND:
        raise ValueError(f"itemsize_bits: dtype must be a boolean or a number, got {dtype!r}")
    return BITS[found]


_ABOVE = {  # what ml_dtypes' scalar types, which NumPy knows only as np.generic, are kinds of
    "i": (np.signedinteger, np.integer, np.number, np.generic),
    "u": (np.unsignedinteger, np.integer, np.number, np.generic),
    "f": (np.floating, np.inexact, np.number, np.generic),
}
_FOREIGN = {d.type: (d.type, *_ABOVE[k]) for d, k in KIND.items() if d.kind == "V"}


def _scalar_class(x) -> type:
    """The class in the hierarchy of scalar types that ``x`` stands for, itself where it is in it."""
    if isinstance(x, type) and issubclass(x, np.generic):
        return x
    return type(x) if isinstance(x, np.generic) else dtype_in_question(x).type


def dtype_in_question(x):
    """The dtype that a question is asked about: `as_dtype`, or that of an array or a scalar.

    NumPy refuses its own arrays where it is asked for their dtype, and so do these questions.
    """
    own = None if isinstance(x, type | np.ndarray) else getattr(x, "dtype", None)
    return as_dtype(x) if own is None else own


def remembered(question):
    """``question``, which is about dtypes alone, with its answers kept: NumPy takes microseconds for each."""
    answers: dict = {}

    @functools.wraps(question)
    def ask(*args):
        try:
            return answers[args]
        except (KeyError, TypeError):  # not asked yet, or about an array
            pass
        answer = question(*args)
        if all(map(_stands_for_dtype, args)):
            answers[args] = answer
        return answer

    return ask


def _stands_for_dtype(x) -> bool:
    """Whether ``x`` is a description of a dtype (or a flag, or the name of a mode), which is one of few."""
    if isinstance(x, type):
        return isinstance(x, ScalarType) or issubclass(x, np.generic) or x in python_scalar_dtypes
    if isinstance(x, tuple):
        return all(map(_stands_for_dtype, x))
    return isinstance(x, str | np.dtype | ExtendedDType | bool)


@remembered
def issubdtype(a, b) -> bool:
    """Whether dtype ``a`` is ``b`` or one of its kind, as ``np.issubdtype``, for all dtypes here.

    Arguments:
      a, b: dtypes, scalar types, abstract scalar types such as ``np.floating``, or names.
    Returns:
      True or False.
    Raises:
      TypeError: an argument is not a dtype.

    >>> issubdtype("bfloat16", np.floating), issubdtype("int4", np.inexact)
    (True, False)
    """
    if isinstance(b, ExtendedDType):
        return a == b
    a_class, b_class = _scalar_class(a), _scalar_class(b)
    if a_class in _FOREIGN:
        return b_class in _FOREIGN[a_class]
    return issubclass(a_class, b_class)


KINDS_BY_NAME = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


@remembered
def isdtype(dtype, kind) -> bool:
    """Whether ``dtype`` is of ``kind``, in the terms of the array API standard.

    Arguments:
      dtype: a dtype, a scalar type or a dtype's name.
      kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex floating',
        'numeric'; a dtype; or a tuple of these.
    Returns:
      True or False.
    Raises:
      ValueError: ``kind`` is a string that names neither a kind nor a dtype.
      TypeError: ``kind`` is none of the above.

    >>> isdtype("bfloat16", "real floating"), isdtype("int4", ("bool", "integral"))
    (True, True)
    """
    if is_extended(dtype):
        raise TypeError(f"isdtype: dtype must be a boolean or a number, got {dtype!r}")
    dtype = dtype_in_question(dtype)
    return any(_is_kind(dtype, k) for k in (kind if isinstance(kind, tuple) else (kind,)))


def _is_kind(dtype, kind) -> bool:
    if isinstance(kind, str) and kind in KINDS_BY_NAME:
        return KIND.get(dtype, "-") in KINDS_BY_NAME[kind]
    if not isinstance(kind, str | np.dtype | type) and not hasattr(kind, "dtype"):
        raise TypeError(f"isdtype: kind must be a string, a dtype or a tuple of these, got {kind!r}")
    try:
        return dtype == dtype_in_question(kind)
    except TypeError as error:
        expected = f"one of {list(KINDS_BY_NAME)} or a dtype; got {kind!r}"
        kind_of_error = ValueError if isinstance(kind, str) else TypeError
        raise kind_of_error(f"isdtype: kind must be {expected}") from error


# ----------------------------------------------------------------------------------------------------
# Neighbours: the float, complex and numeric dtypes that go with a dtype

_COMPLEX_OF = {d: COMPLEX[1] if d == "float64" else COMPLEX[0] for d in FLOATS}
_REAL_OF = {COMPLEX[0]: np.dtype("float32"), COMPLEX[1]: np.dtype("float64")}


def to_inexact_dtype(dtype):
    """``dtype`` if it is inexact; else float64 for 64-bit integers (x64 permitting), float32 for the rest."""
    if is_inexact(dtype):
        return dtype
    return available(np.dtype("float64")) if BITS[dtype] == 64 else np.dtype("float32")


def to_numeric_dtype(dtype):
    """``dtype``, or int32 where it is bool."""
    return np.dtype("int32") if dtype == BOOL else dtype


def to_complex_dtype(dtype):
    """The complex dtype that goes with ``dtype``: complex128 for 64-bit dtypes, complex64 for the rest."""
    return dtype if is_complex(dtype) else _COMPLEX_OF[to_inexact_dtype(dtype)]


def to_real_dtype(dtype):
    """The dtype of the real part of values of ``dtype``; ``dtype`` itself where it is not complex."""
    return _REAL_OF.get(dtype, dtype)


# ----------------------------------------------------------------------------------------------------
# Promotion


def _node(dtype, weak: bool):
    return WEAK_NODES.get(KIND[dtype], dtype) if weak else dtype


def no_arithmetic(name: str, at: str = "") -> str:
    """The message where an operation is asked for of arrays of dtype float0."""
    return (
        f"Called {name} with a float0 array{at}. float0s do not support any operations by design, because they are not "
        "compatible with non-trivial vector spaces: they are derivatives by integers. No implicit dtype conversion is "
        "done; np.zeros(x.shape) makes zeros. If you did not expect one, you may have differentiated by an integer."
    )


def _least_type(pairs, mode: str) -> tuple:
    """The ``(dtype, weak)`` above all ``pairs`` of these, at full width."""
    first = pairs[0][0]
    all_weak = all(weak for _, weak in pairs)
    if all(d == first for d, _ in pairs):
        return first, all_weak
    for d, _ in pairs:
        if d not in KIND:
            raise ValueError(f"dtype {dtype_name(d)} does not promote with other dtypes")
    if all_weak and mode == "standard":  # values keep their own widths; only the kinds join
        nodes = [d for d, _ in pairs]
    else:
        nodes = [_node(d, weak) for d, weak in pairs]
    joined = join(mode, *nodes)
    weak = all_weak or joined in WEAK_DEFAULTS
    return WEAK_DEFAULTS.get(joined, joined), weak


_promoted: dict = {}
_promoted_pairs: dict = {}


def promote(*pairs) -> tuple:
    """The canonical ``(dtype, weak)`` that values of these ``(dtype, weak)`` types promote to together."""
    key = (pairs, context.x64, context.numpy_dtype_promotion, context.explicit_x64_dtypes)
    found = _promoted.get(key)
    if found is None:
        dtype, weak = _least_type([(available(d), w) for d, w in pairs], context.numpy_dtype_promotion)
        found = _promoted[key] = available(dtype), weak
    return found


def least_common(*dtypes):
    """The dtype to which ``dtypes`` promote, in every mode of promotion: for what a function does with its arguments,
    not for what the user mixes.
    """
    return available(_least_type([(available(d), False) for d in dtypes], "standard")[0])


def promote_pair(dtype_a, weak_a, dtype_b, weak_b) -> tuple:
    """``promote`` for two types, taken apart: one lookup (0.2 us), for the hot path of binary operations."""
    key = (dtype_a, weak_a, dtype_b, weak_b, context.x64, context.numpy_dtype_promotion)
    found = _promoted_pairs.get(key)
    if found is None:
        found = promote((dtype_a, weak_a), (dtype_b, weak_b))
        if context.x64 or dtype_a not in TO_32_BITS and dtype_b not in TO_32_BITS:  # else it hangs on another flag
            _promoted_pairs[key] = found
    return found


def dtype_and_weak_type(x) -> tuple:
    """The canonical ``(dtype, weak)`` of a value, or of what stands for a dtype (None: the default float)."""
    if type(x) in python_scalar_dtypes:
        return python_scalar_dtype(type(x))
    if x is None:
        return canonical(python_scalar_dtypes[float]), False
    if isinstance(x, _DESCRIPTIONS):
        if _is_python_scalar_type(x):
            return python_scalar_dtype(x)
        if not isinstance(x, ScalarType):
            return check_user_dtype_supported(x, "result_type"), False
    elif getattr(type(x), "_is_array", False):
        return available(x.dtype), x.weak_type
    return dtype(x, canonicalize=True), is_weakly_typed(x)


def lattice_result_type(*args) -> tuple:
    """The canonical ``(dtype, weak)`` that ``args``, values and dtypes, promote to together."""
    if not args:
        raise ValueError("result_type: at least one array or dtype is required")
    return promote(*map(dtype_and_weak_type, args))


def result_type(*args, return_weak_type_flag: bool = False):
    """The dtype that an operation on ``args`` gives, by the rules of promotion.

    Arguments:
      *args: arrays, scalars, dtypes, scalar types, names of dtypes; at least one. Python numbers and number
        types are weak; None stands for the default float dtype.
      return_weak_type_flag: whether to return also if the result is weak.
    Returns:
      The dtype, canonical under the flags in force; with the flag, a pair ``(dtype, weak)``.
    Raises:
      TypePromotionError: there is no implicit promotion.
      ValueError: no arguments, or an extended dtype or float0 among others.
      TypeError: an argument has no dtype.

    >>> result_type("int32", 1.0, return_weak_type_flag=True)
    (dtype('float32'), True)
    """
    dtype, weak = lattice_result_type(*args)
    first = getattr(args[0], "dtype", dtype)
    if first is not dtype and all(hasattr(x, "aval") and x.dtype == first for x in args):
        dtype = first  # arrays keep 64 bits outside of enable_x64
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a, b):
    """The dtype that dtypes ``a`` and ``b`` promote to. Dtypes given at 64 bits keep their width even when
    x64 is off; others are not widened to 64 bits then.

    Arguments:
      a, b: dtypes, scalar types or names; ``int``, ``float`` and ``complex`` are weak.
    Returns:
      The dtype.
    Raises:
      TypePromotionError: there is no implicit promotion.

    >>> promote_types("uint8", "int8"), promote_types(int, "int8")
    (dtype('int16'), dtype('int8'))
    """
    return _promoted_type(a, b, context.x64, context.numpy_dtype_promotion)


@remembered
def _promoted_type(a, b, x64: bool, mode: str):
    pairs = [(dtype_in_question(t), _is_python_scalar_type(t) and t is not bool) for t in (a, b)]
    result = _least_type(pairs, mode)[0]
    strong = [d for d, weak in pairs if not weak]
    return canonical(result) if strong and all(canonical(d) == d for d in strong) else result
