"""Random programs for one device of a random mesh, each with the same mathematics on whole arrays.

The reference holds what all devices have in one array, whose first axes are those of the mesh. A collective is then an
ordinary operation along one of these axes; there is no ``shard_map``, no named axis and no type that says what varies.
"""

from typing import NamedTuple

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.config import override
from catena.core.job import STRIDE
from catena.experimental import multihost_utils
from catena.sharding import AxisType
from catena.sharding import PartitionSpec as P

NAMES = ("a", "b", "c")
SHAPES = ((2,), (4,), (8,), (2, 2), (2, 4), (4, 2), (1, 4), (2, 2, 2), (2, 1, 3), (3,))


class State:
    """The mesh, the shape of a device's part, and the axes along which the parts differ, while a program is made."""

    def __init__(self, rng):
        self.rng = rng
        self.sizes = SHAPES[rng.integers(len(SHAPES))]
        self.names = NAMES[: len(self.sizes)]
        self.shape: tuple = ()
        self.varies: set = set()

    def size(self, names) -> int:
        return int(np.prod([self.sizes[self.names.index(n)] for n in names], dtype=int))

    def some(self, among) -> tuple:
        """Some of these names, in any order, one at least."""
        among = [str(n) for n in self.rng.permutation(sorted(among))]
        return tuple(among[: self.rng.integers(1, len(among) + 1)])

    def alike(self) -> tuple:
        """Axes along all of which the parts differ, or along none."""
        groups = [g for g in (self.varies, set(self.names) - self.varies) if g]
        return self.some(groups[self.rng.integers(len(groups))])

    def axis(self) -> int:
        return int(self.rng.integers(len(self.shape)))

    def divisible(self, count: int) -> list:
        return [d for d, n in enumerate(self.shape) if n % count == 0]

    def grid(self, names) -> list:
        """The numbers of the mesh's axes."""
        return [self.names.index(n) for n in names]


class Step(NamedTuple):
    """What a device does with its part ``x`` and a vector ``w`` that all have, and what is done with all parts."""

    local: object
    whole: object


def along(state, names, function):
    """``function`` of rows, all parts along these axes of the mesh, for every row likewise."""
    grid, count = state.grid(names), len(state.sizes)

    def whole(x, w):
        rest = [i for i in range(x.ndim) if i not in grid]
        rows = jnp.transpose(x, grid + rest)
        rows = rows.reshape(-1, *rows.shape[len(grid) :])
        out = function(rows, len(rest) - (x.ndim - count))  # rows, the other axes of the mesh, the part
        out = out.reshape(*[state.sizes[g] for g in grid], *out.shape[1:])
        order = grid + [i for i in range(count) if i not in grid]
        back = [order.index(i) for i in range(count)] + list(range(count, out.ndim))
        return jnp.transpose(out, back)

    return whole


def again(x, n):
    return jnp.broadcast_to(x[None], (n, *x.shape))


def waves(state):
    k, scale = int(state.rng.integers(3)), float(state.rng.uniform(0.5, 1.5))
    fun = lambda x, w: jnp.sin(scale * x) * w[k]  # noqa: E731
    return Step(fun, fun)


def products(state):
    matrix = state.rng.uniform(-1, 1, (state.shape[-1], int(state.rng.integers(1, 5))))
    state.shape = (*state.shape[:-1], matrix.shape[1])
    fun = lambda x, w: x @ matrix  # noqa: E731
    return Step(fun, fun)


def turned(state):
    state.shape = state.shape[::-1]
    count = len(state.sizes)
    return Step(lambda x, w: x.T, lambda x, w: jnp.transpose(x, [*range(count), *range(x.ndim - 1, count - 1, -1)]))


def indices(state):
    names = state.some(state.names)
    state.varies |= set(names)
    numbers = np.arange(state.size(names))[:, None]

    def shifted(rows, others):
        return rows + numbers.reshape(-1, *[1] * (rows.ndim - 1))

    return Step(lambda x, w: x + lax.axis_index(names), along(state, names, shifted))


def sums(state):
    names, mean = state.alike(), bool(state.rng.integers(2))
    state.varies -= set(names)
    take = lax.pmean if mean else lax.psum
    reduce = jnp.mean if mean else jnp.sum
    return Step(lambda x, w: take(x, names), along(state, names, lambda rows, _: again(reduce(rows, 0), len(rows))))


