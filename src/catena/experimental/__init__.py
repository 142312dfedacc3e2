"""What JAX keeps under ``experimental``."""

from catena.core.array import ExtendedArray as EArray  # noqa: F401
from catena.core.primal_tangent import primal_tangent_dtype as primal_tangent_dtype
from catena.core.type_members import cur_qdd as cur_qdd
from catena.core.unbuilt import absent as _absent
from catena.lax.callbacks import io_callback as io_callback

_absent(
    globals(),
    *"buffer_callback checkify compilation_cache compute_on control_deps fused jet key_reuse layout mesh_utils".split(),
    *"multihost_utils ode pjit random rnn scheduling_groups serialize_executable shard_alike shard_map sparse".split(),
    *"array_serialization colocated_python hijax xla_metadata".split(),
)
