"""Programs where there is no compiler: NumPy evaluates a jaxpr equation by equation.

A jaxpr is flattened once, to a list of calls on numbered values (``Steps``); so are the bodies of its loops, branches
and calls, by the rules in ``calls``. A step then costs little more than NumPy's function.
"""

from __future__ import annotations

import functools
from operator import itemgetter
from typing import Any

import numpy as np

from catena.core import failures
from catena.core.array import as_array, typed_array
from catena.core.aval import abstract_token
from catena.core.context import context
from catena.core.dead_code import pruned
from catena.core.dtypes import is_extended
from catena.core.errors import ADDRESSABLE, CompileError, value_too_large
from catena.core.evaluate import quiet
from catena.core.jaxpr import ClosedJaxpr, Eqn, Literal
from catena.core.lazy import NO_COMPILER, LazyModule
from catena.core.stack import is_stack
from catena.core.trace import VALUES
from catena.runtime import buffers
from catena.transform.discharge import pure
from catena.transform.memo import memoised

value_checks: Any = LazyModule("catena.core.value_checks")
calls: dict = {}  # primitive -> from its parameters to a function of NumPy values that gives the list of its results
formulas: dict = {}  # primitive -> NumPy's function for it, and the dtypes of the first operand that this cannot take


class Steps:
    """A jaxpr as a function of NumPy values that gives a list of them.

    Values are known by numbers: first the arguments, then constants, then results. A value is dropped at its last use.
    """

    __slots__ = ("_values", "_steps", "_results")

    def __init__(self, closed: ClosedJaxpr):
        jaxpr = closed.jaxpr
        self._values: list = [None] * len(jaxpr.invars) + [_value(c) for c in closed.consts]
        numbers = {v: i for i, v in enumerate([*jaxpr.invars, *jaxpr.constvars])}
        read: list = []
        for eqn in jaxpr.eqns:
            _check_sizes(eqn)
            read.append([self._number(v, numbers) for v in eqn.invars])
            for v in eqn.outvars:
                numbers[v] = len(self._values)
                self._values.append(None)
        self._results = [self._number(v, numbers) for v in jaxpr.outvars]
        kept = {*self._results, *(i for i, x in enumerate(self._values) if x is not None)}
        dropped = _last_uses(jaxpr.eqns, read, numbers, kept)
        functions = [_function(eqn) for eqn in jaxpr.eqns]
        spare = _spare(jaxpr.eqns, functions, read, numbers)
        kinds = frozenset(context.checks.split(",")) if context.checks else None
        self._steps = [
            _checked_step(kinds, eqn, inputs, [numbers[v] for v in eqn.outvars], last)
            if kinds
            else _step(eqn, function, inputs, [numbers[v] for v in eqn.outvars], last, spare)
            for eqn, function, inputs, last in zip(jaxpr.eqns, functions, read, dropped, strict=True)
        ]

    def _number(self, v, numbers: dict) -> int:
        if type(v) is not Literal:
            return numbers[v]
        self._values.append(_value(v.val))
        return len(self._values) - 1

    def __call__(self, *arguments) -> list:
        values, run = self._values.copy(), quiet.run
        values[: len(arguments)] = arguments
        for call, operands, result, dtype, last in self._steps:
            if dtype is None:
                values[result] = call(*operands(values))
            else:
                x = run(call, *operands(values))
                values[result] = x if type(x) is np.ndarray else np.asarray(x, dtype)
            for i in last:
                values[i] = None
        return [values[i] for i in self._results]


def call_of(parameter: str):
    """The rule in ``calls`` of a primitive that calls the jaxpr in its parameter of this name."""
    return lambda **params: steps(params[parameter])


@memoised
def steps(closed: ClosedJaxpr) -> Steps:
    """The steps of a jaxpr, without those whose results nobody reads."""
    return Steps(pruned(pure(closed), [True] * len(closed.out_avals)))


def _check_sizes(eqn: Eqn):
    for v in eqn.outvars:
        if not _is_special(v.aval) and v.aval.size * v.aval.dtype.itemsize > ADDRESSABLE:
            raise value_too_large(v.aval.shape, v.aval.dtype, v.aval.size * v.aval.dtype.itemsize, eqn.source)


def _last_uses(eqns, read: list, numbers: dict, kept: set) -> list[tuple]:
    """For each equation the values that nobody reads after it."""
    seen, dropped = set(kept), []
    for eqn, inputs in zip(reversed(eqns), reversed(read), strict=True):
        last = {*inputs, *(numbers[v] for v in eqn.outvars)} - seen
        seen |= last
        dropped.append(tuple(last))
    return dropped[::-1]


def _function(eqn: Eqn):
    """The function of NumPy values that evaluates an equation with one result of a plain type, or None:
    it is evaluated otherwise.
    """
    primitive = eqn.primitive
    if (
        _call_rule(primitive) is not None
        or primitive.takes_arrays
        or primitive.multiple_results
        or _is_special(eqn.outvars[0].aval)
    ):
        return None
    found, others = formulas.get(primitive, (primitive.rule("evaluate"), ()))
    function = primitive.evaluate if eqn.invars and eqn.invars[0].aval.dtype in others else found
    return functools.partial(function, **eqn.own_params) if eqn.own_params else function


