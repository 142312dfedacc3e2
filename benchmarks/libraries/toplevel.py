"""Names around the core: rules for `vmap`, composites, passes apart, checks of gradients. See
`differential_libraries.py` for what a table is.
"""

import itertools

import numpy as np

IMPORTS = ["custom_batching", "test_util", "dlpack", "api_util", "monitoring"]
OPERANDS = {
    "x": lambda rng: rng.normal(size=4).astype(np.float32),
    "m": lambda rng: rng.normal(size=(3, 4)).astype(np.float32),
    "i": lambda rng: rng.integers(0, 9, 4, np.int32),
}

WITH_RULE = "(lambda f: (f.def_vmap({rule}), {call})[1])(jax.custom_batching.custom_vmap({fun}))"
RULES = {
    "jnp.sin": (
        "lambda n, b, x: (jnp.cos(x), b[0])",
        "lambda n, b, x: (x.sum(), False)",
        "lambda n, b, x: (x * n, True)",
        "lambda n, b, x: x",
        "lambda n, b, x: ((x, x), (True, True))",
        "lambda n, b, x: (x, (True,))",
    ),
    "lambda x: {'a': x * 2, 'b': x.sum()}": ("lambda n, b, x: ({'a': x, 'b': x}, {'a': True, 'b': True})",),
}
CALLS = (
    "f(x[0])",
    "jax.vmap(f)(x)",
    "jax.vmap(jax.vmap(f))(m)",
    "jax.jit(jax.vmap(f))(x)",
    "jax.vmap(jax.jit(f))(x)",
    "jax.vmap(lambda y: jax.jvp(f, (y,), (y,)))(x)",
    "jax.jvp(jax.vmap(f), (x,), (x,))",
    "jax.lax.map(f, x)",
)
HOSTS = ("host_id", "host_ids", "host_count", "process_indices")
CASES = [
    *(
        WITH_RULE.format(fun=fun, rule=rule, call=call)
        for fun, rules in RULES.items()
        for rule, call in itertools.product(rules, CALLS)
    ),
    *(
        f"jax.vmap(jax.custom_batching.sequential_vmap({f}), {axes})({x}, {y})"
        for f in ("jnp.multiply", "lambda x, y: (x + y, {'a': x.sum()})")
        for axes, x, y in (("0", "x", "x"), ("(0, None)", "x", "2.0"), ("(1, 0)", "m", "x"), ("(None, 1)", "x", "m.T"))
    ),
    *(f"jax.custom_batching.custom_vmap(jnp.sin)({x})" for x in ("x", "1.0", "'a'")),
    *(
        f"lax.composite(lambda x, *, k=2: {out}, 'mine', version=1)({call})"
        for out in ("x * k", "{'a': x, 'b': x.sum()}")
        for call in ("x", "x, k=3", "1.0", "'a'", "", "m")
    ),
    *(
        f"lax.platform_dependent({args})"
        for args in (
            "x, cpu=jnp.sin, tpu=jnp.cos",
            "x, tpu=jnp.cos, default=jnp.tan",
            "x, cpu=3, default=jnp.tan",
            "x, m, cpu=lambda x, m: x + m, default=lambda x, m: m",
            "cpu=lambda: jnp.ones(2), default=lambda: jnp.zeros(2)",
            "x, cpu=lambda x, y: x, default=jnp.sin",
        )
    ),
    *(f"lax.dce_sink({v})" for v in ("x", "{'a': x, 'b': m}", "'a'", "x, prevent_mlir_dce=True")),
    *(f"lax.stage({v})" for v in ("x", "1.0", "2", "True", "[1.0]", "'a'", "None")),
    *(
        f"(lambda f, b: b(f({args})[1], {ct}))(*jax.fwd_and_bwd({fun}, {nums}, jitted={jitted}))"
        for jitted in (True, False)
        for fun, args, nums, ct in (
            ("lambda x, y: jnp.sin(x) * y", "x, x", "0", "x"),
            ("lambda x, y: jnp.sin(x) * y", "x, x", "(1, 0)", "x"),
            ("lambda x, y: jnp.sin(x) * y", "x, x", "-1", "x"),
            ("lambda x, y: (x * y).sum()", "x, m", "(0, 1)", "2.0"),
            ("lambda x, y: {'a': x, 'b': y}", "x, m", "0", "{'a': x, 'b': m}"),
            ("lambda x: x", "x", "3", "x"),
            ("lambda x: x", "x", "0", "m"),
        )
    ),
    "jax.fwd_and_bwd(lambda x: (x * x, x), 0, has_aux=True)[0](x)[2]",
    "jax.fwd_and_bwd(3, 0)",
    *(f"jax.copy_to_host_async({v})" for v in ("x", "{'a': x, 'b': 3}", "'a'")),
    *(f"jax.{n}({b})" for n in HOSTS for b in ("", "'cpu'", "'tpu'")),
    *(
        f"jax.test_util.check_grads({f}, {args}, {order}{more})"
        for f, args in (("jnp.sin", "(x,)"), ("jnp.multiply", "(x, x)"), ("lambda x: {'a': x * x}", "(m,)"))
        for order in (0, 1, 2)
        for more in ("", ", modes='rev'", ", modes=['fwd']", ", eps=1e-2, atol=1e-2, rtol=1e-2")
    ),
    "jax.test_util.check_grads(lambda x: lax.stop_gradient(x) * x, (x,), 1)",
    "jax.test_util.check_jvp(jnp.sin, lambda p, t: (jnp.sin(*p), 2 * t[0]), (x,))",
    "jax.test_util.check_vjp(jnp.sin, lambda x: jax.vjp(jnp.cos, x), (x,))",
    *(f"jax.dlpack.is_supported_dtype({d!r})" for d in ("float32", "int8", "bool", "complex64", "int4", "foo")),
    "jax.dlpack.from_dlpack(x)",
    "jax.dlpack.from_dlpack(3)",
    "jax.dlpack.from_dlpack(np.ones(3))",
    *(
        f"[jax.{guard}({level!r}).__enter__(), None][1]"
        for guard in ("transfer_guard", "transfer_guard_host_to_device")
        for level in ("allow", "log", "odd")
    ),
]
EXPLAINED = [
    (r"'mine'", "Cannot lower", "JAX writes a composite's constants in a way that its compiler refuses"),
    (r"'mine'", "float64", "a Python number that is given back is an array"),
    (r"check_|from_dlpack", "Tracer|Concretization|Attribute", "another kind of error for traced values"),
]
