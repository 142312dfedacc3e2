"""The SciPy API: functions of SciPy that trace, differentiate, vectorise and compile, a module each."""

from catena.core.namespace import shown as _shown
from catena.core.unbuilt import absent as _absent

# Loaded when they are first asked for.
_MODULES = (
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
)

__dir__ = _shown(globals(), *_MODULES)

_absent(globals(), *_MODULES)
