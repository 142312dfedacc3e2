"""What compilation rules are told (``mlir.register_lowering``), and what their types belong to."""

from typing import Any

from catena.core.unbuilt import absent as _absent
from catena.interpreters.ir_types import Context as _Context
from catena.interpreters.mlir import LoweringRuleContext as LoweringRuleContext


class JaxIrContext(_Context):
    """What types belong to while rules are written (``mlir.ir.Context``). It takes no arguments.

    >>> from catena.extend import lowering
    >>> with lowering.JaxIrContext() as context:
    ...     context == lowering.JaxIrContext()
    True
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)


_absent(globals())
