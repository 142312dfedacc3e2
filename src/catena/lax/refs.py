"""References: mutable arrays, their operations with all rules, and the methods of ``Ref``."""

from __future__ import annotations

from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.array import Array, make_array, typed_array
from catena.core.aval import AbstractRef, ShapedArray
from catena.core.axes import broadcast_axis, move_axis
from catena.core.context import context
from catena.core.effects import AccumEffect, ReadEffect, WriteEffect
from catena.core.evaluate import concrete
from catena.core.primitive import NoRule, Primitive, StatePrimitive
from catena.core.ref import Cell, Ref, as_ref, core_of
from catena.core.source import user_source
from catena.core.structural import addupdate_p, get_p, new_ref_p, swap_p
from catena.core.trace import leaf_value
from catena.core.traceback import api_boundary
from catena.core.zeros import Zero, get_aval, instantiate, zeros
from catena.lax.convert import convert
from catena.lax.ref_index import Index, Permute, Reshape, Span, numpy_part, parse, read, shape_after, write
from catena.runtime import buffers
from catena.transform.batch import batch_flat
from catena.transform.discharge import State

DISCHARGED = NoRule("programs have no references: they become values before compilation (transform/discharge.py)")
STATEFUL = NoRule("the backward pass keeps references to cotangents instead, by the rule `cotangent`")


# ---- what the rules share


def part_aval(ref: AbstractRef, path: tuple, operands) -> ShapedArray:
    """The type of the part of a reference that a path leads to; ``operands`` by their types or values."""
    shape = shape_after(path, ref.shape, [x.shape for x in operands])
    return ref.inner_aval.update(shape=shape)


def differentiated(what: str, ref) -> ValueError:
    """The error for a tangent that goes into a reference that has none."""
    return ValueError(
        f"performing {what} operation with a differentiated value on a non-differentiated array reference of type "
        f"{get_aval(ref).str_short()}. Move the array reference to be an argument of the differentiated function, make "
        "it inside, or write jax.lax.stop_gradient(x)."
    )


def unbatched(what: str, ref) -> ValueError:
    """The error for a write, by every example, to a reference that they have in common."""
    return ValueError(
        f"performing {what} operation with vmapped value on an unbatched array reference of type "
        f"{get_aval(ref).str_short()}. Move the array reference to be an argument to the vmapped function, one for "
        "each example, or make it inside."
    )


def direct_batch(path: tuple, dim: int, size: int):
    """A path into a batched reference where no operand is mapped, and the mapped axis of the part; None where it is not
    so simple.
    """
    if not path:
        return path, dim
    if len(path) > 1 or type(path[0]) is not Index or path[0].has_arrays:
        return None
    entries = path[0].entries
    place = sum(type(e) is Span for e in entries[:dim])
    return (Index((*entries[:dim], Span(0, size), *entries[dim:])),), place


# ---- get


def _get_jvp(primals, tangents, *, path):
    ref, *operands = primals
    out = get_p.bind(ref, *operands, path=path)
    t = tangents[0]
    return out, Zero.of_primal(out) if type(t) is Zero else get_p.bind(t, *operands, path=path)


def memory_of(x) -> Cell:
    """The cell ``x``; a tracer here has outlived its trace."""
    if type(x) is not Cell:
        concrete(x, get_p)
    return x


def _get_evaluate(cell, *operands, path):
    inner = memory_of(cell).aval.inner_aval
    if not path:
        return typed_array(cell.value, inner)
    memory, key = numpy_part(path, cell.value, operands, False) or (None, None)
    if memory is None:
        return read(path, typed_array(cell.value, inner), operands)
    part = np.asarray(memory[key])
    part = part if part.base is None else np.array(part, order="C")
    return typed_array(part, inner.update(shape=part.shape))


def _get_cotangent(cts, args, outs, params):
    ref, *operands = args
    ct = cts.take(outs[0])
    if ct is not None:
        addupdate_p.bind(cts.reference(ref), ct, *operands, **params)


def _get_batch(axis, args, dims, *, path):
    (ref, *operands), (dim, *operand_dims) = args, dims
    simple = None if any(d is not None for d in operand_dims) else direct_batch(path, dim, axis.size)
    if simple is not None:
        return get_p.bind(ref, *operands, path=simple[0]), simple[1]
    whole = get_p.bind(ref, path=())
    outs, out_dims = batch_flat(lambda x, *i: [read(path, x, i)], axis, [whole, *operands], dims)
    return outs[0], out_dims[0]


