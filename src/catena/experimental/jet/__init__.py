"""Taylor-mode differentiation: all derivatives along a curve up to some order, at once."""

from catena.core.namespace import shown as _shown
from catena.core.sequences import safe_zip as safe_zip
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent
from catena.experimental.jet import rules as _rules  # noqa: F401  (gives the rules)
from catena.experimental.jet.functions import fact as fact
from catena.experimental.jet.functions import jet as jet
from catena.experimental.jet.functions import jet2 as jet2
from catena.experimental.jet.trace import JetTrace as JetTrace
from catena.experimental.jet.trace import JetTracer as JetTracer
from catena.experimental.jet.trace import ZeroSeries as ZeroSeries
from catena.experimental.jet.trace import ZeroTerm as ZeroTerm
from catena.experimental.jet.trace import zero_series as zero_series
from catena.experimental.jet.trace import zero_term as zero_term
from catena.experimental.jet.user_rules import def_comp as def_comp
from catena.experimental.jet.user_rules import def_deriv as def_deriv
from catena.experimental.jet.user_rules import deflinear as deflinear
from catena.experimental.jet.user_rules import defzero as defzero
from catena.experimental.jet.user_rules import deriv_prop as deriv_prop
from catena.experimental.jet.user_rules import jet_fun as jet_fun
from catena.experimental.jet.user_rules import jet_rules as jet_rules
from catena.experimental.jet.user_rules import jet_subtrace as jet_subtrace
from catena.experimental.jet.user_rules import linear_prop as linear_prop
from catena.experimental.jet.user_rules import traceable as traceable
from catena.experimental.jet.user_rules import zero_prop as zero_prop

_open_door(globals(), "catena.experimental.jet")
__dir__ = _shown(globals())
_absent(globals())
