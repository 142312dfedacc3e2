"""The extension API: programs as data, rules as functions, types, flattening, generators."""

import numpy as np

IMPORTS = [
    *("extend", "extend.core", "extend.core.primitives", "extend.linear_util", "extend.random"),
    *("extend.backend", "api_util", "interpreters.ad", "interpreters.batching", "interpreters.partial_eval", "core"),
]
OPERANDS = {
    "x": lambda rng: rng.normal(size=3).astype("float32"),
    "y": lambda rng: rng.uniform(1, 2, size=3).astype("float32"),
    "m": lambda rng: rng.normal(size=(2, 3)).astype("float32"),
    "c": lambda rng: (rng.normal(size=3) + 1j * rng.normal(size=3)).astype("complex64"),
    "i": lambda rng: rng.integers(-5, 6, size=3).astype("int32"),
    "h": lambda rng: rng.normal(size=3).astype("float16"),
    "s": lambda rng: np.float32(rng.normal()),
    "k": lambda rng: rng.integers(0, 2**32, size=2, dtype="uint32"),
    "n": lambda rng: rng.integers(0, 2**32, size=5, dtype="uint32"),
    "nn2": lambda rng: rng.integers(0, 2**32, size=(2, 3), dtype="uint32"),
}

AD, BATCHING, PE, CORE = (
    "jax.interpreters.ad",
    "jax.interpreters.batching",
    "jax.interpreters.partial_eval",
    "jax.extend.core",
)
P, RANDOM, API, LU = f"{CORE}.primitives", "jax.extend.random", "jax.api_util", "jax.extend.linear_util"

# Programs of one array, by walking whose jaxprs results are found.
PROGRAMS = [
    "lambda x: jnp.sin(x) * 2 + 1",
    "lambda x: jax.jit(lambda y: jnp.exp(y) - x)(x)",
    "lambda x: lax.scan(lambda c, t: (c + t, c * t), x[0], x)",
    "lambda x: lax.cond(x[0] > 0, lambda y: y * 2, lambda y: y - 1, x)",
    "lambda x: lax.fori_loop(0, 3, lambda k, y: y * 2, x)",
    "lambda x: lax.while_loop(lambda y: jnp.abs(y).max() < 9, lambda y: y * 3 + 1, x)",
    "lambda x: jnp.sort(x)",
    "lambda x: jax.checkpoint(jnp.tanh)(x)",
    "lambda x: jax.nn.relu(x)",
    "lambda x: jax.grad(lambda y: jnp.sum(y ** 3))(x)",
    "lambda x: (x, x)",
    "lambda x: ()",
    "lambda x: 3.0",
]