get_p.define(
    takes_arrays=True,
    takes_references=True,
    effects=lambda avals, params: frozenset([ReadEffect(0)]),
    abstract=lambda ref, *operands, path: part_aval(ref, path, operands),
    evaluate=_get_evaluate,
    jvp=_get_jvp,
    transpose=STATEFUL,
    cotangent=_get_cotangent,
    batch=_get_batch,
    lower=DISCHARGED,
    discharge=lambda ref, *operands, path: read(path, ref.value, operands),
)


# ---- swap and addupdate


def write_memory(cell: Cell, path: tuple, operands, value, adding: bool):
    """Write to the memory of a reference in place; where NumPy has no view of the part, by the function of values."""
    memory = memory_of(cell).writable(buffers.copy)
    memory, key = numpy_part(path, memory, operands, True) or (None, None)
    if memory is None:
        new = write(path, typed_array(cell.value, cell.aval.inner_aval), operands, value, adding)
        cell._value = new._value if new._value.flags.c_contiguous else buffers.copy(new._value)
    elif not adding:
        memory[key] = value._value
    elif path and type(path[-1]) is Index and path[-1].has_arrays:
        np.add.at(memory, key, value._value)
    else:
        memory[key] += value._value


def _swap_evaluate(cell, value, *operands, path):
    old = _get_evaluate(cell, *operands, path=path)
    write_memory(cell, path, operands, value, False)
    return old


def _set_evaluate(cell, value, *operands, path):
    """``swap``, where nobody asks for what was there."""
    write_memory(cell, path, operands, value, False)


def _addupdate_evaluate(cell, value, *operands, path):
    write_memory(cell, path, operands, value, True)
    return []


def _swap_jvp(primals, tangents, *, path):
    ref, value, *operands = primals
    t_ref, t_value = tangents[:2]
    if type(t_ref) is Zero and type(t_value) is not Zero:
        raise differentiated("a set/swap", ref)
    out = swap_p.bind(*primals, path=path)
    if type(t_ref) is Zero:
        return out, Zero.of_primal(out)
    return out, swap_p.bind(t_ref, instantiate(t_value), *operands, path=path)


def _addupdate_jvp(primals, tangents, *, path):
    ref, _, *operands = primals
    t_ref, t_value = tangents[:2]
    if type(t_ref) is Zero and type(t_value) is not Zero:
        raise differentiated("an addupdate", ref)
    addupdate_p.bind(*primals, path=path)
    if type(t_value) is not Zero:
        addupdate_p.bind(t_ref, t_value, *operands, path=path)
    return [], []


def _swap_cotangent(cts, args, outs, params):
    ref, value, *operands = args
    ct = cts.take(outs[0])
    if ct is None and not cts.has(ref):
        return
    old = zeros(outs[0].aval) if ct is None else ct
    cts.add(value, swap_p.bind(cts.reference(ref), old, *operands, **params))


def _addupdate_cotangent(cts, args, outs, params):
    ref, value, *operands = args
    if cts.has(ref):
        cts.add(value, get_p.bind(cts.reference(ref), *operands, **params))


def written_batch(axis, args, dims, path, adding: bool) -> tuple:
    """What a batched write puts where, as ``(value, operands, path, dim)``: at the path itself where only the value is
    mapped, else all of the new value; the last is the mapped axis of what was read, or a pair of what was and its axis.
    """
    (ref, value, *operands), (dim, value_dim, *operand_dims) = args, dims
    simple = None if any(d is not None for d in operand_dims) else direct_batch(path, dim, axis.size)
    if simple is not None:
        place = simple[1]
        value = broadcast_axis(value, axis.size, place) if value_dim is None else move_axis(value, value_dim, place)
        return value, operands, simple[0], place
    whole = get_p.bind(ref, path=())

    def both(x, part, *i):
        return [read(path, x, i), write(path, x, i, part, adding)]

    (old, new), (old_dim, new_dim) = batch_flat(both, axis, [whole, value, *operands], dims)
    return move_axis(new, new_dim, dim), [], (), (old, old_dim)


