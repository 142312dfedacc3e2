"""Differentiation rules of primitives: ``primitive_jvps``, ``primitive_transposes``, and short ways to write them."""

from collections.abc import Callable
from functools import reduce

from catena.core.flat_tree import FlatTree as _FlatTree
from catena.core.structural import add_any_p as add_jaxvals_p  # noqa: F401
from catena.core.trace import Tracer as _Tracer
from catena.core.trace import leaf_value as _leaf_value
from catena.core.tree import tree_flatten as _flatten
from catena.core.tree import tree_unflatten as _unflatten
from catena.core.unbuilt import absent as _absent
from catena.core.zeros import UndefinedPrimal as UndefinedPrimal
from catena.core.zeros import Zero as Zero
from catena.core.zeros import add_tangents as add_jaxvals  # noqa: F401
from catena.core.zeros import add_tangents as add_tangents
from catena.core.zeros import instantiate as instantiate_zeros  # noqa: F401
from catena.core.zeros import is_undefined_primal as is_undefined_primal
from catena.interpreters.rules import Rules
from catena.transform.jvp import JVPTrace as JVPTrace
from catena.transform.jvp import JVPTracer as JVPTracer
from catena.transform.jvp import jvp_flat as _jvp_flat
from catena.transform.jvp import jvp_rules as _jvp_rules
from catena.transform.linearize import linear_jaxpr as _linear_jaxpr
from catena.transform.linearize import linearize_flat as _linearize_flat
from catena.transform.transpose import transpose_rules as _transpose_rules


