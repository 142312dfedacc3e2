"""How the results of an operation lie on a mesh, given how its operands do.

Along Auto axes nobody says it, so it follows the data: forwards, through the factors that each primitive walks over
(``core/factors.py``). Where two operands disagree on an index range, it is not split.
"""

from __future__ import annotations

import functools
import itertools
import math

from catena.core.factors import AS_CALLED, Factor, dealt, entry, factors_of, rule_of
from catena.core.mesh import Mesh
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec, names_of

Split = tuple  # for each axis of an array the names of the mesh's axes that split it, as a tuple


class Splits:
    """The way of splits over one mesh through operations."""

    def __init__(self, mesh: Mesh):
        self.mesh, self.sizes = mesh, mesh.shape

    def of_operation(self, primitive, avals, outs, params, splits: list[Split]) -> list[Split]:
        """The splits of an operation's results."""
        rule = rule_of(primitive)
        if rule is AS_CALLED or not rule or not any(any(s) for s in splits):
            return [whole(a) for a in outs]
        if primitive.name in WRITES:
            return [splits[0]]
        factors = factors_of(primitive, avals, outs, params)
        said = self.said(primitive, factors, avals, splits)
        return [self.follows(primitive, factors, said, [f.results[j] for f in factors], o) for j, o in enumerate(outs)]

    def said(self, primitive, factors: list[Factor], avals, splits: list[Split]) -> list[list[tuple]]:
        """The names by which the operands split each index range."""
        found: list[list[tuple]] = [[] for _ in factors]
        for i, (aval, split) in enumerate(zip(avals, splits, strict=True)):
            for axis, names in enumerate(split):
                if names:
                    for k, taken in dealt(factors, i, axis, names, self.sizes)[0].items():
                        if stays(primitive, factors[k], aval.shape[axis]):
                            found[k].append(taken)
        return found

    def follows(self, primitive, factors: list[Factor], said: list[list[tuple]], axes: list, aval) -> Split:
        """The split of an array of which ``axes`` belong to the factors, one index range after the other: a name that
        is used up splits no second one.
        """
        split: list[tuple] = [()] * aval.ndim
        full = [True] * aval.ndim  # whether the outer index ranges of an axis are split to single elements
        used: set = set()
        for factor, offers, axis in zip(factors, said, axes, strict=True):
            if axis is None:
                continue
            names = functools.reduce(merged, [unused(offer, used) for offer in offers], ())
            fits = stays(primitive, factor, aval.shape[axis]) and full[axis]
            fits = fits and not aval.shape[axis] % self.ways((*split[axis], *names))
            if names and fits:
                split[axis] += names
                used.update(names)
            full[axis] = full[axis] and fits and self.ways(names) == factor.size
        return tuple(split)

    def ways(self, names) -> int:
        return math.prod(self.sizes[n] for n in names)


def stays(primitive, factor: Factor, size: int) -> bool:
    """Whether an axis of this size is split as the index range that it belongs to."""
    return factor.kind == "pass" or size == factor.size or primitive.name in RESIZED


WRITES = ("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max", "dynamic_update_slice")
# the result has other sizes, and keeps the split where it divides them
RESIZED = ("pad", "concatenate", "split", "conv_general_dilated") + tuple(
    f"reduce_window{kind}" for kind in ("", "_sum", "_max", "_min")
)


def whole(aval) -> Split:
    """The split of an array that is not split."""
    return ((),) * aval.ndim


def unused(names: tuple, used: set) -> tuple:
    """The names before the first one that is used up."""
    return tuple(itertools.takewhile(lambda name: name not in used, names))


def merged(a: tuple, b: tuple) -> tuple:
    """What two operands say of one index range: the longer, if the shorter is how it begins; else nothing."""
    short, long = sorted((a, b), key=len)
    return long if long[: len(short)] == short else ()


def split_of(layout, mesh: Mesh, ndim: int) -> Split:
    """A layout as a split over ``mesh``, which has its devices; where these axes cannot say it, not split."""
    if not isinstance(layout, NamedSharding):
        return ((),) * ndim
    if layout.mesh.shape_tuple == mesh.shape_tuple:
        split = [*map(names_of, layout.spec), *[()] * ndim][:ndim]
        return tuple(split)
    counts, _ = layout._tiles(ndim)
    runs = {
        math.prod(mesh.axis_sizes[i:j]): mesh.axis_names[i:j]
        for i in range(len(mesh.axis_names))
        for j in range(i + 1, len(mesh.axis_names) + 1)
    }
    split = [runs.get(count, ()) if count > 1 else () for count in counts]
    names = [n for s in split for n in s]
    if len(set(names)) == len(names) and layout_of_split(mesh, split).is_equivalent_to(layout, ndim):
        return tuple(split)
    return ((),) * ndim


def layout_of_split(mesh: Mesh, split) -> NamedSharding:
    """The layout over a mesh with this split; where all axes are Auto, trailing axes without one are not named."""
    entries = list(map(entry, split))
    while entries and entries[-1] is None and not mesh.explicit_axes:
        entries.pop()
    return NamedSharding(mesh, PartitionSpec(*entries))


def layouts_of_results(primitive, avals, outs, params, layouts, mesh: Mesh) -> list[NamedSharding]:
    """How the results of an operation lie on a mesh.

    Arguments:
      primitive, avals, params: the operation.
      outs: the types of its results.
      layouts: how the operands lie; ``None`` for those that are not split.
      mesh: the mesh.
    """
    key = (primitive, tuple(avals), tuple(outs), tuple(params.items()), tuple(layouts), mesh)
    try:
        return _operation(*key)
    except TypeError:  # a parameter that cannot be hashed
        return _operation.__wrapped__(*key)


@functools.lru_cache(4096)
def _operation(primitive, avals, outs, params, layouts, mesh):
    splits = [split_of(layout, mesh, a.ndim) for layout, a in zip(layouts, avals, strict=True)]
    found = Splits(mesh).of_operation(primitive, avals, outs, dict(params), splits)
    return [layout_of_split(mesh, s).as_typed(a) for s, a in zip(found, outs, strict=True)]
