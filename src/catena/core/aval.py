"""Abstract values: what is known of a value before it is computed.

Avals are interned: equal avals are one object, so equality and hash are those of
identity, which the caches on the hot path rely on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.context import Context
from catena.core.lazy import LazyModule, load
from catena.core.manual_axes import NOT_MANUAL, ManualAxisType
from catena.core.shapes import check_axes
from catena.core.type_sharding import axes_of, axes_text, fitted, kinds_text, said

_interned: dict = {}
layouts: Any = LazyModule("catena.core.named_sharding")  # types stand below meshes, and are there before them
specs: Any = LazyModule("catena.parallel.specs")
flat_tree: Any = LazyModule("catena.core.flat_tree")
memory: Any = LazyModule("catena.core.memory")


class AbstractValue:
    """The type of a value: of an array, a token, a reference; what is said of all of them."""

    __slots__ = ()
    said_sharding = None
    shape: tuple
    is_high = has_qdd = False  # no value is made of others, or has a type that changes while a program runs

    def update(self, **kwargs) -> AbstractValue:
        """The same type with some parts replaced."""
        raise NotImplementedError(f"{type(self).__name__} must have a method update")

    def to_tangent_aval(self) -> AbstractValue:
        """The type of tangents."""
        raise NotImplementedError(f"{type(self).__name__} must have a method to_tangent_aval")

    def to_ct_aval(self) -> AbstractValue:
        """The type of cotangents: that of tangents."""
        return self.to_tangent_aval()

    def at_least_vspace(self) -> AbstractValue:
        """The type of values that can be added: that of tangents."""
        return self.to_tangent_aval()

    def vspace_add(self, x, y):
        """The sum of two values of this type."""
        return x + y

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """The type in a few letters."""
        return type(self).__name__

    def strip_weak_type(self) -> AbstractValue:
        """The same type, no longer weak."""
        return self

    def update_weak_type(self, weak_type: bool) -> AbstractValue:
        """The same type, weak or not, where there is such a thing."""
        return self

    def normalize(self) -> AbstractValue:
        """The type that equal programs have: not a weak one."""
        return self.strip_weak_type()

    def inc_rank(self, size: int, spec: int | None) -> AbstractValue:
        """The type of values whose examples, along the axis ``spec``, are of this type."""
        if spec is None:
            return self
        if not hasattr(self, "with_axis"):
            raise TypeError(f"values of type {self} have no axes, and cannot be stacked")
        return self.with_axis(spec, size)

    def dec_rank(self, size: int, spec: int | None) -> AbstractValue:
        """The type of one example of values of this type, which are mapped along the axis ``spec``."""
        if spec is None:
            return self
        if not hasattr(self, "without_axis"):
            raise TypeError(f"values of type {self} have no axes, and cannot be mapped")
        if self.shape[spec] != size:
            raise ValueError(f"axis {spec} of {self.str_short()} is not of size {size}")
        return self.without_axis(spec)

    def leading_axis_spec(self) -> int:
        """What stands for the first axis in ``inc_rank`` and ``dec_rank``."""
        return 0

    def shard(self, mesh, manual_axes, check_vma: bool, spec) -> AbstractValue:
        """The type of the part that one device has of a value of this type.

        Arguments:
          mesh, manual_axes, check_vma: as for ``shard_map``, whose axes become Manual.
          spec: how it is split.
        """
        return specs.local_aval(self, spec, specs.region_of(mesh, manual_axes, check_vma, spec))

    def unshard(self, mesh, check_vma: bool, spec) -> AbstractValue:
        """The type of the value whose parts, one for each device, are of this type."""
        region = specs.region_of(mesh, specs.spec_names(spec), check_vma, spec)
        return specs.global_aval(self, spec, region, frozenset())

    def update_manual_axis_type(self, mat: ManualAxisType) -> AbstractValue:
        """The same type, of values that vary over other Manual axes, where there is such a thing."""
        return self

    def lo_ty(self) -> list[AbstractValue]:
        """The types of what values of this type are made of: themselves."""
        return [self]

    def lower_val(self, val) -> list:
        """What a value is made of: itself."""
        return [val]

    def raise_val(self, val):
        """The value that is made of these: the only one."""
        return val

    def lo_ty_qdd(self, qdd) -> list[AbstractValue]:
        """``lo_ty`` of a type that changes while a program runs, in the state ``qdd``; of others it must be None."""
        if qdd is not None:
            raise TypeError(f"the type {self} does not change while a program runs: qdd must be None, got {qdd!r}")
        return self.lo_ty()

    def lower_val2(self, hi_val):
        """``lower_val`` as a ``FlatTree``."""
        return flat_tree.FlatTree.flatten(self.lower_val(hi_val))

    def raise_val2(self, lo_vals_ft):
        """``raise_val`` of a ``FlatTree``."""
        return self.raise_val(*lo_vals_ft.unflatten())

    def __repr__(self):
        return type(self).__name__


class ShapedArray(AbstractValue):
    """The type of an array: its shape, its dtype, and whether it is weak (from a Python scalar).

    Arguments:
      shape: the lengths of the axes.
      dtype: the type of the elements.
      weak_type: whether the dtype yields to others.
      sharding: a NamedSharding over an AbstractMesh; what it says of axes that are Explicit belongs to the type.
      manual_axis_type: over which Manual axes of a mesh the value varies (see ``ManualAxisType``).
      memory_space: the memory that it is in: that of devices.

    ``plain`` says that neither of the last two says anything, as of nearly all types.

    >>> ShapedArray((2, 3), np.float32)
    ShapedArray(float32[2,3])
    """

    __slots__ = (
        "shape", "dtype", "weak_type", "ndim", "size", "extended", "plain", "said_sharding", "manual_axis_type",
        "__weakref__",
    )  # fmt: skip
    array_abstraction_level = 2  # shape and dtype are known: JAX's number for it

    def __new__(
        cls, shape, dtype, weak_type: bool = False, *, sharding=None, manual_axis_type=NOT_MANUAL, memory_space=None
    ):
        shape = tuple(shape)
        if memory_space is not None and memory_space is not memory.MemorySpace.Device:
            raise NotImplementedError(f"types speak of the memory of devices only, so not of {memory_space!r}")
        if sharding is None and manual_axis_type is NOT_MANUAL:
            key: tuple = (cls, shape, dtype, bool(weak_type))
            found = _interned.get(key)
            return found if found is not None else cls._intern(*key[1:])
        sharding = None if sharding is None else said(sharding, shape)
        if sharding is None and manual_axis_type == NOT_MANUAL:
            return cls(shape, dtype, weak_type)
        key = (cls, shape, dtype, bool(weak_type), sharding, manual_axis_type)
        found = _interned.get(key)
        return found if found is not None else cls._intern(*key[1:])

    @classmethod
    def _intern(cls, shape, dtype, weak_type, *layout):
        """The slow half of ``__new__``: canonical parts, then one object for each distinct aval."""
        shape = tuple([int(d) for d in shape])
        check_axes(shape)
        if not isinstance(dtype, dtypes.ExtendedDType):
            dtype = np.dtype(dtype)
        made = object.__new__(cls)
        made._fill(shape, dtype, weak_type, *layout)
        return _interned.setdefault((cls, shape, dtype, weak_type, *layout), made)

    def _fill(self, shape, dtype, weak_type, sharding=None, manual_axis_type=NOT_MANUAL):
        self.shape, self.dtype, self.weak_type = shape, dtype, weak_type
        self.said_sharding, self.manual_axis_type = sharding, manual_axis_type
        self.plain = sharding is None and (manual_axis_type is NOT_MANUAL or manual_axis_type == NOT_MANUAL)
        if sharding is not None and not Context.laid_out:
            Context.laid_out = True
            load("catena.parallel.rules")
        if not Context.has_terms and not self.plain:
            spec = NOT_MANUAL if sharding is None else sharding.spec
            Context.has_terms = any(
                (spec.unreduced, spec.reduced, manual_axis_type.unreduced, manual_axis_type.reduced)
            )
        self.ndim = len(shape)
        self.extended = isinstance(dtype, dtypes.ExtendedDType)  # such arrays are of a class of their own
        size = 1
        for d in shape:
            size *= d
        self.size = size

    def __reduce__(self):
        if self.plain:
            return type(self), (self.shape, self.dtype, self.weak_type)
        return _laid_out, (type(self), self.shape, self.dtype, self.weak_type, self.said_sharding, self.mat)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    @property
    def sharding(self):
        """How arrays of this type are split, over an abstract mesh: where nothing is said, that in force."""
        return layouts.sharding_of_type(self)

    @property
    def mat(self) -> ManualAxisType:
        """Over which Manual axes of a mesh the value varies: ``manual_axis_type``."""
        return self.manual_axis_type

    @property
    def memory_space(self):
        """The memory that values of this type are in: that of the device."""
        return memory.MemorySpace.Device

    @property
    def vma(self) -> frozenset:
        """The names of the Manual axes over which the value varies."""
        return self.manual_axis_type.varying

    def update(self, shape=None, dtype=None, weak_type=None, **layout) -> ShapedArray:
        """The same aval with some parts replaced: besides these, ``sharding`` and ``manual_axis_type``. A sharding is
        cut or filled up to a new number of axes.
        """
        shape = self.shape if shape is None else tuple(shape)
        dtype = self.dtype if dtype is None else dtype
        weak_type = self.weak_type if weak_type is None else weak_type
        if self.plain and not layout:
            return ShapedArray(shape, dtype, weak_type)
        sharding = self.said_sharding
        if sharding is not None and len(shape) != self.ndim:
            sharding = fitted(sharding, len(shape))
        kept = {"sharding": sharding, "manual_axis_type": self.manual_axis_type}
        return ShapedArray(shape, dtype, weak_type, **(kept | layout))

    def without_axis(self, axis: int) -> ShapedArray:
        """The type of what stands at one place of an axis."""
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        if self.said_sharding is None:
            return self.update(shape=shape)
        spec = self.said_sharding.spec
        parts = spec.partitions[:axis] + spec.partitions[axis + 1 :]
        return self.update(shape=shape, sharding=self.said_sharding.update(spec=spec.update(partitions=parts)))

    def with_axis(self, axis: int, size: int, split=None) -> ShapedArray:
        """The type of ``size`` such values along a new axis, which is split as a vector of the sharding ``split``."""
        shape = (*self.shape[:axis], size, *self.shape[axis:])
        sharding = self.said_sharding or split
        if sharding is None:
            return self.update(shape=shape)
        own = (None,) * self.ndim if self.said_sharding is None else sharding.spec.partitions
        part = None if split is None else split.spec.partitions[0]
        if {n for entry in own for n in axes_of(entry)}.intersection(axes_of(part)):
            part = None  # what is split already along one axis is not along another
        spec = sharding.spec.update(partitions=(*own[:axis], part, *own[axis:]))
        return self.update(shape=shape, sharding=sharding.update(spec=spec))

    def along(self, axis: int):
        """How one axis is split: as a vector of the sharding that is returned, or ``None``."""
        if self.said_sharding is None or self.said_sharding.spec.partitions[axis] is None:
            return None
        parts = self.said_sharding.spec.partitions[axis : axis + 1]
        return self.said_sharding.update(spec=type(self.said_sharding.spec)(*parts))

    def nospec(self, mesh, check_vma: bool, all_names):
        """The spec of results of this type where ``out_specs`` says nothing: what varies does so along one axis."""
        names = self.vma if check_vma else all_names
        return layouts.PartitionSpec(tuple(names)) if names else layouts.PartitionSpec()

    def update_manual_axis_type(self, mat: ManualAxisType) -> ShapedArray:
        """The same type, of values that vary over other Manual axes."""
        return self.update(manual_axis_type=mat)

    def update_weak_type(self, weak_type: bool) -> ShapedArray:
        """The same type, weak or not."""
        return self.update(weak_type=weak_type)

    def unsplit(self) -> ShapedArray:
        """The same aval without a sharding."""
        return self if self.said_sharding is None else self.update(sharding=None)

    def strip_weak_type(self) -> ShapedArray:
        """The same aval, no longer weak."""
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The type of this value's tangents: itself for inexact dtypes, float0 for the rest."""
        if dtypes.is_inexact(self.dtype):
            return self
        if isinstance(self.dtype, dtypes.ExtendedDType):
            return ShapedArray(self.shape, self.dtype.tangent_dtype())
        return self.update(dtype=dtypes.float0, weak_type=False)

    at_least_vspace = to_tangent_aval  # the older name, that libraries know

    def to_ct_aval(self) -> ShapedArray:
        """The type of this value's cotangents: what is reduced in one is unreduced in the other."""
        found = self.to_tangent_aval()
        if found.plain:
            return found
        said = found.said_sharding
        said = None if said is None else said.update(spec=said.spec.to_ct_spec())
        return found.update(sharding=said, manual_axis_type=found.manual_axis_type.to_ct_mat())

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """``float32[2,3]``, or ``f32[2,3]`` with short dtypes; and, if asked, the axes of its mesh by their kinds."""
        name = dtypes.short_dtype_name(self.dtype) if short_dtypes else dtypes.dtype_name(self.dtype)
        mesh = f"({kinds_text(self.sharding.mesh)})" if mesh_axis_types else ""
        if self.plain:
            return f"{name}[{','.join(map(str, self.shape))}]{mesh}"
        return f"{name}[{axes_text(self.shape, self.said_sharding)}]{self.states_text()}{mesh}"

    def states_text(self) -> str:
        """``{V:(data,model)}``, ``{U:data}``: the axes of a mesh over which copies differ, or wait to be added."""
        spec = self.said_sharding.spec if self.said_sharding is not None else NOT_MANUAL
        return self.manual_axis_type.joined(spec.unreduced, spec.reduced).text()

    def __str__(self):
        return ("~" if self.weak_type else "") + self.str_short()

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"


