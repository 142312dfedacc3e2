"""Elementwise operations, views, reductions, sorts and sets."""

import numpy as np

import catena.numpy as jnp
from catena import lax
from exact.program import EXTENTS, Skip, operation


@operation(4)
def unary(p):
    x = p.pick()
    k = p.kind(x)
    if k == "b":
        return jnp.logical_not(x)
    if k in "iu":
        names = ["bitwise_not", "population_count", "clz", "sign"] + (["neg", "abs"] if k == "i" else [])
        return getattr(lax, p.one(names))(x)
    if k == "c":
        return getattr(lax, p.one(["neg", "conj", "real", "imag"]))(x)
    names = ["neg", "abs", "sign", "floor", "ceil", "sqrt", "is_finite", "round", "r2", "recip"]
    name = p.one(names)
    if name == "r2":
        return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    if name == "recip":
        return lax.reciprocal(x)
    return getattr(lax, name)(x)


@operation(6)
def binary(p):
    x = p.pick()
    y = p.fit(p.pick(), x.shape, x.dtype)
    k = p.kind(x)
    if k == "b":
        names = ["bitwise_and", "bitwise_or", "bitwise_xor", "eq", "ne", "max", "min"]
    elif k in "iu":
        names = [
            "add",
            "sub",
            "mul",
            "div",
            "rem",
            "max",
            "min",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "shift_left",
            "shift_right_logical",
            "shift_right_arithmetic",
            "lt",
            "ge",
            "eq",
            "ne",
        ]
    elif k == "c":
        names = ["add", "sub", "eq", "ne"]
    else:
        names = ["add", "sub", "max", "min", "lt", "le", "gt", "ge", "eq", "ne", "rem", "nextafter"]
        names += [] if p.loop else ["mul", "div"]
        if x.dtype.itemsize == 1:
            names.remove("nextafter")
    if p.chance(0.2):
        x, y = y, x
    return getattr(lax, p.one(names))(x, y)


@operation()
def make_complex(p):
    x = p.pick(lambda v: v.dtype in (np.float32, np.float64))
    return lax.complex(x, p.fit(p.of("f"), x.shape, x.dtype))


@operation(3)
def cast(p):
    return p.cast(p.pick(), p.dtype())


@operation()
def bitcast(p):
    x = p.pick(lambda v: v.dtype.itemsize in (2, 4) and p.kind(v) in "iuf")
    to = {2: ["int16", "uint16", "int8"], 4: ["int32", "uint32", "int8", "int16"]}[x.dtype.itemsize]
    return lax.bitcast_convert_type(x, jnp.dtype(p.one(to)))


@operation(2)
def select(p):
    x = p.pick()
    y = p.fit(p.pick(), x.shape, x.dtype)
    if p.chance(0.3):
        w = p.fit(p.of("iu"), x.shape, np.dtype(np.int32))
        z = p.fit(p.pick(), x.shape, x.dtype)
        return lax.select_n(jnp.clip(w, 0, 2), x, y, z)
    c = p.fit(p.pick(), x.shape, np.dtype(bool))
    return jnp.where(c, x, y)


@operation()
def clamp(p):
    x = p.of("iuf")
    lo = p.fit(p.pick(), x.shape if p.chance(0.5) else (), x.dtype)
    hi = p.fit(p.pick(), lo.shape, x.dtype)
    return lax.clamp(lo, x, hi)


@operation(2)
def transpose(p):
    x = p.pick(lambda v: v.ndim > 1)
    return jnp.transpose(x, p.order(x.ndim))


@operation(2)
def reshape(p):
    x = p.pick()
    n, shape = x.size, []
    for _ in range(p.n(0, 4)):
        d = p.one([d for d in range(1, 40) if n % d == 0] if n else [0, 1, 3])
        shape.append(d)
        n = n // d if d else n
    if not x.size:
        shape = shape or [0]
        shape[0] = 0
        return x.reshape(shape)
    return x.reshape([*shape, n])


@operation(2)
def slicing(p):
    x = p.pick(lambda v: v.ndim)
    at = []
    for n in x.shape:
        a, b = sorted(int(k) for k in p.rng.integers(0, n + 1, 2))
        s = p.one([1, 1, 2, 3, -1, -2])
        at.append(slice(a, b, s) if s > 0 else slice(None, None, s))
    if p.chance(0.3) and x.shape[0]:
        at[0] = p.n(-x.shape[0], x.shape[0])
    return x[tuple(at)]


@operation()
def reverse(p):
    x = p.pick(lambda v: v.ndim)
    return lax.rev(x, p.order(x.ndim)[: p.n(1, x.ndim + 1)])


@operation(2)
def pad(p):
    x = p.pick(lambda v: v.ndim)
    config = []
    for n in x.shape:
        lo, hi, inner = p.n(-2, 3), p.n(-2, 3), p.n(0, 3)
        if n + max(n - 1, 0) * inner + lo + hi < 0:
            lo, hi, inner = 1, 0, 0
        config.append((lo, hi, inner))
    return lax.pad(x, p.fit(p.pick(), (), x.dtype), config)


