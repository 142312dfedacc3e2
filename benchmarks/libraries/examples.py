# ruff: noqa: E501  (tables of calls, one after the other)
"""Calls of `example_libraries` and their answers in JAX: optimizers, schedules, layers."""

IMPORTS = ["example_libraries.optimizers", "example_libraries.stax"]
O, S = "jax.example_libraries.optimizers", "jax.example_libraries.stax"


def steps(optimizers, maker, x, *gradients):
    """The parameters after some steps."""
    init, update, parameters = maker(optimizers)
    state = init(x)
    for i, g in enumerate(gradients):
        state = update(i, g, state)
    return parameters(state)


def layer(jax, make, shape, rng=False):
    """The parameters of a layer, and what it gives."""
    init, apply = make(jax.example_libraries.stax)
    out_shape, params = init(jax.random.key(0), shape)
    shapes = shape if isinstance(shape, list) else [shape]
    xs = [jax.random.normal(jax.random.key(1), tuple(2 if n == -1 else n for n in s)) for s in shapes]
    kwargs = {"rng": jax.random.key(2)} if rng else {}
    known = [tuple(int(n) for n in s) for s in (out_shape if isinstance(out_shape, list) else [out_shape])]
    return params, apply(params, xs if isinstance(shape, list) else xs[0], **kwargs), known


