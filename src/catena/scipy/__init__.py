"""The SciPy API: functions of SciPy that trace, differentiate, vectorise and compile, a module each."""

from catena.core.namespace import shown as _shown
from catena.core.unbuilt import absent as _absent

# Loaded when they are first asked for.
_MODULES = ("cluster", "integrate", "interpolate", "linalg", "optimize", "special", "stats")

__dir__ = _shown(globals(), *_MODULES)

_absent(globals(), *_MODULES)
