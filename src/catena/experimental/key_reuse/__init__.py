"""Keys that are used twice. There are no names: the flag ``jax_debug_key_reuse`` makes them errors."""

from catena.core.unbuilt import absent as _absent

_absent(globals())
