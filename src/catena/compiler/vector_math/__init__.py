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

__all__ = [
    *("ELEMENTARY", "NAMES", "PARAMETERS"),
    *("arity", "declarations", "define", "dependencies", "in_stages", "is_inlined", "symbol"),
]
