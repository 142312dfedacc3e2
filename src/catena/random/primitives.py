"""The primitives of random keys: what is done with a key is an equation of its own, whatever the generator.

``random_seed``, ``random_split``, ``random_bits`` and ``random_fold_in`` apply a function of the key's generator to
each key of an array. ``random_wrap`` and ``random_unwrap`` are the way between keys and their words; ``random_clone``
is the identity, a key that counts as new where reuse is checked.
"""

import functools

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import at_front, move_axis
from catena.core.config import threefry_partitionable
from catena.core.context import context
from catena.core.jaxpr import ClosedJaxpr
from catena.core.lazy import has_compiler
from catena.core.primitive import NoRule, Primitive
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.zeros import get_aval
from catena.lax.random_bits import no_tangents
from catena.random import kernels
from catena.random.dtype import STORAGE, U32, generator_of, is_key_dtype, key_aval, stored, words_of
from catena.random.generator import Generator
from catena.transform.execute import run_jaxpr
from catena.transform.vmap import vmap

NOT_LINEAR = NoRule("keys and bits do not depend linearly on anything")
SMALL = 256  # results of at most so many elements are computed operation by operation, without compiling


def define(name: str, **rules) -> Primitive:
    """A primitive of keys: without tangents, hence without cotangents."""
    primitive = Primitive(name, transpose=NOT_LINEAR, **rules)
    primitive.jvp = no_tangents(primitive)
    return primitive


def check_is_key(name: str, aval):
    if not is_key_dtype(aval.dtype):
        raise TypeError(f"{name} requires PRNG key arrays, got an array of type {aval.str_short()}")


# ---- between keys and their words


def check_words(aval, impl: Generator):
    """Raise TypeError where arrays of the type ``aval`` are not words of keys of this generator."""
    ending = len(impl.key_shape)
    if aval.dtype != U32:
        raise TypeError(
            "JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; got "
            f"dtype={dtypes.dtype_name(aval.dtype)}"
        )
    if aval.ndim < ending:
        raise TypeError(
            f"JAX encountered invalid PRNG key data: expected key_data.ndim >= {ending}; got ndim={aval.ndim}"
        )
    if aval.shape[aval.ndim - ending :] != impl.key_shape:
        raise TypeError(
            f"JAX encountered invalid PRNG key data: expected key_data.shape to end with {impl.key_shape}; "
            f"got shape={aval.shape} for impl={impl!r}"
        )


def _wrap_abstract(data, *, impl):
    check_words(data, impl)
    return key_aval(data.shape[: data.ndim - len(impl.key_shape)], impl)


def _front_batch(primitive):
    def batch(axis, args, dims, **params):
        return primitive.bind(move_axis(args[0], dims[0], 0), **params), 0

    return batch


def _wrap_lower(b, data, *, impl):
    words, shape = impl.words, data.shape[: len(data.shape) - len(impl.key_shape)]
    flat = b.reshape(data, (*shape, words))
    if impl.long:
        return flat
    if words == 1:
        return b.reshape(flat, shape)
    if words == 2:
        return b.bitcast(flat, STORAGE[2])
    if words == 3:
        flat = b.concatenate([flat, b.full((*shape, 1), U32.type(0))], len(shape))
    pairs = b.bitcast(b.reshape(flat, (*shape, 2, 2)), np.dtype(np.float64))
    parts = [_column(b, pairs, i) for i in (0, 1)]
    return b.map("complex", *parts)


def _column(b, x, i: int):
    """Entry ``i`` along the last axis."""
    lead = x.shape[:-1]
    cut = b.slice(x, (*[0] * len(lead), i), (*lead, i + 1), (1,) * len(x.shape))
    return b.reshape(cut, lead)


random_wrap_p = define(
    "random_wrap",
    abstract=_wrap_abstract,
    evaluate=lambda data, *, impl: stored(data, impl),
    lower=_wrap_lower,
)
random_wrap_p.batch = _front_batch(random_wrap_p)


def _unwrap_abstract(keys, *, impl):
    check_is_key("random_unwrap", keys)
    return ShapedArray((*keys.shape, *impl.key_shape), U32)


def lower_words(b, keys, impl: Generator):
    """The words of keys in a compiled program, which holds them by their storage."""
    words, shape = impl.words, keys.shape[:-1] if impl.long else keys.shape
    if words == 1 or impl.long:
        flat = keys
    elif words == 2:
        flat = b.bitcast(keys, U32)
    else:
        pairs = [b.bitcast(b.map(part, keys), U32) for part in ("real", "imag")]
        flat = b.concatenate(pairs, len(shape))
        if words == 3:
            flat = b.slice(flat, (0,) * len(flat.shape), (*shape, 3), (1,) * len(flat.shape))
    return b.reshape(flat, (*shape, *impl.key_shape))


random_unwrap_p = define(
    "random_unwrap",
    abstract=_unwrap_abstract,
    evaluate=lambda keys, *, impl: words_of(keys, impl),
    lower=lambda b, keys, *, impl: lower_words(b, keys, impl),
)
random_unwrap_p.batch = _front_batch(random_unwrap_p)

