"""Calls of `experimental.jet` and their answers in JAX."""

IMPORTS = ["experimental.jet"]
P = "jax.experimental.jet"
OPERANDS = {
    "x": lambda rng: rng.uniform(0.2, 0.8, size=3).astype("f"),
    "y": lambda rng: rng.uniform(0.2, 0.8, size=3).astype("f"),
    "a": lambda rng: rng.normal(size=3).astype("f"),
    "b": lambda rng: rng.normal(size=3).astype("f"),
    "c": lambda rng: rng.normal(size=3).astype("f"),
    "m": lambda rng: rng.normal(size=(3, 3)).astype("f"),
    "i": lambda rng: rng.integers(0, 3, 2).astype("i"),
}
UNARY = (
    "exp expm1 log log1p sin cos sinh cosh tanh arcsinh sqrt square abs negative sign floor ceil round "
    "sum prod max min cumsum cumprod diff flip ravel".split()
)
UNARY = [f"jnp.{name}" for name in UNARY] + [
    "lambda x: jnp.arccosh(1 + x)", "jnp.arctanh", "lax.logistic", "lax.erf", "lax.erfc", "lax.erf_inv", "lax.rsqrt",
    "lambda x: x**2", "lambda x: x**3", "lambda x: x**-1", "lambda x: x**-2", "lambda x: x**2.5", "lambda x: x**x",
    "lambda x: 1 / x", "lambda x: x / (1 + x)", "lambda x: 3.0 - x", "lambda x: x * x * x", "lambda x: jnp.dot(x, x)",
    "lambda x: m @ x", "lambda x: jnp.outer(x, x)", "lambda x: x[i]", "lambda x: x[1:]", "lambda x: x.at[i].add(x[0])",
    "lambda x: jnp.concatenate([x, x**2])", "lambda x: jnp.where(x > 0.5, x, x**2)", "lambda x: jnp.maximum(x, 0.5)",
    "lambda x: jnp.arctan2(x, 1 - x)", "lambda x: jnp.clip(x, 0.3, 0.6)", "lambda x: jnp.pad(x, 1)",
    "lambda x: lax.dynamic_slice(x, (1,), (2,))", "lambda x: jnp.convolve(x, x)", "lambda x: jnp.fft.fft(x).real",
    "jax.jit(jnp.sin)", "jax.grad(lambda x: jnp.sin(x).sum())", "jax.vmap(jnp.sin)", "lambda x: {'p': x, 'q': [x * 2]}",
    "lambda x: lax.stop_gradient(x) * x", "lambda x: (x, jnp.ones(2))", "lambda x: x.astype(jnp.float16)",
    "lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), 'VALID')", "lambda x: jnp.stack([x, x])",
    "lambda x: jnp.split(x, 3)", "lambda x: lax.rem(x, 0.3)", "lambda x: jnp.tile(x, 2)", "lambda x: x.reshape(3, 1).T",
]  # fmt: skip
BAD = [
    "jet(3, (x,), ((a,),))", "jet(jnp.sin, x[0], ((a,),))", "jet(jnp.add, (x, y), ((a,), (a, b)))",
    "jet(jnp.add, (x, y), ((a,),))", "jet(lambda d: d, ({'p': x},), ((a,),))",
]  # fmt: skip
LOOSE = 2e-3
CASES = (
    [(f"{P}.jet({f}, (x,), ((a, b, c),))", LOOSE) for f in UNARY]
    + [(f"{P}.jet({f}, (x,), ((a, b),), factorial_scaled=False)", LOOSE) for f in UNARY]
    + [(f"{P}.jet2({f}, (x,), ((a, b),))", LOOSE) for f in UNARY[:30]]
    + [(f"{P}.jet(lambda x, y: {e}, (x, y), ((a, b), (b, c)))", LOOSE) for e in (
        "x + y", "x - y", "x * y", "x / y", "x**y", "jnp.dot(x, y)", "jnp.arctan2(x, y)", "jnp.maximum(x, y)",
        "jnp.where(x > y, x, y)", "jnp.concatenate([x, y])", "jnp.convolve(x, y)", "lax.complex(x, y).real",
    )]
    + [(f"{P}.jet({f}, (x,), ([],))", LOOSE) for f in UNARY[:10]]
    + [f"{P}.{call}" for call in BAD]
    + [f"{P}.fact(jnp.arange(5.0))", f"{P}.fact(3)"]
)  # fmt: skip
GRADIENTS = [(f"{P}.jet({f}, (x,), ((a, b),))", LOOSE) for f in UNARY[:12]]
EXPLAINED = [
    ("jet\\(jnp.add, \\(x, y\\), \\(\\(a,\\),\\)\\)", ".*", "a series too few is said so, with a ValueError"),
    ("astype", "(?s)^returns.*\\| returns", "converted results: JAX's terms have other dtypes"),
    (r"jnp\.(sign|floor|ceil|round)\b", " weak", "JAX's zeros are weakly typed"),
    (r"jet\.fact\(", ".*", "factorials are exact"),
    (r"jnp\.clip", r"^returns.*\| TypeError: select", "JAX's rule of clamp refuses bounds that are scalars"),
    (r"erf_inv", r"(?s)^returns.*\| TypeError: lax.mul", "JAX's rule takes no single precision where x64 is on"),
    (
        r"lax\.rem\(x, 0\.3\)",
        r"^TypeError.*float32, float64",
        "with x64 on, 0.3 is no float32: refused as outside of jet",
    ),
    (".*", r"(?s)^returns.*\| KeyError", "JAX has no rule for this operation"),
    (
        r"(\{'p': x|jnp\.split|\(x, jnp.ones).*factorial_scaled=False",
        r"(?s)^returns.*\| returns",
        "the series of what is given back is JAX's tuple, where it is a list else",
    ),
]

SLOPES_EXPLAINED = [(r"stop_gradient", "a gradient is stopped, a step is not")]
