"""`jax.nn`: activations, softmax, attention. See `differential_libraries.py` for what a table is."""

import numpy as np

ONE = (
    "celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp log_sigmoid mish relu "
    "relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus swish tanh"
).split()
DTYPES = "float16 bfloat16 int8 uint8 int32 bool complex64".split()

OPERANDS = {
    "x": lambda rng: (3 * rng.normal(size=(3, 4))).astype(np.float32),
    "y": lambda rng: rng.normal(size=(3, 4)).astype(np.float32),
    "z": lambda rng: (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))).astype(np.complex64),
    "few": lambda rng: np.array([0, 1, 2, 3, 5, 40]),
    "edges": lambda rng: np.array([-np.inf, -1e10, -100, -6, -3, -1, -0.0, 0, 1, 3, 6, 88, 1e10, np.inf], np.float32),
    "inner": lambda rng: np.array([-9.3, -3.2, -2.1, -0.8, -0.1, 0.2, 0.9, 1.7, 3.4, 7.2], np.float32),
    "above": lambda rng: np.array([1e-6, 0.1, 0.6931, 0.7, 1.5, 9, 40], np.float32),
    "nan": lambda rng: np.array([np.nan, 1], np.float32),
    "empty": lambda rng: np.zeros((0, 4), np.float32),
    "mask": lambda rng: rng.random((3, 4)) < 0.6,
    "nowhere": lambda rng: np.zeros((3, 4), bool),
    "column": lambda rng: np.array([[True], [False], [True]]),
    "row": lambda rng: np.array([True, True, False, True]),
    "i": lambda rng: np.array([[0, 2, 1], [3, -1, 7]], np.int32),
    "q": lambda rng: rng.normal(size=(2, 5, 4, 8)).astype(np.float32),
    "k": lambda rng: rng.normal(size=(2, 6, 2, 8)).astype(np.float32),
    "v": lambda rng: rng.normal(size=(2, 6, 2, 8)).astype(np.float32),
    "b4": lambda rng: rng.normal(size=(2, 4, 5, 6)).astype(np.float32),
    "b3": lambda rng: rng.normal(size=(4, 1, 6)).astype(np.float32),
    "m4": lambda rng: rng.random((2, 4, 5, 6)) < 0.6,
    "m2": lambda rng: rng.random((5, 6)) < 0.3,
    "ql": lambda rng: np.array([3, 0], np.int32),
    "kl": lambda rng: np.array([6, 2], np.int32),
    "f8": lambda rng: rng.integers(-4, 5, (2, 4, 64)).astype(np.float32),
}

