"""Calls of functions that rules have written (``mlir.lower_jaxpr_to_fun``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catena.core.unbuilt import absent as _absent
from catena.interpreters.ir import FlatSymbolRefAttr as _FlatSymbolRefAttr
from catena.interpreters.modules import Function as FuncOp
from catena.interpreters.modules import writing as _writing


class CallOp:
    """A call: ``CallOp(function, values)``, or ``CallOp(types, name, values)`` by the name of a function of the program
    that is written. Its ``results`` are values.

    >>> import catena as jax
    >>> from catena.extend.mlir.dialects import func
    >>> from catena.interpreters import mlir
    >>> closed = jax.make_jaxpr(lambda x: 2 * x)(1.0)
    >>> ctx = mlir.ModuleContext()
    >>> double = mlir.lower_jaxpr_to_fun(ctx, "double", closed, (), num_const_args=0, in_avals=closed.in_avals)
    >>> func.CallOp(double, [3.0]).results
    [Array(6., dtype=float32, weak_type=True)]
    """

    def __init__(
        self,
        calleeOrResults: FuncOp | Sequence,  # noqa: N803  (MLIR's names)
        argumentsOrCallee: Sequence | _FlatSymbolRefAttr | str,  # noqa: N803
        arguments: Sequence | None = None,
    ):
        if isinstance(calleeOrResults, FuncOp):
            if arguments is not None:
                raise ValueError("CallOp: a function and its arguments, or types, a name and arguments")
            function, values, types = calleeOrResults, argumentsOrCallee, calleeOrResults.type.results
        else:
            name = getattr(argumentsOrCallee, "value", argumentsOrCallee)
            function, values, types = _named(name), arguments or (), list(calleeOrResults)
        if types != function.type.results:
            raise ValueError(f"CallOp: {function.name.value!r} gives {function.type.results}, not {types}")
        self.operands = list(values)  # type: ignore[arg-type]
        self.results = function(*self.operands)

    @property
    def result(self) -> Any:
        """The result, where there is one."""
        (value,) = self.results
        return value


def _named(name: str) -> FuncOp:
    symbols = _writing.symbols
    if symbols is None or name not in symbols:
        raise ValueError(f"CallOp: the program that is written has no function {name!r}")
    return symbols[name]


def call(result: Sequence, callee: _FlatSymbolRefAttr | str, operands_: Sequence) -> Any:
    """The result of a function of the program that is written, or the list of them.

    Arguments:
      result: the types of results.
      callee: the function's name.
      operands_: values.
    """
    results = CallOp(result, callee, operands_).results
    return results[0] if len(results) == 1 else results


_absent(globals())
