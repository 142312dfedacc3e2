"""Jaxprs as data, and back: each once, numbered, after those that it calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core.array import Array, typed_array
from catena.core.check import check_jaxpr
from catena.core.dtype_table import float0
from catena.core.dtypes import is_extended
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from catena.core.lazy import load
from catena.core.primitive import registry
from catena.core.stack import is_stack
from catena.core.staging import DebugInfo
from catena.export.callees import check_callees
from catena.export.portable import check_own
from catena.export.values import expect, read_aval, read_parameter, write_aval, write_parameter

# Where primitives are that are not there from the beginning.
HOMES = ("catena.scipy.special", "catena.random", "catena.custom_batching", "catena.experimental.sparse")


class Arrays:
    """Constants that are written: their types and places, and their data."""

    def __init__(self):
        self.written: list[list] = []
        self.data: list[bytes] = []
        self.kept: list[Array] = []  # the constants, by their numbers
        self._numbers: dict[int, int] = {}  # by the id of a constant
        self._size = 0

    def number(self, x, aval) -> int:
        """The number of a constant, whose data is written if it was not yet."""
        number = self._numbers.get(id(x))
        if number is None:
            if is_stack(aval) or not isinstance(x, Array):
                raise NotImplementedError(f"a constant of type {aval.str_short()} cannot be exported")
            data = np.ascontiguousarray(x._value).tobytes()
            number = self._numbers[id(x)] = len(self.written)
            self.kept.append(x)
            self.written.append([write_aval(aval), self._size, len(data)])
            self.data.append(data)
            self._size += len(data)
        return number


class Writer:
    """What is written: programs, and the arrays that they hold."""

    def __init__(self, constants: Arrays):
        self.programs: list[dict] = []
        self._constants = constants
        self._numbers: dict[int, int] = {}  # by the id of a program
        self._kept: list = []  # so that ids stay theirs

    @property
    def arrays(self) -> list[list]:
        """Types and places of arrays."""
        return self._constants.written

    @property
    def data(self) -> list[bytes]:
        """Those of arrays."""
        return self._constants.data

    def program(self, closed) -> int:
        """The number of a program, which is written if it was not yet."""
        if not isinstance(closed, ClosedJaxpr):
            raise NotImplementedError(f"a program with a parameter {closed!r:.80} of {type(closed)} cannot be exported")
        number = self._numbers.get(id(closed))
        if number is None:
            written = self._program(closed)
            number = self._numbers[id(closed)] = len(self.programs)
            self._kept.append(closed)
            self.programs.append(written)
        return number

    def _program(self, closed: ClosedJaxpr) -> dict:
        jaxpr = closed.jaxpr
        names = {v: i for i, v in enumerate([*jaxpr.constvars, *jaxpr.invars])}
        equations = []
        for eqn in jaxpr.eqns:
            check_own(eqn.primitive)
            check_callees(eqn)
            params = {k: write_parameter(v, self.program) for k, v in eqn.own_params.items()}
            operands = [_write_atom(v, names) for v in eqn.invars]
            equations.append([eqn.primitive.name, operands, [write_aval(v.aval) for v in eqn.outvars], params])
            for v in eqn.outvars:
                names[v] = len(names)
        return {
            "constants": [self._constant(c, v.aval) for c, v in zip(closed.consts, jaxpr.constvars, strict=True)],
            "arguments": [write_aval(a) for a in jaxpr.in_avals],
            "equations": equations,
            "results": [_write_atom(v, names) for v in jaxpr.outvars],
        }

    def _constant(self, x, aval) -> Any:
        """A constant by its number; one without data by its type."""
        return write_aval(aval) if aval.dtype == float0 else self._constants.number(x, aval)


def _write_atom(v, names: dict) -> Any:
    """A variable by its number, a literal by its type and bytes."""
    if type(v) is Literal:
        return [write_aval(v.aval), np.asarray(v.val).tobytes().hex()]
    return names[v]


class Reader:
    """What was read: programs, which call earlier ones."""

    def __init__(self, programs, arrays: list[Array]):
        self._arrays = arrays
        self.programs: list[ClosedJaxpr] = []
        for item in expect(programs, list, "the programs"):
            self.programs.append(self._program(item))

    def program(self, number: int) -> ClosedJaxpr:
        """The program of a number."""
        if not 0 <= expect(number, int, "the number of a program") < len(self.programs):
            raise ValueError(f"there is no program {number} yet, of {len(self.programs)}")
        return self.programs[number]

    def _program(self, item) -> ClosedJaxpr:
        constants = [self._constant(found) for found in item["constants"]]
        constvars = [Var(c.aval) for c in constants]
        invars = [Var(read_aval(a)) for a in item["arguments"]]
        bound: list[Var] = [*constvars, *invars]
        equations = []
        for name, operands, results, params in item["equations"]:
            atoms = [_read_atom(v, bound) for v in operands]
            outvars = [Var(read_aval(a)) for a in results]
            equations.append(self._equation(name, atoms, outvars, params))
            bound += outvars
        outs = [_read_atom(v, bound) for v in item["results"]]
        jaxpr = Jaxpr(constvars, invars, outs, equations, None, DebugInfo("export", "an exported program"))
        check_jaxpr(jaxpr)
        return ClosedJaxpr(jaxpr, constants)

    def _constant(self, found) -> Array:
        if not isinstance(found, list):
            return self._arrays[expect(found, int, "the number of an array")]
        aval = read_aval(found)
        if aval.dtype != float0:
            raise ValueError(f"a constant of type {aval} has data")
        return typed_array(np.zeros(aval.shape, float0), aval)

    def _equation(self, name, atoms: list, outvars: list, params) -> Eqn:
        primitive = find_primitive(expect(name, str, "the name of a primitive"))
        check_own(primitive)
        read = {k: read_parameter(v, self.program) for k, v in expect(params, dict, "parameters").items()}
        effects = primitive.effects(tuple([v.aval for v in atoms]), read)
        if effects:
            raise ValueError(f"the primitive {name!r} has effects, which no exported program has")
        eqn = Eqn(atoms, outvars, primitive, read, effects)
        check_callees(eqn)
        return eqn


def find_primitive(name: str):
    """The primitive of a name; modules that have more of them are loaded where it is not there."""
    for home in HOMES if name not in registry else ():
        load(home)
        if name in registry:
            break
    found = registry.get(name)
    if found is None:
        raise ValueError(f"there is no primitive {name!r} in this version of catena")
    return found


def _read_atom(found, bound: list) -> Var | Literal:
    if isinstance(found, list):
        aval = read_aval(found[0])
        if aval.shape or aval.extended:
            raise ValueError(f"a literal is a number, not of type {aval}")
        return Literal(typed_array(_values(bytes.fromhex(found[1]), aval), aval), aval)
    if not 0 <= expect(found, int, "a variable") < len(bound):
        raise ValueError(f"a variable {found} is read before it is bound")
    return bound[found]


def _values(data: bytes, aval) -> np.ndarray:
    """The NumPy array of these bytes, in memory of its own."""
    shape, dtype = aval.dtype.physical(aval.shape) if is_extended(aval.dtype) else (aval.shape, aval.dtype)
    if math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"{len(data)} bytes are no array of type {aval}")
    if not dtype.itemsize:  # float0, which has no data
        return np.zeros(shape, dtype)
    if dtype == np.bool_ and np.frombuffer(data, np.uint8).max(initial=0) > 1:
        raise ValueError("a boolean is 0 or 1")
    return np.frombuffer(data, dtype).reshape(shape).copy()


def write_programs(programs: list[ClosedJaxpr], constants: Arrays | None = None) -> tuple[Writer, list[int]]:
    """What is written for these programs and those that they call, and their numbers.

    Arguments:
      constants: arrays that were written already.
    """
    writer = Writer(Arrays() if constants is None else constants)
    return writer, [writer.program(p) for p in programs]


def read_programs(programs, arrays, data: memoryview) -> Reader:
    """The programs in what was written.

    Raises:
      ValueError: it does not make programs.
    """
    return programs_with(programs, read_arrays(arrays, data))


def programs_with(programs, arrays: list[Array]) -> Reader:
    """The programs in what was written, with these arrays.

    Raises:
      ValueError: it does not make programs.
    """
    return well_formed(Reader, programs, arrays)


def read_arrays(arrays, data: memoryview) -> list[Array]:
    """The arrays that programs hold.

    Raises:
      ValueError: these are none.
    """
    return well_formed(lambda: [_array(item, data) for item in expect(arrays, list, "the arrays")])


def _array(item, data: memoryview) -> Array:
    found, start, size = item
    aval = read_aval(found)
    if is_stack(aval) or not 0 <= start <= start + size <= len(data):
        raise ValueError(f"there is no data from {start} on for an array of type {aval}")
    return typed_array(_values(bytes(data[start : start + size]), aval), aval)


def well_formed(read: Callable, *given) -> Any:
    """What a function reads.

    Raises:
      ValueError: it raises anything.
    """
    try:
        return read(*given)
    except Exception as error:  # the rules for types that check it may raise anything where parameters are nonsense
        raise ValueError(f"this exported program is not well formed: {type(error).__name__}: {error}") from error
