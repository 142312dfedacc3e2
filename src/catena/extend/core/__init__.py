"""Jaxprs, and primitives of one's own in JAX's manner: see ``Primitive``."""

from catena.core.aval import AbstractToken as AbstractToken
from catena.core.check import check_jaxpr as check_jaxpr
from catena.core.effects import Effect as Effect
from catena.core.effects import Effects as Effects
from catena.core.effects import no_effects as no_effects
from catena.core.jaxpr import ClosedJaxpr as ClosedJaxpr
from catena.core.jaxpr import Eqn as JaxprEqn  # noqa: F401
from catena.core.jaxpr import Jaxpr as Jaxpr
from catena.core.jaxpr import Literal as Literal
from catena.core.jaxpr import Var as Var
from catena.core.jaxpr import jaxpr_as_fun as jaxpr_as_fun
from catena.core.token import Token as Token
from catena.core.unbuilt import absent as _absent
from catena.extend.core import primitives as primitives
from catena.extend.core.primitive import Primitive as Primitive

_absent(globals())
