"""Caches of what was derived from a jaxpr, living as long as the jaxpr."""

import functools
import threading
import weakref

from catena.core.check import check_if_enabled
from catena.core.context import context
from catena.core.jaxpr import ClosedJaxpr

all_caches: weakref.WeakSet = weakref.WeakSet()  # everything with a method clear_cache, so that clear_caches finds it


class CallCache:
    """What calls of one transformed function traced, by the types of the arguments."""

    __slots__ = ("entries", "__weakref__")

    def __init__(self):
        self.entries: dict = {}
        all_caches.add(self)

    def clear_cache(self):
        """Forget all entries."""
        self.entries.clear()


_deriving = threading.RLock()


def memoised(derive):
    """Remember ``derive(closed_jaxpr, *key)`` on the jaxpr itself, under the flags in force.

    One thread derives at a time, so that threads that need the same program compile it once.
    """

    @functools.wraps(derive)
    def remembered(closed, *key):
        full_key = (derive, key, context.global_key, context.local_key)
        found = closed.memo.get(full_key)
        if found is not None:
            return found
        with _deriving:
            found = closed.memo.get(full_key)
            if found is None:
                found = derive(closed, *key)
                if context.enable_checks:
                    check_derived(found)
                closed.memo[full_key] = found
        return found

    return remembered


def check_derived(found):
    """Check the jaxprs among what was derived."""
    for part in found if isinstance(found, tuple) else (found,):
        if isinstance(part, ClosedJaxpr):
            check_if_enabled(part)
