"""Optimizers as triples of functions: the first state, the next state, and the parameters of a state.

An optimizer is written for one array; ``optimizer`` makes it one of trees. States are opaque pytrees, which ``jit``
takes and returns; ``unpack_optimizer_state`` shows what is in them.

>>> import catena as jax, catena.numpy as jnp
>>> init, update, parameters = momentum(0.1, mass=0.9)
>>> loss = lambda p: jnp.sum((p["w"] - 3.0) ** 2)
>>> @jax.jit
... def step(i, state):
...     return update(i, jax.grad(loss)(parameters(state)), state)
>>> state = init({"w": jnp.zeros(2)})
>>> for i in range(200):
...     state = step(i, state)
>>> parameters(state)["w"].round(2)
Array([3., 3.], dtype=float32)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import catena.numpy as jnp
from catena.core.named import NamedTuple
from catena.core.namespace import shown as _shown
from catena.core.sequences import safe_map as map  # noqa: F401
from catena.core.sequences import safe_zip as zip  # noqa: A004
from catena.core.traceback import open_door as _open_door
from catena.core.tree import PyTreeDef, register_pytree_node, tree_flatten, tree_leaves, tree_map, tree_unflatten
from catena.core.tree_keys import FlattenedIndexKey

Array = Any
Params = Any  # a tree of arrays
State = Any  # a tree, as the optimizer makes it
Updates = Any  # a tree as the parameters: gradients
Step = int
InitFn = Callable[[Params], "OptimizerState"]
UpdateFn = Callable[[Step, Updates, "OptimizerState"], "OptimizerState"]
ParamsFn = Callable[["OptimizerState"], Params]
Schedule = Callable[[Step], float]


class Optimizer(NamedTuple):
    """The functions that make up an optimizer: ``init_fn(params) -> state``, ``params_fn(state) -> params`` and
    ``update_fn(i, gradients, state) -> state``.
    """

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


class OptimizerState(NamedTuple):
    """A state: the leaves of the state of each parameter, the tree of the parameters, and those of their states."""

    packed_state: tuple
    tree_def: PyTreeDef
    subtree_defs: tuple


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda trees, children: OptimizerState(children[0], *trees),
    lambda state: (((FlattenedIndexKey(0), state.packed_state),), (state.tree_def, state.subtree_defs)),
)


class JoinPoint:
    """Where the state of one parameter stands in an unpacked state: a leaf that holds a tree.

    Arguments:
      subtree: the state.
    """

    def __init__(self, subtree):
        self.subtree = subtree

    def __iter__(self):
        yield self.subtree


def optimizer(opt_maker: Callable[..., tuple[Callable, Callable, Callable]]) -> Callable[..., Optimizer]:
    """A decorator that makes an optimizer of one array an optimizer of trees.

    Arguments:
      opt_maker: a function that returns ``(init, update, get_params)`` of one array, each state a tree.
    Returns:
      A function with the same arguments that returns an ``Optimizer``.

    >>> @optimizer
    ... def descent(step_size):
    ...     return lambda x: x, lambda i, g, x: x - step_size * g, lambda x: x
    >>> init, update, parameters = descent(0.5)
    >>> parameters(update(0, {"a": 1.0}, init({"a": 2.0})))
    {'a': 1.5}
    """

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args, **kwargs) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        @functools.wraps(init)
        def tree_init(params):
            leaves, tree = tree_flatten(params)
            return pack([init(x) for x in leaves], tree)

        @functools.wraps(update)
        def tree_update(i, gradients, state: OptimizerState):
            leaves, tree = tree_flatten(gradients)
            before_update = unpacked(state)
            if tree != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the parameter tree "
                    f"structure with which it was initialized: parameter tree {state.tree_def} and grad tree {tree}."
                )
            states = [update(i, g, s) for g, s in zip(leaves, before_update)]
            new = pack(states, tree)
            for before, after in zip(state.subtree_defs, new.subtree_defs):
                if before != after:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match its input "
                        f"structure: input {before} and output {after}."
                    )
            return new

        @functools.wraps(get_params)
        def tree_params(state: OptimizerState):
            return tree_unflatten(state.tree_def, [get_params(s) for s in unpacked(state)])

        return Optimizer(tree_init, tree_update, tree_params)

    return tree_opt_maker


def pack(states: Sequence, tree: PyTreeDef) -> OptimizerState:
    """A state, from the states of all parameters."""
    flat = [tree_flatten(s) for s in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree, tuple(d for _, d in flat))


def unpacked(state: OptimizerState) -> list:
    """The states of all parameters; a ValueError of what is no state."""
    packed_state, _, subtree_defs = state
    return [tree_unflatten(d, leaves) for d, leaves in zip(subtree_defs, packed_state)]


def unpack_optimizer_state(opt_state: OptimizerState):
    """A state as a tree of parameters that has the state of each in its place, in a ``JoinPoint``; to be saved, say.

    >>> state = sgd(0.1).init_fn({"w": 1.0})
    >>> unpack_optimizer_state(state)["w"].subtree
    1.0
    """
    return tree_unflatten(opt_state.tree_def, [JoinPoint(s) for s in unpacked(opt_state)])


def pack_optimizer_state(marked_pytree) -> OptimizerState:
    """The inverse of ``unpack_optimizer_state``.

    Raises:
      TypeError: a leaf of the tree is no ``JoinPoint``.

    >>> pack_optimizer_state({"w": JoinPoint(1.0)}).packed_state
    ([1.0],)
    """
    points, tree = tree_flatten(marked_pytree)
    if not all(isinstance(p, JoinPoint) for p in points):
        raise TypeError("pack_optimizer_state takes a tree whose leaves are JoinPoints: see unpack_optimizer_state")
    return pack([p.subtree for p in points], tree)


# ---- optimizers


@optimizer
def sgd(step_size):
    """Stochastic gradient descent.

    Arguments:
      step_size: a number, or a schedule: a function of the number of the step.
    Returns:
      An ``Optimizer``.
    """
    size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - size(i) * g, lambda x: x


@optimizer
def momentum(step_size, mass: float):
    """Gradient descent with momentum.

    Arguments:
      step_size: a number, or a schedule.
      mass: how much of the velocity stays from step to step.
    Returns:
      An ``Optimizer``.

    B. T. Polyak: Some methods of speeding up the convergence of iteration methods (1964).
    """
    size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def nesterov(step_size, mass: float):
    """Nesterov's accelerated gradient.

    Arguments:
      step_size: a number, or a schedule.
      mass: how much of the velocity stays from step to step.
    Returns:
      An ``Optimizer``.

    Y. Nesterov: A method of solving a convex programming problem with convergence rate O(1/k^2) (1983).
    """
    size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


def inverse_root(x):
    """``1 / sqrt(x)``, and 0 where ``x`` is 0."""
    return jnp.where(x > 0, 1.0 / jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0)


@optimizer
def adagrad(step_size, momentum=0.9):
    """Adagrad: steps divided by the root of the sum of all squares of gradients, with momentum.

    Arguments:
      step_size: a number, or a schedule.
      momentum: how much of the direction stays from step to step.
    Returns:
      An ``Optimizer``.

    J. Duchi, E. Hazan, Y. Singer: Adaptive subgradient methods for online learning and stochastic optimization (2011).
    """
    size = make_schedule(step_size)

    def update(i, g, state):
        x, squares, m = state
        squares = squares + jnp.square(g)
        m = (1.0 - momentum) * (g * inverse_root(squares)) + momentum * m
        return x - size(i) * m, squares, m

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop(step_size, gamma=0.9, eps=1e-8):
    """RMSProp: steps divided by the root of a running mean of squares of gradients.

    Arguments:
      step_size: a number, or a schedule.
      gamma: how much of the mean stays from step to step.
      eps: added to the mean.
    Returns:
      An ``Optimizer``.

    T. Tieleman, G. Hinton: Lecture 6.5 of Neural networks for machine learning (2012).
    """
    size = make_schedule(step_size)

    def update(i, g, state):
        x, mean = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        return x - size(i) * g / jnp.sqrt(mean + eps), mean

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop_momentum(step_size, gamma=0.9, eps=1e-8, momentum=0.9):
    """RMSProp with momentum.

    Arguments:
      step_size: a number, or a schedule.
      gamma, eps: as for ``rmsprop``.
      momentum: how much of the last step is taken again.
    Returns:
      An ``Optimizer``.
    """
    size = make_schedule(step_size)

    def update(i, g, state):
        x, mean, last = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        last = momentum * last + size(i) * g / jnp.sqrt(mean + eps)
        return x - last, mean, last

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adam(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """Adam: momentum, divided by the root of a running mean of squares, both without the bias of their first values.

    Arguments:
      step_size: a number, or a schedule.
      b1, b2: how much of the means of gradients and of their squares stays from step to step.
      eps: added to the root.
    Returns:
      An ``Optimizer``.

    D. P. Kingma, J. Ba: Adam: a method for stochastic optimization (2015).
    """
    size = make_schedule(step_size)

    def update(i, g, state):
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        unbiased_m = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        unbiased_v = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - size(i) * unbiased_m / (jnp.sqrt(unbiased_v) + eps), m, v

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adamax(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """AdaMax: Adam with the largest gradient, discounted, in place of the root.

    Arguments:
      step_size: a number, or a schedule.
      b1, b2, eps: as for ``adam``.
    Returns:
      An ``Optimizer``.

    D. P. Kingma, J. Ba: Adam: a method for stochastic optimization (2015), section 7.1.
    """
    size = make_schedule(step_size)

    def update(i, g, state):
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        return x - (size(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))) * m / (u + eps), m, u

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def sm3(step_size, momentum=0.9):
    """SM3: Adagrad with sums of squares kept for the rows along each axis, and not for each element.

    Arguments:
      step_size: a number, or a schedule.
      momentum: how much of the direction stays from step to step.
    Returns:
      An ``Optimizer``.

    R. Anil, V. Gupta, T. Koren, Y. Singer: Memory-efficient adaptive optimization (2019).
    """
    size = make_schedule(step_size)

    def init(x):
        return x, jnp.zeros_like(x), [jnp.zeros(n, jnp.result_type(x)) for n in jnp.shape(x)]

    def update(i, g, state):
        x, m, rows = state
        axes = range(jnp.ndim(x))
        others = [tuple(a for a in axes if a != axis) for axis in axes]
        least = [jnp.expand_dims(row, other) for row, other in zip(rows, others)]
        squares = functools.reduce(jnp.minimum, least, *([] if least else [0.0])) + jnp.square(g)
        m = (1.0 - momentum) * (g * inverse_root(squares)) + momentum * m
        return x - size(i) * m, m, [jnp.max(squares, other) for other in others]

    return init, update, lambda state: state[0]


# ---- schedules of step sizes


def constant(step_size) -> Schedule:
    """The schedule that is always ``step_size``."""
    return lambda i: step_size


def exponential_decay(step_size, decay_steps, decay_rate) -> Schedule:
    """The schedule ``step_size * decay_rate ** (i / decay_steps)``.

    >>> exponential_decay(1.0, 10, 0.5)(20)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size, decay_steps, decay_rate, staircase: bool = False) -> Schedule:
    """The schedule ``step_size / (1 + decay_rate * i / decay_steps)``; the quotient rounded down with ``staircase``.

    >>> inverse_time_decay(1.0, 10, 1.0)(10)
    0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size, decay_steps, final_step_size, power: float = 1.0) -> Schedule:
    """The schedule from ``step_size`` to ``final_step_size`` in ``decay_steps`` steps, by a power of those left.

    >>> float(polynomial_decay(1.0, 10, 0.0)(5))
    0.5
    """

    def schedule(i):
        rest = (1 - jnp.minimum(i, decay_steps) / decay_steps) ** power
        return rest * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries, values) -> Schedule:
    """The schedule that has ``values[k]`` after ``boundaries[k - 1]`` up to ``boundaries[k]``.

    Raises:
      ValueError: they are not of one axis, or there is not one value more than boundaries.

    >>> float(piecewise_constant([10], [1.0, 0.1])(11))
    0.1
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if boundaries.shape[0] != values.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule) -> Schedule:
    """A schedule: a function as it is, a scalar as the constant one.

    Raises:
      TypeError: it is neither.

    >>> make_schedule(0.1)(3)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if isinstance(scalar_or_schedule, str) or jnp.ndim(scalar_or_schedule):
        raise TypeError(f"a step size is a scalar or a function of the number of the step, got {scalar_or_schedule!r}")
    return constant(scalar_or_schedule)


# ---- what is done with gradients


def l2_norm(tree):
    """The Euclidean norm of a tree of arrays, taken as one vector.

    >>> float(l2_norm({"a": 3.0, "b": 4.0}))
    5.0
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree, max_norm):
    """Gradients scaled down to the norm ``max_norm`` where theirs is greater.

    Arguments:
      grad_tree: a tree of arrays.
      max_norm: the largest norm.

    >>> clip_grads({"a": 3.0, "b": 4.0}, 1.0)
    {'a': Array(0.6, dtype=float32, weak_type=True), 'b': Array(0.8, dtype=float32, weak_type=True)}
    """
    norm = l2_norm(grad_tree)
    scale = lambda g: jnp.where(norm < max_norm, g, g * (max_norm / jnp.where(norm == 0, 1, norm)))  # noqa: E731
    return tree_map(scale, grad_tree)


_open_door(globals(), "catena.example_libraries.optimizers", own=True)
__dir__ = _shown(globals())