def _swap_batch(axis, args, dims, *, path):
    if dims[0] is None:
        raise unbatched("a set/swap", args[0])
    value, operands, where, old = written_batch(axis, args, dims, path, False)
    out = swap_p.bind(args[0], value, *operands, path=where)
    return old if type(old) is tuple else (out, old)


def _addupdate_batch(axis, args, dims, *, path):
    if dims[0] is None:
        raise unbatched("an addupdate", args[0])
    value, operands, where, old = written_batch(axis, args, dims, path, True)
    if type(old) is tuple:
        swap_p.bind(args[0], value, path=())
    else:
        addupdate_p.bind(args[0], value, *operands, path=where)
    return [], []


def _swap_discharge(ref: State, value, *operands, path):
    old = read(path, ref.value, operands)
    ref.value = write(path, ref.value, operands, value)
    return old


def _addupdate_discharge(ref: State, value, *operands, path):
    ref.value = write(path, ref.value, operands, value, adding=True)
    return []


swap_p.define(
    takes_arrays=True,
    takes_references=True,
    effects=lambda avals, params: frozenset([WriteEffect(0)]),
    abstract=lambda ref, value, *operands, path: part_aval(ref, path, operands),
    evaluate=_swap_evaluate,
    jvp=_swap_jvp,
    transpose=STATEFUL,
    cotangent=_swap_cotangent,
    batch=_swap_batch,
    lower=DISCHARGED,
    discharge=_swap_discharge,
)
addupdate_p.define(
    multiple_results=True,
    takes_arrays=True,
    takes_references=True,
    effects=lambda avals, params: frozenset([AccumEffect(0)]),
    abstract=lambda ref, value, *operands, path: [],
    evaluate=_addupdate_evaluate,
    jvp=_addupdate_jvp,
    transpose=STATEFUL,
    cotangent=_addupdate_cotangent,
    batch=_addupdate_batch,
    lower=DISCHARGED,
    discharge=_addupdate_discharge,
)


# ---- the life of a reference


def _new_evaluate(x, *, memory_space, kind):
    x = leaf_value(x)
    return Cell(x._value, AbstractRef(x.aval, memory_space, kind), user_source())


def _new_jvp(primals, tangents, **params):
    ref, t = new_ref_p.bind(*primals, **params), tangents[0]
    if t.aval.dtype == dtypes.float0:
        return ref, Zero.of_primal(ref)
    if type(t) is Zero:
        return ref, zeros_ref_p.bind(aval=t.aval, **params)
    return ref, new_ref_p.bind(t, **params)


def _new_cotangent(cts, args, outs, params):
    ct = cts.take(outs[0])
    if ct is not None:
        cts.add(args[0], freeze_p.bind(ct))


def _new_batch(axis, args, dims, **params):
    x = broadcast_axis(args[0], axis.size) if dims[0] is None else args[0]
    return new_ref_p.bind(x, **params), dims[0] or 0


new_ref_p.define(
    takes_arrays=True,
    abstract=lambda aval, *, memory_space, kind: AbstractRef(aval, memory_space, kind),
    evaluate=_new_evaluate,
    jvp=_new_jvp,
    transpose=STATEFUL,
    cotangent=_new_cotangent,
    batch=_new_batch,
    lower=DISCHARGED,
    discharge=lambda x, **params: State(x),
)


def _zeros_jvp(primals, tangents, **params):
    return zeros_ref_p.bind(**params), zeros_ref_p.bind(**params)


def _zeros_batch(axis, args, dims, *, aval, **params):
    return zeros_ref_p.bind(aval=aval.update(shape=(axis.size, *aval.shape)), **params), 0


zeros_ref_p = StatePrimitive(  # of tangents: a tape takes it for unknown, whatever is known
    "zeros_ref",
    takes_arrays=True,
    abstract=lambda *, aval, memory_space, kind: AbstractRef(aval, memory_space, kind),
    evaluate=lambda *, aval, **params: _new_evaluate(zeros(aval), **params),
    jvp=_zeros_jvp,
    transpose=STATEFUL,
    cotangent=lambda cts, args, outs, params: cts.take(outs[0]),
    batch=_zeros_batch,
    lower=DISCHARGED,
    discharge=lambda *, aval, **params: State(zeros(aval)),
)


def _freeze_jvp(primals, tangents):
    out, t = freeze_p.bind(*primals), tangents[0]
    return out, Zero.of_primal(out) if type(t) is Zero else freeze_p.bind(t)