random_clone_p = define(
    "random_clone",
    abstract=lambda keys: check_is_key("random_clone", keys) or keys,
    evaluate=lambda keys: keys,
    lower=lambda b, keys: keys,
)
random_clone_p.batch = _front_batch(random_clone_p)


# ---- functions of a generator, applied to every key of an array


def apply_to_words(kind: str, impl: Generator, ndim: int, params: dict):
    """The generator's function ``kind`` on words, mapped over ``ndim`` leading axes."""
    given = [params[name] for name in PARAMETERS[kind]]

    def one(words, *rest):
        return getattr(impl, kind)(words, *rest, *given)

    fun = one
    for _ in range(ndim):
        fun = vmap(fun)
    return fun


PARAMETERS = {"seed": (), "random_bits": ("bit_width", "shape"), "split": ("shape",), "fold_in": ()}


@functools.lru_cache(maxsize=4096)
def words_jaxpr(kind: str, impl: Generator, avals: tuple, ndim: int, params: tuple, flags: tuple) -> ClosedJaxpr:
    """What ``kind`` does, in operations on words."""
    fun = apply_to_words(kind, impl, ndim, dict(params))
    return ClosedJaxpr(*trace_to_jaxpr(lambda *xs: [fun(*xs)], list(avals), DebugInfo(kind, f"{impl.name}.{kind}")))


@functools.lru_cache(maxsize=4096)
def equation_jaxpr(primitive, avals: tuple, params: tuple, flags: tuple) -> ClosedJaxpr:
    """A jaxpr of one equation."""
    info = DebugInfo(primitive.name, primitive.name)
    return ClosedJaxpr(*trace_to_jaxpr(lambda *xs: [primitive.bind(*xs, **dict(params))], list(avals), info))


def stream() -> dict:
    """The parameter that says which stream an equation draws from, where it is not the usual one.

    The flag is read where the program is written: when it is compiled, or run, the flag may be another.
    """
    return {} if context.threefry_partitionable else {"partitionable": False}


def in_stream(rule):
    """A rule of a primitive that is given the stream: the flag says what the equation says."""

    def within(*args, partitionable: bool = True, **params):
        if context.threefry_partitionable is partitionable:
            return rule(*args, **params)
        with threefry_partitionable(partitionable):
            return rule(*args, **params)

    return within


def flags() -> tuple:
    return context.global_key, context.local_key


def lower_function(kind: str):
    """The lowering of a primitive that applies ``kind``: unwrap, compute on words, wrap."""

    def lower(b, first, *rest, impl, **params):
        ndim = len(first.shape) - (impl.long and kind != "seed")
        words = first if kind == "seed" else lower_words(b, first, impl)
        operands = [words, *rest]
        kinds, names = [x.dtype for x in operands], tuple(params)

        def make(shapes, given):
            avals = tuple(map(ShapedArray, shapes, kinds))
            return words_jaxpr(kind, impl, avals, ndim, tuple(zip(names, given, strict=True)), flags())

        closed = b.traced(make, tuple([x.shape for x in operands]), tuple(params.values()))
        (out,) = b.call(closed, operands)
        return out if kind == "random_bits" else _wrap_lower(b, out, impl=impl)

    return lower


def evaluate_function(kind: str, primitive, args: list, impl: Generator, params: dict):
    """Small results operation by operation, large ones by a program compiled for their shape."""
    out_aval = primitive.abstract(*[get_aval(x) for x in args], impl=impl, **params)
    if out_aval.size > SMALL and has_compiler():
        avals = tuple(get_aval(x).strip_weak_type() for x in args)
        own = {"impl": impl, **params, **(stream() if kind in ("random_bits", "split") else {})}
        closed = equation_jaxpr(primitive, avals, tuple(own.items()), flags())
        return run_jaxpr(closed, args, primitive)[0]
    ndim = get_aval(args[0]).ndim
    words = args[0] if kind == "seed" else random_unwrap_p.bind(args[0], impl=impl)
    out = apply_to_words(kind, impl, ndim, params)(words, *args[1:])
    return out if kind == "random_bits" else random_wrap_p.bind(out, impl=impl)


def scalar_key(keys) -> bool:
    """Whether what is drawn from the keys is drawn by kernels: from one key, by a generator that can start anywhere."""
    return has_compiler() and not keys.aval.ndim and kernels.is_positional(generator_of(keys))


# seed


def _seed_abstract(seeds, *, impl):
    if not dtypes.is_integer(seeds.dtype):
        raise TypeError(f"PRNG key seed must be an integer; got {seeds.str_short()}")
    return key_aval(seeds.shape, impl)


random_seed_p = define("random_seed", takes_arrays=True, abstract=_seed_abstract, lower=lower_function("seed"))
random_seed_p.batch = _front_batch(random_seed_p)
random_seed_p.evaluate = lambda seeds, *, impl: evaluate_function("seed", random_seed_p, [seeds], impl, {})


# bits


def _bits_abstract(keys, *, impl, bit_width, shape, partitionable=True):
    check_is_key("random_bits", keys)
    if dtypes.available(uint(bit_width)) != uint(bit_width):
        raise ValueError("random_bits: bit_width=64 needs jax_enable_x64")
    return ShapedArray((*keys.shape, *shape), uint(bit_width))


