"""Questions about numbers whose answers leave a record (`symbols`) some room: a plan serves on both sides of them."""

from catena.compiler.graph.symbols import Symbol, plain

NEAR = 5  # a part of a threshold, so small, is near it


def some(n) -> bool:
    """Whether a number is not zero, where what is done then is right for zero, too: only a zero is written down."""
    return differs(n, 0)


def differs(n, one: int) -> bool:
    """Whether a number is not this one, where what is done then is right for it, too: only equality is written down."""
    return type(n) is Symbol and n.value != one or n != one


def reaches(n, least: int) -> bool:
    """Whether a number is at least so large, where a program serves as well that was planned for a fifth more or less:
    a record leaves that much open, so nothing may hang on it but how long a program takes.
    """
    if type(n) is not Symbol:
        return n >= least
    return n >= least - least // NEAR if n.value >= plain(least) else n >= least + least // NEAR


def exceeds(n, most: int) -> bool:
    """Whether a number is more than this, where what is done then is right for any, and costs no more a fifth below."""
    if type(n) is not Symbol:
        return n > most
    return n > (most - most // NEAR if n.value > most else most)
