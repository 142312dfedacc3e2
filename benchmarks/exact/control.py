"""Loops, branches and transformations of programs inside of programs."""

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena import lax
from exact.program import Skip, operation


def carries(p, count):
    return [p.pick() for _ in range(count)]


@operation(4, nested=True)
def scan(p):
    lengths = [v.shape[0] for v in p.values if v.ndim and v.shape[0] <= 40]
    if not lengths:
        raise Skip
    length = p.one(lengths)
    xs = [p.pick(lambda v: v.ndim and v.shape[0] == length) for _ in range(p.n(0, 3))]
    init = carries(p, p.n(0, 4))
    closed = [p.pick() for _ in range(p.n(0, 3))]
    seed, steps = p.n(0, 1 << 30), p.n(1, 7)
    n_ys = p.n(0, 3)

    def body(carry, x):
        q = p.sub(seed, [*closed, *x, *carry], steps, True)
        new = [q.fit(q.pick(), c.shape, c.dtype) for c in carry]
        return tuple(new), tuple(q.values[-1 - i] for i in range(min(n_ys, len(q.values))))

    final, ys = lax.scan(body, tuple(init), tuple(xs), length=length, reverse=p.chance(0.3), unroll=p.one([1, 1, 2, 3]))
    return [*final, *ys]


@operation(3, nested=True)
def while_loop(p):
    init = carries(p, p.n(1, 4))
    closed = [p.pick() for _ in range(p.n(0, 2))]
    seed, steps, n, data = p.n(0, 1 << 30), p.n(1, 6), p.n(0, 6), p.chance(0.4)

    def cond(c):
        go = c[0] < n
        return go & (jnp.sum(jnp.isfinite(c[1].astype(np.float32))) % 4 != 3) if data and p.kind(c[1]) != "c" else go

    def body(c):
        q = p.sub(seed, [*closed, c[0], *c[1:]], steps, True)
        return (c[0] + 1, *[q.fit(q.pick(), v.shape, v.dtype) for v in c[1:]])

    return list(lax.while_loop(cond, body, (jnp.int32(0), *init)))


@operation(2, nested=True)
def fori(p):
    init = carries(p, p.n(1, 4))
    seed, steps, n, traced = p.n(0, 1 << 30), p.n(1, 6), p.n(0, 6), p.chance(0.5)

    def body(i, c):
        q = p.sub(seed, [jnp.asarray(i, np.int32), *c], steps, True)
        return tuple(q.fit(q.pick(), v.shape, v.dtype) for v in c)

    return list(lax.fori_loop(0, jnp.asarray(n) if traced else n, body, tuple(init)))


@operation(3, nested=True)
def cond(p):
    args = carries(p, p.n(1, 4))
    steps, count = p.n(1, 6), p.n(1, 4)
    seeds = [p.n(0, 1 << 30) for _ in range(count)]
    shapes = [(v.shape, v.dtype) for v in carries(p, p.n(1, 3))]

    def branch(seed):
        def f(*a):
            q = p.sub(seed, a, steps)
            return tuple(q.fit(q.pick(), s, d) for s, d in shapes)

        return f

    index = p.fit(p.of("iu"), (), np.dtype(np.int32))
    if count == 2:
        return list(lax.cond(index % 2 == 0, *map(branch, seeds), *args))
    return list(lax.switch(index % 8 - 2, list(map(branch, seeds)), *args))


@operation(4, nested=True)
def vmap(p):
    x = p.pick(lambda v: v.ndim)
    axis = p.n(0, x.ndim)
    args, axes = [x], [axis]
    for _ in range(p.n(0, 3)):
        v = p.pick()
        match = [d for d in range(v.ndim) if v.shape[d] == x.shape[axis]]
        args.append(v)
        axes.append(p.one(match) if match and p.chance(0.8) else None)
    seed, steps, out = p.n(0, 1 << 30), p.n(1, 6), p.n(1, 3)

    def f(*a):
        q = p.sub(seed, a, steps)
        return tuple(q.values[-1 - i] for i in range(min(out, len(q.values))))

    return list(jax.vmap(f, tuple(axes), p.one([0, -1]))(*args))


@operation(1, nested=True)
def nested_jit(p):
    args = carries(p, p.n(1, 4))
    seed, steps = p.n(0, 1 << 30), p.n(1, 6)
    wrap = p.one([jax.jit, jax.checkpoint])

    def f(*a):
        return tuple(p.sub(seed, a, steps).values[-2:])

    return list(wrap(f)(*args))


@operation(1, nested=True)
def associative(p):
    x = p.pick(lambda v: v.ndim and p.kind(v) in "iu")
    axis = p.n(0, x.ndim)
    if x.shape[axis] < 1:
        raise Skip
    y = p.fit(p.pick(), x.shape, x.dtype)
    f = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])
    return list(lax.associative_scan(f, (x, y), axis=axis, reverse=p.chance(0.3)))
