"""Tools for people who write and mend programs: keys that are used twice, impure functions, stepping, where time and
memory go, what the backward pass keeps.
"""

from catena.core.namespace import late as _late

_late(globals())
