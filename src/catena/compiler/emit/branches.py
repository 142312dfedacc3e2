"""Branches of a function that is being written: what runs only where a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def when_it_leaves(e, condition: str) -> Iterator[str]:
    """What is written inside runs where a condition holds, and goes elsewhere then; gives where all else goes on."""
    leave, go = e.label(), e.label()
    e.branch(condition, leave, go)
    e.start(leave)
    yield go
    e.start(go)


@contextmanager
def when(e, condition: str) -> Iterator[None]:
    """What is written inside runs where a condition holds."""
    with when_it_leaves(e, condition) as done:
        yield
        e.jump(done)


def each_way(e, condition: str) -> Iterator[bool]:
    """What a loop over this writes first (True) runs where a condition holds, and then (False) where it does not."""
    ways, done = (e.label(), e.label()), e.label()
    e.branch(condition, *ways)
    for label, holds in zip(ways, (True, False)):
        e.start(label)
        yield holds
        e.jump(done)
    e.start(done)


def either(e, condition: str, type_: str, yes: Callable, no: Callable) -> list[str]:
    """Results of that type of what writes one branch or the other."""
    ends, results = [], []
    for holds in each_way(e, condition):
        results.append((yes if holds else no)())
        ends.append(e.block)
    return [e.op(f"phi {type_} [ {a}, %{ends[0]} ], [ {b}, %{ends[1]} ]") for a, b in zip(*results, strict=True)]


def replaced(e, condition: str, type_: str, usual: list[str], others: Callable) -> list[str]:
    """Results of that type which are there, and what is written instead of them where a condition holds. No block is
    written for the usual ones: LLVM would move them there, with what lanes share, which is spread again each time.
    """
    start = e.block
    with when_it_leaves(e, condition) as done:
        results, end = others(), e.block
        e.jump(done)
    return [e.op(f"phi {type_} [ {a}, %{end} ], [ {b}, %{start} ]") for a, b in zip(results, usual, strict=True)]


@contextmanager
def perhaps_never(e, start, stop, step: int = 1) -> Iterator[str]:
    """A loop that runs never where `stop` is not beyond `start`."""
    with when(e, e.op(f"icmp slt i64 {start}, {stop}")):
        i, opened = e.begin_loop(start, stop, step)
        yield i
        e.end_loop(opened)
