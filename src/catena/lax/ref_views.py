"""Parts of references as users name them: an index into a reference or a view of one, and what fits into the part."""

from __future__ import annotations

from catena.core import dtypes
from catena.core.aval import AbstractRef, ShapedArray
from catena.core.ref import Ref
from catena.core.trace import leaf_value
from catena.core.zeros import get_aval
from catena.lax.convert import convert
from catena.lax.ref_index import parse, shape_after


def part_aval(ref: AbstractRef, path: tuple, operands) -> ShapedArray:
    """The type of the part of a reference that a path leads to; ``operands`` by their types or values."""
    shape = shape_after(path, ref.shape, [x.shape for x in operands])
    return ref.inner_aval.update(shape=shape)


class RefView:
    """A part of a reference, or its elements in another order, to be read and written: ``ref.at[index]``, ``ref.T``."""

    __slots__ = ("ref", "path", "operands")

    def __init__(self, ref: Ref, transforms: tuple, operands: list | None = None):
        self.ref, self.path, self.operands = ref, tuple(transforms), operands or []

    @property
    def transforms(self) -> tuple:
        """What leads from the reference to the part, step by step."""
        return self.path

    @property
    def type(self) -> ShapedArray:
        """The type of what is read."""
        return part_aval(self.ref.aval, self.path, self.operands)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether its shape is not known before the program runs: it always is."""
        return False

    @property
    def shape(self) -> tuple:
        """The length of each axis."""
        return part_aval(self.ref.aval, self.path, self.operands).shape

    @property
    def dtype(self):
        """The type of the elements."""
        return self.ref.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return part_aval(self.ref.aval, self.path, self.operands).size

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self):
        return f"RefView(ref={self.ref!r}, shape={self.shape})"


class RefIndexer:
    """``ref.at``: parts of a reference as references."""

    __slots__ = ("ref",)

    def __init__(self, ref):
        self.ref = ref

    def __getitem__(self, index) -> RefView:
        return view_of(self.ref, index, "ref.at")

    def __repr__(self):
        return f"RefIndexer({self.ref!r})"


def located(ref, index, name: str) -> tuple[Ref, tuple, list]:
    """The reference, the path and the operands of an index into a reference or a part of one."""
    if type(ref) is RefView:
        path, operands = parse(ref.shape, index)
        return ref.ref, ref.path + path, ref.operands + operands
    if type(ref) is not Ref:
        raise ValueError(f"{name} takes a reference (jax.new_ref makes one), got {ref!r}")
    return ref, *parse(ref.shape, index)


def view_of(ref, index, name: str) -> RefView:
    return RefView(*located(ref, index, name))


def checked(ref: Ref, path: tuple, operands: list, x, name: str):
    """``x`` as what can be written to a part of a reference.

    Raises:
      ValueError: it is of another shape or dtype. TypeError: it is no value of the language.
    """
    x = leaf_value(x)
    expected, given = part_aval(ref.aval, path, operands), get_aval(x)
    if type(given) is AbstractRef:
        raise TypeError(f"{name} was given a reference of type {given.str_short()}; ref[...] is its value")
    if given.dtype != expected.dtype and _becomes(given, expected.dtype):
        x = convert(x, expected.dtype)
        given = get_aval(x)
    if given.dtype != expected.dtype:
        raise ValueError(
            f"{name}: a value of dtype {dtypes.dtype_name(given.dtype)} does not fit into a reference of type "
            f"{ref.aval.str_short()}, which keeps its dtype: convert it by x.astype(ref.dtype)"
        )
    if given.shape != expected.shape:
        raise ValueError(
            f"{name}: a value of shape {given.shape} does not fit into a part of shape {expected.shape} of a reference "
            f"of type {ref.aval.str_short()}; values are not broadcast: use jnp.full or jnp.broadcast_to"
        )
    return x


KINDS = {d: "i" if k in "iu" else k for d, k in dtypes.KIND.items()}


def _becomes(given, dtype) -> bool:
    """Whether a value is converted where it is written: integers are, and weak numbers to others of their kind."""
    kind = KINDS.get(given.dtype)
    return kind == KINDS.get(dtype) and (kind == "i" or given.weak_type)
