"""Elementary functions as LLVM IR text, for every vector width."""

from .library import NAMES, arity, declarations, define, dependencies, symbol

__all__ = ["NAMES", "arity", "declarations", "define", "dependencies", "symbol"]
