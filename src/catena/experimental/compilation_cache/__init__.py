"""Compiled programs on disk."""

from catena.core.unbuilt import absent as _absent

_absent(globals(), "compilation_cache")
