"""Random programs of views, maps, reductions, updates and loops, against NumPy."""

import numpy as np
import pytest

from compiled import Closed, compile_fn, f32


class Program:
    """Writes the same random program twice: with the Builder and with NumPy (in float64, rounded at the end)."""

    def __init__(self, seed: int, inputs: list[np.ndarray]):
        self.rng = np.random.default_rng(seed)
        self.arrays = [x.astype(np.float64) for x in inputs]
        self.steps = []
        for _ in range(int(self.rng.integers(3, 30))):
            self.add_step()
        count = int(self.rng.integers(1, 5))
        self.outs = [int(i) for i in self.rng.integers(len(inputs), len(self.arrays), count)]

    def pick(self, test=lambda a: True) -> int | None:
        choices = [i for i, a in enumerate(self.arrays) if test(a)]
        return int(self.rng.choice(choices[-6:] if self.rng.random() < 0.7 else choices)) if choices else None

    def record(self, lower, value) -> None:
        if value.size > 40000 or value.ndim > 4:
            return
        self.steps.append(lower)
        self.arrays.append(value)

    def add_step(self) -> None:
        kinds = [self.unary, self.binary, self.transpose, self.reshape, self.slice, self.reverse, self.pad, self.reduce,
                 self.broadcast, self.concatenate, self.update, self.dynamic_slice, self.select, self.cumulative,
                 self.scan, self.dot, self.normalise]  # fmt: skip
        kinds[int(self.rng.integers(len(kinds)))]()

    def unary(self):
        i = self.pick()
        op, fn = [
            ("tanh", np.tanh),
            ("neg", np.negative),
            ("abs", np.abs),
            ("sin", np.sin),
            ("floor", np.floor),
        ][self.rng.integers(5)]
        x = self.arrays[i]
        if op == "floor":  # discontinuous: only on values that are exact
            op, fn = "cos", np.cos
        self.record(lambda b, v: b.map(op, v[i]), fn(x))

    def binary(self):
        i = self.pick()
        j = self.pick(lambda a: a.shape in ((), self.arrays[i].shape))
        op, fn = [("add", np.add), ("sub", np.subtract), ("max", np.maximum), ("min", np.minimum)][self.rng.integers(4)]
        if j is not None:
            self.record(lambda b, v: b.map(op, v[i], v[j]), fn(self.arrays[i], self.arrays[j]))

    def transpose(self):
        i = self.pick(lambda a: a.ndim > 1)
        if i is not None:
            perm = self.rng.permutation(self.arrays[i].ndim).tolist()
            self.record(lambda b, v: b.transpose(v[i], perm), self.arrays[i].transpose(perm))

    def reshape(self):
        i = self.pick()
        n, shape = self.arrays[i].size, []
        for _ in range(int(self.rng.integers(0, 3))):
            divisors = [d for d in range(1, min(n, 50) + 1) if n % d == 0] or [1]
            shape.append(int(self.rng.choice(divisors)))
            n //= max(shape[-1], 1)
        if self.arrays[i].size:
            self.record(lambda b, v: b.reshape(v[i], (*shape, n)), self.arrays[i].reshape(*shape, n))

    def slice(self):
        i = self.pick(lambda a: a.ndim and a.size)
        if i is None:
            return
        shape = self.arrays[i].shape
        lo = [int(self.rng.integers(0, n)) for n in shape]
        hi = [int(self.rng.integers(a + 1, n + 1)) for a, n in zip(lo, shape)]
        st = [int(self.rng.integers(1, 3)) for _ in shape]
        at = tuple(map(slice, lo, hi, st))
        self.record(lambda b, v: b.slice(v[i], lo, hi, st), self.arrays[i][at])

    def reverse(self):
        i = self.pick(lambda a: a.ndim)
        if i is not None:
            axis = int(self.rng.integers(self.arrays[i].ndim))
            self.record(lambda b, v: b.reverse(v[i], (axis,)), np.flip(self.arrays[i], axis))

    def pad(self):
        i = self.pick(lambda a: a.ndim)
        if i is not None:
            config = [(int(self.rng.integers(0, 3)), int(self.rng.integers(0, 4)), 0) for _ in self.arrays[i].shape]
            value = np.pad(self.arrays[i], [(a, c) for a, c, _ in config], constant_values=0.5)
            self.record(lambda b, v: b.pad(v[i], b.constant(np.float32(0.5)), config), value)

    def reduce(self):
        i = self.pick(lambda a: a.ndim and a.size)
        if i is None:
            return
        rank = self.arrays[i].ndim
        axes = tuple(sorted(self.rng.choice(rank, int(self.rng.integers(1, rank + 1)), replace=False).tolist()))
        if self.rng.random() < 0.5:
            self.record(lambda b, v: b.reduce("max", v[i], axes), self.arrays[i].max(axes))
        else:
            n = np.prod([self.arrays[i].shape[a] for a in axes])
            self.record(lambda b, v: b.map("mul", b.reduce("sum", v[i], axes), b.constant(np.float32(1 / n))),
                        self.arrays[i].sum(axes) * np.float32(1 / n))  # fmt: skip

    def broadcast(self):
        i = self.pick(lambda a: a.ndim < 3)
        shape = list(self.arrays[i].shape)
        at = int(self.rng.integers(0, len(shape) + 1))
        n = int(self.rng.integers(1, 20))
        out = shape[:at] + [n] + shape[at:]
        dims = [d for d in range(len(out)) if d != at]
        value = np.broadcast_to(np.expand_dims(self.arrays[i], at), out)
        self.record(lambda b, v: b.broadcast_in_dim(v[i], out, dims), value)

    def concatenate(self):
        i = self.pick(lambda a: a.ndim)
        if i is not None:
            axis = int(self.rng.integers(self.arrays[i].ndim))
            j = self.pick(lambda a: a.shape == self.arrays[i].shape)
            value = np.concatenate([self.arrays[i], self.arrays[j]], axis)
            self.record(lambda b, v: b.concatenate([v[i], v[j]], axis), value)

    def update(self):
        i = self.pick(lambda a: a.ndim and a.size)
        if i is None:
            return
        shape = self.arrays[i].shape
        sizes = [int(self.rng.integers(1, n + 1)) for n in shape]
        starts = [int(self.rng.integers(0, n - m + 1)) for n, m in zip(shape, sizes)]
        source = [int(self.rng.integers(0, n - m + 1)) for n, m in zip(shape, sizes)]
        at = tuple(slice(s, s + m) for s, m in zip(starts, sizes))
        take = tuple(slice(s, s + m) for s, m in zip(source, sizes))
        value = self.arrays[i].copy()
        value[at] = -self.arrays[i][take]

        def lower(b, v):
            piece = b.map("neg", b.slice(v[i], source, [s + m for s, m in zip(source, sizes)]))
            return b.dynamic_update_slice(v[i], piece, [b.constant(np.int32(s)) for s in starts])

        self.record(lower, value)

    def dynamic_slice(self):
        i = self.pick(lambda a: a.ndim and a.size)
        if i is None:
            return
        shape = self.arrays[i].shape
        sizes = [int(self.rng.integers(1, n + 1)) for n in shape]
        starts = [int(self.rng.integers(-2, n + 2)) for n in shape]
        real = [min(max(s, 0), n - m) for s, n, m in zip(starts, shape, sizes)]
        value = self.arrays[i][tuple(slice(s, s + m) for s, m in zip(real, sizes))]
        self.record(lambda b, v: b.dynamic_slice(v[i], [b.constant(np.int32(s)) for s in starts], sizes), value)

    def select(self):
        i = self.pick(lambda a: a.ndim)
        if i is None:
            return
        shape, axis = self.arrays[i].shape, int(self.rng.integers(self.arrays[i].ndim))
        at = np.broadcast_to(np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))]), shape)
        self.record(lambda b, v: b.map("select", b.map("lt", b.iota(np.int32, shape, axis), b.constant(np.int32(2))),
                                       v[i], b.map("neg", v[i])),
                    np.where(at < 2, self.arrays[i], -self.arrays[i]))  # fmt: skip

    def cumulative(self):
        i = self.pick(lambda a: a.ndim and a.size)
        if i is not None:
            axis = int(self.rng.integers(self.arrays[i].ndim))
            self.record(
                lambda b, v: b.cumulative("max", v[i], axis, False),
                np.maximum.accumulate(self.arrays[i], axis),
            )

    def scan(self):
        i = self.pick(lambda a: a.ndim and a.size and a.shape[0] <= 30)
        if i is None:
            return
        x = self.arrays[i]
        item = x.shape[1:]
        body = Closed(lambda b, c, y: [b.map("tanh", b.map("add", c, y)), b.map("sub", c, y)], (item, f32), (item, f32))
        c, ys = np.zeros(item), []
        for y in x:
            ys.append(c - y)
            c = np.tanh(c + y)
        zero = lambda b: b.full(item, np.float32(0))
        which = int(self.rng.integers(2))
        self.record(
            lambda b, v: sum(b.scan(body, [], [zero(b)], [v[i]], x.shape[0]), [])[which],
            [c, np.stack(ys)][which],
        )

    def dot(self):
        i = self.pick(lambda a: a.ndim == 2 and a.size)
        if i is not None:
            n = self.arrays[i].shape[1]
            scale = np.float32(1 / n)
            self.record(lambda b, v: b.map("mul", b.dot_general(v[i], v[i], (((1,), (1,)), ((), ())), f32), b.constant(scale)),
                        self.arrays[i] @ self.arrays[i].T * scale)  # fmt: skip

    def normalise(self):
        i = self.pick(lambda a: a.ndim and a.size)
        if i is None:
            return
        x = self.arrays[i]
        last = x.ndim - 1

        def lower(b, v):
            m = b.broadcast_in_dim(b.reduce("max", v[i], (last,)), x.shape, tuple(range(last)))
            e = b.map("exp", b.map("sub", v[i], m))
            return b.map("div", e, b.broadcast_in_dim(b.reduce("sum", e, (last,)), x.shape, tuple(range(last))))

        e = np.exp(x - x.max(-1, keepdims=True))
        self.record(lower, e / e.sum(-1, keepdims=True))

    def lower(self, b, *inputs):
        values = list(inputs)
        for step in self.steps:
            values.append(step(b, values))
        return [values[i] for i in self.outs]


@pytest.mark.share(6)
@pytest.mark.parametrize("seed", range(150))
def test_random_program(seed):
    rng = np.random.default_rng(seed)
    shapes = [
        (),
        (5,),
        (int(rng.integers(1, 40)), int(rng.integers(1, 40))),
        (3, int(rng.integers(1, 20)), 4),
    ]
    inputs = [np.asarray(rng.normal(size=s)).astype(np.float32) for s in shapes]
    program = Program(seed, inputs)
    if not program.steps or max(program.outs) >= len(program.arrays):
        return
    got = compile_fn(program.lower, *inputs)(*inputs)
    for g, i in zip(got, program.outs, strict=True):
        np.testing.assert_allclose(g, program.arrays[i], rtol=2e-3, atol=2e-4)
