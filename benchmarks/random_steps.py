"""The operations of `random_transformations.py`: how each is chosen, what is known of its result, and how it runs.

Of every value its shape is known, its kind (f, i or b), a bound of its size, and of which power of two it is a
multiple: so whether float32 holds it exactly. Operations that jump, or whose derivatives do, take exact values only.
"""

import functools
from typing import NamedTuple

import numpy as np

EXACT = 2.0**23
LARGE = 2.0**18


class Meta(NamedTuple):
    """What is known of a value; multiples of ``2**-q``."""

    shape: tuple
    kind: str
    bound: float
    q: int
    exact: bool = True

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


class Operation(NamedTuple):
    """``choose(rng, *metas)`` gives parameters, ``result(*metas, **parameters)`` what is known of the result, and by
    how much derivatives grow at most; either gives None where the operation does not fit.
    """

    kinds: str
    run: object
    result: object
    choose: object

    def write(self, rng, metas, args=None, params=None):
        """The values read, the parameters, what is known of the result, and by how much derivatives grow; or None."""
        if args is not None:
            return self.applied(metas, args, params)
        for _ in range(8):  # for operands that fit
            args = [self.pick(rng, metas, kind) for kind in self.kinds]
            params = None if None in args else self.choose(rng, *[metas[i] for i in args])
            found = None if params is None else self.applied(metas, args, params)
            if found is not None:
                return found
        return None

    def applied(self, metas, args, params):
        read = [metas[i] for i in args]
        if any(m.kind not in KINDS[kind] for m, kind in zip(read, self.kinds, strict=True)):
            return None
        found = self.result(*read, **params)
        if found is None:
            return None
        meta, gain = found
        if meta.size > 200 or meta.bound > LARGE:
            return None
        twice = 2.0 if len(args) > 1 else 1.0
        return args, params, meta._replace(exact=meta.exact and meta.bound * 2.0**meta.q < EXACT), gain * twice

    @staticmethod
    def pick(rng, metas, kind):
        fit = [i for i, m in enumerate(metas) if m.kind in KINDS[kind]]
        return int(rng.choice(fit[-4:] if rng.random() < 0.7 else fit)) if fit else None


KINDS = {"f": "f", "i": "i", "b": "b", "n": "fi", "a": "fib"}
OPERATIONS: dict[str, Operation] = {}


def nothing(rng, *metas) -> dict:
    return {}


def operation(kinds: str, result, choose=nothing):
    def register(run):
        OPERATIONS[run.__name__] = Operation(kinds, run, result, choose)
        return run

    return register


def table(kinds: str, result, rows: dict, choose=nothing):
    for name, run in rows.items():
        OPERATIONS[name] = Operation(kinds, run, result, choose)


# ---- results


def broadcast(*metas):
    try:
        return np.broadcast_shapes(*(m.shape for m in metas))
    except ValueError:
        return None


def all_exact(*metas) -> bool:
    return all(m.exact for m in metas)


