"""Primitives as objects, with their parameters and their derivatives.

One primitive of the language, ``call_hi_primitive``, stands for all of them: its parameter ``_prim`` is the object,
whose methods its rules ask. Where a class does not override a method, there is no such rule.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from catena.core.axes import move_axis
from catena.core.primitive import Operation
from catena.core.trace import leaf_value
from catena.core.tree import tree_flatten, tree_map
from catena.core.tree_errors import broadcast_prefix
from catena.core.treedef import PyTreeDef
from catena.core.zeros import UndefinedPrimal, Zero, add_tangents, get_aval, instantiate
from catena.interpreters import mlir
from catena.transform.custom_vjp import ResidualTree, custom_vjp_linear_p, flatten_cotangents
from catena.transform.linearize import TapeTracer
from catena.transform.vmap import vmap


class VJPHiPrimitive:
    """A primitive with parameters; a subclass says what it means and, in reverse mode, what its derivative is.

    A subclass's ``__init__`` sets ``in_avals``, a tuple with a tree of types for each operand, ``out_aval``, the tree
    of types of the result, and ``params``, a dictionary of parameters, and then calls ``super().__init__()``, which
    makes attributes of the parameters. Of the methods it overrides those that are asked for. Objects of one class with
    equal types and parameters are equal.

    >>> import catena as jax
    >>> from catena.experimental import hijax
    >>> class Power(hijax.VJPHiPrimitive):
    ...     def __init__(self, x_type, n):
    ...         self.in_avals, self.out_aval, self.params = (x_type,), x_type, {"n": n}
    ...         super().__init__()
    ...
    ...     def expand(self, x):
    ...         return x**self.n
    ...
    ...     def vjp_fwd(self, nzs_in, x):
    ...         return self(x), x
    ...
    ...     def vjp_bwd_retval(self, res, outgrad):
    ...         return (outgrad * self.n * res ** (self.n - 1),)
    >>> cube = Power(jax.typeof(jax.numpy.float32(0)), 3)
    >>> cube(jax.numpy.float32(2)), jax.jit(jax.grad(cube))(jax.numpy.float32(2))
    (Array(8., dtype=float32), Array(12., dtype=float32))
    """

    in_avals: tuple
    out_aval: Any
    params: dict
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    effects: frozenset = frozenset()

    def __init__(self):
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"{type(self).__name__}: __init__ must set self.{name} before super().__init__()")
        in_types, self.in_tree = tree_flatten(self.in_avals)
        out_types, self.out_tree = tree_flatten(self.out_aval)
        self.in_avals_flat, self.out_avals_flat = tuple(in_types), tuple(out_types)
        vars(self).update(self.params)

    def __call__(self, *args) -> Any:
        """Apply the primitive.

        Arguments:
          args: a tree of arrays for each of ``in_avals``.
        Returns:
          A tree of arrays, as ``out_aval`` is one of types.
        Raises:
          TypeError: the trees are others.
        """
        leaves, tree = tree_flatten(args)
        if tree != self.in_tree:
            raise TypeError(f"{self!r} takes operands of the structure {self.in_tree}, got {tree}")
        leaves = [leaf_value(x) for x in leaves]
        self.check(*self.in_tree.unflatten([get_aval(x) for x in leaves]))
        return self.out_tree.unflatten(call_hi_primitive_p.bind(*leaves, _prim=self))

    def has(self, method: str) -> bool:
        """Whether the class says what a method does."""
        return getattr(type(self), method) is not getattr(VJPHiPrimitive, method)

    def _lacks(self, what: str, methods: str):
        raise NotImplementedError(f"{what} of {self!r}: {type(self).__name__} must have the method {methods}")

    # ---- what subclasses say

    def check(self, *arg_tys) -> None:
        """Raise where operands have types that the primitive does not take."""

    def expand(self, *args) -> Any:
        """What the primitive does, by functions of arrays."""
        self._lacks("the meaning", "expand")

    def vjp_fwd(self, nzs_in, /, *args) -> tuple:
        """The result, and residuals for the backward pass.

        Arguments:
          nzs_in: trees of booleans, as the operands: which of them are differentiated by.
          args: the operands.
        """
        self._lacks("the reverse derivative", "vjp_fwd")
        raise AssertionError

    def vjp_bwd_retval(self, res, outgrad, /) -> tuple:
        """The cotangents of the operands.

        Arguments:
          res: the residuals.
          outgrad: the cotangent of the result.
        """
        self._lacks("the reverse derivative", "vjp_bwd or vjp_bwd_retval")
        raise AssertionError

    def vjp_bwd(self, res, outgrad, /, *arg_accums) -> None:
        """Add the cotangents of the operands to where they are gathered.

        Arguments:
          res: the residuals.
          outgrad: the cotangent of the result.
          arg_accums: for each leaf of the operands an object with a method ``accum(cotangent)``.
        """
        found = flatten_cotangents(self.vjp_bwd_retval(res, outgrad), self.in_tree, self.in_avals_flat)
        for accumulator, ct in zip(self.in_tree.flatten_up_to(arg_accums), found, strict=True):
            accumulator.accum(ct)

    def jvp(self, primals, tangents) -> tuple:
        """The result and its tangent.

        Arguments:
          primals: the operands.
          tangents: theirs, ``Zero`` where they are known to be zero.
        """
        self._lacks("the forward derivative", "jvp")
        raise AssertionError

    def lin(self, nzs_in, *primals) -> tuple:
        """The result, and residuals for ``linearized``; the arguments are those of ``vjp_fwd``."""
        self._lacks("the linearization", "lin")
        raise AssertionError

    def linearized(self, residuals, *tangents) -> Any:
        """The tangent of the result, from the residuals of ``lin`` and the tangents of the operands."""
        self._lacks("the linearization", "linearized")

    def transpose(self, out_ct, *maybe_accums) -> None:
        """Add cotangents of operands in which the primitive is linear to where they are gathered.

        Arguments:
          out_ct: the cotangent of the result.
          maybe_accums: for each leaf of the operands its value, or an object with a method ``accum(cotangent)``.
        """
        self._lacks("the transpose", "transpose")

    def batch(self, axis_data, args, dims) -> tuple:
        """The result for all examples at once, and the positions of their axis, a tree as the result.

        Arguments:
          axis_data: the axis: its ``name`` and ``size``.
          args: the operands.
          dims: trees of positions, as the operands; None where there is no axis.
        """
        dims_out = self.batch_dim_rule(axis_data, dims)
        return Mapped(self, axis_data.size, dims, dims_out)(*args), dims_out

    def batch_dim_rule(self, axis_data, dims, /) -> Any:
        """The positions of the axis of the examples in the result, for those in the operands."""
        self._lacks("vmap", "batch or batch_dim_rule")

    # ---- as a value: equal where all is equal

    def _identity(self) -> tuple:
        return type(self), self.in_tree, self.in_avals_flat, self.out_tree, self.out_avals_flat, self.params

    def __eq__(self, other):
        return isinstance(other, VJPHiPrimitive) and self._identity() == other._identity()

    def __hash__(self):
        return hash((type(self), self.in_tree, self.in_avals_flat, tuple(sorted(self.params))))

    def __repr__(self):
        return f"{type(self).__name__}[{self.params}]"


class Mapped(VJPHiPrimitive):
    """A primitive for all examples at once: its methods under ``vmap``."""

    def __init__(self, prim: VJPHiPrimitive, size: int, dims, dims_out):
        self.leaf_dims = leaf_dims(prim.in_tree, dims)
        types = map(with_axis(size), prim.in_avals_flat, self.leaf_dims)
        outs = map(with_axis(size), prim.out_avals_flat, leaf_dims(prim.out_tree, dims_out))
        self.in_avals, self.out_aval = prim.in_tree.unflatten(types), prim.out_tree.unflatten(outs)
        self.params = {"prim": prim, "size": size, "dims": dims, "dims_out": dims_out}
        super().__init__()

    def mapped(self, function: Callable, dims, dims_out) -> Callable:
        """A function for all examples at once."""
        return vmap(function, in_axes=dims, out_axes=dims_out, axis_size=self.params["size"])

    def has(self, method: str) -> bool:
        return self.params["prim"].has(method)

    def expand(self, *args):
        return self.mapped(self.params["prim"].expand, self.params["dims"], self.params["dims_out"])(*args)

    def vjp_fwd(self, nzs_in, /, *args):
        forward = partial(self.params["prim"].vjp_fwd, nzs_in)
        return self.mapped(forward, self.params["dims"], (self.params["dims_out"], 0))(*args)

    def vjp_bwd_retval(self, res, outgrad, /):
        backward = partial(cotangents, self.params["prim"])
        found = self.mapped(backward, (0, self.params["dims_out"]), 0)(res, outgrad)
        placed = [ct.sum(0) if d is None else move_axis(ct, 0, d) for ct, d in zip(found, self.leaf_dims, strict=True)]
        return self.in_tree.unflatten(placed)

    def jvp(self, primals, tangents):
        dims, dims_out = self.params["dims"], self.params["dims_out"]
        return self.mapped(self.params["prim"].jvp, (dims, dims), (dims_out, dims_out))(
            primals, tree_map(instantiate, tangents)
        )

    def batch_dim_rule(self, axis_data, dims, /):
        return self.out_tree.unflatten([0] * self.out_tree.num_leaves)


def leaf_dims(tree: PyTreeDef, dims) -> list:
    """The positions of an axis, one for each leaf; None where there is no axis."""
    return broadcast_prefix(dims, tree.unflatten([0] * tree.num_leaves), is_leaf=lambda x: x is None)


def with_axis(size: int) -> Callable:
    """From a type and a position to the type with an axis there."""
    return lambda aval, d: aval if d is None else aval.with_axis(d, size)


# ---- the primitive of the language


class Gathered:
    """The cotangents of one operand, added up."""

    __slots__ = ("aval", "total")

    def __init__(self, aval):
        self.aval = aval.to_tangent_aval()
        self.total = Zero(self.aval)

    def accum(self, ct) -> None:
        """Add a cotangent; None is zero."""
        self.total = self.total if ct is None else add_tangents(self.total, ct)


def cotangents(prim: VJPHiPrimitive, residuals, ct) -> list:
    """The cotangents of the leaves of the operands."""
    gathered = [Gathered(aval) for aval in prim.in_avals_flat]
    prim.vjp_bwd(residuals, ct, *prim.in_tree.unflatten(gathered))
    return [instantiate(x.total) for x in gathered]


def _evaluate(*leaves, _prim: VJPHiPrimitive) -> list:
    outs, tree = tree_flatten(_prim.expand(*_prim.in_tree.unflatten(leaves)))
    if tree != _prim.out_tree:
        raise TypeError(f"expand of {_prim!r} returned {tree}, but out_aval is {_prim.out_tree}")
    return [leaf_value(x) for x in outs]


def _jvp(primals, tangents, *, _prim: VJPHiPrimitive):
    """Where a derivative is written down to be read backwards, by ``vjp_fwd``; else by ``jvp`` or ``lin``."""
    backwards = _prim.has("vjp_fwd") and (not _prim.has("jvp") or any(type(t) is TapeTracer for t in tangents))
    if backwards:
        return _jvp_by_vjp(primals, tangents, _prim)
    xs, ts = _prim.in_tree.unflatten(primals), _prim.in_tree.unflatten(tangents)
    if _prim.has("lin") and not _prim.has("jvp"):
        out, residuals = _prim.lin(perturbed(_prim, tangents), *xs)
        tangent = _prim.linearized(residuals, *ts)
    else:
        out, tangent = _prim.jvp(xs, ts)
    return tuple(
        [leaf_value(x) if type(x) is not Zero else x for x in tree_flatten(tree)[0]] for tree in (out, tangent)
    )


def values(tree) -> list:
    """The leaves of a tree that a user's method returned, zeros as they are."""
    return [x if type(x) is Zero else leaf_value(x) for x in tree_flatten(tree)[0]]


