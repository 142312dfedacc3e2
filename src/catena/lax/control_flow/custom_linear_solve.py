"""``custom_linear_solve``: a solver of a linear system whose derivatives are given by the system, not by its steps.

With ``A(x) = b`` the derivative is ``A(dx) = db - dA(x)``: another system with the same matrix, solved by the
same solver; and the transpose of solving with ``A`` is solving with the transpose of ``A``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catena.core.axes import at_front
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.named import NamedTuple
from catena.core.primitive import Primitive
from catena.core.tree import tree_unflatten, treedef_children, treedef_tuple
from catena.core.zeros import Zero, add_tangents, get_aval, instantiate, is_undefined_primal
from catena.lax.arithmetic import neg_p
from catena.lax.control_flow import common
from catena.lax.control_flow.common import either, split
from catena.transform.batch import batch_jaxpr, move_to_front
from catena.transform.jit_primitive import jaxpr_axis_names
from catena.transform.jvp import jvp_jaxpr
from catena.transform.memo import memoised
from catena.transform.transpose import transpose_jaxpr

# ---- the primitive


class LinearSolve(NamedTuple):
    """Something for each function of a linear solve; the last two may be missing where nothing is transposed."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transpose(self) -> LinearSolve:
        """The same for the transposed system."""
        return LinearSolve(self.vecmat, self.matvec, self.transpose_solve, self.solve)

    def __repr__(self):
        return f"LinearSolve({', '.join(f'{name}={x}' for name, x in self._asdict().items())})"


def _split(args, const_lengths):
    """The constants of each function and the right-hand side."""
    *groups, b = split(args, *const_lengths)
    return LinearSolve(*groups), b


def _abstract(*avals, const_lengths, jaxprs):
    return jaxprs.solve.out_avals


def _evaluate(*args, const_lengths, jaxprs):
    consts, b = _split(args, const_lengths)
    return eval_jaxpr(jaxprs.solve.jaxpr, jaxprs.solve.consts, *consts.solve, *b)


def _lower(builder, *args, const_lengths, jaxprs):
    consts, b = _split(args, const_lengths)
    return builder.call(jaxprs.solve, [*consts.solve, *b])


def _jvp(primals, tangents, *, const_lengths, jaxprs):
    params = {"const_lengths": const_lengths, "jaxprs": jaxprs}
    consts, b = _split(primals, const_lengths)
    consts_dot, b_dot = _split(tangents, const_lengths)
    outs = linear_solve_p.bind(*primals, **params)
    x, aux = split(outs, len(b))
    rhs = b_dot
    nonzeros = tuple(type(t) is not Zero for t in consts_dot.matvec)
    if any(nonzeros):
        derivative, _ = jvp_jaxpr(jaxprs.matvec, nonzeros + (False,) * len(x), True)
        given = [t for t in consts_dot.matvec if type(t) is not Zero]
        product = eval_jaxpr(derivative.jaxpr, derivative.consts, *consts.matvec, *x, *given)[len(x) :]
        rhs = [add_tangents(t, neg_p.bind(p)) for t, p in zip(b_dot, product, strict=True)]
    aux_dot = [Zero.of_primal(a) for a in aux]
    if all(type(t) is Zero for t in rhs):
        return outs, [*[Zero.of_primal(v) for v in x], *aux_dot]
    flat_consts = [c for group in consts for c in group]
    x_dot = linear_solve_p.bind(*flat_consts, *[instantiate(t) for t in rhs], **params)[: len(x)]
    return outs, [*x_dot, *aux_dot]


def _transpose(cts, *args, const_lengths, jaxprs):
    consts, b = _split(args, const_lengths)
    if jaxprs.transpose_solve is None:
        raise TypeError("transpose_solve required for backwards mode automatic differentiation of custom_linear_solve")
    if not all(is_undefined_primal(x) for x in b):
        raise TypeError("custom_linear_solve is linear in all of its right-hand side, or in none of it")
    ct_x = [instantiate(ct) for ct in cts[: len(b)]]
    operands = [c for group in consts.transpose() for c in group]
    params = {"const_lengths": const_lengths.transpose(), "jaxprs": jaxprs.transpose()}
    ct_b = linear_solve_p.bind(*operands, *ct_x, **params)[: len(b)]
    return [*[None] * (len(args) - len(b)), *ct_b]


