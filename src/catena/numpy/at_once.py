"""Functions of several passes over their operands, which large arrays go through as one compiled program.

Evaluated operation by operation, a variance reads and writes an array five times. Small arrays do not mind; of
large ones, passes over memory are all the time there is. Which way is taken hangs on sizes alone, so a value does not
depend on how often it was computed.
"""

import functools
import inspect
from collections.abc import Callable, Hashable

from catena.lax.policy import LARGE
from catena.numpy.boundary import direct
from catena.transform.jit import jit


def at_once(arrays: int) -> Callable:
    """A decorator for functions whose first ``arrays`` parameters are arrays or None, and the others static."""

    def decorate(fun):
        count = len(inspect.signature(fun).parameters)
        program = jit(fun, static_argnums=tuple(range(arrays, count)))

        @functools.wraps(fun)
        def evaluate(*args):
            given = [x for x in args[:arrays] if x is not None]
            large = all(map(direct, given)) and any(x.size >= LARGE for x in given)
            static = all(isinstance(x, Hashable) for x in args[arrays:])
            return (program if large and static else fun)(*args)

        return evaluate

    return decorate
