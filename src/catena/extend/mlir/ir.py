"""Types, attributes and programs: those of ``interpreters.mlir.ir``."""

from catena.interpreters.ir import *  # noqa: F403
