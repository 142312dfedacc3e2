"""``x * y + z`` with one rounding, as an operation of the language: how a uniform number is scaled to its bounds."""

import functools

from catena import lax
from catena.core import dtypes, error_free
from catena.core.axes import at_front
from catena.core.context import context
from catena.core.evaluate import quiet
from catena.core.jaxpr import ClosedJaxpr
from catena.core.primitive import NoRule, Primitive
from catena.core.shapes import broadcast_shapes
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.zeros import Zero, add_tangents, get_aval
from catena.random.sampler import spread
from catena.transform import interpreted
from catena.transform.execute import run_jaxpr


def multiply_add(x, y, z):
    """``x * y + z`` in one rounding, for floats of 32 and 64 bits; narrower ones, kept in 32, need no care."""
    shape = broadcast_shapes(*[get_aval(v).shape for v in (x, y, z)])
    if get_aval(x).dtype.itemsize < 4:
        return lax.add(lax.mul(x, y), z)
    return multiply_add_p.bind(*[spread(v, shape) for v in (x, y, z)])


def _abstract(x, y, z):
    if not x.dtype == y.dtype == z.dtype or not dtypes.is_floating(x.dtype) or not x.shape == y.shape == z.shape:
        raise TypeError(f"multiply_add takes floats of one type, got {x.str_short()}, {y.str_short()}, {z.str_short()}")
    return x.strip_weak_type()


@functools.lru_cache(maxsize=1024)
def _closed(aval, flags) -> ClosedJaxpr:
    info = DebugInfo("multiply_add", "multiply_add")
    return ClosedJaxpr(*trace_to_jaxpr(lambda *xs: [multiply_add_p.bind(*xs)], [aval] * 3, info))


def _evaluate(x, y, z):
    aval = _abstract(*[get_aval(v) for v in (x, y, z)])
    return run_jaxpr(_closed(aval, (context.global_key, context.local_key)), [x, y, z], multiply_add_p)[0]


def _jvp(primals, tangents):
    x, y, _ = primals
    dx, dy, dz = tangents
    total = dz
    for tangent, factor in ((dx, y), (dy, x)):
        if type(tangent) is not Zero:
            total = add_tangents(total, lax.mul(tangent, factor))
    return multiply_add_p.bind(*primals), total


def _batch(axis, args, dims):
    return multiply_add_p.bind(*[at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)]), 0


multiply_add_p = Primitive(
    "multiply_add",
    takes_arrays=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=NoRule("its derivative is made of mul and add"),
    batch=_batch,
    lower=lambda b, x, y, z: b.map("fma", x, y, z),
)
interpreted.calls[multiply_add_p] = lambda: lambda *values: [quiet.run(error_free.multiply_add, *values)]
