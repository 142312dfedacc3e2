"""``ragged_all_to_all``: examples along a named axis send each other runs of rows, each of its own length."""

from __future__ import annotations

import numpy as np

from catena.core.axes import at_front
from catena.core.primitive import Primitive
from catena.core.zeros import UndefinedPrimal, Zero, get_aval, instantiate
from catena.lax.arithmetic import add, sub
from catena.lax.bitwise import bitwise_and
from catena.lax.comparison import ge, lt, select_n
from catena.lax.convert import convert_element_type
from catena.lax.exchanges import all_rows, all_to_all, own_row
from catena.lax.indexing import GatherDimensionNumbers, gather
from catena.lax.join import concatenate
from catena.lax.named_axes import INSIDE_ONLY, axis_size, axis_tuple, groups_of
from catena.lax.shape import broadcast_in_dim, expand_dims, iota, reshape
from catena.lax.slicing import slice_in_dim
from catena.lax.varying import entering
from catena.transform.batch import Axis, batch_flat


def _abstract(operand, output, *places, **params):
    return output


def row_of(x, i: int):
    """Row ``i``."""
    return reshape(slice_in_dim(x, i, i + 1), get_aval(x).shape[1:])


def _along(axis: Axis, rows, groups, adds: bool):
    """The rows of ``output`` of all examples, with what was sent to them; it replaces what was there, or ``adds``."""
    operand, output, starts, lengths, targets, _ = rows
    for group in groups or (tuple(range(axis.size)),):
        for receiver in range(len(group)):
            out = row_of(output, group[receiver])
            for sender in group:
                places = [row_of(x, sender) for x in (starts, lengths, targets)]
                out = received(row_of(operand, sender), out, places, receiver, len(group), adds)
            output = with_row(output, group[receiver], out)
    return output


def with_row(x, i: int, row):
    """``x`` with another row ``i``."""
    parts = [slice_in_dim(x, 0, i), expand_dims(row, (0,)), slice_in_dim(x, i + 1, get_aval(x).shape[0])]
    return concatenate([p for p in parts if get_aval(p).shape[0]], 0)


def received(given, out, places, receiver: int, count: int, adds: bool):
    """``out``, the output of number ``receiver`` of its group, with the runs of ``given`` that another one sends."""
    if not get_aval(given).shape[0]:
        return out
    each = get_aval(places[0]).shape[0] // count
    position = iota(np.int32, get_aval(out).shape[0])
    for k in range(receiver * each, (receiver + 1) * each):
        start, length, target = [row_of(x, k) for x in places]
        at = sub(position, broadcast_in_dim(target, position.shape, ()))
        inside = bitwise_and(ge(at, np.int32(0)), lt(at, broadcast_in_dim(length, at.shape, ())))
        sent = rows_at(given, add(at, broadcast_in_dim(start, at.shape, ())))
        out = select_n(broadcast_in_dim(inside, get_aval(out).shape, (0,)), out, add(out, sent) if adds else sent)
    return out


def rows_at(x, indices):
    """The rows of ``x`` at these indices; the nearest one where there is none."""
    shape = get_aval(x).shape
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape))), (0,), (0,))
    return gather(x, expand_dims(indices, (1,)), numbers, slice_sizes=(1, *shape[1:]), mode="clip")


def _batch(axis, args, dims, *, axis_name, axis_index_groups, **sums):
    adds = bool(sums)
    if axis.name in axis_name and len(axis_name) == 1:
        rows = [at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)]
        return _along(axis, rows, axis_index_groups, adds), 0
    if axis.name in axis_name:

        def together(*xs):
            rows = [all_rows(x, axis_name) for x in xs]
            return [own_row(_along(Axis(None, axis_size(axis_name)), rows, axis_index_groups, adds), axis_name)]

        outs, out_dims = batch_flat(together, axis, args, dims)
        return outs[0], out_dims[0]
    rows = [at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)]
    params = {"axis_name": axis_name, "axis_index_groups": axis_index_groups, **sums}
    each = [ragged_all_to_all_p.bind(*[row_of(x, i) for x in rows], **params) for i in range(axis.size)]
    return concatenate([expand_dims(x, (0,)) for x in each], 0), 0


def _jvp(primals, tangents, **params):
    out = ragged_all_to_all_p.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents[:2]):
        return out, Zero.of_primal(out)
    moved = [instantiate(t) for t in tangents[:2]]
    return out, ragged_all_to_all_p.bind(*moved, *primals[2:], **params)


def _transpose(
    ct, operand, output, starts, lengths, targets, received_lengths, *, axis_name, axis_index_groups, **sums
):
    """The rows go back, and are added up: a row may have been sent to several."""
    ct, groups = instantiate(ct), axis_index_groups
    back = [all_to_all(x, axis_name, 0, 0, tiled=True, axis_index_groups=groups) for x in (targets, starts)]
    places = (back[0], received_lengths, back[1], lengths)
    params = {"axis_name": axis_name, "axis_index_groups": groups, "adds": True}
    operand_ct = output_ct = None
    if type(operand) is UndefinedPrimal:
        operand_ct = ragged_all_to_all_p.bind(ct, instantiate(Zero(operand.aval)), *places, **params)
    if type(output) is UndefinedPrimal:
        output_ct = ct if sums else kept(ct, back[0], received_lengths)
    return [operand_ct, output_ct, None, None, None, None]


