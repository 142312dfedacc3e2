"""The concrete values of the language: immutable arrays over NumPy buffers.

An Array is one buffer (any strides) and its type. Its operators and NumPy-like methods are functions of the
NumPy API and are given to it there, by one table; what stands here are the value itself and its ways in and
out of Python.
"""

import operator
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray, abstract_token
from catena.core.buffers import offer_buffer
from catena.core.errors import how_to_register
from catena.core.face import Face
from catena.core.ref import Cell, Ref, core_of
from catena.core.token import Token, new_token
from catena.core.traceback import shorten

if TYPE_CHECKING:  # the methods that the NumPy API gives to Array, as a type checker reads them
    from catena.core.array_methods import ArrayMethods
    from catena.core.placement import Placement
else:
    ArrayMethods = object

_new = object.__new__


class ArrayType(type):
    """The type of Array: tracers count as instances, so that ``isinstance(x, Array)`` holds while tracing too."""

    def __instancecheck__(cls, x):
        return getattr(type(x), "_is_array", False)


class Array(Face, ArrayMethods, metaclass=ArrayType):
    """An immutable array on a device.

    Arrays are made by functions of ``catena.numpy``, never by calling this class. They hold a NumPy array
    that nobody else can write to; views of it that leave are read-only.
    """

    __slots__ = ("_value", "_weak", "_aval", "__weakref__", "__dict__")  # the last for what users note at arrays
    _value: np.ndarray  # a `Deleted` once the buffer was deleted
    _weak: bool
    _aval: Any  # None until it is asked for
    _placement: "Placement | None" = None  # nobody put it anywhere; see `core/placed.py`
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]
    _is_array = True

    def __init__(self, *args, **kwargs):
        raise TypeError("Array cannot be instantiated directly; use catena.numpy.array, zeros, asarray ...")

    # ---- type

    @property
    def aval(self) -> ShapedArray:
        aval = self._aval
        if aval is None:
            value = self._value
            if type(value) is Deleted:
                return value.aval
            aval = self._aval = ShapedArray(value.shape, value.dtype, self._weak)
        return aval

    @property
    def shape(self) -> tuple:
        """The length of each axis."""
        return self._value.shape

    @property
    def dtype(self):
        """The type of the elements."""
        return self._value.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._value.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._value.size

    @property
    def nbytes(self) -> int:
        """The bytes that the elements take."""
        return self._value.nbytes

    @property
    def itemsize(self) -> int:
        """The bytes that one element takes."""
        return self._value.dtype.itemsize

    weak_type = property(
        operator.attrgetter("_weak"), doc="Whether the dtype gives way to others: see JAX's weak types."
    )

    # ---- to NumPy and other libraries, without copying

    def __array__(self, dtype=None, context=None, copy=None):  # context: old NumPy's, which says nothing here
        value = read_only(self._value)
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(
                    f"converting {self.aval.str_short()} to {np.dtype(dtype)} needs a copy, but copy=False"
                )
            return value.astype(dtype)
        return value.copy() if copy else value

    def __buffer__(self, flags):
        return memoryview(read_only(live(self)))

    @property
    def __numpy_dtype__(self):
        """What NumPy (from 2.4 on) asks a value for that is given in place of a dtype."""
        warnings.warn(
            "Implicit conversion of an array to a dtype is deprecated; rather than dtype=arr use dtype=arr.dtype. In "
            "the future this will result in an error.",
            DeprecationWarning,
            stacklevel=dtypes.levels_to_user(),
        )
        return self.dtype

    # ---- to Python

    def __bool__(self) -> bool:
        try:
            if self.is_deleted():
                raise deleted_error(self.aval)
            if self._value.size == 0:
                raise ValueError(
                    "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an "
                    "array is not empty."
                )
            if self._value.size > 1:
                raise ValueError(
                    "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all(); its "
                    f"shape is {self.shape}"
                )
            return bool(self._value)
        except Exception as error:
            shorten(error)
            raise

    def __int__(self) -> int:
        try:
            return int(scalar(self))
        except Exception as error:
            shorten(error)
            raise

    def __float__(self) -> float:
        try:
            return float(scalar(self))
        except Exception as error:
            shorten(error)
            raise

    def __complex__(self) -> complex:
        try:
            return complex(scalar(self))
        except Exception as error:
            shorten(error)
            raise

    def __index__(self) -> int:
        try:
            if self.ndim or self.dtype.kind not in "iub" or self.dtype == bool:
                raise TypeError(
                    f"only integer scalar arrays can be converted to a scalar index, got {self.aval.str_short()}"
                )
            return int(self._value)
        except Exception as error:
            shorten(error)
            raise

    def __len__(self) -> int:
        try:
            if not self._value.ndim:
                raise TypeError("len() of unsized object")
            return self._value.shape[0]
        except Exception as error:
            shorten(error)
            raise

    def __iter__(self) -> Iterator["Array"]:
        try:
            if not self._value.ndim:
                raise TypeError("iteration over a 0-d array")
            weak = self._weak
            return (make_array(np.asarray(row), weak) for row in self._value)
        except Exception as error:
            shorten(error)
            raise

    def __format__(self, spec):
        value = self._value
        return format(value[()] if not value.ndim and type(value) is np.ndarray else value, spec)

    def item(self, *args: int) -> bool | int | float | complex:
        """The element as a Python scalar.

        Arguments:
          *args: where it is, one index into the flattened array or one for each axis; none if there is one element.
        Returns:
          A bool, int, float or complex.
        Raises:
          ValueError: there are several elements and no index. IndexError: it is out of bounds.

        >>> import catena.numpy as jnp
        >>> jnp.arange(4).item(2)
        2
        """
        try:
            return self._value.item(*args)
        except Exception as error:
            shorten(error)
            raise

    def tolist(self) -> Any:
        """The elements as nested Python lists.

        Returns:
          Lists of Python scalars; a scalar for an array without axes.

        >>> import catena.numpy as jnp
        >>> jnp.ones((1, 2)).tolist()
        [[1.0, 1.0]]
        """
        return self._value.tolist()

    def __repr__(self):
        return array_repr(self)

    def __str__(self):
        return str(live(self))

    def __reduce__(self):
        return _rebuild, (live(self), self._weak)

    def __copy__(self):
        return make_array(self._value.copy(), self._weak)

    def __deepcopy__(self, memo):
        return make_array(self._value.copy(), self._weak)

    # ---- life on the device

    def block_until_ready(self) -> "Array":
        """This array, once its value is computed (here it always is).

        Returns:
          The array itself.
        Raises:
          RuntimeError: the array was deleted.

        >>> import catena.numpy as jnp
        >>> jnp.arange(2).block_until_ready()
        Array([0, 1], dtype=int32)
        """
        live(self)
        return self

    def is_deleted(self) -> bool:
        """Whether the buffer was deleted or given away by donation.

        Returns:
          A Python bool.

        >>> import catena.numpy as jnp
        >>> jnp.ones(2).is_deleted()
        False
        """
        return type(self._value) is Deleted

    def delete(self) -> None:
        """Give the buffer back now; every later use of this array raises an error.

        Returns:
          None.

        >>> import catena.numpy as jnp
        >>> x = jnp.ones(2)
        >>> x.delete()
        >>> x.is_deleted()
        True
        """
        if type(self._value) is not Deleted:
            self._value = Deleted(self.aval)  # type: ignore[assignment]
            self._aval = None  # so that no cache keyed by types takes this array for one with data


