"""Rules that write StableHLO, and what they are written with: types, attributes, functions, programs (recorded in JAX)."""

import itertools

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.extend import mlir as extend_mlir
from catena.extend.core import Primitive
from catena.extend.mlir.dialects import func, stablehlo
from catena.interpreters import mlir
from catena.interpreters.mlir import ir

X = np.array([[1, -2, 3], [0.5, 5, -6]], np.float32)
Y = np.array([[1, 2, -3], [0.25, 7, 6]], np.float32)


def compiled(rule, *args, results=None):
    p = Primitive("ruled")
    p.multiple_results = True
    p.def_abstract_eval(lambda *avals: [avals[0]] if results is None else results)
    mlir.register_lowering(p, rule)
    return jax.jit(p.bind)(*args)


def struct(shape, dtype):
    return jax.core.ShapedArray(shape, np.dtype(dtype))


# ---- types and attributes

TYPES = {  # as JAX writes them
    "float32": "f32", "bfloat16": "bf16", "float16": "f16", "int8": "i8", "uint8": "ui8", "int4": "i4", "uint2": "ui2",
    "bool": "i1", "complex64": "complex<f32>", "complex128": "complex<f64>", "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e8m0fnu": "f8E8M0FNU", "float4_e2m1fn": "f4E2M1FN",
}  # fmt: skip
ATTRIBUTES = [  # values, and what JAX writes for them
    (3, "3 : i64"),
    (True, "true"),
    (np.True_, "true"),
    (2.5, "2.500000e+00 : f64"),
    (1 / 3, "0.33333333333333331 : f64"),
    (np.float32(1 / 3), "0.333333343 : f32"),
    (1234567.0, "0x4132D68700000000 : f64"),
    (np.float32(np.inf), "0x7F800000 : f32"),
    (np.int8(3), "3 : i8"),
    ('a"b\n', '"a\\22b\\0A"'),
    ((1, "a"), '[1, "a"]'),
    ({"b": True, "a": 1}, "{a = 1 : i64, b = true}"),
    (np.array([1, 2]), "dense<[1, 2]> : tensor<2xi64>"),
    (np.ones((3, 3), bool), "dense<true> : tensor<3x3xi1>"),
    (np.zeros((0, 2), np.float32), "dense<> : tensor<0x2xf32>"),
    (np.array([[1.5, 2]], np.float16), "dense<[[1.500000e+00, 2.000000e+00]]> : tensor<1x2xf16>"),
]


def test_types():
    ctx = mlir.ModuleContext()
    for dtype, text in TYPES.items():
        kind = mlir.dtype_to_ir_type(np.dtype(dtype))
        assert (str(kind), kind.dtype) == (text, np.dtype(dtype))
    tensor = mlir.aval_to_ir_type(ctx, struct((2, 3), "float32"))
    assert (tensor, tensor.rank, tensor.shape) == (ir.RankedTensorType.get((2, 3), ir.F32Type.get()), 2, [2, 3])
    assert str(mlir.aval_to_ir_type(ctx, jax.typeof(jax.random.key(0)))) == "tensor<2xui32>"
    assert (
        str(mlir.aval_to_ir_type(ctx, jax.typeof(lax.create_token()))) == "!stablehlo.token" == str(mlir.token_type())
    )
    assert str(ir.FunctionType.get([tensor], [tensor] * 2)) == f"({tensor}) -> ({tensor}, {tensor})"
    with pytest.raises(ValueError, match=r"RankedTensorType\(tensor<2x3xf32>\) is no IntegerType"):
        ir.IntegerType(tensor)
    with pytest.raises(TypeError, match="no type of elements for dtype datetime64"):
        mlir.dtype_to_ir_type(np.dtype("datetime64[s]"))
    with pytest.raises(TypeError, match="ir_type_handlers has none"):
        mlir.aval_to_ir_type(ctx, 3)


def test_types_of_ones_own(monkeypatch):
    class Pair:
        pass

    monkeypatch.setitem(mlir.ir_type_handlers, Pair, lambda aval: (ir.F32Type.get(), ir.F64Type.get()))
    ctx = mlir.ModuleContext()
    assert mlir.aval_to_ir_types(ctx, Pair()) == (ir.F32Type.get(), ir.F64Type.get())
    with pytest.raises(ValueError, match="are held as 2"):
        mlir.aval_to_ir_type(ctx, Pair())
    grouped = [ir.F32Type.get(), (ir.F32Type.get(),) * 2]
    with pytest.deprecated_call():
        assert mlir.flatten_ir_types(grouped) == [ir.F32Type.get()] * 3
    with pytest.deprecated_call():
        assert mlir.unflatten_ir_values_like_types([1, 2, 3], grouped) == [1, (2, 3)]
    with pytest.deprecated_call(), pytest.raises(ValueError, match="leaves"):
        mlir.unflatten_ir_values_like_types([1, 2], grouped)


