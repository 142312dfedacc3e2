"""A random program while it is written: its values so far, and the choices that its operations make."""

import numpy as np

import catena.numpy as jnp

EXTENTS = [0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]
LIMIT = 30_000  # elements of a value
DEEPEST = 2  # programs inside of programs
DTYPES = {
    "b": ("bool",),
    "i": ("int8", "int16", "int32", "int4", "int64"),
    "u": ("uint8", "uint16", "uint32", "uint4", "uint64"),
    "f": ("float32", "float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float64"),
    "c": ("complex64", "complex128"),
}
WIDE = ("int64", "uint64", "float64", "complex128")
KINDS = {"b": np.bool_, "i": jnp.signedinteger, "u": jnp.unsignedinteger, "c": jnp.complexfloating}

# Operations, as often as their weights say, and those that contain programs of their own. The modules beside this one
# fill both.
OPERATIONS: list = []
NESTED: set = set()


def operation(weight: int = 1, nested: bool = False):
    """Registers a function of a program that returns a new value, or several, or raises Skip."""

    def add(f):
        OPERATIONS.extend([f] * weight)
        if nested:
            NESTED.add(f)
        return f

    return add


class Skip(Exception):
    """There is no value that the operation could take."""


class Program:
    """Values, to which each step adds. Choices depend on shapes and dtypes alone: traced, they are the same."""

    def __init__(self, rng, values, depth: int = 0, loop: bool = False, x64: bool = False):
        self.rng, self.values, self.depth, self.loop, self.x64 = rng, list(values), depth, loop, x64
        self.log: list[str] = []

    def step(self):
        """Apply an operation to some of the values."""
        chosen = self.one([o for o in OPERATIONS if self.depth < DEEPEST or o not in NESTED])
        try:
            out = chosen(self)
        except Skip:
            return
        self.log.append(chosen.__name__)
        new = out if isinstance(out, (list, tuple)) else [out]
        self.values += [x for x in new if x.size <= LIMIT and x.ndim <= 5]

    def sub(self, seed: int, values, steps: int, loop: bool = False) -> "Program":
        """A program inside of this one, after its steps."""
        inner = Program(np.random.default_rng(seed), values, self.depth + 1, self.loop or loop, self.x64)
        for _ in range(steps):
            inner.step()
        return inner

    # ---- choices

    def n(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def one(self, items):
        return items[self.n(0, len(items))]

    def order(self, n: int) -> list[int]:
        return [int(k) for k in self.rng.permutation(n)]

    def dtype(self, kinds: str = "biufc"):
        names = DTYPES[self.one(list(kinds))]
        return jnp.dtype(self.one(names if self.x64 else [n for n in names if n not in WIDE]))

    # ---- values

    def kind(self, x) -> str:
        return next((k for k, t in KINDS.items() if jnp.issubdtype(x.dtype, t)), "f")

    def pick(self, test=lambda x: True):
        """A value that passes a test, one of the last four most of the time."""
        found = [v for v in self.values if test(v)]
        if not found:
            raise Skip
        return self.one(found[-4:] if self.chance(0.6) else found)

    def of(self, kinds: str, rank: int = 0, full: bool = False):
        return self.pick(lambda v: self.kind(v) in kinds and v.ndim >= rank and (v.size or not full))

    def ints(self, high: int, count: int, low: int | None = None):
        """A vector of indices, many of them beyond what they index: known, or computed."""
        low = -high if low is None else low
        known = jnp.asarray(self.rng.integers(low, max(high, low + 1), count).astype(np.int32))
        if self.chance(0.5):
            return known
        return jnp.bitwise_and(self.fit(self.of("iu"), (count,), np.dtype(np.int32)), 15) + known

    def cast(self, x, dtype):
        """``x`` in another dtype. What becomes of floats beyond the integers is nobody's promise: they are cut."""
        if self.kind(x) == "c" and not jnp.issubdtype(dtype, jnp.complexfloating):
            x = jnp.real(x)
        if self.kind(x) == "f" and jnp.issubdtype(dtype, jnp.integer):
            x = jnp.where(jnp.isfinite(x), x, 0).astype(np.float32)
            x = jnp.clip(x, *((-7, 7) if jnp.issubdtype(dtype, jnp.signedinteger) else (0, 15)))
        return x.astype(dtype)

    def fit(self, x, shape, dtype=None):
        """A value of this shape made of the elements of ``x``: broadcast, or repeated."""
        x = x if dtype is None or x.dtype == dtype else self.cast(x, dtype)
        if x.shape == tuple(shape):
            return x
        if not x.size:
            return jnp.ones(shape, x.dtype)
        if x.ndim == 0 or self.chance(0.3):
            return jnp.broadcast_to(x.ravel()[0], shape)
        missing = len(shape) - x.ndim
        if missing >= 0 and all(n in (1, m) for n, m in zip(x.shape, shape[missing:], strict=True)):
            return jnp.broadcast_to(x, shape)
        return jnp.resize(x, shape)