AXES = ("-1", "0", "(0, 1)", "None", "()", "2", "-3", "(0, 0)", "1.5", "'a'")
MASKS = ("mask", "nowhere", "column", "row", "mask[0, 0]", "True", "i", "x", "[True]", "mask[:2]")
OPTIONS = (
    "", "is_causal=True", "is_causal=1", "scale=0.3", "scale=2", "scale=0.0", "bias=b4", "bias=b3", "bias=1.5",
    "bias=b4[:1]", "bias=b4.astype('int32')", "bias=b4.astype('float16')", "mask=m4", "mask=m2", "mask=m2[:, :1]",
    "mask=True", "mask=m4, bias=b3, is_causal=True", "query_seq_lengths=ql", "key_value_seq_lengths=kl",
    "query_seq_lengths=ql, key_value_seq_lengths=kl, is_causal=True", "local_window_size=1", "local_window_size=(2, 0)",
    "local_window_size=(0, 2), is_causal=True", "local_window_size=[1, 1]", "local_window_size=(3, -9)",
    "implementation='xla'", "return_residual=True", "return_residual=True, mask=m2, query_seq_lengths=ql",
    "return_residual=True, is_causal=True, scale=0.2",
)  # fmt: skip
REFUSED = (
    "mask=b4", "mask=m4[:, :3]", "bias=b4[:, :3]", "bias=b4[:, :, :3]", "bias=b4[None]", "query_seq_lengths=ql[:1]",
    "query_seq_lengths=1", "query_seq_lengths=b4[0, 0, 0, :2]", "key_value_seq_lengths=kl.astype('int8')",
    "local_window_size=(1,)", "local_window_size=(1, 2, 3)", "local_window_size=1.5", "local_window_size='ab'",
    "implementation='cudnn'", "implementation='flash'", "implementation=1", "scale='a'",
)  # fmt: skip
OPERANDS_OF_ATTENTION = (
    "q[0], k[0], v[0]", "q[:, :0], k, v", "q, k[:, :0], v[:, :0]", "q[:0], k[:0], v[:0]", "q[..., :0], k[..., :0], "
    "v[..., :0]", "q, k[:, :, :1], v[:, :, :1]", "q[:, :, :2], k, v", "q[0, 0], k[0, 0], v[0, 0]", "1.0, 1.0, 1.0",
    "q[:, :, :3], k, v", "q, k, v[..., :3]", "q, k, v[:, :5]", "q[..., :4], k, v", "q[0], k, v",
    "q[None], k[None], v[None]",
    "q.astype('float16'), k, v", "None, k, v", "q.astype('int32'), k.astype('int32'), v.astype('int32')",
    "q.astype('float16'), k.astype('float16'), v.astype('float16')",
    "q.astype('bfloat16'), k.astype('bfloat16'), v.astype('bfloat16')", "q > 0, k > 0, v > 0", "q + 1j, k + 1j, v + 1j",
)  # fmt: skip
CALLS_OF_ATTENTION = [
    *(f"nn.dot_product_attention(q, k, v, {options})" for options in OPTIONS + REFUSED),
    *(f"nn.dot_product_attention({operands})" for operands in OPERANDS_OF_ATTENTION),
]
SUMS = ("nn.logsumexp", "nn.softmax", "nn.log_softmax", "nn.logmeanexp", "nn.standardize")

