"""``x[mask]`` where the mask is traced: the selected elements, whose number nobody knows yet.

Most uses do not need the number. A reduction over the selected elements has a static shape, so have a product that
sums over them and an update at the same mask, and an elementwise function may as well compute on all elements. So
``x[mask]`` under a transformation is a ``Selection``, which keeps the array beside the mask and gives these uses a
meaning by the array protocol, as a user's class could (docs/array_protocol.md). Every other use raises
``NonConcreteBooleanIndexError``.
"""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np

from catena import lax
from catena.core.errors import NonConcreteBooleanIndexError
from catena.core.trace import Tracer, same_value
from catena.core.tree import tree_map
from catena.numpy.boundary import canonical_axes, canonical_axis
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

    @property
    def T(self) -> Selection:  # noqa: N802
        """The same elements with the axes in reverse order."""
        return self.array.__array_namespace__().transpose(self)

    def transpose(self, *axes) -> Selection:
        """The same elements with the axes in another order, given as a tuple or one by one; reversed by default."""
        order = axes[0] if len(axes) == 1 else axes or None
        return self.array.__array_namespace__().transpose(self, order)

    @property
    def mT(self) -> Selection:  # noqa: N802
        """The same elements with the last two axes exchanged."""
        return self.array.__array_namespace__().matrix_transpose(self)

    def with_array(self, array, from_right: int, tame: bool) -> Selection:
        """Other values for the same elements."""
        return Selection(array, self.mask, array.ndim - from_right, self.source, tame)

    def spread_mask(self):
        """The mask with axes of size 1 for those that it does not select along."""
        shape = [1] * self.array.ndim
        shape[self.axis] = self.mask.shape[0]
        return lax.reshape(self.mask, tuple(shape))

    def tamed(self) -> Selection:
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

    def with_zeros(self):
        """The array with zeros where the mask is false."""
        return self.array.__array_namespace__().where(self.spread_mask(), self.array, np.zeros((), self.dtype))

    def refuse(self, use: str):
        """Raise the error for a use that needs the number of elements."""
        raise NonConcreteBooleanIndexError(self.source, use)

    # ---- what it offers

    def __jax_function__(self, function, types, args, kwargs):
        if types != (Selection,):
            return NotImplemented
        name, jnp = function.__name__, self.array.__array_namespace__()
        meaning = _MEANINGS.get(name)
        if meaning is None or all(getattr(module, name, None) is not function for module in (jnp, jnp.linalg)):
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
        _check_same_elements(function, first, x, x.from_right == first.from_right)
    for x in (*args, *kwargs.values()):
        shape = () if type(x) is Selection or isinstance(x, type) else getattr(x, "shape", ())
        if len(shape) >= first.from_right and shape[-first.from_right] != 1:
            first.refuse(f"jnp.{function.__name__} with an array of shape {shape}")
    args, kwargs = tree_map(_elements, (args, kwargs), is_leaf=_is_selection)
    return tree_map(lambda y: first.with_array(y, first.from_right, True), function(*args, **kwargs))


def _check_same_elements(function, x: Selection, y: Selection, along: bool):
    """Raise unless two selections are by one mask; ``along``: whether their axes correspond."""
    if not along or not same_value(y.source, x.source):
        x.refuse(f"jnp.{function.__name__} of selections by two masks (the same? then name it once: m = ...)")


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
    x = given.pop(next(iter(given)))
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


def _by_zeros(function, x, given):
    """A norm: zeros in the place of what is left out change none but those of negative order."""
    order = given.get("ord")
    if isinstance(order, Tracer) or isinstance(order, int | float) and order < 0:
        x.refuse(f"jnp.linalg.{function.__name__} of order {order}")
    return function(x.with_zeros(), **given)


def _position(function, x, given):
    """Where an extremum is: what is selected before it is counted. -1 where nothing is selected.

    The first of equal elements is found, although those that are left out repeat one (see ``tamed``): those that
    come before it repeat it, so that as few are selected before them.
    """
    jnp, values, mask = x.array.__array_namespace__(), x.tamed().array, x.mask
    if given.get("axis") is None:
        mask = jnp.broadcast_to(x.spread_mask(), values.shape).reshape(-1)
    if not mask.shape[0]:
        return function(values, **given)  # raises
    found = function(values, **given)
    before = jnp.cumsum(mask, dtype=found.dtype) - mask
    return jnp.where(mask.any(), jnp.take(before, found), -1)


_NEUTRAL = {"max": lowest, "amax": lowest, "nanmax": lowest, "min": highest, "amin": highest, "nanmin": highest}
REDUCTIONS = {
    **dict.fromkeys(
        "all amax amin any max mean min nanmax nanmean nanmin nanprod nanstd nansum nanvar prod std sum var".split(),
        _by_where,
    ),
    **dict.fromkeys("median nanmedian nanpercentile nanquantile percentile quantile".split(), _by_nan),
    **dict.fromkeys("argmax argmin".split(), _position),
    **dict.fromkeys("norm vector_norm".split(), _by_zeros),
    "average": _average,
    "count_nonzero": _count_nonzero,
    "ptp": _ptp,
}

# ----------------------------------------------------------------------------------------------------
# Transposes, and products that sum over the selected elements


def transposition(function, args, kwargs):
    """The same elements along another axis."""
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    x = given.pop(next(iter(given)))
    order = list(range(x.ndim))
    if function.__name__ == "matrix_transpose":
        order[-2:] = order[:-3:-1]
    else:
        axes = given.get("axes")
        order = order[::-1] if axes is None else [canonical_axis(a, x.ndim) for a in axes]
    return Selection(function(x.array, **given), x.mask, order.index(x.axis), x.source, x.tame)


def contraction(function, args, kwargs):
    """A product of two arrays along the axes by which both are selected."""
    given = inspect.signature(function).bind(*args, **kwargs)
    first, second = given.args[:2]
    name = function.__name__
    for x, y in ((first, second), (second, first)):
        if type(x) is Selection and type(y) is not Selection:
            x.refuse(f"jnp.{name} with an array")
    axis = second.ndim - 1 if name in ("inner", "vdot", "vecdot") else max(second.ndim - 2, 0)
    along = first.axis == first.ndim - 1 and second.axis == axis and (name != "vdot" or first.ndim == second.ndim == 1)
    _check_same_elements(function, first, second, along)
    return function(first.with_zeros(), second.with_zeros(), *given.args[2:], **given.kwargs)


TRANSPOSITIONS = "matrix_transpose permute_dims transpose".split()
CONTRACTIONS = "dot inner matmul vdot vecdot".split()
_MEANINGS = {
    **dict.fromkeys(TRANSPOSITIONS, transposition),
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(REDUCTIONS, reduction),
    **dict.fromkeys(CONTRACTIONS, contraction),
}


# ----------------------------------------------------------------------------------------------------
# Operators


def _operator(name: str, reflected: bool = False):
    def apply(self, *others):
        function = getattr(self.array.__array_namespace__(), name)
        return function(*others, self) if reflected else function(self, *others)

    return apply


_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "divmod": "divmod", "pow": "power", "matmul": "matmul", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
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
