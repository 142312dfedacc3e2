"""What compilation rules are told (``mlir.register_lowering``)."""

from catena.core.unbuilt import absent as _absent
from catena.interpreters.mlir import LoweringRuleContext as LoweringRuleContext

_absent(globals())
