"""Traces and tracers: how operations on values become something other than their evaluation.

There is one current trace in a thread, ``context.trace``. ``Primitive.bind`` hands every operation to it, and
the trace decides: a jaxpr trace writes an equation, a JVP trace carries a tangent along, a batch trace adds
an axis. A trace that transforms hands the transformed operations to its ``parent``, the trace that was
current outside. A tracer knows the trace that it belongs to; to every other trace it is a value like any
other.
"""

import contextlib
import operator
from typing import Any

import numpy as np

from catena.core import dtypes, errors
from catena.core.array import Array, as_array
from catena.core.aval import ShapedArray
from catena.core.config import overridden
from catena.core.context import context, set_trace
from catena.core.ref import Cell, Ref
from catena.core.token import Token
from catena.core.type_members import aval_property, give, member_of, shown_as_of_type
from catena.core.usual import with_usual


class Trace:
    """One level of interpretation. ``alive`` ends with the transformation, so that escaped tracers are recognised.

    A user's interpreter is a class with ``process_primitive(primitive, tracers, params)``, which is called with no
    trace in force and with all parameters, those that equations leave out among them; it may have
    ``process_custom_jvp_call`` and ``process_custom_vjp_call`` for functions with derivative rules.
    """

    __slots__ = ("parent", "alive", "__weakref__")
    name: Any = "trace"  # JaxprTrace has a property
    requires_low = False  # nothing stands for an object of the user's own type

    def __init__(self, parent=None):
        self.parent = parent
        self.alive = True

    @property
    def parent_trace(self) -> "Trace":
        """The trace that was current outside."""
        return eval_trace if self.parent is None else self.parent

    @parent_trace.setter
    def parent_trace(self, trace: "Trace | None"):
        self.parent = in_force(trace)

    @property
    def main(self) -> Any:
        """What the traces of one transformation have in common, or None."""
        return getattr(self, "tag", None)

    def is_valid(self) -> bool:
        """Whether the transformation still runs."""
        return self.alive

    def invalidate(self) -> None:
        """End the transformation, as ``end``."""
        self.end()

    def full_raise(self, x):
        """``x``: values of other traces are known here as they are."""
        return x

    def end(self):
        """The transformation is over: tracers of this trace that are still about have escaped."""
        self.alive = False

    def holders(self) -> list:
        """The containers that may hold tracers of this trace when it ends."""
        return []

    def process(self, primitive, args, params):
        """Do an operation: by ``process_primitive``, where a user's class has one."""
        if type(self).process_primitive is Trace.process_primitive:
            raise NotImplementedError(f"{type(self).__name__} must have a method process_primitive")
        with set_trace(None):
            return self.process_primitive(primitive, list(args), with_usual(primitive, params))

    def process_primitive(self, primitive, tracers, params):
        """Do an operation under this trace."""
        if type(self).process is Trace.process:
            raise NotImplementedError(f"{type(self).__name__} must have a method process_primitive")
        with set_trace(self):
            return self.process(primitive, tracers, params)

    def process_state(self, primitive, args, params):
        """An operation that makes a reference or writes to one: transformations see to it that what they carry along
        has a reference of its own.
        """
        return self.process(primitive, args, params)

    def process_custom(self, primitive, functions, args, params):
        """A call of a function together with its derivative rule: ``functions``, the function first. A transformation
        that asks for no derivative looks at what the function does.
        """
        name = "process_custom_jvp_call" if len(functions) == 2 else "process_custom_vjp_call"
        if getattr(type(self), name) is getattr(Trace, name):
            return functions[0](*args)
        trees = {} if len(functions) == 2 else {"out_trees": None}
        with set_trace(None):
            return getattr(self, name)(primitive, *map(Wrapped, functions), list(args), symbolic_zeros=False, **trees)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, /, *, symbolic_zeros):
        """A call of a function with a rule for tangents, as ``process_custom`` of this trace has it."""
        return self._call_custom(primitive, (fun, jvp), tracers, symbolic_zeros)

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, /, *, out_trees, symbolic_zeros):
        """A call of a function with a rule for cotangents, as ``process_custom`` of this trace has it; ``out_trees``
        is what a trace is told of the trees of results, which the functions know themselves.
        """
        return self._call_custom(primitive, (fun, fwd, bwd), tracers, symbolic_zeros)

    def _call_custom(self, primitive, functions, args, symbolic_zeros):
        params = {"name": getattr(functions[0], "__name__", primitive.name), "symbolic_zeros": symbolic_zeros}
        with set_trace(in_force(self)):
            return self.process_custom(primitive, functions, args, params)

    def process_call(self, call_primitive, f, tracers, params, /):
        """A call of a function by a ``CallPrimitive``: what the function does, under this trace."""
        with set_trace(in_force(self)):
            return f.call_wrapped(*tracers)

    def stage_value(self, val):
        """``val`` as this trace holds it: one that stages a program down makes it a constant of the program."""
        return val

    def __repr__(self):
        return type(self).__name__


