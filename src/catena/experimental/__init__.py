"""What JAX keeps under ``experimental``."""

from catena.core.unbuilt import absent as _absent
from catena.lax.callbacks import io_callback as io_callback

_absent(globals(), "checkify", "jet", "ode", "rnn", "sparse")
