"""The functions that ``linearize`` and ``vjp`` return: the derivative at a point, applied forwards or backwards.

Both are trees: their leaves are the residuals, the values from the forward pass that the derivative needs. So
they may be returned from compiled and vectorised functions, and passed to others.
"""

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.aval import AbstractRef, ShapedArray
from catena.core.evaluate import of_varying, varying_axes
from catena.core.jaxpr import eval_jaxpr
from catena.core.ref import Ref, core_of, is_reference
from catena.core.structural import addupdate_p
from catena.core.trace import leaf_value
from catena.core.traceback import api_boundary
from catena.core.tree import (
    register_pytree_node,
    register_pytree_node_class,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)
from catena.core.tree_errors import equality_errors
from catena.core.tree_keys import keystr
from catena.core.tree_partial import Partial
from catena.core.zeros import Zero, get_aval, instantiate
from catena.transform.linearize import linear_jaxpr, linearize_linear
from catena.transform.transpose import backward_pass


def materialise(ct):
    """A tangent or cotangent as users get it; that of integers and booleans has the dtype float0."""
    if type(ct) is Zero and ct.aval.dtype == dtypes.float0:
        return np.zeros(ct.aval.shape, dtypes.float0)
    return instantiate(ct)


class LinearCall:
    """A linear jaxpr as a function of its residuals and of trees of tangents."""

    __slots__ = ("jaxpr", "in_tree", "out_tree", "primal_avals")

    def __init__(self, jaxpr, in_tree, out_tree, primal_avals: tuple):
        self.jaxpr, self.in_tree, self.out_tree, self.primal_avals = jaxpr, in_tree, out_tree, primal_avals

    @api_boundary
    def __call__(self, residuals, /, *tangents):
        leaves, tree = tree_flatten(tangents)
        if tree != self.in_tree:
            raise TypeError(f"linearized function called on tangents of tree structure {tree}, expected {self.in_tree}")
        leaves = [self.check(t, a) for t, a in zip(leaves, self.primal_avals, strict=True)]
        return tree_unflatten(self.out_tree, eval_jaxpr(self.jaxpr, residuals, *leaves))

    def check(self, tangent, primal_aval):
        """``tangent`` as a value, or an error where it is not a tangent of the primal."""
        tangent = leaf_value(tangent)
        expected, got = primal_aval.to_tangent_aval(), get_aval(tangent)
        if got.shape != expected.shape or got.dtype != expected.dtype:
            raise ValueError(
                "linearized function called on tangent values inconsistent with the original primal values:\n"
                f"Got tangent aval {got.str_short()} for primal aval {primal_aval.str_short()} "
                f"but expected {expected.str_short()}."
            )
        return tangent

    def key(self) -> tuple:
        return self.jaxpr, self.in_tree, self.out_tree, self.primal_avals

    def __eq__(self, other):
        return isinstance(other, LinearCall) and self.key() == other.key()

    def __hash__(self):
        return hash(self.key())

    def __repr__(self):
        return f"<linear function of tangents of types {', '.join(a.str_short() for a in self.primal_avals)}>"


class LinearFunction(Partial):
    """The derivative of a function at a point: from tangents of its arguments to tangents of its result.

    A ``Partial``: ``func`` is a ``LinearCall`` and ``args`` hold the list of its residuals.
    """

    @classmethod
    def of_program(cls, program, in_tree, out_tree, primal_avals, debug_info) -> "LinearFunction":
        """The function that a linear program computes."""
        closed = linear_jaxpr(program, debug_info)
        return cls(LinearCall(closed.jaxpr, in_tree, out_tree, tuple(primal_avals)), closed.consts)

    @property
    def jaxpr(self):
        """What it computes, of the residuals and the tangents."""
        return self.func.jaxpr

    def __repr__(self):
        return repr(self.func)


register_pytree_node(LinearFunction, lambda f: (f.args, f.func), lambda func, args: LinearFunction(func, *args))