def _freeze_cotangent(cts, args, outs, params):
    ct = cts.take(outs[0])
    if ct is not None:
        addupdate_p.bind(cts.reference(args[0]), ct, path=())


freeze_p = Primitive(
    "freeze",
    takes_arrays=True,
    takes_references=True,
    effects=lambda avals, params: frozenset([WriteEffect(0)]),
    abstract=lambda ref: ref.inner_aval,
    evaluate=lambda cell: _get_evaluate(cell, path=()),
    jvp=_freeze_jvp,
    transpose=STATEFUL,
    cotangent=_freeze_cotangent,
    batch=lambda axis, args, dims: (freeze_p.bind(args[0]), dims[0]),
    lower=DISCHARGED,
    discharge=lambda ref: ref.value,
)
free_ref_p = Primitive(
    "free_ref",
    multiple_results=True,
    takes_arrays=True,
    takes_references=True,
    effects=lambda avals, params: frozenset([WriteEffect(0)]),
    abstract=lambda ref: [],
    evaluate=lambda cell: [],
    jvp=lambda primals, tangents: (free_ref_p.bind(*primals), []),
    transpose=STATEFUL,
    cotangent=lambda cts, args, outs, params: None,
    batch=lambda axis, args, dims: (free_ref_p.bind(*args), []),
    lower=DISCHARGED,
    discharge=lambda ref: [],
)


# ---- the functions


class RefView:
    """A part of a reference, or its elements in another order, to be read and written: ``ref.at[index]``, ``ref.T``."""

    __slots__ = ("ref", "path", "operands")

    def __init__(self, ref: Ref, path: tuple, operands: list):
        self.ref, self.path, self.operands = ref, path, operands

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
        return length(self)

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
    if given.weak_type and given.dtype != expected.dtype and dtypes.KIND[given.dtype] == KINDS.get(expected.dtype):
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


KINDS = {d: "i" if k in "iu" else k for d, k in dtypes.KIND.items()}  # what weak Python scalars may become


@api_boundary
def get(ref, idx=None) -> Any:
    """The value of a reference, or of a part of it, now; what is written later does not change it.

    Arguments:
      ref: a reference of shape ``(...)``, or a part of one (``ref.at[index]``).
      idx: integers, slices, ``ds(start, size)``, ``...`` and arrays of integers, one for each axis from the front; None
        or ``...`` for all of it.
    Returns:
      An array.
    Raises:
      ValueError: ``ref`` is no reference, or was frozen; the index has too many items or is out of bounds.
      TypeError: the index is none.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.ref.get(jax.new_ref(jnp.arange(3.0)), 1)
    Array(1., dtype=float32)
    """
    ref, path, operands = located(ref, idx, "ref_get")
    return get_p.bind(core_of(ref), *operands, path=path)


@api_boundary
def swap(ref, idx, value, _function_name: str = "ref_swap") -> Any:
    """Write to a reference, and return what was there.

    Arguments:
      ref: a reference, or a part of one.
      idx: as for ``get``.
      value: an array of the shape and dtype of the part; where an index occurs twice, the last one stays.
    Returns:
      What was there.
    Raises:
      ValueError: shape or dtype do not fit, and as for ``get``.

    >>> import catena as jax, catena.numpy as jnp
    >>> ref = jax.new_ref(jnp.arange(3.0))
    >>> jax.ref.swap(ref, 1, 5.0), ref
    (Array(1., dtype=float32), Ref([0., 5., 2.], dtype=float32))
    """
    ref, path, operands = located(ref, idx, _function_name)
    return swap_p.bind(core_of(ref), checked(ref, path, operands, value, _function_name), *operands, path=path)


@api_boundary
def set(ref, idx, value) -> None:  # noqa: A001
    """Write to a reference: ``ref[idx] = value``.

    Arguments:
      ref, idx, value: as for ``swap``.
    Raises:
      ValueError: as for ``swap``.

    >>> import catena as jax, catena.numpy as jnp
    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> jax.ref.set(ref, slice(1, None), jnp.ones(2))
    >>> ref
    Ref([0., 1., 1.], dtype=float32)
    """
    ref, path, operands = located(ref, idx, "ref_set")
    found, value = core_of(ref), checked(ref, path, operands, value, "ref_set")
    if type(found) is Cell and context.trace is None:
        _set_evaluate(found, value, *operands, path=path)
    else:
        swap_p.bind(found, value, *operands, path=path)


