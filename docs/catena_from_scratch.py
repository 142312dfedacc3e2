"""catena from scratch: the ideas of the system in one file that can be read in an hour.

You will see a function of arrays differentiated, vectorised and compiled to machine code, in any order and to any
depth, by about 300 lines of Python over NumPy. Everything here has its grown-up counterpart in ``src/catena``, named at
the head of each section. What is left out is what makes a system and not an idea: dtypes (all numbers here are
float64), pytrees, control flow, errors that help, a compiler that earns the name, and speed.

All examples run as tests: ``python -m doctest docs/catena_from_scratch.py``.

>>> def f(x):
...     return total(sin(x) * x)
>>> x = np.array([0.5, 1.0, 2.0])
>>> np.round(grad(f)(x), 3)
array([0.918, 1.382, 0.077])
>>> np.round(jit(vmap(grad(f)))(np.stack([x, 2 * x])), 3)
array([[ 0.918,  1.382,  0.077],
       [ 1.382,  0.077, -3.371]])
"""

import contextlib
import ctypes
import itertools
import string
from typing import Any, NamedTuple

import numpy as np

try:
    import llvmlite.binding as llvm
except ImportError:  # then NumPy computes everything
    llvm = None

# ---------------------------------------------------------------------------------------------------------------------
# 1. Primitives, and who is asked                              (core/primitive.py, core/context.py, core/evaluate.py)
#
# A program applies primitives to values. What a primitive *means* depends on what we are doing: computing numbers,
# deriving, mapping over a batch, writing the program down. So an operation does not compute. It asks the *current
# trace* to process it. There is one current trace, not a stack of them: `None` means "compute numbers", and every other
# trace knows its parent, to which it hands what it does itself. That keeps the most common case, plain numbers, at the
# price of one comparison.


class State:
    trace: Any = None  # the current trace; a real system keeps one for each thread


@contextlib.contextmanager
def running(trace):
    """Make a trace the current one."""
    before, State.trace = State.trace, trace
    try:
        yield trace
    finally:
        State.trace = before


class Primitive:
    """A name. Its meanings stand in tables, each owned by the transformation that reads it."""

    def __init__(self, name: str, many: bool = False):
        self.name, self.many = name, many  # many: whether it returns a list of results

    def bind(self, *args, **params):
        if State.trace is None:
            return evaluate[self](*args, **params)
        return State.trace.process(self, args, params)


evaluate: dict = {}  # (*arrays, **params) -> array: NumPy
shape_of_result: dict = {}  # (*shapes, **params) -> shape
jvp_rules: dict = {}  # (primals, tangents, **params) -> result, tangent
transpose_rules: dict = {}  # (cotangent, *args, **params) -> a cotangent for each argument that is Linear
batch_rules: dict = {}  # (args, which are mapped, **params) -> result, mapped
write: dict = {}  # for the compiler: the LLVM instruction of an elementwise primitive

# Operands of elementwise primitives have equal shapes. The functions that users call see to that, with `broadcast`,
# which puts new axes anywhere. Its opposite is `reduce_sum`: each is the transpose of the other, which will pay off.

add_p, mul_p, neg_p = Primitive("add"), Primitive("mul"), Primitive("neg")
sin_p, cos_p, exp_p, log_p = Primitive("sin"), Primitive("cos"), Primitive("exp"), Primitive("log")
inv_p = Primitive("inv")
sum_p, broadcast_p = Primitive("reduce_sum"), Primitive("broadcast")

ELEMENTWISE = {
    add_p: np.add, mul_p: np.multiply, neg_p: np.negative, sin_p: np.sin, cos_p: np.cos, exp_p: np.exp,
    log_p: np.log, inv_p: np.reciprocal,
}  # fmt: skip
evaluate.update(ELEMENTWISE)
evaluate[sum_p] = lambda x, axes: np.sum(x, axes)
evaluate[broadcast_p] = lambda x, shape, axes: np.broadcast_to(np.expand_dims(x, axes), shape)


def same_shape(x, *others):
    if any(other != x for other in others):
        raise TypeError(f"operands of different shapes: {x} and {others}")
    return x


shape_of_result.update(dict.fromkeys(ELEMENTWISE, same_shape))
shape_of_result[sum_p] = lambda x, axes: tuple(n for i, n in enumerate(x) if i not in axes)
shape_of_result[broadcast_p] = lambda x, shape, axes: shape


def shape(x) -> tuple:
    return x.shape if isinstance(x, Tracer) else np.shape(x)


