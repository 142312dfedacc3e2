"""The functions that ``linearize`` and ``vjp`` return: the derivative at a point, applied forwards or
backwards.

Both are trees: their leaves are the residuals, the values from the forward pass that the derivative needs. So
they may be returned from compiled and vectorised functions, and passed to others.
"""

import numpy as np

from catena.core import dtypes
from catena.core.array import as_array
from catena.core.errors import how_to_register
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.trace import VALUES
from catena.core.traceback import api_boundary
from catena.core.tree import register_pytree_node_class, tree_flatten, tree_map, tree_unflatten
from catena.core.tree_errors import equality_errors
from catena.core.tree_keys import keystr
from catena.core.zeros import Zero, get_aval, instantiate
from catena.transform.linearize import linear_jaxpr
from catena.transform.transpose import backward_pass, linearize_linear


def value_leaf(x):
    """``x`` as a value of the language; a Python or NumPy value becomes an Array."""
    if isinstance(x, VALUES):
        return x
    if dtypes.is_scalar_or_numpy(x):
        return as_array(x)
    raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type.{how_to_register(x)}")


def materialise(ct):
    """A tangent or cotangent as users get it; that of integers and booleans has the dtype float0."""
    if type(ct) is Zero and ct.aval.dtype == dtypes.float0:
        return np.zeros(ct.aval.shape, dtypes.float0)
    return instantiate(ct)


@register_pytree_node_class
class LinearFunction:
    """The derivative of a function at a point: from tangents of its arguments to tangents of its result."""

    def __init__(self, jaxpr, residuals, in_tree, out_tree, primal_avals):
        self.jaxpr, self.residuals = jaxpr, residuals
        self.in_tree, self.out_tree, self.primal_avals = in_tree, out_tree, primal_avals

    @classmethod
    def of_program(cls, program, in_tree, out_tree, primal_avals, debug_info) -> "LinearFunction":
        """The function that a linear program computes."""
        closed = linear_jaxpr(program, debug_info)
        return cls(closed.jaxpr, closed.consts, in_tree, out_tree, primal_avals)

    @api_boundary
    def __call__(self, *tangents):
        leaves, tree = tree_flatten(tangents)
        if tree != self.in_tree:
            raise TypeError(f"linearized function called on tangents of tree structure {tree}, expected {self.in_tree}")
        leaves = [self.check(t, a) for t, a in zip(leaves, self.primal_avals, strict=True)]
        return tree_unflatten(self.out_tree, eval_jaxpr(self.jaxpr, self.residuals, *leaves))

    def check(self, tangent, primal_aval):
        """``tangent`` as a value, or an error where it is not a tangent of the primal."""
        tangent = value_leaf(tangent)
        expected, got = primal_aval.to_tangent_aval(), get_aval(tangent)
        if got.shape != expected.shape or got.dtype != expected.dtype:
            raise ValueError(
                "linearized function called on tangent values inconsistent with the original primal values:\n"
                f"Got tangent aval {got.str_short()} for primal aval {primal_aval.str_short()} "
                f"but expected {expected.str_short()}."
            )
        return tangent

    def __repr__(self):
        return f"<linear function of tangents of types {', '.join(a.str_short() for a in self.primal_avals)}>"

    def tree_flatten(self):
        return self.residuals, (self.jaxpr, self.in_tree, self.out_tree, tuple(self.primal_avals))

    @classmethod
    def tree_unflatten(cls, static, residuals):
        jaxpr, *rest = static
        return cls(jaxpr, list(residuals), *rest)


@register_pytree_node_class
class VJPFunction:
    """Pulls a cotangent of a function's value back to cotangents of its arguments.

    It holds the linear program as it was written, a tape; as a tree it is a jaxpr and its constants.
    """

    def __init__(self, program, in_tree, out_tree, out_avals, place: str, closed: ClosedJaxpr | None = None):
        self.program, self.in_tree, self.out_tree = program, in_tree, out_tree
        self.out_avals, self.place, self.closed = out_avals, place, closed

    @api_boundary
    def __call__(self, cotangent):
        leaves, tree = tree_flatten(cotangent)
        if tree != self.out_tree:
            raise ValueError(self.structure_error(cotangent))
        cts = [self.check(ct, a) for ct, a in zip(leaves, self.out_avals, strict=True)]
        program = self.program or self.program_of_jaxpr()
        return tree_unflatten(self.in_tree, [materialise(ct) for ct in backward_pass(program, cts)])

    def program_of_jaxpr(self):
        """The linear program of a jaxpr."""
        jaxpr, consts = self.closed.jaxpr, self.closed.consts
        run = lambda *xs: eval_jaxpr(jaxpr, consts, *xs)
        return linearize_linear(run, jaxpr.in_avals, [None] * len(jaxpr.invars))[1]

    def check(self, ct, aval):
        """``ct`` as a value of the type of cotangents of ``aval``, or an error."""
        expected = aval.to_tangent_aval()
        if isinstance(ct, (np.ndarray, np.generic)) and ct.dtype == dtypes.float0:
            shape, dtype = ct.shape, ct.dtype
        else:
            ct = value_leaf(ct)
            shape, dtype = get_aval(ct).shape, get_aval(ct).dtype
        if shape == expected.shape and dtype == expected.dtype:
            return Zero(expected) if expected.dtype == dtypes.float0 else ct
        raise ValueError(
            "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
            f"{dtypes.dtype_name(dtype)}[{','.join(map(str, shape))}], but expected {expected.str_short()} "
            f"because the "
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
        if self.closed is None:
            self.closed = linear_jaxpr(self.program)
        static = (self.closed.jaxpr, self.in_tree, self.out_tree, tuple(self.out_avals), self.place)
        return self.closed.consts, static

    @classmethod
    def tree_unflatten(cls, static, residuals):
        jaxpr, *rest = static
        return cls(None, *rest, ClosedJaxpr(jaxpr, list(residuals)))
