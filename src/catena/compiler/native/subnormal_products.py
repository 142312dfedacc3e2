"""The function that multiplies where tiles have met subnormal numbers (`emit.subnormal_products`): made when one has,
and what is done by itself until then.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from catena.runtime import float_control
from catena.runtime.deferred import Deferred, deferred
from catena.runtime.native import Code, Unit


def made_later(unit: Unit, arguments: int, make: Callable[[], Code]) -> Deferred | None:
    """The function, compiled by `make` if it is ever needed; None where no code can be written here."""
    return deferred(unit, arguments, make, _is_needless, _without)


def _is_needless(tile: int, watch: int, *given: int) -> bool:
    """Whether a tile does without the function, which is given these arguments: it is called again, once what the
    thread has met before is forgotten.
    """
    float_control.forget_subnormal()
    _call_tile(tile, given, watch)
    met = ctypes.c_int64.from_address(watch)
    has_met, met.value = met.value, 0
    return not has_met


def _without(tile: int, watch: int, *given: int) -> None:
    """The call of a tile that looks out for nothing: what is done where the function cannot be made."""
    _call_tile(tile, given, 0)


def _call_tile(tile: int, given: tuple[int, ...], watch: int) -> None:
    *of_tile, _ = given
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (len(of_tile) + 1))(tile)(*of_tile, watch)
