"""Pickling of objects that decorate functions: a decorated module-level function is found by its name."""

import sys


def global_name(decorated) -> str | None:
    """The qualified name under which ``decorated`` is found in its module, or ``None`` where it is not.

    Returned from ``__reduce__``, it makes pickle store a reference to that name. There is none either where the name is
    in the main program and cloudpickle asks, for a worker (of joblib, dask, ray), whose main program is another one: it
    writes such functions by what they consist of.
    """
    name, module = getattr(decorated, "__qualname__", None), getattr(decorated, "__module__", None) or ""
    if module == "__main__" and "cloudpickle" in sys._getframe(2).f_globals.get("__name__", ""):
        return None
    found = sys.modules.get(module)
    for part in name.split(".") if name else ():
        found = getattr(found, part, None)
    return name if name and found is decorated else None
