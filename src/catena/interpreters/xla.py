"""Running one primitive as a program."""

from catena.core.device import Client as Backend  # noqa: F401
from catena.core.dtypes import canonicalize_dtype_handlers  # noqa: F401
from catena.transform.jit import jit


def apply_primitive(primitive, *args, **params):
    """Compile the application of one primitive and run it: an implementation for ``Primitive.def_impl``."""
    return jit(lambda *xs: primitive.bind(*xs, **params))(*args)
