"""Tools for people who write and mend programs: keys that are used twice, impure functions, stepping, progress."""

from catena.core.namespace import late as _late

_late(globals())
