# ruff: noqa: E501  (tables of calls, one after the other)
"""Rules of users' own: derivatives, linear calls, callbacks, splits. See `differential_libraries.py` for what a table is."""

import itertools

import numpy as np

IMPORTS = [
    *("custom_derivatives", "experimental.buffer_callback", "experimental.custom_partitioning", "ad_checkpoint"),
    *("experimental.shard_alike", "experimental.layout", "experimental.compute_on", "experimental.xla_metadata"),
]
OPERANDS = {
    "x": lambda rng: rng.uniform(0.2, 0.9, 3).astype("f"),
    "y": lambda rng: rng.normal(size=3).astype("f"),
    "m": lambda rng: rng.normal(size=(2, 3)).astype("f"),
    "c": lambda rng: (rng.normal(size=3) + 1j * rng.normal(size=3)).astype("F"),
    "h": lambda rng: rng.normal(size=3).astype("e"),
    "i": lambda rng: rng.integers(0, 9, 3).astype("i"),
    "s": lambda rng: np.float32(0.7),
}
# How a function `f` of one array is used.
USES = (
    *("f(x)", "f(1.5)", "f(2)", "f(i)", "f('a')", "f(x=x)", "f()", "jax.vmap(f)(m)", "jax.jit(f)(x)"),
    *("jax.jvp(f, (x,), (y,))", "jax.vjp(f, x)[1](y)", "jax.grad(f)(s)", "jax.grad(lambda x: f(x).sum())(x)"),
    *("jax.value_and_grad(lambda x: f(x).sum())(x)", "jax.linearize(f, x)[1](y)", "jax.jacfwd(f)(x)", "jax.jacrev(f)(x)"),
    *("jax.hessian(lambda x: f(x).sum())(x)", "jax.vmap(jax.grad(f))(x)", "jax.grad(lambda m: jax.vmap(f)(m).sum())(m)"),
    *("jax.jvp(jax.vmap(f), (m,), (m,))", "jax.grad(lambda x: jax.checkpoint(f)(x).sum())(x)", "jax.grad(jax.jit(f))(1.5)"),
    "jax.grad(lambda x: lax.scan(lambda a, _: (f(a), a), x, None, length=2)[0].sum())(x)",
    "jax.grad(lambda x: lax.cond(x[0] > 0, f, lambda x: x, x).sum())(x)",
    "jax.grad(lambda x: f(x).real.sum())(c) if hasattr(c, 'dtype') else None",
    *("jax.jvp(f, (h,), (h,))", "jax.vjp(f, c)[1](c)", "jax.grad(lambda x: f(lax.stop_gradient(x)).sum())(x)"),
)  # fmt: skip
JVPS = (
    *("lambda p, t: (jnp.sin(p[0]), 2 * t[0])", "lambda p, t: (jnp.cos(p[0]), p[0] * t[0])", "lambda p, t: jnp.sin(p[0])"),
    *("lambda p, t: (jnp.sin(p[0]), t[0].sum())", "lambda p, t: (p, t)", "lambda p, t: (jnp.sin(p[0]), 2.0)"),
    *("lambda p, t: (jnp.sin(p[0]), t[0].astype('float16'))", "lambda p, t: (p[0].sum(), t[0].sum())", "lambda p, t: None"),
    "lambda p, t: [jnp.sin(p[0]), t[0]]",
)  # fmt: skip
FORWARDS = ("lambda x: (jnp.sin(x), x)", "lambda x: (jnp.cos(x), (x, 3))", "lambda x: jnp.sin(x)", "lambda x: (x.sum(), x)", "lambda x: [jnp.sin(x), x]")  # fmt: skip
BACKWARDS = (
    *("lambda r, g: (g * 2,)", "lambda r, g: g * 2", "lambda r, g: (g, g)", "lambda r, g: (None,)", "lambda r, g: (g.sum(),)"),
    *("lambda r, g: ({'a': g},)", "lambda r, g: [g]", "lambda r, g: (g.astype('float16'),)", "lambda r, g: (1.0,)"),
)  # fmt: skip
JVP = "(lambda f: (f.defjvp({}), {})[1])(jax.custom_jvp(jnp.sin))"
VJP = "(lambda f: (f.defvjp({}, {}), {})[1])(jax.custom_vjp(lambda x: jnp.sin(x)))"
GRADIENT = "(lambda f: {1})(jax.custom_gradient({0}))"
LINEAR = "jax.custom_derivatives.linear_call({}, {}, {}, {})"
BUFFERS = "jax.experimental.buffer_callback.buffer_callback"
DOUBLE = "lambda context, out, x: np.asarray(out).__setitem__(..., np.asarray(x) * 2)"
PARTITION = "jax.experimental.custom_partitioning"
TWO_TREES = ("x, x", "{'a': x, 'b': y}, {'a': x, 'b': y}", "(x, s), (x, s)", "x, (x,)", "(), x")
METHODS = ("None", "'sequential'", "'expand_dims'", "'broadcast_all'", "'legacy_vectorized'", "'other'")