def spread(x, to: tuple):
    """``x`` with axes in front, until it has the shape ``to``.

    >>> spread(np.array([1.0, 2.0]), (2, 2))
    array([[1., 2.],
           [1., 2.]])
    """
    new = len(to) - len(shape(x))
    return broadcast_p.bind(x, shape=to, axes=tuple(range(new))) if new else x


def elementwise(primitive):
    def function(*args):
        widest = max(map(shape, args), key=len)
        return primitive.bind(*[spread(x, widest) for x in args])

    return function


add, mul, neg = elementwise(add_p), elementwise(mul_p), elementwise(neg_p)
sin, cos, exp, log, inv = (elementwise(p) for p in (sin_p, cos_p, exp_p, log_p, inv_p))


def total(x, axes=None):
    """The sum of elements, along all axes or some."""
    return sum_p.bind(x, axes=tuple(range(len(shape(x)))) if axes is None else axes)


def matmul(x, y):
    """A product of matrices is a sum of products; a real compiler finds that out and does better."""
    (n, k), (_, m) = shape(x), shape(y)
    wide = broadcast_p.bind(x, shape=(n, k, m), axes=(2,))
    return total(wide * broadcast_p.bind(y, shape=(n, k, m), axes=(0,)), (1,))


# ---------------------------------------------------------------------------------------------------------------------
# 2. Traces and tracers                                                                              (core/trace.py)
#
# A transformation runs the user's function on *tracers*: stand-ins that know their trace and carry what it wants to
# know. A trace recognises its own tracers; everything else, numbers or tracers of other traces, is constant to it.


class Tracer:
    """A stand-in for an array; ``parts`` is what its trace keeps about it."""

    def __init__(self, trace, *parts):
        self.trace, self.parts = trace, parts

    @property
    def shape(self) -> tuple:
        return self.trace.shape(self)

    __array_ufunc__ = None  # so that NumPy arrays leave `array * tracer` to us
    __add__ = __radd__ = lambda self, other: add(self, other)
    __mul__ = __rmul__ = lambda self, other: mul(self, other)
    __neg__ = lambda self: neg(self)
    __sub__ = lambda self, other: add(self, neg(other))
    __rsub__ = lambda self, other: add(other, neg(self))
    __truediv__ = lambda self, other: mul(self, inv(other))
    __rtruediv__ = lambda self, other: mul(other, inv(self))


class Trace:
    def __init__(self):
        self.parent = State.trace  # whoever was asked when this trace was made

    def owns(self, x) -> bool:
        return isinstance(x, Tracer) and x.trace is self

    def hand_on(self, primitive, args, params):
        """Let the parent process an operation."""
        with running(self.parent):
            return primitive.bind(*args, **params)


def listed(x) -> list:
    return list(x) if isinstance(x, (list, tuple)) else [x]


# ---------------------------------------------------------------------------------------------------------------------
# 3. Programs as data                                                               (core/jaxpr.py, core/staging.py)
#
# The simplest transformation writes down what it is asked. What comes out is a *jaxpr*: variables that are bound once,
# each by an equation. No loops, no names that change, no aliasing: a program that other programs can reason about.


class Var:
    def __init__(self, shape):
        self.shape = shape


class Eqn(NamedTuple):
    primitive: Primitive
    args: list  # of variables, and of values that are constant
    params: dict
    results: list


