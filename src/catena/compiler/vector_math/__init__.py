"""Elementary functions as LLVM IR text, for every vector width."""

from .library import ELEMENTARY, NAMES, arity, declarations, define, dependencies, symbol

__all__ = ["ELEMENTARY", "NAMES", "arity", "declarations", "define", "dependencies", "symbol"]
