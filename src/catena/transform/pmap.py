"""``pmap``: run a function on several devices at once, one example each.

The devices are virtual CPU devices of one processor, so the mapped axis is vectorised and compiled as a
whole; what the user sees is one example a device, with collectives between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from catena.core.context import extend_axis_env
from catena.core.device import Device, check_backend
from catena.core.device import devices as all_devices
from catena.core.jaxpr import ClosedJaxpr, Var, eval_jaxpr
from catena.core.mesh import Mesh
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import P
from catena.core.primitive import Primitive
from catena.core.sharding import placement_of
from catena.core.source import function_name, function_place
from catena.core.staging import DebugInfo, hoist_tracers, trace_to_jaxpr
from catena.core.structural import slice_p, squeeze_p
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.tree_errors import flatten_axes
from catena.core.zeros import get_aval
from catena.transform import arguments, interpreted
from catena.transform.arguments import as_int_tuple
from catena.transform.batch import Axis, batch_flat, match_axis
from catena.transform.execute import run_jaxpr
from catena.transform.functions import check_function, wraps
from catena.transform.jit import JitFunction, Options
from catena.transform.jit_primitive import jaxpr_axis_names, jit_p
from catena.transform.memo import memoised
from catena.transform.placing import Placing
from catena.transform.vmap import canonical_dim, check_axes, mapped_leaf, mapped_size

# ---- the primitive: a call of a jaxpr of one example, which knows where its arguments and results are mapped


@memoised
def vectorised(closed: ClosedJaxpr, axis: Axis, in_axes: tuple, out_axes: tuple) -> ClosedJaxpr:
    """The jaxpr of one example as a jaxpr of all of them, without named axes."""

    def fun(*args):
        outs, dims = batch_flat(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), axis, args, in_axes)
        return [placed(axis.size, d, t, x) for x, d, t in zip(outs, dims, out_axes, strict=True)]

    avals = [with_axis(a, d, axis.size) for a, d in zip(closed.in_avals, in_axes, strict=True)]
    jaxpr, consts = trace_to_jaxpr(fun, avals, closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts)


def placed(size: int, dim, target, x):
    """A result with its mapped axis at ``target``; where it is to have none, what the first device computed."""
    if target is not None or dim is None:
        return match_axis(size, dim, target, x)
    shape = get_aval(x).shape
    first = tuple(1 if i == dim else n for i, n in enumerate(shape))
    row = slice_p.bind(x, start_indices=(0,) * len(shape), limit_indices=first, strides=None)
    return squeeze_p.bind(row, dimensions=(dim,))


def with_axis(aval, dim, size: int):
    """The type of an argument or result with its mapped axis."""
    return aval if dim is None else aval.with_axis(dim, size)


def as_jit(params: dict) -> dict:
    """The parameters of the ``jit`` call that does the same."""
    axis = Axis(params["axis_name"], params["axis_size"], on_devices=True)
    return {
        "name": params["name"],
        "jaxpr": vectorised(params["jaxpr"], axis, params["in_axes"], params["out_axes"]),
    }


def _abstract(*avals, jaxpr, out_axes, axis_size, **params):
    return [with_axis(a, d, axis_size) for a, d in zip(jaxpr.out_avals, out_axes, strict=True)]


pmap_p: Primitive = Primitive(
    "pmap",
    multiple_results=True,
    takes_arrays=True,
    effects=lambda avals, params: params["jaxpr"].effects,
    axis_names=lambda params: tuple(n for n in jaxpr_axis_names(params["jaxpr"]) if n != params["axis_name"]),
    abstract=_abstract,
    evaluate=lambda *args, **params: run_jaxpr(as_jit(params)["jaxpr"], args, pmap_p, (), params["name"]),
    jvp=lambda primals, tangents, **params: jit_p.jvp(primals, tangents, **as_jit(params)),
    partial_eval=lambda tape, args, **params: jit_p.partial_eval(tape, args, **as_jit(params)),
    transpose=lambda cts, *args, **params: jit_p.transpose(cts, *args, **as_jit(params)),
    batch=lambda axis, args, dims, **params: jit_p.batch(axis, args, dims, **as_jit(params)),
    lower=lambda b, *operands, **params: b.call(as_jit(params)["jaxpr"], operands),
)
interpreted.calls[pmap_p] = lambda **params: interpreted.steps(as_jit(params)["jaxpr"])


UNNAMED = "_internal_pmap_axis_name"  # what JAX calls the axis of the mesh where the user gave no name


class OnDevices(NamedTuple):
    """Where the results of a ``pmap`` are: on each device its example, or the same on all."""

    devices: tuple | None

    def with_another_result(self):
        """Refuse: what comes out of a function with states would have to be one for all devices."""
        raise NotImplementedError(
            "pmap: an argument is of a user's own type with a state (hijax.MutableHiType), which jit takes and pmap "
            "does not: pass the arrays that it is made of"
        )

    def placing(self, in_tree, out_tree, closed) -> Placing:
        """The devices of the call of ``pmap`` that ``closed`` consists of."""
        eqn = next(eqn for eqn in closed.eqns if eqn.primitive is pmap_p)
        name, size = eqn.params["axis_name"], eqn.params["axis_size"]
        mesh = Mesh(list(self.devices or all_devices())[:size], (UNNAMED if type(name) is _UnnamedAxis else name,))
        splits = [P() if axis is None else P(*(None,) * axis, mesh.axis_names[0]) for axis in eqn.params["out_axes"]]
        where = dict(zip(eqn.outvars, splits, strict=True))
        specs = [where.get(v, P()) if type(v) is Var else P() for v in closed.jaxpr.outvars]
        results = tuple(placement_of(NamedSharding(mesh, spec)) for spec in specs)
        return Placing((None,) * in_tree.num_leaves, results, strip=True)


# ---- the transformation


class _UnnamedAxis:
    """The name of a mapped axis that the user did not name."""

    def __repr__(self):
        return "<unnamed axis>"


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
      axis_size: the size of the mapped axis, where no argument tells it.
      donate_argnums: positions of arguments whose memory may be reused.
    Returns:
      The parallel function.
    Raises:
      ValueError: where the mapped axis is larger than the number of devices.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jnp.arange(1.0))
    Array([0.], dtype=float32)
    """
    check_function(fun)
    check_backend(backend)
    check_axes("pmap in_axes", in_axes)
    check_axes("pmap out_axes", out_axes)
    if devices is not None and not len(devices):
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    name = _UnnamedAxis() if axis_name is None else axis_name
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
        return bind_pmap(fun, call, dynamic, kwargs, name, axes, out_axes, axis_size, available)

    signature = arguments.signature_of(mapped) if static or donate else None
    numbers = [
        arguments.resolve_argnums(signature, n or None, None, k) for n, k in ((static, "static"), (donate, "donate"))
    ]
    arguments.check_disjoint(*numbers)
    places = OnDevices(None if devices is None else tuple(devices))
    compiled: Any = JitFunction(mapped, *numbers, options=Options(), places=places)
    compiled.__wrapped__ = fun
    return compiled


