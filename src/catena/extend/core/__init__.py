"""Jaxprs, and primitives of one's own in JAX's manner: see ``Primitive``."""

from catena.core.aval import AbstractToken as AbstractToken
from catena.core.check import check_jaxpr as check_jaxpr
from catena.core.effects import Effect as Effect
from catena.core.effects import Effects as Effects
from catena.core.effects import no_effects as no_effects
from catena.core.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from catena.core.errors import JaxprTypeError as JaxprTypeError
from catena.core.jaxpr import ClosedJaxpr as ClosedJaxpr
from catena.core.jaxpr import Eqn as JaxprEqn  # noqa: F401
from catena.core.jaxpr import Jaxpr as Jaxpr
from catena.core.jaxpr import Literal as Literal
from catena.core.jaxpr import Var as Var
from catena.core.jaxpr import jaxpr_as_fun as jaxpr_as_fun
from catena.core.token import Token as Token
from catena.core.unbuilt import absent as _absent
from catena.extend.core.debug_info import DebugInfo as DebugInfo
from catena.extend.core.primitive import CallPrimitive as CallPrimitive
from catena.extend.core.primitive import Primitive as Primitive
from catena.extend.core.tools import DropVar as DropVar
from catena.extend.core.tools import TraceTag as TraceTag
from catena.extend.core.tools import array_types as array_types
from catena.extend.core.tools import call_impl as call_impl
from catena.extend.core.tools import concrete_or_error as concrete_or_error
from catena.extend.core.tools import find_top_trace as find_top_trace
from catena.extend.core.tools import gensym as gensym
from catena.extend.core.tools import get_opaque_trace_state as get_opaque_trace_state
from catena.extend.core.tools import jaxprs_in_params as jaxprs_in_params
from catena.extend.core.tools import mapped_aval as mapped_aval
from catena.extend.core.tools import new_jaxpr_eqn as new_jaxpr_eqn
from catena.extend.core.tools import nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE
from catena.extend.core.tools import primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype
from catena.extend.core.tools import set_current_trace as set_current_trace
from catena.extend.core.tools import subjaxprs as subjaxprs
from catena.extend.core.tools import take_current_trace as take_current_trace
from catena.extend.core.tools import unmapped_aval as unmapped_aval
from catena.extend.core.tools import unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE
from catena.extend.core.tools import unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE
from catena.extend.core.tools import unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE
from catena.extend.core.tools import valid_jaxtype as valid_jaxtype

_absent(globals(), "primitives")
