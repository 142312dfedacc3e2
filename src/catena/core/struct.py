"""``ShapeDtypeStruct``: the shape and dtype of an array, without the array."""

import numpy as np

from catena.core import dtypes
from catena.core.aval import AbstractRef, AbstractToken, ShapedArray
from catena.core.dimensions import Dimension
from catena.core.manual_axes import NOT_MANUAL
from catena.core.type_sharding import in_types


class ShapeDtypeStruct:
    """A container for the shape, dtype and weakness of an array; stands in for arrays where no values are needed.

    Arguments:
      shape: a sequence of integers.
      dtype: anything that names a dtype.
      sharding: a placement, or ``None``.
      weak_type: whether the dtype is weak.
      manual_axis_type: which manual mesh axes the value varies over, or ``None``.
      is_ref: whether it describes a mutable reference.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.ShapeDtypeStruct((2, 3), jnp.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("shape", "dtype", "sharding", "weak_type", "manual_axis_type", "is_ref", "__weakref__")

    def __init__(
        self,
        shape,
        dtype,
        *,
        sharding=None,
        weak_type: bool = False,
        manual_axis_type=None,
        is_ref: bool = False,
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        try:
            self.shape = tuple(shape)
        except TypeError:
            raise TypeError(f"ShapeDtypeStruct: shape must be a tuple of integers, got {shape!r}") from None
        self.dtype = dtype if dtypes.is_extended(dtype) else np.dtype(dtype)
        self.sharding, self.weak_type = sharding, weak_type
        self.manual_axis_type, self.is_ref = manual_axis_type, is_ref

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def format(self):
        """The placement, under its other name."""
        return self.sharding

    @classmethod
    def like(cls, x) -> "ShapeDtypeStruct":
        """The description of an existing array."""
        said = getattr(x, "said_sharding", None)
        return cls(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False), sharding=said)

    def update(self, **kwargs) -> "ShapeDtypeStruct":
        """The same with some parts replaced."""
        parts = {name: getattr(self, name) for name in self.__slots__[:-1]}
        unknown = kwargs.keys() - parts.keys()
        if unknown:
            raise TypeError(f"ShapeDtypeStruct has no parts {sorted(unknown)}")
        parts.update(kwargs)
        return ShapeDtypeStruct(parts.pop("shape"), parts.pop("dtype"), **parts)

    def _key(self):
        return self.shape, self.dtype, self.sharding, self.weak_type, self.manual_axis_type, self.is_ref

    def __setstate__(self, state):
        for name, value in state[1].items():  # JAX's, too, which keeps a placement as a private part
            if (part := name.removeprefix("_")) in self.__slots__:
                setattr(self, part, value)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        parts = [f"shape={self.shape}", f"dtype={dtypes.dtype_name(self.dtype)}"]
        if self.sharding is not None:
            parts.append(f"sharding={self.sharding}")
        if self.weak_type:
            parts.append("weak_type=True")
        if self.is_ref:
            parts.append("is_ref=True")
        return f"ShapeDtypeStruct({', '.join(parts)})"


def type_of_struct(x: ShapeDtypeStruct) -> ShapedArray | AbstractRef:
    """The type of the arrays, or references, that ``x`` describes."""
    if any(isinstance(d, Dimension) for d in x.shape):
        raise NotImplementedError(
            f"{x} has symbolic dimensions, which jax.eval_shape and jax.export take: other programs are of known "
            "lengths. Trace and compile the function for each shape."
        )
    dtype = dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True)
    states = x.manual_axis_type or NOT_MANUAL
    aval = ShapedArray(x.shape, dtype, x.weak_type, sharding=in_types(x.sharding), manual_axis_type=states)
    return AbstractRef(aval) if x.is_ref else aval


def struct_of(aval) -> ShapeDtypeStruct | AbstractToken:
    """What stands for values of the type ``aval`` to users: a struct for arrays, the type itself for tokens."""
    return aval if isinstance(aval, AbstractToken) else ShapeDtypeStruct.like(aval)