def combined(bound, q=lambda a, b: max(a.q, b.q), gain=lambda a, b: 1.0, jumps=False, kind=None):
    """The result of an elementwise operation on two values."""

    def result(a, b, **params):
        shape = broadcast(a, b)
        if shape is None or a.kind != b.kind or jumps and not all_exact(a, b):
            return None
        repeated = max(1, int(np.prod(shape)) // max(1, min(a.size, b.size)))
        return Meta(shape, kind or a.kind, bound(a, b), q(a, b), all_exact(a, b)), gain(a, b) * repeated

    return result


def mapped(bound=lambda m: m.bound, q=lambda m: m.q, gain=1.0, jumps=False, kind=None, shape=lambda m, **p: m.shape):
    """The result of an operation on one value."""

    def result(m, **params):
        found = shape(m, **params)
        if found is None or jumps and not m.exact:
            return None
        return Meta(tuple(found), kind or m.kind, bound(m), q(m), m.exact), gain

    return result


def smooth(bound):
    """The result of a function with rounding."""
    return lambda *ms, **p: (Meta(broadcast(*ms), "f", bound, 20, False), 1e9) if broadcast(*ms) is not None else None


def axis(rng, m, *rest):
    return {"axis": int(rng.integers(m.ndim))} if m.ndim and m.size else None


def dropped(m, axis):
    return m.shape[:axis] + m.shape[axis + 1 :]


def reduced(m, axis):
    return Meta(dropped(m, axis), m.kind, m.bound * m.shape[axis], m.q, m.exact), 1.0


larger = lambda a, b: max(a.bound, b.bound)  # noqa: E731

# ---- elementwise

table("nn", combined(lambda a, b: a.bound + b.bound), {
    "add": lambda jax, a, b: a + b,
    "sub": lambda jax, a, b: a - b,
})  # fmt: skip
table("ff", combined(larger, gain=lambda a, b: 2.0, jumps=True), {
    "maximum": lambda jax, a, b: jax.numpy.maximum(a, b),
    "minimum": lambda jax, a, b: jax.numpy.minimum(a, b),
    "where_less": lambda jax, a, b: jax.numpy.where(a < b, a, b / 2),
    "clip": lambda jax, a, b: jax.numpy.clip(a, -1.0, b),
})  # fmt: skip
OPERATIONS["where_less"] = OPERATIONS["where_less"]._replace(
    result=combined(larger, q=lambda a, b: max(a.q, b.q + 1), gain=lambda a, b: 2.0, jumps=True)
)
OPERATIONS["clip"] = OPERATIONS["clip"]._replace(
    result=combined(lambda a, b: max(a.bound, b.bound, 1.0), gain=lambda a, b: 2.0, jumps=True)
)
table("ff", combined(lambda a, b: a.bound * b.bound, lambda a, b: a.q + b.q, lambda a, b: a.bound + b.bound + 1), {
    "mul": lambda jax, a, b: a * b,
    "mul_jit": lambda jax, a, b: jax.jit(lambda x, y: x * y)(a, b),
    "mul_checkpoint": lambda jax, a, b: jax.checkpoint(lambda x, y: x * y)(a, b),
})  # fmt: skip
table("nn", combined(lambda a, b: 1.0, lambda a, b: 0, jumps=True, kind="b"), {
    "less": lambda jax, a, b: a < b,
    "equal": lambda jax, a, b: a == b,
})  # fmt: skip
table("bb", combined(lambda a, b: 1.0), {
    "logical_and": lambda jax, a, b: a & b,
    "logical_xor": lambda jax, a, b: a ^ b,
})  # fmt: skip
table("ii", combined(lambda a, b: a.bound + b.bound + 1), {
    "floor_divide": lambda jax, a, b: a // jax.numpy.where(b == 0, 3, b),
    "remainder": lambda jax, a, b: a % jax.numpy.where(b == 0, 3, b),
    "bitwise": lambda jax, a, b: (a & b) ^ (a | 5),
    "rem": lambda jax, a, b: jax.lax.rem(*jax.numpy.broadcast_arrays(a, b | 1)),
})  # fmt: skip
OPERATIONS["bitwise"] = OPERATIONS["bitwise"]._replace(result=combined(lambda a, b: 4 * (a.bound + b.bound) + 8))
table("n", mapped(), {"neg": lambda jax, x: -x})
table("f", mapped(jumps=True), {
    "abs": lambda jax, x: jax.numpy.abs(x),
    "relu": lambda jax, x: jax.numpy.where(x > 0, x, 0.0),
    "stop_gradient": lambda jax, x: jax.lax.stop_gradient(x),
})  # fmt: skip
table("f", mapped(q=lambda m: m.q + 1), {"half": lambda jax, x: x * 0.5})
table("f", mapped(lambda m: m.bound + 1, lambda m: 0, jumps=True), {
    "floor": lambda jax, x: jax.numpy.floor(x),
    "round": lambda jax, x: jax.numpy.round(x),
    "sign": lambda jax, x: jax.numpy.sign(x),
})  # fmt: skip
table("f", mapped(lambda m: m.bound + 1, lambda m: 0, jumps=True, kind="i"), {
    "to_int": lambda jax, x: x.astype("int32"),
})  # fmt: skip
table("a", mapped(kind="f"), {"to_float": lambda jax, x: x.astype("float32")})
table("i", mapped(lambda m: 128.0), {"to_int8": lambda jax, x: x.astype("int8").astype("int32")})
table("i", mapped(lambda m: 4 * m.bound), {"shift": lambda jax, x: (x << 2) >> 1})
for name, bound, run in (
    ("sin", 1.0, lambda jax, x: jax.numpy.sin(x)),
    ("tanh", 1.0, lambda jax, x: jax.numpy.tanh(x)),
    ("bell", 1.0, lambda jax, x: jax.numpy.exp(-x * x / 16)),
    ("log", 40.0, lambda jax, x: jax.numpy.log(x * x + 2.0)),
    ("sqrt", 600.0, lambda jax, x: jax.numpy.sqrt(x * x + 1.0)),
    ("logistic", 1.0, lambda jax, x: jax.lax.logistic(x)),
):
    table("f", smooth(bound), {name: run})
table("ff", smooth(64.0), {"div": lambda jax, a, b: jax.numpy.tanh(a) / (b * b + 1.5)})

# ---- along an axis

table("n", reduced, {"sum": lambda jax, x, axis: jax.numpy.sum(x, axis)}, axis)
table("n", lambda m, axis: (reduced(m, axis)[0]._replace(shape=m.shape), m.shape[axis]), {
    "cumsum": lambda jax, x, axis: jax.numpy.cumsum(x, axis),
    "associative_scan": lambda jax, x, axis: jax.lax.associative_scan(lambda a, b: a + b, x, axis=axis),
}, axis)  # fmt: skip
table("n", mapped(jumps=True, gain=2.0, shape=dropped), {
    "max": lambda jax, x, axis: jax.numpy.max(x, axis),
    "min": lambda jax, x, axis: jax.numpy.min(x, axis),
}, axis)  # fmt: skip
table("n", mapped(jumps=True, gain=2.0, shape=lambda m, **p: m.shape), {
    "sort": lambda jax, x, axis: jax.numpy.sort(x, axis),
    "cummax": lambda jax, x, axis: jax.lax.cummax(x, axis),
}, axis)  # fmt: skip
table("a", mapped(shape=lambda m, **p: m.shape), {
    "flip": lambda jax, x, axis: jax.numpy.flip(x, axis),
    "roll": lambda jax, x, axis: jax.numpy.roll(x, 2, axis),
}, axis)  # fmt: skip
table("n", mapped(lambda m: float(m.size), lambda m: 0, jumps=True, kind="i", shape=dropped), {
    "argmax": lambda jax, x, axis: jax.numpy.argmax(x, axis).astype("int32"),
}, axis)  # fmt: skip
table("n", mapped(lambda m: float(m.size), lambda m: 0, jumps=True, kind="i", shape=lambda m, **p: m.shape), {
    "argsort": lambda jax, x, axis: jax.numpy.argsort(x, axis).astype("int32"),
}, axis)  # fmt: skip
table("f", smooth(1.0), {"softmax": lambda jax, x, axis: softmax(jax, x, axis)}, axis)
table("nn", lambda a, b, axis: joined(a, b, axis), {
    "concatenate": lambda jax, a, b, axis: jax.numpy.concatenate([a, b], axis),
}, axis)  # fmt: skip


def softmax(jax, x, axis):
    e = jax.numpy.exp(x - jax.lax.stop_gradient(jax.numpy.max(x, axis, keepdims=True)))
    return e / jax.numpy.sum(e, axis, keepdims=True)


OPERATIONS["softmax"] = OPERATIONS["softmax"]._replace(
    result=lambda m, axis: (Meta(m.shape, "f", 1.0, 20, False), 1e9) if m.bound < 64 else None
)


def joined(a, b, axis):
    if a.kind != b.kind or a.ndim != b.ndim or dropped(a, axis) != dropped(b, axis):
        return None
    shape = (*a.shape[:axis], a.shape[axis] + b.shape[axis], *a.shape[axis + 1 :])
    return Meta(shape, a.kind, larger(a, b), max(a.q, b.q), all_exact(a, b)), 1.0


# ---- shapes

table("a", mapped(shape=lambda m, **p: m.shape[::-1]), {"transpose": lambda jax, x: x.T})
table("a", mapped(shape=lambda m, **p: (m.size,)), {"ravel": lambda jax, x: x.ravel()})
table("a", mapped(shape=lambda m, **p: (1, *m.shape)), {"expand": lambda jax, x: x[None]})
table("a", mapped(gain=2.0, shape=lambda m, **p: (2, *m.shape)), {
    "stack": lambda jax, x: jax.numpy.stack([x, x]),
    "broadcast": lambda jax, x: jax.numpy.broadcast_to(x, (2, *x.shape)),
})  # fmt: skip
table("n", mapped(shape=lambda m, **p: [n + 2 for n in m.shape]), {"pad": lambda jax, x: jax.numpy.pad(x, 1)})
table("n", mapped(shape=lambda m, **p: (m.size, m.size) if m.ndim == 1 else None), {
    "diag": lambda jax, x: jax.numpy.diag(x),
})  # fmt: skip
table("n", mapped(shape=lambda m, **p: m.shape if m.ndim > 1 else None), {"tril": lambda jax, x: jax.numpy.tril(x)})


def window(rng, m):
    """A slice along each axis, with a step, perhaps a negative one."""
    if not m.size:
        return None
    steps = [int(rng.choice([-2, -1, 1, 2])) for _ in m.shape]
    starts = [int(rng.integers(n)) for n in m.shape]
    return {"starts": starts, "steps": steps}


def windowed(jax, x, starts, steps):
    return x[tuple(slice(a, None, s) for a, s in zip(starts, steps, strict=True))]


def window_shape(m, starts, steps):
    if len(starts) != m.ndim:
        return None
    return [len(range(n)[slice(a, None, s)]) for n, a, s in zip(m.shape, starts, steps, strict=True)]


OPERATIONS["slice"] = Operation("a", windowed, mapped(shape=window_shape), window)

# ---- indices


def rows(m) -> bool:
    return m.ndim > 0 and m.shape[0] > 0


def gathered(x, i):
    if not rows(x):
        return None
    return Meta(i.shape + x.shape[1:], x.kind, x.bound, x.q, x.exact), float(max(1, i.size))


def scattered(grow):
    def result(x, i, y):
        if (
            not rows(x)
            or x.kind != y.kind
            or not i.ndim
            or broadcast(Meta(i.shape + x.shape[1:], "f", 0, 0), y) != (i.shape + x.shape[1:])
        ):
            return None
        bound = max(x.bound, y.bound) + grow * i.size * y.bound
        return Meta(x.shape, x.kind, bound, max(x.q, y.q), all_exact(x, y)), 2.0 * max(1, i.size)

    return result


def place(jax, x, i):
    """Indices as rows of ``x``."""
    return jax.numpy.clip(i, 0, x.shape[0] - 1)


table("ai", gathered, {"gather": lambda jax, x, i: x[place(jax, x, i)]})
table("ai", gathered, {"take_fill": lambda jax, x, i: jax.numpy.take(x, i, axis=0, mode="clip")})
table("nin", scattered(1), {"scatter_add": lambda jax, x, i, y: x.at[place(jax, x, i)].add(y)})
table("ai", lambda x, i: (x._replace(shape=(1, *x.shape[1:])), 1.0) if rows(x) and i.size else None, {
    "dynamic_slice": lambda jax, x, i: jax.lax.dynamic_slice_in_dim(x, i.ravel()[0], 1, 0),
})  # fmt: skip
table("nin", lambda x, i, y: (
    Meta(x.shape, x.kind, larger(x, y), max(x.q, y.q), all_exact(x, y)), 1.0
) if rows(x) and i.size and x.kind == y.kind and x.shape[1:] == y.shape else None, {
    "dynamic_update": lambda jax, x, i, y: jax.lax.dynamic_update_index_in_dim(x, y, i.ravel()[0], 0),
})  # fmt: skip
table("i", lambda i: (Meta((*i.shape, 4), "f", 1.0, 0), 1.0), {
    "one_hot": lambda jax, i: (i[..., None] == jax.numpy.arange(4)).astype("float32"),
})  # fmt: skip

# ---- products


def contracted(a, b):
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[0 if b.ndim == 1 else -2] or a.ndim > 2 or b.ndim > 2:
        return None
    shape = a.shape[:-1] + (() if b.ndim == 1 else b.shape[-1:])
    n = a.shape[-1]
    return Meta(shape, a.kind, a.bound * b.bound * n, a.q + b.q, all_exact(a, b)), (a.bound + b.bound + 1) * 8


table("ff", contracted, {"matmul": lambda jax, a, b: a @ b})
table("ff", lambda a, b: (
    Meta((*a.shape, *b.shape), "f", a.bound * b.bound, a.q + b.q, all_exact(a, b)), (a.bound + b.bound) * 16
) if a.ndim == b.ndim == 1 else None, {"outer": lambda jax, a, b: jax.numpy.einsum("i,j->ij", a, b)})  # fmt: skip

# ---- control flow and functions with rules


def same_shape(result):
    return lambda a, b: result(a, b) if a.shape == b.shape else None


sums = combined(lambda a, b: 4 * a.bound + b.bound, q=lambda a, b: max(a.q, b.q) + 1, gain=lambda a, b: 8.0)


@operation("bff", lambda p, a, b: same_shape(sums)(a, b) if p.size else None)
def cond(jax, p, a, b):
    return jax.lax.cond(p.ravel()[0], lambda a, b: a + b, lambda a, b: a * 0.5 - b, a, b)


@operation("iff", lambda i, a, b: same_shape(sums)(a, b) if i.size else None)
def switch(jax, i, a, b):
    branches = [lambda a, b: a + a, lambda a, b: b * 0.5, lambda a, b: a - b]
    return jax.lax.switch(i.ravel()[0], branches, a, b)


@operation("f", lambda m: (
    m._replace(bound=m.bound * (m.shape[0] + 1), q=m.q + 1), 2.0 * (m.shape[0] + 1)
) if rows(m) else None)  # fmt: skip
def scan(jax, x):
    step = lambda c, row: (c + row, c - row * 0.5)  # noqa: E731
    return jax.lax.scan(step, x[0], x)[1]


@operation("f", lambda m: (m._replace(q=m.q + m.shape[0]), 2.0) if rows(m) and m.shape[0] < 5 else None)
def scan_reverse(jax, x):
    return jax.lax.scan(lambda c, row: ((c - row) * 0.5, c), x[0] * 0.5, x, reverse=True)[1]


@operation("f", lambda m: (m._replace(bound=m.bound * 8, q=m.q + 1), 16.0))
def fori_loop(jax, x):
    return jax.lax.fori_loop(0, 3, lambda i, v: v + v * (i % 2) * 0.5, x)


@operation("i", lambda m: (m._replace(bound=m.bound * 16 + 64), 1.0) if m.size else None)
def while_loop(jax, i):
    first = jax.numpy.abs(i).ravel()[0] % 4
    return jax.lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] * 2 + 1), (first, i))[1]


