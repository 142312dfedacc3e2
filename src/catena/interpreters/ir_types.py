"""Types and attributes of programs, as MLIR names and writes them (``mlir.ir``): what rules ask their values for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from catena.core.array import Array as Value  # noqa: F401  (what rules compute with: traced arrays)
from catena.core.dtypes import finfo as _finfo
from catena.core.dtypes import float0 as _float0
from catena.core.dtypes import is_complex as _is_complex
from catena.core.dtypes import is_floating as _is_floating
from catena.core.dtypes import is_integer as _is_integer
from catena.core.dtypes import itemsize_bits as _itemsize_bits

_MOST_SHOWN = 100  # elements that are written one by one


class _Written:
    """What has parts and a text, and equals what is of the same class with the same parts."""

    __slots__ = ("_parts",)
    _parts: tuple

    def __new__(cls, cast_from: _Written):
        """The same, where it is of this class: how rules say what they expect."""
        if not isinstance(cast_from, cls):
            raise ValueError(f"{cast_from!r} is no {cls.__name__}")
        return cast_from

    @classmethod
    def _of(cls, *parts: Any):
        made = object.__new__(cls)
        made._parts = parts
        return made

    def __eq__(self, other):
        return type(self) is type(other) and self._parts == other._parts

    def __hash__(self):
        return hash((type(self), self._parts))

    def __repr__(self):
        return f"{type(self).__name__}({self})"


class Context:
    """What types belong to in MLIR. Here types are values like others: they need none, and all contexts are equal."""

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exc_info) -> None:
        pass

    def __eq__(self, other):
        return isinstance(other, Context)

    __hash__ = object.__hash__


# ---- types


class Type(_Written):
    """What is known of a value before it is computed."""

    __slots__ = ()


class IntegerType(Type):
    """Integers of a width, unsigned or not; booleans are those of one bit.

    >>> from catena.interpreters.mlir import ir
    >>> ir.IntegerType.get_unsigned(8)
    IntegerType(ui8)
    """

    __slots__ = ()
    width = property(lambda self: self._parts[0])
    is_unsigned = property(lambda self: self._parts[1])
    is_signless = property(lambda self: not self._parts[1])

    @classmethod
    def get_signless(cls, width: int) -> IntegerType:
        """Those that are not said to be unsigned."""
        return cls._of(width, False)

    @classmethod
    def get_unsigned(cls, width: int) -> IntegerType:
        """The unsigned ones."""
        return cls._of(width, True)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of arrays of these."""
        return np.dtype("bool" if self._parts == (1, False) else f"{'u' * self.is_unsigned}int{self.width}")

    def __str__(self):
        return f"{'u' * self.is_unsigned}i{self.width}"


class FloatType(Type):
    """Floats; each format has a class.

    >>> from catena.interpreters.mlir import ir
    >>> ir.F32Type.get(), ir.BF16Type.get().width
    (F32Type(f32), 16)
    """

    __slots__ = ()
    dtype: np.dtype
    width = property(lambda self: _itemsize_bits(self.dtype))

    @classmethod
    def get(cls) -> FloatType:
        """The type."""
        return cls._of()

    def __str__(self):
        name = type(self).__name__.removesuffix("Type")
        return f"f{name.removeprefix('Float')}" if name.startswith("Float") else name.lower()


def _float_type(name: str, dtype: str) -> Any:
    of_arrays = property(lambda self: np.dtype(dtype))
    return type(name, (FloatType,), {"__slots__": (), "dtype": of_arrays, "__module__": __name__})


