"""Small matrix algebra in terms of lax, for the derivatives of the factorisations."""

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import at_front
from catena.core.primitive import NoRule, Primitive
from catena.core.structural import reduce_sum_p
from catena.core.zeros import get_aval
from catena.lax import native
from catena.lax.arithmetic import add, div, mul, sub
from catena.lax.comparison import ge, le, select_n
from catena.lax.complex_numbers import conj
from catena.lax.contraction import dot_general
from catena.lax.convert import convert_element_type
from catena.lax.indexing import gather
from catena.lax.scattering import scatter
from catena.lax.shape import broadcast, broadcast_in_dim, broadcasted_iota, expand_dims, transpose
from catena.lax.structure import broadcast_to, like
from catena.lax.windowed import PROMISE_IN_BOUNDS, GatherDimensionNumbers, ScatterDimensionNumbers

NOT_LINEAR = NoRule("it is not linear in its operands")
LAPACK_DTYPES = tuple(map(np.dtype, ("float32", "float64", "complex64", "complex128")))

# ------------------------------------------------------------------------------------------------------------
# Primitives that are one kernel


def kernel_primitive(
    name,
    kernel,
    *,
    abstract,
    jvp,
    attrs=None,
    transpose=NOT_LINEAR,
    batch=None,
    lower=None,
    multiple_results=False,
):
    """A primitive that is evaluated by one LAPACK kernel on stacks of matrices.

    Arguments:
      name: of the primitive, and of the compiler's library function.
      kernel: from the parameters to the function in ``runtime.lapack``, or that function.
      abstract, jvp, transpose, batch: its rules; by default, all operands are batched along their first axis.
      attrs: from the primitive's parameters to the keywords of kernel and library function; by default the
        same.
      lower: compilation to a list of results; by default to the compiler's library function of this name.
      multiple_results: whether it returns a list.
    """
    convert = attrs or (lambda **params: params)

    def typed(*avals, **params):
        """The types of the results, all weak where all operands are."""
        outs = abstract(*avals, **params)
        if not all(a.weak_type for a in avals):
            return outs
        return [a.update(weak_type=True) for a in outs] if multiple_results else outs.update(weak_type=True)

    def evaluate(*xs, **params):
        outs = kernel(*xs, **convert(**params))
        return outs if multiple_results else outs[0]

    def lower_rule(b, *xs, **params):
        if lower is not None:
            results = lower(b, *xs, outs=b.expected, **params)
        else:
            results = b.library(name, list(xs), b.expected, **convert(**params))
        return results if multiple_results else results[0]

    def batch_in_front(axis, args, dims, **params):
        out = primitive.bind(*[at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)], **params)
        return out, [0] * len(out) if multiple_results else 0

    primitive = Primitive(
        name,
        multiple_results=multiple_results,
        abstract=typed,
        jvp=jvp,
        transpose=transpose,
        batch=batch or batch_in_front,
        lower=lower_rule,
    )
    primitive.evaluate = native.library(primitive, evaluate)  # no Python between the matrices of a stack
    return primitive


def lower_to_host(b, kernel, xs, outs, **attrs) -> list:
    """Compilation of what the compiler's library lacks: a call of the kernel in Python."""
    avals = [ShapedArray(shape, dtype) for shape, dtype in outs]
    return b.host_call(lambda *arrays: kernel(*arrays, **attrs), list(xs), avals)


def lower_triangle(b, x, keep_lower: bool):
    """One triangle of each matrix in the compiler's graph, 0 elsewhere."""
    rank = len(x.shape)
    row, column = b.iota(np.int32, x.shape, rank - 2), b.iota(np.int32, x.shape, rank - 1)
    mask = b.map("ge" if keep_lower else "le", row, column)
    return b.map("select", mask, x, b.full(x.shape, np.zeros((), x.dtype)))


def check_matrix(name: str, aval, position: int = 0):
    """TypeError where ``aval`` is no stack of matrices of floats; NotImplementedError where LAPACK has no
    routines for these floats.
    """
    if aval.dtype not in LAPACK_DTYPES:
        kinds = "subtypes of floating, complexfloating"
        error = NotImplementedError if dtypes.is_inexact(aval.dtype) else TypeError
        raise error(
            f"{name} does not accept dtype {dtypes.dtype_name(aval.dtype)} at position {position}. Accepted "
            f"dtypes at position {position} are {kinds} of 32 bits or more a component."
        )
    if aval.ndim < 2:
        raise TypeError(f"Input {position} to {name} must have rank at least 2, but got shape={aval.shape}")


def check_square(name: str, aval, error: type[Exception] = ValueError):
    """Refuses what are no square matrices. JAX adds matrices to their transposes before it looks: a `TypeError`."""
    check_matrix(name, aval)
    if aval.shape[-1] != aval.shape[-2]:
        raise error(f"Argument to {name} must have shape [..., n, n], got shape {aval.shape}")


