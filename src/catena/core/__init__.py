"""The language: avals and dtypes, values, primitives, traces, jaxprs. The names that users of ``jax.core`` know."""

from typing import Any as _Any

from catena.core.lazy import without_collection as _without_collection

with _without_collection():
    from catena.core.aval import AbstractToken as AbstractToken
    from catena.core.aval import AbstractValue as AbstractValue
    from catena.core.aval import ShapedArray as ShapedArray
    from catena.core.aval import abstract_token as abstract_token
    from catena.core.check import check_jaxpr as check_jaxpr
    from catena.core.dtypes import pytype_aval_mappings as pytype_aval_mappings
    from catena.core.jaxpr import ClosedJaxpr as ClosedJaxpr
    from catena.core.jaxpr import Eqn as JaxprEqn  # noqa: F401
    from catena.core.jaxpr import Jaxpr as Jaxpr
    from catena.core.jaxpr import Literal as Literal
    from catena.core.jaxpr import Var as Var
    from catena.core.jaxpr import eval_jaxpr as eval_jaxpr
    from catena.core.jaxpr import jaxpr_as_fun as jaxpr_as_fun
    from catena.core.jaxpr import subjaxprs as subjaxprs
    from catena.core.namespace import shown as _shown
    from catena.core.primitive import Primitive as Primitive
    from catena.core.shapes import max_dim as max_dim
    from catena.core.shapes import min_dim as min_dim
    from catena.core.trace import Trace as Trace
    from catena.core.trace import Tracer as Tracer
    from catena.core.trace import ensure_compile_time_eval as ensure_compile_time_eval
    from catena.core.unbuilt import absent as _absent
    from catena.core.zeros import get_aval as get_aval

Atom = Var | Literal  # what equations read
Value = _Any
ParamDict = dict[str, _Any]

eval_context = ensure_compile_time_eval

__dir__ = _shown(globals())

_EXTENSION = (
    "CallPrimitive DebugInfo DropVar Effect Effects concrete_or_error find_top_trace gensym get_opaque_trace_state "
    "jaxprs_in_params new_jaxpr_eqn no_effects nonempty_axis_env_DO_NOT_USE primal_dtype_to_tangent_dtype "
    "unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE unsafe_get_axis_names_DO_NOT_USE "
    "valid_jaxtype"
)
_absent(
    globals(),
    moved={name: f"catena.extend.core.{name}" for name in _EXTENSION.split()}
    | {name: f"catena.errors.{name}" for name in ("InconclusiveDimensionOperation", "JaxprTypeError")}
    | {"JaxprPpContext": "catena.core.printer.Names"},
)
