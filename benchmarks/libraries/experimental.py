# ruff: noqa: E501  (tables of calls, one after the other)
"""`experimental.rnn`, `nn.initializers`, trees as vectors, meshes. See `differential_libraries.py` for what a table is."""

import itertools

import numpy as np

IMPORTS = ["experimental.rnn", "flatten_util", "experimental.mesh_utils", "nn.initializers"]
OPERANDS = {
    "x": lambda rng: rng.normal(size=(2, 5, 3)).astype("f"),
    "h0": lambda rng: rng.normal(size=(4, 2, 4)).astype("f"),
    "c0": lambda rng: rng.normal(size=(4, 2, 4)).astype("f"),
    "w": lambda rng: rng.normal(size=1000).astype("f"),
    "n": lambda rng: np.array([5, 3], "i"),
    "zero": lambda rng: np.array([0, 9], "i"),
    "v": lambda rng: rng.normal(size=4).astype("f"),
    "h": lambda rng: rng.normal(size=3).astype("e"),
    "i": lambda rng: rng.integers(0, 9, 3).astype("i"),
    "z": lambda rng: (rng.normal(size=2) + 1j * rng.normal(size=2)).astype("F"),
}
RNN, FLAT, INIT, MESH = (
    "jax.experimental.rnn",
    "jax.flatten_util.ravel_pytree",
    "nn.initializers",
    "jax.experimental.mesh_utils",
)
SIZES = [(layers, both) for layers in (1, 2) for both in (False, True)]


def lstm(layers: int, both: bool, x: str = "x", n: str = "n") -> str:
    count = layers * (2 if both else 1)
    parts = f"*{RNN}.unpack_lstm_weights(w, 3, 4, {layers}, {both})"
    return f"{RNN}.lstm_ref({x}, h0[:{count}], c0[:{count}], {parts}, {n}, 3, 4, {layers}, 0.0, {both})"


