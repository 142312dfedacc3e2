"""Pickling of objects that decorate functions: a decorated module-level function is found by its name."""

import sys


def global_name(decorated) -> str | None:
    """The qualified name under which ``decorated`` is found in its module, or ``None`` where it is not.

    Returned from ``__reduce__``, it makes pickle store a reference to that name.
    """
    name = getattr(decorated, "__qualname__", None)
    found = sys.modules.get(getattr(decorated, "__module__", None) or "")
    for part in name.split(".") if name else ():
        found = getattr(found, part, None)
    return name if name and found is decorated else None