def _spare(eqns, functions: list, read: list, numbers: dict) -> dict:
    """The values that a ufunc may write its result to at their last use, and their types: results of ufuncs that only
    ufuncs read, so that they are no views of anything and nothing is a view of them.
    """
    types = {}
    for eqn, function, inputs in zip(eqns, functions, read, strict=True):
        if isinstance(function, np.ufunc):
            (v,) = eqn.outvars
            types[numbers[v]] = v.aval.shape, v.aval.dtype
        else:
            for i in inputs:
                types.pop(i, None)
    return types


def _step(eqn: Eqn, function, inputs: list, outputs: list, last: tuple, spare: dict) -> tuple:
    """What ``Steps`` runs for an equation: a function, its operands, where its result goes, of which dtype it is (None:
    there is a list of results), and which values are dropped.
    """
    primitive, avals = eqn.primitive, [v.aval for v in eqn.outvars]
    if function is not None:
        kind = avals[0].shape, avals[0].dtype
        out = [i for i in last if isinstance(function, np.ufunc) and spare.get(i) == kind][:1]
        return function, _getter([*inputs, *out]), outputs[0], avals[0].dtype, tuple(i for i in last if i not in out)
    call_rule = _call_rule(primitive)
    if call_rule is not None:
        call = call_rule(**eqn.own_params)
    elif primitive.takes_arrays or any(map(_is_special, avals)):
        call = functools.partial(_bind, eqn, [v.aval for v in eqn.invars])
    else:
        call = functools.partial(_several, functools.partial(primitive.rule("evaluate"), **eqn.own_params), avals)
    where = slice(outputs[0], outputs[-1] + 1) if outputs else slice(0)
    return call, _getter(inputs), where, None, last


def _checked_step(kinds: frozenset, eqn: Eqn, inputs: list, outputs: list, last: tuple) -> tuple:
    """As ``_step``, for an equation that is tested."""
    function, avals = _function(eqn), [v.aval for v in eqn.outvars]
    call, operands, _, _, last = _step(eqn, None, inputs, outputs, last, {})
    if function is not None:
        call = functools.partial(_several, lambda *values: [function(*values)], avals)
    if value_checks.runs_program(eqn):
        call = functools.partial(_around, eqn, call)
    elif not any(_is_special(v.aval) for v in (*eqn.invars, *eqn.outvars)):
        call = functools.partial(_checked, kinds, eqn, call)
    where = slice(outputs[0], outputs[-1] + 1) if outputs else slice(0)
    return call, operands, where, None, last


def _checked(kinds: frozenset, eqn: Eqn, call, *values) -> list:
    outs = call(*values)
    value_checks.check_operation(eqn.primitive, eqn.own_params, values, outs, kinds, eqn)
    return outs


def _around(eqn: Eqn, call, *values) -> list:
    """A loop, or another equation that runs a program: failures in it know its line."""
    try:
        return call(*values)
    except failures.FOUND as error:
        failures.note_loop(error, eqn.source)
        raise


def _call_rule(primitive):
    """The rule of a primitive in ``calls``, or what its user said it compiles to (see ``interpreters.mlir``); one that
    programs cannot have is refused here too.
    """
    said = None if primitive.own else getattr(primitive.rule("lower"), "interpreted", None)
    return said or calls.get(primitive)


def _is_special(aval) -> bool:
    return aval is abstract_token or is_extended(aval.dtype)


def _getter(numbers: list):
    """From a list to its items at these places, as a sequence."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    return itemgetter(slice(numbers[0], numbers[0] + 1) if numbers else slice(0))


def _several(evaluate, avals: list, *values) -> list:
    outs = quiet.run(evaluate, *values)
    return [x if type(x) is np.ndarray else np.asarray(x, a.dtype) for x, a in zip(outs, avals, strict=True)]


def _bind(eqn: Eqn, avals: list, *values) -> list:
    """An equation whose rule takes Arrays, or calls a function of the user's."""
    before = context.source
    context.source = eqn.source or before
    try:
        out = eqn.primitive.bind(*[typed_array(x, a) for x, a in zip(values, avals, strict=True)], **eqn.own_params)
    finally:
        context.source = before
    outs = out if eqn.primitive.multiple_results else (out,)
    return [_value(x) for x in outs]


def _value(x) -> np.ndarray:
    array: Any = x if isinstance(x, VALUES) else as_array(x)
    return array._value


def empty(length: int, aval) -> np.ndarray:
    """Memory for so many values of a type."""
    if is_stack(aval):
        return np.empty((length, *aval.shape), object)
    shape, dtype = aval.dtype.physical(aval.shape) if is_extended(aval.dtype) else (aval.shape, aval.dtype)
    return np.empty((length, *shape), dtype)


class Interpreted:
    """What stands for an executable: it is called like one, and has none of its texts and figures."""

    entry = None  # no native code
    reused: dict = {}
    returns_stacks = False
    checks: list = []  # steps raise at once
    report = {"bytes": 0}  # of machine code

    def __init__(self, closed: ClosedJaxpr):
        self._steps, self._avals = steps(closed), closed.out_avals

    def run(self, values) -> list:
        """The results for NumPy values, as Arrays in memory of their own, if they do not lie as an argument does."""
        outs = zip(self._steps(*values), self._avals, strict=True)
        return [typed_array(x if x.flags.c_contiguous or a.extended else buffers.copy(x), a) for x, a in outs]

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