F16Type = _float_type("F16Type", "float16")
F32Type = _float_type("F32Type", "float32")
F64Type = _float_type("F64Type", "float64")
BF16Type = _float_type("BF16Type", "bfloat16")
Float4E2M1FNType = _float_type("Float4E2M1FNType", "float4_e2m1fn")
Float6E2M3FNType = _float_type("Float6E2M3FNType", "float6_e2m3fn")
Float6E3M2FNType = _float_type("Float6E3M2FNType", "float6_e3m2fn")
Float8E3M4Type = _float_type("Float8E3M4Type", "float8_e3m4")
Float8E4M3Type = _float_type("Float8E4M3Type", "float8_e4m3")
Float8E4M3B11FNUZType = _float_type("Float8E4M3B11FNUZType", "float8_e4m3b11fnuz")
Float8E4M3FNType = _float_type("Float8E4M3FNType", "float8_e4m3fn")
Float8E4M3FNUZType = _float_type("Float8E4M3FNUZType", "float8_e4m3fnuz")
Float8E5M2Type = _float_type("Float8E5M2Type", "float8_e5m2")
Float8E5M2FNUZType = _float_type("Float8E5M2FNUZType", "float8_e5m2fnuz")
Float8E8M0FNUType = _float_type("Float8E8M0FNUType", "float8_e8m0fnu")
_float_types = {cls._of().dtype: cls for cls in FloatType.__subclasses__()}


class ComplexType(Type):
    """Complex numbers of floats."""

    __slots__ = ()
    element_type = property(lambda self: self._parts[0])
    dtype = property(lambda self: np.result_type(self.element_type.dtype, np.complex64))

    @classmethod
    def get(cls, element_type: FloatType) -> ComplexType:
        """Those whose parts are of this type."""
        return cls._of(element_type)

    def __str__(self):
        return f"complex<{self.element_type}>"


class ShapedType(Type):
    """Types of arrays."""

    __slots__ = ()


class RankedTensorType(ShapedType):
    """Arrays of a shape, whose elements are of a type.

    >>> from catena.interpreters.mlir import ir
    >>> kind = ir.RankedTensorType.get([2, 3], ir.F32Type.get())
    >>> kind, kind.shape, ir.RankedTensorType(kind).element_type
    (RankedTensorType(tensor<2x3xf32>), [2, 3], F32Type(f32))
    """

    __slots__ = ()
    shape = property(lambda self: list(self._parts[0]))
    rank = property(lambda self: len(self._parts[0]))
    element_type = property(lambda self: self._parts[1])
    has_rank = has_static_shape = True

    @classmethod
    def get(cls, shape: Sequence[int], element_type: Type) -> RankedTensorType:
        """Those of this shape."""
        return cls._of(tuple(int(n) for n in shape), element_type)

    def get_dim_size(self, dim: int) -> int:
        """The extent of an axis."""
        return self._parts[0][dim]

    def __str__(self):
        return f"tensor<{''.join([f'{n}x' for n in self._parts[0]])}{self.element_type}>"


class TokenType(Type):
    """What orders effects, and has no data."""

    __slots__ = ()

    @classmethod
    def get(cls) -> TokenType:
        """The type."""
        return cls._of()

    def __str__(self):
        return "!stablehlo.token"


class FunctionType(Type):
    """What functions take and return."""

    __slots__ = ()
    inputs = property(lambda self: list(self._parts[0]))
    results = property(lambda self: list(self._parts[1]))

    @classmethod
    def get(cls, inputs: Sequence[Type], results: Sequence[Type]) -> FunctionType:
        """Functions from these to those."""
        return cls._of(tuple(inputs), tuple(results))

    def __str__(self):
        results = ", ".join(map(str, self._parts[1]))
        taken = ", ".join(map(str, self._parts[0]))
        return f"({taken}) -> {results if len(self._parts[1]) == 1 else f'({results})'}"


def type_of_dtype(dtype: Any) -> Type:
    """The type of the elements of arrays. Raises TypeError where there is none."""
    found = np.dtype(dtype)
    if found in _float_types:
        return _float_types[found]._of()
    if found in (np.dtype(bool), _float0):
        return IntegerType.get_signless(1)
    if _is_integer(found):
        return IntegerType._of(_itemsize_bits(found), found.name.startswith("u"))
    if _is_complex(found):
        return ComplexType.get(_float_types[np.empty(0, found).real.dtype]._of())
    raise TypeError(f"there is no type of elements for dtype {found}")


# ---- attributes


class Attribute(_Written):
    """A value that is known where a program is written."""

    __slots__ = ()
    value = property(lambda self: self._parts[0])