class Wrapped:
    """A function of flat arguments as it is given to a user's trace."""

    __slots__ = ("call_wrapped", "__name__")

    def __init__(self, function):
        self.call_wrapped, self.__name__ = function, getattr(function, "__name__", "function")

    def __call__(self, *args):
        return self.call_wrapped(*args)


class EvalTrace(Trace):
    """What stands for the trace where nothing is traced, for those who ask: operations are evaluated."""

    __slots__ = ()
    name = "eval"

    def process(self, primitive, args, params):
        """Evaluate an operation."""
        with set_trace(None):
            return primitive.bind(*args, **params)


eval_trace = EvalTrace()


def in_force(trace):
    """``trace`` as the context holds it: None where it stands for evaluation."""
    return None if trace is eval_trace else trace


class FoldingTrace(Trace):
    """Evaluates operations on known values at once, and hands the others to the trace that is current outside."""

    __slots__ = ()
    name = "ensure_compile_time_eval"

    def process(self, primitive, args, params):
        """Evaluate an operation, or hand it on."""
        with set_trace(self.parent if any(isinstance(x, Tracer) for x in args) else None):
            return primitive.bind(*args, **params)

    process_state = process

    def process_custom(self, primitive, functions, args, params):
        """The same for a call of a function with its derivative rule."""
        if any(isinstance(x, Tracer) for x in args):
            with set_trace(self.parent):
                return self.parent.process_custom(primitive, functions, args, params)
        with set_trace(None):
            return functions[0](*args)


@contextlib.contextmanager
def ensure_compile_time_eval():
    """Evaluate operations on known values at once, although a function is being traced.

    Returns:
      A context manager; inside it, operations on concrete arrays give concrete arrays, in functions that are traced
      inside of it, too. Operations on traced values are traced as outside.

    >>> import catena as jax, catena.numpy as jnp
    >>> @jax.jit
    ... def f(x):
    ...     with jax.ensure_compile_time_eval():
    ...         n = int(jnp.sum(jnp.ones(3)))
    ...     return x * n
    >>> f(2)
    Array(6, dtype=int32, weak_type=True)
    """
    with overridden("folding", True), set_trace(None if context.trace is None else FoldingTrace(context.trace)):
        yield


