"""Programs where there is no compiler: NumPy evaluates a jaxpr equation by equation, loops step by step."""

from __future__ import annotations

import numpy as np

from catena.core.array import typed_array
from catena.core.config import override
from catena.core.context import context
from catena.core.errors import CompileError
from catena.core.jaxpr import ClosedJaxpr, Literal, Var


class Interpreted:
    """What stands for an executable: it is called like one, and has none of its texts and figures.

    A value is dropped at its last use.
    """

    reused: dict = {}
    returns_stacks = False
    report = {"bytes": 0}  # of machine code

    def __init__(self, closed: ClosedJaxpr):
        self._closed = closed
        kept = {v for v in closed.jaxpr.outvars if type(v) is Var}
        self._dropped, seen = [], set(kept)
        for eqn in reversed(closed.eqns):  # which values no later equation reads
            last = {v for v in (*eqn.invars, *eqn.outvars) if type(v) is Var} - seen
            seen |= last
            self._dropped.append(last)
        self._dropped.reverse()

    def run(self, values) -> list:
        """The results for NumPy values, as Arrays."""
        jaxpr = self._closed.jaxpr
        env = dict(zip(jaxpr.constvars, self._closed.consts, strict=True))
        arrays = [typed_array(x, v.aval) for x, v in zip(values, jaxpr.invars, strict=True)]
        env.update(zip(jaxpr.invars, arrays, strict=True))
        before = context.source
        try:
            with override("jax_disable_jit", True):
                for eqn, dropped in zip(jaxpr.eqns, self._dropped, strict=True):
                    context.source = eqn.source or before
                    out = eqn.primitive.bind(*[_value(v, env) for v in eqn.invars], **eqn.params)
                    env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else (out,), strict=True))
                    for v in dropped:
                        del env[v]
        finally:
            context.source = before
        return [_value(v, env) for v in jaxpr.outvars]

    def entry(self, values: tuple, outs: tuple) -> int:
        """As the entry of a native program: the results are written to ``outs``."""
        for out, x in zip(outs, self.run(values), strict=True):
            np.copyto(out, x._value, casting="no")
        return 0

    def as_text(self) -> str:
        """Raises CompileError: there is no text."""
        raise CompileError(NO_COMPILER)

    def cost_analysis(self) -> dict:
        """Raises CompileError: nothing is known of the costs."""
        raise CompileError(NO_COMPILER)

    @property
    def temporary_bytes(self) -> int:
        """Raises CompileError: memory is taken as it is needed."""
        raise CompileError(NO_COMPILER)


NO_COMPILER = "nothing was compiled: there is no compiler here, and jit evaluates step by step (docs/without_llvm.md)"


def _value(v, env: dict):
    return v.val if type(v) is Literal else env[v]
