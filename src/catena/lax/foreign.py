"""Calls of C functions: ``ffi_call``, and the functions that are registered for it.

A function of plain C takes the addresses of its operands, those of its results, and then attributes:
``void f(const float *x, const float *y, float *out, int64_t n, float scale)``. Its signature is the ``argtypes`` of the
``ctypes`` function, against which every call is checked before it is made. Functions of XLA's two binary interfaces are
known too: the first one, ``void f(void *out, const void **in)``, is called; handlers that read XLA's call frame are
kept, since libraries register them when they are imported, and an error where they are called.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from catena.core.array import Array, as_array
from catena.core.effects import Effect, lowerable_effects
from catena.core.errors import JaxRuntimeError
from catena.core.primitive import Primitive
from catena.lax.callbacks import batched_by_method, jvp_refused, transpose_refused
from catena.transform import interpreted


class FfiEffect(Effect):
    """A C function does something besides computing its results."""


ffi_effect = FfiEffect()
lowerable_effects.add_type(FfiEffect)

# ---- the functions


class PlainC:
    """A function of plain C, by its ``ctypes`` signature. Addresses are passed as integers, which is quicker than by
    pointer objects, and checked by ``elements``: the dtype that each argument points at, or None.
    """

    __slots__ = ("function", "types", "elements", "raw")

    def __init__(self, function):
        self.function, self.types = function, tuple(function.argtypes)
        self.elements = [element_of(kind) for kind in self.types]
        plain = [ctypes.c_void_p if is_pointer(kind) else kind for kind in self.types]
        address = ctypes.cast(function, ctypes.c_void_p).value
        self.raw = ctypes.CFUNCTYPE(function.restype, *plain)(address)

    def __call__(self, name: str, operands: list[np.ndarray], results: list[np.ndarray], attributes: tuple) -> None:
        given = [*operands, *results, *[getattr(value, "value", value) for _, value in attributes]]
        if len(self.types) != len(given):
            raise TypeError(
                f"ffi_call({name!r}): the C function takes {len(self.types)} arguments, and is given {len(given)}: "
                f"{len(operands)} operands, {len(results)} results and {len(attributes)} attributes"
            )
        try:
            code = self.raw(*map(as_argument, self.types, self.elements, given))
        except (TypeError, ctypes.ArgumentError) as error:
            labels = [f"operand {i}" for i in range(len(operands))] + [f"result {i}" for i in range(len(results))]
            labels += [f"attribute {key}" for key, _ in attributes]
            raise TypeError(f"ffi_call({name!r}): {self.mismatch(labels, given) or error}") from None
        if self.function.restype is ctypes.c_int and code:
            raise JaxRuntimeError(f"ffi_call({name!r}): the C function returned {code}")

    def mismatch(self, labels: list[str], given: list) -> str | None:
        """What is wrong with the first argument that the function does not take."""
        for label, kind, element, value in zip(labels, self.types, self.elements, given, strict=True):
            if isinstance(value, np.ndarray) and element is not None and element != value.dtype:
                return f"{label} has dtype {value.dtype}, but the C function takes {element}"
            if isinstance(value, np.ndarray) and not is_pointer(kind) and not hasattr(kind, "_dtype_"):
                return f"{label} is an array, but the C function takes {kind.__name__}"
            try:
                kind.from_param(as_argument(kind, element, value)) if not is_pointer(kind) else None
            except (TypeError, ctypes.ArgumentError) as error:
                return f"{label} cannot be passed as {kind.__name__}: {error}"
        return None


def is_pointer(kind) -> bool:
    """Whether a ``ctypes`` type is an address."""
    return kind is ctypes.c_void_p or issubclass(kind, ctypes._Pointer)


def element_of(kind) -> np.dtype | None:
    """The dtype that a ``ctypes`` type points at, if it says so."""
    return np.dtype(kind._type_) if issubclass(kind, ctypes._Pointer) else None


def as_argument(kind, element: np.dtype | None, value):
    """A value as ``ctypes`` passes it: arrays by their address, unless the type is one of ``numpy.ctypeslib``."""
    if isinstance(value, np.ndarray):
        if element is not None and element != value.dtype:
            raise TypeError
        return value.ctypes.data if is_pointer(kind) else value
    if isinstance(value, str):
        return value.encode()
    return value.item() if isinstance(value, np.generic) else value


class Original:
    """A function of XLA's first interface: ``void f(void *out, const void **in)``; several results are a table, too."""

    __slots__ = ("address",)

    def __init__(self, address: int):
        self.address = address

    def __call__(self, name: str, operands: list[np.ndarray], results: list[np.ndarray], attributes: tuple) -> None:
        if attributes:
            raise TypeError(f"ffi_call({name!r}): this interface passes no attributes, got {dict(attributes)}")
        table = lambda arrays: (ctypes.c_void_p * len(arrays))(*[x.ctypes.data for x in arrays])  # noqa: E731
        out = results[0].ctypes.data if len(results) == 1 else table(results)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(self.address)(out, table(operands))


