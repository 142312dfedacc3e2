"""Tables of rules: views of a slot of all primitives."""

from collections.abc import Callable, MutableMapping

from catena.core.primitive import registry


class Rules(MutableMapping):
    """The rules of one kind, by primitive.

    Arguments:
      kind: the slot of primitives that holds them.
      wrap: from a rule in JAX's convention to one in ours: a class whose objects hold the ``rule``, or a function.
      unwrap: from one of ours to JAX's convention.
    """

    def __init__(self, kind: str, wrap: Callable = lambda rule: rule, unwrap: Callable = lambda rule: rule):
        self.kind, self.wrap, self.unwrap = kind, wrap, unwrap

    def __getitem__(self, primitive) -> Callable:
        rule = getattr(primitive, self.kind)
        if not rule:
            raise KeyError(primitive)
        return rule.rule if type(rule) is self.wrap else self.unwrap(rule)

    def __setitem__(self, primitive, rule: Callable):
        setattr(primitive, self.kind, self.wrap(rule))

    def __delitem__(self, primitive):
        setattr(primitive, self.kind, None)

    def __iter__(self):
        return (p for p in registry.values() if getattr(p, self.kind))

    def __len__(self) -> int:
        return sum(1 for _ in self)