def test_attributes():
    for value, text in ATTRIBUTES:
        assert str(mlir.ir_attribute(value)) == text
    assert str(mlir.ir_attribute(np.arange(101, dtype=np.int8))) == (
        f'dense<"0x{bytes(range(101)).hex().upper()}"> : tensor<101xi8>'
    )
    assert (str(mlir.i32_attr(-3)), str(mlir.i64_attr(3)), int(mlir.i32_attr(7))) == ("-3 : i32", "3 : i64", 7)
    assert (str(mlir.dense_int_array([])), list(mlir.dense_int_array([1, 2]))) == ("array<i64>", [1, 2])
    np.testing.assert_array_equal(np.asarray(mlir.dense_int_elements([[1, 2], [3, 4]])), [[1, 2], [3, 4]])
    assert mlir.dense_int_elements([1]) == mlir.dense_int_elements([1]) != mlir.dense_int_elements([2])
    for wrong in (None, 1 + 2j, object()):
        with pytest.raises(TypeError, match="no attribute that stands for"):
            mlir.ir_attribute(wrong)


# ---- rules that write StableHLO


def test_types_of_values_in_rules():
    def rule(ctx, x):
        kind = ir.RankedTensorType(x.type)
        assert (kind.shape, kind.element_type, str(mlir.shape_tensor(ctx.module_context, (2, x.shape[1])).type)) == (
            [2, 3], ir.F32Type.get(), "tensor<2xi32>",
        )  # fmt: skip
        return [stablehlo.add(x, x)]

    np.testing.assert_array_equal(compiled(rule, X)[0], 2 * X)
    with pytest.raises(AttributeError, match="no attribute 'type'"):
        jax.jit(lambda x: x.type)(X)  # only where a rule asks


