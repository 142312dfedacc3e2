"""Where the arguments and results of a jitted function are put: ``in_shardings``, ``out_shardings``, ``device``."""

from __future__ import annotations

from catena.core.array import Array, as_array
from catena.core.device import Device, check_backend, first_device
from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.core.partition_spec import PartitionSpec
from catena.core.placed import place, place_result, results_placement, where
from catena.core.placement import Placement
from catena.core.sharding import Sharding, placement_of, sharding_of
from catena.core.targets import check_layout, of_mesh_in_force, on_devices, over_abstract_mesh, target_placement
from catena.core.trace import Tracer
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.tree_errors import broadcast_prefix, flatten_axes

resharding = LazyModule("catena.lax.resharding")


class Placing(NamedTuple):
    """For each argument of a program where it is put first, or ``None``; and for each result where it is put then.
    ``strip`` says that arguments may come from anywhere.
    """

    arguments: tuple
    results: tuple
    strip: bool = False

    @property
    def device(self) -> Placement | None:
        """The place where the program runs, if the user asked for one that it does not say itself."""
        if self.strip or is_said(self.chosen):
            return None
        chosen = self.chosen
        return chosen if chosen is None or chosen.layout is None else chosen._replace(layout=chosen.layout.whole(0))

    @property
    def chosen(self) -> Placement | None:
        """One of the places that the user asked for."""
        return next((p for p in (*self.results, *self.arguments) if p is not None), None)

    def put(self, leaves) -> list:
        """The arguments on their devices."""
        arrays = [x if isinstance(x, Array) else as_array(x) for x in leaves]
        if self.strip:
            return [place(x, None) for x in arrays]
        put = [x if p is None else put_argument(x, p) for x, p in zip(arrays, self.arguments, strict=True)]
        self.check(put)
        return put

    def check(self, arrays):
        """Raise where arguments are committed elsewhere than results are to be."""
        chosen = next((p for p in self.results if p is not None), None)
        own = results_placement("jit", arrays) if chosen is not None else None
        if own is not None and own.committed and own.devices != chosen.devices:
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got arguments with {where(own.devices)} and "
                f"explicit output sharding with {where(chosen.devices)}."
            )

    def place(self, outs) -> list:
        """The results on their devices: those for which the user asked for nothing, on those of the others."""
        chosen = self.chosen
        return [
            place(x, p) if p is not None else place_result(x, chosen, ()) if x._placement is None else x
            for x, p in zip(outs, self.results, strict=True)
        ]

    def run(self, program, donated, leaves, out_avals) -> list:
        """Run a program between the two."""
        put = self.put(leaves)
        outs = self.place(program(put, out_avals))
        for x, moved, given in zip(leaves, put, donated, strict=True):
            if given and moved.is_deleted():
                x.delete()
        return outs


def said(values, places, arguments=()) -> list:
    """Values of a function that is traced, with a word in its program on how they lie over Auto axes of a mesh: what
    partitions programs goes by it. Results that are ``arguments`` need none.
    """
    return [
        resharding.sharding_constraint_p.bind(x, sharding=p.layout)
        if is_said(p) and isinstance(x, Tracer) and x.aval.plain and not any(x is a for a in arguments)
        else x
        for x, p in zip(values, places, strict=True)
    ]


def is_said(placement: Placement | None) -> bool:
    """Whether a place is a layout that types do not speak of."""
    mesh = getattr(placement.layout, "mesh", None) if placement is not None else None
    return mesh is not None and not mesh.explicit_axes


def put_argument(x: Array, asked: Placement) -> Array:
    """An argument where ``in_shardings`` wants it.

    Raises:
      ValueError: it is committed to another layout, or its shape does not fit this one.
    """
    check_layout(asked, x.shape)
    own = x._placement
    if own is not None and own.committed and (own.layout is not None or asked.layout is not None):
        given, wanted = sharding_of(own), sharding_of(asked)
        if not given.is_equivalent_to(wanted, x.ndim):
            raise ValueError(
                f"in_shardings asks for {wanted}, and the argument, of type {x.aval.str_short()}, is committed to "
                f"{given}. Move it by catena.device_put, or leave in_shardings away."
            )
    if x.aval.plain and getattr(asked.layout, "mesh", None) is not None and asked.layout.mesh.explicit_axes:
        asked = asked._replace(layout=asked.layout.whole(x.ndim))  # the program was traced for what is not split
    return place(x, asked)


