"""Neural networks."""

from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent
from catena.nn import initializers as initializers
from catena.numpy.softmax import log_softmax as log_softmax
from catena.numpy.softmax import logsumexp as logsumexp
from catena.numpy.softmax import softmax as softmax

_open_door(globals(), "catena.nn")

__dir__ = _shown(globals(), "initializers")

_absent(globals())
