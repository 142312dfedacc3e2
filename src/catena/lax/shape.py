"""The operations on shapes, to import from one place."""

# ruff: noqa: A004  (slice is named as in JAX)

from catena.lax.broadcasting import as_scalar as as_scalar
from catena.lax.broadcasting import broadcast as broadcast
from catena.lax.broadcasting import broadcast_in_dim as broadcast_in_dim
from catena.lax.broadcasting import broadcast_in_dim_p as broadcast_in_dim_p
from catena.lax.broadcasting import broadcast_like as broadcast_like
from catena.lax.broadcasting import broadcast_shapes as broadcast_shapes
from catena.lax.broadcasting import broadcast_to_rank as broadcast_to_rank
from catena.lax.broadcasting import broadcasted_iota as broadcasted_iota
from catena.lax.broadcasting import check_nonnegative as check_nonnegative
from catena.lax.broadcasting import empty as empty
from catena.lax.broadcasting import expand_dims as expand_dims
from catena.lax.broadcasting import full as full
from catena.lax.broadcasting import full_like as full_like
from catena.lax.broadcasting import insert as insert
from catena.lax.broadcasting import iota as iota
from catena.lax.broadcasting import iota_p as iota_p
from catena.lax.broadcasting import reshaped as reshaped
from catena.lax.broadcasting import skip as skip
from catena.lax.broadcasting import structural as structural
from catena.lax.broadcasting import unary_transpose as unary_transpose
from catena.lax.reshaping import collapse as collapse
from catena.lax.reshaping import reshape as reshape
from catena.lax.reshaping import reshape_p as reshape_p
from catena.lax.reshaping import rev as rev
from catena.lax.reshaping import rev_p as rev_p
from catena.lax.reshaping import squeeze as squeeze
from catena.lax.reshaping import squeeze_p as squeeze_p
from catena.lax.reshaping import transpose as transpose
from catena.lax.reshaping import transpose_p as transpose_p
from catena.lax.slicing import pad as pad
from catena.lax.slicing import pad_p as pad_p
from catena.lax.slicing import scalar_zero as scalar_zero
from catena.lax.slicing import slice as slice
from catena.lax.slicing import slice_in_dim as slice_in_dim
from catena.lax.slicing import slice_p as slice_p