OPERANDS = {
    "x": lambda rng: rng.normal(size=(2, 3)).astype("f"),
    "g": lambda rng: rng.normal(size=(2, 3)).astype("f"),
    "h": lambda rng: rng.normal(size=(2, 3)).astype("f"),
    "v": lambda rng: rng.normal(size=4).astype("f"),
    "h16": lambda rng: rng.normal(size=4).astype("e"),
    "z": lambda rng: rng.normal(size=4).astype("f") * 0,
    "i": lambda rng: rng.integers(0, 9, 3).astype("i"),
    "steps": lambda rng: steps,
    "layer": lambda rng: layer,
}
MAKERS = [
    "sgd(0.1)", "momentum(0.1, 0.9)", "momentum(0.1, mass=0.5)", "nesterov(0.1, 0.9)", "adagrad(0.1)",
    "adagrad(0.1, 0.5)", "rmsprop(0.1)", "rmsprop(0.1, 0.5, 1e-3)", "rmsprop_momentum(0.1)",
    "rmsprop_momentum(0.1, 0.5, 1e-3, 0.1)", "adam(0.1)", "adam(0.1, 0.5, 0.9, 1e-2)", "adamax(0.1)",
    "adamax(0.1, 0.5, 0.9, 1e-2)", "sm3(0.1)", "sm3(0.1, 0.5)", "adam(lambda i: 0.1 / (i + 1))",
]  # fmt: skip
TREES = ["x, g, h", "v, v, v", "v, z, v", "{'a': x, 'b': v}, {'a': g, 'b': v}", "2.0, 1.0, 0.5", "h16, h16, h16"]
SCHEDULES = [
    "constant(0.1)", "exponential_decay(0.1, 10, 0.5)", "inverse_time_decay(0.1, 10, 0.5)",
    "inverse_time_decay(0.1, 10, 0.5, True)", "polynomial_decay(0.1, 5, 0.01)", "polynomial_decay(0.1, 5, 0.01, 2.0)",
    "piecewise_constant([3, 6], [1.0, 2.0, 3.0])", "make_schedule(0.1)", "make_schedule(lambda i: i * 2)",
]  # fmt: skip
LAYERS = [
    "Dense(4)|(2, 3)", "Dense(4)|(-1, 3)", "Conv(4, (3, 3))|(2, 6, 6, 3)", "Conv(4, (3, 3), (2, 2), 'SAME')|(-1, 6, 6, 3)",
    "ConvTranspose(4, (3, 3), (2, 2), 'SAME')|(2, 5, 5, 3)", "ConvTranspose(4, (3, 3))|(2, 5, 5, 3)",
    "Conv1DTranspose(4, (3,), (2,))|(2, 5, 3)", "GeneralConv(('NCHW', 'OIHW', 'NCHW'), 4, (3, 2))|(2, 3, 6, 6)",
    "GeneralConvTranspose(('NHWC', 'HWIO', 'NHWC'), 4, (3, 3))|(2, 5, 5, 3)", "BatchNorm()|(2, 4, 4, 3)",
    "BatchNorm(axis=0, center=False)|(5, 3)", "BatchNorm((0, 1), scale=False)|(2, 3, 4)", "Flatten|(2, 3, 4)",
    "MaxPool((2, 2))|(2, 5, 5, 3)", "MaxPool((2, 2), (2, 2), 'SAME')|(2, 5, 5, 3)", "SumPool((2, 3))|(2, 5, 5, 3)",
    "AvgPool((2, 2), (2, 2), 'SAME')|(2, 5, 5, 3)", "AvgPool((2, 2), spec='NCHW')|(2, 3, 5, 5)", "FanOut(3)|(2, 3)",
    "FanInSum|[(2, 3), (2, 3)]", "FanInConcat()|[(2, 3), (2, 4)]", "FanInConcat(0)|[(2, 3), (5, 3)]",
    "serial(m.Dense(4), m.Relu, m.Dense(5), m.LogSoftmax)|(2, 3)", "shape_dependent(lambda s: m.Dense(s[-1]))|(2, 3)",
    "serial(m.FanOut(2), m.parallel(m.Dense(4), m.Dense(4)), m.FanInSum)|(2, 3)", "serial()|(2, 3)",
    "elementwise(lambda x, n: x**n, n=2)|(2, 3)", "Dropout(0.5)|(2, 3)", "Dropout(0.5, 'test')|(2, 3)",
    *[f"{name}|(2, 3, 4)" for name in "Tanh Relu Exp LogSoftmax Softmax Softplus Sigmoid Elu LeakyRelu Selu Gelu Identity"
      .split()],
]  # fmt: skip
RANDOM = [
    "Dropout(0.5)|(2, 30)", "Dropout(0.9, 'test')|(2, 30)", "serial(m.Dropout(0.5), m.Dropout(0.9))|(2, 30)",
    "serial(m.FanOut(2), m.parallel(m.Dropout(0.5), m.Dropout(0.9)), m.FanInSum)|(2, 30)",
]  # fmt: skip
CASES = (
    [f"steps({O}, lambda m: m.{maker}, {tree})" for maker in MAKERS for tree in TREES]
    + [f"[{O}.{schedule}({i}) for {i} in (0, 1, 3, 4, 6, 9)]".replace(f"for {i}", "for k").replace(f"({i})", "(k)")
       for schedule in SCHEDULES for i in "k"]
    + [f"{O}.{schedule}(i[0])" for schedule in SCHEDULES]
    + [f"{O}.{call}" for call in (
        "l2_norm({'a': x, 'b': 2.0})", "l2_norm([])", "l2_norm(h16)", "clip_grads({'a': x, 'b': v}, 1.0)",
        "clip_grads(x, 100.0)", "clip_grads(z, 0.0)", "clip_grads(h16, 0.1)", "piecewise_constant([1], [1.0])",
        "piecewise_constant([[1]], [1.0])", "make_schedule(x)", "sgd('a').init_fn(x)", "adam(0.1).init_fn('a')",
        "sgd(0.1).update_fn(0, {'a': x}, {'b': x})", "momentum(0.1, 0.9).init_fn({'a': x}).packed_state",
        "unpack_optimizer_state(momentum(0.1, 0.9).init_fn(x)).subtree".replace("state(", f"state({O}."),
        "pack_optimizer_state([1])",
    )]
    + [f"layer(jax, lambda m: m.{make}, {shape})" for make, shape in (s.split("|") for s in LAYERS)]
    + [f"layer(jax, lambda m: m.{make}, {shape}, True)" for make, shape in (s.split("|") for s in RANDOM)]
    + [f"{S}.glorot()(jax.random.key(0), (3, 4))", f"{S}.randn()(jax.random.key(0), (3, 4))",
       f"{S}.randn(1.0, jnp.float16)(jax.random.key(0), (3, 4))", f"{S}.logsoftmax(x)", f"{S}.logsoftmax(x, 0)"]
)  # fmt: skip
EXPLAINED = [
    ("sm3.*2.0, 1.0", ".*", "JAX's sm3 takes no Python scalars"),
    ("serial\\(\\)", ".*", "no layer at all is the identity here, an error in JAX"),
    ("clip_grads\\(z", ".*", "a norm of 0 is no NaN"),
    ("pack_optimizer_state\\(\\[1\\]\\)$", "^TypeError.*AssertionError", "JAX asserts, without a word"),
    ("sgd\\('a'", ".*", "a step size that is a string is refused at once"),
]
