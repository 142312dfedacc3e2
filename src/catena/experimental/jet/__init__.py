"""Taylor-mode differentiation: all derivatives along a curve up to some order, at once."""

from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.experimental.jet import rules as _rules  # noqa: F401  (gives the rules)
from catena.experimental.jet.functions import ZeroSeries as ZeroSeries
from catena.experimental.jet.functions import ZeroTerm as ZeroTerm
from catena.experimental.jet.functions import def_comp as def_comp
from catena.experimental.jet.functions import def_deriv as def_deriv
from catena.experimental.jet.functions import deflinear as deflinear
from catena.experimental.jet.functions import defzero as defzero
from catena.experimental.jet.functions import fact as fact
from catena.experimental.jet.functions import jet as jet
from catena.experimental.jet.functions import jet2 as jet2
from catena.experimental.jet.functions import zero_series as zero_series
from catena.experimental.jet.functions import zero_term as zero_term
from catena.experimental.jet.trace import JetTrace as JetTrace
from catena.experimental.jet.trace import JetTracer as JetTracer
from catena.experimental.jet.trace import jet_rules as jet_rules

_open_door(globals(), "catena.experimental.jet")
__dir__ = _shown(globals())
