"""What JAX keeps under ``experimental``."""

from catena.lax.callbacks import io_callback as io_callback
