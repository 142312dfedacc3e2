"""What a jaxpr computes, as text that is the same in every process: the name of its program on disk.

Variables are numbered as they appear, jaxprs inside equations too; arrays are told by their bytes. Whatever another
process could not know again (a function of the user, a primitive that the package does not define) leaves the jaxpr
without a name, and its program is written anew.
"""

from __future__ import annotations

import enum
import functools

import numpy as np

from catena.core import digests
from catena.core.array import Array
from catena.core.aval import AbstractToken, ShapedArray
from catena.core.dtype_table import ExtendedDType
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, Literal

MOST_BYTES = 1 << 24  # of constants: hashing more takes longer than writing the program
# What derivatives are made from: programs do not run it.
NOT_RUN = {"custom_jvp_call": ("jvp",), "custom_vjp_call": ("fwd", "bwd"), "remat2": ("policy",)}
PLAIN = frozenset([type(None), bool, int, float, complex, str, bytes])


class Unnamed(Exception):
    """Something is not known in other processes."""


def fingerprint(closed: ClosedJaxpr) -> str | None:
    """The text of a closed jaxpr; None where something in it has no name, or happens besides computing."""
    if closed.jaxpr.effects:
        return None
    writer = Writer()
    try:
        writer.number(closed)
        return "\n".join(writer.text(each) for each in writer.jaxprs)  # grows while it is read
    except Unnamed:
        return None


class Writer:
    """Writes jaxprs; those inside others come after them, each once."""

    def __init__(self):
        self.jaxprs: list = []
        self.numbers: dict[int, int] = {}
        self.bytes = 0

    def number(self, jaxpr) -> int:
        """The number of a jaxpr, which will be written in its turn."""
        if id(jaxpr) not in self.numbers:
            self.numbers[id(jaxpr)] = len(self.jaxprs)
            self.jaxprs.append(jaxpr)
        return self.numbers[id(jaxpr)]

    def text(self, jaxpr) -> str:
        consts = [self.const(x) for x in jaxpr.consts] if type(jaxpr) is ClosedJaxpr else []
        jaxpr = jaxpr.jaxpr if type(jaxpr) is ClosedJaxpr else jaxpr
        names: dict = {}
        heads = [names.setdefault(v, f"{len(names)}:{self.value(v.aval)}") for v in (*jaxpr.constvars, *jaxpr.invars)]
        lines = [f"{consts} {len(jaxpr.constvars)} {heads}"]
        for eqn in jaxpr.eqns:
            if not eqn.primitive.own:
                raise Unnamed
            skipped = NOT_RUN.get(eqn.primitive.name, ())
            params = [f"{k}={self.value(v)}" for k, v in eqn.own_params.items() if k not in skipped]
            read = [self.atom(v, names) for v in eqn.invars]
            made = [names.setdefault(v, f"{len(names)}:{self.value(v.aval)}") for v in eqn.outvars]
            lines.append(f"{','.join(made)} {eqn.primitive.name} {';'.join(params)} {','.join(read)}")
        lines.append(str([self.atom(v, names) for v in jaxpr.outvars]))
        return "\n".join(lines)

    def const(self, x) -> str:
        """An array that a jaxpr holds."""
        return self.array(x)

    def atom(self, v, names: dict) -> str:
        return self.array(v.val) + self.value(v.aval) if type(v) is Literal else names[v]

    def array(self, x) -> str:
        value = np.asarray(getattr(x, "_value", x))
        if value.dtype.hasobject:
            raise Unnamed
        self.bytes += value.nbytes
        if self.bytes > MOST_BYTES:
            raise Unnamed
        content = value.tobytes()
        told = content if len(content) <= 32 else digests.of(content)
        return f"{_dtype(value.dtype)}{value.shape}{told.hex()}"

    def value(self, x) -> str:
        """A parameter of an equation, or a part of one."""
        kind = type(x)
        if kind in PLAIN:  # text within quotes, so that what stands between the parts is never in one
            return repr(x)
        if kind is ShapedArray:
            return _plain_type(x) or f"{self.value(x.dtype)}{x.shape}{x.weak_type}"
        if kind is tuple:
            return f"tuple({','.join([repr(y) if type(y) in PLAIN else self.value(y) for y in x])})"
        if kind is AbstractToken:
            return x.str_short()
        if isinstance(x, np.dtype):
            return _dtype(x)
        if kind in (ClosedJaxpr, Jaxpr):
            return f"jaxpr {self.number(x)}"
        if isinstance(x, (tuple, list)):  # a list, or a class of tuples
            return f"{kind.__qualname__}({','.join([self.value(y) for y in x])})"
        if isinstance(x, enum.Enum):
            return f"{kind.__qualname__}.{x.name}"
        if kind is dict:
            return self.value(tuple(x.items()))
        if isinstance(x, (np.ndarray, np.generic, Array)):
            return self.array(x)
        if isinstance(x, ExtendedDType) and kind.__module__.startswith("catena."):
            return f"{kind.__qualname__} {x.name} {self.value(x._impl)}"
        name = getattr(x, "stable_name", None)  # objects that the package knows by name, such as random generators
        if name is None:
            raise Unnamed
        return f"{kind.__qualname__} {name}"


@functools.lru_cache(maxsize=4096)
def _plain_type(aval: ShapedArray) -> str | None:
    """The text of a type of numbers, which programs have again and again; None for other types."""
    return f"{_dtype(aval.dtype)}{aval.shape}{aval.weak_type}" if isinstance(aval.dtype, np.dtype) else None


@functools.lru_cache(maxsize=256)
def _dtype(dtype: np.dtype) -> str:
    return dtype.name if dtype.names is None else repr(dtype)
