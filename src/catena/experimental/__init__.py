"""What JAX keeps under ``experimental``."""

from catena.core.unbuilt import absent as _absent
from catena.lax.callbacks import io_callback as io_callback

_absent(
    globals(),
    *"buffer_callback checkify compilation_cache compute_on control_deps fused jet key_reuse layout ode random".split(),
    *"rnn scheduling_groups serialize_executable shard_alike shard_map sparse xla_metadata".split(),
)
