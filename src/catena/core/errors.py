"""The exceptions of the language, under JAX's names, each saying in the user's terms what went wrong."""

import os

from catena.core.source import PACKAGE

# What to do, by what Python asked for. Each is said in the message, since documentation is rarely at hand.
INSTEAD_OF_BOOL = (
    "Python asks for it in `if`, `while`, `and`, `or`, `not`, `in`, `assert`, `max` and `sorted`. Use "
    "jnp.where(condition, a, b) or jax.lax.cond to choose, jax.lax.while_loop to repeat, & | ~ to combine, jnp.maximum "
    "and jnp.sort; or make what decides a static argument of jit (static_argnames)."
)
INSTEAD_OF_INDEX = (
    "Python asks for it in range(n), as a size, and as an index of a list or a NumPy array. Loop with "
    "jax.lax.fori_loop, index an array of jax.numpy (jnp.asarray(items)[i]), or make the number a static argument "
    "of jit (static_argnames)."
)
INSTEAD_OF_NUMPY = (
    "NumPy computes at once, and there is no value yet. Use the function of the same name in jax.numpy, or "
    "jax.pure_callback to call NumPy when the program runs."
)
TO_SEE = (
    "Functions of jax.numpy compute with it, where those of math and numpy cannot; jax.debug.print('{}', x) shows it "
    "when the program runs; as a static argument of jit (static_argnames) it is known."
)


def see(error_class) -> str:
    """The line that points at the page explaining ``error_class``."""
    return f"\nSee {page('errors.md')}#{error_class.__name__.lower()}"


def page(name: str) -> str:
    """Where a page of the documentation lies: it is installed with the package, or stands beside it in a checkout."""
    installed = os.path.join(PACKAGE, "docs", name)
    return installed if os.path.exists(installed) else os.path.join(CHECKOUT, "docs", name)


CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(PACKAGE)))


def how_to_register(x) -> str:
    """The advice for an object of a user's class where only trees of arrays may stand; nothing for others."""
    kind = type(x)
    if kind.__module__ == "builtins":
        return ""
    if hasattr(kind, "_refuse_as_value"):  # a class of the language's own, which knows better
        x._refuse_as_value()
    convertible = getattr(kind, "__jax_array__", None) is not None
    unused = ", not __jax_array__" if convertible else ""
    otherwise = ", or convert the object with jax.numpy.asarray" if convertible else ""
    return (
        f"\nTransformations see only pytrees of arrays{unused}: register {kind.__name__} with "
        f"jax.tree_util.register_pytree_node_class or register_dataclass{otherwise}."
    )


class JAXTypeError(TypeError):
    """A value of the wrong kind was given to the language."""


class JAXIndexError(IndexError):
    """An index that the language cannot accept."""


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where a concrete one is needed."""

    def __init__(self, tracer, context: str = ""):
        super().__init__(
            "Abstract tracer value encountered where concrete value is expected: "
            f"{describe_tracer(tracer)}\n{context}{origin(tracer)}{cure(tracer, TO_SEE)}\n"
            f"{see(ConcretizationTypeError)}"
        )


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the size of the result is unknown."""

    def __init__(self, tracer, use: str = ""):
        """``use`` is what was done with ``x[mask]`` that needs the number of selected elements."""
        needed = f"Of x[mask], {use} needs" if use else "This needs"
        super().__init__(
            f"Array boolean indices must be concrete; got {describe_type(tracer)}\n"
            f"{needed} the number of true elements, which is not known while tracing. Reductions "
            "(x[mask].sum()), elementwise functions (jnp.log(x[mask]).mean()) and updates (x.at[mask].set(v)) do "
            "without. Otherwise keep the shape with jnp.where(mask, x, fill), or fix it: "
            f"jnp.nonzero(mask, size=n), jnp.compress(mask, x, size=n).{origin(tracer)}"
            f"\n{see(NonConcreteBooleanIndexError)}"
        )