def _batch(axis, args, dims, *, const_lengths, jaxprs):
    moved, mapped = move_to_front(axis, args, dims)
    consts_m, b_m = _split(mapped, const_lengths)
    batched, x_m, aux_m = batched_functions(jaxprs.solve, jaxprs, axis, tuple(map(tuple, consts_m)), tuple(b_m))
    consts, b = _split(moved, const_lengths)
    b = [at_front(axis.size, v, 0 if m else None) if m_all else v for v, m, m_all in zip(b, b_m, x_m, strict=True)]
    operands = [c for group in consts for c in group]
    outs = linear_solve_p.bind(*operands, *b, const_lengths=const_lengths, jaxprs=batched)
    return outs, [0 if m else None for m in [*x_m, *aux_m]]


@memoised
def batched_functions(first, jaxprs: LinearSolve, axis, consts_m: tuple, b_m: tuple):
    """The four functions over a mapped axis; which parts of the solution, and of the auxiliary results, are mapped.

    Right-hand side and solution are mapped in the same components in all four.
    """
    consts_m = LinearSolve(*consts_m)
    x_m = tuple(b_m)
    n = len(x_m)
    while True:
        before = x_m
        for closed, flags in zip(jaxprs, consts_m, strict=True):
            if closed is not None:
                extra = len(closed.out_avals) - n
                _, out_m = batch_jaxpr(closed, axis, tuple(flags) + x_m, x_m + (False,) * extra)
                x_m = either(x_m, out_m[:n])
        if x_m == before:
            break
    made, aux_m = [], ()
    for name, closed, flags in zip(LinearSolve._fields, jaxprs, consts_m, strict=True):
        if closed is None:
            made.append(None)
            continue
        extra = len(closed.out_avals) - n
        batched, out_m = batch_jaxpr(closed, axis, tuple(flags) + x_m, x_m + (False,) * extra)
        made.append(batched)
        if name == "solve":
            aux_m = out_m[n:]
    return LinearSolve(*made), x_m, aux_m


def _present(params) -> list[ClosedJaxpr]:
    return [j for j in params["jaxprs"] if j is not None]


linear_solve_p = Primitive(
    "custom_linear_solve",
    multiple_results=True,
    takes_arrays=True,
    effects=lambda avals, params: frozenset().union(*[j.effects for j in _present(params)]),
    axis_names=lambda params: tuple(dict.fromkeys(n for j in _present(params) for n in jaxpr_axis_names(j))),
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
)


