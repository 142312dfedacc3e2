"""How values show themselves in notebooks; what draws them is loaded when a notebook asks."""

from __future__ import annotations

from catena.core.lazy import load


class Face:
    """What notebooks ask of an object that they show."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return load("catena.tools.faces").html(self)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
