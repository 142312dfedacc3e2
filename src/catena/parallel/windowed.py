"""Operations whose parts depend on where they lie: how they are computed in parts all the same.

What is made from nothing, a part makes from its own position on: random numbers are the same however they are split.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from catena.lax.arithmetic import add, mul
from catena.lax.convert import convert_element_type
from catena.lax.named_axes import axis_index
from catena.lax.shape import broadcast_in_dim, iota, reshape
from catena.parallel.choice import Choice
from catena.random.dtype import U32
from catena.random.kernels import is_positional
from catena.random.primitives import random_unwrap_p
from catena.transform.vmap import vmap


class Window(NamedTuple):
    """How an operation is computed in parts along its factors of kind "window".

    Arguments:
      price: ``price(partitioner, eqn, way)``: what it sends; infinite where it cannot be done.
      run: ``run(partitioner, eqn, way, xs, params)``: the results for operands as the way has them; ``params`` are
        those for parts.
    """

    price: Callable
    run: Callable


def is_split(eqn, factors: list, way: Choice) -> bool:
    """Whether a factor is split of which parts must know where they lie."""
    return any(names and factor.kind == "window" for factor, names in zip(factors, way.names, strict=True))


def free(p, eqn, way: Choice) -> float:
    """It sends nothing."""
    return 0.0


def first(names: tuple, size: int):
    """The position at which this device's part begins, of ``size`` elements each."""
    return mul(axis_index(names), np.int32(size)) if names else np.int32(0)


def positions(p, eqn, way: Choice, xs, params) -> list:
    """``iota``: numbers from the beginning of the part on."""
    (split,), (out,) = way.results, eqn.outvars
    local, axis = p.local_aval(out.aval, split), params["dimension"]
    part = eqn.primitive.bind(**{**params, "shape": local.shape})
    start = convert_element_type(first(split[axis], local.shape[axis]), local.dtype)
    return [add(part, broadcast_in_dim(start, local.shape, ()))]


def can_draw(p, eqn, way: Choice) -> float:
    """Numbers are drawn in parts where the generator counts, from one key."""
    (keys,), (out,) = eqn.invars, eqn.outvars
    counts = is_positional(eqn.params["impl"]) and eqn.params.get("partitionable", True)
    return 0.0 if counts and not keys.aval.ndim and out.aval.size < 2**32 else math.inf


def drawn(p, eqn, way: Choice, xs, params) -> list:
    """``random_bits``: each row that lies in one piece in the whole is drawn from its position on."""
    (split,), (out,), impl = way.results, eqn.outvars, params["impl"]
    shape, local = out.aval.shape, p.local_aval(out.aval, split).shape
    inner = max(axis for axis, names in enumerate(split) if names)
    count = math.prod(local[inner:])
    start = broadcast_in_dim(np.uint32(0), local[:inner], ())
    for axis in range(inner + 1):
        stride = np.uint32(math.prod(shape[axis + 1 :]))
        begins = convert_element_type(first(split[axis], local[axis]), U32)
        own = add(iota(U32, local[axis]), begins) if axis < inner else begins
        steps = broadcast_in_dim(mul(own, stride), local[:inner], (axis,) if axis < inner else ())
        start = add(start, steps)
    words = random_unwrap_p.bind(xs[0], impl=impl)
    draw = lambda low: impl.bits_at(words, params["bit_width"], np.uint32(0), low, count)  # noqa: E731
    return [reshape(vmap(draw)(reshape(start, (math.prod(local[:inner]),))), local)]


WINDOWED = {
    "iota": Window(free, positions),
    "random_bits": Window(can_draw, drawn),
}
