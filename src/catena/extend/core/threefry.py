"""Threefry as one primitive, with its rules as users give them. The cipher itself stands in ``lax/ciphers``."""

import numpy as np

from catena import numpy as jnp
from catena.core.aval import ShapedArray
from catena.core.primitive import Operation as Primitive
from catena.interpreters import batching, mlir
from catena.lax.ciphers import threefry_2x32
from catena.transform.jit import jit


def apply(k1, k2, x1, x2) -> list:
    types(k1.aval, k2.aval, x1.aval, x2.aval)
    k1, k2, x1, x2 = jnp.broadcast_arrays(k1, k2, x1, x2)
    return threefry_2x32([k1, k2], [x1, x2])


def types(*avals) -> list:
    if any(a.dtype != "uint32" for a in avals):
        shown = ", ".join(a.str_short() for a in avals)
        raise TypeError(f"threefry2x32 takes four uint32 arrays, the words of a key and of a counter, got {shown}")
    return [ShapedArray(np.broadcast_shapes(*(a.shape for a in avals)), "uint32")] * 2


threefry2x32_p = Primitive("threefry2x32")  # two words of a key, two of counters: two words of bits
threefry2x32_p.multiple_results = True
threefry2x32_p.def_abstract_eval(types)
threefry2x32_p.def_impl(jit(apply))
batching.defbroadcasting(threefry2x32_p)
mlir.register_lowering(threefry2x32_p, mlir.lower_fun(apply))
