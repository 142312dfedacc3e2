"""The operations that all else is written in, each with its differentiation, batching and compilation rules.

``lax`` is stricter than ``numpy``: it never promotes dtypes, and broadcasts only axes of size 1 and scalars.
"""

from catena.core.namespace import late as _late
from catena.core.traceback import door as _door

_late(globals(), lambda name, fun: _door(fun, "catena.lax"))