# ---- the function


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable, Any], Any],
    transpose_solve: Callable[[Callable, Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve ``matvec(x) = b`` by ``solve(matvec, b)``, differentiable through the system and not through the solver.

    Arguments:
      matvec: a linear function from trees like ``b`` to trees like ``b``, invertible.
      b: the right-hand side: a tree of arrays.
      solve: from a linear function and a right-hand side to the solution; its steps are not differentiated.
      transpose_solve: ``(vecmat, b) -> x``, which solves with the transposed function; for reverse mode.
      symmetric: whether ``matvec`` is its own transpose; then ``solve`` serves for both, if there is no
        ``transpose_solve``.
      has_aux: whether ``solve`` and ``transpose_solve`` return ``(solution, auxiliary data)``.
    Returns:
      The solution, a tree like ``b``; with ``has_aux`` the pair ``(solution, auxiliary data)``.
    Raises:
      ValueError: ``matvec`` or ``solve`` returns other shapes than those of ``b``.
      TypeError: they return another structure; or, in reverse mode, there is no ``transpose_solve``.

    >>> import catena.lax as lax, numpy as np
    >>> lax.custom_linear_solve(lambda x: 2.0 * x, np.ones(2), lambda matvec, b: b / 2.0).tolist()
    [0.5, 0.5]
    """
    leaves, tree = common.flatten_values(b)
    in_tree, avals = treedef_tuple((tree,)), [get_aval(x) for x in leaves]
    what = "custom_linear_solve"
    apply_matvec = common.trace_body(matvec, in_tree, avals, what)
    check_like_b("matvec", apply_matvec.out_tree, apply_matvec.out_avals, tree, avals)
    apply_solve = trace_solve(lambda rhs: solve(matvec, rhs), "solve", in_tree, tree, avals, has_aux)
    vecmat = transposed_solve = None
    if symmetric:
        vecmat, transposed_solve = apply_matvec, apply_solve
    if transpose_solve is not None:
        vecmat = vecmat or transposed_body(apply_matvec, avals)
        call = lambda rhs: transpose_solve(caller(vecmat, tree), rhs)  # noqa: E731
        transposed_solve = trace_solve(call, "transpose_solve", in_tree, tree, avals, has_aux)
    bodies = LinearSolve(apply_matvec, vecmat, apply_solve, transposed_solve)
    consts = [body.consts if body is not None else [] for body in bodies]
    outs = linear_solve_p.bind(
        *[c for group in consts for c in group], *leaves,
        const_lengths=LinearSolve(*map(len, consts)),
        jaxprs=LinearSolve(*[body.jaxpr if body is not None else None for body in bodies]),
    )  # fmt: skip
    return tree_unflatten(apply_solve.out_tree, outs)


def trace_solve(call, name: str, in_tree, tree, avals, has_aux: bool):
    """The traced solver, its results checked."""
    body = common.trace_body(call, in_tree, avals, "custom_linear_solve")
    out_tree, out_avals = body.out_tree, body.out_avals
    if has_aux:
        children = treedef_children(out_tree)
        if len(children) != 2:
            raise TypeError(f"custom_linear_solve: with has_aux, {name} must return a pair, got {out_tree}")
        out_tree = children[0]
        out_avals = out_avals[: out_tree.num_leaves]
    check_like_b(name, out_tree, out_avals, tree, avals)
    return body


def check_like_b(name: str, out_tree, out_avals, tree, avals):
    """Raise where a function does not return a tree like the right-hand side."""
    shapes, expected = [a.shape for a in out_avals], [a.shape for a in avals]
    if shapes != expected:
        raise ValueError(f"{name}() output shapes must match b, got {shapes} and {expected}")
    if out_tree != tree:
        raise TypeError(f"{name}() output must have the structure of b, {tree}, got {out_tree}")


def transposed_body(body: common.Body, avals) -> common.Body:
    """The transpose of a linear body; it closes over the same values."""
    linear = (False,) * len(body.consts) + (True,) * len(avals)
    backward, nonzero = transpose_jaxpr(body.jaxpr, linear, (False,) * len(avals))
    return common.Body(with_all_outputs(backward, nonzero, tuple(avals)), body.consts, body.out_tree)


@memoised
def with_all_outputs(closed: ClosedJaxpr, made: tuple, avals: tuple) -> ClosedJaxpr:
    """The jaxpr with zeros for the results that it does not make."""
    if all(made):
        return closed

    def fun(*args):
        outs = iter(eval_jaxpr(closed.jaxpr, closed.consts, *args))
        return [next(outs) if m else instantiate(Zero(a)) for m, a in zip(made, avals, strict=True)]

    return common.retraced(fun, closed.in_avals, closed)


def caller(body: common.Body, tree):
    """A traced body as a function of trees."""

    def call(x):
        leaves, _ = common.flatten_values(x)
        return tree_unflatten(tree, eval_jaxpr(body.jaxpr.jaxpr, body.jaxpr.consts, *body.consts, *leaves))

    return call
