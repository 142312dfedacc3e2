"""Arrays with units of measure, by the public array protocol alone (docs/array_protocol.md).

Adding metres to seconds is an error, also while tracing; the gradient of an energy by a position is a force;
units pass through jit, vmap and the functions of catena.numpy in RULES. Run: python examples/units.py
"""

from dataclasses import dataclass, field
from fractions import Fraction

import catena as jax
import catena.numpy as jnp


class UnitError(TypeError):
    """Quantities that have no meaning together."""


class Unit(tuple):
    """A product of powers of base units, as sorted pairs: (("kg", 1), ("m", 1), ("s", -2)) is a newton."""

    def __mul__(self, other):
        powers = dict(self)
        for name, power in other:
            powers[name] = powers.get(name, 0) + power
        return Unit(sorted((name, power) for name, power in powers.items() if power))

    def __pow__(self, n):
        return Unit((name, power * n) for name, power in self if n)

    def __truediv__(self, other):
        return self * other**-1

    def __str__(self):
        return " ".join(name if power == 1 else f"{name}^{power}" for name, power in self) or "1"


ONE = Unit()


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Quantity:
    """An array and its unit: a tree with one leaf, so that transformations keep its class."""

    value: jax.Array
    unit: Unit = field(default=ONE, metadata={"static": True})

    def __jax_function__(self, function, types, args, kwargs):
        """Level 3: what a function of catena.numpy means for quantities."""
        known = function in RULES and set(types) == {Quantity}
        return RULES[function](function, args, kwargs) if known else NotImplemented

    def __jax_gradient__(self, gradient, x, value):
        """What grad returns: the derivative of ``value`` by ``x`` has the unit of their quotient."""
        return Quantity(plain(gradient), unit_of(value) / unit_of(x))

    def __getitem__(self, index):
        return Quantity(self.value[index], self.unit)

    def __repr__(self):
        return f"{self.value} {self.unit}"


def unit_of(x):
    return x.unit if isinstance(x, Quantity) else ONE


def plain(tree):
    return jax.tree.map(lambda x: getattr(x, "value", x), tree, is_leaf=lambda x: isinstance(x, Quantity))


def units(tree):
    return [unit_of(x) for x in jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, Quantity))]


def rule(unit_of_result, names):
    """A rule for functions: from name and arguments to the unit of the result, None for plain results."""

    def call(function, args, kwargs):
        unit = unit_of_result(function.__name__, args)
        result = function(*plain(args), **plain(kwargs))
        return result if unit is None else jax.tree.map(lambda x: Quantity(x, unit), result)

    return {getattr(jnp, name): call for name in names.split()}


def shared(name, operands):
    """The one unit that all operands have."""
    first, *others = units(operands)
    if any(unit != first for unit in others):
        raise UnitError(f"{name} of different units: {', '.join(map(str, [first, *others]))}")
    return first


def none(name, args):
    if set(units(args)) != {ONE}:
        raise UnitError(f"{name} needs plain numbers, got {', '.join(map(str, units(args)))}")


def product(name, args):
    unit = ONE
    for other in units(args):
        unit = unit * other
    return unit


FIRST = "sum mean max min std median abs negative cumsum diff sort reshape transpose concatenate stack"
RULES = {
    **rule(lambda name, args: shared(name, args[:1]), FIRST),
    **rule(shared, "add subtract maximum minimum hypot"),
    **rule(lambda name, args: shared(name, args[1:]), "where"),
    **rule(lambda name, args: shared(name, args) and None, "less greater equal"),
    **rule(none, "exp log sin cos tanh"),
    **rule(product, "multiply matmul dot cross outer"),
    **rule(lambda name, args: product(name, args[1:]), "einsum"),
    **rule(lambda name, args: unit_of(args[0]) / unit_of(args[1]), "divide"),
    **rule(lambda name, args: unit_of(args[0]) ** args[1], "power"),
    **rule(lambda name, args: unit_of(args[0]) ** 2, "square var"),
    **rule(lambda name, args: unit_of(args[0]) ** Fraction(1, 2), "sqrt"),
}

OPERATORS = "add:add sub:subtract mul:multiply truediv:divide matmul:matmul pow:power lt:less gt:greater eq:equal"
for _operator, _, _name in (pair.partition(":") for pair in OPERATORS.split()):
    _function = getattr(jnp, _name)
    setattr(Quantity, f"__{_operator}__", lambda self, other, f=_function: f(self, other))
    setattr(Quantity, f"__r{_operator}__", lambda self, other, f=_function: f(other, self))
Quantity.__neg__ = lambda self: jnp.negative(self)

METRE, SECOND, KILOGRAM = (Unit(((name, 1),)) for name in ("m", "s", "kg"))
NEWTON = KILOGRAM * METRE / SECOND**2


def main():
    stiffness = Quantity(jnp.float32(50.0), NEWTON / METRE)
    position = Quantity(jnp.array([0.5, 0.25, -0.25]), METRE)
    energy = jax.jit(lambda x: 0.5 * stiffness * jnp.sum(x**2))
    print("energy:", energy(position))
    print("force:", -jax.grad(energy)(position))
    print("one by one:", jax.vmap(lambda x: x / Quantity(2.0, SECOND))(position))
    try:
        jax.jit(lambda x, t: x + t)(position, Quantity(1.0, SECOND))
    except UnitError as error:
        print("UnitError:", error)


if __name__ == "__main__":
    main()
