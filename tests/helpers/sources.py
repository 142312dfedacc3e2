"""The files of the package as syntax trees, which several tests of the house look through."""

import ast
from functools import cache
from pathlib import Path

from catena.core.lazy import without_collection


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a file, the module first. Not read when tests are collected: each process collects all of them."""
    with without_collection():  # of trees, which hold no garbage: four times the time
        return list(ast.walk(ast.parse(path.read_text())))
