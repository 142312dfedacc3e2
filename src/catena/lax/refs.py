"""Operations on references: ``get``, ``swap`` and ``addupdate``, each with all its rules.

The derivative of an operation on a reference is the same operation on a reference to the tangent; backwards, a read
adds to a reference to the cotangent, and a write takes from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from catena.core.array import typed_array
from catena.core.axes import broadcast_axis, move_axis
from catena.core.context import context
from catena.core.effects import AccumEffect, ReadEffect, WriteEffect
from catena.core.evaluate import concrete
from catena.core.primitive import NoRule
from catena.core.ref import Cell, core_of
from catena.core.structural import addupdate_p, get_p, swap_p
from catena.core.traceback import api_boundary
from catena.core.zeros import Zero, get_aval, instantiate, zeros
from catena.lax.ref_index import Index, Span, numpy_part, read, write
from catena.lax.ref_views import checked, located, part_aval
from catena.runtime import buffers
from catena.transform.batch import batch_flat
from catena.transform.discharge import State

DISCHARGED = NoRule("programs have no references: they become values before compilation (transform/discharge.py)")
STATEFUL = NoRule("the backward pass keeps references to cotangents instead, by the rule `cotangent`")


# ---- what the rules share


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
    """A path into a batched reference, no operand mapped, and the mapped axis of the part; None: not so simple."""
    if not path:
        return path, dim
    if len(path) > 1 or type(path[0]) is not Index or path[0].has_arrays:
        return None
    entries = path[0].entries
    place = sum(type(e) is Span for e in entries[:dim])
    return (Index((*entries[:dim], Span(0, size), *entries[dim:])),), place


def memory_of(x) -> Cell:
    """The cell ``x``; a tracer here has outlived its trace."""
    if type(x) is not Cell:
        concrete(x, get_p)
    return x


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


# ---- reading


def _get_jvp(primals, tangents, *, path):
    ref, *operands = primals
    out = get_p.bind(ref, *operands, path=path)
    t = tangents[0]
    return out, Zero.of_primal(out) if type(t) is Zero else get_p.bind(t, *operands, path=path)


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


# ---- writing


def _swap_evaluate(cell, value, *operands, path):
    old = _get_evaluate(cell, *operands, path=path)
    write_memory(cell, path, operands, value, False)
    return old


def _swap_jvp(primals, tangents, *, path):
    ref, value, *operands = primals
    t_ref, t_value = tangents[:2]
    if type(t_ref) is Zero and type(t_value) is not Zero:
        raise differentiated("a set/swap", ref)
    out = swap_p.bind(*primals, path=path)
    if type(t_ref) is Zero:
        return out, Zero.of_primal(out)
    return out, swap_p.bind(t_ref, instantiate(t_value), *operands, path=path)


def _swap_cotangent(cts, args, outs, params):
    ref, value, *operands = args
    ct = cts.take(outs[0])
    if ct is None and not cts.has(ref):
        return
    old = zeros(outs[0].aval) if ct is None else ct
    cts.add(value, swap_p.bind(cts.reference(ref), old, *operands, **params))


def _swap_batch(axis, args, dims, *, path):
    if dims[0] is None:
        raise unbatched("a set/swap", args[0])
    value, operands, where, old = written_batch(axis, args, dims, path, False)
    out = swap_p.bind(args[0], value, *operands, path=where)
    return old if type(old) is tuple else (out, old)


def _swap_discharge(ref: State, value, *operands, path):
    old = read(path, ref.value, operands)
    ref.value = write(path, ref.value, operands, value)
    return old


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
        write_memory(found, path, operands, value, False)
    else:
        swap_p.bind(found, value, *operands, path=path)


# ---- adding


def _addupdate_evaluate(cell, value, *operands, path):
    write_memory(cell, path, operands, value, True)
    return []


def _addupdate_jvp(primals, tangents, *, path):
    ref, _, *operands = primals
    t_ref, t_value = tangents[:2]
    if type(t_ref) is Zero and type(t_value) is not Zero:
        raise differentiated("an addupdate", ref)
    addupdate_p.bind(*primals, path=path)
    if type(t_value) is not Zero:
        addupdate_p.bind(t_ref, t_value, *operands, path=path)
    return [], []


def _addupdate_cotangent(cts, args, outs, params):
    ref, value, *operands = args
    if cts.has(ref):
        cts.add(value, get_p.bind(cts.reference(ref), *operands, **params))


def _addupdate_batch(axis, args, dims, *, path):
    if dims[0] is None:
        raise unbatched("an addupdate", args[0])
    value, operands, where, old = written_batch(axis, args, dims, path, True)
    if type(old) is tuple:
        swap_p.bind(args[0], value, path=())
    else:
        addupdate_p.bind(args[0], value, *operands, path=where)
    return [], []


def _addupdate_discharge(ref: State, value, *operands, path):
    ref.value = write(path, ref.value, operands, value, adding=True)
    return []


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
