"""Programs written with the Builder, compiled, run, and compared with NumPy."""

from types import SimpleNamespace

import numpy as np

from catena.compiler.graph.builder import Builder
from catena.compiler.graph.symbols import is_recording
from catena.compiler.native import compile as compiler
from catena.compiler.native.compile import compile_region
from catena.compiler.plan.verify import verify
from catena.core.config import config

assert config is not None  # importing it declares the flags that the compiler reads
_plan = compiler.plan
f32, i32 = np.dtype(np.float32), np.dtype(np.int32)


def _verified(*region):
    program = _plan(*region)
    verify(program)
    assert is_recording() or str(program)  # what is printed is written down as it is
    return program


compiler.plan = _verified


def compile_fn(f, *args):
    """The executable of `f(builder, *values)`."""
    b = Builder()
    ins = [b.input(np.shape(a), np.asarray(a).dtype) for a in args]
    out = f(b, *ins)
    b.region.outputs = list(out) if isinstance(out, (list, tuple)) else [out]
    return compile_region(b.region)


def run(f, *args):
    """The results of `f`: a tuple, or one array."""
    out = compile_fn(f, *args)(*map(np.asarray, args))
    return out[0] if len(out) == 1 else out


def check(f, expected, *args, rtol=0.0, atol=0.0):
    """Asserts that `f` compiled gives `expected` (an array or a list of them), dtypes and shapes included."""
    got = compile_fn(f, *args)(*map(np.asarray, args))
    expected = expected if isinstance(expected, (list, tuple)) else [expected]
    for g, w in zip(got, expected, strict=True):
        w = np.asarray(w)
        assert g.shape == w.shape and g.dtype == w.dtype, (g.shape, g.dtype, w.shape, w.dtype)
        if rtol or atol:
            kind = complex if g.dtype.kind == "c" else float
            np.testing.assert_allclose(g.astype(kind), w.astype(kind), rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(g, w)


class Closed:
    """A stand-in for ClosedJaxpr: one equation whose lower rule is the given function."""

    def __init__(self, f, *specs):
        ins = [SimpleNamespace(aval=SimpleNamespace(shape=tuple(s), dtype=np.dtype(d))) for s, d in specs]
        b = Builder()
        outs = f(b, *[b.input(v.aval.shape, v.aval.dtype) for v in ins])
        outvars = [SimpleNamespace(aval=SimpleNamespace(shape=o.shape, dtype=o.dtype)) for o in outs]
        ids = {id(v): v for v in (*ins, *outvars)}
        primitive = SimpleNamespace(name="body", lower=lambda b, *xs: f(b, *xs), multiple_results=True)
        atoms = [_Hashable(v) for v in ids.values()]
        ins, outvars = atoms[: len(ins)], atoms[len(ins) :]
        eqn = SimpleNamespace(primitive=primitive, invars=ins, outvars=outvars, own_params={}, effects=(), source=None)
        self.jaxpr = SimpleNamespace(constvars=[], invars=ins, eqns=[eqn], outvars=outvars)
        self.consts = []


class _Hashable:
    def __init__(self, v):
        self.aval = v.aval
