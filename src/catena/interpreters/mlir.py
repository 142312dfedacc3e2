"""What primitives compile to, by rules in JAX's form: ``rule(ctx, *values, **params)``.

There is no MLIR here. The values that a rule is given are arrays, traced ones where a program is being written; what it
does with them, by ``lower_fun`` and the functions below, is what the primitive compiles to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import update_wrapper
from typing import Any

from catena.core.array import Array as Value
from catena.core.context import context as _context
from catena.core.effects import lowerable_effects as lowerable_effects
from catena.core.jaxpr import ClosedJaxpr, Jaxpr
from catena.core.jaxpr import eval_jaxpr as _eval_jaxpr
from catena.core.mesh import Mesh as Mesh
from catena.core.struct import struct_of as _struct_of
from catena.core.token import Token as Token
from catena.core.trace import leaf_value as _leaf_value
from catena.core.unbuilt import absent as _absent
from catena.core.zeros import get_aval as _get_aval
from catena.interpreters.contexts import AxisContext as AxisContext
from catena.interpreters.contexts import Lowering as _Lowering
from catena.interpreters.contexts import LoweringParameters as LoweringParameters
from catena.interpreters.contexts import LoweringRuleContext as LoweringRuleContext
from catena.interpreters.contexts import ModuleContext as ModuleContext
from catena.interpreters.contexts import ShardingContext as ShardingContext
from catena.interpreters.contexts import SPMDAxisContext as SPMDAxisContext
from catena.interpreters.contexts import TokenSet as TokenSet
from catena.interpreters.contexts import flatten_values as flatten_ir_values  # noqa: F401
from catena.lax.callbacks import io_callback as _io_callback
from catena.lax.callbacks import pure_callback as _pure_callback
from catena.lax.convert import convert as _convert

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


_absent(globals())
