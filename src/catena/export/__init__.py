"""Functions that outlive their process (``jax.export``): traced, written as bytes, read and called elsewhere."""

from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent
from catena.export.exported import DisabledSafetyCheck as DisabledSafetyCheck
from catena.export.exported import Exported as Exported
from catena.export.exported import default_export_platform as default_export_platform
from catena.export.exported import (
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
)
from catena.export.exported import (
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from catena.export.exporting import deserialize as deserialize
from catena.export.exporting import export as export
from catena.export.shapes import SymbolicScope as SymbolicScope
from catena.export.shapes import is_symbolic_dim as is_symbolic_dim
from catena.export.shapes import symbolic_args_specs as symbolic_args_specs
from catena.export.shapes import symbolic_shape as symbolic_shape
from catena.export.structures import register_namedtuple_serialization as register_namedtuple_serialization
from catena.export.structures import register_pytree_node_serialization as register_pytree_node_serialization

_open_door(globals(), "catena.export")
__dir__ = _shown(globals())

_absent(globals())
