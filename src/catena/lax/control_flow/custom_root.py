"""``custom_root``: a solver of equations whose derivative is given by the implicit function theorem.

Where ``f(x, m) = 0`` defines ``x`` as a function of ``m``, its derivative solves the linear system
``df/dx(dx) = -df/dm(dm)`` at the root, however the root was found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catena.core.jaxpr import eval_jaxpr
from catena.core.tree import tree_unflatten, treedef_children, treedef_tuple
from catena.core.zeros import Zero, get_aval, instantiate
from catena.lax.arithmetic import neg_p
from catena.lax.control_flow import common
from catena.lax.control_flow.custom_linear_solve import custom_linear_solve
from catena.transform.custom_jvp import custom_jvp
from catena.transform.grad import jvp, linearize


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable, Any], Any],
    tangent_solve: Callable[[Callable, Any], Any],
    has_aux: bool = False,
) -> Any:
    """Find ``x`` with ``f(x) = 0``, differentiable in what ``f`` closes over.

    Arguments:
      f: a function from trees like ``initial_guess`` to trees like it.
      initial_guess: where the solver begins; the root does not depend on it.
      solve: ``(f, initial_guess) -> root``; its steps are not differentiated.
      tangent_solve: ``(g, y) -> x`` with ``g(x) = y``, for the linear function ``g``, the derivative of ``f``
        at the root. For scalars: ``lambda g, y: y / g(1.0)``.
      has_aux: whether ``solve`` returns ``(root, auxiliary data)``.
    Returns:
      The root; with ``has_aux`` the pair ``(root, auxiliary data)``.
    Raises:
      TypeError: ``f`` or ``solve`` returns another structure than that of ``initial_guess``.

    >>> import catena as jax, catena.lax as lax
    >>> newton = lambda f, x: lax.fori_loop(0, 8, lambda i, x: x - f(x) / (2.0 * x), x)
    >>> root = lambda a: lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> root(4.0), jax.grad(root)(4.0)
    (Array(2., dtype=float32, weak_type=True), Array(0.25, dtype=float32, weak_type=True))
    """
    leaves, tree = common.flatten_values(initial_guess)
    in_tree, avals = treedef_tuple((tree,)), [get_aval(x) for x in leaves]
    f_body = common.trace_body(f, in_tree, avals, "custom_root")
    check_structure("f", f_body.out_tree, tree)
    solve_body = common.trace_body(lambda guess: solve(f, guess), in_tree, avals, "custom_root")
    root_tree = solve_body.out_tree
    if has_aux:
        children = treedef_children(root_tree)
        if len(children) != 2:
            raise TypeError(f"custom_root: with has_aux, solve must return a pair, got {root_tree}")
        root_tree = children[0]
    check_structure("solve", root_tree, tree)
    return implicit(f_body, solve_body, tangent_solve, tree)(f_body.consts, solve_body.consts, leaves)


def check_structure(name: str, found, expected):
    """Raise where a function does not return a tree like the initial guess."""
    if found != expected:
        raise TypeError(f"custom_root: {name}() must return a tree like initial_guess, {expected}, got {found}")


def implicit(f_body: common.Body, solve_body: common.Body, tangent_solve, tree):
    """The root as a function of what ``f`` and ``solve`` close over and of the guess, with its derivative."""
    n = tree.num_leaves

    def value_of_f(consts, x):
        return eval_jaxpr(f_body.jaxpr.jaxpr, f_body.jaxpr.consts, *consts, *x)

    def custom_root(f_consts, solve_consts, guess):
        outs = eval_jaxpr(solve_body.jaxpr.jaxpr, solve_body.jaxpr.consts, *solve_consts, *guess)
        return tree_unflatten(solve_body.out_tree, outs)

    root = custom_jvp(custom_root)

    @root.defjvp
    def root_jvp(primals, tangents):
        f_consts, solve_consts, guess = primals
        out = root(f_consts, solve_consts, guess)
        leaves, _ = common.flatten_values(out)
        x, aux = leaves[:n], leaves[n:]
        _, moved = jvp(lambda *consts: value_of_f(consts, x), f_consts, tangents[0])
        _, derivative = linearize(lambda *x: value_of_f(f_consts, x), *x)
        in_trees = lambda flat: tree_unflatten(tree, flat)  # noqa: E731
        along = lambda dx: in_trees(derivative(*common.flatten_values(dx)[0]))  # noqa: E731
        rhs = in_trees([neg_p.bind(t) for t in moved])
        dx = custom_linear_solve(along, rhs, tangent_solve, tangent_solve)
        zeros = [instantiate(Zero.of_primal(a)) for a in aux]
        dots = [*common.flatten_values(dx)[0], *zeros]
        return out, tree_unflatten(solve_body.out_tree, dots)

    return root
