"""Arrays in files of tensorstore (zarr), each process writing the parts that it has."""

from catena.core.unbuilt import absent as _absent

_absent(globals(), "serialization", "tensorstore_impl")
