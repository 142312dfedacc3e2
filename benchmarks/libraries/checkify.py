# ruff: noqa: E501  (tables of calls, one after the other)
"""Functions transformed by `checkify`, and what their errors say in JAX."""

IMPORTS = ["experimental.checkify"]


def report(jax, f, args, errors="all_checks", how="plain"):
    """The message of the first error, as bytes that can be compared, and the result."""
    checkify = jax.experimental.checkify
    checked = checkify.checkify(lambda *xs: f(checkify, *xs), getattr(checkify, errors))
    if how == "vmap":
        checked = jax.vmap(checked)
    error, out = checked(*args) if any(isinstance(x, jax.core.Tracer) for x in args) else jax.jit(checked)(*args)
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(error)):
        return out
    return [ord(c) for c in error.get() or ""], out


OPERANDS = {
    "x": lambda rng: __import__("numpy").float32(-1.0),
    "one": lambda rng: __import__("numpy").float32(1.0),
    "zero": lambda rng: __import__("numpy").float32(0.0),
    "v": lambda rng: __import__("numpy").array([1.0, -1.0, -2.0], "f"),
    "w": lambda rng: __import__("numpy").array([1.0, 0.0, 2.0], "f"),
    "n": lambda rng: __import__("numpy").array([1.0, float("nan"), 2.0], "f"),
    "i": lambda rng: __import__("numpy").array([0, 7], "i"),
    "j": lambda rng: __import__("numpy").array([1, -9], "i"),
    "k": lambda rng: __import__("numpy").int32(5),
    "b": lambda rng: __import__("numpy").array([1, 200], "u1"),
    "m": lambda rng: rng.normal(size=(2, 3)).astype("f"),
    "report": lambda rng: report,
}
POSITIVE = "(c.check(x > 0, 'not positive: {x}', x=x), x)[1]"
CHECKS = [
    POSITIVE, f"jnp.sin({POSITIVE})", "(c.check(x > 0, 'first {}', x), c.check(x > 1, 'second {y}', y=x), x)[2]",
    "(c.check(x > -5, 'no'), c.check(x > 1, '{y[p]:.2f}', y={'p': x}), x)[2]", "(c.debug_check(x > 0, 'bug'), x)[1]",
    "(c.check(x > 0, 'a', debug=True), x)[1]", "(c.check(False, 'never'), x)[1]", "(c.check(True, 'always'), x)[1]",
    f"lax.cond(x < 0, lambda x: {POSITIVE}, lambda x: x, x)",
    f"lax.switch(1, [jnp.sin, lambda x: {POSITIVE}, jnp.cos], x)",
    f"lax.scan(lambda x, y: ({POSITIVE} - y, x), x + 3, jnp.arange(4.0))",
    f"lax.fori_loop(0, 4, lambda i, x: {POSITIVE} - i, x + 3)",
    f"lax.while_loop(lambda x: x > -5, lambda x: {POSITIVE} - 1, x + 3)",
    f"lax.while_loop(lambda x: {POSITIVE} > -5, lambda x: x - 1, x + 3)",
    f"lax.map(lambda x: {POSITIVE}, x + jnp.arange(3.0))", f"jax.vmap(lambda x: {POSITIVE})(x - jnp.arange(3.0))",
    f"jax.grad(lambda x: {POSITIVE} ** 2)(x)", f"jax.jit(lambda x: {POSITIVE})(x)",
    f"jax.checkpoint(lambda x: {POSITIVE})(x)", f"jax.hessian(lambda x: {POSITIVE} ** 3)(x)",
    f"jax.grad(jax.checkpoint(lambda x: jnp.sin({POSITIVE})))(x)", f"jax.jvp(lambda x: {POSITIVE}, (x,), (x,))",
]  # fmt: skip
NANS = [f"jnp.{f}(x)" for f in "log sqrt arcsin arccosh log1p exp sin cos tanh abs floor sign".split()] + [
    "x - x", "jnp.where(x > 0, jnp.log(x), 0)", "x / (x + 1)", "jnp.sum(jnp.log(x))", "lax.rsqrt(x)", "lax.lgamma(x)",
    "jnp.max(x)", "jnp.sort(x[None])", "jnp.clip(x, 0, 1)", "-x", "x * jnp.nan", "jnp.full(3, jnp.nan) + x",
    "jax.grad(jnp.sqrt)(x + 1)", "jax.grad(jnp.log)(x + 1)", "jnp.dot(x * jnp.ones(2), jnp.ones(2) * jnp.inf)",
    "lax.scan(lambda s, y: (s + jnp.log(y), None), x, jnp.arange(3.0) - 1)[0]", "jnp.cumsum(jnp.ones(2) * x)",
]  # fmt: skip
INDICES = [
    "v[i]", "v[j]", "v[k]", "v[b]", "v[5]", "v[-5]", "v[1]", "v[jnp.array([], int)]", "m[i, i]", "m[i[0], i]", "m[:, i]",
    "v.at[i].set(1.0)", "v.at[i].add(1.0)", "v.at[j].multiply(2.0)", "v.at[i].min(0.0)", "m.at[i].set(0.0)",
    "jnp.take(v, i)", "jnp.take_along_axis(v, i, 0)", "v.at[i].get(mode='clip')", "v.at[i].get(mode='fill')",
    "lax.dynamic_slice(v, (k,), (2,))", "lax.dynamic_slice(m, (k, 0), (1, 2))", "lax.dynamic_index_in_dim(v, k)",
    "lax.dynamic_update_slice(v, v[:1], (k,))", "jax.grad(lambda v: v[i].sum())(v)", "jnp.take(v, i, mode='wrap')",
    "jax.vmap(lambda i: v[i])(i)", "lax.scan(lambda s, i: (s + v[i], None), 0.0, i)[0]", "jnp.take(v, i, mode='clip')",
]  # fmt: skip
SETS = ["user_checks", "nan_checks", "div_checks", "index_checks", "float_checks", "automatic_checks", "all_checks"]
DIVISIONS = [
    "1 / x",
    "x / w",
    "jnp.divide(w, w)",
    "k // jnp.int32(0)",
    "jnp.divmod(k, k - 5)",
    "x % 0.0",
    "1 / (x + 1j)",
]


