"""Elementary functions as LLVM IR text, for every vector width."""

from .library import (
    ELEMENTARY,
    NAMES,
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
    *("ELEMENTARY", "FORMATS", "NAMES", "PARAMETERS"),
    *("arity", "declarations", "define", "dependencies", "in_stages", "is_inlined", "symbol"),
]
