"""Layouts in XLA's words, and the bytes in which they are handed on."""

from catena.core.gspmd_sharding import GSPMDSharding as GSPMDSharding
from catena.core.hlo_sharding import HloSharding as _HloSharding
from catena.core.hlo_sharding import OpSharding as _OpSharding
from catena.core.hlo_sharding import parsed as _parsed
from catena.core.namespace import shown as _shown
from catena.core.unbuilt import absent as _absent


def get_op_sharding_from_serialized_proto(sharding: bytes) -> _OpSharding:
    """The message of a layout that these bytes are.

    Arguments:
      sharding: the bytes.
    Returns:
      The message: ``type``, ``tile_assignment_dimensions``, ``tile_assignment_devices`` ...
    Raises:
      TypeError: these are no bytes. ValueError: they are no such message.

    >>> from catena.extend import sharding
    >>> sharding.get_op_sharding_from_serialized_proto(b"\\x08\\x04").type.name
    'MANUAL'
    """
    return _parsed(sharding)


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> _HloSharding:
    """The layout that these bytes say.

    Arguments:
      sharding: the bytes.
    Returns:
      The layout, which prints as XLA's.
    Raises:
      TypeError: these are no bytes. ValueError: they are no layout.

    >>> from catena.extend import sharding
    >>> sharding.get_hlo_sharding_from_serialized_proto(bytes.fromhex("08031a0204024a0108520100"))
    {devices=[4,2]<=[8]}
    """
    return _HloSharding(_parsed(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: _HloSharding) -> bytes:
    """A layout as bytes.

    Arguments:
      sharding: the layout.
    Returns:
      The message of it.
    Raises:
      TypeError: this is no layout.

    >>> from catena.extend import sharding
    >>> layout = sharding.get_hlo_sharding_from_serialized_proto(b"\\x08\\x04")
    >>> sharding.get_serialized_proto_from_hlo_sharding(layout)
    b'\\x08\\x04'
    """
    if not isinstance(sharding, _HloSharding):
        raise TypeError(f"get_serialized_proto_from_hlo_sharding takes an HloSharding, got {sharding!r}")
    return sharding.to_proto().SerializeToString()


__dir__ = _shown(globals())

_absent(globals())
