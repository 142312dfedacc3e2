"""How native programs end: the statuses that their entries return besides 0 and the numbers of refused arguments."""

from __future__ import annotations

from collections.abc import Sequence

from catena.core import failures
from catena.core.errors import JaxRuntimeError, OutOfMemoryError
from catena.runtime import kernels

OUT_OF_MEMORY, INTERRUPTED, CHECK_FAILED = -2, -3, -4  # -1: a callback raised
FIRST_VIOLATION = -1000  # in checked mode: the program stopped at access 0; the status of the next is one less


def raise_failure(sites: Sequence[str], checks: list, status: int, function, arguments) -> int:
    """After a call of a program that can fail: raises why it did. `sites` describes the accesses of checked mode,
    `checks` the tests that the program makes (`core.failures`).
    """
    if status == CHECK_FAILED:
        raise failures.found(checks, arguments[1][-1])
    if status == OUT_OF_MEMORY:
        raise OutOfMemoryError(
            "RESOURCE_EXHAUSTED: Out of memory while allocating the intermediate results of a compiled program"
        )
    if status == INTERRUPTED:
        kernels.raise_interrupt()
    if status <= FIRST_VIOLATION:
        raise JaxRuntimeError(f"a compiled program went out of bounds: {sites[FIRST_VIOLATION - status]}")
    if status < 0:
        kernels.raise_pending()
    return status
