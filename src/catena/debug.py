"""Looking into transformed and compiled code: printing, callbacks, a debugger, pictures of placement."""

from catena.core.effects import DebugEffect as DebugEffect
from catena.core.effects import OrderedDebugEffect as OrderedDebugEffect
from catena.lax.callbacks import debug_callback as callback  # noqa: F401
from catena.lax.callbacks import debug_log as log  # noqa: F401
from catena.lax.callbacks import debug_print as print  # noqa: A004, F401
from catena.tools.breakpoint import breakpoint as breakpoint  # noqa: A004
from catena.tools.visualize import inspect_array_sharding as inspect_array_sharding
from catena.tools.visualize import visualize_array_sharding as visualize_array_sharding
from catena.tools.visualize import visualize_sharding as visualize_sharding
