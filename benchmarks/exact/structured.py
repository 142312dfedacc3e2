"""Slices, gathers, scatters, products, convolutions and windows, with dimension numbers of every kind."""

import numpy as np

import catena.numpy as jnp
from catena import lax
from exact.elementwise import small
from exact.program import EXTENTS, LIMIT, Skip, operation


@operation(3)
def dynamic_slice(p):
    x = p.pick(lambda v: v.ndim)
    sizes = [p.n(0, n + 1) for n in x.shape]
    starts = list(p.ints(9, x.ndim))
    if p.chance(0.5):
        return lax.dynamic_slice(x, starts, sizes)
    piece = p.fit(p.pick(), sizes, x.dtype)
    if p.chance(0.3):
        piece = lax.dynamic_slice(x, list(p.ints(9, x.ndim)), sizes)
    return lax.dynamic_update_slice(x, piece, starts)


@operation(2)
def indexing(p):
    x = p.pick(lambda v: v.ndim and v.size)
    way = p.n(0, 4)
    if way == 0:
        return x[p.ints(12, p.n(0, 9))]
    if way == 1 and x.ndim > 1:
        return x[p.ints(9, 3)[:, None], ..., p.ints(9, 2)]
    if way == 2 and x.ndim > 1:
        return x[:, p.ints(9, 4)]
    return (
        jnp.take(x, p.ints(12, 6).reshape(2, 3), axis=p.n(0, x.ndim), mode=p.one(["fill", "clip", "wrap"]))
        if p.kind(x) != "c"
        else x[p.ints(3, 2)]
    )


@operation(2)
def updating(p):
    x = p.pick(lambda v: v.ndim and v.size)
    names = ["set", "get"] + (
        ["add", "max", "min", "multiply"] if p.kind(x) in "iu" else ["max", "min"] if p.kind(x) == "f" else []
    )
    name = p.one(names)
    at = p.one([lambda: p.ints(12, p.n(0, 7)), lambda: (Ellipsis, p.ints(9, 3)), lambda: slice(0, p.n(0, 5))])()
    if x.ndim == 1 and isinstance(at, tuple):
        at = at[1]
    target = x.at[at]
    if name == "get":
        return target.get(mode="fill", fill_value=1)
    shape = x[at].shape
    if name == "set" and not isinstance(at, slice):
        return target.set(p.fit(p.pick(), (), x.dtype))
    return getattr(target, name)(p.fit(p.pick(), shape, x.dtype))


@operation(3)
def gather(p):
    """lax.gather with dimension numbers of every kind."""
    x = p.pick(lambda v: v.ndim and v.size)
    r = x.ndim
    dims = p.order(r)
    batch = sorted(dims[: p.n(0, 2) if r > 1 else 0])
    rest = [d for d in p.order(r) if d not in batch]
    indexed = rest[: p.n(1, len(rest) + 1)]
    sizes = [p.n(1, n + 1) for n in x.shape]
    collapsed = []
    for d in range(r):
        if d in batch:
            sizes[d] = 1
        elif p.chance(0.4):
            sizes[d] = 1
            collapsed.append(d)
    loops = [p.n(1, 4) for _ in range(p.n(0, 3))]
    shape = [x.shape[d] for d in batch] + loops
    at = p.order(len(shape))
    index_shape = [shape[i] for i in at] + [len(indexed)]
    index_batch = [at.index(i) for i in range(len(batch))]
    indices = p.ints(9, int(np.prod(index_shape))).reshape(index_shape)
    window = r - len(batch) - len(collapsed)
    rank = window + len(shape)
    offset = sorted(p.order(rank)[:window])
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(offset),
        collapsed_slice_dims=tuple(collapsed),
        start_index_map=tuple(indexed),
        operand_batching_dims=tuple(batch),
        start_indices_batching_dims=tuple(index_batch),
    )
    mode = p.one([None, "clip", "fill"])
    return lax.gather(x, indices, numbers, tuple(sizes), mode=mode)