class Jaxpr(NamedTuple):
    invars: list
    eqns: list
    outs: list  # of variables and values

    def __str__(self):
        names: dict = {}

        def name(x) -> str:
            if type(x) is not Var:
                return "*" if shape(x) else f"{float(x):.3g}"
            return names.setdefault(x, string.ascii_letters[len(names) % 52] + "'" * (len(names) // 52))

        lines = [f"lambda {' '.join(f'{name(v)}{list(v.shape)}' for v in self.invars)}:"]
        for primitive, args, params, results in self.eqns:
            shown = "".join(f" {k}={v}" for k, v in params.items() if type(v) is not Jaxpr)
            inner = "".join("\n    " + str(v).replace("\n", "\n    ") for v in params.values() if type(v) is Jaxpr)
            lines.append(
                f"  {' '.join(map(name, results))} = {primitive.name}{shown} {' '.join(map(name, args))}{inner}"
            )
        return "\n".join([*lines, f"  return {' '.join(map(name, self.outs))}"])


class Writer(Trace):
    """Writes equations; a tracer carries its variable."""

    def __init__(self):
        super().__init__()
        self.eqns: list[Eqn] = []

    def shape(self, tracer):
        return tracer.parts[0].shape

    def new(self, shape) -> Tracer:
        return Tracer(self, Var(shape))

    def atom(self, x):
        return x.parts[0] if self.owns(x) else x

    def process(self, primitive, args, params):
        return self.written(primitive, args, params)

    def written(self, primitive, args, params):
        shapes = shape_of_result[primitive](*map(shape, args), **params)
        outs = [self.new(s) for s in (shapes if primitive.many else [shapes])]
        self.eqns.append(Eqn(primitive, [self.atom(x) for x in args], params, [x.parts[0] for x in outs]))
        return outs if primitive.many else outs[0]


def make_jaxpr(f, *shapes) -> Jaxpr:
    """The program that ``f`` is, on arrays of these shapes. ``f`` may return an array, or a list of them.

    >>> print(make_jaxpr(lambda x: total(sin(x) * 2.0), (3,)))
    lambda a[3]:
      b = sin a
      c = broadcast shape=(3,) axes=(0,) 2
      d = mul b c
      e = reduce_sum axes=(0,) d
      return e
    """
    with running(Writer()) as writer:
        args = [writer.new(s) for s in shapes]
        outs = [writer.atom(x) for x in listed(f(*args))]
    return Jaxpr([writer.atom(x) for x in args], writer.eqns, outs)


def run_jaxpr(jaxpr: Jaxpr, *args) -> list:
    """Apply a jaxpr to values. Each operation goes through ``bind``, so a jaxpr is a function like any other: it can be
    derived, mapped and written down again. A loop over a list needs no recursion, however long the program is.
    """
    env = dict(zip(jaxpr.invars, args, strict=True))
    read = lambda x: env[x] if type(x) is Var else x  # noqa: E731
    for primitive, inputs, params, results in jaxpr.eqns:
        env.update(zip(results, listed(primitive.bind(*map(read, inputs), **params)), strict=True))
    return [read(x) for x in jaxpr.outs]


# ---------------------------------------------------------------------------------------------------------------------
# 4. Derivatives forwards                                                             (transform/jvp.py, core/zeros.py)
#
# A tracer carries a value and its tangent, the direction in which it moves. A rule for each primitive says how the
# result moves. Tangents that are zero are not computed with: they are a `Zero`, known when we trace. So constants
# cost nothing, and nobody multiplies by arrays of zeros.


class Zero(NamedTuple):
    shape: tuple


class JVP(Trace):
    def shape(self, tracer):
        return shape(tracer.parts[0])

    def pair(self, x) -> tuple:
        return x.parts if self.owns(x) else (x, Zero(shape(x)))

    def process(self, primitive, args, params):
        primals, tangents = zip(*map(self.pair, args), strict=True)
        if all(type(t) is Zero for t in tangents):
            return self.hand_on(primitive, primals, params)
        with running(self.parent):
            outs, moved = jvp_rules[primitive](primals, tangents, **params)
        if primitive.many:
            return [self.wrapped(x, t) for x, t in zip(outs, moved, strict=True)]
        return self.wrapped(outs, moved)

    def wrapped(self, x, tangent):
        return x if type(tangent) is Zero else Tracer(self, x, tangent)


def jvp_flat(f, primals, tangents) -> tuple[list, list]:
    """The results of ``f`` and their tangents, some of them ``Zero``."""
    with running(JVP()) as trace:
        outs = listed(f(*[trace.wrapped(x, t) for x, t in zip(primals, tangents, strict=True)]))
        pairs = [trace.pair(x) for x in outs]
    return [x for x, _ in pairs], [t for _, t in pairs]


def jvp(f, primals, tangents):
    """The value of ``f`` and how it moves when the arguments move along ``tangents``.

    >>> [float(x) for x in jvp(lambda x: x * x * x, (2.0,), (1.0,))]
    [8.0, 12.0]
    """
    [out], [tangent] = jvp_flat(f, primals, tangents)
    return out, np.zeros(tangent.shape) if type(tangent) is Zero else tangent


def add_tangents(a, b):
    return b if type(a) is Zero else a if type(b) is Zero else add(a, b)


def scaled(tangent, factor):
    return tangent if type(tangent) is Zero else mul(tangent, factor)


def linear_rule(primitive):
    """What is linear moves as it maps."""
    return lambda primals, tangents, **params: (
        primitive.bind(primals[0], **params),
        primitive.bind(tangents[0], **params),
    )


def from_derivative(primitive, derivative):
    """``derivative(x, y)`` where y is the value."""

    def rule(primals, tangents):
        x, y = primals[0], primitive.bind(*primals)
        return y, scaled(tangents[0], derivative(x, y))

    return rule


jvp_rules[add_p] = lambda xs, ts: (add(*xs), add_tangents(*ts))
jvp_rules[mul_p] = lambda xs, ts: (mul(*xs), add_tangents(scaled(ts[0], xs[1]), scaled(ts[1], xs[0])))
for p in (neg_p, sum_p, broadcast_p):
    jvp_rules[p] = linear_rule(p)
jvp_rules[sin_p] = from_derivative(sin_p, lambda x, y: cos(x))
jvp_rules[cos_p] = from_derivative(cos_p, lambda x, y: neg(sin(x)))
jvp_rules[exp_p] = from_derivative(exp_p, lambda x, y: y)
jvp_rules[log_p] = from_derivative(log_p, lambda x, y: inv(x))
jvp_rules[inv_p] = from_derivative(inv_p, lambda x, y: neg(mul(y, y)))

# ---------------------------------------------------------------------------------------------------------------------
# 5. Linearisation: the derivative as a program                                            (transform/linearize.py)
#
# This is the heart. We run forward derivatives on a *tape*: a trace to which tangents are unknown. Operations on known
# values are done at once (the parent does them); operations that touch an unknown are written down, with the known
# values in them as constants. What is done at once is the function. What is on the tape is its derivative at this
# point, and it is linear: the rules multiply tangents by known values only. No second pass finds out what is needed
# later; it is what the tape refers to.


class Tape(Writer):
    def process(self, primitive, args, params):
        if not any(map(self.owns, args)):
            return self.hand_on(primitive, args, params)
        if primitive in tape_rules:
            return tape_rules[primitive](self, args, params)
        return self.written(primitive, args, params)


tape_rules: dict = {}  # for primitives that call functions, whose results may be known in part


def linearize_flat(f, *primals) -> tuple[list, Jaxpr]:
    """The results of ``f`` and the linear jaxpr from tangents of the arguments to those of the results."""
    with running(Tape()) as tape:
        unknown = [tape.new(shape(x)) for x in primals]
        outs, tangents = jvp_flat(f, primals, unknown)
    return outs, Jaxpr([tape.atom(t) for t in unknown], tape.eqns, [tape.atom(t) for t in tangents])


def linearize(f, *primals):
    """The value of ``f``, and its derivative here as a jaxpr: sine is done, multiplication by its derivative remains.

    >>> y, derivative = linearize(lambda x: sin(x) * 3.0, 1.0)
    >>> print(derivative)
    lambda a[]:
      b = mul a 0.54
      c = mul b 3
      return c
    """
    [out], linear = linearize_flat(f, *primals)
    return out, linear


# ---------------------------------------------------------------------------------------------------------------------
# 6. Transposition: derivatives backwards                                                  (transform/transpose.py)
#
# A linear program from m numbers to one is, read backwards, a program from one number to m. Each linear equation hands
# the cotangent of its result to its arguments; cotangents of a variable that is used several times add up. What never
# got a cotangent is zero, and its equations are skipped: symbolic zeros again. So a gradient costs a few times what the
# function costs, however many arguments it has.


class Linear(NamedTuple):
    """Stands for an argument whose value is not known, since the program is linear in it."""

    shape: tuple


def backward(jaxpr: Jaxpr, cotangents) -> list:
    """Cotangents of the arguments, from those of the results."""
    total_of: dict = {}

    def give(x, ct):
        if type(x) is Var and type(ct) is not Zero:
            total_of[x] = add_tangents(total_of.get(x, Zero(x.shape)), ct)

    for x, ct in zip(jaxpr.outs, cotangents, strict=True):
        give(x, ct)
    for primitive, args, params, results in reversed(jaxpr.eqns):
        cts = [total_of.pop(v, Zero(v.shape)) for v in results]
        if all(type(ct) is Zero for ct in cts):
            continue
        marked = [Linear(x.shape) if type(x) is Var else x for x in args]
        for x, ct in zip(
            args, transpose_rules[primitive](cts if primitive.many else cts[0], *marked, **params), strict=True
        ):
            give(x, ct)
    return [total_of.get(v, Zero(v.shape)) for v in jaxpr.invars]


transpose_rules[add_p] = lambda ct, x, y: (ct, ct)
transpose_rules[mul_p] = lambda ct, x, y: (mul(ct, y), None) if type(x) is Linear else (None, mul(x, ct))
transpose_rules[neg_p] = lambda ct, x: (neg(ct),)
transpose_rules[sum_p] = lambda ct, x, axes: (broadcast_p.bind(ct, shape=x.shape, axes=axes),)
transpose_rules[broadcast_p] = lambda ct, x, shape, axes: (sum_p.bind(ct, axes=axes),)


def grad(f):
    """The gradient of a function to one number, in its first argument: linearise, then read backwards.

    >>> cube = lambda x: x * x * x
    >>> float(grad(cube)(2.0)), float(grad(grad(cube))(2.0)), float(grad(grad(grad(cube)))(2.0))
    (12.0, 12.0, 6.0)
    """

    def gradient(x, *others):
        [out], linear = linearize_flat(lambda x: f(x, *others), x)
        [ct] = backward(linear, [np.ones(shape(out))])
        return np.zeros(ct.shape) if type(ct) is Zero else ct

    return gradient


# ---------------------------------------------------------------------------------------------------------------------
# 7. Vectorisation                                                                             (transform/batch.py)
#
# A function of one example runs on tracers that hide the examples' axis; here it is always in front. Each rule does its
# operation for all examples at once. What is not mapped stays single until it meets something that is.


class Batch(Trace):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def shape(self, tracer):
        return shape(tracer.parts[0])[1:]

    def process(self, primitive, args, params):
        mapped = [self.owns(x) for x in args]
        values = [x.parts[0] if m else x for x, m in zip(args, mapped, strict=True)]
        if not any(mapped):
            return self.hand_on(primitive, values, params)
        with running(self.parent):
            outs = batch_rules[primitive](self.size, values, mapped, **params)
        return [Tracer(self, x) for x in outs] if primitive.many else Tracer(self, outs)


def in_front(size, x, mapped: bool):
    return x if mapped else spread(x, (size, *shape(x)))


def batch_flat(f, size, args, mapped) -> list:
    with running(Batch(size)) as trace:
        outs = listed(f(*[Tracer(trace, x) if m else x for x, m in zip(args, mapped, strict=True)]))
    return [in_front(size, x.parts[0] if trace.owns(x) else x, trace.owns(x)) for x in outs]


def vmap(f):
    """``f`` for all examples of a batch, which lie along the first axis of every argument.

    >>> vmap(lambda x, y: total(x * y))(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([1., 4.])
    """

    def mapped(*args):
        [out] = batch_flat(f, shape(args[0])[0], args, [True] * len(args))
        return out

    return mapped


for p in ELEMENTWISE:
    batch_rules[p] = lambda size, args, mapped, p=p: p.bind(*map(in_front, [size] * len(args), args, mapped))
batch_rules[sum_p] = lambda size, args, mapped, axes: sum_p.bind(args[0], axes=tuple(i + 1 for i in axes))
batch_rules[broadcast_p] = lambda size, args, mapped, shape, axes: broadcast_p.bind(
    args[0], shape=(size, *shape), axes=tuple(i + 1 for i in axes)
)

# ---------------------------------------------------------------------------------------------------------------------
# 8. A compiler                                                                                         (compiler/)
#
# A jaxpr can be computed better than one operation after the other. Equal equations are computed once, and neighbours
# that are elementwise become one loop: values between them stay in registers and never see memory. We write the loop as
# text of LLVM, which makes machine code of it. All else is left to NumPy. Where there is no LLVM, so are the loops.

write.update({
    add_p: "fadd double {0}, {1}", mul_p: "fmul double {0}, {1}", neg_p: "fneg double {0}",
    inv_p: "fdiv double 1.0, {0}",
} | {p: f"call double @llvm.{p.name}.f64(double {{0}})" for p in (sin_p, cos_p, exp_p, log_p)})  # fmt: skip


def simplified(jaxpr: Jaxpr) -> list[Eqn]:
    """The equations of a jaxpr, calls inlined, equal ones merged, those that nobody reads dropped.

    Merging is hash-consing: an equation is looked up by its primitive, its arguments and its parameters, and since
    arguments were merged before, equal programs are found to be equal at the price of one look-up an equation.
    """
    known: dict = {}  # equation -> its result
    same: dict = {}  # variable -> the variable that stands for it
    kept: list[Eqn] = []

    def visit(jaxpr, args):
        same.update(zip(jaxpr.invars, args, strict=True))
        for primitive, args, params, results in jaxpr.eqns:
            args = [same.get(x, x) if type(x) is Var else x for x in args]
            if primitive is jit_p:
                same.update(zip(results, visit(params["jaxpr"], args), strict=True))
                continue
            key = (primitive, *[x if type(x) is Var else id(x) for x in args], *params.items())
            if key not in known:
                kept.append(Eqn(primitive, args, params, results))
            same[results[0]] = known.setdefault(key, results[0])
        return [same.get(x, x) if type(x) is Var else x for x in jaxpr.outs]

    outs = visit(jaxpr, jaxpr.invars)
    needed, live = set(outs_of(outs)), []
    for eqn in reversed(kept):
        if eqn.results[0] in needed:
            needed.update(outs_of(eqn.args))
            live.append(eqn)
    return [*reversed(live), Eqn(RETURN, outs, {}, [])]


RETURN = Primitive("return")


def outs_of(atoms) -> list:
    return [x for x in atoms if type(x) is Var]


def grouped(eqns: list[Eqn]) -> list[list[Eqn]]:
    """Neighbours that are elementwise over the same shape, together."""
    kind = lambda eqn: (
        eqn.primitive in ELEMENTWISE and eqn.results[0].shape,
        id(eqn) * (eqn.primitive not in ELEMENTWISE),
    )  # noqa: E731
    return [list(group) for _, group in itertools.groupby(eqns, kind)]


def loop_text(inputs, eqns, outputs) -> str:
    """LLVM text of a loop: load an element of each input, compute, store one in each output."""
    names = {v: f"%v{k}" for k, v in enumerate([*inputs, *[e.results[0] for e in eqns]])}
    pointers = [f"%p{k}" for k in range(len(inputs) + len(outputs))]
    declared = [f"declare double @llvm.{p.name}.f64(double)" for p in (sin_p, cos_p, exp_p, log_p)]
    body = []
    for k, v in enumerate(inputs):
        body += [f"%a{k} = getelementptr double, ptr %p{k}, i64 %i", f"{names[v]} = load double, ptr %a{k}"]
    for primitive, args, _, [result] in eqns:
        body.append(f"{names[result]} = " + write[primitive].format(*[names[x] for x in args]))
    for k, v in enumerate(outputs, len(inputs)):
        body += [f"%a{k} = getelementptr double, ptr %p{k}, i64 %i", f"store double {names[v]}, ptr %a{k}"]
    return "\n".join([
        *declared,
        f"define void @loop(i64 %n, {', '.join(f'ptr {p}' for p in pointers)}) {{",
        "entry:",
        "  %some = icmp sgt i64 %n, 0",
        "  br i1 %some, label %body, label %end",
        "body:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %body ]",
        *[f"  {line}" for line in body],
        "  %next = add i64 %i, 1",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %body, label %end",
        "end:",
        "  ret void",
        "}",
    ])  # fmt: skip


def machine_code(text: str, pointers: int):
    """The function `loop` of a text, as Python can call it. It lives as long as its engine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    address = engine.get_function_address("loop")
    return engine, ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * pointers)(address)


def compiled_loop(eqns: list[Eqn], read_later: set):
    """A function that updates the environment by a group of elementwise equations."""
    made = {e.results[0] for e in eqns}
    keys = dict.fromkeys(x if type(x) is Var else id(x) for e in eqns for x in e.args)
    constants = {id(x): x for e in eqns for x in e.args if type(x) is not Var}
    stand_in = {k: Var(shape(x)) for k, x in constants.items()}  # in the text, constants are inputs as others
    eqns = [e._replace(args=[x if type(x) is Var else stand_in[id(x)] for x in e.args]) for e in eqns]
    sources = [k for k in keys if k not in made]
    outputs = [v for v in made if v in read_later]
    inputs = [stand_in.get(k, k) for k in sources]
    engine, call = machine_code(loop_text(inputs, eqns, outputs), len(inputs) + len(outputs))

    def run(env):
        given = [np.ascontiguousarray(env[k] if type(k) is Var else constants[k], np.float64) for k in sources]
        results = [np.empty(v.shape) for v in outputs]
        size = int(np.prod(outputs[0].shape))
        call(size, *[x.ctypes.data for x in [*given, *results]])
        env.update(zip(outputs, results, strict=True))

    run.engine = engine  # kept alive
    return run


def compile_jaxpr(jaxpr: Jaxpr):
    """A function of NumPy arrays that computes what the jaxpr says."""
    *eqns, last = simplified(jaxpr)
    groups = grouped(eqns)
    steps, read_later = [], set(outs_of(last.args))
    for group in reversed(groups):
        if llvm is not None and group[0].primitive in ELEMENTWISE:
            steps.append(compiled_loop(group, read_later))
        else:
            steps += [one_step(eqn) for eqn in reversed(group)]
        read_later |= {x for e in group for x in outs_of(e.args)}
    steps.reverse()

    def run(*args):
        env = dict(zip(jaxpr.invars, args, strict=True))
        for step in steps:
            step(env)
        return [env[x] if type(x) is Var else x for x in last.args]

    return run


def one_step(eqn: Eqn):
    def run(env):
        args = [env[x] if type(x) is Var else x for x in eqn.args]
        env[eqn.results[0]] = evaluate[eqn.primitive](*args, **eqn.params)

    return run


# ---------------------------------------------------------------------------------------------------------------------
# 9. jit: a primitive that is a program                                  (transform/jit.py, transform/jit_primitive.py)
#
# `jit(f)` writes f down once for each combination of shapes and binds the primitive `jit` with the jaxpr. Asked for
# numbers, it compiles and calls. Asked anything else it is a primitive like the others: its rules transform the jaxpr,
# by running it under the very traces of above while a new one is written. So jit(grad(f)), grad(jit(f)) and
# jit(vmap(grad(jit(f)))) all end in one call of compiled code.

jit_p = Primitive("jit", many=True)
programs: dict = {}  # id of a jaxpr -> the jaxpr, kept alive, and its program


def jit(f):
    """``f``, compiled when it is called.

    >>> logistic = jit(lambda x: inv(1.0 + exp(-x)))
    >>> [round(float(f(1.0)), 4) for f in (logistic, grad(logistic), jit(grad(grad(logistic))))]
    [0.7311, 0.1966, -0.0909]
    """
    written: dict = {}  # by shapes: the jaxpr, and the values of other traces that f refers to

    def call(*args):
        shapes = tuple(map(shape, args))
        found = written.get(shapes)
        if found is None:
            found = hoisted(make_jaxpr(f, *shapes))
            if not any(isinstance(x, Tracer) for x in found[1]):
                written[shapes] = found
        jaxpr, values = found
        [out] = jit_p.bind(*values, *args, jaxpr=jaxpr)
        return out

    return call


def hoisted(jaxpr: Jaxpr) -> tuple[Jaxpr, list]:
    """The jaxpr with tracers among its constants as arguments, in front; and what these are."""
    values = {id(x): x for e in [*jaxpr.eqns, Eqn(RETURN, jaxpr.outs, {}, [])] for x in e.args if isinstance(x, Tracer)}
    variables = {k: Var(shape(x)) for k, x in values.items()}
    put = lambda x: variables.get(id(x), x)  # noqa: E731
    eqns = [e._replace(args=list(map(put, e.args))) for e in jaxpr.eqns]
    return Jaxpr([*variables.values(), *jaxpr.invars], eqns, list(map(put, jaxpr.outs))), list(values.values())


def call_program(*args, jaxpr):
    if id(jaxpr) not in programs:
        programs[id(jaxpr)] = jaxpr, compile_jaxpr(jaxpr)
    outs = programs[id(jaxpr)][1](*args)
    return [x[()] if not np.shape(x) else x for x in outs]


def jit_jvp(primals, tangents, *, jaxpr):
    """One program from the arguments and the tangents that there are to the results and their tangents."""
    moving = [type(t) is not Zero for t in tangents]
    kinds: list = []

    def both(*args):
        given = iter(args[len(primals) :])
        ts = [next(given) if m else Zero(shape(x)) for x, m in zip(args, moving)]
        outs, out_ts = jvp_flat(lambda *xs: run_jaxpr(jaxpr, *xs), args[: len(primals)], ts)
        kinds[:] = [type(t) is not Zero for t in out_ts]
        return [*outs, *[t for t in out_ts if type(t) is not Zero]]

    given = [t for t in tangents if type(t) is not Zero]
    new = make_jaxpr(both, *map(shape, [*primals, *given]))
    outs = jit_p.bind(*primals, *given, jaxpr=new)
    count, moved = len(jaxpr.outs), iter(outs[len(jaxpr.outs) :])
    return outs[:count], [next(moved) if k else Zero(shape(x)) for x, k in zip(outs, kinds)]


def jit_on_tape(tape: Tape, args, params):
    """Partial evaluation: the known half becomes one program that is run now, the unknown half one that is written.

    To split a jaxpr, run it under a new tape while its known half is written down; what the unknown half needs of the
    known one are results of the known half.
    """
    jaxpr, known = params["jaxpr"], [x for x in args if not tape.owns(x)]
    unknown = [x for x in args if tape.owns(x)]
    split: dict = {}

    def known_half(*known_args):
        given = iter(known_args)
        with running(Tape()) as inner:
            inputs = [inner.new(shape(x)) if tape.owns(x) else next(given) for x in args]
            outs = run_jaxpr(jaxpr, *inputs)
        linear = Jaxpr(
            [inner.atom(x) for x in inputs if inner.owns(x)], inner.eqns, [inner.atom(x) for x in outs if inner.owns(x)]
        )
        split["linear"], residuals = hoisted(linear)
        split["known"] = [not inner.owns(x) for x in outs]
        return [*[x for x in outs if not inner.owns(x)], *residuals]

    program = make_jaxpr(known_half, *map(shape, known))
    with running(tape.parent):
        results = jit_p.bind(*known, jaxpr=program)
    count = sum(split["known"])
    done, residuals = iter(results[:count]), results[count:]
    rest = iter(tape.written(jit_p, [*residuals, *unknown], {"jaxpr": split["linear"]}))
    return [next(done) if k else next(rest) for k in split["known"]]


def jit_transpose(cts, *args, jaxpr):
    """The program read backwards, as a program of the residuals and the cotangents."""
    linear = [type(x) is Linear for x in args]
    kept: list = []

    def reversed_program(*values):
        residuals, given = iter(values), iter(values[len(args) - sum(linear) :])
        known = {v: next(residuals) for v, is_linear in zip(jaxpr.invars, linear) if not is_linear}
        put = lambda x: known.get(x, x) if type(x) is Var else x  # noqa: E731
        eqns = [e._replace(args=list(map(put, e.args))) for e in jaxpr.eqns]
        inside = Jaxpr([v for v in jaxpr.invars if v not in known], eqns, list(map(put, jaxpr.outs)))
        outs = backward(inside, [ct if type(ct) is Zero else next(given) for ct in cts])
        kept[:] = [type(ct) is not Zero for ct in outs]
        return [ct for ct in outs if type(ct) is not Zero]

    values = [*[x for x, is_linear in zip(args, linear) if not is_linear], *[ct for ct in cts if type(ct) is not Zero]]
    outs = iter(jit_p.bind(*values, jaxpr=make_jaxpr(reversed_program, *map(shape, values))))
    back = iter([next(outs) if k else None for k in kept])
    return [
        (found if (found := next(back)) is not None else Zero(x.shape)) if is_linear else None
        for x, is_linear in zip(args, linear)
    ]


def jit_batch(size, args, mapped, *, jaxpr):
    """The program for all examples."""
    whole = lambda *xs: batch_flat(lambda *ys: run_jaxpr(jaxpr, *ys), size, xs, mapped)  # noqa: E731
    return jit_p.bind(*args, jaxpr=make_jaxpr(whole, *map(shape, args)))


evaluate[jit_p] = call_program
shape_of_result[jit_p] = lambda *shapes, jaxpr: [shape(x) for x in jaxpr.outs]
jvp_rules[jit_p] = jit_jvp
tape_rules[jit_p] = jit_on_tape
transpose_rules[jit_p] = jit_transpose
batch_rules[jit_p] = jit_batch


# ---------------------------------------------------------------------------------------------------------------------
# 10. All of it
#
# A step of training, compiled whole: the gradient of a loss over a batch, in all weights of a small network.


def example_loss(weights, example):
    """Of one example, a row of inputs followed by what is wanted: one layer of sines and a sum.

    >>> rng = np.random.default_rng(0)
    >>> weights, batch = rng.normal(size=(3, 4)), rng.normal(size=(8, 4))
    >>> loss = lambda w: total(vmap(lambda e: example_loss(w, e))(batch)) / 8.0
    >>> step = jit(lambda w: w - 0.1 * grad(loss)(w))
    >>> before = loss(weights)
    >>> for _ in range(50):
    ...     weights = step(weights)
    >>> bool(loss(weights) < 0.5 * before)
    True
    """
    masks = np.eye(4)
    inputs = matmul(masks[:3], broadcast_p.bind(example, shape=(4, 1), axes=(1,)))
    wanted = total(example * masks[3])
    hidden = total(sin(weights * broadcast_p.bind(total(inputs, (1,)), shape=(3, 4), axes=(1,))))
    error = hidden - wanted
    return error * error
