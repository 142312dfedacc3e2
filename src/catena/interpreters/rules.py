"""Tables of rules: those of transformations of one's own, and views of the system's in JAX's convention."""

from collections.abc import Callable, Iterator, MutableMapping
from functools import partial

from catena.core.primitive import Primitive
from catena.core.primitive import RuleTable as RuleTable
from catena.core.usual import with_usual, without_usual


class Rules(MutableMapping):
    """The rules of one transformation, by primitive, as JAX's users write them.

    Arguments:
      table: the transformation's own table.
      wrap: from a rule in JAX's convention to one in ours: a class whose objects hold the ``rule``, or None where
        the conventions are the same.
      unwrap: from one of ours to JAX's convention.

    Users' rules are given the parameters that JAX's equations have, and ours take them (see ``core.usual``).
    """

    def __init__(self, table: RuleTable, wrap: type | None = None, unwrap: Callable = lambda rule: rule):
        self.table, self.wrap, self.unwrap = table, wrap, unwrap

    def __getitem__(self, primitive: Primitive) -> Callable:
        rule = self.table[primitive]
        rule = rule.rule if self.wrap and type(rule) is self.wrap else self.unwrap(rule)
        return _of_parameters(rule, partial(without_usual, primitive)) if primitive.usual else rule

    def __setitem__(self, primitive: Primitive, rule: Callable):
        rule = _of_parameters(rule, partial(with_usual, primitive)) if primitive.usual else rule
        self.table[primitive] = self.wrap(rule) if self.wrap else rule

    def __delitem__(self, primitive: Primitive):
        del self.table[primitive]

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)


def _of_parameters(rule: Callable, change: Callable) -> Callable:
    """The rule, given changed parameters."""
    return lambda *args, **params: rule(*args, **change(params))
