"""What primitives compile to, by rules in JAX's form: ``rule(ctx, *values, **params)``.

There is no MLIR here. The values that a rule is given are arrays, traced ones where a program is being written; what it
does with them, by ``lower_fun`` and the functions below, is what the primitive compiles to. A value's ``type`` is one
of ``ir``; operations of StableHLO are in ``jax.extend.mlir.dialects``. Programs as data are functions of jaxprs.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import update_wrapper
from typing import Any

import numpy as _np

from catena.core.array import Array as Value
from catena.core.context import context as _context
from catena.core.effects import lowerable_effects as lowerable_effects
from catena.core.jaxpr import ClosedJaxpr, Jaxpr
from catena.core.jaxpr import eval_jaxpr as _eval_jaxpr
from catena.core.mesh import Mesh as Mesh
from catena.core.struct import struct_of as _struct_of
from catena.core.token import Token as Token
from catena.core.trace import leaf_value as _leaf_value
from catena.core.tree import PyTreeRegistry as _PyTreeRegistry
from catena.core.unbuilt import absent as _absent
from catena.core.zeros import get_aval as _get_aval
from catena.interpreters import ir as ir
from catena.interpreters.contexts import AxisContext as AxisContext
from catena.interpreters.contexts import Lowering as _Lowering
from catena.interpreters.contexts import LoweringParameters as LoweringParameters
from catena.interpreters.contexts import LoweringRuleContext as LoweringRuleContext
from catena.interpreters.contexts import ModuleContext as ModuleContext
from catena.interpreters.contexts import ShardingContext as ShardingContext
from catena.interpreters.contexts import SPMDAxisContext as SPMDAxisContext
from catena.interpreters.contexts import TokenSet as TokenSet
from catena.interpreters.contexts import flatten_values as flatten_ir_values  # noqa: F401
from catena.interpreters.ir_types import attribute_of as _attribute_of
from catena.interpreters.ir_types import type_of_dtype as _type_of_dtype
from catena.interpreters.modules import LoweringResult as LoweringResult
from catena.interpreters.modules import Module as _Module
from catena.interpreters.modules import ShapePolyLoweringState as ShapePolyLoweringState
from catena.interpreters.modules import lower_jaxpr_to_fun as lower_jaxpr_to_fun
from catena.interpreters.modules import merge_mlir_modules as merge_mlir_modules
from catena.interpreters.modules import module_to_bytecode as module_to_bytecode
from catena.interpreters.modules import module_to_string as module_to_string
from catena.interpreters.modules import type_handlers as ir_type_handlers  # noqa: F401
from catena.interpreters.modules import type_of as _type_of
from catena.lax.callbacks import io_callback as _io_callback
from catena.lax.callbacks import pure_callback as _pure_callback
from catena.lax.convert import convert as _convert
from catena.lax.join import concatenate as _concatenate
from catena.lax.reshaping import reshape as _reshape

MeshAxisName = Any
LoweringRule = Callable[..., Sequence[Value | Sequence[Value]]]
ConstantHandler = Callable[[Any, Any], Sequence[Value]]


def lower_fun(fun: Callable, multiple_results: bool = True) -> LoweringRule:
    """A compilation rule that calls ``fun(*args, **params)``, or is called by another rule with its ``ctx``.

    Arguments:
      fun: a function of arrays, made of functions of ``catena.numpy`` and ``catena.lax``.
      multiple_results: whether it returns a sequence.

    >>> import catena as jax
    >>> from catena.extend.core import Primitive
    >>> from catena.interpreters import mlir
    >>> powers_p = Primitive("powers")
    >>> _ = powers_p.def_abstract_eval(lambda x, *, n: x)
    >>> def rule(ctx, x, *, n):
    ...     square = mlir.lower_fun(lambda x: x * x, multiple_results=False)
    ...     return square(ctx, x) if n == 2 else mlir.lower_fun(lambda x: [x**n])(ctx, x)
    >>> _ = mlir.register_lowering(powers_p, rule)
    >>> jax.jit(lambda x: powers_p.bind(x, n=2))(3.0)
    Array(9., dtype=float32, weak_type=True)
    """

    def rule(ctx, *args, **params) -> list:
        out = fun(*args, **params)
        return list(out) if multiple_results else [out]

    return update_wrapper(rule, fun)


def register_lowering(
    prim,
    rule: LoweringRule | None = None,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
):
    """Say what a primitive compiles to. Without a rule, a decorator is returned.

    Arguments:
      prim: the primitive.
      rule: ``rule(ctx, *values, **params)`` gives a sequence of values: what ``lower_fun`` gives, or a function that
        calls such. One that writes MLIR is kept, and raises NotImplementedError when a program with it is compiled.
      platform: ``"cpu"`` or ``None``; rules for other platforms are for other machines.
      inline, cacheable: how JAX writes the rule's module; what rules do is always written in place.

    >>> from catena.extend.core import Primitive
    >>> from catena.interpreters import mlir
    >>> _ = mlir.register_lowering(Primitive("halve"), mlir.lower_fun(lambda x: x / 2, multiple_results=False))
    """
    if rule is None:
        return lambda given: register_lowering(prim, given, platform)
    if platform in (None, "cpu"):
        prim.lower = _Lowering(prim, rule)
        prim.own = False  # programs with it are no longer what the package makes of them
    return rule


# ---- what rules are made of


_constant_handlers: dict[type, ConstantHandler] = {}


def register_constant_handler(type_: type, handler_fun: ConstantHandler) -> None:
    """Say which values stand for constants of a class of one's own: ``handler_fun(constant, aval)`` gives them."""
    _constant_handlers[type_] = handler_fun


