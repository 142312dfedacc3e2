"""What errors say of functions that are traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catena.core.named import NamedTuple
from catena.core.tree import tree_flatten_with_path
from catena.core.tree_keys import keystr


class DebugInfo(NamedTuple):
    """What errors say of a function that is traced.

    ``traced_for`` is the transformation, ``func_src_info`` the function's name and place, ``arg_names`` the names of
    its arrays, or None, ``result_paths`` those of its results, or None, or a function that returns them.
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple | None = None
    result_paths: Any = None

    @property
    def func_name(self) -> str:
        """The name of the function."""
        return self.func_src_info.partition(" at ")[0]

    @property
    def func_filename(self) -> str | None:
        """The file of the function, or None."""
        return self.func_src_info.partition(" at ")[2].rpartition(":")[0] or None

    @property
    def func_lineno(self) -> int | None:
        """The line of the function, or None."""
        line = self.func_src_info.rpartition(":")[2]
        return int(line) if line.isdigit() else None

    def replace_func_name(self, name: str) -> DebugInfo:
        """The same for another name."""
        _, at, place = self.func_src_info.partition(" at ")
        return self._replace(func_src_info=name + at + place)

    def with_unknown_names(self) -> DebugInfo:
        """The same, nothing said of arguments and results."""
        return self._replace(arg_names=None, result_paths=None)

    def set_result_paths(self, ans) -> DebugInfo:
        """The same with the names of the leaves of a result: ``result[0]``, ``result['a']``."""
        return self._replace(result_paths=tuple(f"result{keystr(path)}" for path, _ in tree_flatten_with_path(ans)[0]))

    def resolve_result_paths(self) -> DebugInfo:
        """The same, with names instead of a function that returns them."""
        paths = self.result_paths
        return self._replace(result_paths=tuple(paths())) if callable(paths) else self

    def safe_arg_names(self, expected_count: int) -> tuple:
        """The names of so many arrays, or as many times None."""
        return _names(self.arg_names, expected_count)

    def safe_result_paths(self, expected_count: int) -> tuple:
        """The names of so many results, or as many times None."""
        return _names(self.resolve_result_paths().result_paths, expected_count)

    def assert_arg_names(self, expected_count: int) -> None:
        """Raise AssertionError where there are names, but not so many."""
        assert self.arg_names is None or len(self.arg_names) == expected_count, self

    def assert_result_paths(self, expected_count: int) -> None:
        """Raise AssertionError where there are names, but not so many."""
        paths = self.result_paths
        assert paths is None or callable(paths) or len(paths) == expected_count, self

    def filter_arg_names(self, keep: Sequence[bool]) -> tuple | None:
        """The names of the arguments that are kept."""
        return self.arg_names and tuple(n for n, k in zip(self.arg_names, keep, strict=True) if k)

    def filter_result_paths(self, keep: Sequence[bool]) -> tuple | None:
        """The names of the results that are kept."""
        paths = self.resolve_result_paths().result_paths
        return paths and tuple(n for n, k in zip(paths, keep, strict=True) if k)


def _names(names, count: int) -> tuple:
    return tuple(names) if names is not None and len(names) == count else (None,) * count
