"""Reduction by any function: a fold of scalars, written as a jaxpr, along axes of one or several arrays.

The function is taken to be associative, as in XLA: elements are combined in pairs, in order, by a tree.
"""

import functools

import numpy as np

from catena.core import casts, dtypes
from catena.core.array import as_array, make_array, typed_array
from catena.core.aval import ShapedArray
from catena.core.axes import at_front
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.primitive import Primitive
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.trace import Tracer
from catena.core.traceback import behind_boundary
from catena.core.tree import tree_flatten, tree_structure, tree_unflatten
from catena.core.zeros import get_aval
from catena.lax import arithmetic, bitwise, native, reductions
from catena.lax.elementwise import NOT_LINEAR
from catena.lax.join import concatenate
from catena.lax.reductions import check_axes, check_initial_value, initial_value, kept_axes, reduced_axis_first
from catena.lax.shape import broadcast_in_dim, reshape, skip, slice_in_dim
from catena.lax.structure import as_ints, told
from catena.transform.batch import Axis, batch_flat
from catena.transform.canonical import canonical
from catena.transform.jvp import jvp_flat

# ------------------------------------------------------------------------------------------------------------
# Monoids: functions that have a reduction of their own

_MONOIDS = {
    arithmetic.add: (reductions.reduce_sum_p, lambda dtype: 0),
    arithmetic.mul: (reductions.reduce_prod_p, lambda dtype: 1),
    arithmetic.max: (reductions.reduce_max_p, reductions.lowest),
    arithmetic.min: (reductions.reduce_min_p, reductions.highest),
    bitwise.bitwise_and: (reductions.reduce_and_p, lambda dtype: True if dtype == dtypes.BOOL else -1),
    bitwise.bitwise_or: (reductions.reduce_or_p, lambda dtype: 0),
    bitwise.bitwise_xor: (reductions.reduce_xor_p, lambda dtype: 0),
}
_REDUCTION_OF = {
    arithmetic.add_p: reductions.reduce_sum_p,
    arithmetic.mul_p: reductions.reduce_prod_p,
    arithmetic.max_p: reductions.reduce_max_p,
    arithmetic.min_p: reductions.reduce_min_p,
    bitwise.and_p: reductions.reduce_and_p,
    bitwise.or_p: reductions.reduce_or_p,
    bitwise.xor_p: reductions.reduce_xor_p,
}


def _named_monoid(computation, dtype, init):
    """The reduction that ``computation`` from the value ``init`` is; None where it is not one, or where the value is
    not known while tracing.
    """
    found = _MONOIDS.get(behind_boundary(computation))
    if found is None or isinstance(init, Tracer):
        return None
    reduction, identity = found
    given, needed = (casts.convert(np.asarray(x), dtype) for x in (init, identity(dtype)))
    return reduction if given == needed else None


def _monoid(jaxpr: ClosedJaxpr):
    """The primitive that the body of a fold consists of, if it is one of the monoids'."""
    inner = jaxpr.jaxpr
    if len(inner.eqns) != 1 or len(inner.invars) != 2:
        return None
    (eqn,) = inner.eqns
    if eqn.primitive not in _REDUCTION_OF or inner.outvars != eqn.outvars or set(eqn.invars) != set(inner.invars):
        return None
    return eqn.primitive


# ------------------------------------------------------------------------------------------------------------
# Rules


