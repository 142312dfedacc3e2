"""Looking into transformed and compiled code: printing and callbacks."""

from catena.core.effects import DebugEffect as DebugEffect
from catena.core.effects import OrderedDebugEffect as OrderedDebugEffect
from catena.lax.callbacks import debug_callback as callback  # noqa: F401
from catena.lax.callbacks import debug_log as log  # noqa: F401
from catena.lax.callbacks import debug_print as print  # noqa: A004, F401
