"""``x[mask]`` where the mask is traced: the selected elements, whose number nobody knows yet.

Most uses do not need the number. A reduction over the selected elements has a static shape, so has an update
at the same mask, and an elementwise function may as well compute on all elements. So ``x[mask]`` under a
transformation is a ``Selection``, which keeps the array beside the mask and gives these uses a meaning by the
array protocol, as a user's class could (docs/array_protocol.md). Every other use raises
``NonConcreteBooleanIndexError``.
"""

import inspect
from functools import partial

import numpy as np

from catena import lax
from catena.core.errors import NonConcreteBooleanIndexError
from catena.core.trace import Tracer, same_value
from catena.core.tree import tree_map
from catena.numpy.boundary import canonical_axes
from catena.numpy.protocol import participants
from catena.numpy.reductions import highest, lowest


class Selection:
    """The elements of an array along one axis where a traced mask is true: lazily ``array[mask]``.

    Arguments:
      array: an array or traced value.
      mask: a traced boolean vector of the length of the axis.
      axis: the axis, counted from the front.
      source: the mask as the user wrote it, perhaps of several dimensions: elements that two selections take
        by the same one correspond.
      tame: whether the elements where the mask is false repeat one that is selected.
    """

    __slots__ = ("array", "mask", "axis", "source", "tame")
    __hash__ = None
    __array_priority__ = 1000

    def __init__(self, array, mask, axis: int, source, tame: bool = False):
        self.array, self.mask, self.axis, self.source, self.tame = array, mask, axis, source, tame

    @property
    def dtype(self):
        """The type of the elements."""
        return self.array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.array.ndim

    @property
    def from_right(self) -> int:
        """The selected axis, counted from the back, as broadcasting counts."""
        return self.array.ndim - self.axis

    def with_array(self, array, from_right: int, tame: bool) -> "Selection":
        """Other values for the same elements."""
        return Selection(array, self.mask, array.ndim - from_right, self.source, tame)

    def spread_mask(self):
        """The mask with axes of size 1 for those that it does not select along."""
        shape = [1] * self.array.ndim
        shape[self.axis] = self.mask.shape[0]
        return lax.reshape(self.mask, tuple(shape))

    def tamed(self) -> "Selection":
        """The same elements, where those that are not selected repeat the first that is.

        Functions are computed on all elements. What they give where the mask is false is never used, but
        must not raise flags or make gradients NaN (0 times infinity), as the logarithm of a negative number
        that the mask was to keep out.
        """
        if self.tame or not self.mask.shape[0]:
            return self
        first = lax.argmax(self.mask, 0, np.int32)
        repeated = lax.stop_gradient(lax.dynamic_slice_in_dim(self.array, first, 1, self.axis))
        chosen = self.array.__array_namespace__().where(self.spread_mask(), self.array, repeated)
        return self.with_array(chosen, self.from_right, True)

    def refuse(self, use: str):
        """Raise the error for a use that needs the number of elements."""
        raise NonConcreteBooleanIndexError(self.source, use)

    # ---- what it offers

    def __jax_function__(self, function, types, args, kwargs):
        if types != (Selection,):
            return NotImplemented
        name = function.__name__
        meaning = _MEANINGS.get(name)
        if meaning is None or getattr(self.array.__array_namespace__(), name, None) is not function:
            self.refuse(f"jnp.{name}")
        return meaning(function, args, kwargs)

    def __getattr__(self, name):
        if name.startswith("_") or not hasattr(Tracer, name):
            raise AttributeError(f"'Selection' object has no attribute '{name}'")
        if name not in _MEANINGS:
            self.refuse(f"its attribute '{name}'")
        function = getattr(self.array.__array_namespace__(), name)
        return function(self) if isinstance(getattr(Tracer, name), property) else partial(function, self)

    def __repr__(self):
        return f"Selection({self.array!r}[{self.source!r}])"


def _refusal(use: str):
    def refuse(self, *args, **kwargs):
        self.refuse(use)

    return refuse


_REFUSED = {
    "__len__": "len", "__iter__": "iteration", "__getitem__": "indexing", "__bool__": "bool", "__int__": "int",
    "__float__": "float", "__complex__": "complex", "__index__": "a Python index", "__contains__": "in",
    "__array__": "a function of NumPy", "__jax_array__": "conversion to an array",
}  # fmt: skip
for _name, _use in _REFUSED.items():
    setattr(Selection, _name, _refusal(_use))
# What lax and transformations say of it, to which it is no value: neither an array nor a pytree.
Selection._refuse_as_value = _refusal("use in lax or as argument or result of a transformed function")
Selection.aval = property(Selection._refuse_as_value)


# ----------------------------------------------------------------------------------------------------
# Elementwise functions


def elementwise(function, args, kwargs):
    """The function of all elements, of which those count that are selected."""
    selections = [x for x in (*args, *kwargs.values()) if type(x) is Selection]
    first = selections[0]
    if function.__name__ == "where" and len(args) < 3 and not {"x", "y"} <= kwargs.keys():
        first.refuse("jnp.where without values to choose from")
    for x in selections[1:]:
        if not same_value(x.source, first.source) or x.from_right != first.from_right:
            first.refuse(f"jnp.{function.__name__} of selections by two masks (the same? then name it once: m = ...)")
    for x in (*args, *kwargs.values()):
        shape = () if type(x) is Selection or isinstance(x, type) else getattr(x, "shape", ())
        if len(shape) >= first.from_right and shape[-first.from_right] != 1:
            first.refuse(f"jnp.{function.__name__} with an array of shape {shape}")
    args, kwargs = tree_map(_elements, (args, kwargs), is_leaf=_is_selection)
    return tree_map(lambda y: first.with_array(y, first.from_right, True), function(*args, **kwargs))