def _jvp_by_vjp(primals, tangents, prim: VJPHiPrimitive):
    out, residuals = prim.vjp_fwd(perturbed(prim, tangents), *prim.in_tree.unflatten(primals))
    outs = [leaf_value(x) for x in tree_flatten(out)[0]]
    kept, tree = ResidualTree.flatten(residuals)
    kept = [leaf_value(x) for x in kept]
    given = [t for t in tangents if type(t) is not Zero]
    tangents_out = custom_vjp_linear_p.bind(
        *kept,
        *given,
        num_residuals=len(kept),
        residual_tree=tree,
        bwd=Backward(prim),
        perturbed=tuple(type(t) is not Zero for t in tangents),
        out_avals=tuple(get_aval(x).to_tangent_aval() for x in outs),
        symbolic_zeros=False,
    )
    return outs, tangents_out


class Backward:
    """The backward pass of a primitive as a flat function."""

    __slots__ = ("prim",)
    __name__ = "vjp_bwd"

    def __init__(self, prim: VJPHiPrimitive):
        self.prim = prim

    def __call__(self, tree: ResidualTree, *residuals_and_cts):
        n = tree.num_leaves
        residuals = tree.unflatten(residuals_and_cts[:n])
        return cotangents(self.prim, residuals, self.prim.out_tree.unflatten(residuals_and_cts[n:]))