UNARY = {  # and what NumPy calls them
    "abs": np.abs, "cbrt": np.cbrt, "ceil": np.ceil, "cosine": np.cos, "exponential": np.exp, "floor": np.floor,
    "exponential_minus_one": np.expm1, "negate": np.negative, "round_nearest_even": np.rint, "sign": np.sign,
    "sine": np.sin, "tan": np.tan, "tanh": np.tanh, "is_finite": np.isfinite, "real": np.real, "imag": np.imag,
    "log": np.log, "log_plus_one": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "logistic": lambda x: 1 / (1 + np.exp(-x)), "round_nearest_afz": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
}  # fmt: skip
BINARY = {
    "add": np.add, "atan2": np.arctan2, "divide": np.divide, "maximum": np.maximum, "minimum": np.minimum,
    "multiply": np.multiply, "power": np.power, "remainder": np.fmod, "subtract": np.subtract,
    "complex": lambda x, y: x + 1j * y,
}  # fmt: skip
INTEGER = {
    "and_": np.bitwise_and, "or_": np.bitwise_or, "xor": np.bitwise_xor, "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
    "shift_right_logical": lambda x, y: (x.view(np.uint32) >> y.view(np.uint32)).view(np.int32),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_operations_element_by_element():
    x, y = np.array([0.3, 0.5, 1.5, 2.5], np.float32), np.array([0.7, 1.5, -1, 2], np.float32)
    i, j = np.array([1, -5, 77, 1000], np.int32), np.array([2, 3, 1, 7], np.int32)
    cases = [(f, [x]) for f in UNARY.items()] + [(f, [x, y]) for f in BINARY.items()]
    cases += [(f, [i, j]) for f in INTEGER.items()] + [(("not_", np.invert), [i])]
    cases += [(("popcnt", lambda i: np.array([b.bit_count() for b in i.view(np.uint32).tolist()])), [i])]
    cases += [(("count_leading_zeros", lambda i: np.array([32 - b.bit_length() for b in i.view("u4").tolist()])), [i])]
    operands = [x, y, i, j]
    names = {id(v): k for k, v in enumerate(operands)}
    outs = jax.jit(
        lambda *values: [getattr(stablehlo, name)(*[values[names[id(v)]] for v in args]) for (name, _), args in cases]
    )(*operands)
    for ((name, reference), args), out in zip(cases, outs, strict=True):
        np.testing.assert_allclose(out, reference(*args), rtol=2e-6, atol=1e-7, err_msg=name)


def test_a_rule_in_stablehlo():
    """The results are those of JAX 0.10.2 for the same rule."""
    inner = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(X)

    def rule(ctx, x, y, b):
        kind = ir.RankedTensorType(x.type)
        half = stablehlo.broadcast_in_dim(kind, mlir.ir_constant(np.float32(0.5)), mlir.dense_int_array([]))
        f = mlir.lower_jaxpr_to_fun(ctx.module_context, "f", inner, (), num_const_args=0, in_avals=inner.in_avals)
        first = stablehlo.AddOp(x, stablehlo.multiply(y, half)).result
        less = stablehlo.compare(
            x, y, stablehlo.ComparisonDirectionAttr.get("LT"), compare_type=stablehlo.ComparisonTypeAttr.get("FLOAT")
        )
        second = stablehlo.select(less, x, stablehlo.NegOp(y).result)
        called = func.call(f.type.results, ir.FlatSymbolRefAttr.get(f.name.value), [x])
        columns = stablehlo.iota(ir.RankedTensorType.get([2, 3], mlir.dtype_to_ir_type(np.dtype("int32"))), 1)
        known = stablehlo.constant(ir.DenseElementsAttr.get(np.arange(6, dtype=np.float32).reshape(2, 3)))
        clamped = stablehlo.clamp(half, stablehlo.add(stablehlo.convert(kind, columns), known), x)
        wide = stablehlo.concatenate([x, x], mlir.i64_attr(0))
        low, high = mlir.dense_int_array([0, 1]), mlir.dense_int_array([0, 2])
        padded = stablehlo.pad(wide, mlir.ir_constant(np.float32(7)), low, high, mlir.dense_int_array([0, 0]))
        bits = stablehlo.bitcast_convert(ir.RankedTensorType.get([2, 3], ir.IntegerType.get_signless(32)), x)
        turned = stablehlo.reverse(x, [1])
        part = stablehlo.slice(turned, mlir.dense_int_array([0, 0]), mlir.dense_int_array([2, 3]), [1, 2])
        zero = mlir.ir_constant(np.int32(0))
        moved = stablehlo.dynamic_update_slice(x, stablehlo.dynamic_slice(y, [zero, zero], [1, 3]), [zero, zero])
        flat = stablehlo.reshape(ir.RankedTensorType.get([6], ir.F32Type.get()), moved)
        held = stablehlo.optimization_barrier([stablehlo.select(b, first, second)])
        return [first, second, called, clamped, held, padded, stablehlo.transpose(bits, [1, 0]), part, flat]

    avals = [struct((2, 3), "float32")] * 5
    avals += [struct((4, 6), "float32"), struct((3, 2), "int32"), struct((2, 2), "float32"), struct((6,), "float32")]
    outs = compiled(rule, X, Y, X > 0, results=avals)
    first, second = [[1.5, -1, 1.5], [0.625, 8.5, -3]], [[-1, -2, 3], [-0.25, 5, -6]]
    wide = [7, 1, -2, 3, 7, 7], [7, 0.5, 5, -6, 7, 7]
    bits = [[1065353216, 1056964608], [-1073741824, 1084227584], [1077936128, -1061158912]]
    expected = [
        first, second, 2 * np.sin(X), [[0.5, -2, 3], [0.5, 5, -6]], np.where(X > 0, first, second),
        [*wide, *wide], bits, [[3, 1], [-6, 0.5]], [1, 2, -3, 0.5, 5, -6],
    ]  # fmt: skip
    for out, want in zip(outs, expected, strict=True):
        np.testing.assert_allclose(out, np.asarray(want, out.dtype), rtol=3e-7)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x: stablehlo.add(x, x[0]), r"add takes two values of one type, got float32\[2, 3\] and float32\[3\]"),
        (lambda x: stablehlo.compare(x, x, "ABOVE"), "must be one of .* got 'ABOVE'"),
        (lambda x: stablehlo.compare(x, x, "LT", compare_type="TOTALORDER"), "float32 is compared as FLOAT"),
        (lambda x: stablehlo.convert(ir.RankedTensorType.get([3], ir.F64Type.get()), x), "gives shape"),
        (lambda x: func.CallOp([], "nobody", [x]), "has no function 'nobody'"),
        (lambda x: extend_mlir.lower_with_sharding_in_types(None, x, struct((3,), "float32")), "is none of type"),
    ],
)
def test_operations_that_are_wrong(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong(jnp.asarray(X))


# ---- functions and programs


def lowered(closed, name="jit_f", **said):
    given = {
        "num_const_args": 0, "in_avals": closed.in_avals, "ordered_effects": [], "platforms": ("cpu",), "backend": None,
        "axis_context": mlir.ShardingContext(1), "donated_args": [False] * len(closed.in_avals),
        "lowering_parameters": mlir.LoweringParameters(),
    }  # fmt: skip
    return mlir.lower_jaxpr_to_module(name, closed, **given | said)


CLOSED = jax.make_jaxpr(lambda x, y: (jnp.sin(x) + y, x + Y[0]))(X[0], 2.0)


def test_functions():
    ctx = mlir.ModuleContext()
    said = {"arg_names": ["a", None], "result_names": ["r", "s"], "xla_donated_args": [True, False],
            "replicated_args": [False, True], "input_output_aliases": [1, None],
            "result_memory_kinds": ["device", None], "propagated_out_mem_kinds": [None, "pinned_host"]}  # fmt: skip
    made = [
        mlir.lower_jaxpr_to_fun(ctx, "foo", CLOSED, (), num_const_args=0, in_avals=CLOSED.in_avals, **said)
        for _ in range(2)
    ]
    assert [f.name.value for f in made] == list(ctx.module.functions) == ["foo", "foo_0"] and "foo" in ctx.symbol_table
    assert str(made[0].type) == "(tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)"
    assert str(made[0].arg_attrs) == (
        "[{jax.buffer_donor = true, tf.aliasing_output = 1 : i32}, {mhlo.is_same_data_across_replicas = true}]"
    )
    assert str(made[0].res_attrs) == (
        '[{jax.result_info = "r", mhlo.memory_kind = "device"}, {jax.result_info = "s", mhlo.memory_kind = "pinned_host"}]'
    )
    np.testing.assert_allclose(made[0](X[0], 2.0)[1], X[0] + Y[0])
    assert "jit[" in str(jax.make_jaxpr(lambda x: made[0](x, 2.0))(X[0]))  # a call in programs
    with_constants = mlir.lower_jaxpr_to_fun(
        ctx, "c", CLOSED, (), num_const_args=1, in_avals=[struct((3,), "float32"), *CLOSED.in_avals]
    )
    np.testing.assert_allclose(with_constants(X[1], X[0], 2.0)[1], X[0] + X[1])
    ids = itertools.islice(iter(ctx.new_channel, None), 2)
    assert len(set(ids)) == 2 and not ctx.host_callbacks and ctx.shape_poly_state.dim_vars == ()


def test_tokens_of_functions():
    shown = []
    closed = jax.make_jaxpr(lambda x: jax.experimental.io_callback(shown.append, None, x, ordered=True))(1.0)
    result = lowered(closed, ordered_effects=list(closed.effects))
    token = lax.create_token()
    main = result.module.functions["main"]
    assert str(main.type) == "(!stablehlo.token, tensor<f32>) -> !stablehlo.token"
    assert isinstance(main(token, 3.0)[0], mlir.Token) and shown == [3.0]


def test_shardings_of_functions():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.NamedSharding(mesh, jax.P("i"))
    said = {"in_avals": CLOSED.in_avals, "num_const_args": 0, "arg_shardings": [split, None]}
    inside = mlir.lower_jaxpr_to_fun(mlir.ModuleContext(), "f", CLOSED, (), use_sharding_annotations=False, **said)
    assert "sharding_constraint" in str(inside) and "mhlo.sharding" not in str(inside)
    beside = mlir.lower_jaxpr_to_fun(mlir.ModuleContext(), "f", CLOSED, (), **said)
    assert "mhlo.sharding" in str(beside.arg_attrs) and "sharding_constraint" not in str(beside)
    module = lowered(CLOSED, result_shardings=[split, None]).module
    assert module.main()(X[0], 2.0)[0].sharding == split
    column = jax.experimental.layout.Layout((1, 0))
    turned = lowered(jax.make_jaxpr(lambda x: x + 1)(X), out_layouts=[column]).module
    assert turned.main()(X)[0].format.layout.major_to_minor == (1, 0)
    memory = lowered(CLOSED, arg_shardings=[split.with_memory_kind("device"), None], all_default_mem_kind=False)
    assert 'mhlo.memory_kind = "device"' in str(memory.module)
    with jax.set_mesh(jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))):
        aval = jax.typeof(jax.device_put(jnp.ones(2), jax.P("i")))
        placed = jax.jit(lambda x: extend_mlir.lower_with_sharding_in_types(None, x, aval))(jnp.ones(2))
    assert jax.typeof(placed).sharding.spec == jax.P("i")