@api_boundary
def addupdate(ref, idx, x) -> None:
    """Add to a reference: ``ref[idx] += x``, where what an index addresses twice is added twice.

    Arguments:
      ref, idx: as for ``get``.
      x: an array of the shape and dtype of the part.
    Raises:
      ValueError: as for ``swap``.

    >>> import catena as jax, catena.numpy as jnp
    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> jax.ref.addupdate(ref, jnp.array([1, 1]), jnp.ones(2))
    >>> ref
    Ref([0., 2., 0.], dtype=float32)
    """
    ref, path, operands = located(ref, idx, "ref_addupdate")
    addupdate_p.bind(core_of(ref), checked(ref, path, operands, x, "ref_addupdate"), *operands, path=path)


@api_boundary
def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference: a mutable array that is read by ``ref[index]`` and written in place by ``ref[index] = x``.

    Inside a transformed function it may be made, passed on and closed over, but not returned.

    Arguments:
      init_val: its first value, an array; it is copied when the first one writes, if somebody else still has it.
      memory_space: where it lies; there is one place, so it must be None.
      kind: a word that is passed on with its type.
    Returns:
      A ``Ref``.
    Raises:
      TypeError: ``init_val`` is no array. NotImplementedError: ``memory_space`` is given.

    >>> import catena as jax, catena.numpy as jnp
    >>> total = jax.new_ref(jnp.zeros(()))
    >>> @jax.jit
    ... def observe(x):
    ...     total[...] += jnp.sum(x)
    >>> observe(jnp.ones(3)), observe(jnp.ones(4)), total
    (None, None, Ref(7., dtype=float32))
    """
    check_space(memory_space)
    x = leaf_value(init_val)
    if type(get_aval(x)) is AbstractRef:
        raise TypeError(f"new_ref takes an array, got a reference of type {x.aval.str_short()}; ref[...] is its value")
    return as_ref(new_ref_p.bind(x, memory_space=None, kind=kind), user_source() if context.trace else None)


def check_space(memory_space) -> None:
    if memory_space is not None:
        raise NotImplementedError(f"there is one memory, so memory_space must be None, got {memory_space!r}")


@api_boundary
def empty_ref(ty, memory_space=None) -> Ref:
    """A reference whose first value nobody cares for; here it is zeros.

    Arguments:
      ty: anything with ``shape`` and ``dtype``.
      memory_space: must be None.
    Returns:
      A ``Ref``.
    Raises:
      TypeError: ``ty`` has no shape or dtype. NotImplementedError: ``memory_space`` is given.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.int32))[...]
    Array([0, 0], dtype=int32)
    """
    check_space(memory_space)
    if not (hasattr(ty, "shape") and hasattr(ty, "dtype")):
        raise TypeError(f"empty_ref takes a type with shape and dtype, got {ty!r}")
    aval = ShapedArray(ty.shape, dtypes.canonicalize_dtype(ty.dtype))
    return new_ref(zeros(aval))


@api_boundary
def freeze(ref: Ref) -> Any:
    """The last value of a reference, which cannot be used any more.

    Arguments:
      ref: a reference that was made where it is frozen: not an argument, nor closed over.
    Returns:
      An array.
    Raises:
      ValueError: ``ref`` is none, was frozen before, or belongs to somebody else.

    >>> import catena as jax, catena.numpy as jnp
    >>> ref = jax.new_ref(jnp.zeros(2))
    >>> ref[0] = 1.0
    >>> jax.ref.freeze(ref)
    Array([1., 0.], dtype=float32)
    """
    out = freeze_p.bind(owned(ref, "freeze"))
    end(ref, "freeze")
    return out


@api_boundary
def free_ref(ref: Ref) -> None:
    """Say that nobody will use a reference any more.

    Arguments:
      ref: a reference that was made where it is freed.
    Raises:
      ValueError: ``ref`` is none, or was frozen or freed before.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.free_ref(jax.new_ref(jnp.zeros(2)))
    """
    free_ref_p.bind(owned(ref, "free_ref"))
    end(ref, "free_ref")


def owned(ref, name: str):
    """The cell or tracer of a reference that belongs to who calls."""
    if type(ref) is not Ref:
        raise TypeError(f"{name} takes a reference, got {ref!r}")
    found = core_of(ref)
    if (type(found) is Cell) != (context.trace is None) or type(found) is not Cell and ref.source is None:
        raise ValueError(
            f"{name}: a reference of type {ref.aval.str_short()} that was passed in or closed over does not belong to "
            "this function: who made it can end its life; ref[...] is its value"
        )
    return found


def end(ref: Ref, name: str) -> None:
    """Note that the reference's life is over."""
    place = user_source()
    ended = f"{name} at {place}" if place is not None else name
    if type(ref._core) is Cell:
        ref._core.ended = ended
    ref.ended = ended