class CallFrame:
    """A handler that reads XLA's call frame, kept as long as nobody calls it."""

    __slots__ = ()

    def __call__(self, name: str, operands, results, attributes) -> None:
        raise NotImplementedError(
            f"ffi_call({name!r}): the target is a handler of XLA's, which reads a call frame that there is not here. "
            "Register a function of plain C: a ctypes function with argtypes (addresses of operands and of results, "
            "then attributes), or one of the first interface with api_version=0."
        )


targets: dict[str, Callable] = {}
types: dict[str, dict[str, int]] = {}  # of state that handlers keep: by name the addresses of what describes them


def find_target(name: str) -> Callable:
    """The function that is registered under a name."""
    if name not in targets:
        raise JaxRuntimeError(f"No FFI handler registered for {name} on platform cpu; jax.ffi.register_ffi_target does")
    return targets[name]


# ---- the primitive


def call_target(operands, target_name, result_avals, layouts, aliases, attributes) -> list[np.ndarray]:
    """Call a function on NumPy values; arrays are laid out as it wants them, row by row by default."""
    input_layouts, output_layouts = layouts
    given = [laid_out(x, layout) for x, layout in zip(operands, input_layouts, strict=True)]
    results = [
        np.empty([a.shape[i] for i in order], a.dtype) for a, order in zip(result_avals, output_layouts, strict=True)
    ]
    for i, k in aliases:
        results[k] = given[i] = np.array(given[i], order="C")
    find_target(target_name)(target_name, given, results, attributes)
    return [
        x if is_rows(order) else laid_out(x, tuple(np.argsort(order)))
        for x, order in zip(results, output_layouts, strict=True)
    ]


def is_rows(layout: tuple) -> bool:
    """Whether the last axis is the fastest, the one before it the next ..."""
    return layout == tuple(range(len(layout)))


def laid_out(x, layout: tuple) -> np.ndarray:
    """A value in memory with its axes in this order, the first the slowest."""
    x = np.asarray(x)
    x = x if is_rows(layout) else np.transpose(x, layout)
    return x if x.flags.c_contiguous else np.array(x, order="C")


def _evaluate(*args, target_name, result_avals, layouts, aliases, attributes, **params) -> list[Array]:
    values = [(x if isinstance(x, Array) else as_array(x))._value for x in args]
    outs = call_target(values, target_name, result_avals, layouts, aliases, attributes)
    return [as_array(x) for x in outs]


def _lower(b, *operands, target_name, result_avals, layouts, aliases, attributes, **params):
    find_target(target_name)

    def on_host(*values):
        return call_target(values, target_name, result_avals, layouts, aliases, attributes)

    return b.host_call(on_host, operands, result_avals)


def _interpreted(*, target_name, result_avals, layouts, aliases, attributes, **params):
    return lambda *values: call_target(values, target_name, result_avals, layouts, aliases, attributes)


def _batch(axis, args, dims, *, vmap_method, layouts, **params):
    """The mapped axis is the slowest in memory."""
    if vmap_method in ("expand_dims", "broadcast_all", "legacy_vectorized") and not axis.on_devices:
        first = lambda layout: (0, *(i + 1 for i in layout))  # noqa: E731
        kept = [vmap_method == "legacy_vectorized" and d is None for d in dims]
        inputs = tuple(layout if k else first(layout) for layout, k in zip(layouts[0], kept, strict=True))
        layouts = inputs, tuple(map(first, layouts[1]))
    return _batch_by_method(axis, args, dims, vmap_method=vmap_method, layouts=layouts, **params)


_batch_by_method = batched_by_method(lambda: ffi_call_p)
_NO_DERIVATIVE = (
    "A call of a C function (ffi_call) cannot be differentiated; jax.custom_jvp or jax.custom_vjp can say how."
)
ffi_call_p = Primitive(
    "ffi_call",
    multiple_results=True,
    takes_arrays=True,
    effects=lambda avals, params: frozenset([ffi_effect] if params["has_side_effect"] else []),
    abstract=lambda *avals, result_avals, **params: result_avals,
    evaluate=_evaluate,
    jvp=jvp_refused(lambda: ffi_call_p, _NO_DERIVATIVE),
    transpose=transpose_refused(_NO_DERIVATIVE),
    batch=_batch,
    lower=_lower,
)
interpreted.calls[ffi_call_p] = _interpreted


# ---- the function of users


class HashableArray:
    """An array among the attributes, compared by its elements."""

    __slots__ = ("value",)

    def __init__(self, value: np.ndarray):
        self.value = np.array(value, order="C")
        self.value.flags.writeable = False

    def _key(self) -> tuple:
        return self.value.shape, self.value.dtype, self.value.tobytes()

    def __eq__(self, other) -> bool:
        return isinstance(other, HashableArray) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self):
        return f"HashableArray({self.value!r})"


def attribute(key: str, value):
    """An attribute as a parameter of the equation."""
    if isinstance(value, np.ndarray):
        return HashableArray(value)
    try:
        hash(value)
    except TypeError:
        raise TypeError(f"Non-hashable keyword argument to ffi_call {key}: {value!r}") from None
    return value
