"""What JAX keeps under ``extend``: for those who extend the language."""

from catena.core.unbuilt import absent as _absent
from catena.extend import core as core
from catena.extend import linear_util as linear_util

_absent(globals(), "backend", "linear_util", "mlir", "random", "sharding", "source_info_util")