def _abstract(*args, jaxpr, dimensions):
    operands = args[: len(args) // 2]
    return [
        ShapedArray([n for i, n in enumerate(x.shape) if i not in dimensions], x.dtype, x.weak_type) for x in operands
    ]


def _fold(*args, jaxpr, dimensions):
    """The reduction, by operations on whole arrays."""
    operands, inits = args[: len(args) // 2], args[len(args) // 2 :]
    primitive = _monoid(jaxpr)
    if primitive is not None:
        return [primitive.bind(inits[0], _REDUCTION_OF[primitive].bind(operands[0], axes=dimensions))]
    shape = get_aval(operands[0]).shape
    kept = tuple(shape[i] for i in kept_axes(len(shape), dimensions))
    rows = [reduced_axis_first(x, dimensions) for x in operands]
    inits = [broadcast_in_dim(i, kept, ()) for i in inits]
    if not get_aval(rows[0]).shape[0]:
        return inits
    while (n := get_aval(rows[0]).shape[0]) > 1:
        even = n - n % 2
        pairs = [slice_in_dim(x, start, even, 2) for start in (0, 1) for x in rows]
        combined = _elementwise(jaxpr, pairs)
        rest = [slice_in_dim(x, even, n) for x in rows]
        rows = [concatenate([c, r], 0) for c, r in zip(combined, rest, strict=True)] if even < n else combined
    return _elementwise(jaxpr, [*inits, *[reshape(x, kept) for x in rows]])


def _elementwise(jaxpr: ClosedJaxpr, args) -> list:
    """The scalar function applied to each element of arrays of one shape."""
    shape = get_aval(args[0]).shape
    size = int(np.prod(shape, dtype=np.int64))
    body = functools.partial(eval_jaxpr, jaxpr.jaxpr, jaxpr.consts)
    flat = [reshape(x, (size,)) for x in args]
    outs, dims = batch_flat(body, Axis(None, size), flat, [0] * len(flat))
    return [reshape(at_front(size, x, d), shape) for x, d in zip(outs, dims, strict=True)]


def _evaluate(*args, **params):
    arrays = [as_array(x) for x in args]
    avals = _abstract(*[x.aval for x in arrays], **params)
    outs = _evaluate_values(*[x._value for x in arrays], **params)
    return [typed_array(x, aval) for x, aval in zip(outs, avals, strict=True)]


def _fold_values(*values, **params):
    return [x._value for x in _fold(*map(make_array, values), **params)]


def _jvp(primals, tangents, **params):
    return jvp_flat(functools.partial(_fold, **params), primals, tangents)


def _batch(axis, args, dims, *, jaxpr, dimensions):
    n = len(args) // 2
    if all(d is None for d in dims[n:]):
        operands = [at_front(axis.size, x, d) for x, d in zip(args[:n], dims[:n], strict=True)]
        outs = reduce_p.bind(*operands, *args[n:], jaxpr=jaxpr, dimensions=skip(dimensions, 0))
        return outs, [0] * n
    fold = functools.partial(_fold, jaxpr=jaxpr, dimensions=dimensions)
    outs, out_dims = batch_flat(fold, axis, args, dims)
    return [at_front(axis.size, x, d) for x, d in zip(outs, out_dims, strict=True)], [0] * n


def _lower(b, *args, jaxpr, dimensions):
    n = len(args) // 2
    primitive = _monoid(jaxpr)
    if primitive is None:
        return b.reduce_general(args[:n], args[n:], dimensions, jaxpr)
    total = _REDUCTION_OF[primitive].lower(b, args[0], axes=dimensions)
    return [primitive.lower(b, args[1], total)]


reduce_p = Primitive(
    "reduce",
    multiple_results=True,
    takes_arrays=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batch=_batch,
    lower=_lower,
)
_evaluate_values = native.shaped(reduce_p, _fold_values)


# ------------------------------------------------------------------------------------------------------------
# Function


def reduce(operands, init_values, computation, dimensions, out_sharding=None):
    """Combine the elements of arrays along axes by a function.

    Arguments:
      operands: an array or a tree of arrays of one shape.
      init_values: for each of them the scalar to start from.
      computation: a function of two trees of scalars like ``init_values`` that returns as many of these dtypes, in a
        tree. It should be associative: in which order elements are combined is not said.
      dimensions: the axes to reduce, nonnegative.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      A tree like that which ``computation`` returns, of arrays like ``operands`` without those axes.
    Raises:
      ValueError: the trees, shapes or axes do not fit, or an initial value is not a scalar.
      TypeError: ``computation`` does not return what it is given.

    >>> import catena.lax as lax, numpy as np
    >>> lax.reduce(np.arange(1, 5), 1, lambda x, y: lax.mul(x, y), (0,)).item()
    24
    """
    if out_sharding is not None:
        return told(out_sharding, reduce, operands, init_values, computation, dimensions, None)
    xs, tree = tree_flatten(operands)
    inits, init_tree = tree_flatten(init_values)
    if tree != init_tree:
        raise ValueError(f"Operands must have the same tree structure as init_values: {tree} vs. {init_tree}")
    if not xs:
        raise ValueError("reduce found no operands")
    avals = [get_aval(x) for x in xs]
    dimensions = as_ints(dimensions, "reduce: dimensions")
    _check(avals, inits, dimensions)
    if len(xs) == 1:
        check_initial_value("reduce", inits[0], avals[0].dtype)
        if reduction := _named_monoid(computation, avals[0].dtype, inits[0]):
            return tree_unflatten(tree, [reduction.bind(xs[0], axes=dimensions)])
    inits = [initial_value("reduce", i, a.dtype) for i, a in zip(inits, avals, strict=True)]
    jaxpr, outer, out_tree = _trace(computation, tree, avals)
    if outer:
        raise ValueError(
            "reduce: computation must not close over traced values, but it reads "
            f"{', '.join(get_aval(x).str_short() for x in outer)}"
        )
    jaxpr = jaxpr if jaxpr.consts else canonical(jaxpr)
    return tree_unflatten(out_tree, reduce_p.bind(*xs, *inits, jaxpr=jaxpr, dimensions=dimensions))


def _check(avals, inits, dimensions):
    for aval in avals:
        check_axes("reduce", aval, dimensions)
    if any(a.shape != avals[0].shape for a in avals):
        raise ValueError(f"reduce found operands of different shapes: {[a.shape for a in avals]}")
    shapes = [get_aval(i).shape for i in inits]
    if any(shapes):
        raise ValueError(f"reduce found non-scalar initial value: {shapes}")


def _trace(computation, tree, avals):
    """The body as a closed jaxpr of scalars, the outer tracers that it reads, and the tree that it returns."""
    scalars = [ShapedArray((), a.dtype) for a in avals]
    n = len(scalars)
    trees = []

    def flat(*args):
        out = computation(tree_unflatten(tree, args[:n]), tree_unflatten(tree, args[n:]))
        outs, out_tree = tree_flatten(out)
        trees.append(out_tree)
        found = [get_aval(x) for x in outs]
        if [(f.shape, f.dtype) for f in found] != [(s.shape, s.dtype) for s in scalars]:
            raise TypeError(
                "reduce: computation must return what it is given, "
                f"{tree_unflatten(tree, [s.str_short() for s in scalars])}, "
                f"got {tree_unflatten(tree_structure(out), [f.str_short() for f in found])}"
            )
        return outs

    info = DebugInfo("reduce", getattr(computation, "__name__", repr(computation)))
    return *trace_to_closed_jaxpr(flat, scalars * 2, info), trees[0]
