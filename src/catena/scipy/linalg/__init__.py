"""Linear algebra in SciPy's conventions."""

from catena.core.namespace import late as _late

_late(globals())
