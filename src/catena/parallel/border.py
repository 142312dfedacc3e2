"""How sums that are still to be taken pass the border of a ``shard_map``: as the whole, of which one device has all.

Outside an array is held as the sum, whatever its type says (``core/terms.py``). Of an unreduced argument the first
device along the axes has the whole and the others have zeros: terms of the sum. An unreduced result is summed up. What
is reduced is the same on all devices. So the program of one device, which executors run, takes and gives plain arrays.
"""

from __future__ import annotations

import numpy as np

from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec
from catena.core.primitive import made_varying, pcast_p
from catena.core.structural import reshard_p
from catena.core.terms import has_terms
from catena.core.zeros import get_aval, zeros
from catena.lax.broadcasting import broadcast
from catena.lax.comparison import eq, select
from catena.lax.named_axes import axis_index
from catena.lax.varying import psum_invariant_p


def plain(spec: PartitionSpec) -> PartitionSpec:
    """A spec without a word of sums."""
    return PartitionSpec(*spec.partitions) if spec.unreduced or spec.reduced else spec


def without_terms(x):
    """An argument as a plain array."""
    aval = get_aval(x)
    if not has_terms(aval) or aval.said_sharding is None:
        return x
    return reshard_p.bind(x, dst_sharding=aval.said_sharding.update(spec=plain(aval.said_sharding.spec)))


def with_terms_of(x, spec: PartitionSpec, mesh):
    """A result of which ``spec`` says that it is unreduced or reduced."""
    if not spec.unreduced and not spec.reduced:
        return x
    said = get_aval(x).said_sharding or NamedSharding(mesh.abstract_mesh, PartitionSpec())
    target = said.update(spec=said.spec.update(unreduced=spec.unreduced, reduced=spec.reduced))
    return reshard_p.bind(x, dst_sharding=target)


def enter(x, spec: PartitionSpec):
    """The part of an argument that one device has, as the type says that ``spec`` does."""
    for word, names in (("unreduced", tuple(spec.unreduced)), ("reduced", tuple(spec.reduced))):
        if names:
            x = of_first(x, names) if word == "unreduced" else made_varying(x, frozenset(names))
            x = pcast_p.bind(x, axes=names, of="varying", to=word)
    return x


def leave(x, spec: PartitionSpec):
    """What one device gives of a result: the sum of terms; of what is reduced, what all have."""
    for word, names in (("unreduced", tuple(spec.unreduced)), ("reduced", tuple(spec.reduced))):
        if names:
            x = pcast_p.bind(x, axes=names, of=word, to="varying")
            x = psum_invariant_p.bind(x if word == "unreduced" else of_first(x, names), axes=names)
    return x


def of_first(x, names: tuple):
    """``x`` on the first device along axes of the mesh, zeros on the others."""
    x = made_varying(x, frozenset(names) - get_aval(x).vma)
    is_first = broadcast(eq(axis_index(names), np.int32(0)), get_aval(x).shape)
    return select(is_first, x, zeros(get_aval(x)))
