"""Every rule of sharding, checked by what it claims: computed in parts, and put together, it is the whole."""

import functools

import numpy as np
import pytest

import catena.parallel
import catena.transform
import structured_cases  # noqa: F401  more cases
from catena import lax, random, vmap
from catena.core.factors import AS_CALLED, elementwise
from catena.core.primitive import NoRule, registry
from catena.parallel import rules
from everything import load_everything
from rule_cases import CASES, Case
from split_parts import checked

load_everything()
rules.fill()


@pytest.fixture(autouse=True)
def x64():
    with catena.enable_x64(True):
        yield


def test_every_primitive_has_a_rule_or_a_reason():
    rules.fill()  # other tests make primitives
    without = [n for n, p in registry.items() if not callable(p.sharding) and p.sharding is not AS_CALLED]
    reasons = {n: registry[n].sharding for n in without}
    assert all(isinstance(r, NoRule) and len(r.reason.split()) >= 4 for r in reasons.values())
    ours = [n for n, r in reasons.items() if r is rules.OF_USERS and type(registry[n]).__module__.startswith("catena.")]
    assert not [n for n in ours if getattr(registry[n].abstract, "__module__", "").startswith("catena.")]


def is_chosen(case) -> bool:
    """The first case of each primitive with a rule of its own; elementwise ones have one rule in common.
    ``benchmarks/sharding_rules.py`` takes all, of every dtype.
    """
    first = next(c for c in CASES.values() if c.covers == case.covers)
    rule = registry[case.covers].sharding
    return (
        callable(rule)
        and (first is case or "scatter" in case.covers)
        and (rule is not elementwise or case.covers in EXAMPLES)
    )


def keys(rng, dtype):
    return (catena.random.split(catena.random.key(7), 4),)


def matrix(rng, dtype):
    return (rng.normal(size=(4, 6)).astype(dtype),)


def further(name, fun, make) -> Case:
    return Case(name, fun, make, ("float32",), primitive=name)


FURTHER = [  # what no case there splits
    further("dynamic_slice", lambda x: lax.dynamic_slice(x, (0, 2), (4, 3)), matrix),
    further(
        "scatter-apply",
        lambda x: lax.scatter_apply(x, np.array([[1], [2]]), lax.sin, ROWS, update_shape=(2, 6)),
        matrix,
    ),
    further("random_bits", lambda k: vmap(lambda k: random.bits(k, (3,)))(k), keys),
    further("random_split", lambda k: vmap(random.split)(k), keys),
    further("random_fold_in", lambda k: vmap(lambda k: random.fold_in(k, 3))(k), keys),
    further("random_unwrap", random.key_data, keys),
    further("random_wrap", lambda k: random.wrap_key_data(random.key_data(k)), keys),
]
ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))

EXAMPLES = "add mul select_n clamp convert_element_type erf igamma".split()
CHOSEN = {name: case for name, case in CASES.items() if is_chosen(case)} | {c.name: c for c in FURTHER}
check_once = functools.cache(checked)


@pytest.mark.parametrize("name", sorted(CHOSEN))
def test_parts_make_the_whole(name):
    check_once(CHOSEN[name])


# Primitives whose cases have nothing to split, and why.
UNSPLIT = {"iota": "made from nothing"}


def test_every_primitive_was_split_by_its_case():
    split = set().union(*map(check_once, CHOSEN.values()))
    assert {c.covers for c in CHOSEN.values()} - split == set(UNSPLIT)
