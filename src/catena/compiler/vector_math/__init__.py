"""Elementary functions as LLVM IR text, for every vector width."""

from .library import (
    ELEMENTARY,
    NAMES,
    OF_HALVES,
    PARAMETERS,
    arity,
    declarations,
    define,
    dependencies,
    in_stages,
    is_inlined,
    symbol,
)
from .text import FORMATS

__all__ = [
    *("ELEMENTARY", "FORMATS", "NAMES", "OF_HALVES", "PARAMETERS"),
    *("arity", "declarations", "define", "dependencies", "in_stages", "is_inlined", "symbol"),
]
