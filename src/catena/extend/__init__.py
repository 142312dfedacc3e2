"""What JAX keeps under ``extend``: for those who extend the language."""

from catena.core.unbuilt import absent as _absent

_absent(globals(), *"backend core linear_util mlir random sharding source_info_util".split())