class IntegerAttr(Attribute):
    """An integer of a type."""

    __slots__ = ()
    type = property(lambda self: self._parts[1])

    @classmethod
    def get(cls, type: IntegerType, value: int) -> IntegerAttr:
        """This number, as one of the type."""
        return cls._of(int(value), IntegerType(type))

    def __int__(self):
        return self.value

    def __str__(self):
        return _element(self.value, self.type) + ("" if self.type.dtype == bool else f" : {self.type}")


class BoolAttr(IntegerAttr):
    """True or False."""

    __slots__ = ()

    @classmethod
    def get(cls, value: bool) -> IntegerAttr:  # type: ignore[override]
        """An integer of one bit."""
        return IntegerAttr._of(bool(value), IntegerType.get_signless(1))


class FloatAttr(Attribute):
    """A float of a type."""

    __slots__ = ()
    type = property(lambda self: self._parts[1])

    @classmethod
    def get(cls, type: FloatType, value: float) -> FloatAttr:
        """This number, rounded to the type."""
        with np.errstate(over="ignore"):  # what is too large is infinite
            return cls._of(float(FloatType(type).dtype.type(value)), type)

    def __float__(self):
        return self.value

    def __str__(self):
        return f"{_element(self.value, self.type)} : {self.type}"


class StringAttr(Attribute):
    """A string."""

    __slots__ = ()

    @classmethod
    def get(cls, value: str) -> StringAttr:
        """This string."""
        return cls._of(str(value))

    def __str__(self):
        plain = [c if 32 <= c < 127 and c not in b'"\\' else None for c in self.value.encode()]
        return (
            '"' + "".join(chr(p) if p else f"\\{c:02X}" for p, c in zip(plain, self.value.encode(), strict=True)) + '"'
        )


class FlatSymbolRefAttr(Attribute):
    """The name of a function."""

    __slots__ = ()

    @classmethod
    def get(cls, value: str) -> FlatSymbolRefAttr:
        """This name."""
        return cls._of(str(value))

    def __str__(self):
        return f"@{self.value}"


class UnitAttr(Attribute):
    """Something is so."""

    __slots__ = ()

    @classmethod
    def get(cls) -> UnitAttr:
        """The attribute."""
        return cls._of()

    def __str__(self):
        return "unit"


class TypeAttr(Attribute):
    """A type."""

    __slots__ = ()

    @classmethod
    def get(cls, value: Type) -> TypeAttr:
        """This type."""
        return cls._of(Type(value))

    def __str__(self):
        return str(self.value)


class ArrayAttr(Attribute):
    """A sequence of attributes."""

    __slots__ = ()

    @classmethod
    def get(cls, attributes: Sequence[Attribute]) -> ArrayAttr:
        """These."""
        return cls._of(tuple(attributes))

    def __len__(self):
        return len(self.value)

    def __getitem__(self, i):
        return self.value[i]

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.value)

    def __str__(self):
        return f"[{', '.join([str(x).removesuffix(' : i64') for x in self.value])}]"


class DictAttr(Attribute):
    """Attributes by their names."""

    __slots__ = ()

    @classmethod
    def get(cls, value: dict[str, Attribute]) -> DictAttr:
        """These."""
        return cls._of(tuple(sorted(value.items())))

    def __len__(self):
        return len(self.value)

    def __contains__(self, name):
        return name in dict(self.value)

    def __getitem__(self, name: str) -> Attribute:
        return dict(self.value)[name]

    def __str__(self):
        parts = [name if isinstance(x, UnitAttr) else f"{name} = {x}" for name, x in self.value]
        return "{" + ", ".join(parts) + "}"


class DenseI64ArrayAttr(ArrayAttr):
    """Integers, in Python's form."""

    __slots__ = ()

    @classmethod
    def get(cls, values: Sequence[int]) -> DenseI64ArrayAttr:  # type: ignore[override]
        """These."""
        return cls._of(tuple(int(i) for i in values))

    def __str__(self):
        return f"array<i64{': ' * bool(self.value)}{', '.join(map(str, self.value))}>"