class GivenTuples:
    """A user's derivative rule, which is given primals and tangents as tuples."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable):
        self.rule = rule

    def __call__(self, primals, tangents, **params):
        return self.rule(tuple(primals), tuple(tangents), **params)


primitive_jvps = Rules(_jvp_rules, GivenTuples)
primitive_transposes = Rules(_transpose_rules)


def defjvp(primitive, *rules: Callable | None) -> None:
    """Give a derivative by each argument: ``rule(tangent, *primals, **params)``, or None where it is zero.

    >>> from catena.extend.core import Primitive
    >>> from catena.interpreters import ad
    >>> square_p = Primitive("square")
    >>> ad.defjvp(square_p, lambda t, x: 2 * x * t)
    """
    with_result = [rule and (lambda t, out, *primals, rule=rule, **ps: rule(t, *primals, **ps)) for rule in rules]
    defjvp2(primitive, *with_result)


def defjvp2(primitive, *rules: Callable | None) -> None:
    """The same with rules that are given the result too: ``rule(tangent, result, *primals, **params)``."""

    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        pairs = zip(rules, tangents, strict=True)
        parts = [rule(t, out, *primals, **params) for rule, t in pairs if rule is not None and type(t) is not Zero]
        return out, reduce(add_tangents, parts, Zero.of_primal(out))

    primitive_jvps[primitive] = jvp


def deflinear(primitive, transpose_rule: Callable) -> None:
    """Give the transpose of a primitive that is linear in all arguments: ``transpose_rule(cotangent, **params)``, a
    list with the cotangent of each.
    """
    deflinear2(primitive, lambda ct, *args, **params: transpose_rule(ct, **params))


def deflinear2(primitive, transpose_rule: Callable) -> None:
    """The same with a rule that is given the arguments too, of which the linear ones are ``UndefinedPrimal``:
    ``transpose_rule(cotangent, *args, **params)``. A linear primitive is its own derivative.
    """

    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, Zero.of_primal(out)
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose_rule


def defbilinear(prim, lhs_rule: Callable, rhs_rule: Callable) -> None:
    """Give the transposes of a primitive that is linear in each of two arguments: ``lhs_rule(cotangent, lhs, rhs,
    **params)``, where ``lhs`` is ``UndefinedPrimal``, is the cotangent of the first, ``rhs_rule`` that of the second.

    >>> from catena.extend.core import Primitive
    >>> from catena.interpreters import ad
    >>> ad.defbilinear(Primitive("product"), lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
    """
    defjvp(
        prim,
        lambda t, lhs, rhs, **params: prim.bind(t, rhs, **params),
        lambda t, lhs, rhs, **params: prim.bind(lhs, t, **params),
    )

    def transpose_rule(ct, lhs, rhs, **params):
        if is_undefined_primal(lhs):
            return [None if type(ct) is Zero else lhs_rule(ct, lhs, rhs, **params), None]
        return [None, None if type(ct) is Zero else rhs_rule(ct, lhs, rhs, **params)]

    primitive_transposes[prim] = transpose_rule


def jvp(
    fun: Callable, primals, tangents, has_aux: bool = False, instantiate: bool = True, transform_stack: bool = True
) -> tuple:
    """The forward derivative of a function of flat arguments.

    Arguments:
      fun: a function of arrays that returns a tree of them.
      primals, tangents: the point and the direction.
      has_aux: whether the function returns a pair whose second part is not differentiated.
      instantiate: whether tangents that are zero are arrays, instead of ``Zero``.
      transform_stack: whether names of scopes say that this is a derivative; here they always do.
    Returns:
      The result and its tangent, trees alike, and what is not differentiated.

    >>> from catena.interpreters import ad
    >>> ad.jvp(lambda x: [x * x], (3.0,), (1.0,))
    ([Array(9., dtype=float32, weak_type=True)], [Array(6., dtype=float32, weak_type=True)])
    """
    call, found = getattr(fun, "call_wrapped", fun), {}

    def flat(*xs):
        out = call(*xs)
        if has_aux:
            out, found["aux"] = out
        outs, found["tree"] = _flatten(out)
        return [_leaf_value(x) for x in outs]

    outs, out_tangents = _jvp_flat(flat, [_leaf_value(x) for x in primals], [_tangent(t) for t in tangents])
    if instantiate:
        out_tangents = [instantiate_zeros(t) for t in out_tangents]
    pair = _unflatten(found["tree"], outs), _unflatten(found["tree"], out_tangents)
    return (*pair, found["aux"]) if has_aux else pair


def linearize(traceable: Callable, primals_ft: _FlatTree, has_aux: bool = False, is_vjp: bool = False) -> tuple:
    """A function at a point: its value, and its derivative there as a jaxpr.

    Arguments:
      traceable: the function.
      primals_ft: the point: the arguments as a ``FlatTree``, which ``lower_val2`` of a type and ``map`` make.
      has_aux: whether the function returns a pair whose second part is not differentiated.
      is_vjp: whether the jaxpr is to be transposed; it is the same for both.
    Returns:
      The value as a ``FlatTree``; for each leaf of it whether its tangent is zero; the jaxpr from the tangents of the
      arguments to those that are not zero, and its constants; and what is not differentiated.

    >>> import catena as jax
    >>> from catena.interpreters import ad
    >>> point = jax.typeof(3.0).lower_val2(3.0)
    >>> ad.linearize(lambda x: (x * x, 1.0), point)[:2]
    (FlatTree((Array(9., dtype=float32, weak_type=True), 1.0)), [False, True])
    """
    found: dict = {}

    def flat(*xs):
        out = traceable(*primals_ft.update(xs).unflatten())
        out, aux = out if has_aux else (out, ())
        found["out"], found["aux"] = _FlatTree.flatten(out), _FlatTree.flatten(aux)
        return [_leaf_value(x) for part in found.values() for x in part]

    outs, program = _linearize_flat(flat, [_leaf_value(x) for x in primals_ft])
    known = lambda tree, values: tree.map2(lambda x, y: y if isinstance(x, _Tracer) else x, values)  # noqa: E731
    count = len(found["out"])
    out, aux = known(found["out"], outs[:count]), known(found["aux"], outs[count:])
    tangents = program.outputs[:count]
    closed = _linear_jaxpr(program.returning([t for t in tangents if type(t) is not Zero]))
    parts = out, [type(t) is Zero for t in tangents], closed.jaxpr, closed.consts
    return (*parts, aux.unflatten()) if has_aux else parts


def _tangent(t):
    return t if type(t) is Zero else _leaf_value(t)


def zeros_like_aval(aval):
    """Zeros of a type, as an array."""
    return instantiate_zeros(Zero(aval))


def get_primitive_transpose(p) -> Callable:
    """The rule by which a linear primitive is transposed."""
    try:
        return primitive_transposes[p]
    except KeyError:
        message = f"Transpose rule (for reverse-mode differentiation) for '{p}' not implemented"
        raise NotImplementedError(message) from None


_absent(globals())
