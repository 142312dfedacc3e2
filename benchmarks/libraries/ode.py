# ruff: noqa: E501  (tables of calls, one after the other)
"""Calls of `experimental.ode` and their answers in JAX."""

IMPORTS = ["experimental.ode"]
P = "jax.experimental.ode"
OPERANDS = {
    "t": lambda rng: __import__("numpy").linspace(0, 1, 4).astype("f"),
    "two": lambda rng: __import__("numpy").array([0.5, 2.0], "f"),
    "y": lambda rng: rng.normal(size=2).astype("f"),
    "y1": lambda rng: rng.normal(size=2).astype("f"),
    "a": lambda rng: rng.uniform(0.5, 1, size=2).astype("f"),
    "k": lambda rng: rng.normal(size=(7, 2)).astype("f"),
    "c": lambda rng: (rng.normal(size=2) + 1j).astype("F"),
    "s": lambda rng: rng.normal(size=()).astype("f"),
    "h": lambda rng: rng.normal(size=2).astype("e"),
}
SYSTEMS = [
    "lambda y, t: -y, y, t", "lambda y, t: -y, s, t", "lambda y, t: -y, y, two", "lambda y, t: jnp.sin(t) - y, y, t",
    "lambda y, t, a: -a * y, y, t, a", "lambda y, t, a, b: -a * y + b['p'], y, t, a, {'p': s}",
    "lambda y, t, n: -n * y, y, t, 2", "lambda y, t: 1j * y, c, t", "lambda y, t: jnp.stack([y[1], -y[0]]), y, t",
    "lambda y, t: {'p': y['q'], 'q': -y['p']}, {'p': y, 'q': a}, t", "lambda y, t: (-y[0], -2 * y[1]), (s, y), t",
    "lambda y, t: [-y[0]], (s,), t", "lambda y, t: -a * y, y, t", "lambda y, t: -y, y, t[:1]", "lambda y, t: -y, y[:0], t",
    "lambda y, t: -y, 1.0, np.array([0.0, 1.0], 'f')", "lambda y, t: t * y, y, t + 1", "lambda y, t: y * jnp.nan, y, t",
    "lambda y, t: -y**3, y, t * 5", "lambda y, t: y * (1 - y), jnp.abs(y), t * 3",
]  # fmt: skip
BAD = [
    "lambda y, t: -y, 1, t", "lambda y, t: -y, y, jnp.arange(3)", "lambda y, t: -y, y, [0.0, 1.0]", "3, y, t",
    "lambda y, t: -y, y, t[0]", "lambda y, t: -y, y, t[:0]", "lambda y, t: (y, y), y, t", "lambda y, t: jnp.ones(3), y, t",
    "lambda y, t, a: y, y, t, 'a'", "lambda y, t: -y, None, t", "lambda y, t: -y, y, t, rtol='a'",
    "lambda y, t: -y, y, t[::-1]", "lambda y, t: -y, h, t", "lambda y, t: -y, y, jnp.zeros(3)",
]  # fmt: skip
LOOSE = 1e-3
CASES = (
    [(f"{P}.odeint({system})", LOOSE) for system in SYSTEMS]
    + [(f"{P}.odeint({system}, rtol=1e-5, atol=1e-6)", LOOSE) for system in SYSTEMS[:12]]
    + [(f"{P}.odeint({system}, hmax=0.1)", LOOSE) for system in SYSTEMS[:6]]
    + [f"{P}.odeint({system})" for system in BAD]
    + [(f"{P}.{call}", 1e-4) for call in (
        "optimal_step_size(s, jnp.float32(2.0))", "optimal_step_size(1.0, jnp.float32(0.5))",
        "optimal_step_size(1.0, jnp.float32(0.0))", "optimal_step_size(1.0, jnp.float32(1e9), dfactor=0.5)",
        "optimal_step_size(1.0, jnp.float32(1e-9), 0.8, 5.0, 0.1, 4.0)", "mean_error_ratio(y, 1e-3, 1e-3, y1, a)",
        "mean_error_ratio(c, 1e-3, 1e-3, c, c)", "abs2(c)", "abs2(y)", "abs2(3.0)", "abs2(2)", "abs2(2j)",
        "fit_4th_order_polynomial(y, y1, a, a, y, s)", "interp_fit_dopri(y, y1, k, s)",
        "runge_kutta_step(lambda y, t: -y * t, y, a, s, s)", "initial_step_size(lambda y, t: -y, s, y, 4, 1e-3, 1e-3, a)",
        "initial_step_size(lambda y, t: -y, s, y * 0, 4, 1e-3, 1e-3, y * 0)",
    )]
)  # fmt: skip
GRADIENTS = [(f"{P}.odeint({system})", 1e-2) for system in SYSTEMS if "nan" not in system and ", 2" not in system]
EXPLAINED = [
    (
        "abs2\\(2j\\)$",
        "^returns float(32|64)\\[\\] weak",
        "of a Python number comes a weak array, in JAX a Python float",
    ),
    ("\\[0.0, 1.0\\]", ".*", "a list of times is a TypeError, as in functions of jnp"),
    ("rtol='a'", ".*", "a tolerance must be a number"),
    ("lambda y, t, n", ".*", "JAX cannot differentiate around integer arguments"),
    ("h, t\\)", ".*", "in half precision JAX's steps have tolerances that underflow: NaN"),
    ("jnp.zeros\\(3\\)|t\\[::-1\\]", ".*", "a time that is repeated has the state it had; JAX has NaN"),
    ("grad c .*|.*1j \\* y", ".*", "complex states: conventions of complex cotangents in the adjoint"),
]

SLOPES_EXPLAINED = [(r"initial_step_size\(.*y \* 0", "of a norm at zero")]
