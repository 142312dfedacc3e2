"""``pmap``: run a function on several devices at once, one example each.

It is a ``shard_map`` over a mesh with one axis, whose parts have length 1 along the mapped axis: what is added here is
what ``pmap`` asks of arguments, and where its results are when it is called by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from catena.core.device import Device, check_backend
from catena.core.device import devices as all_devices
from catena.core.jaxpr import ClosedJaxpr, Var
from catena.core.mesh import Mesh
from catena.core.named import NamedTuple
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import P
from catena.core.sharding import placement_of
from catena.core.source import function_name, function_place
from catena.core.staging import DebugInfo, hoist_constants, trace_to_jaxpr
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.tree_errors import flatten_axes
from catena.core.zeros import get_aval
from catena.lax.broadcasting import expand_dims
from catena.lax.reshaping import squeeze
from catena.parallel.primitive import shard_map_p
from catena.parallel.region import Region, inside
from catena.parallel.shard_map import region_for
from catena.transform import arguments
from catena.transform.arguments import as_int_tuple
from catena.transform.functions import check_function, wraps
from catena.transform.jit import JitFunction, Options
from catena.transform.placing import Placing
from catena.transform.vmap import canonical_dim, check_axes, mapped_leaf, mapped_size

UNNAMED = "_internal_pmap_axis_name"  # what JAX calls the axis of the mesh where the user gave no name


def placing(in_tree, out_tree, closed: ClosedJaxpr) -> Placing:
    """Where the results of a call of ``pmap``, of which ``closed`` consists, are."""
    eqn = next(eqn for eqn in closed.eqns if eqn.primitive is shard_map_p)
    where = dict(zip(eqn.outvars, eqn.own_params["out_specs"], strict=True))
    specs = [where.get(v, P()) if type(v) is Var else P() for v in closed.jaxpr.outvars]
    results = tuple(placement_of(NamedSharding(eqn.own_params["mesh"], spec)) for spec in specs)
    return Placing((None,) * in_tree.num_leaves, results, strip=True)


class OnDevices(NamedTuple):
    """Where a ``pmap`` over these devices runs, or over the first of all: it tells its jitted functions apart."""

    devices: tuple | None
    name: Any

    def with_another_result(self):
        """Refuse: what comes out of a function with states would have to be one for all devices."""
        raise NotImplementedError(
            "pmap: an argument is of a user's own type with a state (hijax.MutableHiType), which jit takes and pmap "
            "does not: pass the arrays that it is made of"
        )

    def placing(self, in_tree, out_tree, closed) -> Placing:
        return placing(in_tree, out_tree, closed)

    def mesh(self, size: int) -> Mesh:
        """The mesh of so many of them."""
        return Mesh(list(self.devices or all_devices())[:size], (self.name,))


# ---- the transformation


def pmap(
    fun: Callable,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable:
    """Run a function in parallel on several devices, one example on each.

    Arguments:
      fun: a function of trees of arrays; it may use collectives over ``axis_name``.
      axis_name: the name of the mapped axis.
      in_axes, out_axes: as for ``vmap``; of a result with the out axis ``None`` that of the first device is returned.
      static_broadcasted_argnums: positions of arguments that are compile-time constants, the same for all
        devices.
      devices: the devices to use; all by default. ``jax_num_cpu_devices`` says how many there are.
      backend: the platform; ``"cpu"`` or ``None``.
      axis_size: the size of the mapped axis, which arguments must have.
      donate_argnums: positions of arguments whose memory may be reused.
    Returns:
      The parallel function.
    Raises:
      ValueError: no argument has a mapped axis, sizes differ, there are not enough devices, or another mesh is in
        force, as inside of another ``pmap``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jnp.arange(1.0))
    Array([0.], dtype=float32)
    """
    check_function(fun)
    check_backend(backend)
    check_axes("pmap in_axes", in_axes)
    check_axes("pmap out_axes", out_axes)
    if isinstance(axis_name, (tuple, list)):
        raise ValueError(f"pmap maps over one axis, whose name is axis_name; got {axis_name!r}")
    if devices is not None and not len(devices):
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    places = OnDevices(None if devices is None else tuple(devices), UNNAMED if axis_name is None else axis_name)
    static = as_int_tuple(static_broadcasted_argnums, "static_broadcasted_argnums")
    donate = as_int_tuple(donate_argnums, "donate_argnums")
    count = len(devices) if devices is not None else None

    @wraps(fun)
    def mapped(*args, **kwargs):
        if any(i >= len(args) for i in static):
            given = f"{len(args)} positional argument{'s' if len(args) != 1 else ''}"
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={static} but was called with only {given}. "
                "All static broadcasted arguments must be passed positionally."
            )
        fixed = {i % len(args) for i in static}
        dynamic = tuple(x for i, x in enumerate(args) if i not in fixed)
        axes = in_axes
        if isinstance(in_axes, (tuple, list)):
            axes = tuple(a for i, a in enumerate(in_axes) if i not in fixed)

        def call(*given, **given_kwargs):
            rest = iter(given)
            return fun(*[x if i in fixed else next(rest) for i, x in enumerate(args)], **given_kwargs)

        available = len(all_devices(backend)) if count is None else count
        return bind_pmap(fun, call, dynamic, kwargs, places, axes, out_axes, axis_size, available)

    signature = arguments.signature_of(mapped) if static or donate else None
    numbers = [
        arguments.resolve_argnums(signature, n or None, None, k) for n, k in ((static, "static"), (donate, "donate"))
    ]
    arguments.check_disjoint(*numbers)
    compiled: Any = JitFunction(mapped, *numbers, options=Options(), places=places)
    compiled.__wrapped__ = fun
    return compiled


def bind_pmap(fun, call, args, kwargs, places: OnDevices, in_axes, out_axes, axis_size, available: int):
    """Trace ``call`` for one device and bind the primitive."""
    leaves, tree = tree_flatten((args, kwargs))
    leaves = [mapped_leaf(x) for x in leaves]
    dims = flatten_axes("pmap in_axes", tree, (in_axes, 0), tupled_args=True)
    if not any(d is not None and get_aval(x).ndim for x, d in zip(leaves, dims, strict=True)):
        raise ValueError("pmap requires at least one argument with a mapped axis.")
    dims = [canonical_dim(x, d, "pmap") for x, d in zip(leaves, dims, strict=True)]
    size = mapped_size(fun, args, kwargs, leaves, dims, axis_size, "pmap")
    if size > available:
        raise ValueError(
            f"pmap of {function_name(fun)} over {size} examples needs {size} devices, but only {available} are "
            "available; set jax_num_cpu_devices (CATENA_NUM_CPU_DEVICES) to have more virtual CPU devices, or use vmap"
        )
    if not size:
        raise ValueError(f"pmap of {function_name(fun)} over no examples has nothing to run on: pass one at least")
    region = Region(*region_for(places.mesh(size), frozenset(), "pmap"), False)
    result: dict = {}

    def body(*parts):
        examples = [x if d is None else squeeze(x, (d,)) for x, d in zip(parts, dims, strict=True)]
        call_args, call_kwargs = tree_unflatten(tree, examples)
        outs, result["tree"] = tree_flatten(call(*call_args, **call_kwargs))
        outs = [mapped_leaf(x) for x in outs]
        targets = flatten_axes("pmap out_axes", result["tree"], out_axes)
        targets = [None if t is None else t % (get_aval(x).ndim + 1) for t, x in zip(targets, outs, strict=True)]
        result["specs"] = tuple(spec_of(t, places.name) for t in targets)
        return [x if t is None else expand_dims(x, (t,)) for x, t in zip(outs, targets, strict=True)]

    avals = [part_of(get_aval(x), d) for x, d in zip(leaves, dims, strict=True)]
    with inside(region):
        jaxpr, consts = trace_to_jaxpr(body, avals, DebugInfo("pmap", function_place(fun)))
    outs = shard_map_p.bind(
        *consts,
        *leaves,
        check_vma=False,
        in_specs=(P(),) * len(consts) + tuple(spec_of(d, places.name) for d in dims),
        jaxpr=ClosedJaxpr(hoist_constants(jaxpr), ()),
        mesh=region.mesh,
        newly_manual_axes=frozenset(region.axes),
        out_specs=result["specs"],
    )
    return tree_unflatten(result["tree"], outs)


def spec_of(dim: int | None, name) -> P:
    """How an array with its mapped axis there lies over the mesh."""
    return P() if dim is None else P(*[None] * dim, name)


def part_of(aval, dim: int | None):
    """The type of what a device has of an argument."""
    return aval if dim is None else aval.without_axis(dim).with_axis(dim, 1)
