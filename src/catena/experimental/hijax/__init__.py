"""Primitives and types of a higher level, which say by their own methods what they mean in terms of arrays.

A `HiPrimitive` is a primitive whose rules are methods; where it has no rule of its own, it is what ``to_lojax`` does. A
`VJPHiPrimitive` is one with parameters, whose derivatives are methods. A `HiType` is the type of values of a class of
one's own (`register_hitype`). Such values are operands of primitives that are evaluated at once; what is traced has
arrays, so transformations refuse them as they refuse any other object. Those with a state (`MutableHiType`) may be
arguments of compiled functions, which take the arrays that they are made of and put back what became of them.
"""

from catena.core.aval import AbstractRef as AbstractRef
from catena.core.aval import AbstractValue as AbstractValue
from catena.core.aval import ShapedArray as ShapedArray
from catena.core.effects import control_flow_allowed_effects as control_flow_allowed_effects
from catena.core.namespace import shown as _shown
from catena.core.type_members import aval_method as aval_method
from catena.core.type_members import aval_property as aval_property
from catena.core.unbuilt import absent as _absent
from catena.core.zeros import Zero as Zero
from catena.core.zeros import instantiate as instantiate_zeros  # noqa: F401
from catena.experimental.hijax.primitives import HiPrimitive as HiPrimitive
from catena.experimental.hijax.types import AvalMutableQDD as AvalMutableQDD
from catena.experimental.hijax.types import AvalQDD as AvalQDD
from catena.experimental.hijax.types import HiType as HiType
from catena.experimental.hijax.types import MutableHiType as MutableHiType
from catena.experimental.hijax.types import register_hitype as register_hitype
from catena.experimental.hijax.vjp import VJPHiPrimitive as VJPHiPrimitive
from catena.interpreters.ad import is_undefined_primal as is_undefined_primal
from catena.lax import ref_methods as _ref_methods  # noqa: F401  (what references are asked for)
from catena.lax.ref_views import RefView as TransformedRef  # noqa: F401

__dir__ = _shown(globals())
_absent(globals())
