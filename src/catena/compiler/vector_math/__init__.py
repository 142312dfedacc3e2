"""Elementary functions as LLVM IR text, for every vector width."""

from .library import ELEMENTARY, NAMES, PARAMETERS, arity, declarations, define, dependencies, in_stages, symbol

__all__ = [
    *("ELEMENTARY", "NAMES", "PARAMETERS"),
    *("arity", "declarations", "define", "dependencies", "in_stages", "symbol"),
]