def _laid_out(cls, shape, dtype, weak_type, sharding, manual_axis_type):
    """A type that is read from a pickle."""
    return cls(shape, dtype, weak_type, sharding=sharding, manual_axis_type=manual_axis_type)


class AbstractToken(AbstractValue):
    """The type of a token: a value that carries nothing but order. There is one such type.

    To what asks for shape and dtype it looks like a scalar without data (float0), so programs neither take nor
    compute tokens.
    """

    __slots__ = ("__weakref__",)
    shape, dtype, weak_type, ndim, size = (), dtypes.float0, False, 0, 0
    extended = True  # tokens are of a class of their own

    def __new__(cls):
        return abstract_token

    def __reduce__(self):
        return AbstractToken, ()

    def with_axis(self, axis: int, size: int, split=None):
        """Refused, as below."""
        return self.update(shape=(size,))

    def update(self, **parts):
        """Tokens have no parts to replace: they cannot be stacked, nor get an axis or a dtype."""
        raise TypeError(
            f"a token has no {' or '.join(parts)}: it cannot be mapped, stacked or converted. Under vmap it is one for "
            "all examples (in_axes and out_axes None), in a loop it is carried along."
        )

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """``Tok``, as jaxprs print it."""
        return "Tok"

    def inc_rank(self, size: int, spec: int | None) -> AbstractToken:
        """The same type: a token is one for all examples."""
        return self

    dec_rank = inc_rank

    def to_tangent_aval(self) -> ShapedArray:
        """The type of tangents: there are none, so float0."""
        return ShapedArray((), dtypes.float0)

    def __repr__(self):
        return "AbstractToken()"


