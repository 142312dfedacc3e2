"""Small libraries of neural networks and optimizers, as examples of how such are written."""

from catena.core.unbuilt import absent as _absent

_absent(globals(), "optimizers", "stax")