class Places(NamedTuple):
    """What the user asked of ``jit``, checked: trees with the places at their leaves, or one place for everything.
    ``entered`` says that bare PartitionSpecs may mean the mesh of ``with mesh:`` (those of ``pjit``).
    """

    in_shardings: tuple | None
    out_shardings: tuple | None
    everywhere: Placement | None
    entered: bool = False

    def placing(self, in_tree, out_tree, closed) -> Placing:
        """What it means for arguments and results of these trees."""
        count = in_tree.num_leaves, out_tree.num_leaves
        if self.everywhere is not None:
            return Placing((self.everywhere,) * count[0], (self.everywhere,) * count[1])
        results = self.results(out_tree)
        chosen = next((p for p in results if p is not None), None)
        for placement, aval in zip(results, closed.out_avals, strict=True):
            check_layout(placement, aval.shape)
            if (
                placement is not None
                and chosen is not None
                and placement.devices != chosen.devices
                and placement.layout is not None
            ):
                raise ValueError(
                    "Received incompatible devices for jitted computation. Got output shardings with "
                    f"{where(chosen.devices)} and with {where(placement.devices)}."
                )
        if chosen is not None and chosen.layout is None:  # one program runs on one device
            results = [chosen] * count[1]
        return Placing(self.arguments(in_tree), tuple(results))

    def results(self, out_tree) -> list:
        """Where each result of this tree is put."""
        if self.out_shardings is None:
            return [None] * out_tree.num_leaves
        tree, asked = self.out_shardings
        numbers = flatten_axes("jit out_shardings", out_tree, tree_unflatten(tree, range(len(asked))))
        return [placement_asked(asked[i], "out_shardings", self.entered) for i in numbers]

    def arguments(self, in_tree) -> tuple:
        """Where each argument of this tree is put."""
        if self.in_shardings is None:
            return (None,) * in_tree.num_leaves
        args, kwargs = tree_unflatten(in_tree, range(in_tree.num_leaves))
        if kwargs:
            raise ValueError("jit does not support kwargs when in_shardings is specified.")
        tree, asked = self.in_shardings
        prefix = tree_unflatten(tree, range(len(asked)))
        if isinstance(prefix, (tuple, list)):
            if len(prefix) != len(args):
                raise ValueError(
                    "jit in_shardings specification must be a tree prefix of the positional arguments tuple, but it is "
                    f"of length {len(prefix)} for an args tuple of length {len(args)}"
                )
            prefix = tuple(prefix)
        return tuple(placement_asked(asked[i], "in_shardings", self.entered) for i in broadcast_prefix(prefix, args))

    def with_another_result(self) -> Places:
        """The same for a function that returns a pair: its result, and something that stays where it is."""
        if self.out_shardings is None:
            return self
        tree, asked = self.out_shardings
        pair = tree_flatten((tree_unflatten(tree, range(len(asked))), len(asked)))[1]
        return self._replace(out_shardings=(pair, (*asked, None)))


def asked_places(in_shardings, out_shardings, device, backend) -> Places | None:
    """What the placement arguments of ``jit`` ask for; ``None`` where they ask for nothing.

    Raises:
      TypeError: something is no place. ValueError: two arguments contradict each other.
    """
    check_backend(backend)
    if device is not None and not isinstance(device, Device):
        raise TypeError(f"device must be a Device or None, got {device!r}")
    if device is not None and backend is not None:
        raise ValueError(f"can't specify both a device and a backend for jit, got {device=} and {backend=}")
    if device is not None or backend is not None:
        for name, value in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
            if value is not None:
                raise ValueError(f"If backend or device is specified on jit, then {name} should not be specified.")
        return Places(None, None, Placement((device or first_device(),)))
    if in_shardings is None and out_shardings is None:
        return None
    return Places(places("in_shardings", in_shardings), places("out_shardings", out_shardings), None)


def places(name: str, shardings) -> tuple | None:
    """A tree of shardings as its tree and the places that they name; what is to name devices by the mesh in force,
    PartitionSpecs and layouts over abstract meshes, as it is.
    """
    if shardings is None:
        return None
    leaves, tree = tree_flatten(shardings, is_leaf=lambda x: x is None)
    for leaf in leaves:
        if leaf is not None and not isinstance(leaf, (Device, Sharding, PartitionSpec)):
            raise TypeError(f"the leaves of {name} must be shardings, devices or None, got {leaf!r}")
    late = [isinstance(leaf, PartitionSpec) or over_abstract_mesh(leaf) for leaf in leaves]
    return tree, tuple(leaf if wait else target_placement(leaf) for leaf, wait in zip(leaves, late, strict=True))


def placement_asked(asked, name: str, entered: bool) -> Placement | None:
    """A place, where it is one; what the mesh in force gives devices, when the function is traced."""
    if isinstance(asked, PartitionSpec):
        return placement_of(of_mesh_in_force(asked, RuntimeError, f"in {name} of jit", entered))
    return placement_of(on_devices(asked)) if isinstance(asked, Sharding) else asked