class Absent:
    """What an Array holds whose data are not here: it knows its type, and any use of the data raises ``error()``."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    def error(self) -> Exception:
        """The error for any use of the data."""
        raise NotImplementedError

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self._refuse() if self.aval.extended else self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    nbytes = property(lambda self: self.aval.size * self.aval.dtype.itemsize)

    def __getattr__(self, name):
        raise self.error()

    def _refuse(self, *args, **kwargs):
        raise self.error()

    __array__ = __getitem__ = __iter__ = __len__ = __bool__ = __int__ = __float__ = __complex__ = __index__ = _refuse
    __str__ = __format__ = __copy__ = __deepcopy__ = __reduce__ = _refuse


class Deleted(Absent):
    """What an Array holds after its buffer was deleted."""

    __slots__ = ()

    def error(self) -> Exception:
        """The error for the use of an array that was deleted."""
        return deleted_error(self.aval)


def deleted_error(aval) -> RuntimeError:
    """The error for the use of an array of this type that was deleted."""
    return RuntimeError(
        f"Array has been deleted with shape={aval.str_short()}. Its memory was given away: by delete(), or to a jitted "
        "function that it was donated to (donate_argnums). Use the function's result, or pass x.copy()."
    )


class ExtendedArray(Array):
    """An array of an extended dtype, such as random keys: opaque elements, held in a NumPy array of the same shape.

    ``_value`` has the dtype's storage dtype (``ExtendedDType.physical``), so that whatever only moves
    elements around (indexing, reshape, concatenate, select ...) works on it as it is. Only the dtype's own
    primitives look inside. ``used`` is what the watch over random keys notes on a key.

    Arguments:
      aval: its type.
      data: the elements as they are held.
    """

    __slots__ = ("used",)

    def __init__(self, aval, data):
        value = as_array(data)._value
        if not aval.extended or aval.dtype.physical(aval.shape) != (value.shape, value.dtype):
            raise ValueError(
                f"an array of type {aval.str_short()} is not held by numbers of dtype {value.dtype} and shape "
                f"{value.shape}: the type must be of an extended dtype, and the numbers as it holds its elements"
            )
        self._value, self._weak, self._aval = value, aval.weak_type, aval

    @property
    def aval(self) -> ShapedArray:
        aval = self._aval
        return self._value.aval if aval is None else aval  # type: ignore[attr-defined]  # None: it was deleted

    @property
    def dtype(self):
        """The extended dtype."""
        return self.aval.dtype

    @property
    def itemsize(self) -> int:
        """The bytes that one element takes."""
        return self.aval.dtype.itemsize

    def __array__(self, dtype=None, context=None, copy=None):
        raise TypeError(self.aval.dtype.refuse_numpy())

    def __buffer__(self, flags):
        raise TypeError(self.aval.dtype.refuse_numpy())

    def __getitem__(self, item):  # as JAX names the index of keys
        return super().__getitem__(item)

    def __bool__(self):
        raise TypeError(f"an array of dtype {self.aval.dtype} has no truth value")

    def __iter__(self):
        value = live(self)
        if not value.ndim:
            raise TypeError("iteration over a 0-d array")
        row = self._aval.update(shape=self._aval.shape[1:])
        return (typed_array(np.asarray(v), row) for v in value)

    def item(self, *args):
        """Elements of extended dtypes have no Python value."""
        raise TypeError(self.aval.dtype.refuse_numpy())

    tolist = __int__ = __float__ = __complex__ = __index__ = item

    def __repr__(self):
        value = live(self)
        return self.aval.dtype.array_repr(value) if type(value) is np.ndarray else str(value)

    def __str__(self):
        return repr(self)

    def pprint(self) -> str:
        """The shape, and all that the dtype says of its elements, a line each."""
        facts = {"shape": self.shape, **self.dtype.facts()}
        return "\n  ".join([f"{self.dtype}:", *(f"{name} = {x}" for name, x in facts.items())])

    def __format__(self, spec):
        return format(repr(self), spec)

    def __reduce__(self):
        return typed_array, (np.asarray(live(self), order="C"), self._aval)

    def __copy__(self):
        return typed_array(live(self).copy(), self._aval)

    def __deepcopy__(self, memo):
        return self.__copy__()


offer_buffer(Array)  # now, so that arrays of other dtypes than NumPy's do not inherit it


def make_array(value: np.ndarray, weak_type: bool = False) -> Array:
    """An Array around ``value``, which nobody may write to from now on. The hot path's constructor."""
    array = _new(Array)
    array._value = value
    array._weak = weak_type
    array._aval = None
    return array