def as_inexact(x):
    """``x``, converted to floats where it is of integers or booleans."""
    dtype = get_aval(x).dtype
    return x if dtypes.is_inexact(dtype) else convert_element_type(x, dtypes.to_inexact_dtype(dtype))


# ------------------------------------------------------------------------------------------------------------
# Algebra over the last two axes


def swap(x):
    """The transpose of each matrix."""
    n = get_aval(x).ndim
    return transpose(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x):
    """The conjugate transpose of each matrix."""
    return swap(conjugate(x))


def conjugate(x):
    return conj(x) if dtypes.is_complex(get_aval(x).dtype) else x


def mm(*matrices):
    """The product of stacks of matrices."""
    product = matrices[0]
    for m in matrices[1:]:
        n = get_aval(product).ndim
        batch = tuple(range(n - 2))
        product = dot_general(product, m, (((n - 1,), (n - 2,)), (batch, batch)))
    return product


def symmetrized(x):
    """The Hermitian part of each matrix."""
    return div(add(x, adjoint(x)), like(x, 2))


def scalar(x, value):
    """A constant of the dtype of ``x``."""
    return np.asarray(value).astype(get_aval(x).dtype)


def constant_like(x, value):
    """An array like ``x`` that is ``value`` everywhere."""
    return broadcast(like(x, value), get_aval(x).shape)


def lower_mask(shape, k: int = 0):
    """Where a matrix's column is at most ``k`` right of the diagonal."""
    rows = broadcasted_iota(np.int32, shape, len(shape) - 2)
    columns = broadcasted_iota(np.int32, shape, len(shape) - 1)
    return ge(add(rows, np.int32(k)), columns)


def upper_mask(shape, k: int = 0):
    """Where a matrix's column is at least ``k`` right of the diagonal."""
    rows = broadcasted_iota(np.int32, shape, len(shape) - 2)
    columns = broadcasted_iota(np.int32, shape, len(shape) - 1)
    return le(add(rows, np.int32(k)), columns)


def tril(x, k: int = 0):
    """The lower triangle of each matrix, 0 elsewhere."""
    return select_n(lower_mask(get_aval(x).shape, k), constant_like(x, 0), x)


def triu(x, k: int = 0):
    """The upper triangle of each matrix, 0 elsewhere."""
    return select_n(upper_mask(get_aval(x).shape, k), constant_like(x, 0), x)


def eye(shape, dtype):
    """Identity matrices, in a stack of this shape."""
    return stacked(np.eye(*shape[-2:], dtype=dtype), shape)


def stacked(matrix, shape):
    """A matrix repeated for a stack of this shape."""
    n = len(shape)
    return broadcast_in_dim(matrix, shape, (n - 2, n - 1)) if n > 2 else matrix


def eye_like(x):
    """Identity matrices, in a stack like ``x``."""
    aval = get_aval(x)
    return eye(aval.shape, aval.dtype)


def diagonal(x):
    """The diagonals of square matrices."""
    aval = get_aval(x)
    masked = mul(x, stacked(like(x, np.eye(aval.shape[-1])), aval.shape))  # as weak as x
    return reduce_sum_p.bind(masked, axes=(aval.ndim - 1,))


def columns(v, like):
    """``v``, one number for each column, for every row of a matrix like ``like``."""
    return broadcast_to(expand_dims(v, (get_aval(v).ndim - 1,)), get_aval(like).shape)


def rows(v, like):
    """``v``, one number for each row, for every column of a matrix like ``like``."""
    return broadcast_to(expand_dims(v, (get_aval(v).ndim,)), get_aval(like).shape)


def inverse_differences(v, like):
    """``1 / (v[j] - v[i])`` off the diagonal, 0 on it."""
    identity = eye_like(like)
    return sub(div(constant_like(identity, 1), add(sub(columns(v, like), rows(v, like)), identity)), identity)


def take_rows(x, order):
    """The rows of each matrix in the order given for each."""
    shape = get_aval(x).shape
    if 0 in shape:  # no rows: a gather wants one at each place
        return x
    n = len(shape) - 2
    batch = tuple(range(n))
    numbers = GatherDimensionNumbers((n + 1,), (n,), (n,), batch, batch)
    sizes = (*(min(1, s) for s in shape[:n]), 1, shape[-1])
    return gather(x, expand_dims(order, (n + 1,)), numbers, sizes, mode=PROMISE_IN_BOUNDS)


def put_rows(x, order):
    """The rows of each matrix, of which each goes to a place of its own: `take_rows` undone."""
    n = get_aval(x).ndim - 2
    batch = tuple(range(n))
    numbers = ScatterDimensionNumbers((n + 1,), (n,), (n,), batch, batch)
    places = expand_dims(order, (n + 1,))
    zeros = broadcast(scalar(x, 0), get_aval(x).shape)
    return scatter(zeros, places, x, numbers, unique_indices=True, mode=PROMISE_IN_BOUNDS)
