"""Random bits from a state, as an operation of the language: counters encrypted under the first half of the state.

The state is four words: a key of two and a 64-bit counter, low word first. The bits equal those of XLA on the
CPU.
"""

import enum
import functools
import math
import threading

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import at_front
from catena.core.jaxpr import ClosedJaxpr
from catena.core.primitive import NoRule, Primitive
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.zeros import Zero, get_aval
from catena.lax.arithmetic import add
from catena.lax.bitwise import bitwise_or, shift_left
from catena.lax.broadcasting import check_nonnegative, expand_dims, iota
from catena.lax.ciphers import philox_4x32, threefry_2x32
from catena.lax.comparison import lt
from catena.lax.control_flow.per_lane import batch_per_lane
from catena.lax.convert import bitcast_convert_type, convert_element_type
from catena.lax.join import concatenate
from catena.lax.reshaping import reshape, squeeze
from catena.lax.slicing import slice as lax_slice
from catena.lax.structure import canonical_shape, told
from catena.transform.execute import run_jaxpr

U32 = np.uint32
WIDTHS = {np.dtype(f"uint{w}") for w in (8, 16, 32, 64)}
STATES = {((4,), np.dtype(np.uint32)), ((2,), np.dtype(np.uint64))}


class RandomAlgorithm(enum.IntEnum):
    """Which cipher makes random bits; the default is Philox."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self):
        return self.name


def rng_bit_generator(key, shape, dtype=np.uint32, algorithm=RandomAlgorithm.RNG_DEFAULT, *, out_sharding=None):
    """Random bits from a state, and the state that follows it.

    Arguments:
      key: the state, ``uint32[4]`` or ``uint64[2]``.
      shape: the shape of the bits.
      dtype: an unsigned integer dtype of 8 to 64 bits.
      algorithm: the cipher, a ``RandomAlgorithm``.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      The new state, and an array of ``shape`` and ``dtype``.
    Raises:
      TypeError: ``key`` or ``dtype`` is none of these.

    >>> import catena.lax as lax, numpy as np
    >>> state, bits = lax.rng_bit_generator(np.zeros(4, np.uint32), (2,))
    >>> bits.tolist(), state.tolist()
    ([1713891541, 3781805453], [0, 0, 1, 0])
    """
    if out_sharding is not None:
        return told(out_sharding, rng_bit_generator, key, shape, dtype, algorithm)
    shape = canonical_shape(shape, "rng_bit_generator")
    dtype = dtypes.check_user_dtype_supported(dtype, "rng_bit_generator")
    algorithm = RandomAlgorithm(algorithm)
    new_key, bits = rng_bit_generator_p.bind(key, shape=shape, dtype=dtype, algorithm=algorithm)
    return new_key, bits


def generate(key, *, shape, dtype, algorithm) -> list:
    """The rule in terms of other operations."""
    wide_state = get_aval(key).dtype.itemsize == 8
    state = reshape(bitcast_convert_type(key, U32), (4,)) if wide_state else key
    words = [squeeze(lax_slice(state, (i,), (i + 1,)), (0,)) for i in range(4)]
    a_block = 2 if algorithm == RandomAlgorithm.RNG_THREE_FRY else 4
    needed = math.prod(shape) * (2 if dtype.itemsize == 8 else 1)
    blocks = -(-needed // a_block)
    counter = add_64(words[3], words[2], iota(U32, blocks))
    flat = encrypt(words[:2], counter, a_block)
    bits = fit(lax_slice(flat, (0,), (needed,)), dtype)
    following = add_64(words[3], words[2], U32(blocks & 0xFFFFFFFF))
    after = concatenate([lax_slice(state, (0,), (2,)), *[expand_dims(w, (0,)) for w in reversed(following)]], 0)
    if wide_state:
        after = bitcast_convert_type(reshape(after, (2, 2)), np.uint64)
    return [after, reshape(bits, shape)]


def encrypt(key: list, counter: list, a_block: int):
    """The words of the encrypted counters, block after block."""
    high, low = counter
    block = threefry_2x32(key, [low, high]) if a_block == 2 else philox_4x32(key, [low, high, *key])
    return reshape(concatenate([expand_dims(w, (1,)) for w in block], 1), (a_block * low.shape[0],))


def add_64(high, low, x) -> list:
    """The 64-bit number ``(high, low)`` plus the word ``x``."""
    total = add(low, x)
    return [add(high, convert_element_type(lt(total, x), U32)), total]


def fit(words, dtype):
    """Words as integers of another width: the low bits of one, or two of them, low word first."""
    if dtype.itemsize < 8:
        return convert_element_type(words, dtype)
    pairs = reshape(words, (words.shape[0] // 2, 2))
    low, high = (
        convert_element_type(squeeze(lax_slice(pairs, (0, i), (pairs.shape[0], i + 1)), (1,)), dtype) for i in (0, 1)
    )
    return bitwise_or(shift_left(high, np.uint64(32)), low)


def _abstract(key, *, shape, dtype, algorithm):
    check_nonnegative("rng_bit_generator", "shape", shape)
    if (key.shape, key.dtype) not in STATES:
        raise TypeError(f"rng_bit_generator: key must be uint32[4] or uint64[2], got {key.str_short()}")
    if dtype not in WIDTHS:
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtypes.dtype_name(dtype)}")
    return [key.strip_weak_type(), ShapedArray(shape, dtype)]


@functools.cache
def _closed(key_aval, shape, dtype, algorithm) -> ClosedJaxpr:
    info = DebugInfo("rng_bit_generator", "rng_bit_generator")
    fun = functools.partial(generate, shape=shape, dtype=dtype, algorithm=algorithm)
    return ClosedJaxpr(*trace_to_jaxpr(fun, [key_aval], info))


def _lower(b, key, *, shape, dtype, algorithm):
    def make(of_key, of_result):
        return _closed(ShapedArray(of_key, key.dtype), of_result, dtype, algorithm)

    return b.call(b.traced(make, key.shape, shape), [key])


def _evaluate(key, *, shape, dtype, algorithm):
    aval = get_aval(key)
    _abstract(aval, shape=shape, dtype=dtype, algorithm=algorithm)
    return run_jaxpr(_closed(aval.strip_weak_type(), shape, dtype, algorithm), [key], rng_bit_generator_p)


def _batch(axis, args, dims, *, shape, dtype, algorithm):
    """One draw for all, from the first state, as XLA does; the other states pass unchanged."""
    keys = at_front(axis.size, args[0], dims[0])
    first = squeeze(lax_slice(keys, (0, 0), (1, keys.shape[1])), (0,))
    after, bits = rng_bit_generator_p.bind(first, shape=(axis.size, *shape), dtype=dtype, algorithm=algorithm)
    rest = lax_slice(keys, (1, 0), keys.shape)
    return [concatenate([expand_dims(after, (0,)), rest], 0), bits], [0, 0]


def no_tangents(primitive):
    """Differentiation of a primitive whose results are integers or keys."""

    def jvp(primals, tangents, **params):
        outs = primitive.bind(*primals, **params)
        if primitive.multiple_results:
            return outs, [Zero.of_primal(x) for x in outs]
        return outs, Zero.of_primal(outs)

    return jvp


rng_bit_generator_p = Primitive(
    "rng_bit_generator",
    multiple_results=True,
    takes_arrays=True,
    abstract=_abstract,
    evaluate=_evaluate,
    transpose=NoRule("bits do not depend linearly on anything"),
    batch=_batch,
    lower=_lower,
)
rng_bit_generator_p.jvp = no_tangents(rng_bit_generator_p)

# ---- draws from a hidden state


class HiddenState(threading.local):
    """The state behind ``rng_uniform``: NumPy's generator, seeded alike in every thread."""

    @functools.cached_property
    def generator(self):
        """Made at the first draw: importing numpy.random takes 20 ms."""
        return np.random.Generator(np.random.Philox(0))


