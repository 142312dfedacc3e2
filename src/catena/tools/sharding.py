"""What a function over arrays on a mesh sends between devices: ``explain_sharding``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catena.core.mesh import AbstractMesh, Mesh, get_mesh
from catena.core.named import NamedTuple
from catena.core.named_sharding import NamedSharding
from catena.core.tree import tree_flatten, tree_unflatten
from catena.parallel.forms import Sent
from catena.parallel.partition import partition
from catena.transform.jit import jit
from catena.transform.layouts import split_of_layout


class ShardingReport(NamedTuple):
    """What a partitioned function sends; printed, a line for each collective.

    Arguments:
      mesh: the mesh.
      collectives: in the order of the program; each has its ``kind``, the ``names`` of the mesh's axes that it works
        along, the ``bytes`` that each device sends, how many ``times`` it runs where loops say so, the ``source`` line
        and ``why`` it is there.
      in_specs, out_specs: how arguments and results are laid out, trees like these.
    """

    mesh: Mesh | AbstractMesh
    collectives: tuple[Sent, ...]
    in_specs: Any
    out_specs: Any

    @property
    def bytes(self) -> float:
        """What each device sends in all."""
        return sum(c.bytes * c.times for c in self.collectives)

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {size}" for name, size in self.mesh.shape.items())
        count = len(self.collectives)
        head = f"each of {self.mesh.size} devices ({sizes}) sends {shown(self.bytes)}"
        head += f" in {count} collective{'s' * (count != 1)}" if count else ""
        rows = [line(c) for c in self.collectives]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join([head, *("  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)])

    __repr__ = __str__


def line(sent: Sent) -> tuple[str, ...]:
    """A collective in words: its bytes, what it is, the user's line, and the cause."""
    often = f" x {sent.times}" if sent.times != 1 else ""
    names = ", ".join(map(str, sent.names))
    return shown(sent.bytes) + often, f"{sent.kind} over {names}", place(sent.source), sent.why


def place(source) -> str:
    """The user's line; of what was typed somewhere its number."""
    if source is None:
        return "-"
    name = source.file_name.rpartition("/")[2]
    return f"line {source.line}" if name.startswith("<") else f"{name}:{source.line}"


def shown(size: float) -> str:
    """Bytes with a unit."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} bytes"


def explain_sharding(f: Callable) -> Callable[..., ShardingReport]:
    """Say what a function sends between devices when it is partitioned over a mesh, and which line of it is the cause.

    Arguments:
      f: a function of trees of arrays, or a jitted one, whose ``in_shardings`` and ``out_shardings`` count.
    Returns:
      A function of the arguments of ``f``, or of ``ShapeDtypeStruct``s with shardings, that gives a ``ShardingReport``.
      It computes nothing. What is laid out over no mesh may be split in any way.
    Raises:
      ValueError: neither arguments nor results are laid out over a mesh, and none is in force (``jax.set_mesh``).

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.tools import explain_sharding
    >>> mesh = jax.sharding.AbstractMesh((4,), ("model",))
    >>> split = lambda *spec: jax.NamedSharding(mesh, jax.P(*spec))
    >>> x = jax.ShapeDtypeStruct((16, 64), jnp.float32, sharding=split(None, "model"))
    >>> w = jax.ShapeDtypeStruct((64, 32), jnp.float32, sharding=split("model"))
    >>> explain_sharding(lambda x, w: jnp.tanh(x @ w))(x, w)
    each of 4 devices (model 4) sends 3.07 KB in 1 collective
      3.07 KB  psum over model  line 1  operand 0 of tanh: f32[16,32], made by dot_general
    """
    jitted = f if hasattr(f, "trace") else jit(f)

    def explained(*args, **kwargs) -> ShardingReport:
        traced = jitted.trace(*args, **kwargs)
        call, leaves = traced._call, tree_flatten((args, kwargs))[0]
        placing = call.placing
        asked = [layout(p) for p in placing.arguments] if placing is not None else [None] * len(leaves)
        given = [a or named(getattr(x, "sharding", None)) for a, x in zip(asked, leaves, strict=True)]
        count = len(call.closed.out_avals)
        results = [layout(p) for p in placing.results] if placing is not None else [None] * count
        mesh = next((s.mesh for s in given + results if s is not None), None) or get_mesh()
        if mesh.empty:
            raise ValueError(
                "explain_sharding: no argument or result is laid out over a mesh, and none is in force; give arguments "
                "NamedShardings (jax.device_put, or jax.ShapeDtypeStruct(..., sharding=)), or use jax.set_mesh(mesh)"
            )
        outer = [None] * len(call.outer)
        splits = [split_of_layout(s, mesh, a.ndim) for s, a in zip(outer + given, call.closed.in_avals, strict=True)]
        wanted = [split_of_layout(s, mesh, a.ndim) for s, a in zip(results, call.closed.out_avals, strict=True)]
        found = partition(call.closed, mesh, tuple(splits), tuple(wanted))
        in_specs = tree_unflatten(tree_flatten((args, kwargs))[1], found.in_specs[len(outer) :])
        return ShardingReport(mesh, found.sent, in_specs, tree_unflatten(call.out_tree, found.out_specs))

    return explained


def named(sharding) -> NamedSharding | None:
    """A sharding over a mesh, or nothing."""
    return sharding if isinstance(sharding, NamedSharding) else None


def layout(placement) -> NamedSharding | None:
    """The layout that ``jit`` was asked for."""
    return named(getattr(placement, "layout", None))