class Tracer:
    """A stand-in for an array while a function is being traced.

    Its operators and NumPy-like methods are those of Array, given to both by one table of the NumPy API.
    """

    __slots__ = ("_trace", "aval", "__weakref__")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]
    _is_array = True
    __jax_array__ = dimension_as_value = None  # for those who ask: nothing converts it, and no length is a value
    label = "Tracer"
    dimension_as_value = None  # lengths of axes are numbers, not values

    def __init__(self, trace, aval):
        self._trace = trace
        self.aval = aval

    # ---- type

    @property
    def shape(self) -> tuple:
        """The length of each axis."""
        return self.aval.shape

    @property
    def dtype(self):
        """The type of the elements."""
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        """Whether the dtype came from a Python scalar and yields to others."""
        return self.aval.weak_type

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """The bytes that one element takes."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes that the elements take."""
        return self.aval.size * self.aval.dtype.itemsize

    # ---- what interpreters of users ask

    def full_lower(self):
        """This tracer: a value of which a transformation knows nothing is no tracer of it."""
        return self

    def get_referent(self):
        """What is transformed: the value behind this tracer, or the tracer itself."""
        return self

    def to_concrete_value(self):
        """The Array behind this tracer where its value is known although it is traced, else ``None``."""
        return self.concrete_value()

    # ---- conversions: possible only where the value is known

    def concrete_value(self):
        """The Array behind this tracer where its value is known although it is traced, else ``None``."""
        return None

    def constant_value(self):
        """The Array that this tracer stands for where it is known to whoever traces, although Python may not ask."""
        return self.concrete_value()

    def __array__(self, *args, **kwargs):
        raise errors.TracerArrayConversionError(self)

    def __bool__(self):
        value = self.concrete_value()
        if value is not None:
            return bool(value)
        if self.aval.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all(); its "
                f"shape is {self.aval.shape}"
            )
        raise errors.TracerBoolConversionError(self)

    def __int__(self):
        return self._convert(int)

    def __float__(self):
        return self._convert(float)

    def __complex__(self):
        return self._convert(complex)

    def _convert(self, kind):
        value = self.concrete_value()
        if value is not None:
            return kind(value)
        if self.aval.ndim:
            raise TypeError(f"Only scalar arrays can be converted to Python scalars; got arr.ndim={self.aval.ndim}")
        name = kind.__name__
        raise errors.ConcretizationTypeError(
            self,
            f"The problem arose with the `{name}` function. If trying to convert the data type of a value, "
            f"try using `x.astype({name})` or `jnp.array(x, {name})` instead.",
        )

    def __index__(self):
        value = self.concrete_value()
        if value is not None:
            return operator.index(value)
        raise errors.TracerIntegerConversionError(self)

    def _item(self, *args):
        """The element as a Python scalar; only for values that are known while tracing."""
        value = self.concrete_value()
        if value is not None:
            return value.item(*args)
        raise errors.ConcretizationTypeError(self, "This occurred in the item() method of catena.Array")

    def tolist(self):
        """The elements as nested lists; only for values that are known while tracing."""
        value = self.concrete_value()
        if value is not None:
            return value.tolist()
        raise errors.ConcretizationTypeError(self, f"The tolist() method was called on {errors.describe_tracer(self)}.")

    def __len__(self):
        if not self.aval.ndim:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __iter__(self):
        if not self.aval.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.aval.shape[0]))

    def block_until_ready(self):
        """This tracer: there is nothing to wait for while tracing."""
        return self

    @shown_as_of_type
    def __copy__(self):
        return self

    @shown_as_of_type
    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise errors.ConcretizationTypeError(self, "A traced value was to be pickled, and it has none yet.")

    def __getattr__(self, name: str):
        """What the type gives to its values besides (``aval_method``, ``aval_property``)."""
        if name.startswith("_") or name == "aval":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        if name in PLACES:
            raise AttributeError(f"{name} of {errors.describe_tracer(self)} is not known. {PLACES[name]}", name=name)
        return member_of(self, name)

    def repeats(self, other) -> bool:
        """Whether ``other``, a tracer of the same trace, is known to have the same value."""
        return False

    # ---- what errors say

    def describe_origin(self) -> str:
        """Where this tracer came from, for error messages; empty when there is nothing useful to say."""
        return ""

    def describe_making(self) -> str:
        """Where and for what this tracer was made, to stand after "made"; empty when it is not known."""
        return f"for {self._trace.name}"

    def describe_leak(self) -> str:
        """What to say when this tracer is found where it should not be."""
        return (
            f"It is an intermediate value of type {self.aval.str_short()} that a side effect let escape the scope of "
            "the transformation: a global variable, an attribute, a list or a closure keeps it. It was made "
            f"{self.describe_making()}. Return the value from the function instead; jax.checking_leaks() finds who "
            "keeps it."
        )

    def __format__(self, spec: str) -> str:
        if spec and self.concrete_value() is not None:
            return format(self.concrete_value(), spec)
        if spec:
            raise TypeError(
                f"unsupported format string passed to {type(self).__name__}.__format__: {spec!r} formats a number, and "
                "there is none yet while tracing. jax.debug.print('{x:" + spec + "}', x=x) prints it when the program "
                f"runs.{errors.origin(self)}"
            )
        return str(self)

    def __repr__(self):
        return f"{self.label}({self.aval})"


