"""The operations that rules write, by the dialects of MLIR."""

from catena.core.unbuilt import absent as _absent
from catena.extend.mlir.dialects import func as func
from catena.extend.mlir.dialects import stablehlo as stablehlo

_absent(globals())