def call(body: str, args: str, errors: str = "all_checks", how: str = "plain") -> str:
    names = ", ".join(name for name in args.split(", "))
    return f"report(jax, lambda c, {names}: {body}, ({args},), {errors!r}, {how!r})"


CASES = (
    [call(body, "x") for body in CHECKS]
    + [call(body.replace("x", "one") if body.isalpha() else f"(lambda x: {body})(one)", "one") for body in CHECKS]
    + [call(body, "x", s) for body in (CHECKS[0], CHECKS[12], "jnp.log(x) / 0.0") for s in SETS]
    + [call(f"(lambda x: {body})(v)", "v", how="vmap") for body in CHECKS[:10]]
    + [call(body, "x", s) for body in NANS for s in ("nan_checks", "all_checks")]
    + [call(body, "v, m, i, j, k, b", s) for body in INDICES for s in ("index_checks", "user_checks")]
    + [call(body, "x, w, k", "div_checks") for body in DIVISIONS]
    + [call(f"(lambda x: {body})(zero)", "zero", "div_checks") for body in DIVISIONS[:1]]
)
EXPLAINED = [
    (r"dynamic_slice\(m, \(k, 0\)", r"\| TypeError: index arguments", "indices of several integer dtypes are taken"),
    ("mode='clip'", ".*", "what the user asks to clip is no error"),
    ("jax.grad.*scan|while_loop|hessian", ".*", "JAX loses checks in derivatives of loops, or refuses"),
    (
        "^jit .*jnp.take\\(v, i, mode='wrap'\\)",
        "^returns float32",
        "indices that are wrapped need no check: no error is traced",
    ),
    ("jnp.log\\(x\\) / 0.0", ".*", "the first error of the program is reported; in JAX that with the smaller number"),
]