def bind_pmap(fun, call, args, kwargs, name, in_axes, out_axes, axis_size, available: int):
    """Trace ``call`` for one example and bind the primitive."""
    leaves, tree = tree_flatten((args, kwargs))
    leaves = [mapped_leaf(x) for x in leaves]
    dims = flatten_axes("pmap in_axes", tree, (in_axes, 0), tupled_args=True)
    if axis_size is None and not any(d is not None and get_aval(x).ndim for x, d in zip(leaves, dims, strict=True)):
        raise ValueError("pmap requires at least one argument with a mapped axis.")
    dims = [canonical_dim(x, d, "pmap") for x, d in zip(leaves, dims, strict=True)]
    size = mapped_size(fun, args, kwargs, leaves, dims, axis_size, "pmap")
    if size > available:
        raise ValueError(
            f"pmap of {function_name(fun)} over {size} examples needs {size} devices, but only {available} are "
            "available; set jax_num_cpu_devices (CATENA_NUM_CPU_DEVICES) to have more virtual CPU devices, or use vmap"
        )
    result = {}

    def flat_fun(*xs):
        call_args, call_kwargs = tree_unflatten(tree, xs)
        outs, result["tree"] = tree_flatten(call(*call_args, **call_kwargs))
        return [mapped_leaf(x) for x in outs]

    avals = [without_axis(get_aval(x), d) for x, d in zip(leaves, dims, strict=True)]
    with extend_axis_env(name, size):
        jaxpr, consts = trace_to_jaxpr(flat_fun, avals, DebugInfo("pmap", function_place(fun)))
    closed, outer = hoist_tracers(jaxpr, consts)
    targets = flatten_axes("pmap out_axes", result["tree"], out_axes)
    targets = [None if t is None else t % (a.ndim + 1) for t, a in zip(targets, closed.out_avals, strict=True)]
    outs = pmap_p.bind(
        *outer,
        *leaves,
        name=function_name(fun),
        jaxpr=closed,
        axis_name=name,
        axis_size=size,
        in_axes=(None,) * len(outer) + tuple(dims),
        out_axes=tuple(targets),
    )
    return tree_unflatten(result["tree"], outs)


def without_axis(aval, dim):
    """The type of one example."""
    return aval if dim is None else aval.without_axis(dim)