def uint(bit_width: int) -> np.dtype:
    return np.dtype(f"uint{bit_width}")


def bits_of(key, *, bit_width, shape):
    """Random bits inside a sampler: those of the current window, where a kernel is being made."""
    impl = generator_of(key)
    window = kernels.window.place
    if window is None:
        return random_bits_p.bind(key, impl=impl, bit_width=bit_width, shape=shape, **stream())
    high, low, size = window
    if shape != (size,) or get_aval(key).ndim:
        raise kernels.NotPositional
    return random_bits_at_p.bind(key, high, low, impl=impl, bit_width=bit_width, count=size)


def _bits_evaluate(keys, *, impl, bit_width, shape):
    if scalar_key(keys):
        return kernels.draw(bits_of, keys, shape, (), {"bit_width": bit_width})
    return evaluate_function("random_bits", random_bits_p, [keys], impl, {"bit_width": bit_width, "shape": shape})


random_bits_p = define(
    "random_bits",
    takes_arrays=True,
    abstract=_bits_abstract,
    evaluate=in_stream(_bits_evaluate),
    lower=in_stream(lower_function("random_bits")),
)
random_bits_p.batch = _front_batch(random_bits_p)

IN_KERNELS = NoRule("it stands only in kernels of eager draws, which are not transformed")


def _at_lower(kind: str):
    def lower(b, key, high, low, *, impl, **params):
        operands = [lower_words(b, key, impl), high, low]
        avals = tuple(ShapedArray(x.shape, x.dtype) for x in operands)
        (out,) = b.call(at_jaxpr(kind, impl, avals, tuple(params.items())), operands)
        return out if kind == "bits_at" else _wrap_lower(b, out, impl=impl)

    return lower


@functools.cache
def at_jaxpr(kind: str, impl: Generator, avals: tuple, params: tuple) -> ClosedJaxpr:
    """Bits, or keys, from a position on, in operations on words."""
    given = dict(params)

    def fun(words, high, low):
        if kind == "bits_at":
            return [impl.bits_at(words, given["bit_width"], high, low, given["count"])]
        return [impl.split_at(words, high, low, given["count"])]

    return ClosedJaxpr(*trace_to_jaxpr(fun, list(avals), DebugInfo(kind, f"{impl.name}.{kind}")))


random_bits_at_p = Primitive(
    "random_bits_at",
    abstract=lambda key, high, low, *, impl, bit_width, count: ShapedArray((count,), uint(bit_width)),
    evaluate=IN_KERNELS, jvp=IN_KERNELS, transpose=IN_KERNELS, batch=IN_KERNELS,
    lower=_at_lower("bits_at"),
)  # fmt: skip
random_split_at_p = Primitive(
    "random_split_at",
    abstract=lambda key, high, low, *, impl, count: key_aval((count,), impl),
    evaluate=IN_KERNELS, jvp=IN_KERNELS, transpose=IN_KERNELS, batch=IN_KERNELS,
    lower=_at_lower("split_at"),
)  # fmt: skip


# split


def _split_abstract(keys, *, impl, shape, partitionable=True):
    check_is_key("random_split", keys)
    return key_aval((*keys.shape, *shape), impl)


def split_of(key, *, shape):
    """The split of an eager draw, under a window."""
    high, low, size = kernels.window.place
    return random_split_at_p.bind(key, high, low, impl=generator_of(key), count=size)


def _split_evaluate(keys, *, impl, shape):
    if scalar_key(keys) and impl.split_at is not None:
        return kernels.draw(split_of, keys, shape, (), {})
    return evaluate_function("split", random_split_p, [keys], impl, {"shape": shape})


random_split_p = define(
    "random_split",
    takes_arrays=True,
    abstract=_split_abstract,
    evaluate=in_stream(_split_evaluate),
    lower=in_stream(lower_function("split")),
)
random_split_p.batch = _front_batch(random_split_p)


# fold_in


def _fold_in_abstract(keys, data, *, impl):
    check_is_key("random_fold_in", keys)
    if data.dtype != U32:
        raise TypeError(f"random_fold_in: data must be uint32, got {data.str_short()}")
    if data.shape != keys.shape:
        raise TypeError(f"random_fold_in: keys and data must have one shape, got {keys.shape} and {data.shape}")
    return keys


def _fold_in_evaluate(keys, data, *, impl):
    if scalar_key(keys) and impl.split_at is not None and not get_aval(data).ndim:
        return kernels.one_key(split_of, keys, int(data))
    return evaluate_function("fold_in", random_fold_in_p, [keys, data], impl, {})


def _fold_in_batch(axis, args, dims, *, impl):
    keys, data = [at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)]
    return random_fold_in_p.bind(keys, data, impl=impl), 0


random_fold_in_p = define(
    "random_fold_in",
    takes_arrays=True,
    abstract=_fold_in_abstract,
    evaluate=_fold_in_evaluate,
    batch=_fold_in_batch,
    lower=lower_function("fold_in"),
)
