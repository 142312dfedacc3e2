"""``sparsify``: a function of arrays as one of sparse arrays. A trace, in whose values sparse arrays look dense.

Each operation on such a value is done by the rule of its primitive in ``rules.RULES``; what is not sparse goes on to
the trace around. Loops, branches and calls take sparse arrays for what they are: pytrees of their buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from catena import lax
from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.jaxpr import eval_jaxpr
from catena.core.leaks import running
from catena.core.source import function_place
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.trace import Trace, Tracer, escaped
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.zeros import get_aval
from catena.experimental.sparse.base import JAXSparse
from catena.experimental.sparse.bcoo import BCOO
from catena.experimental.sparse.bcsr import BCSR, bcsr_broadcast_in_dim, bcsr_concatenate, bcsr_dot_general
from catena.experimental.sparse.dense import todense_p
from catena.experimental.sparse.rules import RULES, is_sparse
from catena.transform.checkpoint import checkpoint, checkpoint_p
from catena.transform.functions import check_function, named_after
from catena.transform.jit import jit
from catena.transform.jit_primitive import jit_p
from catena.transform.memo import memoised


class SparseTracer(Tracer):
    """A sparse array that looks like a dense one to the function that ``sparsify`` runs."""

    __slots__ = ("value",)
    label = "SparseTracer"

    def __init__(self, trace: SparseTrace, *, spvalue: JAXSparse):
        super().__init__(trace, ShapedArray(spvalue.shape, spvalue.dtype))
        self.value = spvalue

    @property
    def spenv(self) -> tuple:
        """The buffers of the sparse array."""
        return self.value.tree_flatten()[0]

    def __repr__(self):
        return f"SparseTracer[{self.value}]"


class SparseTrace(Trace):
    """Hands operations on sparse values to the rules for them, which run under the parent trace."""

    __slots__ = ()
    name = "sparsify"

    def unpack(self, x):
        """The sparse array behind a tracer of this trace; anything else is as it is."""
        if type(x) is SparseTracer and x._trace is self:
            return x.value
        if isinstance(x, Tracer) and not x._trace.alive:
            raise escaped(x)
        return x

    def pack(self, x):
        return SparseTracer(self, spvalue=x) if is_sparse(x) else x

    def process(self, primitive, args, params):
        values = [self.unpack(x) for x in args]
        context.trace = self.parent
        try:
            if not any(map(is_sparse, values)):
                return primitive.bind(*values, **params)
            out = rule_of(primitive, values)(*values, **params)
        finally:
            context.trace = self
        return [self.pack(x) for x in out] if primitive.multiple_results else self.pack(out)


def rule_of(primitive, values) -> Callable:
    """What a primitive means for these operands.

    Raises:
      NotImplementedError: nothing.
    """
    kinds = {type(x) for x in values if is_sparse(x)}
    table = TABLES.get(kinds.pop(), {}) if len(kinds) == 1 else {}
    found = CALLS.get(primitive) or table.get(primitive)
    if found is None:
        shown = ", ".join(map(str, filter(is_sparse, values)))
        raise NotImplementedError(
            f"sparse rule for {primitive} is not implemented, for {shown}; where the result would be dense, "
            "sparse.todense(x) makes x so"
        )
    return found


def run_sparse(fun: Callable, values) -> list:
    """What a function of flat arguments returns for values of which some are sparse arrays, and look dense to it."""
    with running(SparseTrace(context.trace)) as trace:
        outs = fun(*[trace.pack(x) for x in values])
        outs = [trace.unpack(x) for x in outs]
        del trace
    return outs


# ---- loops, branches and calls


def body_of(closed) -> Callable:
    """A jaxpr as a function of values of which some are sparse arrays."""
    return lambda *values: run_sparse(partial(eval_jaxpr, closed.jaxpr, closed.consts), values)


@memoised
def jitted(closed, name: str):
    """The jitted function of a jaxpr of sparse arrays."""
    body = body_of(closed)
    body.__name__ = name
    return jit(body)


def _jit(*values, jaxpr, name, **params):
    return jitted(jaxpr, name)(*values)


def _checkpoint(*values, jaxpr, policy=None, prevent_cse=True, **params):
    return checkpoint(body_of(jaxpr), policy=policy, prevent_cse=prevent_cse)(*values)


def _cond(index, *operands, branches):
    return lax.switch(index, [body_of(b) for b in branches], *operands)


def unpromised(x):
    """A value that is carried around a loop: a sparse array without promises about its indices."""
    return type(x)(x.tree_flatten()[0], shape=x.shape) if is_sparse(x) else x


def _while(*values, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    first = cond_nconsts + body_nconsts
    cond_consts, body_consts, init = values[:cond_nconsts], values[cond_nconsts:first], values[first:]
    return lax.while_loop(
        lambda carry: body_of(cond_jaxpr)(*cond_consts, *carry)[0],
        lambda carry: [unpromised(x) for x in body_of(body_jaxpr)(*body_consts, *carry)],
        [unpromised(x) for x in init],
    )


def _scan(*values, jaxpr, num_consts, num_carry, length, reverse=False, unroll=1, **params):
    consts, init, xs = values[:num_consts], values[num_consts:][:num_carry], values[num_consts + num_carry :]
    for x in xs:
        if is_sparse(x) and not x.n_batch:
            raise NotImplementedError(f"scan over {x}: the axis scanned over must be a batch axis")

    def step(carry, x):
        outs = body_of(jaxpr)(*consts, *carry, *x)
        return [unpromised(y) for y in outs[:num_carry]], outs[num_carry:]

    carry, ys = lax.scan(step, [unpromised(x) for x in init], list(xs), length, reverse, unroll)
    return [*carry, *ys]


CALLS = {jit_p: _jit, checkpoint_p: _checkpoint, lax.cond_p: _cond, lax.while_p: _while, lax.scan_p: _scan}


def _bcsr_dot_general(x, y, *, dimension_numbers, precision=None, preferred_element_type=None):
    params = {"precision": precision, "preferred_element_type": preferred_element_type}
    return bcsr_dot_general(x, y, dimension_numbers=dimension_numbers, **params)


def _bcsr_broadcast_in_dim(x, *, shape, broadcast_dimensions, **params):
    return bcsr_broadcast_in_dim(x, shape=shape, broadcast_dimensions=broadcast_dimensions)


BCSR_RULES = {
    lax.dot_general_p: _bcsr_dot_general,
    lax.broadcast_in_dim_p: _bcsr_broadcast_in_dim,
    lax.concatenate_p: lambda *xs, dimension: bcsr_concatenate(xs, dimension=dimension),
    todense_p: lambda x, *, tree: x.todense(),
}
TABLES = {BCOO: RULES, BCSR: BCSR_RULES}


# ---- the transformation


def sparsify(f: Callable, use_tracer: bool = False) -> Callable:
    """A function of dense arrays as one of sparse arrays, dense ones and both.

    Arguments:
      f: a function of trees of arrays, made of functions of ``catena.numpy`` and ``catena.lax``.
      use_tracer: whether ``f`` is run on the values themselves. By default it is traced first, so that what it does
        with Python may not depend on values.
    Returns:
      A function that takes ``BCOO`` and ``BCSR`` arrays in the place of arrays. Its results are sparse where what it
      does keeps them so. It may be transformed further, and be called in functions that are.
    Raises:
      NotImplementedError: when called, for an operation whose result would be dense, or that is not known for sparse
        arrays.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> M = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparsify(lambda M, v: -jnp.square(M).T @ v)(M, jnp.ones(2))
    Array([-9., -4.], dtype=float32)
    """
    check_function(f)

    @named_after(f, "The form for sparse arrays")
    def sparsified(*args, **kwargs):
        leaves, tree = tree_flatten((args, kwargs), is_leaf=is_sparse)
        out_tree = None

        def flat(*xs):
            nonlocal out_tree
            args, kwargs = tree_unflatten(tree, xs)
            outs, out_tree = tree_flatten(f(*args, **kwargs), is_leaf=is_sparse)
            return outs

        if use_tracer:
            outs = run_sparse(flat, leaves)
        else:
            avals = [ShapedArray(x.shape, x.dtype) if is_sparse(x) else get_aval(x) for x in leaves]
            closed, outer = trace_to_closed_jaxpr(flat, avals, DebugInfo("sparsify", function_place(f)))
            outs = run_sparse(partial(eval_jaxpr, closed.jaxpr, closed.consts), [*outer, *leaves])
        return tree_unflatten(out_tree, outs)

    return sparsified