@operation(3)
def scatter(p):
    x = p.pick(lambda v: v.ndim and v.size)
    r = x.ndim
    dims = p.order(r)
    batch = sorted(dims[: p.n(0, 2) if r > 1 else 0])
    rest = [d for d in p.order(r) if d not in batch]
    indexed = rest[: p.n(1, len(rest) + 1)]
    inserted, window = [], []
    for d in range(r):
        if d not in batch:
            if p.chance(0.4):
                inserted.append(d)
            else:
                window.append(p.n(1, x.shape[d] + 1))
    loops = [p.n(1, 4) for _ in range(p.n(0, 3))]
    shape = [x.shape[d] for d in batch] + loops
    at = p.order(len(shape))
    index_shape = [shape[i] for i in at] + [len(indexed)]
    index_batch = [at.index(i) for i in range(len(batch))]
    indices = p.ints(9, int(np.prod(index_shape))).reshape(index_shape)
    rank = len(window) + len(shape)
    places = sorted(p.order(rank)[: len(window)])
    update_shape, w, s = [], iter(window), iter([shape[i] for i in at])
    for d in range(rank):
        update_shape.append(next(w) if d in places else next(s))
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(places),
        inserted_window_dims=tuple(inserted),
        scatter_dims_to_operand_dims=tuple(indexed),
        operand_batching_dims=tuple(batch),
        scatter_indices_batching_dims=tuple(index_batch),
    )
    names = {"i": ["add", "max", "min", "mul", "apply"], "u": ["add", "max", "min", "mul"], "f": ["max", "min"]}.get(
        p.kind(x), []
    )
    name = p.one(names + ["set"])
    mode = p.one([None, "clip", "drop"])
    if name == "apply":
        return lax.scatter_apply(x, indices, lambda v: v * 3 + 1, numbers, update_shape=tuple(update_shape), mode=mode)
    if name == "set":  # with equal indices the winner is nobody's promise
        updates = p.fit(p.fit(p.pick(), (), x.dtype), update_shape)
    else:
        updates = p.fit(p.pick(), update_shape, x.dtype)
    return getattr(lax, "scatter" if name == "set" else "scatter_" + name)(x, indices, updates, numbers, mode=mode)


@operation(3)
def dot_general(p):
    x = p.pick(lambda v: v.ndim and p.kind(v) in "iufcb")
    dims = p.order(x.ndim)
    nb = p.n(0, x.ndim + 1) if p.chance(0.5) else 0
    nc = p.n(0, x.ndim - nb + 1)
    batch, contract = dims[:nb], dims[nb : nb + nc]
    own = [p.one(EXTENTS[:9]) for _ in range(p.n(0, 3))]
    shape = [x.shape[d] for d in batch] + [x.shape[d] for d in contract] + own
    at = p.order(len(shape))
    y_shape = [shape[i] for i in at]
    if np.prod(y_shape, dtype=float) > LIMIT or np.prod([*shape, *x.shape], dtype=float) > 3e6:
        raise Skip
    y = small(p, p.fit(p.pick(), y_shape, x.dtype))
    out = np.prod([x.shape[d] for d in range(x.ndim) if d not in contract] + own, dtype=float)
    if out > LIMIT:
        raise Skip
    kind = p.kind(x)
    want = None
    if kind in "iu" and p.chance(0.5):
        want = np.dtype("int32" if kind == "i" else "uint32") if x.dtype.itemsize < 8 else None
    if kind == "f" and x.dtype.itemsize < 4:
        want = np.dtype("float32")
    if kind == "b":
        want = None
    return lax.dot_general(
        small(p, x),
        y,
        (([*contract], [at.index(nb + i) for i in range(nc)]), ([*batch], [at.index(i) for i in range(nb)])),
        preferred_element_type=want,
    )


