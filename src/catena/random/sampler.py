"""The machinery of samplers: one function, drawn eagerly by fused kernels, traced as a call of its own name."""

import functools
import inspect
import math

import numpy as np

from catena.core import config, dtypes
from catena.core.array import ExtendedArray
from catena.core.context import context
from catena.core.errors import SizeError
from catena.core.placed import follow
from catena.core.shapes import broadcast_shapes
from catena.core.zeros import get_aval
from catena.lax.broadcasting import broadcast_in_dim, broadcast_to_rank
from catena.lax.convert import convert_element_type
from catena.random import kernels, reuse
from catena.random.keys import asked_shape
from catena.transform.jit import jit


class Sampler:
    """A sampler's body, ``fun(key, *operands, shape=, ...)``, with its fixed parameters as keywords.

    Eagerly, a body that draws one number an element runs in fused kernels that know no shape; any other is compiled
    for its shape. Under a trace it is one ``jit`` equation of the body's name.
    """

    def __init__(self, fun, positional: bool = True):
        functools.update_wrapper(self, fun)
        self.fun, self.positional = fun, positional
        self.name = fun.__name__.strip("_")
        reuse.samplers.add(fun.__name__)
        statics = [p.name for p in inspect.signature(fun).parameters.values() if p.kind == p.KEYWORD_ONLY]
        self.compiled = jit(fun, static_argnames=tuple(statics))

    def __call__(self, key, *operands, shape, **statics):
        asked = statics["dtype"] if "dtype" in statics else getattr(operands[0], "dtype", None) if operands else None
        if is_wider_than_defaults(asked):
            with config.override("jax_enable_x64", True):
                return self._drawn(key, *operands, shape=shape, **statics)
        return self._drawn(key, *operands, shape=shape, **statics)

    def _drawn(self, key, *operands, shape, **statics):
        if kernels.window.place is not None:
            return self.fun(key, *operands, shape=shape, **statics)
        if context.trace is None and self.positional:
            drawn = kernels.draw(self.fun, key, shape, operands, statics)
            if drawn is not None:
                if context.debug_key_reuse is True:
                    reuse.consume(key, self.name)
                if type(key) is ExtendedArray and not operands:
                    return drawn
                return follow(drawn, self.name, (key, *operands))
        return self.compiled(key, *operands, shape=shape, **statics)


def sampler(fun=None, *, positional: bool = True):
    """Make a body a ``Sampler``; ``positional=False`` where an element needs more than its own random bits."""
    return functools.partial(Sampler, positional=positional) if fun is None else Sampler(fun, positional)


# ---- what samplers check


def is_wider_than_defaults(dtype) -> bool:
    """Whether a dtype needs x64 while that is off, as ``jax_explicit_x64_dtypes`` may allow."""
    return not context.x64 and dtype in dtypes.TO_32_BITS


def float_dtype(dtype, name: str):
    """The canonical float dtype asked of the sampler ``name``, the default one where ``dtype`` is None."""
    if dtype is None:
        return dtypes.canonicalize_dtype(float)
    full = dtypes.asked_dtype(dtype, name)
    if not dtypes.is_floating(full):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {dtypes.dtype_name(full)}")
    return dtypes.check_user_dtype_supported(dtype, name)


def integer_dtype(dtype, name: str):
    """The canonical integer dtype asked of the sampler ``name``, the default one where ``dtype`` is None."""
    if dtype is None:
        return dtypes.canonicalize_dtype(int)
    found = dtypes.check_user_dtype_supported(dtype, name)
    if not dtypes.is_integer(found):
        raise ValueError(f"dtype argument to `{name}` must be an integer dtype, got {dtypes.dtype_name(found)}")
    return found


def shape_of(shape, name: str, *operands) -> tuple:
    """The shape of a sampler's result: that asked for, to which its operands broadcast, or theirs together."""
    together = broadcast_shapes(*map(np.shape, operands))
    if shape is None:
        return together
    shape = asked_shape(shape)
    for x in operands:
        check_broadcasts(name, shape, np.shape(x))
    return shape


def check_broadcasts(name: str, shape: tuple, own: tuple):
    fits = len(own) <= len(shape) and all(a in (1, b) for a, b in zip(reversed(own), reversed(shape)))  # noqa: B905
    if not fits:
        raise SizeError(
            f"{name} parameter shapes must be broadcast-compatible with shape argument, and the result "
            f"of broadcasting the shapes must equal the shape argument, but got {own} for shape argument {shape}."
        )


def as_float(x, dtype):
    """``x`` as a float dtype."""
    kind = type(x)
    if (kind is float or kind is int) and context.trace is None:
        sign = math.copysign(1.0, x) if kind is float else 1.0
        return _known_float(x, sign, dtype, context.global_key, context.local_key)
    return convert_element_type(x, dtype)


def safe_float(x, dtype, name: str):
    """``x`` as a float dtype to which it promotes by itself: numbers lose no digits that nobody gave up."""
    if type(x) is float:
        return as_float(x, dtype)
    aval = get_aval(x)
    if not aval.weak_type and dtypes.promote_types(aval.dtype, dtype) != dtype:
        raise dtypes.TypePromotionError(
            f"In arguments to {name}, cannot safely cast argument of type {aval.dtype} to {dtype}; "
            "convert it with .astype first"
        )
    return as_float(x, dtype)


@functools.lru_cache(512, typed=True)
def _known_float(x: int | float, sign: float, dtype, *keys: int):
    """A Python number as a float dtype; under flags of these keys, and where it is a zero, of this sign."""
    return convert_element_type(x, dtype)


def lift(x, shape: tuple):
    """``x`` with axes of size 1 in front, to the rank of ``shape``."""
    return broadcast_to_rank(x, len(shape)) if shape else x


def spread(x, shape: tuple):
    """``x`` broadcast to ``shape`` as NumPy does."""
    own = get_aval(x).shape
    if own == shape:
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape) - len(own), len(shape))))
