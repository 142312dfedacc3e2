"""The rules of primitives, by transformation, as JAX's users write them."""

from catena.core.unbuilt import absent as _absent
from catena.interpreters import ad as ad
from catena.interpreters import batching as batching
from catena.interpreters import mlir as mlir
from catena.interpreters import xla as xla

_absent(globals(), "partial_eval", "pxla")