def typed_array(value, aval) -> Array | Token:
    """An Array around ``value``, known to have the type ``aval``; a token where that is the type of tokens."""
    if aval.extended:
        return extended_value(value, aval)
    array = _new(Array)
    array._value = value if type(value) is np.ndarray else np.asarray(value, aval.dtype)
    array._weak = aval.weak_type
    array._aval = aval
    return array


def extended_value(value, aval) -> ExtendedArray | Token:
    """``typed_array`` for types whose values are of a class of their own."""
    if aval is abstract_token:
        return new_token()
    array = _new(ExtendedArray)
    array._value = np.asarray(value)
    array._weak = aval.weak_type
    array._aval = aval
    return array


def fresh_array(value: np.ndarray, aval) -> Array:
    """``typed_array`` for NumPy arrays of plain dtypes: nothing to check, for the results of compiled programs."""
    array = _new(Array)
    array._value = value
    array._weak = aval.weak_type
    array._aval = aval
    return array


@overload
def as_array(x: Token) -> Token: ...
@overload
def as_array(x: Any) -> Array: ...
def as_array(x):
    """A Python scalar, NumPy scalar or NumPy array as an Array; NumPy arrays are copied, since others may
    write to them. Tokens, the values that are no arrays, stay what they are.
    """
    kind = type(x)
    if kind is Array:
        return x
    if kind in dtypes.python_scalar_dtypes:
        return make_array(scalar_value(x), kind is not bool)
    if isinstance(x, (np.ndarray, np.generic)):
        if x.dtype == dtypes.float0:
            return make_array(np.asarray(x), False)
        check_numpy_value(x)
        x = as_base(x)
        return make_array(np.array(x, dtype=dtypes.canonicalize_dtype(x.dtype), order="C"), False)
    if isinstance(x, (bool, int, float, complex)):
        return as_array(_plain(x))
    if kind is Token or kind is Cell or getattr(kind, "_is_placed", False):
        return x
    if kind is Ref:
        return core_of(x)
    if kind in dtypes.pytype_aval_mappings:
        return as_array(dtypes.canonicalize_dtype_handlers.get(kind, np.asarray)(x))
    raise TypeError(f"Value {x!r} of type {type(x)} is not a valid JAX type.{how_to_register(x)}")