@operation("f", lambda m: (m._replace(bound=m.bound * 4), 4.0) if rows(m) else None)
def lax_map(jax, x):
    return jax.lax.map(lambda row: row * 3.0, x)


@operation("ff", lambda a, b: combined(lambda a, b: a.bound * b.bound, lambda a, b: a.q + b.q,
                                        lambda a, b: a.bound + b.bound + 1)(a, b)
           if rows(a) and rows(b) and a.shape == b.shape else None)  # fmt: skip
def vmap(jax, a, b):
    return (
        jax.vmap(lambda x, y: x * y, out_axes=-1)(a, b).swapaxes(0, -1)
        if a.ndim < 3
        else jax.vmap(lambda x, y: x * y)(a, b)
    )


@functools.cache
def ruled(jax, kind: str):
    """A function with a derivative of its own: twice the argument, whose derivative is said to be 3."""
    if kind == "jvp":
        f = jax.custom_jvp(lambda x: x * 2.0)
        f.defjvp(lambda primals, tangents: (f(primals[0]), tangents[0] * 3.0))
    else:
        f = jax.custom_vjp(lambda x: x * 2.0)
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 3.0,))
    return f


@operation("f", mapped(lambda m: 2 * m.bound, gain=3.0))
def custom_jvp(jax, x):
    return ruled(jax, "jvp")(x)


@operation("f", mapped(lambda m: 2 * m.bound, gain=3.0))
def checkpointed_loop(jax, x):
    return jax.checkpoint(lambda x: jax.lax.scan(lambda c, _: (c + x, None), x, None, length=1)[0])(x)


@operation("f", mapped(lambda m: 2 * m.bound, gain=3.0))
def inner_grad(jax, x):
    return jax.grad(lambda v: jax.numpy.sum(v * v))(x)
