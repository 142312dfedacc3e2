"""Where arrays are."""

from catena.core.sharding import Sharding as Sharding
from catena.core.sharding import SingleDeviceSharding as SingleDeviceSharding
from catena.core.unbuilt import absent as _absent

_absent(globals())