class TracerArrayConversionError(JAXTypeError):
    """A traced value was given to NumPy."""

    def __init__(self, tracer):
        super().__init__(
            "The numpy.ndarray conversion method __array__() was called on "
            f"{describe_tracer(tracer)}{origin(tracer)}{cure(tracer, INSTEAD_OF_NUMPY)}"
            f"{see(TracerArrayConversionError)}"
        )


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used as a Python index or size."""

    def __init__(self, tracer):
        super().__init__(
            f"The __index__() method was called on {describe_tracer(tracer)}"
            f"{origin(tracer)}{cure(tracer, INSTEAD_OF_INDEX)}{see(TracerIntegerConversionError)}"
        )


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value decided a Python ``if``, ``while``, ``and`` or ``or``."""

    def __init__(self, tracer):
        JAXTypeError.__init__(
            self,
            f"Attempted boolean conversion of {describe_tracer(tracer)}."
            f"{origin(tracer)}{cure(tracer, INSTEAD_OF_BOOL)}{see(TracerBoolConversionError)}",
        )


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after its trace had ended, or outside it."""


class LeakedTracerError(Exception):
    """A tracer outlived the transformation that made it."""


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic dimensions that cannot be decided."""


class ShardingTypeError(Exception):
    """It does not follow from the shardings of the operands how a result is to be split."""


class SizeError(TypeError, ValueError):
    """Sizes that cannot be. JAX raises a ValueError in some functions and a TypeError in others; this is both."""


class SectionsError(ValueError, ZeroDivisionError):
    """An axis was to be split into no parts: a ValueError in NumPy, a ZeroDivisionError in JAX."""


class KeyCastError(ValueError, NotImplementedError):
    """A random key was to be cast: a ValueError of JAX's function, a NotImplementedError of its method."""


class JaxprTypeError(TypeError):
    """A jaxpr that does not type-check."""


class JaxRuntimeError(RuntimeError):
    """An error raised while a compiled program ran."""

    error_code = 13  # what XLA calls INTERNAL: the only kind there is here
    error_code_string = "INTERNAL"

    @property
    def error_message(self) -> str:
        """The text of the error."""
        return str(self)


class DeletedArgumentError(JaxRuntimeError, ValueError):
    """A compiled program was called with an array that was deleted or donated. JAX raises a RuntimeError at the first
    call and a ValueError at later ones; this is both.
    """


class OutOfMemoryError(JaxRuntimeError, MemoryError):
    """A compiled program asked for more memory than there is."""

    error_code = 8  # RESOURCE_EXHAUSTED
    error_code_string = "RESOURCE_EXHAUSTED"


# What a process can address on a processor of today. A larger value cannot be stored, nor be gone through in an hour.
ADDRESSABLE = 1 << 47


def value_too_large(shape: tuple, dtype, nbytes: int, source=None) -> OutOfMemoryError:
    """The error for a value in a program that no machine can hold."""
    return OutOfMemoryError(
        f"RESOURCE_EXHAUSTED: Out of memory: a value of shape {shape} and dtype {dtype} has {nbytes:,} bytes; a "
        f"program may have values of at most {ADDRESSABLE:,} bytes each, whether it allocates memory for them or not"
        f"{f', at {source}' if source else ''}"
    )


class KeyReuseError(RuntimeError):
    """A random key was consumed twice."""


class CompileError(RuntimeError):
    """A program that the compiler cannot turn into native code; the message names the primitive."""


def describe_type(x) -> str:
    """The type of a value as users read it, such as ``float32[3]``."""
    return x.aval.str_short()


def describe_tracer(tracer) -> str:
    """A traced value as users read it."""
    return f"traced array with shape {describe_type(tracer)}"


def cure(tracer, text: str) -> str:
    """What to do instead; nothing for a tracer that has escaped, whose origin says it."""
    return f"\n{text}" if tracer._trace.alive else ""


def origin(tracer) -> str:
    """Where the traced value came from: the argument it depends on, or the line that made it."""
    text = tracer.describe_origin() if tracer._trace.alive else tracer.describe_leak()
    return f"\n{text}" if text else ""


for _error in [x for x in globals().values() if isinstance(x, type) and issubclass(x, Exception)]:
    _error.__module__ = "catena.errors"  # where users find them, and what tracebacks show
