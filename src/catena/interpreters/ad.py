"""Differentiation rules of primitives: ``primitive_jvps``, ``primitive_transposes``, and short ways to write them."""

from collections.abc import Callable
from functools import reduce

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
from catena.transform.jvp import jvp_rules as _jvp_rules
from catena.transform.transpose import transpose_rules as primitive_transposes  # noqa: F401


class GivenTuples:
    """A user's derivative rule, which is given primals and tangents as tuples."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable):
        self.rule = rule

    def __call__(self, primals, tangents, **params):
        return self.rule(tuple(primals), tuple(tangents), **params)


primitive_jvps = Rules(_jvp_rules, GivenTuples)


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