class Mark:
    """A word about a cotangent, of one of the classes below; a tree without leaves. All of a class are equal."""

    def __repr__(self):
        return f"{type(self).__name__}()"

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))

    def tree_flatten(self):
        return (), None

    @classmethod
    def tree_unflatten(cls, static, children):
        return cls()


@register_pytree_node_class
class GradValue(Mark):
    """Asks ``with_refs`` for a cotangent as a value."""


@register_pytree_node_class
class DontWant(Mark):
    """Tells ``with_refs`` that nobody wants a cotangent."""


@register_pytree_node_class
class GradRef(Mark):
    """Stands for a cotangent that was added to a reference."""


@register_pytree_node_class
class DidntWant(Mark):
    """Stands for a cotangent that nobody wanted."""


@register_pytree_node_class
class NotNeeded(Mark):
    """Stands in ``args_res`` for an argument that the derivative does not need."""


@api_boundary
def pull_into(function, wanted, out_ct):
    """What the result of ``with_refs`` does."""
    return function.pull(out_ct, list(wanted))


def with_residuals(function, in_tree, out_tree, args_res, opaque_res, *maybe_ct_refs) -> Partial:
    """What ``fun`` of a function that ``vjp`` returned does."""
    function.take_apart()
    other = copy.copy(function)
    other.in_tree, other.out_tree = in_tree, out_tree
    other.args_res, other.opaque_residuals = args_res, opaque_res
    return other.with_refs(*(maybe_ct_refs or tree_unflatten(in_tree, [GradValue()] * in_tree.num_leaves)))


def check_takes(ref: Ref, aval):
    """Raise where a cotangent cannot be added to a reference."""
    if (ref.shape, ref.dtype) != (aval.shape, aval.dtype):
        raise ValueError(
            f"a cotangent of type {aval.str_short()} cannot be added to a reference of type {ref.aval.str_short()}"
        )