def without_data(name: str, ending: str = ""):
    """A method or property of arrays that asks for their data or their place, as tracers have it: it raises."""

    def refuse(self, *args, **kwargs):
        raise errors.ConcretizationTypeError(
            self, f"{name}{ending} asks for the memory of {errors.describe_tracer(self)}, which has none while tracing."
        )

    refuse.__name__ = name
    refuse.__doc__ = f"Raises ConcretizationTypeError: ``{name}`` is for arrays that are in memory."
    return refuse


METHODS_OF_DATA = (
    "__dlpack__", "addressable_data", "delete", "devices", "is_deleted", "on_device_size_in_bytes", "tobytes",
    "unsafe_buffer_pointer",
)  # fmt: skip
PROPERTIES_OF_DATA = (
    "addressable_shards", "committed", "global_shards", "is_fully_addressable", "is_fully_replicated", "traceback",
)  # fmt: skip
PLACES = {
    "sharding": "jax.typeof(x).sharding is what its type says of it.",
    "device": "A program runs on the device of its arguments; jax.device_put(x, device) is an array there.",
}
for _name in PLACES:
    setattr(Tracer, _name, property(lambda self, name=_name: Tracer.__getattr__(self, name)))  # type: ignore[misc]


def give_member(name: str, member) -> None:
    """Let types of arrays give a method or property to their values, which tracers ask for."""
    give(Tracer, ShapedArray, name, member)


give_member("item", Tracer._item)
for _name in ("itemsize", "nbytes"):
    setattr(ShapedArray, _name, aval_property(getattr(Tracer, _name).fget))
for _name in METHODS_OF_DATA:
    setattr(Tracer, _name, without_data(_name, "()"))
for _name in PROPERTIES_OF_DATA:
    setattr(Tracer, _name, property(without_data(_name)))


VALUES = (Array, Tracer, Token, Cell)  # what values of the language are instances of


def find_concrete(x):
    """The Array that ``x`` is or stands for, or ``None`` where the value is not known while tracing."""
    return x.constant_value() if isinstance(x, Tracer) else x


def same_value(a, b) -> bool:
    """Whether two values are known to be equal: arrays by their elements, traced ones by how they were made."""
    if a is b:
        return True
    if isinstance(a, Tracer) and isinstance(b, Tracer):
        return type(a) is type(b) and a._trace is b._trace and a.repeats(b)
    known = not isinstance(a, Tracer) and not isinstance(b, Tracer)
    return known and a.aval == b.aval and np.array_equal(np.asarray(a), np.asarray(b))


def trace_state_clean() -> bool:
    """Whether nothing is being traced or transformed in this thread."""
    return context.trace is None


def escaped(tracer) -> errors.UnexpectedTracerError:
    """The error for a tracer whose trace has ended."""
    return errors.UnexpectedTracerError(
        f"Encountered an unexpected tracer, {tracer!r}. {tracer.describe_leak()}"
        f"{errors.see(errors.UnexpectedTracerError)}"
    )


def leaf_value(x):
    """A leaf of the user's data as a value of the language.

    Raises:
      TypeError: it is none, and no Python or NumPy value that stands for one.
    """
    if isinstance(x, VALUES):
        return x
    if dtypes.is_scalar_or_numpy(x) or type(x) is Ref:
        return as_array(x)
    raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type.{errors.how_to_register(x)}")
