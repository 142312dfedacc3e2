"""Images of other sizes: resampling along any axes of an array."""

from catena.core.namespace import shown as _shown
from catena.image.resampling import ResizeMethod as ResizeMethod
from catena.image.resampling import resize as resize
from catena.image.resampling import scale_and_translate as scale_and_translate
from catena.numpy import protocol as _protocol

_protocol.open_namespace(globals(), "catena.image")

__dir__ = _shown(globals())