def ir_constants(val: Any, *, const_lowering: dict | None = None, aval: Any = None) -> Sequence[Value]:
    """The values that stand for a constant.

    Arguments:
      val: an array or a scalar, or of a class that was registered.
      const_lowering: values by the identity of a constant and its type, which are taken as they are.
      aval: the type that it is to have.
    """
    known = (const_lowering or {}).get((id(val), aval))
    if known is not None:
        return flatten_ir_values([known])
    handler = next((_constant_handlers[c] for c in type(val).__mro__ if c in _constant_handlers), None)
    if handler is not None:
        return flatten_ir_values(handler(val, aval))
    value = _leaf_value(val)
    if aval is not None and _get_aval(value).shape != aval.shape:
        raise ValueError(f"ir_constants: {val!r} is no constant of type {aval}")
    return [value if aval is None else _convert(value, aval.dtype)]


def ir_constant(val: Any, *, const_lowering: dict | None = None, aval: Any = None) -> Value:
    """The value that stands for a constant, as of ``ir_constants``.

    >>> from catena.interpreters import mlir
    >>> mlir.ir_constant(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    (value,) = ir_constants(val, const_lowering=const_lowering, aval=aval)
    return value


@contextlib.contextmanager
def _within(name_stack, source) -> Iterator[None]:
    """Let what is written come from this place, in these scopes."""
    before = _context.name_stack, _context.source
    _context.name_stack, _context.source = name_stack, source
    try:
        yield
    finally:
        _context.name_stack, _context.source = before


def core_call_lowering(ctx, *args, name: str, backend: str | None = None, call_jaxpr: ClosedJaxpr | Jaxpr) -> list:
    """The compilation rule of calls: what the jaxpr does.

    Arguments:
      ctx, args: as for every rule.
      name: of the function, a scope around what it does.
      backend: must be None or ``"cpu"``.
      call_jaxpr: what is called.
    """
    if backend not in (None, "cpu"):
        raise ValueError(f"core_call_lowering: backend must be None or 'cpu', got {backend!r}")
    jaxpr, consts = getattr(call_jaxpr, "jaxpr", call_jaxpr), getattr(call_jaxpr, "consts", ())
    with _within(ctx.name_stack.extend(name), ctx.traceback):
        return _eval_jaxpr(jaxpr, consts, *args)


def jaxpr_subcomp(
    ctx: ModuleContext,
    jaxpr: Jaxpr,
    name_stack,
    tokens: TokenSet,
    consts_for_constvars: Sequence,
    *args: Value,
    dim_var_values: Sequence,
    const_lowering: dict,
    outer_traceback: Any,
) -> tuple[list, TokenSet]:
    """Write what a jaxpr does.

    Arguments:
      ctx: of the program.
      jaxpr: what to write, with the values ``consts_for_constvars`` and ``args``.
      name_stack, outer_traceback: the scopes and the place that it comes from.
      tokens: those before it.
      dim_var_values: must be empty: shapes are numbers.
      const_lowering: values for its literals, as for ``ir_constants``.
    Returns:
      The results, and the tokens after it.
    """
    if dim_var_values:
        raise ValueError(f"jaxpr_subcomp: dim_var_values must be empty: shapes are numbers; got {dim_var_values!r}")
    consts = [y for x in consts_for_constvars for y in ir_constants(x, const_lowering=const_lowering)]
    with _within(name_stack, outer_traceback):
        return _eval_jaxpr(jaxpr, consts, *args), tokens


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable,
    token: Any,
    operands: Sequence[Value],
    operand_avals: Sequence,
    result_avals: Sequence,
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple:
    """Write a call of a Python function.

    Arguments:
      ctx: what the rule is told.
      callback: gets the operands as arrays and returns a sequence of results.
      token: what orders it among others, or None.
      operands, operand_avals, result_avals: what it is given, and the types.
      has_side_effect: whether it is called though nobody reads the results, and once only.
      returns_token: whether it must come before what uses the token that is returned.
      partitioned, sharding: of a call in parts; must be False and None.
    Returns:
      The results, the token, and what is to be kept alive: None.
    """
    if partitioned or sharding is not None:
        raise ValueError("emit_python_callback: a program calls a function for one device, and whole")
    if [x.shape for x in operands] != [a.shape for a in operand_avals]:
        raise ValueError(f"emit_python_callback: operands {list(operands)} are not of the types {list(operand_avals)}")
    flat = lambda *xs: tuple(callback(*xs))  # noqa: E731
    structs = tuple(_struct_of(a) for a in result_avals)
    if has_side_effect:
        outs = _io_callback(flat, structs, *operands, ordered=token is not None and returns_token)
    else:
        outs = _pure_callback(flat, structs, *operands)
    return list(outs), token, None


# ---- types and attributes


ir_tree_registry = _PyTreeRegistry()
dense_int_array = ir.DenseI64ArrayAttr.get
token_type = ir.TokenType.get


def make_ir_context() -> ir.Context:
    """What types belong to where MLIR is written; here all are equal.

    >>> from catena.interpreters import mlir
    >>> with mlir.make_ir_context():
    ...     str(mlir.dtype_to_ir_type("bfloat16"))
    'bf16'
    """
    return ir.Context()


def dtype_to_ir_type(dtype: Any) -> ir.Type:
    """The type of the elements of arrays.

    Raises:
      TypeError: there is none for this dtype.

    >>> from catena.interpreters import mlir
    >>> mlir.dtype_to_ir_type("uint8")
    IntegerType(ui8)
    """
    return _type_of_dtype(dtype)


def aval_to_ir_types(ctx: ModuleContext, aval: Any) -> tuple:
    """The types by which the values of an aval are held: one, or several where ``ir_type_handlers`` says so.

    Arguments:
      ctx: of the program, which remembers them.
      aval: the type of values.
    Raises:
      TypeError: ``ir_type_handlers`` has no rule for its class.
    """
    known = ctx.aval_to_ir_types_cache
    if aval not in known:
        known[aval] = tuple(flatten_ir_values([_type_of(aval)]))
    return known[aval]


def aval_to_ir_type(ctx: ModuleContext, aval: Any) -> ir.Type:
    """The type of the values of an aval.

    Arguments:
      ctx: of the program.
      aval: the type of values.
    Raises:
      TypeError: there is no rule for its class. ValueError: its values are held as several.

    >>> import catena as jax
    >>> from catena.interpreters import mlir
    >>> mlir.aval_to_ir_type(mlir.ModuleContext(), jax.typeof(jax.numpy.ones((2, 3))))
    RankedTensorType(tensor<2x3xf32>)
    """
    types = aval_to_ir_types(ctx, aval)
    if len(types) != 1:
        raise ValueError(f"aval_to_ir_type: values of {aval} are held as {len(types)}: {list(types)}")
    return types[0]


def flatten_ir_types(xs: Iterable) -> list:
    """The types in a sequence of types and sequences of them, as of ``ir_tree_registry.flatten``."""
    _warn("flatten_ir_types", "mlir.ir_tree_registry.flatten")
    return ir_tree_registry.flatten(xs)[0]


def unflatten_ir_values_like_types(xs: Iterable, ys: Sequence) -> list:
    """Values grouped as types are.

    Arguments:
      xs: the values.
      ys: types, and sequences of them.
    Raises:
      ValueError: there are more or fewer.
    """
    _warn("unflatten_ir_values_like_types", "treedef.unflatten")
    return ir_tree_registry.flatten(list(ys))[1].unflatten(xs)


def _warn(name: str, instead: str) -> None:
    message = f"jax.interpreters.mlir.{name} is deprecated. Use {instead} instead."
    warnings.warn(message, DeprecationWarning, stacklevel=3)


def ir_attribute(val: Any) -> ir.Attribute:
    """The attribute that stands for a bool, a number, a string, an array, or a sequence or dict of such.

    Raises:
      TypeError: something else.

    >>> from catena.interpreters import mlir
    >>> str(mlir.ir_attribute({"axes": (0, 1), "scale": 0.5}))
    '{axes = [0, 1], scale = 5.000000e-01 : f64}'
    """
    return _attribute_of(val)


def i32_attr(i: int) -> ir.IntegerAttr:
    """An integer of 32 bits."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> ir.IntegerAttr:
    """An integer of 64 bits."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def dense_int_elements(xs: Sequence[int]) -> ir.DenseElementsAttr:
    """Integers of 64 bits, as an array.

    >>> from catena.interpreters import mlir
    >>> str(mlir.dense_int_elements([1, 2])), str(mlir.dense_int_array([1, 2]))
    ('dense<[1, 2]> : tensor<2xi64>', 'array<i64: 1, 2>')
    """
    return ir.DenseElementsAttr.get(_np.asarray(xs, _np.int64))


def shape_tensor(ctx: ModuleContext, sizes: Sequence[Any]) -> Value:
    """A shape as an array of int32.

    Arguments:
      ctx: of the program.
      sizes: the extents: numbers, or integer scalars of the program.

    >>> from catena.interpreters import mlir
    >>> mlir.shape_tensor(mlir.ModuleContext(), (2, 3))
    Array([2, 3], dtype=int32)
    """
    if not sizes:
        return _leaf_value(_np.zeros(0, _np.int32))
    return _concatenate([_reshape(_convert(_leaf_value(n), _np.dtype("int32")), (1,)) for n in sizes], 0)


# ---- programs


def lower_jaxpr_to_module(
    module_name: str,
    jaxpr: ClosedJaxpr,
    *,
    num_const_args: int,
    in_avals: Sequence,
    ordered_effects: Sequence,
    platforms: Sequence[str],
    backend: Any,
    axis_context: AxisContext,
    donated_args: Sequence[bool],
    replicated_args: Sequence[bool] | None = None,
    arg_shardings: Sequence | None = None,
    result_shardings: Sequence | None = None,
    in_layouts: Sequence | None = None,
    out_layouts: Sequence | None = None,
    arg_names: Sequence[str | None] | None = None,
    result_names: Sequence[str] | None = None,
    num_partitions: int = 1,
    all_default_mem_kind: bool = True,
    input_output_aliases: Sequence[int | None] | None = None,
    propagated_out_mem_kinds: Sequence[str | None] | None = None,
    lowering_parameters: LoweringParameters,
) -> LoweringResult:
    """Write a jaxpr as a program with a function ``main``.

    Arguments:
      module_name: of the program.
      jaxpr: what it does.
      num_const_args: how many of its constants are arguments of ``main``: none or all.
      in_avals: the types of its arguments.
      ordered_effects: those whose tokens ``main`` takes first, and returns first.
      platforms: that it is for; it is the same for all of them.
      backend: of these, the one that it is written on, or None.
      axis_context: how it lies on devices.
      donated_args: whether the memory of each argument may be taken by results.
      replicated_args, arg_shardings, result_shardings, in_layouts, out_layouts, arg_names, result_names,
        input_output_aliases, propagated_out_mem_kinds: what is said of arguments and results, as for
        `lower_jaxpr_to_fun`.
      num_partitions: in how many parts it runs: 1.
      all_default_mem_kind: whether all arrays lie in the default memory; else what memory shardings name is said.
      lowering_parameters: rules that hold in place of primitives' own.
    Returns:
      The program (``module.main()`` is what it does, compiled when it is called; its text is that of
      `module_to_string`), and what belongs to it.
    Raises:
      ValueError: arguments do not fit the jaxpr, or there are several partitions.

    >>> import catena as jax
    >>> from catena.interpreters import mlir
    >>> closed = jax.make_jaxpr(lambda x, y: x + 2 * y)(1.0, 2.0)
    >>> result = mlir.lower_jaxpr_to_module(
    ...     "sum",
    ...     closed,
    ...     num_const_args=0,
    ...     in_avals=closed.in_avals,
    ...     ordered_effects=[],
    ...     platforms=("cpu",),
    ...     backend=None,
    ...     axis_context=mlir.ShardingContext(1),
    ...     donated_args=[True, False],
    ...     arg_names=["x", "y"],
    ...     lowering_parameters=mlir.LoweringParameters(),
    ... )
    >>> print(mlir.module_to_string(result.module, enable_debug_info=False))
    module @sum attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
      func.func public @main(%x: tensor<f32> {jax.buffer_donor = true}, %y: tensor<f32>) -> (tensor<f32>) {
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = mul 2.0:f32[] b
            d:f32[] = add a c
          in (d,) }
      }
    }
    >>> result.module.main()(1.0, 2.0)
    [Array(5., dtype=float32, weak_type=True)]
    """
    if num_partitions != 1:
        raise ValueError(f"lower_jaxpr_to_module: a program runs whole: num_partitions must be 1, got {num_partitions}")
    ctx = ModuleContext(
        platforms=tuple(platforms),
        backend=backend,
        axis_context=axis_context,
        lowering_parameters=lowering_parameters,
        module=_Module(module_name),
        all_default_mem_kind=all_default_mem_kind,
    )
    lower_jaxpr_to_fun(
        ctx,
        "main",
        jaxpr,
        ordered_effects,
        num_const_args=num_const_args,
        main_function=True,
        replicated_args=replicated_args,
        in_avals=in_avals,
        arg_shardings=arg_shardings,
        result_shardings=result_shardings,
        input_output_aliases=input_output_aliases,
        xla_donated_args=donated_args,
        arg_names=arg_names,
        result_names=result_names,
        arg_memory_kinds=None if all_default_mem_kind else _memory_kinds(arg_shardings),
        result_memory_kinds=None if all_default_mem_kind else _memory_kinds(result_shardings),
        arg_layouts=in_layouts,
        result_layouts=out_layouts,
        propagated_out_mem_kinds=propagated_out_mem_kinds,
    )
    return LoweringResult(ctx.module, ctx.keepalives, ctx.host_callbacks, ctx.shape_poly_state)


def _memory_kinds(shardings: Sequence | None) -> list | None:
    return None if shardings is None else [getattr(s, "memory_kind", None) for s in shardings]


_absent(globals())
