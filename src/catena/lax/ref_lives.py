"""The life of references: how they are made, and how they end."""

from __future__ import annotations

from typing import Any

from catena.core import dtypes
from catena.core.array import typed_array
from catena.core.aval import AbstractRef, ShapedArray
from catena.core.axes import broadcast_axis
from catena.core.context import context
from catena.core.effects import WriteEffect
from catena.core.primitive import Primitive, StatePrimitive
from catena.core.ref import Cell, Ref, as_ref, core_of
from catena.core.source import user_source
from catena.core.structural import addupdate_p, new_ref_p
from catena.core.trace import leaf_value
from catena.core.traceback import api_boundary
from catena.core.zeros import Zero, get_aval, zeros
from catena.lax import ref_methods as _methods  # noqa: F401  (gives references their methods)
from catena.lax.refs import DISCHARGED, STATEFUL, memory_of
from catena.transform.discharge import State

# ---- the beginning


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


# ---- the end


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
    evaluate=lambda cell: typed_array(memory_of(cell).value, cell.aval.inner_aval),
    jvp=_freeze_jvp,
    transpose=STATEFUL,
    cotangent=_freeze_cotangent,
    batch=lambda axis, args, dims: (freeze_p.bind(args[0]), dims[0]),
    lower=DISCHARGED,
    discharge=lambda ref: ref.value,
)


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
