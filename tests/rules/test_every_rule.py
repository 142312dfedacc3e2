"""Every primitive has all its rules, or says why not."""

import pytest

from catena.core.primitive import NoRule, registry, tables, unclaimed
from everything import load_everything

load_everything()

PRIMITIVES = sorted(registry)
RULES = [name for name, table in tables.items() if not table.optional]


def test_there_are_primitives():
    assert len(PRIMITIVES) > 100
    assert all(registry[name].name == name for name in PRIMITIVES)
    assert set(RULES) == {"abstract", "evaluate", "lower", "jvp", "transpose", "batch"}


def test_every_rule_belongs_to_a_table():
    """A rule under a misspelt name waits for a table that nobody makes."""
    assert not unclaimed


RULES_OF = {f"{name}.{kind}": getattr(registry[name], kind) for name in PRIMITIVES for kind in RULES}


def test_a_primitive_has_every_rule_or_a_reason():
    missing = [name for name, rule in RULES_OF.items() if rule is None]
    assert not missing, "give the rules, or NoRule(reason)"
    assert not {name: rule for name, rule in RULES_OF.items() if not callable(rule) and not isinstance(rule, NoRule)}


def test_reasons_are_sentences():
    reasons = {name: rule.reason for name, rule in RULES_OF.items() if isinstance(rule, NoRule)}
    assert reasons and not {name: reason for name, reason in reasons.items() if len(reason.split()) < 3}


def test_a_missing_rule_is_a_clear_error():
    primitive = next(registry[n] for n in PRIMITIVES if isinstance(registry[n].transpose, NoRule))
    with pytest.raises(NotImplementedError, match="Transpose|transpose"):
        primitive.rule("transpose")
