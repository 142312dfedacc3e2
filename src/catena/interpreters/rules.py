"""Tables of rules: those of transformations of one's own, and views of the system's in JAX's convention."""

from collections.abc import Callable, Iterator, MutableMapping

from catena.core.primitive import Primitive
from catena.core.primitive import RuleTable as RuleTable


class Rules(MutableMapping):
    """The rules of one transformation, by primitive, as JAX's users write them.

    Arguments:
      table: the transformation's own table.
      wrap: from a rule in JAX's convention to one in ours: a class whose objects hold the ``rule``.
      unwrap: from one of ours to JAX's convention.
    """

    def __init__(self, table: RuleTable, wrap: type, unwrap: Callable = lambda rule: rule):
        self.table, self.wrap, self.unwrap = table, wrap, unwrap

    def __getitem__(self, primitive: Primitive) -> Callable:
        rule = self.table[primitive]
        return rule.rule if type(rule) is self.wrap else self.unwrap(rule)

    def __setitem__(self, primitive: Primitive, rule: Callable):
        self.table[primitive] = self.wrap(rule)

    def __delitem__(self, primitive: Primitive):
        del self.table[primitive]

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)