@operation(2)
def convolution(p):
    x = p.pick(lambda v: v.ndim >= 3 and v.size and p.kind(v) in "iuf" and v.dtype.itemsize > 1)
    x = x.astype(np.float32) if p.kind(x) == "f" and x.dtype.itemsize < 4 else x
    space = x.ndim - 2
    layout = p.order(x.ndim)  # which of batch, feature, spatial each dimension is
    place = {what: layout.index(what) for what in range(x.ndim)}
    batch, feature = x.shape[place[0]], x.shape[place[1]]
    groups = p.one([d for d in range(1, feature + 1) if feature % d == 0])
    batch_groups = 1
    if p.chance(0.25):
        groups, batch_groups = 1, p.one([d for d in range(1, batch + 1) if batch % d == 0])
    kernel = [p.n(1, 4) for _ in range(space)]
    out = p.n(1, 4) * groups * batch_groups
    k_shape = [out, feature // groups, *kernel]
    k_layout = p.order(x.ndim)
    k_real = [k_shape[what] for what in k_layout]
    letters = "NC" + "HWD"[:space]
    k_letters = "OI" + "HWD"[:space]
    o_layout = p.order(x.ndim)
    spec = tuple(
        "".join(ls[i] for i in lay) for ls, lay in [(letters, layout), (k_letters, k_layout), (letters, o_layout)]
    )
    if np.prod(k_real) > LIMIT or np.prod(k_real) * x.size > 3e6:
        raise Skip
    k = p.fit(p.pick(), k_real, x.dtype)
    strides = [p.n(1, 3) for _ in range(space)]
    padding = p.one(["SAME", "VALID", [(p.n(-1, 3), p.n(-1, 3)) for _ in range(space)]])
    lhs_dilation = [1] * space if isinstance(padding, str) else [p.n(1, 3) for _ in range(space)]
    rhs_dilation = [p.n(1, 3) for _ in range(space)]
    return lax.conv_general_dilated(
        small(p, x), small(p, k), strides, padding, lhs_dilation, rhs_dilation, spec, groups, batch_groups
    )


@operation(2)
def window(p):
    x = p.pick(lambda v: v.ndim and v.size and p.kind(v) in "iuf")
    name = p.one(["add", "max", "min"])
    if p.kind(x) == "f":
        x = small(p, x).astype(np.float32)
    dims = [p.n(1, min(n, 3) + 1) for n in x.shape]
    strides = [p.n(1, 3) for _ in x.shape]
    padding = p.one(["SAME", "VALID", [(p.n(0, 2), p.n(0, 2)) for _ in x.shape]])
    base = [p.n(1, 3) for _ in x.shape]
    dil = [p.n(1, 3) for _ in x.shape]
    info = jnp.finfo if p.kind(x) == "f" else jnp.iinfo
    init = {"add": 0, "max": info(x.dtype).min, "min": info(x.dtype).max}[name]
    fn = {"add": lax.add, "max": lax.max, "min": lax.min}[name]
    return lax.reduce_window(x, np.array(init).astype(x.dtype), fn, dims, strides, padding, base, dil)


@operation()
def segments(p):
    x = p.pick(lambda v: v.ndim and v.size and p.kind(v) in "iu")
    ids = p.ints(5, x.shape[0], -1)
    zeros = jnp.zeros((p.n(1, 7), *x.shape[1:]), x.dtype)
    return getattr(zeros.at[ids], p.one(["add", "max", "min", "multiply"]))(x)


@operation()
def views(p):
    x = p.pick(lambda v: v.ndim)
    name = p.one(["roll", "tile", "repeat", "flip", "diff", "tril", "stack", "swap", "rot", "insert"])
    if name == "roll":
        return jnp.roll(x, p.n(-5, 5), p.n(0, x.ndim))
    if name == "tile":
        return jnp.tile(x, [p.n(1, 3) for _ in range(p.n(1, 4))])
    if name == "repeat":
        return jnp.repeat(x, p.n(0, 3), p.n(0, x.ndim))
    if name == "flip":
        return jnp.flip(x)
    if name == "diff" and p.kind(x) in "iu":
        return jnp.diff(x, axis=p.n(0, x.ndim))
    if name == "tril" and x.ndim > 1:
        return jnp.tril(x, p.n(-2, 3))
    if name == "stack":
        return jnp.stack([x, p.fit(p.pick(), x.shape, x.dtype), x], p.n(0, x.ndim + 1))
    if name == "swap" and x.ndim > 1:
        return jnp.swapaxes(x, 0, -1)
    if name == "insert":
        return jnp.expand_dims(x, p.n(0, x.ndim + 1))
    raise Skip