def gathered(state):
    names, d, tiled = state.some(state.names), state.axis(), bool(state.rng.integers(2))
    same = bool(state.rng.integers(2))
    n = state.size(names)
    shape = list(state.shape)
    if tiled:
        shape[d] *= n
    else:
        shape.insert(d, n)
    state.varies = state.varies - set(names) if same else state.varies | set(names)

    def stacked(rows, others):
        out = jnp.moveaxis(rows, 0, others + d)
        if tiled:
            out = out.reshape(*out.shape[: others + d], -1, *out.shape[others + d + 2 :])
        return again(out, len(rows))

    state.shape = tuple(shape)
    to = "invarying" if same else "varying"
    return Step(lambda x, w: lax.all_gather(x, names, axis=d, tiled=tiled, to=to), along(state, names, stacked))


def scattered(state):
    names = state.alike()
    n = state.size(names)
    if not state.divisible(n):
        return None
    d = state.divisible(n)[0]
    state.shape = tuple(m // n if i == d else m for i, m in enumerate(state.shape))
    state.varies |= set(names)

    def cut(rows, others):
        return jnp.stack(jnp.split(rows.sum(0), n, axis=others + d))

    return Step(lambda x, w: lax.psum_scatter(x, names, scatter_dimension=d, tiled=True), along(state, names, cut))


def exchanged(state):
    names, c = state.some(state.names), state.axis()
    n = state.size(names)
    if not state.divisible(n):
        return None
    s = state.divisible(n)[-1]
    shape = list(state.shape)
    shape[s] //= n
    shape[c] *= n
    state.shape = tuple(shape)
    state.varies |= set(names)

    def swapped(rows, others):
        parts = jnp.stack(jnp.split(rows, n, axis=1 + others + s))  # destination, source, ...
        return jnp.stack([jnp.concatenate(list(p), axis=others + c) for p in parts])

    return Step(lambda x, w: lax.all_to_all(x, names, s, c, tiled=True), along(state, names, swapped))


def permuted(state):
    names = state.some(state.names)
    n = state.size(names)
    pairs = [(int(i), int(j)) for i, j in enumerate(state.rng.permutation(n)) if state.rng.uniform() < 0.8]
    state.varies |= set(names)
    matrix = np.zeros((n, n))
    for source, destination in pairs:
        matrix[destination, source] = 1
    return Step(
        lambda x, w: lax.ppermute(x, names, pairs),
        along(state, names, lambda rows, _: jnp.tensordot(matrix, rows, 1)),
    )


def spread(state):
    names = state.some(state.names)
    source = int(state.rng.integers(state.size(names)))
    state.varies |= set(names)
    return Step(
        lambda x, w: lax.pbroadcast(x, names, source),
        along(state, names, lambda rows, _: again(rows[source], len(rows))),
    )


def loops(state):
    def step(c, _):
        return jnp.cos(c) * 0.9, None

    fun = lambda x, w: lax.scan(step, x, None, length=3)[0]  # noqa: E731
    return Step(fun, fun)


def branches(state):
    count = len(state.sizes)

    def local(x, w):
        return lax.cond(x.sum() > 0.3, lambda x: x * 2.0, jnp.sin, x)

    def whole(x, w):
        positive = x.sum(tuple(range(count, x.ndim)), keepdims=True) > 0.3
        return jnp.where(positive, x * 2.0, jnp.sin(x))

    return Step(local, whole)


def recomputed(state):
    fun = jax.checkpoint(lambda x, w: jnp.tanh(x) * w[0])
    return Step(fun, lambda x, w: jnp.tanh(x) * w[0])


STEPS = (
    waves, products, turned, indices, sums, gathered, scattered, exchanged, permuted, spread, loops, branches,
    recomputed,
)  # fmt: skip


class Sharded(NamedTuple):
    """A program as a ``shard_map`` over whole arrays ``x`` and ``w``, and the same without."""

    sharded: object
    whole: object
    x: np.ndarray
    w: np.ndarray
    described: str


def random_spec(state, names, ndim: int) -> list:
    """Each of the names at one of ``ndim`` axes."""
    parts: list = [[] for _ in range(ndim)]
    for name in state.rng.permutation(sorted(names)):
        parts[state.rng.integers(ndim)].append(str(name))
    return [tuple(p) for p in parts]


def program(seed: int, check_vma: bool) -> Sharded:
    """The program of this number."""
    rng = np.random.default_rng(seed)
    state = State(rng)
    ndim = int(rng.integers(1, 3))
    named = {n for n in state.names if rng.uniform() < 0.7}
    entries = random_spec(state, named, ndim)
    local = tuple(int(rng.choice([1, 2, 4, 8])) for _ in range(ndim))
    state.shape, state.varies = local, set(named)
    shape = tuple(n * state.size(e) for n, e in zip(local, entries, strict=True))
    steps, titles = [], []
    while len(steps) < 5:
        make = STEPS[rng.integers(len(STEPS))]
        if make is gathered and np.prod(state.shape) > 256:
            continue
        step = make(state)
        if step is not None and len(state.shape):
            steps.append(step)
            titles.append(make.__name__)
    out_entries = random_spec(state, state.varies, len(state.shape))
    in_spec, out_spec = P(*[e or None for e in entries]), P(*[e or None for e in out_entries])
    types = (AxisType.Auto,) * len(state.names)
    mesh = jax.make_mesh(state.sizes, state.names, axis_types=types, devices=in_turns(int(np.prod(state.sizes))))

    def body(x, w):
        for step in steps:
            x = step.local(x, w)
        return x

    def whole(x, w):
        x = parts_of(x, entries, state)
        for step in steps:
            x = step.whole(x, w)
        return array_of(x, out_entries, state)

    sharded = jax.shard_map(body, mesh=mesh, in_specs=(in_spec, P()), out_specs=out_spec, check_vma=check_vma)
    described = f"program {seed}: mesh {state.sizes}, {in_spec} -> {', '.join(titles)} -> {out_spec}, {check_vma=}"
    return Sharded(sharded, whole, rng.uniform(-1, 1, shape), rng.uniform(0.5, 1, 3), described)


def in_turns(count: int) -> list:
    """So many devices; of several processes, one after the other has the next one."""
    found = sorted(jax.devices(), key=lambda d: (d.id % STRIDE, d.process_index))
    return found[:count]


def whole_of(x):
    """A result, of which processes may have parts, in each of them."""
    return x if x.is_fully_replicated else multihost_utils.process_allgather(x, tiled=True)


def parts_of(x, entries, state):
    """All devices' parts: the axes of the mesh, then those of the part."""
    shape, places = [], {}
    for n, names in zip(x.shape, entries, strict=True):
        for name in names:
            places[name] = len(shape)
            shape.append(state.size([name]))
        shape.append(n // state.size(names))
    x = x.reshape(shape)
    front = [places[name] for name in state.names if name in places]
    x = jnp.transpose(x, front + [i for i in range(x.ndim) if i not in front])
    for i, name in enumerate(state.names):
        if name not in places:
            x = jnp.broadcast_to(jnp.expand_dims(x, i), (*x.shape[:i], state.sizes[i], *x.shape[i:]))
    return x


def array_of(x, entries, state):
    """The array whose parts ``x`` holds; along axes that no entry names, the first device's."""
    used = [name for names in entries for name in names]
    for i in reversed(range(len(state.names))):
        if state.names[i] not in used:
            x = x[(slice(None),) * i + (0,)]
    left = [name for name in state.names if name in used]
    order, shape = [], []
    for d, names in enumerate(entries):
        order += [*(left.index(name) for name in names), len(left) + d]
        shape.append(x.shape[len(left) + d] * state.size(names))
    return jnp.transpose(x, order).reshape(shape)


def differences(seed: int, check_vma: bool, *, compiled: bool = False, executor: str | None = None) -> list[str]:
    """Where values or gradients of a program, run by an executor, differ from those of the reference."""
    case = program(seed, check_vma)

    def loss(fun):
        def total(x, w):
            out = fun(x, w)
            return (out * jnp.cos(jnp.arange(out.size, dtype=out.dtype)).reshape(out.shape)).sum(), out

        return jax.value_and_grad(total, argnums=(0, 1), has_aux=True)

    run = jax.jit if compiled else lambda fun: fun
    with jax.enable_x64(True), override("jax_executor", executor):
        found = [whole_of(x) for x in jax.tree.leaves(run(loss(case.sharded))(case.x, case.w))]
        expected = jax.tree.leaves(jax.jit(loss(case.whole))(case.x, case.w))
    wrong = []
    for what, a, b in zip(("loss", "value", "gradient by x", "gradient by w"), found, expected, strict=True):
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-9, atol=1e-9):
            wrong.append(
                f"{case.described}, {executor}: {what}: {np.asarray(a).ravel()[:4]} and {np.asarray(b).ravel()[:4]}"
            )
    return wrong
