"""What primitives compile to. There is no MLIR here: a primitive compiles to a function of other primitives."""

from __future__ import annotations

from collections.abc import Callable

from catena.core.array import as_array, make_array
from catena.core.aval import ShapedArray
from catena.core.effects import lowerable_effects as lowerable_effects
from catena.core.source import function_place
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.unbuilt import absent as _absent


class Inlined:
    """A compilation rule: the function that stands for a primitive in compiled programs."""

    def __init__(self, fun: Callable, multiple_results: bool):
        self.fun, self.multiple_results = fun, multiple_results

    def of(self, primitive) -> Inlined:
        """The rule for one primitive."""
        return self

    def __call__(self, builder, *operands, **params):
        """Trace the function for the operands and write what it does."""

        def flat(*args):
            out = self.fun(*args, **params)
            return list(out) if self.multiple_results else [out]

        avals = [ShapedArray(x.shape, x.dtype) for x in operands]
        closed, _ = trace_to_closed_jaxpr(flat, avals, DebugInfo("lowering", function_place(self.fun)))
        outs = builder.call(closed, operands)
        return outs if self.multiple_results else outs[0]

    def interpreted(self, **params):
        """The function on NumPy values, where there is no compiler."""

        def run(*values) -> list:
            out = self.fun(*map(make_array, values), **params)
            return [as_array(x)._value for x in (out if self.multiple_results else (out,))]

        return run


def lower_fun(fun: Callable, multiple_results: bool = True) -> Inlined:
    """A compilation rule that calls ``fun(*args, **params)``.

    Arguments:
      fun: a function of arrays, made of functions of ``catena.numpy`` and ``catena.lax``.
      multiple_results: whether it returns a sequence.
    """
    return Inlined(fun, multiple_results)


class WritesMLIR:
    """A compilation rule that writes MLIR, kept as long as nobody compiles a program with its primitive."""

    def __init__(self, primitive, rule: Callable):
        self.primitive, self.rule = primitive, rule

    def __call__(self, builder, *operands, **params):
        raise NotImplementedError(
            f"primitive '{self.primitive}' cannot be compiled: its rule {function_place(self.rule)} writes MLIR, and "
            "there is no MLIR here. Register mlir.lower_fun(f) with a function f of arrays, or call it without jit."
        )

    def interpreted(self, **params):
        """Raises what the compiler raises."""
        self(None)


def register_lowering(
    prim,
    rule: Callable | None = None,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
):
    """Say what a primitive compiles to. Without a rule, a decorator is returned.

    Arguments:
      prim: the primitive.
      rule: what ``lower_fun`` gives. Another function is taken for one that writes MLIR, and kept: programs that hold
        the primitive raise NotImplementedError when they are compiled.
      platform: ``"cpu"`` or ``None``; rules for other platforms are for other machines.
      inline, cacheable: how JAX writes the rule's module; functions of arrays are always written in place.

    >>> from catena.extend.core import Primitive
    >>> from catena.interpreters import mlir
    >>> _ = mlir.register_lowering(Primitive("halve"), mlir.lower_fun(lambda x: x / 2, multiple_results=False))
    """
    if rule is None:
        return lambda given: register_lowering(prim, given, platform)
    if platform in (None, "cpu"):
        prim.lower = rule.of(prim) if isinstance(rule, Inlined) else WritesMLIR(prim, rule)
        prim.own = False  # programs with it are no longer what the package makes of them
    return rule


_absent(globals())
