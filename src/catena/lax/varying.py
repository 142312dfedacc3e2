"""Values in a ``shard_map`` that are the same on all devices or each device's own, and the way from one to the other.

Types say over which axes of the mesh a value varies (``check_vma``). A value that is the same along an axis may be used
as one that varies: ``pvary``, which costs nothing. Read backwards, it adds the cotangents of all devices up:
``psum_invariant``, the sum that is the same on all. So neither is forgotten, nor done twice, in a backward pass.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from catena.core.context import context
from catena.core.evaluate import varying_axes
from catena.core.primitive import Primitive, as_bodies_say, in_order, made_varying, pcast_p, pvary_p
from catena.core.trace import leaf_value
from catena.core.tree import tree_map
from catena.core.zeros import Zero, get_aval, instantiate
from catena.lax.arithmetic import mul
from catena.lax.named_axes import INSIDE_ONLY, axis_tuple
from catena.lax.reductions import reduce_sum


def linear_jvp(primitive: Primitive) -> Callable:
    """The ``jvp`` rule of a linear primitive of one operand and one result."""

    def jvp(primals, tangents, **params):
        out = primitive.bind(primals[0], **params)
        t = tangents[0]
        return out, Zero.of_primal(out) if type(t) is Zero else primitive.bind(t, **params)

    return jvp


# ---- from the same on all devices to each device's own


def _pvary_batch(axis, args, dims, *, axes):
    rest = tuple(name for name in axes if name != axis.name)
    return (pvary_p.bind(args[0], axes=rest) if rest else args[0]), dims[0]


pvary_p.define(
    abstract=lambda aval, *, axes: aval,
    varying=lambda operands, /, *, axes: operands[0] | set(axes),
    evaluate=lambda x, *, axes: x,
    jvp=linear_jvp(pvary_p),
    transpose=lambda ct, x, *, axes: [psum_invariant_p.bind(instantiate(ct), axes=axes)],
    batch=_pvary_batch,
    lower=lambda b, x, *, axes: x,
)


# ---- sums that are still to be taken (see `core/terms.py`): the same numbers, of which types say something else

DUAL = {"varying": "varying", "unreduced": "reduced", "reduced": "unreduced"}  # what cotangents are


def _pcast_abstract(aval, *, axes, of, to):
    moved = {of: getattr(aval.mat, of) - set(axes), to: getattr(aval.mat, to) | set(axes)}
    return aval.update(manual_axis_type=aval.mat.update(**moved))


def _pcast_batch(axis, args, dims, *, axes, of, to):
    rest = tuple(name for name in axes if name != axis.name)
    return (pcast_p.bind(args[0], axes=rest, of=of, to=to) if rest else args[0]), dims[0]


pcast_p.define(
    abstract=_pcast_abstract,
    varying=as_bodies_say,
    evaluate=lambda x, **params: x,
    jvp=linear_jvp(pcast_p),
    transpose=lambda ct, x, *, axes, of, to: [pcast_p.bind(instantiate(ct), axes=axes, of=DUAL[to], to=DUAL[of])],
    batch=_pcast_batch,
    lower=lambda b, x, **params: x,
)


def kinds_along(aval, names: tuple) -> dict[str, tuple]:
    """What a type says of named axes: for each kind the names; those of which it says nothing are ``"invarying"``."""
    found: dict[str, tuple] = {}
    for name in names:
        kind = next((k for k in DUAL if name in getattr(aval.manual_axis_type, k)), "invarying")
        found[kind] = (*found.get(kind, ()), name)
    return found


def numbers(operation: str, *avals) -> tuple:
    """The types of operands that can be added up or compared.

    Raises:
      TypeError: one is of random keys.
    """
    for aval in avals:
        if aval.extended:
            raise TypeError(
                f"{operation} does not accept dtype {aval.dtype}: random keys can be sent and gathered only"
            )
    return avals


def _invariant_batch(axis, args, dims, *, axes):
    x, dim = args[0], dims[0]
    if axis.name in axes:
        size = np.asarray(axis.size, get_aval(x).dtype)
        x, dim = (mul(x, size) if dim is None else reduce_sum(x, (dim,))), None
    rest = tuple(name for name in axes if name != axis.name)
    return (psum_invariant_p.bind(x, axes=rest) if rest else x), dim


psum_invariant_p: Primitive = Primitive(
    "psum_invariant",
    axis_names=lambda params: params["axes"],
    abstract=lambda aval, *, axes: numbers("psum", aval)[0],
    varying=lambda operands, /, *, axes: operands[0] - set(axes),
    evaluate=INSIDE_ONLY,
    transpose=lambda ct, x, *, axes: [pvary_p.bind(instantiate(ct), axes=axes)],
    batch=_invariant_batch,
    lower=INSIDE_ONLY,
)
psum_invariant_p.jvp = linear_jvp(psum_invariant_p)


# ---- operands of collectives


def typed_names(names: tuple) -> tuple:
    """Those of the named axes over which types say whether values vary."""
    return tuple(name for name in names if name in context.typed_axes)


def entering(x, names: tuple):
    """``x``, the operand of a collective along these axes, varying over them."""
    x = leaf_value(x)
    missing = set(typed_names(names)) - varying_axes(get_aval(x))
    return pvary_p.bind(x, axes=in_order(missing)) if missing else x


def all_or_none(x, names: tuple, what: str):
    """``entering`` for those that take a value that varies over all of the axes, or over none.

    Raises:
      ValueError: it varies over some of them.
    """
    x, typed = leaf_value(x), typed_names(names)
    kinds = kinds_along(get_aval(x), typed)
    if len(kinds) > 1:
        varies = in_order(kinds.get("varying", ()) or kinds.get("unreduced", ()))
        raise ValueError(
            f"{what} over the axes {names} takes a value that varies over all of them or over none, and this one, of "
            f"type {get_aval(x).str_short()}, varies over {varies} only; "
            "jax.lax.pcast(x, axis_name, to='varying') makes it vary over the others"
        )
    if "unreduced" in kinds:
        x = pcast_p.bind(x, axes=typed, of="unreduced", to="varying")
    return entering(x, names)


def pcast(x, axis_name, *, to: str):
    """Say something else in the type of a value: that it varies over named axes of a mesh, although it is the same
    along them; that it is a term of a sum over them (unreduced), or that its cotangent is (reduced).

    Inside ``jax.shard_map`` with ``check_vma``, where types say it; elsewhere it changes nothing.

    Arguments:
      x: a tree of arrays.
      axis_name: the name of an axis, or a tuple of names.
      to: ``"varying"``, of what is the same along the axes or reduced; ``"reduced"``, of what is the same;
        ``"unreduced"``, of what varies.
    Returns:
      The same values. The gradient of what was the same along the axes is the sum over them.
    Raises:
      ValueError: ``x`` is of another kind, or there is none of this name. NameError: no such axis is in scope.

    >>> import catena as jax, catena.numpy as jnp
    >>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> f = lambda x: jax.typeof(jax.lax.pcast(x, "i", to="varying")).str_short()
    >>> seen = []
    >>> jax.shard_map(lambda x: seen.append(f(x)), mesh=mesh, in_specs=jax.P(), out_specs=jax.P())(jnp.ones(2))
    >>> seen
    ['float32[2]{V:i}']
    """
    if to not in DUAL:
        raise ValueError(f"pcast: `to` must be one of {', '.join(map(repr, DUAL))}, got {to!r}")
    names = axis_tuple(axis_name)
    return tree_map(lambda leaf: cast_one(leaf_value(leaf), typed_names(names), to), x)


CASTS = {("invarying", "varying"), ("invarying", "reduced"), ("varying", "unreduced"), ("reduced", "varying")}


def cast_one(x, names: tuple, to: str):
    kinds = kinds_along(get_aval(x), names)
    if len(kinds) > 1:
        return all_or_none(x, names, "jax.lax.pcast")  # raises
    for of in kinds:  # one, or none where types say nothing
        if (of, to) not in CASTS:
            raise ValueError(
                f"pcast(to={to!r}): the value is {of} over {names} already, {get_aval(x).str_short()}; what is the "
                "same or reduced can vary, what is the same can be reduced, and what varies can be unreduced"
            )
        if of == "invarying":
            x, of = made_varying(x, frozenset(names)), "varying"
        x = x if of == to else pcast_p.bind(x, axes=in_order(names), of=of, to=to)
    return x
