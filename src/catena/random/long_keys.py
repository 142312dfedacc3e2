"""Long keys in compiled programs, which see their words along a last axis: what moves keys moves each word alike."""

from __future__ import annotations

from catena.core.aval import ShapedArray
from catena.core.jaxpr import ClosedJaxpr, Eqn, subjaxprs
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.lax.comparison import eq_p, ne_p
from catena.lax.reductions import reduce_and_p, reduce_or_p
from catena.random import primitives
from catena.random.dtype import is_key_dtype
from catena.transform.vmap import vmap

OF_KEYS = frozenset(x for x in vars(primitives).values() if getattr(x, "name", "").startswith("random_"))
OVER_WORDS = {eq_p: reduce_and_p, ne_p: reduce_or_p}  # what becomes of the results for single words


def by_words(eqn: Eqn) -> ClosedJaxpr | None:
    """What an equation does, on words; None for one that knows of them, or calls jaxprs."""
    if eqn.primitive in OF_KEYS or any(True for _ in subjaxprs(eqn.own_params)):
        return None
    apply = lambda *words: eqn.primitive.bind(*words, **eqn.own_params)  # noqa: E731
    axes = tuple(v.aval.ndim if is_key_dtype(v.aval.dtype) else None for v in eqn.invars)
    mapped = vmap(apply, in_axes=axes, out_axes=-1)

    def fun(*words) -> list:
        out = mapped(*words)
        if eqn.primitive in OVER_WORDS:
            out = OVER_WORDS[eqn.primitive].bind(out, axes=(out.ndim - 1,))
        return list(out) if eqn.primitive.multiple_results else [out]

    avals = [ShapedArray(*compiled_type(v.aval)) for v in eqn.invars]
    return ClosedJaxpr(*trace_to_jaxpr(fun, avals, DebugInfo("lowering", eqn.primitive.name)))


def compiled_type(aval) -> tuple:
    """The shape and dtype by which programs see values of a type."""
    return aval.dtype.compiled(aval.shape) if is_key_dtype(aval.dtype) else (aval.shape, aval.dtype)