# ---- the methods of references and of their parts


def length(self) -> int:
    if not self.shape:
        raise TypeError("len() of unsized object")
    return self.shape[0]


def ref_repr(self: Ref) -> str:
    if type(self._core) is not Cell:
        return repr(self._core)
    if self._core._value is None:
        return f"<a reference of type {self.aval.str_short()} that a program updates>"
    shown = repr(typed_array(self._core._value, self.aval.inner_aval))
    return "Ref" + shown.removeprefix("Array")


def permuted(self, *permutation) -> RefView:
    axes = permutation[0] if len(permutation) == 1 and not hasattr(permutation[0], "__index__") else permutation
    axes = tuple(axes) if axes else tuple(range(len(self.shape)))[::-1]
    if sorted(axes) != list(range(len(self.shape))):
        raise ValueError(f"transpose: {axes} is no permutation of the axes of a reference of shape {self.shape}")
    return extended(self, Permute(axes))


def reshaped(self, *shape) -> RefView:
    sizes = tuple(shape[0]) if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
    found = np.empty(self.shape, np.bool_).reshape(sizes).shape
    return extended(self, Reshape(found))


def extended(self, step) -> RefView:
    view = self if type(self) is RefView else RefView(self, (), [])
    return RefView(view.ref, (*view.path, step), view.operands)


def cell_of_row(ref, idx) -> Cell | None:
    """The cell of ``ref[idx]`` where that is a row of memory, known now: in a tenth of the time of the general way."""
    if type(idx) is not int or context.trace is not None or type(ref) is not Ref:
        return None
    cell = ref._core
    if type(cell) is not Cell or not cell.is_plain or cell.ended is not None or cell._value is None:
        return None
    shape = cell.aval.shape
    return cell if shape and -shape[0] <= idx < shape[0] else None


def getitem(self, idx) -> Any:
    """``self[idx]``."""
    cell = cell_of_row(self, idx)
    if cell is None:
        return get(self, idx)
    return make_array(np.array(cell._value[idx, ...]), cell.aval.weak_type)


def setitem(self, idx, x) -> None:
    """``self[idx] = x``."""
    cell, kind = cell_of_row(self, idx), type(x)
    if cell is not None:
        aval = cell.aval
        if kind is Array and x._value.dtype == aval.dtype and x._value.shape == aval.shape[1:]:
            cell.writable(buffers.copy)[idx] = x._value
            return
        if kind in AS_THEY_ARE and aval.dtype.kind == AS_THEY_ARE[kind] and aval.ndim == 1 and aval.dtype.itemsize == 4:
            cell.writable(buffers.copy)[idx] = x
            return
    set(self, idx, x)


AS_THEY_ARE = {int: "i", float: "f"}  # Python scalars that NumPy writes to elements of 32 bits as this API does


METHODS = {
    "__getitem__": getitem,
    "__setitem__": setitem,
    "__len__": length,
    "get": lambda self, idx=(): get(self, idx),
    "set": lambda self, x, idx=(): set(self, idx, x),
    "swap": lambda self, x, idx=(): swap(self, idx, x),
    "addupdate": lambda self, x, idx=(): addupdate(self, idx, x),
    "reshape": reshaped,
    "transpose": permuted,
}
for _class in (Ref, RefView):
    for _name, _method in METHODS.items():
        _method.__name__ = _name
        setattr(_class, _name, _method)
    _class.at = property(RefIndexer, doc="Parts as references: ``ref.at[index]``.")  # type: ignore[attr-defined]
    _class.T = property(permuted, doc="The reference with its axes reversed.")  # type: ignore[attr-defined]
Ref.__repr__ = ref_repr  # type: ignore[method-assign]