def test_programs():
    result = lowered(CLOSED, donated_args=[True, False], arg_names=["a", "b"], result_names=["u", "v"])
    text = mlir.module_to_string(result.module, enable_debug_info=False)
    assert (
        text.splitlines()[0]
        == "module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {"
    )
    assert "%a: tensor<3xf32> {jax.buffer_donor = true}, %b: tensor<f32>) -> (tensor<3xf32> {jax.result_info =" in text
    assert "test_mlir.py" not in text and "test_mlir.py" in mlir.module_to_string(result.module)
    x = jnp.asarray(X[0])
    np.testing.assert_allclose(result.module.main()(x, 2.0)[0], np.sin(X[0]) + 2, rtol=1e-6)
    assert x.is_deleted()  # it was donated
    rules = ((lax.sin_p, mlir.lower_fun(lambda x, **params: 3 * x, multiple_results=False)),)
    tripled = lowered(CLOSED, lowering_parameters=mlir.LoweringParameters(override_lowering_rules=rules))
    np.testing.assert_allclose(tripled.module.main()(X[0], 2.0)[0], 3 * X[0] + 2)


def test_programs_as_bytes():
    module = lowered(CLOSED, donated_args=[True, False], arg_names=["a", "b"]).module
    data = mlir.module_to_bytecode(module)
    for read in (ir.Module.parse(data), extend_mlir.deserialize_portable_artifact(data)):
        assert str(read) == str(module) and isinstance(data, bytes)
        np.testing.assert_array_equal(read.main()(jnp.asarray(X[0]), 2.0)[1], X[0] + Y[0])
    assert extend_mlir.serialize_portable_artifact(module, jax.__version__) == data
    with pytest.raises(ValueError, match="writes for version"):
        extend_mlir.serialize_portable_artifact(module, "1.0.0")
    with pytest.raises(ValueError, match="checksum is wrong"):
        ir.Module.parse(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(NotImplementedError, match="'main' has effects, shardings or layouts"):
        mlir.module_to_bytecode(lowered(CLOSED, out_layouts=[jax.experimental.layout.Layout((0,)), None]).module)


def test_merged_programs():
    module, other = lowered(CLOSED).module, lowered(jax.make_jaxpr(lambda x: -x)(X), "jit_g").module
    names = [mlir.merge_mlir_modules(module, "negated", other) for _ in range(2)]
    assert names == ["negated", "negated_0"] and list(module.functions) == ["main", *names]
    np.testing.assert_array_equal(module.functions["negated"](X)[0], -X)
    assert other.functions["main"].visibility.value == "public" != module.functions["negated"].visibility.value


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"donated_args": [True]}, "xla_donated_args must have an entry for each of 2"),
        ({"arg_names": ["a"]}, "arg_names must have an entry for each of 2"),
        ({"in_avals": CLOSED.in_avals[:1]}, "main takes .* and in_avals is"),
        ({"num_const_args": 2}, "num_const_args must be 0, or 1"),
        ({"num_partitions": 2}, "num_partitions must be 1, got 2"),
        ({"input_output_aliases": [None, 0]}, "result 0 cannot take the memory of f"),
    ],
)
def test_programs_that_do_not_fit(said, message):
    with pytest.raises(ValueError, match=message):
        lowered(CLOSED, **said)


def test_programs_without_main():
    with pytest.raises(ValueError, match="module 'empty' has no function main"):
        ir.Module("empty").main()
    with pytest.raises(ValueError, match="module 'empty' has no function main"):
        mlir.merge_mlir_modules(lowered(CLOSED).module, "f", extend_mlir.ir.Module("empty"))
    with pytest.raises(ValueError, match="dim_vars must be empty"):
        mlir.ShapePolyLoweringState(("n",), None)
    assert mlir.ShapePolyLoweringState((), ("cpu", "tpu")).dim_vars == ("_platform_index",)
    with mlir.make_ir_context() as context:
        assert context == mlir.make_ir_context()
