"""Gather and scatter, brought from their general form to one index map.

A gather reads `operand[start(batch position) + window position]`; a scatter writes there. `start` comes from
the rows of `indices` (its last axis is the index vector); the node keeps, for every operand dimension, where
its index is from.
"""

from __future__ import annotations

from catena.core.errors import CompileError


def gather(b, operand, indices, numbers, slice_sizes, mode: str, fill_value=None):
    """The `gather` view of `operand`."""
    n = numbers
    offset_dims = tuple(n.offset_dims)
    batching = tuple(getattr(n, "operand_batching_dims", ()))
    start_batching = tuple(getattr(n, "start_indices_batching_dims", ()))
    rank = len(offset_dims) + len(indices.shape) - 1
    batch_dims = tuple(d for d in range(rank) if d not in offset_dims)
    dropped = set(n.collapsed_slice_dims) | set(batching)
    window_dims = tuple(d for d in range(len(operand.shape)) if d not in dropped)
    shape = [0] * rank
    for d, size in zip(batch_dims, indices.shape[:-1]):
        shape[d] = size
    for d, w in zip(offset_dims, window_dims):
        shape[d] = slice_sizes[w]
    mode = _mode(mode)
    args = [operand, indices]
    if mode == "fill":
        args.append(fill_value if hasattr(fill_value, "form") else b.constant(fill_value, operand.dtype))
    return b.value(
        "gather",
        shape,
        operand.dtype,
        args,
        offset_dims=offset_dims,
        window_dims=window_dims,
        batch_dims=batch_dims,
        batching=tuple(zip(batching, start_batching)),
        start_index_map=tuple(n.start_index_map),
        slice_sizes=tuple(slice_sizes),
        mode=mode,
    )


def scatter(b, kind: str, operand, indices, updates, numbers, mode: str, update_body=None):
    """`operand` with `updates` combined into it by `kind`, in row-major order of the updates."""
    n = numbers
    batching = tuple(getattr(n, "operand_batching_dims", ()))
    index_batching = tuple(getattr(n, "scatter_indices_batching_dims", ()))
    window_out = tuple(n.update_window_dims)
    dropped = set(n.inserted_window_dims) | set(batching)
    window_dims = tuple(d for d in range(len(operand.shape)) if d not in dropped)
    if len(window_out) != len(window_dims):
        raise CompileError("scatter: update_window_dims do not match the operand's window dimensions")
    sizes = [1] * len(operand.shape)
    for d, w in zip(window_out, window_dims):
        sizes[w] = updates.shape[d]
    batch_dims = tuple(d for d in range(len(updates.shape)) if d not in window_out)
    return b.value(
        "scatter",
        operand.shape,
        operand.dtype,
        [operand, indices, updates],
        key=(kind, id(update_body), repr(n), mode),
        kind=kind,
        offset_dims=window_out,
        window_dims=window_dims,
        batch_dims=batch_dims,
        batching=tuple(zip(batching, index_batching)),
        start_index_map=tuple(n.scatter_dims_to_operand_dims),
        slice_sizes=tuple(sizes),
        mode=_mode(mode),
        body=update_body,
    )


def _mode(mode) -> str:
    name = str(getattr(mode, "name", mode)).lower()
    for ours, theirs in (("clip", "clip"), ("fill", "fill"), ("drop", "fill"), ("promise", "promise")):
        if ours in name:
            return theirs
    raise CompileError(f"gather/scatter: mode must be 'clip', 'fill' or 'promise', got {mode!r}")