abstract_token = object.__new__(AbstractToken)


class AbstractRef(AbstractValue):
    """The type of a reference: the type of what it refers to, and that it may be read and written in place.

    Arguments:
      inner_aval: the type of the value.
      memory_space: where the value lies; there is one place, ``None``.
      kind: a word that is passed on.

    >>> AbstractRef(ShapedArray((3,), np.float32))
    Ref{float32[3]}
    """

    __slots__ = ("inner_aval", "memory_space", "kind", "shape", "dtype", "weak_type", "ndim", "size", "__weakref__")
    extended = True  # references are of a class of their own
    inner_aval: ShapedArray
    memory_space: Any
    kind: Any

    def __new__(cls, inner_aval, memory_space=None, kind=None):
        key = (cls, inner_aval, memory_space, kind)
        found = _interned.get(key)
        if found is None:
            made = object.__new__(cls)
            made.inner_aval, made.memory_space, made.kind = inner_aval, memory_space, kind
            for part in ("shape", "dtype", "weak_type", "ndim", "size"):
                setattr(made, part, getattr(inner_aval, part))
            found = _interned.setdefault(key, made)
        return found

    def __reduce__(self):
        return AbstractRef, (self.inner_aval, self.memory_space, self.kind)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def with_axis(self, axis: int, size: int, split=None) -> AbstractRef:
        """The type of a reference to ``size`` such values along a new axis."""
        return self.update(self.inner_aval.with_axis(axis, size, split))

    def along(self, axis: int):
        """How one axis of what it refers to is split, or ``None``."""
        return self.inner_aval.along(axis)

    def without_axis(self, axis: int) -> AbstractRef:
        """The type of a reference to what stands at one place of an axis."""
        return self.update(self.inner_aval.without_axis(axis))

    def unsplit(self) -> AbstractRef:
        """The same type: what it refers to is not split."""
        return self

    def update(  # type: ignore[override]
        self, inner_aval=None, memory_space=None, kind=None, *, shape=None
    ) -> AbstractRef:
        """The same type with some parts replaced."""
        inner = self.inner_aval if inner_aval is None else inner_aval
        inner = inner if shape is None else inner.update(shape=shape)
        return AbstractRef(inner, memory_space or self.memory_space, kind or self.kind)

    def lower_val(self, ref) -> list:
        """What a reference is made of: itself."""
        return [ref]

    def raise_val(self, *vals):
        """The reference that is made of these: the only one."""
        (ref,) = vals
        return ref

    def shard(self, mesh, manual_axes, check_vma: bool, spec) -> AbstractRef:
        """The type of a reference to the part that one device has."""
        return self.update(self.inner_aval.shard(mesh, manual_axes, check_vma, spec))

    def unshard(self, mesh, check_vma: bool, spec) -> AbstractRef:
        """Refused: references do not leave a ``shard_map``."""
        raise TypeError(f"{self.str_short()} cannot be returned from a shard_map: return what it refers to")

    def update_manual_axis_type(self, mat: ManualAxisType) -> AbstractRef:
        """The type of a reference to values that vary over other Manual axes."""
        return self.update(self.inner_aval.update_manual_axis_type(mat))

    @property
    def sharding(self):
        """How what it refers to is split."""
        return self.inner_aval.sharding

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """Over which Manual axes of a mesh what it refers to varies."""
        return self.inner_aval.manual_axis_type

    mat = manual_axis_type

    def strip_weak_type(self) -> AbstractRef:
        """The same type, no longer weak."""
        return self.update(self.inner_aval.strip_weak_type())

    def to_tangent_aval(self) -> AbstractRef:
        """The type of the reference that holds the tangent of the value."""
        return self.update(self.inner_aval.to_tangent_aval())

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """``Ref{float32[3]}``, or ``Ref{f32[3]}`` with short dtypes."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes, mesh_axis_types)}}}"

    def __repr__(self):
        return self.str_short()


def same_type(a, b) -> bool:
    """Whether two avals agree in all but weakness."""
    if a is b:
        return True
    alike = a.shape == b.shape and a.dtype == b.dtype and type(a) is type(b)
    if not alike or type(a) is not ShapedArray or (a.plain and b.plain):
        return alike
    return a.said_sharding == b.said_sharding and a.manual_axis_type == b.manual_axis_type
