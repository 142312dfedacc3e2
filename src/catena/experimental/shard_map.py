"""``shard_map`` under its former name, with its former arguments; use ``catena.shard_map``."""

import warnings

from catena.parallel.shard_map import shard_map as _shard_map

warnings.warn("catena.experimental.shard_map is deprecated; use jax.shard_map", DeprecationWarning, stacklevel=2)


def shard_map(f, mesh, in_specs, out_specs, check_rep=True):
    """``catena.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)``."""
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