@operation()
def broadcast(p):
    x = p.pick(lambda v: v.ndim < 4)
    rank = p.n(x.ndim, 5)
    dims = sorted(p.order(rank)[: x.ndim])
    shape = [p.one(EXTENTS[:9]) for _ in range(rank)]
    for d, n in zip(dims, x.shape):
        if n != 1:
            shape[d] = n
    return lax.broadcast_in_dim(x, shape, dims)


@operation()
def concatenate(p):
    x = p.pick(lambda v: v.ndim)
    axis = p.n(0, x.ndim)
    parts = [x]
    for _ in range(p.n(1, 4)):
        shape = list(x.shape)
        shape[axis] = p.one(EXTENTS[:8])
        parts.append(p.fit(p.pick(), shape, x.dtype))
    return jnp.concatenate([parts[i] for i in p.order(len(parts))], axis)


@operation()
def iota(p):
    shape = [p.one(EXTENTS) for _ in range(p.n(1, 4))]
    return lax.broadcasted_iota(p.dtype("iuf"), shape, p.n(0, len(shape)))


def small(p, x):
    """Values whose sums are exact."""
    if p.kind(x) in "biu":
        return x
    if p.kind(x) == "c":
        return lax.complex(small(p, jnp.real(x)), small(p, jnp.imag(x)))
    x = jnp.where(jnp.isfinite(x), x, jnp.zeros((), x.dtype))
    return jnp.clip(lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), -2, 2).astype(x.dtype)


@operation(3)
def reduce(p):
    x = p.pick(lambda v: v.ndim)
    axes = tuple(sorted(p.order(x.ndim)[: p.n(1, x.ndim + 1)]))
    k = p.kind(x)
    empty = not all(x.shape[a] for a in axes)
    names = ["sum", "any", "all", "count_nonzero"]
    if k in "iufb" and not empty:
        names += ["max", "min", "argmax", "argmin"]
    if k in "iu":
        names += ["prod", "xor"]
    name = p.one(names)
    if name in ("sum", "prod") and "int4" in str(x.dtype):
        x = x.astype(np.int8)
    if name in ("argmax", "argmin"):
        return getattr(jnp, name)(x, axes[0], keepdims=p.chance(0.3))
    if name == "sum":
        return jnp.sum(small(p, x), axes, keepdims=p.chance(0.5))
    if name == "xor":
        return lax.reduce_xor(x, axes=axes)
    return getattr(jnp, name)(x, axes, keepdims=p.chance(0.5))


@operation()
def generic_reduce(p):
    x = p.pick(lambda v: v.ndim and p.kind(v) in "iu")
    axes = tuple(sorted(p.order(x.ndim)[: p.n(1, x.ndim + 1)]))
    y = p.fit(p.pick(), x.shape, x.dtype)
    z = jnp.zeros((), x.dtype)
    return lax.reduce((x, y), (z, z), lambda a, b: (a[0] + b[0], lax.max(a[1], b[1]) + jnp.zeros_like(a[1])), axes)


@operation(2)
def cumulative(p):
    x = p.pick(lambda v: v.ndim and p.kind(v) in "iuf")
    axis, name = p.n(0, x.ndim), p.one(["cumsum", "cummax", "cummin", "cumprod"])
    if name == "cumprod" and p.kind(x) == "f":
        name = "cummax"
    if name == "cumsum":
        x = small(p, x)
        if p.kind(x) == "f" and x.dtype.itemsize < 4:
            x = x.astype(np.float32)
    return getattr(lax, name)(x, axis=axis, reverse=p.chance(0.4))


@operation(2)
def sorting(p):
    x = p.pick(lambda v: v.ndim)
    axis, name = p.n(0, x.ndim), p.one(["sort", "argsort", "lax", "top_k", "desc", "partition"])
    if name == "sort":
        return jnp.sort(x, axis)
    if name == "desc":
        return jnp.sort(x, axis, descending=True) if p.kind(x) != "c" else jnp.sort(x, axis)
    if name == "argsort":
        return jnp.argsort(x, axis)
    if name == "lax":
        others = [p.fit(p.pick(), x.shape) for _ in range(p.n(1, 4))]
        return lax.sort((x, *others), dimension=axis, num_keys=p.n(1, len(others) + 2))
    if p.kind(x) in "iuf":
        if name == "top_k":
            return lax.top_k(x, p.n(0, x.shape[-1] + 1))
        if p.kind(x) in "iu" and x.shape[axis]:
            return jnp.partition(x, p.n(0, x.shape[axis]), axis)
    raise Skip


@operation()
def searching(p):
    x = p.of("iuf", 1, True)
    x = jnp.sort(x.ravel())
    return jnp.searchsorted(
        x,
        p.fit(p.pick(), (p.n(0, 9),), x.dtype),
        side=p.one(["left", "right"]),
        method=p.one(["scan", "sort", "compare_all", "scan_unrolled"]),
    )


@operation()
def sets(p):
    x = p.of("iub", 1, True)
    name = p.one(["unique", "nonzero", "bincount", "flatnonzero"])
    if name == "unique":
        return jnp.unique(x, size=p.n(1, 9), fill_value=0)
    if name == "bincount":
        return jnp.bincount(jnp.clip(p.fit(x, (x.size,), np.dtype(np.int32)), 0, 9), length=7)
    return getattr(jnp, name)(x, size=p.n(1, 9), fill_value=1)