TWO = "jax.make_jaxpr(lambda x, y: (jnp.sin(x), y * 2))(x, y).jaxpr"
LOOP = "lax.scan(lambda c, t: ((c[0] + 1, c[1] * t), c[1]), (x, x[0]), y)"
BRANCH = "lax.cond(x[0] > 0, lambda: (x, y), lambda: (x + 1, y))"
CASES = [
    *(f"(lambda j: jax.core.eval_jaxpr(j.jaxpr, j.consts, y))(jax.make_jaxpr({f})(x))" for f in PROGRAMS),
    *(f"{CORE}.jaxpr_as_fun(jax.make_jaxpr({f})(x))(y)" for f in PROGRAMS),
    *(
        f"jax.core.eval_jaxpr({PE}.dce_jaxpr({TWO}, {used}, instantiate={keep})[0], (), *{args})"
        for used, keep, args in (
            ([True, False], False, "(x,)"),
            ([False, True], False, "(y,)"),
            ([False, False], False, "()"),
            ([True, True], False, "(x, y)"),
            ([True, False], True, "(x, y)"),
            ([False, True], [True, False], "(x, y)"),
        )
    ),
    f"{PE}.dce_jaxpr({TWO}, [True, False])[1]",
    f"{PE}.dce_jaxpr(jax.make_jaxpr(lambda x, y: {LOOP})(x, y).jaxpr, [False, True, True])[1]",
    f"{PE}.dce_jaxpr(jax.make_jaxpr(lambda x, y: {BRANCH})(x, y).jaxpr, [False, True])[1]",
    f"{PE}.dce_jaxpr(jax.make_jaxpr(lambda x, y: jax.jit(lambda a, b: (a, b))(x, y))(x, y).jaxpr, [False, True])[1]",
    f"{PE}.dce_jaxpr(jax.make_jaxpr(lambda x: x)(x).jaxpr, [True, False])[1]",
    # derivatives
    *(f"{AD}.zeros_like_aval(jax.typeof({v}))" for v in ("x", "m", "c", "i", "h", "s", "2.0", "True")),
    *(f"{AD}.instantiate_zeros({AD}.Zero(jax.typeof({v})))" for v in ("x", "m", "c", "h", "s", "2.0")),
    *(f"{AD}.add_tangents({a}, {b})" for a, b in (("x", "y"), ("c", "c"), ("h", "h"), ("s", "s"))),
    f"{AD}.add_tangents({AD}.Zero(jax.typeof(x)), y)",
    f"{AD}.add_tangents(x, {AD}.Zero(jax.typeof(x)))",
    f"{AD}.add_jaxvals(x, y)",
    f"{AD}.is_undefined_primal(x)",
    f"{AD}.is_undefined_primal({AD}.UndefinedPrimal(jax.typeof(x)))",
    *(
        f"(lambda e: {AD}.primitive_jvps[e.primitive]((x,), (y,), **e.params))(jax.make_jaxpr(lax.{p})(x).eqns[0])"
        for p in ("sin", "cos", "exp", "tanh", "log1p", "logistic", "sqrt", "cbrt")
    ),
    *(
        f"{AD}.primitive_jvps[{P}.{p}]((x, y), (y, x))"
        for p in ("add_p", "sub_p", "mul_p", "div_p", "max_p", "min_p", "atan2_p")
    ),
    f"{AD}.get_primitive_transpose({P}.neg_p)(x, {AD}.UndefinedPrimal(jax.typeof(x)))",
    f"{AD}.get_primitive_transpose({P}.sin_p)",
    # vectorisation
    *(
        f"{BATCHING}.broadcast({v}, {size}, {axis}, None)"
        for v in ("x", "m", "i", "s")
        for size, axis in ((2, 0), (0, 0))
    ),
    f"{BATCHING}.broadcast(m, 2, 1, None)",
    f"{BATCHING}.broadcast(m, 4, 2, None)",
    *(f"{BATCHING}.bdim_at_front(m, {d}, {size}, None)" for d, size in ((0, 2), (1, 3), (None, 4))),
    # types and flattening
    *(f"({CORE}.mapped_aval({size}, {axis}, jax.typeof(m)).shape)" for size, axis in ((2, 0), (3, 1), (7, None))),
    *(
        f"({CORE}.unmapped_aval({size}, {axis}, jax.typeof(m)).shape)"
        for size, axis in ((4, 0), (4, 1), (4, 2), (4, None))
    ),
    *(
        f"jax.typeof(m).{call}.shape"
        for call in (
            "inc_rank(4, 0)",
            "inc_rank(4, 1)",
            "inc_rank(4, None)",
            "dec_rank(2, 0)",
            "dec_rank(3, 1)",
            "dec_rank(9, None)",
        )
    ),
    *(
        f"jax.typeof({v}).{call}"
        for v in ("x", "2.0")
        for call in (
            "normalize().weak_type",
            "strip_weak_type().weak_type",
            "update_weak_type(True).weak_type",
            "is_high",
            "has_qdd",
            "leading_axis_spec()",
        )
    ),
    *(
        f"str({CORE}.primal_dtype_to_tangent_dtype(np.dtype('{d}')))"
        for d in ("float32", "int32", "bool", "complex64", "float16")
    ),
    *(
        f"{CORE}.valid_jaxtype({v})"
        for v in ("x", "2", "'a'", "None", "[1]", "np.float32(1)", "np.array(['a'])", "True", "1j", "object()")
    ),
    *(
        f"{CORE}.concrete_or_error({f}, {v})"
        for f, v in (("int", "3.0"), ("None", "x"), ("float", "s"), ("bool", "True"), ("int", "x"))
    ),
    *(
        f"jax.core.{f}({a}, {b})"
        for f in ("max_dim", "min_dim")
        for a, b in ((2, 3), (3, 2), (0, 0), (2, "'a'"), (2, 2.5))
    ),
    f"{CORE}.nonempty_axis_env_DO_NOT_USE()",
    "jax.vmap(lambda t: t * jax.extend.core.nonempty_axis_env_DO_NOT_USE(), axis_name='i')(x)",
    f"len(list({CORE}.subjaxprs(jax.make_jaxpr(lambda x: jax.jit(jnp.sin)(x))(x).jaxpr)))",
    "[e.primitive.name for e in jax.make_jaxpr(lambda x: lax.sin(lax.exp(x)))(x).eqns] == ['exp', 'sin']",
    f"isinstance({P}.sin_p, {CORE}.Primitive), {P}.sin_p.multiple_results, {P}.sin_p.ref_allocating",
    f"[a.shape for a in {P}.sin_p.abstract_eval(jax.typeof(x), accuracy=None)[:1]]",
    f"{P}.add_p.bind(x, y)",
    f"{P}.neg_p.bind(i)",
    f"{P}.sin_p.impl(x, accuracy=None)",
    f"{P}.add_p.bind_with_trace({CORE}.find_top_trace([]), (x, y), (jax.typeof(x), jax.typeof(y)), {{}})",
    f"{API}.donation_vector((1,), (), jax.tree.structure(((0, (0, 0)), {{'a': 0}})))",
    f"{API}.rebase_donate_argnums((1, 3), (0, 2))",
    f"{API}.safe_map(max, [1, 5], [2, 3])",
    f"{API}.safe_map(max, [1, 5], [2])",
    f"{API}.flatten_axes('in_axes', jax.tree.structure((0, {{'a': 0, 'b': 0}})), (0, None))",
    f"{API}.flatten_axes('in_axes', jax.tree.structure((0, 0)), (0, 1, 2))",
    f"{API}.shaped_abstractify(x).shape",
    f"{API}.shaped_abstractify('a')",
    # generators
    f"{RANDOM}.threefry_2x32(k, n)",
    f"{RANDOM}.threefry_2x32(k, nn2)",
    f"{RANDOM}.threefry_2x32(k, n[:0])",
    f"{RANDOM}.threefry_2x32(k, n[0])",
    f"{RANDOM}.threefry_2x32((k[0], k[1]), n)",
    f"{RANDOM}.threefry_2x32(k, i)",
    f"{RANDOM}.threefry_2x32(x, n)",
    f"{RANDOM}.threefry_2x32(n, n)",
    f"jax.vmap({RANDOM}.threefry_2x32, (None, 0))(k, nn2)",
    f"jax.vmap({RANDOM}.threefry_2x32, (1, None))(nn2, n)",
    f"{RANDOM}.threefry2x32_p.bind(k[0], k[1], n, n)",
    f"{RANDOM}.threefry2x32_p.bind(i, i, i, i)",
    f"jax.random.key_data({RANDOM}.seed_with_impl({RANDOM}.threefry_prng_impl, 7))",
    f"jax.random.key_data({RANDOM}.random_seed(jnp.arange(3), {RANDOM}.rbg_prng_impl))",
    # the platform
    "jax.extend.backend.get_backend().platform",
    "jax.extend.backend.get_backend('zz')",
    "list(jax.extend.backend.backends())",
    "jax.extend.backend.get_default_device() == jax.devices()[0]",
    "jax.extend.backend.backend_xla_version()",
]
# What asks for values, or returns what is no array, is not compiled.
COMPILED = "eval_jaxpr jaxpr_as_fun threefry primitive_ broadcast bind add_tangents zeros".split()
JIT = [case for case in CASES if any(word in case for word in COMPILED)]
EXPLAINED = [
    (
        r"lambda x: 3.0",
        r"weak \[3.\]",
        "JAX evaluates a program that is a constant to a Python number, catena to an array",
    ),
    (
        r"dce_jaxpr.*lax.cond",
        r"bool\[\] \[ True\]",
        "JAX sees while it traces that both branches return y, catena when it compiles",
    ),
]
