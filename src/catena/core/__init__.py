"""The language: avals and dtypes, values, primitives, traces, jaxprs. The names that users of ``jax.core`` know."""

from typing import Any as _Any

from catena.core.aval import AbstractToken as AbstractToken
from catena.core.aval import AbstractValue as AbstractValue
from catena.core.aval import ShapedArray as ShapedArray
from catena.core.aval import abstract_token as abstract_token
from catena.core.check import check_jaxpr as check_jaxpr
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

_absent(globals())