def _is_selection(x) -> bool:
    return type(x) is Selection


def _elements(x):
    return x.tamed().array if type(x) is Selection else x


ELEMENTWISE = (
    "abs absolute acos acosh add angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh around asin asinh astype "
    "atan atan2 atanh bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or "
    "bitwise_right_shift bitwise_xor cbrt ceil clip conj conjugate copysign cos cosh deg2rad degrees divide divmod "
    "equal exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod frexp gcd greater greater_equal "
    "heaviside hypot i0 imag invert iscomplex isclose isfinite isinf isnan isneginf isposinf isreal lcm ldexp "
    "left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or "
    "logical_xor maximum minimum mod modf multiply nan_to_num negative nextafter not_equal positive pow power "
    "rad2deg radians real reciprocal remainder right_shift rint round sign signbit sin sinc sinh spacing sqrt "
    "square subtract tan tanh true_divide trunc where"
).split()

# ----------------------------------------------------------------------------------------------------
# Reductions


def reduction(function, args, kwargs):
    """A reduction of the selected elements; along other axes alone, a selection of reductions."""
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    x = given.pop("a")
    if type(x) is not Selection:  # it is among the weights, or the like
        participants((args, kwargs))[0].refuse(f"jnp.{function.__name__} of an array that is none")
    axes = canonical_axes(given.get("axis"), x.ndim)
    if x.axis in axes:
        return REDUCTIONS[function.__name__](function, x, given)
    behind = 0 if given.get("keepdims") else sum(a > x.axis for a in axes)
    given = {name: _elements(value) for name, value in given.items()}
    return x.with_array(function(x.array, **given), x.from_right - behind, x.tame)


def _by_where(function, x, given):
    """A reduction that has a ``where`` argument, by it."""
    mask, where = x.spread_mask(), given.pop("where", None)
    if where is not None:
        both = x.array.__array_namespace__().logical_and
        mask = elementwise(both, (x.with_array(mask, x.from_right, True), where), {}).array
    neutral = _NEUTRAL.get(function.__name__)
    if neutral is not None and given.get("initial") is None:
        given["initial"] = np.asarray(neutral(x.dtype)).astype(x.dtype)
    return function(x.array, where=mask, **given)


def _by_nan(function, x, given):
    """A quantile: that of its kin that leaves out NaN, and NaN where a selected element is."""
    jnp, name = x.array.__array_namespace__(), function.__name__
    x = jnp.multiply(x, 1.0)  # a float
    blank = jnp.where(x.spread_mask(), x.array, jnp.nan)
    result = getattr(jnp, "nan" + name.removeprefix("nan"))(blank, **given)
    if name.startswith("nan"):
        return result
    kept = {name: given[name] for name in ("axis", "keepdims") if name in given}
    return jnp.where(jnp.any(jnp.isnan(x), **kept), jnp.nan, result)


def _count_nonzero(function, x, given):
    return (x != 0).sum(**given)


def _ptp(function, x, given):
    return x.max(**given) - x.min(**given)


def _average(function, x, given):
    weights, returned = given.pop("weights", None), given.pop("returned", False)
    jnp = x.array.__array_namespace__()
    weights = jnp.where(x == x, 1 if weights is None else weights, 1)  # a selection, too
    total = weights.sum(**given)
    mean = (x * weights).sum(**given) / total
    return (mean, jnp.broadcast_to(total, mean.shape)) if returned else mean


_NEUTRAL = {"max": lowest, "amax": lowest, "nanmax": lowest, "min": highest, "amin": highest, "nanmin": highest}
REDUCTIONS = {
    **dict.fromkeys(
        "all amax amin any max mean min nanmax nanmean nanmin nanprod nanstd nansum nanvar prod std sum var".split(),
        _by_where,
    ),
    **dict.fromkeys("median nanmedian nanpercentile nanquantile percentile quantile".split(), _by_nan),
    "average": _average,
    "count_nonzero": _count_nonzero,
    "ptp": _ptp,
}
_MEANINGS = dict.fromkeys(ELEMENTWISE, elementwise) | dict.fromkeys(REDUCTIONS, reduction)


# ----------------------------------------------------------------------------------------------------
# Operators


def _operator(name: str, reflected: bool = False):
    def apply(self, *others):
        function = getattr(self.array.__array_namespace__(), name)
        return function(*others, self) if reflected else function(self, *others)

    return apply


_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "divmod": "divmod", "pow": "power", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
_OTHERS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
    "neg": "negative", "pos": "positive", "abs": "abs", "invert": "invert",
}  # fmt: skip
for _name, _function in _BINARY.items():
    setattr(Selection, f"__{_name}__", _operator(_function))
    setattr(Selection, f"__r{_name}__", _operator(_function, reflected=True))
for _name, _function in _OTHERS.items():
    setattr(Selection, f"__{_name}__", _operator(_function))
