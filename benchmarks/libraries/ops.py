"""`jax.ops`: reductions over segments. See `differential_libraries.py` for what a table is."""

import itertools

import numpy as np

REDUCERS = ("sum", "prod", "max", "min")
DTYPES = "float32 float16 bfloat16 int32 int8 uint8 uint32 complex64 bool".split()

OPERANDS = {
    "x": lambda rng: rng.normal(size=7).astype(np.float32),
    "m": lambda rng: rng.normal(size=(7, 3)).astype(np.float32),
    "t": lambda rng: rng.normal(size=(7, 2, 3)).astype(np.float32),
    "nans": lambda rng: np.array([1, np.nan, 2, np.inf, -np.inf, -0.0, 0.0], np.float32),
    "empty": lambda rng: np.zeros((0, 3), np.float32),
    "none": lambda rng: np.zeros(0, np.int32),
    "i": lambda rng: rng.integers(0, 4, 7, np.int32),
    "far": lambda rng: np.array([-3, -1, 0, 1, 3, 4, 100], np.int32),
    "order": lambda rng: np.array([0, 0, 1, 1, 1, 3, 3], np.int32),
    "each": lambda rng: rng.permutation(7).astype(np.int32),
    "grid": lambda rng: rng.integers(0, 3, (7, 2), np.int32),
}

CASES = [
    *(
        f"jax.ops.segment_{r}({x}, {i}, {n})"
        for r, x, i, n in itertools.product(REDUCERS, ("x", "m", "t", "nans"), ("i", "far", "order", "each"), (0, 4, 9))
    ),
    *(f"jax.ops.segment_{r}((10 * m).astype('{d}'), i, 5)" for r, d in itertools.product(REDUCERS, DTYPES)),
    *(f"jax.ops.segment_{r}(m, i.astype('{d}'), 5)" for r, d in itertools.product(REDUCERS, DTYPES)),
    *(
        f"jax.ops.segment_{r}({x}, far, 4, mode={mode!r})"
        for r, x, mode in itertools.product(REDUCERS, ("x", "m"), (None, "clip", "drop", "fill", "promise_in_bounds"))
    ),
    *(f"jax.ops.segment_{r}(x, i, 4, mode=lax.GatherScatterMode.CLIP)" for r in REDUCERS),
    *(f"jax.ops.segment_{r}(x, i, 4, mode={mode})" for r in REDUCERS for mode in ("'wrap'", "3", "''")),
    *(
        f"jax.ops.segment_{r}({x}, {i}, 4, bucket_size={n})"
        for r, x, i, n in itertools.product(REDUCERS, ("x", "m", "t"), ("i", "far"), (1, 2, 7, 100))
    ),
    *(f"jax.ops.segment_{r}(x, order, 4, indices_are_sorted=True)" for r in REDUCERS),
    *(f"jax.ops.segment_{r}(x, each, 7, unique_indices=True)" for r in REDUCERS),
    *(f"jax.ops.segment_{r}({x}, {i})" for r in REDUCERS for x in "xm" for i in ("i", "far", "order")),
    *(f"jax.ops.segment_{r}(empty, none, {n})" for r in REDUCERS for n in (0, 2, None)),
    *(f"jax.ops.segment_{r}({x}, grid, 3)" for r in REDUCERS for x in ("x", "m", "t", "t[:, 0]", "m[:, :2]")),
    *(f"jax.ops.segment_{r}({x}, {i}, 3)" for r in REDUCERS for x in ("2.0", "2", "x[0]", "x[:1]") for i in ("1", "i")),
    *(f"jax.ops.segment_{r}({x}, i, 3)" for r in REDUCERS for x in ("[1.0, 2.0]", "None", "'a'", "x[:3]", "m.T")),
    *(f"jax.ops.segment_{r}(x, {i}, 3)" for r in REDUCERS for i in ("[0] * 7", "None", "'a'", "x", "i[:3]", "i > 0")),
    *(f"jax.ops.segment_{r}(x, i, {n})" for r in REDUCERS for n in ("-1", "2.0", "'3'", "np.int64(3)", "jnp.array(3)")),
    *(
        f"jax.vmap(lambda x, i: jax.ops.segment_{r}(x, i, 4))(jnp.stack([x, -x]), jnp.stack([i, far]))"
        for r in REDUCERS
    ),
    *(f"jax.vmap(lambda i: jax.ops.segment_{r}(m, i, 4, bucket_size=3))(jnp.stack([i, far]))" for r in REDUCERS),
    *(f"jax.vmap(lambda i: jax.ops.segment_{r}(m, i))(jnp.stack([i, far]))" for r in REDUCERS),
    *(f"jax.jvp(lambda x: jax.ops.segment_{r}(x, i, 4), (x,), (x,))" for r in REDUCERS),
]
GRADIENTS = [
    *(
        f"jax.ops.segment_{r}({x}, {i}, 4) ** 2"
        for r, x, i in itertools.product(("sum", "max", "min"), "xmt", ("order", "far"))
    ),
    "jax.ops.segment_prod(x, each, 7, unique_indices=True)",
    "jax.ops.segment_prod(x, i, 4)",
    "jax.ops.segment_sum(m, i, 4, bucket_size=2) ** 2",
]
EXPLAINED = [
    (r"jit.*jnp.array\(3\)", "ConcretizationTypeError", "constants are known while tracing"),
    (r"segment_prod\(x, i, 4\)", "NotImplementedError", "products that meet have a derivative here"),
    (r"i > 0|astype\('bool'\), 5", "TypeError.*IndexError", "ids are no mask: their dtype is refused"),
]
