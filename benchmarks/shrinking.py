"""Programs as lists of steps, each `[name, numbers of the values that it reads, parameters]`, made smaller."""

from collections.abc import Callable


def without(steps: list, k: int, inputs: int) -> list:
    """The steps without step ``k``, and without those that need it; values are numbered anew, after the inputs."""
    renamed, kept = {i: i for i in range(inputs)}, []
    for i, (name, args, params) in enumerate(steps):
        if i != k and all(a in renamed for a in args):
            renamed[i + inputs] = len(kept) + inputs
            kept.append([name, [renamed[a] for a in args], params])
    return kept


def smallest(program, found, smaller: Callable, again: Callable):
    """The smallest program by leaving out steps, last ones first, and what is found of it; ``smaller(program, k)`` is
    the program without step ``k``, ``again(program)`` what is still found, if anything.
    """
    k = len(program.steps) - 1
    while k >= 0:
        less = smaller(program, k)
        kept = again(less) if less.steps else None
        if kept:
            program, found, k = less, kept, min(k, len(less.steps))
        k -= 1
    return program, found
