"""The operators and methods of BCOO and BCSR arrays: functions of ``catena.numpy``, made sparse by ``sparsify``."""

from __future__ import annotations

import operator
from collections.abc import Callable

from catena import numpy as jnp
from catena.experimental.sparse.bcoo import BCOO
from catena.experimental.sparse.bcoo_layout import bcoo_update_layout
from catena.experimental.sparse.bcoo_shape import bcoo_transpose
from catena.experimental.sparse.bcoo_sorting import bcoo_sort_indices, bcoo_sum_duplicates, without_zeros
from catena.experimental.sparse.bcsr import BCSR
from catena.experimental.sparse.sparsify import sparsify


def elementwise(ufunc: Callable) -> Callable:
    """A function of arrays, element by element, as a method of sparse ones."""

    def method(*args, out=None, where=None):
        return sparsify(lambda *xs: ufunc(*xs, out=out, where=where), use_tracer=True)(*args)

    return method


def unary(function: Callable) -> Callable:
    """A function of one array as a method."""
    run = sparsify(function, use_tracer=True)
    return lambda x, /: run(x)


def binary(function: Callable) -> Callable:
    """A function of two arrays as a method."""
    run = sparsify(function, use_tracer=True)
    return lambda x, y: run(x, y)


def reflected(function: Callable) -> Callable:
    """A function of two arrays as a method of the second."""
    run = sparsify(function, use_tracer=True)
    return lambda a, b: run(b, a)


def matrix_product(a, b, *, precision=None, preferred_element_type=None, out_sharding=None):
    """``a @ b``; the arguments are those of ``jnp.matmul``."""
    options = {"precision": precision, "preferred_element_type": preferred_element_type, "out_sharding": out_sharding}
    return sparsify(lambda x, y: jnp.matmul(x, y, **options), use_tracer=True)(a, b)


def astype(self, *args, **kwargs):
    """The array with elements of another dtype; the arguments are those of ``jnp.astype``."""
    return sparsify(lambda x: jnp.astype(x, *args, **kwargs), use_tracer=True)(self)


def total(self, *args, **kwargs):
    """The sum along axes; the arguments are those of ``jnp.sum``. The sum of all elements is a dense scalar."""
    return sparsify(lambda x: jnp.sum(x, *args, **kwargs), use_tracer=True)(self)


def reshape(self, *args, **kwargs):
    """The array in another shape; the arguments are those of arrays' ``reshape``."""
    return sparsify(lambda x: x.reshape(*args, **kwargs), use_tracer=True)(self)


def transpose(self: BCOO, axes=None) -> BCOO:
    """The array with its axes in another order, by default the opposite one; see ``bcoo_transpose``."""
    return bcoo_transpose(self, permutation=tuple(range(self.ndim))[::-1] if axes is None else axes)


def sum_duplicates(self: BCOO, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
    """One element at a position; see ``bcoo_sum_duplicates``. Elements that are 0 go too, if ``remove_zeros``."""
    return bcoo_sum_duplicates(without_zeros(self) if remove_zeros else self, nse)


def sort_indices(self: BCOO) -> BCOO:
    """The elements in the order of their positions; see ``bcoo_sort_indices``."""
    return bcoo_sort_indices(self)


def update_layout(
    self: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient="error"
) -> BCOO:
    """The same array with other numbers of batch and dense axes; see ``bcoo_update_layout``."""
    return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


def take_item(arr, idx, indices_are_sorted=False, unique_indices=False, mode=None, fill_value=None):
    """The part of the array that an index of NumPy's kind selects; the arguments are those of ``x.at[idx].get``."""
    options = {"mode": mode, "fill_value": fill_value}
    options |= {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    return sparsify(lambda x: x.at[idx].get(**options), use_tracer=True)(arr)


def iterate(self):
    """The parts along the first axis, one after the other."""
    return (self[i] for i in range(self.shape[0]))


MATRIX_PRODUCTS = {"__matmul__": matrix_product, "__rmatmul__": reflected(operator.matmul)}
OPERATORS = {
    **MATRIX_PRODUCTS,
    "__add__": elementwise(jnp.add),
    "__radd__": reflected(operator.add),
    "__sub__": elementwise(jnp.subtract),
    "__rsub__": reflected(operator.sub),
    "__mul__": elementwise(jnp.multiply),
    "__rmul__": reflected(operator.mul),
    "__truediv__": binary(operator.truediv),
    "__rtruediv__": reflected(operator.truediv),
    "__pow__": binary(operator.pow),
    "__rpow__": reflected(operator.pow),
    "__neg__": elementwise(jnp.negative),
    "__pos__": unary(operator.pos),
    "__abs__": unary(operator.abs),
    "__eq__": binary(operator.eq),
}
METHODS = {"astype": astype, "sum": total, "reshape": reshape, "transpose": transpose, "sort_indices": sort_indices,
           "sum_duplicates": sum_duplicates, "update_layout": update_layout}  # fmt: skip


def install(kind: type, methods: dict) -> None:
    """Give a class these methods and operators."""
    for name, function in methods.items():
        function.__name__, function.__qualname__ = name, f"{kind.__name__}.{name}"
        setattr(kind, name, function)


install(BCOO, {**METHODS, **OPERATORS, "__getitem__": take_item, "__iter__": iterate})
install(BCSR, {**MATRIX_PRODUCTS, "__getitem__": take_item})