TREES = (
    *("v", "{'a': v, 'b': h}", "(v, i)", "[v, 2.0, 3]", "(h, h)", "(i, True)", "()", "None", "(z, v)", "1.0", "'a'", "(v, 'a')"),
    *("(i, i.astype('int8'))", "{'b': v, 'a': x}", "(v > 0, v > 1)", "(h, i)", "(v > 0, h)"),
)  # fmt: skip
SCALED = "glorot_normal glorot_uniform he_normal he_uniform kaiming_normal kaiming_uniform lecun_normal lecun_uniform xavier_normal xavier_uniform".split()
SHAPES = ("(4, 5)", "(2, 3, 4, 5)", "(4,)", "()", "(0, 5)", "(4, 0)", "[4, 5]")
KEY = "jax.random.key(0)"
CASES = [
    *((lstm(*size, n=n), 1e-4) for size in SIZES for n in ("n", "zero")),
    *(f"jax.vmap(lambda x: {lstm(1, True)})(x[None])" for _ in "1"),
    lstm(1, False, "x[..., :2]"),
    *(f"{RNN}.{f}({a}3, 4, {layers}, {both})" for layers, both in SIZES for f, a in (("get_num_params_in_lstm", ""), ("init_lstm_weight", f"{KEY}, "), ("unpack_lstm_weights", "w, "))),
    *(f"{RNN}.swap_lstm_gates(w[:{n}], 3, 4, {layers}, {both})" for n, (layers, both) in zip((144, 288, 304, 736), SIZES)),
    *(f"{FLAT}({tree}){part}" for tree in TREES for part in ("[0]",)),
    *(f"(lambda flat, back: back({new}))(*{FLAT}({tree}))" for tree in TREES for new in ("flat", "2 * flat", "flat[:1]", "flat.astype('float16')", "flat[None]", "flat.astype('int32')")),
    *(f"jax.grad(lambda flat: {FLAT}((v, x))[1](flat)[0].sum() * 2)({FLAT}((v, x))[0])" for _ in "1"),
    *(f"{INIT}.{f}()({KEY}, {shape})" for f in SCALED for shape in SHAPES),
    *(f"{INIT}.{f}({axes})({KEY}, (2, 3, 4))" for f in ("he_normal", "glorot_uniform") for axes in ("0, 1", "-2, 0", "(0, 1), 2", "5, 0", "batch_axis=0", "batch_axis=(0,)", "in_axis=(), out_axis=0", "0, 0")),
    *(f"{INIT}.{f}({KEY}, (2, 3), {d})" for f in ("he_normal()", "lecun_uniform()", "zeros", "ones", "constant(2)", "normal()", "uniform()", "truncated_normal()") for d in ("'float16'", "'bfloat16'", "'float64'", "'complex64'", "'int32'", "bool", "None", "'a'")),
    *(f"{INIT}.{f}({KEY}, (3, 4))" for f in ("normal(2)", "normal(dtype='float16')", "uniform(3.0)", "truncated_normal(2.0, lower=-1.0, upper=0.5)", "truncated_normal(1.0, 'float16')", "constant(v)", "constant(v[:3])", "constant('a')", "constant(1j)", "constant(2.5, 'int32')", "zeros", "ones")),
    *(f"{INIT}.{f}({KEY}, {shape})" for f in ("orthogonal()", "orthogonal(2.0)", "orthogonal(column_axis=0)", "delta_orthogonal()", "delta_orthogonal(2.0)") for shape in ("(3, 3)", "(3, 5)", "(5, 3)", "(2, 3, 4)", "(3, 4, 4)", "(3, 3, 2, 4)", "(3, 3, 4, 2)", "(4,)", "(2, 0)")),
    *(f"{INIT}.variance_scaling({scale}, {mode!r}, {kind!r}{more})({KEY}, (3, 4, 5))" for scale, mode, kind, more in itertools.chain(itertools.product((1.0, 2, 0), ("fan_in", "fan_out", "fan_avg", "fan_geo_avg", "fan"), ("normal", "truncated_normal", "uniform", "other"), ("",)), [(1.0, "fan_in", "normal", ", dtype='complex64'"), (1.0, "fan_in", "truncated_normal", ", dtype='complex64'"), (1.0, "fan_in", "uniform", ", dtype='complex64'"), (-1.0, "fan_in", "normal", "")])),
    *(f"{MESH}.create_device_mesh({a}).shape" for a in ("(1,)", "(1, 1)", "()", "(2,)", "(1, 1), jax.devices()", "[1]", "1", "(1,), []")),
    *(f"{MESH}.create_hybrid_device_mesh({a}).shape" for a in ("(1,), (1,)", "(1, 1), (1, 1)", "(1,), (1, 1)", "(1,), (2,)")),
]  # fmt: skip
JIT = [
    case[0] if isinstance(case, tuple) else case
    for case in CASES
    if "initializers" not in case and "init_lstm" not in case
]
GRADIENTS = [(f"jnp.sin({lstm(*size, n=n)}[0])", 1e-3) for size in SIZES for n in ("n", "zero")] + [
    (f"jnp.sin({lstm(2, True)}[{k}])", 1e-3) for k in (1, 2)
]
EXPLAINED = [
    (r"initializers\.(glorot|he|kaiming|lecun|xavier)_\w+\(\).*, \((0, 5|4, 0)\)\)", r"returns float(32|64)\[[04], [05]\] \[\] \| ZeroDivisionError", "an array without elements needs no scale"),
    (r"initializers\..*\(5, 0\)\(", r"^ValueError.* \| IndexError", "an axis that is not there is a ValueError"),
    (r"back\(flat\[None\]\)", r"^ValueError: unravel function given array of shape", "a vector of another shape is refused for every tree"),
    (r"lstm_ref\(.*, zero, ", r"returns", "after no step the state is the first one; JAX takes the last of the padding"),
]  # fmt: skip