class DenseElementsAttr(Attribute):
    """An array: ``np.asarray`` gives its elements.

    >>> import numpy as np
    >>> from catena.interpreters.mlir import ir
    >>> ir.DenseElementsAttr.get(np.array([1.0, 0.5], np.float32))
    DenseElementsAttr(dense<[1.000000e+00, 5.000000e-01]> : tensor<2xf32>)
    """

    __slots__ = ()
    type = property(lambda self: RankedTensorType.get(self._parts[0].shape, self._parts[1]))

    @classmethod
    def get(cls, array: Any, signless: bool = True) -> DenseElementsAttr:
        """An array; its integers are signless where it is not said otherwise."""
        held = np.array(array)
        element = type_of_dtype(held.dtype)
        if signless and isinstance(element, IntegerType):
            element = IntegerType.get_signless(element.width)
        held.flags.writeable = False
        return cls._of(held, element)

    @property
    def is_splat(self) -> bool:
        """Whether all elements are one."""
        return self.value.size > 0 and (self.value.tobytes() == self.value.reshape(-1)[:1].tobytes() * self.value.size)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.value, dtype) if copy else np.asarray(self.value, dtype)

    def __len__(self):
        return self.value.size

    def __eq__(self, other):
        return type(self) is type(other) and (self.type, self.value.tobytes()) == (other.type, other.value.tobytes())

    def __hash__(self):
        return hash((self.type, self.value.tobytes()))

    def __str__(self):
        return f"dense<{self._elements()}> : {self.type}"

    def _elements(self) -> str:
        element = self._parts[1]
        if self.is_splat:
            return _element(self.value.reshape(-1)[0], element)
        if self.value.size > _MOST_SHOWN:
            return f'"0x{self.value.tobytes().hex().upper()}"'
        return _nested(self.value, element) if self.value.size else ""


def _nested(x: np.ndarray, element: Type) -> str:
    return f"[{', '.join(_nested(y, element) for y in x)}]" if x.ndim else _element(x[()], element)


def _element(x: Any, element: Type) -> str:
    """A number of a type."""
    if isinstance(element, ComplexType):
        return f"({_element(x.real, element.element_type)},{_element(x.imag, element.element_type)})"
    dtype = element.dtype  # type: ignore[attr-defined]
    if dtype.kind == "b":
        return "true" if x else "false"
    return _float(dtype.type(x), dtype) if _is_floating(dtype) else str(int(x))


def _float(x: Any, dtype: np.dtype) -> str:
    """A float by its first six digits where these are all, else by as many as tell it from others, else by its bits."""
    if np.isfinite(x) and dtype.type(f"{float(x):.5e}") == x:
        return f"{float(x):.6e}"
    digits = 2 + (_finfo(dtype).nmant + 1) * 59 // 196
    text = f"{float(x):.{digits}g}"
    if np.isfinite(x) and "." in text and "e" not in text:
        return text
    bits = np.asarray(x).view(f"u{dtype.itemsize}")
    return f"0x{int(bits):0{2 * dtype.itemsize}X}"


# ---- attributes of Python's values


def attribute_of(val: Any) -> Attribute:
    """The attribute that stands for a bool, a number, a string, an array, or a sequence or dict of such.

    Raises:
      TypeError: something else.
    """
    if isinstance(val, Attribute):
        return val
    if isinstance(val, Type):
        return TypeAttr.get(val)
    if isinstance(val, str):
        return StringAttr.get(val)
    if isinstance(val, dict):
        return DictAttr.get({name: attribute_of(x) for name, x in val.items()})
    if isinstance(val, (list, tuple)):
        return ArrayAttr.get([attribute_of(x) for x in val])
    if isinstance(val, np.ndarray) and val.ndim:
        return DenseElementsAttr.get(val)
    if isinstance(val, (bool, int, float, np.generic, np.ndarray)):
        element = type_of_dtype(np.asarray(val).dtype)
        if isinstance(element, IntegerType):
            return IntegerAttr.get(element, val) if element.dtype != bool else BoolAttr.get(bool(val))
        if isinstance(element, FloatType):
            return FloatAttr.get(element, float(val))
    raise TypeError(f"there is no attribute that stands for {val!r} of {type(val)}")