def kept(ct, targets, lengths):
    """The cotangent of the output: zero where something was received."""
    position = iota(np.int32, get_aval(ct).shape[0])
    for k in range(get_aval(targets).shape[0]):
        at = sub(position, broadcast_in_dim(row_of(targets, k), position.shape, ()))
        inside = bitwise_and(ge(at, np.int32(0)), lt(at, broadcast_in_dim(row_of(lengths, k), at.shape, ())))
        zero = instantiate(Zero(get_aval(ct)))
        ct = select_n(broadcast_in_dim(inside, get_aval(ct).shape, (0,)), ct, zero)
    return ct


ragged_all_to_all_p: Primitive = Primitive(
    "ragged_all_to_all",
    axis_names=lambda params: params["axis_name"],
    abstract=_abstract,
    evaluate=INSIDE_ONLY,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=INSIDE_ONLY,
)


def ragged_all_to_all(
    operand, output, input_offsets, send_sizes, output_offsets, recv_sizes, *, axis_name, axis_index_groups=None
):
    """Exchange runs of rows: example ``i`` sends ``operand[input_offsets[j]:][:send_sizes[j]]`` to example ``j``, which
    has it at ``output_offsets[j]`` (a number of the sender's) in its result.

    Arguments:
      operand: the rows to send, an array of one axis at least.
      output: what the result is where nothing is received; its rows are like those of ``operand``.
      input_offsets, send_sizes, output_offsets, recv_sizes: integers, one for each example (or several, those for the
        first example first): where runs begin, how long they are, where they go, and how many rows come from example
        ``j``.
      axis_name: the name of the axis, or a tuple of names.
      axis_index_groups: groups of indices, of one size, to exchange within.
    Returns:
      An array like ``output``.
    Raises:
      NameError: when no such axis is in scope. ValueError: shapes or dtypes do not go together.

    >>> import catena as jax, catena.numpy as jnp
    >>> def shift(x, i):  # example 0 sends one row to example 1, which sends two to example 0
    ...     sizes = jnp.where(i == 0, jnp.array([0, 1]), jnp.array([2, 0]))
    ...     received = jnp.where(i == 0, jnp.array([0, 2]), jnp.array([1, 0]))
    ...     zeros = jnp.zeros(2, int)
    ...     return jax.lax.ragged_all_to_all(x, jnp.zeros(3), zeros, sizes, zeros, received, axis_name="i")
    >>> jax.vmap(shift, axis_name="i")(jnp.arange(1.0, 7.0).reshape(2, 3), jnp.arange(2))
    Array([[4., 5., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    names = axis_tuple(axis_name)
    groups = groups_of(axis_index_groups, axis_size(names))
    places = {
        "input_offsets": input_offsets, "send_sizes": send_sizes, "output_offsets": output_offsets,
        "recv_sizes": recv_sizes,
    }  # fmt: skip
    args = [entering(x, names) for x in (operand, output, *places.values())]
    check(*map(get_aval, args[:2]), dict(zip(places, map(get_aval, args[2:]), strict=True)))
    args[2:] = [convert_element_type(x, np.int32) for x in args[2:]]
    count = len(groups[0]) if groups else axis_size(names)
    if get_aval(args[2]).shape[0] % count:
        raise ValueError(
            f"ragged_all_to_all input_offsets has {get_aval(args[2]).shape[0]} elements, which must be a multiple of "
            f"the {count} examples that exchange"
        )
    return ragged_all_to_all_p.bind(*args, axis_name=names, axis_index_groups=groups)


def check(operand, output, places: dict) -> None:
    """Raise ValueError where the types of the arguments do not go together."""
    if not operand.ndim or operand.shape[1:] != output.shape[1:] or operand.dtype != output.dtype or not output.ndim:
        raise ValueError(
            "ragged_all_to_all operand and output must be arrays of rows of one shape and dtype, got "
            f"{operand.str_short()} and {output.str_short()}"
        )
    for name, aval in places.items():
        if not np.issubdtype(aval.dtype, np.integer):
            raise ValueError(f"ragged_all_to_all {name} must be integer type, got {aval.str_short()}")
        if aval.ndim != 1 or not aval.size:
            raise ValueError(f"ragged_all_to_all {name} must have one axis and an element, got {aval.str_short()}")
        if aval.shape != places["input_offsets"].shape:
            raise ValueError(
                f"ragged_all_to_all {name} must be as long as input_offsets, got {aval.str_short()} and "
                f"{places['input_offsets'].str_short()}"
            )
