"""Which numbers of a record (`symbols`) hang on the lengths: those that are others at another one, where one tries."""

from __future__ import annotations

import operator
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from catena.compiler.graph.symbols import Record, Symbol

QUICK = (BuiltinFunctionType, np.ufunc, operator.methodcaller)  # other functions may take their time
STEP = 41  # by which the first length is another, and the second by two more


def varies(n) -> bool:
    """Whether a number hangs on a length, as far as one can see: nothing may be decided by it but how numbers that come
    out the same are had.
    """
    if type(n) is not Symbol or n.record.closed:
        return False
    try:
        return bool(_elsewhere(n.record, n.name) != n.value)
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError):
        return True


def _elsewhere(record: Record, name: str) -> Any:
    """The value of a name at another length."""
    if name in record.constants:
        return record.constants[name]
    found = record.known.get((_elsewhere, name))
    if found is None:
        value, function, read = record.made[name]
        if function is None:
            found = _moved(value, STEP + 2 * record.arguments.index(name))
        elif isinstance(function, QUICK):
            found = function(*[_elsewhere(record, x) for x in read])
        else:
            found = _moved(value, STEP)
        record.known[_elsewhere, name] = found
    return found


def _moved(x, by: int):
    """What a number, or each of a tuple, may be elsewhere."""
    if type(x) is tuple:
        return tuple([_moved(y, by) for y in x])
    return x + x.dtype.type(by) if isinstance(x, np.ndarray) else x + by
