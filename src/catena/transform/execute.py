"""Running jaxprs as native programs: compile once, then call with arrays.

The call is a hot path: the native entry reads the data pointers straight out of two tuples of NumPy arrays.
"""

import numpy as np

from catena.compiler.compile import compile_jaxpr
from catena.core import dtypes
from catena.core.array import Array, as_array, live, typed_array
from catena.core.context import context
from catena.core.evaluate import check_value, concrete
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, eval_jaxpr
from catena.transform.memo import memoised


class Program:
    """A compiled jaxpr, with the results that need no computation (arguments passed through, constants) taken out.

    ``results`` holds for each result what it is: ``("computed", i)``, ``("argument", i)`` or ``("constant", Array)``.
    """

    __slots__ = ("closed", "executable", "entry", "used", "results", "specs", "computed_avals", "simple")

    def __init__(self, closed: ClosedJaxpr, donated: tuple = (), name: str = "main"):
        self.closed = closed
        self.results, computed = classify_results(closed)
        jaxpr = closed.jaxpr
        self.used = [i for i, v in enumerate(jaxpr.invars) if v.aval.dtype != dtypes.float0]
        invars = [jaxpr.invars[i] for i in self.used]
        self.computed_avals = [v.aval for v in computed]
        trimmed = Jaxpr(jaxpr.constvars, invars, computed, jaxpr.eqns, jaxpr.effects, jaxpr.debug_info)
        if computed or jaxpr.effects:
            kept = tuple(donated[i] for i in self.used) if any(donated) else ()
            self.executable = compile_jaxpr(ClosedJaxpr(trimmed, closed.consts), name=name, donated=kept)
            self.entry = self.executable.entry
        else:
            self.executable, self.entry = None, None
        self.specs = [(a.shape, a.dtype) for a in self.computed_avals]
        self.simple = len(self.used) == len(jaxpr.invars) and all(kind == "computed" for kind, _ in self.results)

    def __call__(self, arrays) -> list:
        """Run on Arrays of the right types and return the list of result Arrays."""
        computed = self.compute([live(arrays[i]) for i in self.used]) if self.entry is not None else []
        outs = [
            computed[x] if kind == "computed" else arrays[x] if kind == "argument" else x for kind, x in self.results
        ]
        if context.debug_checks:
            self.check(arrays, outs)
        return outs

    def compute(self, values) -> list:
        """The computed results for NumPy values, as Arrays."""
        outs = tuple([np.empty(shape, dtype) for shape, dtype in self.specs])
        run_entry(self.entry, tuple(values), outs)
        return [typed_array(o, a) for o, a in zip(outs, self.computed_avals, strict=True)]

    def check(self, arrays, outs):
        """Where a debug flag finds a bad number in the results, run again step by step to name the operation."""
        try:
            for x in outs:
                check_value(self.closed.jaxpr.debug_info.function_place if self.closed.jaxpr.debug_info else "jit", x._value)
        except FloatingPointError:
            eval_jaxpr(self.closed.jaxpr, self.closed.consts, *arrays)
            raise


def run_entry(entry, values: tuple, outs: tuple):
    """Call a native entry; arguments that it cannot read in place (strides, byte order) are copied and tried again."""
    status = entry(values, outs)
    while status > 0:
        bad = status - 1
        native = np.array(values[bad], values[bad].dtype.newbyteorder("="), order="C", copy=True)
        values = (*values[:bad], native, *values[bad + 1 :])
        status = entry(values, outs)


def classify_results(closed: ClosedJaxpr):
    """What each result of a jaxpr is, and the variables that must be computed, each once."""
    jaxpr = closed.jaxpr
    arguments = {v: i for i, v in enumerate(jaxpr.invars)}
    constants = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    computed: dict = {}
    results = []
    for v in jaxpr.outvars:
        if type(v) is Literal:
            results.append(("constant", as_array(v.val)))
        elif v in arguments:
            results.append(("argument", arguments[v]))
        elif v in constants:
            results.append(("constant", as_array(constants[v])))
        elif v.aval.dtype == dtypes.float0:
            results.append(("constant", typed_array(np.zeros(v.aval.shape, dtypes.float0), v.aval)))
        else:
            results.append(("computed", computed.setdefault(v, len(computed))))
    return results, list(computed)


@memoised
def program_of(closed: ClosedJaxpr, donated: tuple = (), name: str = "main") -> Program:
    """The compiled program of a jaxpr; compiled at the first call."""
    return Program(closed, donated, name)


def run_jaxpr(closed: ClosedJaxpr, args, primitive, donated: tuple = (), name: str = "main") -> list:
    """Run a jaxpr natively on concrete arguments of its types."""
    arrays = [x if type(x) is Array else concrete(x, primitive) for x in args]
    outs = program_of(closed, donated, name)(arrays)
    return [out if out.aval is aval else typed_array(out._value, aval) for out, aval in zip(outs, closed.out_avals, strict=True)]