@register_pytree_node_class
class VJPFunction:
    """Pulls a cotangent of a function's value back to cotangents of its arguments.

    It holds the linear program as it was written, a tape. Whoever asks for its parts gets the program as a jaxpr and
    its residuals, those that are arguments in ``args_res`` and the others in ``opaque_residuals``; both may be changed.
    """

    def __init__(self, program, in_tree, out_tree, out_avals, place: str, primals=()):
        self.program, self.in_tree, self.out_tree = program, in_tree, out_tree
        self.out_avals, self.place = out_avals, place
        self.arguments = {id(x): i for i, x in enumerate(primals)} if program is not None else {}
        self.linear: Any = None  # with ``places``, once it is taken apart
        self.places: tuple = ()

    @property
    def jaxpr(self):
        """The linear program, from residuals and tangents of the arguments to tangents of the value."""
        self.take_apart()
        return self.linear

    @property
    def fun(self) -> functools.partial:
        """Makes such a function of other residuals: ``fun(in_tree, out_tree, args_res, opaque_residuals)``, and what is
        wanted of the cotangents as ``with_refs`` takes it, by default all.
        """
        return functools.partial(with_residuals, self)

    @property
    def args_res(self) -> list:
        """The arguments, with ``NotNeeded()`` for those that are no residuals."""
        self.take_apart()
        return self._args_res

    @args_res.setter
    def args_res(self, value):
        self.take_apart()
        self._args_res = value

    @property
    def opaque_residuals(self) -> list:
        """The residuals that are no arguments."""
        self.take_apart()
        return self._opaque_residuals

    @opaque_residuals.setter
    def opaque_residuals(self, value):
        self.take_apart()
        self._opaque_residuals = value

    def take_apart(self):
        """Put a jaxpr and its residuals in place of the tape."""
        if self.linear is None:
            closed = linear_jaxpr(self.program)
            self.linear, self.program = closed.jaxpr, None
            self.places = tuple(self.arguments.get(id(x)) for x in closed.consts)
            self.put_residuals(closed.consts)

    def put_residuals(self, residuals):
        """Sort the residuals into those that are arguments, by ``places``, and the others."""
        args = [NotNeeded()] * self.in_tree.num_leaves
        for x, i in zip(residuals, self.places, strict=True):
            if i is not None:
                args[i] = x
        self._args_res = list(tree_unflatten(self.in_tree, args))
        self._opaque_residuals = [x for x, i in zip(residuals, self.places, strict=True) if i is None]

    def residuals(self) -> list:
        """The residuals, in the order of the jaxpr."""
        args = tree_leaves(self.args_res, is_leaf=lambda x: isinstance(x, NotNeeded))
        others = iter(self.opaque_residuals)
        return [next(others) if i is None else args[i] for i in self.places]

    def with_refs(self, *maybe_ct_refs) -> Partial:
        """The same function, which adds cotangents to references instead of returning them.

        Arguments:
          maybe_ct_refs: for each argument a tree like it, with a reference to add to, ``GradValue()`` where the
            cotangent is to be returned, or ``DontWant()``. An argument that is a reference needs one.
        Returns:
          A function of the cotangent that returns a tree like the arguments: ``GradRef()`` where it was added.
        Raises:
          TypeError: the trees differ from those of the arguments, or a leaf is none of these.

        >>> import catena as jax, catena.numpy as jnp
        >>> total = jax.new_ref(jnp.zeros(2))
        >>> _, f_vjp = jax.vjp(lambda x: 3.0 * x, jnp.ones(2))
        >>> f_vjp.with_refs(total)(jnp.ones(2)), f_vjp.with_refs(total)(jnp.ones(2)), total
        ((GradRef(),), (GradRef(),), Ref([6., 6.], dtype=float32))
        """
        leaves, tree = tree_flatten(maybe_ct_refs, is_leaf=lambda x: x is None or isinstance(x, Mark))
        if tree != self.in_tree:
            raise TypeError(f"with_refs takes a tree like the arguments, {self.in_tree}, got {tree}")
        for x in leaves:
            if not isinstance(x, (Ref, GradValue, DontWant)):
                raise TypeError(f"with_refs takes references, GradValue() and DontWant(), got {x!r}")
        return Partial(pull_into, self, leaves)

    @api_boundary
    def __call__(self, out_ct, *extra):
        if extra:
            raise TypeError(self.call_error(1 + len(extra)))
        return self.pull(out_ct, [GradValue()] * self.in_tree.num_leaves)

    def pull(self, out_ct, wanted: list):
        """Pull a cotangent back: each is returned, added to the reference that is ``wanted``, or dropped."""
        leaves, tree = tree_flatten(out_ct)
        if tree != self.out_tree:
            raise ValueError(self.structure_error(out_ct))
        cts = [self.check(ct, a) for ct, a in zip(leaves, self.out_avals, strict=True)]
        program = self.program or self.program_of_jaxpr()
        held = {i: core_of(x) for i, x in enumerate(wanted) if type(x) is Ref}
        of_references = {i: x for i, x in held.items() if is_reference(program.inputs[i])}
        found = backward_pass(program, cts, references=of_references)
        return tree_unflatten(self.in_tree, [self.hand_over(ct, x) for ct, x in zip(found, wanted, strict=True)])

    def hand_over(self, ct, wanted):
        """What stands for a cotangent in the result."""
        if type(wanted) is DontWant:
            return DidntWant()
        if type(wanted) is Ref:
            if type(ct) is not Zero and not is_reference(ct):
                check_takes(wanted, get_aval(ct))
                addupdate_p.bind(core_of(wanted), ct, path=())
            return GradRef()
        if type(get_aval(ct)) is AbstractRef:
            raise TypeError(
                f"an argument is a reference of type {get_aval(ct).str_short()}, so its cotangent is one: call "
                "f_vjp.with_refs(...) with a reference for it"
            )
        return self.finish(ct)

    finish: Callable = staticmethod(materialise)

    def call_error(self, count: int) -> str:
        name = self.place.split(" at ")[0]
        return (
            f"The function returned by `jax.vjp` applied to {name} was called with {count} arguments,\nbut functions "
            "returned by `jax.vjp` must be called with a single argument\ncorresponding to the single value returned "
            "by the function being differentiated\n(even if that returned value is a tuple or other container): "
            f"f_vjp((a, b)), not f_vjp(a, b).\nHere it is a value of structure {self.out_tree}."
        )

    def program_of_jaxpr(self):
        """The linear program of the jaxpr."""
        residuals = self.residuals()
        run = lambda *xs: eval_jaxpr(self.linear, residuals, *xs)
        return linearize_linear(run, self.linear.in_avals, [None] * len(self.linear.invars))[1]

    def check(self, ct, aval):
        """``ct`` as a value of the type of cotangents of ``aval``, or an error."""
        expected = aval.to_tangent_aval()
        if isinstance(ct, (np.ndarray, np.generic)) and ct.dtype == dtypes.float0:
            shape, dtype = ct.shape, ct.dtype
        else:
            ct = leaf_value(ct)
            shape, dtype = get_aval(ct).shape, get_aval(ct).dtype
        if shape == expected.shape and expected.dtype == dtypes.float0:
            return Zero(expected)  # whatever it is, nothing depends on it
        varies = frozenset() if dtype == dtypes.float0 else varying_axes(get_aval(ct))
        if shape == expected.shape and dtype == expected.dtype and varies == varying_axes(expected):
            return ct
        given = of_varying(ShapedArray(shape, dtype), varies)
        raise ValueError(
            "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
            f"{given.str_short()}, but expected {expected.str_short()} because the "
            f"corresponding output of the differentiated function had JAX type {aval.str_short()}"
        )

    def structure_error(self, cotangent) -> str:
        """How the structure of a cotangent differs from that of the value."""
        expected = tree_unflatten(self.out_tree, [0] * self.out_tree.num_leaves)
        given = tree_map(lambda _: 0, cotangent)
        shown = lambda what: "an array" if what == str(int) else what  # leaves are zeros here
        found = [
            f"  * out{keystr(path)} was {shown(a)} in the original output, but {shown(b)} here, so {why}."
            for path, a, b, why in equality_errors(expected, given)
        ]
        return (
            "unexpected tree structure.\n\nThe argument to a VJP function returned by `jax.vjp` must match "
            "the pytree\n"
            f"structure of the differentiated function {self.place}.\n\nBut the tree structures differ:\n"
            + "\n".join(found)
        )

    def __repr__(self):
        return f"<VJP of {self.place}, from cotangents of types {', '.join(a.str_short() for a in self.out_avals)}>"

    def tree_flatten(self):
        self.take_apart()
        static = (self.linear, self.places, self.in_tree, self.out_tree, tuple(self.out_avals), self.place)
        return self.residuals(), static

    @classmethod
    def tree_unflatten(cls, static, residuals):
        linear, places, *rest = static
        function = cls(None, *rest)
        function.linear, function.places = linear, places
        function.put_residuals(residuals)
        return function


@register_pytree_node_class
class TransposedFunction(VJPFunction):
    """The transpose of a linear function: it takes and gives values of the function's own types, integers too."""

    finish: Callable = staticmethod(instantiate)

    def __call__(self, out_ct):
        if tree_structure(out_ct) != self.out_tree:
            raise TypeError(
                f"cotangent tree does not match function output, expected {self.out_tree} but got "
                f"{tree_structure(out_ct)}"
            )
        return super().__call__(out_ct)

    def check(self, ct, aval):
        """``ct`` as a value, or an error where it is not of the type ``aval``."""
        ct = leaf_value(ct)
        got = get_aval(ct)
        if got.shape != aval.shape or got.dtype != aval.dtype:
            raise TypeError(
                "cotangent type does not match function output: linear_transpose was given a cotangent of type "
                f"{got.str_short()} where {aval.str_short()} was expected"
            )
        return ct

    def __repr__(self):
        types = ", ".join(a.str_short() for a in self.out_avals)
        return f"<transpose of {self.place}, from cotangents of types {types}>"
