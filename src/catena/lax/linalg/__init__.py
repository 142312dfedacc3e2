"""Linear algebra on stacks of matrices: factorisations, eigenvalues, triangular systems."""

from catena.core.namespace import late as _late
from catena.core.traceback import door as _door

_late(globals(), lambda name, fun: _door(fun, "catena.lax.linalg"))