hidden = HiddenState()


def rng_uniform(a, b, shape):
    """Uniform numbers from a hidden state: every call gives others. For reproducible numbers use ``catena.random``.

    Arguments:
      a, b: scalars of one dtype, the bounds: floats in ``[a, b)``, integers likewise.
      shape: the shape of the result.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ, or are neither floats nor integers.
      ValueError: the bounds are not scalars.

    >>> import catena.lax as lax
    >>> lax.rng_uniform(0.0, 1.0, (2,)).shape
    (2,)
    """
    return rng_uniform_p.bind(a, b, shape=canonical_shape(shape, "rng_uniform"))


def _uniform_abstract(a, b, *, shape):
    check_nonnegative("rng_uniform", "shape", shape)
    if a.dtype != b.dtype:
        raise ValueError(
            f"Arguments to rng_uniform must have identical dtypes, got {dtypes.dtype_name(a.dtype)} and "
            f"{dtypes.dtype_name(b.dtype)}."
        )
    if a.shape or b.shape:
        raise ValueError(f"Arguments to rng_uniform must be scalars; got shapes {a.shape} and {b.shape}.")
    if dtypes.KIND[a.dtype] not in "iuf":
        raise TypeError(f"rng_uniform: bounds must be floats or integers, got {dtypes.dtype_name(a.dtype)}")
    return ShapedArray(shape, a.dtype)


def _uniform_evaluate(a, b, *, shape):
    if dtypes.KIND[a.dtype] == "f":
        drawn = hidden.generator.random(shape, np.float32 if a.dtype.itemsize < 8 else np.float64)
        return np.asarray((drawn * (b - a) + a), a.dtype)
    return np.asarray(hidden.generator.integers(int(a), int(b), shape), a.dtype)


def _uniform_jvp(primals, tangents, *, shape):
    out = rng_uniform_p.bind(*primals, shape=shape)
    if all(type(t) is Zero for t in tangents):
        return out, Zero.of_primal(out)
    raise TypeError("rng_uniform is not differentiable in its bounds; use catena.random.uniform")


def _uniform_batch(axis, args, dims, *, shape):
    outs, out_dims = batch_per_lane(rng_uniform_p, axis, args, dims, {"shape": shape})
    return outs[0], out_dims[0]


def _uniform_lower(b, low, high, *, shape):
    return b.host_call(
        lambda x, y: _uniform_evaluate(x, y, shape=shape), [low, high], [ShapedArray(shape, low.dtype)], False
    )[0]


rng_uniform_p = Primitive(
    "rng_uniform",
    abstract=_uniform_abstract,
    evaluate=_uniform_evaluate,
    jvp=_uniform_jvp,
    transpose=NoRule("uniform numbers are not linear in their bounds"),
    batch=_uniform_batch,
    lower=_uniform_lower,
)