CASES = [
    *(JVP.format(rule, use) for rule in JVPS[:2] for use in USES),
    *(JVP.format(rule, use) for rule in JVPS[2:] for use in (USES[0], *USES[9:13], USES[-3])),
    *(VJP.format(FORWARDS[0], BACKWARDS[0], use) for use in USES),
    *(VJP.format(FORWARDS[0], "lambda r, g: (g * r * jnp.cos(r),)", use) for use in USES),
    *(
        VJP.format(forward, backward, use)
        for forward, backward in itertools.product(FORWARDS, BACKWARDS)
        for use in (USES[10], USES[12])
    ),
    *(
        GRADIENT.format(fun, use)
        for fun in ("lambda x: (x**2, lambda g: g * 3)", "lambda x: (jnp.sin(x), lambda g: (g * x,))")
        for use in USES
    ),
    *(
        GRADIENT.format(fun, "jax.grad(lambda x: f(x).sum())(x)")
        for fun in ("lambda x: x", "lambda x: (x, 3)", "lambda x: (x, lambda g: (g, g))", "lambda x: (x, lambda g: g.sum())")
    ),
    "jax.grad(lambda x, y: jax.custom_gradient(lambda x, y: (x * y, lambda g: (g, 2 * g)))(x, y).sum(), (0, 1))(x, y)",
    *(
        f"(lambda f: (f.defjvps({rules}), {use})[1])(jax.custom_jvp(lambda x, y: x * y))"
        for rules in ("lambda t, ans, x, y: t, lambda t, ans, x, y: 2 * t", "None, lambda t, ans, x, y: ans * t", "None, None", "None", "lambda t, ans, x, y: t.sum(), None")
        for use in ("f(x, y)", "jax.jvp(f, (x, y), (y, x))", "jax.grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y)")
    ),
    *(
        f"(lambda f: (f.defjvp(lambda n, p, t: (p[0]**n, 5 * t[0])), {use})[1])(jax.custom_jvp(lambda n, x: x**n, nondiff_argnums={nums}))"
        for nums in ("(0,)", "0", "(5,)", "'a'")
        for use in ("f(2, x)", "jax.jvp(lambda x: f(2, x), (x,), (y,))", "jax.grad(f, 1)(2, s)", "jax.grad(f, 0)(2.0, s)")
    ),
    *(
        f"(lambda f: (f.defvjp(lambda n, x: (x**n, x), lambda n, r, g: (n * g,)), {use})[1])(jax.custom_vjp(lambda n, x: x**n, nondiff_argnums={nums}))"
        for nums in ("(0,)", "0", "(5,)")
        for use in ("f(2, x)", "jax.grad(f, 1)(2, s)", "jax.grad(f, 0)(2.0, s)", "jax.vmap(f, (None, 0))(2, x)")
    ),
    *(f"jax.{f}(jnp.sin)({x})" for f in ("custom_jvp", "custom_vjp") for x in ("x", "'a'")),
    *(f"jax.{f}(3)(x)" for f in ("custom_jvp", "custom_vjp", "custom_gradient", "closure_convert")),
    # linear calls
    *(
        call.format(LINEAR.format(fun, back, res, "v"))
        for fun, back, res in (
            ("lambda r, v: r * v", "lambda r, t: 3 * r * t", "y"),
            ("lambda r, v: v", "lambda r, t: t", "()"),
            ("lambda r, v: r['a'] * v.sum()", "lambda r, t: jnp.ones(3) * t", "{'a': s}"),
            ("lambda r, v: v.sum()", "lambda r, t: t", "()"),
            ("lambda r, v: {'q': v}", "lambda r, t: t['q'] * 5", "()"),
        )
        for call in (
            *("(lambda v: {})(x)", "jax.jvp(lambda v: {}, (x,), (y,))", "jax.vjp(lambda v: {}, x)[1](y)"),
            *("jax.vmap(lambda v: {})(m)", "jax.linear_transpose(lambda v: {}, x)(y)", "jax.jit(lambda v: {})(x)"),
            *("jax.vjp(lambda v: {}, x)[1](s)", "jax.vjp(lambda v: {}, x)[1]({{'q': y}})"),
        )
    ),
    # closures
    "(lambda f, more: f(x, *more))(*jax.closure_convert(lambda v: v * y, x))",
    "jax.grad(lambda y: (lambda f, more: f(x, *more).sum())(*jax.closure_convert(lambda v: v * y, x)))(y)",
    "jax.grad(lambda y: len(jax.closure_convert(lambda v: v * y * m, x)[1]) * y.sum())(y)",
    "jax.closure_convert(lambda v: v * y, x)[0](m, y)",
    # callbacks
    *(
        use.format(f"jax.pure_callback({fun}, {result}, v, vmap_method={method})")
        for fun, result in (
            ("lambda v: np.sin(v)", "jax.ShapeDtypeStruct(v.shape, v.dtype)"),
            ("lambda v: np.asarray(v).sum()", "jax.ShapeDtypeStruct((), v.dtype)"),
            ("lambda v: {'a': v, 'b': v}", "{'a': v, 'b': v}"),
        )
        for method in METHODS
        for use in ("(lambda v: {})(x)", "jax.vmap(lambda v: {})(m)", "jax.jit(jax.vmap(lambda v: {}))(m)", "jax.vmap(jax.vmap(lambda v: {}))(m[None])")
    ),
    *(
        f"jax.pure_callback({fun}, {result}, x)"
        for fun in ("lambda v: v", "lambda v: v[:1]", "lambda v: np.float64(v)", "lambda v: None", "lambda v: (v, v)", "lambda v: 'a'", "lambda v: 1 / 0", "lambda: 1", "3")
        for result in ("x", "jax.ShapeDtypeStruct((3,), 'int32')", "(x, x)", "None")
    ),
    *(f"jax.{how}(lambda v: {call})(x)" for call in ("jax.pure_callback(np.sin, v, v)", "jax.experimental.io_callback(np.sin, v, v)") for how in ("jit", "vmap", "checkpoint", "jacfwd", "jacrev")),
    *(f"jax.experimental.io_callback({fun}, {result}, x, ordered={on})" for fun in ("lambda v: v", "lambda v: v[:1]", "lambda v: None", "lambda v: 1 / 0") for result in ("x", "None", "(x, x)") for on in (True, False)),
    *(f"{BUFFERS}({DOUBLE}, {result})({v})" for result in ("jax.ShapeDtypeStruct((3,), 'float32')", "jax.ShapeDtypeStruct((2, 3), 'float32')", "x", "3") for v in ("x", "m", "1.0", "'a'", "")),
    *(f"jax.vmap({BUFFERS}({DOUBLE}, jax.ShapeDtypeStruct((3,), 'float32'), vmap_method={method}))(m)" for method in METHODS),
    *(f"{BUFFERS}({fun}, jax.ShapeDtypeStruct((3,), 'float32'){more})(x)" for fun, more in (("lambda context, out, x: 3", ""), ("lambda context, out, x: 1 / 0", ""), ("lambda out: None", ""), ("3", ""), ("lambda context, out, x: None", ", input_output_aliases={0: 0}"), (DOUBLE, ", input_output_aliases={0: 1}"), (DOUBLE, ", input_output_aliases={1: 0}"), (DOUBLE, ", has_side_effect=True"))),
    *(f"jax.{f}({BUFFERS}({DOUBLE}, jax.ShapeDtypeStruct((3,), 'float32')))(x)" for f in ("jit", "jacfwd", "jacrev", "checkpoint")),
    # splits
    *(
        f"(lambda f: (f.def_partition(lambda *a: None, {rule}), {use})[1])({PARTITION}.custom_partitioning(lambda x, y: x @ y))"
        for rule in ("sharding_rule='i k, k j -> i j'", "infer_sharding_from_operands=lambda *a: None", "sharding_rule='i k, k j -> i j', k=3", "sharding_rule='i k, k j'", "sharding_rule='i k k j -> i j'", "sharding_rule='... i, ... i -> ...'", "sharding_rule=3")
        for use in ("f(m, m.T)", "jax.jit(f)(m, m.T)", "jax.vmap(f)(m[None], m.T[None])", "jax.grad(lambda m: f(m, m.T).sum())(m)", "f(m)", "f(x, 'a')")
    ),
    f"{PARTITION}.custom_partitioning(jnp.sin)(x)",
    f"{PARTITION}.custom_partitioning(3)",
    *(f"{PARTITION}.{call}" for call in ("SdyShardingRule(('i',), ('j',))", "CompoundFactor('i')", "CompoundFactor('i', 3)", "ArrayMapping('i', 3)", "ArrayMapping('1')", "ArrayMapping('i j')")),
    *(f"jax.experimental.shard_alike.shard_alike({v})" for v in ("x, y", "x, m", "x, i", "1.0, 2.0", "x, 'a'", "(x,), (y,)")),
    *(f"jax.experimental.layout.with_layout_constraint({v}, jax.experimental.layout.Layout(major_to_minor={order}))" for v in ("x", "m", "'a'", "1.0") for order in ("(0,)", "(0, 1)", "(1, 0)", "()", "(0, 0)")),
    *(f"jax.experimental.compute_on.compute_on({k!r})(jnp.sin)(x)" for k in ("device_host", "cpu", "tpu_sparsecore", 3)),
    *(f"jax.experimental.xla_metadata.set_xla_metadata({v})" for v in ("x, a=1", "x", "x, a='b'", "'a', a=1")),
    # checkpoints
    *(
        f"jax.{f}(jax.checkpoint(lambda x: jnp.sin(jax.ad_checkpoint.checkpoint_name(jnp.exp(x), 'e')).sum(), policy={policy}))(x)"
        for f in ("grad", "hessian", "value_and_grad")
        for policy in ("None", "jax.checkpoint_policies.everything_saveable", "jax.checkpoint_policies.save_only_these_names('e')", "jax.checkpoint_policies.dots_saveable", "3")
    ),
    *(f"jax.ad_checkpoint.checkpoint_name({v})" for v in ("x, 'a'", "{'a': x}, 'a'", "1.0, 'a'", "x, 3", "'a', 'a'")),
]  # fmt: skip
EXPLAINED = [
    (".*", r"(?s)^returns.*\| TypeError: can't apply forward-mode", "the backward rule is linear, and is transposed"),
    (r"defjvps\(None, None\)", r"^returns.*\| TypeError", "all derivatives are zero"),
    (r"nondiff_argnums=\(5,\)", r"^ValueError.*\| IndexError", "there is no such argument: a ValueError, as elsewhere"),
    (r"\(3[,)]", r"^TypeError: Expected a callable value.*\|", "what is no function is refused at once"),
    (r"vmap\(lambda v: .*linear_call", r"^returns.*NotImplementedError", "JAX has no rule"),
    (r"custom_partitioning", r"^returns.*\| NotImplementedError", "JAX has no rule"),
    (r"__setitem__\(.*\), 3\)\(", r"\| AttributeError", "a number is of its own type, where JAX trips over it"),
    (r"vmap_method='other'", r"^ValueError.*\| NotImplementedError", "refused at once"),
    (r"\(0, 0\)", r"^ValueError.*\| JaxRuntimeError", "refused before it is compiled"),
    (r"eager .*layout_constraint\(1.0", r"^returns float(32|64)\[\] weak \[1\.\] \|", "a number becomes an array"),
    (r"eager .*checkpoint_name\(1.0", r"^returns float(32|64)\[\] weak \[1\.\] \|", "a number becomes an array"),
    (r"checkpoint_name\(x, 3\)", r"^TypeError.*\| returns", "a name is a string"),
]