CASES = [
    *(f"nn.{f}({x})" for f in ONE for x in ("x", "edges", "inner", "above", "nan", "empty", "1", "1.5", "True", "2j")),
    *(f"nn.{f}(few.astype('{d}'))" for f in ONE for d in DTYPES),
    *(f"nn.{f}({x})" for f in ONE for x in ("[1.0]", "None", "'a'")),
    *(f"jax.vmap(nn.{f})(x)" for f in ONE),
    *(
        (f"nn.{f}({x}, {a})", 2e-3 if "float16" in x else None)  # rounded to float16 on the way to float32
        for f in ("celu", "elu", "leaky_relu", "squareplus")
        for x in ("x", "i", "x.astype('float16')", "1.5")
        for a in ("2", "0.5", "0.0", "y", "y[0]", "y[:2]", "np.float16(2)", "np.float32(2)", "[1.0]")
    ),
    *(
        f"nn.gelu({x}, {a})"
        for x in ("x", "edges", "i", "1.5", "z")
        for a in ("True", "False", "None", "approximate=0")
    ),
    *(f"nn.gelu(x.astype('{d}'), False)" for d in ("float16", "bfloat16", "int8")),
    *(f"nn.glu({x}, {a})" for x in ("x", "z", "i") for a in ("-1", "axis=1", "0", "2", "-3", "None", "(0, 1)", "1.5")),
    *(f"nn.glu({x})" for x in ("1.0", "empty", "x[:, :0]", "x.astype('bfloat16')", "[1.0, 2.0]")),
    *(f"{f}(x, axis={a})" for f in SUMS for a in AXES),
    *(f"{f}(x, axis=-1, where={m})" for f in SUMS for m in MASKS),
    *(f"{f}({x}, axis=0)" for f in SUMS for x in ("edges", "nan", "empty", "x[:, :0]", "z", "i", "mask")),
    *(f"{f}(x.astype('{d}'), axis=0)" for f in SUMS for d in DTYPES),
    *(f"{f}({x}, axis=None)" for f in SUMS for x in ("1", "1.5", "True", "[1.0]", "None", "'a'")),
    *(f"{f}(x, keepdims=True, axis={a})" for f in ("nn.logsumexp", "nn.logmeanexp") for a in AXES[:5]),
    *(
        f"nn.logsumexp({x}, {a}, b={b}, return_sign={s})"
        for x in ("x", "i", "edges[:4]")
        for a in ("-1", "None")
        for b in ("y", "y[0]", "2", "-1.5", "0.0", "z", "mask", "y.astype('float16')", "[1.0]", "y[:2, :2]")
        for s in (True, False)
    ),
    *(f"nn.logsumexp({x}, 0, return_sign=True)" for x in ("x", "z", "i", "edges", "empty", "nan")),
    *(f"nn.logsumexp(x, 0, b=y, where={m}, return_sign=True)" for m in MASKS[:6]),
    "jax.vmap(lambda x: nn.softmax(x, 'a'), axis_name='a')(x)",
    "jax.vmap(lambda x: nn.log_softmax(x, 'a'), axis_name='a')(x)",
    "jax.vmap(lambda x: nn.logsumexp(x, 'a'), axis_name='a')(x)",
    "jax.vmap(lambda x: nn.standardize(x, 'a'), axis_name='a')(x)",
    *(
        (f"nn.standardize({x}, {options})", 3e-2 if "bfloat16" in x else None)  # JAX's jit leaves out roundings
        for x in ("x", "i", "x.astype('bfloat16')")
        for options in (
            "mean=1.0",
            "mean=1",
            "mean=y",
            "mean=y[:, :1]",
            "variance=2.0",
            "variance=y**2",
            "mean=0.5, variance=2.0",
            "epsilon=1.0",
            "epsilon=0",
            "epsilon=y**2",
            "algorithm='stable'",
            "algorithm='stable', mean=1.0",
            "algorithm='slow'",
            "algorithm=None",
            "mean=y[:2]",
            "mean=[1.0]",
            "axis=0, where=mask, algorithm='stable'",
            "where=mask, mean=1.0",
        )
    ),
    *(f"nn.one_hot({x}, 4)" for x in ("i", "1", "1.0", "x", "z", "mask", "[0, 2]", "(0, 2)", "None", "'a'", "i[:0]")),
    *(f"nn.one_hot(i, {n})" for n in ("0", "-1", "3.0", "np.int64(3)", "np.float32(3)", "'a'", "None", "True", "300")),
    *(f"nn.one_hot(i, 4, dtype={d})" for d in ("'int32'", "bool", "'bfloat16'", "complex", "int", "'a'", "float")),
    *(f"nn.one_hot(i, 4, axis={a})" for a in ("0", "1", "2", "-3", "3", "-4", "None", "'a'", "1.5")),
    *(f"nn.one_hot(i.astype('{d}'), 300)" for d in ("int8", "uint8", "int16", "uint32")),
    *(f"jax.vmap(lambda i: nn.one_hot(i, {n}, axis='a'), axis_name='a')(i[0])" for n in (3, 4)),
    *((call, 2e-2) if "float16" in call else call for call in CALLS_OF_ATTENTION),
    "jax.vmap(nn.dot_product_attention)(q[None], k[None], v[None])",
    "jax.vmap(lambda q: nn.dot_product_attention(q, k[0], v[0], is_causal=True))(q)",
    "jax.jvp(lambda q: nn.dot_product_attention(q, k, v, bias=b4), (q,), (q,))",
    *(f"nn.get_scaled_dot_general_config({m}).block_size" for m in ("'mxfp8'", "'nvfp4'", "'x'", "None")),
    "nn.scaled_dot_general(f8[0], f8[1], (((1,), (1,)), ((), ())))",
    "nn.scaled_dot_general(f8, f8, (((2,), (2,)), ((0,), (0,))), 'bfloat16')",
    "nn.scaled_dot_general(f8, f8, (((2,), (1,)), ((0,), (0,))))",
    "nn.scaled_matmul(f8[0], f8, f8, f8)",
    "nn.scaled_matmul(f8, f8[:1], f8, f8)",
    "nn.scaled_matmul(f8, f8, f8[..., :2], f8[..., :1])",
    "nn.scaled_matmul(f8, f8, f8, f8, None)",
    "lax.scaled_dot(f8[0], f8[1].T)",
    "lax.scaled_dot(f8[0], f8[1].T, lhs_scale=f8[0, :, :2], preferred_element_type='float32')",
    "lax.scaled_dot(f8[0], f8[1].T, lhs_scale=f8[0, :, :3])",
    "lax.scaled_dot(f8[0], f8[1].T, lhs_scale=f8[0, :2, :2])",
    "lax.scaled_dot(f8[0], f8[1].T, lhs_scale=f8)",
]

