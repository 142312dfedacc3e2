"""Caches of what was derived from a jaxpr, living as long as the jaxpr."""

import functools

from catena.core.context import context


def memoised(derive):
    """Remember ``derive(closed_jaxpr, *key)`` on the jaxpr itself, under the flags in force."""

    @functools.wraps(derive)
    def remembered(closed, *key):
        full_key = (derive, key, context.global_key, context.local_key)
        found = closed.memo.get(full_key)
        if found is None:
            found = closed.memo[full_key] = derive(closed, *key)
        return found

    return remembered
