"""Linux's permission to use the registers for tiles of the instructions that Intel calls AMX.

They are 8 KiB that the kernel saves when threads change, and lays on a thread's stack when a signal comes; so a process
has to ask before any of its threads uses them. The kernel says no where it is too old, or where a thread has set up a
stack for signals that is too small; it grants it to all threads, and to the children of a fork.
"""

from __future__ import annotations

import ctypes
import functools
import platform

ARCH_PRCTL = 158  # the number of the system call on x86-64
ARCH_REQ_XCOMP_PERM = 0x1023
XFEATURE_XTILEDATA = 18


@functools.cache
def to_use_tiles() -> bool:
    """Whether this process may use them; asks the first time."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return False
    numbers = (ctypes.c_long(n) for n in (ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA))
    return ctypes.CDLL(None).syscall(*numbers) == 0