GRADIENTS = [
    *(f"nn.{f}({x})" for f in ONE for x in ("inner", "above", "edges", "z")),
    *(f"nn.{f}(inner, y[0, 0] + 2)" for f in ("celu", "elu", "leaky_relu", "squareplus")),
    *(f"nn.gelu({x}, False)" for x in ("inner", "edges")),
    "nn.glu(x)",
    *(f"jnp.sin({f}(x, axis={a}))" for f in SUMS for a in AXES[:4]),
    *(f"jnp.sin({f}(x, axis=0, where={m}))" for f in SUMS[1:] for m in MASKS[:4]),
    *(f"jnp.sin(nn.logsumexp(x, 0, b={b}))" for b in ("y**2", "z", "2")),
    *(f"nn.logsumexp(x, 0, b=y, return_sign=True)[{n}]" for n in (0, 1)),
    *(f"nn.logsumexp({x}, 0)" for x in ("edges[:7]", "z", "empty")),
    "jnp.sin(nn.standardize(x, mean=y[:, :1], variance=y[:, 1:2]**2))",
    *(f"jnp.sin(nn.dot_product_attention(q, k, v, {options}))" for options in OPTIONS if "residual" not in options),
]

EXPLAINED = [
    (
        r"softmax\(x.astype\('uint8'\), axis=0\)$",
        r"\| returns float32\[3, 4\] \[(-inf|nan)",
        "JAX subtracts in the narrow integers",
    ),
    (
        r"grad edges nn.sparse_plus\(edges\)",
        r"\[0\. .*\| returns float32\[14\] \[nan ",
        "far out to the left the function is 0, and so is its slope, at -infinity too",
    ),
    (
        r"grad x jnp.sin\(nn.standardize\(x, axis=0, where=mask\)\)",
        r"(?s)^returns float32\[3, 4\] \[ 1\.9497841e\+02.*e\+02 .*\| ",
        "a column of one number, of variance 0: rounding is 300 times as large in slopes, ours are 1e-4 from those in "
        "double precision; JAX without its optimisations, which this comparison turns off, has -352 for -365",
    ),
    (
        r"standardize\(x(.astype\('bfloat16'\))?, mean=y\)$",
        r"(?s)^returns float32\[3, 4\] .*\| returns float32\[3, 4\] ",
        "the variance is that of distances from the mean that is given; JAX's that of the squares less that mean's",
    ),
    (r"log1mexp\(few.astype\('complex64'\)", "", "a branch cut: the sign of an imaginary part that is zero"),
    (r"jit nn.dot_product_attention\(q.astype\('float16'\)", "precision", "JAX has no such product on a CPU"),
    (r"one_hot\(i.astype\('u?int(8|32)'\), 300\)", "", "JAX numbers the classes in the narrow integers"),
    (r"dot_product_attention\(q \+ 1j", "", "JAX drops the imaginary part of scores"),
    (r"mask=m4\[:, :3\]|bias=b4\[:, :3\]", "AssertionError", "JAX asserts, without words"),
    (r"scale='a'", "TypeError", "not a number: TypeError, as elsewhere"),
]

SLOPES_EXPLAINED = [
    (r"^x nn.celu\(x, 0\.0\)", "a quotient by zero"),
    (r"return_sign", "signs have none, those of complex numbers neither, as in JAX"),
    (r"^f8 ", "numbers of 8 bits do not see small steps"),
]
