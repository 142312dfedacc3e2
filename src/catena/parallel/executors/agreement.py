"""Whether all devices run the same program: asked before it first runs, since programs that differ would wait forever.

A program is told by its equations, one text each. All exchange a hash of them; where hashes differ, all exchange the
texts, and the first that differ are the error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import numpy as np

from catena.core.errors import JaxRuntimeError
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from catena.parallel.communicator import Communicator, Group

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
AT = "\tat "


def agree(communicator: Communicator, local) -> None:
    """Return when all devices of a mesh have come with the same program.

    Raises:
      JaxRuntimeError: programs differ.
    """
    communicator.where = "comparing programs before they run"
    group = communicator.group(tuple(communicator.sizes))
    lines = [f"in_specs={local.in_specs} out_specs={local.out_specs}", *equations(local.closed.jaxpr)]
    told = "\n".join(map(without_place, lines))
    digests = group.gather(np.frombuffer(hashlib.sha256(told.encode()).digest(), np.uint8))
    if (digests != digests[0]).any():
        raise JaxRuntimeError(difference([text.split("\n") for text in everybodys("\n".join(lines), group)]))


def without_place(line: str) -> str:
    """A line without the place in the user's program, which may be another one."""
    return line.partition(AT)[0]


def everybodys(text: str, group: Group) -> list[str]:
    """The texts of all."""
    own = np.frombuffer(text.encode(), np.uint8)
    sizes = group.gather(np.array(own.size))
    padded = np.zeros(sizes.max(), np.uint8)
    padded[: own.size] = own
    return [bytes(row[:n]).decode() for row, n in zip(group.gather(padded), sizes, strict=True)]


def difference(programs: list[list[str]]) -> str:
    """What to say of programs of which some differ from the first one's."""
    first = programs[0]
    told = [list(map(without_place, p)) for p in programs]
    number = next(i for i, p in enumerate(told) if p != told[0])
    other = programs[number]
    pairs = enumerate(zip(told[0], told[number], strict=False))
    k = next((k for k, (a, b) in pairs if a != b), min(len(first), len(other)))
    line = lambda p: p[k] if k < len(p) else "nothing: the program has ended"  # noqa: E731
    return (
        "the devices of a mesh would run different programs, and wait for each other forever. The first equation that "
        f"differs:\n  device 0: {line(first)}\n  device {number}: {line(other)}\nEvery process must call the same "
        "functions on arguments of the same types, in the same order."
    )


def equations(jaxpr: Jaxpr) -> Iterator[str]:
    """A line for each equation of a program, those in bodies after the one they belong to."""
    names: dict = {}
    named = lambda v: names.setdefault(v, f"v{len(names)}:{v.aval.str_short()}")  # noqa: E731
    atom = lambda v: f"{v.val}:{v.aval.str_short()}" if type(v) is Literal else named(v)  # noqa: E731
    yield f"a program of {', '.join(map(named, [*jaxpr.constvars, *jaxpr.invars]))}"
    for eqn in jaxpr.eqns:
        inner: list = []
        params = [f"{key}={text_of(value, inner)}" for key, value in eqn.own_params.items()]
        read = " ".join(map(atom, eqn.invars))
        yield f"{' '.join(map(named, eqn.outvars))} = {eqn.primitive.name}[{' '.join(params)}] {read}{AT}{eqn.source}"
        for body in inner:
            yield from equations(body)
    yield f"results {' '.join(map(atom, jaxpr.outvars))}"


def text_of(value, inner: list) -> str:
    """A parameter of an equation; jaxprs in it are added to ``inner``."""
    if isinstance(value, (ClosedJaxpr, Jaxpr)):
        inner.append(value.jaxpr if isinstance(value, ClosedJaxpr) else value)
        return "..."
    if isinstance(value, (tuple, list)):
        return f"({' '.join([text_of(x, inner) for x in value])})"
    return ADDRESS.sub("", str(value))