def as_base(x):
    """A NumPy value without its subclass, whose ``shape`` or ``dtype`` may say anything: what is really there."""
    return np.ndarray.view(x, np.ndarray) if isinstance(x, np.ndarray) and type(x) is not np.ndarray else x


def check_numpy_value(x) -> None:
    """Raise where a NumPy value cannot be an Array: dtypes that are no numbers, and masked arrays."""
    if not dtypes.is_scalar_or_numpy(x):
        raise TypeError(
            f"Value {x!r} with dtype {x.dtype} is not a valid JAX array type. Only arrays of numeric types "
            "are supported."
        )
    refuse_masked(x)


def refuse_masked(x) -> None:
    """Raise for a masked array: without its mask it would give wrong numbers."""
    if type(x) is not np.ndarray and hasattr(x, "mask"):
        raise ValueError(
            "numpy masked arrays are not supported as direct inputs. Use arr.filled() to convert the value "
            "to a standard numpy array."
        )


def _plain(x):
    """An instance of a subclass of a Python scalar type (an enum, say) as the plain scalar."""
    for kind in (bool, int, float, complex):
        if isinstance(x, kind):
            return kind(x)
    raise TypeError(f"{x!r} is not a scalar")


def scalar_value(x) -> np.ndarray:
    """A Python scalar as a 0-d NumPy array of its default dtype; an integer too large for it raises."""
    dtype = dtypes.canonicalize_dtype(dtypes.python_scalar_dtypes[type(x)])
    try:
        return np.array(x, dtype)
    except OverflowError:
        hint = (
            "" if dtype.itemsize == 8 else "; jax.config.update('jax_enable_x64', True) makes 64-bit integers available"
        )
        raise OverflowError(f"Python int {x} too large to convert to {dtype}{hint}") from None


def read_only(value: np.ndarray) -> np.ndarray:
    """A view of ``value`` that cannot be written to, nor be made writable: the memory's owner is locked as well."""
    if value.flags.writeable:
        owner: Any = value
        while isinstance(owner, np.ndarray):
            owner.flags.writeable = False
            owner = owner.base
    return value.view()


def live(array: Array) -> np.ndarray:
    """The NumPy value of an array that was not deleted."""
    if type(array._value) is Deleted:
        raise deleted_error(array._value.aval)
    return array._value


def scalar(array: Array):
    """The Python scalar of a 0-d array, from which Python converts further, or refuses to."""
    if array._value.ndim:
        raise TypeError(f"Only scalar arrays can be converted to Python scalars; got arr.ndim={array._value.ndim}")
    return live(array).item()


def array_repr(array: Array) -> str:
    """``Array([1., 2.], dtype=float32)``, as users of JAX and NumPy read it."""
    value = live(array)
    if type(value) is not np.ndarray:  # other processes have parts of it
        return str(value)
    weak = ", weak_type=True" if array._weak else ""
    ending = f"dtype={value.dtype.name}{weak})"
    if value.size == 0:
        return f"Array([], shape={value.shape}, {ending}"
    body = np.array2string(value, separator=", ", prefix="Array(", suffix=")")
    last_line = body.rsplit("\n", 1)[-1]
    if len(last_line) + len(ending) + 3 > np.get_printoptions()["linewidth"]:  # as JAX counts, whose texts these are
        return f"Array({body},      {ending}"
    return f"Array({body}, {ending}"


def _rebuild(value: np.ndarray, weak_type: bool) -> Array:
    """An Array from a pickle, which may come from a process with 64-bit types."""
    return make_array(value.astype(dtypes.canonicalize_dtype(value.dtype), copy=False), weak_type)