def perturbed(prim: VJPHiPrimitive, tangents) -> tuple:
    """Which operands are differentiated by, as trees."""
    return prim.in_tree.unflatten([type(t) is not Zero for t in tangents])


def _transpose(cts, *leaves, _prim: VJPHiPrimitive) -> list:
    gathered = [Gathered(x.aval) if type(x) is UndefinedPrimal else x for x in leaves]
    _prim.transpose(_prim.out_tree.unflatten([instantiate(ct) for ct in cts]), *_prim.in_tree.unflatten(gathered))
    return [x.total if type(x) is Gathered else None for x in gathered]


def _batch(axis, args, dims, *, _prim: VJPHiPrimitive):
    out, dims_out = _prim.batch(axis, _prim.in_tree.unflatten(args), _prim.in_tree.unflatten(dims))
    return [leaf_value(x) for x in tree_flatten(out)[0]], leaf_dims(_prim.out_tree, dims_out)


call_hi_primitive_p = Operation("call_hi_primitive")
call_hi_primitive_p.multiple_results = True
call_hi_primitive_p.def_abstract_eval(lambda *avals, _prim: _prim.out_avals_flat)
call_hi_primitive_p.effects = lambda avals, params: frozenset(params["_prim"].effects)
call_hi_primitive_p.def_impl(_evaluate)
call_hi_primitive_p.jvp, call_hi_primitive_p.transpose, call_hi_primitive_p.batch = _jvp, _transpose, _batch
mlir.register_lowering(call_hi_primitive_p, mlir.lower_fun(_evaluate))
