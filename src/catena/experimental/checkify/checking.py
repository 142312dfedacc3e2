"""``check``: an assertion in a program, and errors as values, which programs return and people look at."""

from __future__ import annotations

from typing import Any

import numpy as np

from catena.core.array import Array
from catena.core.effects import check_effect
from catena.core.named import NamedTuple
from catena.core.primitive import NoRule, Primitive
from catena.core.source import user_source
from catena.core.trace import Tracer
from catena.core.tree import register_pytree_node_class, tree_flatten
from catena.core.zeros import get_aval
from catena.experimental.checkify.errors import (
    BatchedError,
    Check,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
    by_kind,
)
from catena.lax import argmax, dynamic_index_in_dim, ne, reduce_or, rev, select
from catena.lax.control_flow.common import converted
from catena.transform import interpreted

# ---- the primitive: a code and what was kept, in a program that is to go no further if the code is not 0


def _evaluate(code, *kept, checks, debug):
    if not debug and np.any(np.asarray(code)):
        found = failures(code, kept, checks)[-1][1]
        error = JaxRuntimeError(str(found))
        for note in getattr(found, "__notes__", ()):
            error.add_note(note)
        raise error
    return []


def failures(code, kept, checks: tuple) -> list[tuple[tuple, JaxException]]:
    """The index of each example that failed, and its exception; the index of a single example is empty."""
    codes, found = np.asarray(code), []
    for index in map(tuple, np.argwhere(codes).tolist()):
        check = checks[codes[index] - 1]
        payload = by_kind(checks, kept)[check.kept] if check.kept else []
        found.append((index, check.exception([x[index] if index else x for x in payload])))
    return found


def _batch(axis, args, dims, *, checks, debug):
    """Of the examples that fail the last is reported, as in JAX."""
    code, dim = args[0], dims[0]
    if dim is None:  # all examples share one code, and what they keep is that of the last
        index = np.int32(axis.size - 1)
    else:
        index = last_failure(code, dim, axis.size)
    given = [x if d is None else dynamic_index_in_dim(x, index, d, False) for x, d in zip(args, dims, strict=True)]
    return check_p.bind(*given, checks=checks, debug=debug), []


def last_failure(code, dim: int, size: int):
    """The position of the last nonzero code, where codes are scalars along one axis."""
    position = argmax(rev(ne(code, np.int32(0)), (dim,)), dim, np.int32)
    return np.int32(size - 1) - position


def _not_functionalized(*args, checks, debug):
    if debug:
        return []
    lines = ", ".join(dict.fromkeys(str(check.source) for check in checks if check.source is not None))
    raise ValueError(
        "Cannot abstractly evaluate a checkify.check which was not functionalized: compiled code raises nothing. "
        f"Transform the function by checkify.checkify, and look at the error that it returns. The check: {lines}."
    )


check_p = Primitive(
    "check",
    multiple_results=True,
    takes_arrays=True,
    effects=lambda avals, params: frozenset([check_effect]),
    abstract=lambda *avals, **params: [],
    evaluate=_evaluate,
    jvp=lambda primals, tangents, **params: (check_p.bind(*primals, **params), []),
    transpose=NoRule("it has no results"),
    batch=_batch,
    lower=lambda b, *operands, **params: _not_functionalized(**params),
)
interpreted.calls[check_p] = lambda **params: lambda *values: _not_functionalized(**params)


# ---- errors as values


def together(errors: dict[tuple, JaxException]) -> JaxException | None:
    """The errors of examples, by their indices, as one exception."""
    if not errors:
        return None
    if () in errors:
        return errors[()]
    lines = [f"at mapped index {', '.join(map(str, index))}: {error}" for index, error in errors.items()]
    found = BatchedError("\n".join(lines))
    for note in dict.fromkeys(note for error in errors.values() for note in getattr(error, "__notes__", ())):
        found.add_note(note)
    return found


class CheckOfDevices(NamedTuple):
    """The checks that each device of a mesh makes of its program, as one: it keeps the reports of all devices."""

    checks: tuple
    kept: tuple

    @property
    def source(self):
        """The user's line of the first of them."""
        return self.checks[0].source

    def is_wanted(self, categories) -> bool:
        """Whether one of the checks is of these categories."""
        return any(check.is_wanted(categories) for check in self.checks)

    def exception(self, payload: list) -> JaxException | None:
        """The errors of the devices, as those of examples."""
        codes, *kept = payload
        return together(dict(failures(codes, kept, self.checks)))


@register_pytree_node_class
class Error:
    """What the checks of a function found: the first error, or none. ``checkify`` returns it; it is a pytree.

    Arguments:
      _pred: whether there is an error: a boolean, with an axis for each ``vmap`` around; ``None`` where none can be.
      _code: the number of the check that failed.
      _metadata: the checks that there are.
      _payload: the values that the check kept for its message.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import checkify
    >>> error, _ = checkify.checkify(jnp.log, checkify.nan_checks)(jnp.float32(-1.0))
    >>> error
    Error(nan generated by primitive: log.)
    """

    __slots__ = ("_pred", "_code", "_metadata", "_payload")

    def __init__(self, _pred, _code, _metadata: tuple[Check, ...], _payload):
        for name, value in zip(self.__slots__, (_pred, _code, _metadata, _payload), strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        raise AttributeError(f"errors do not change: cannot set {name}")

    def get_exception(self) -> JaxException | None:
        """The error as an exception, or ``None``; a note of it names the line of the check.

        Errors of several examples of a mapped function are one exception with a line for each.
        """
        if self._pred is None or (not self._pred.ndim and not self._pred):
            return None
        return together(dict(failures(self._code, self._payload, self._metadata)))

    def get(self) -> str | None:
        """The message of the error, or ``None``."""
        found = self.get_exception()
        return None if found is None else str(found)

    def throw(self) -> None:
        """Raise the error, if there is one; in a function that is transformed by ``checkify``, pass it on.

        Raises:
          JaxRuntimeError: there is an error; of several examples the last that failed is named.
        """
        check_error(self)

    def tree_flatten(self):
        """The arrays of the error, and its checks."""
        return (self._pred, self._code, tuple(self._payload)), self._metadata

    @classmethod
    def tree_unflatten(cls, metadata, data):
        """The inverse of ``tree_flatten``."""
        pred, code, payload = data
        return cls(pred, code, metadata, payload)

    def __eq__(self, other):
        if type(other) is not Error:
            return NotImplemented
        return self._metadata == other._metadata and self.get() == other.get()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"Error({self._pred if isinstance(self._pred, Tracer) else self.get()})"


init_error = Error(None, None, (), ())


def check_error(error: Error) -> None:
    """Raise the error, if there is one. In a function that is transformed by ``checkify`` it becomes that one's error.

    Arguments:
      error: what ``checkify`` returned.
    Raises:
      TypeError: it is no ``Error``.
      JaxRuntimeError: there is an error.
      ValueError: the function is compiled, and not transformed by ``checkify``.

    >>> from catena.experimental import checkify
    >>> checkify.check_error(checkify.init_error)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    if error._pred is None:
        return
    args = [error._code, *error._payload]
    for _ in range(get_aval(error._code).ndim):
        args = flattened(args)
    check_p.bind(*args, checks=error._metadata, debug=False)


def flattened(args: list) -> list:
    """A batched error with its leading axis reduced to the last example that failed."""
    code = args[0]
    failed = ne(code, np.int32(0))
    failed = reduce_or(failed, tuple(range(1, get_aval(failed).ndim)))
    index = last_failure(failed.astype(np.int32), 0, get_aval(code).shape[0])
    return [dynamic_index_in_dim(x, index, 0, False) for x in args]


# ---- the functions


def check(pred, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Assert that ``pred`` holds when the program runs.

    Eagerly a check that fails raises; in a function transformed by ``checkify`` it becomes the error returned. A
    function with checks cannot be compiled otherwise.

    Arguments:
      pred: what must hold, a boolean scalar.
      msg: the message where it does not, with fields as for ``str.format``.
      fmt_args, fmt_kwargs: trees of arrays for these fields.
      debug: whether the check is only made in functions that ``checkify`` transforms, and ignored in others.
    Raises:
      JaxRuntimeError: the check fails, in eager code.
      TypeError: ``pred`` is no boolean scalar, ``msg`` is no string, or a field is no tree of arrays.
      ValueError: the function is compiled, and not transformed by ``checkify``.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.experimental import checkify
    >>> def root(x):
    ...     checkify.check(x >= 0, "no root of {x}", x=x)
    ...     return jnp.sqrt(x)
    >>> error, y = jax.jit(checkify.checkify(root))(jnp.float32(-4.0))
    >>> print(error.get())
    no root of -4.0 (`check` failed)
    """
    if not is_boolean_scalar(pred):
        raise TypeError(f"check takes a scalar pred as argument, got {pred}: a boolean is expected")
    if not isinstance(msg, str):
        raise TypeError(f"check takes a str as msg, got {msg!r}")
    leaves, tree = tree_flatten((fmt_args, fmt_kwargs))
    for leaf in leaves:
        if not isinstance(leaf, (Array, Tracer, np.ndarray)):
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{leaf!r} of type {type(leaf)}. What is known when the program is written can stand in msg."
            )
    kept = tuple(get_aval(leaf).strip_weak_type() for leaf in leaves)
    made = Check(FailedCheckError, user_source(), (msg, tree), kept)
    code = select(pred, np.int32(0), np.int32(1)) if isinstance(pred, Tracer) else np.int32(not pred)
    check_p.bind(code, *converted(leaves, kept), checks=(made,), debug=bool(debug))


def is_boolean_scalar(pred) -> bool:
    if isinstance(pred, (Array, Tracer)):
        return pred.shape == () and pred.dtype == np.bool_
    return isinstance(pred, bool)


def debug_check(pred, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A ``check`` that is only made in functions that ``checkify`` transforms, and ignored in others.

    Arguments:
      pred, msg, fmt_args, fmt_kwargs: as for ``check``.
    Raises:
      TypeError: as for ``check``.

    >>> import catena as jax
    >>> from catena.experimental import checkify
    >>> def f(x):
    ...     checkify.debug_check(x > 0, "{x} is not positive", x=x)
    ...     return x
    >>> jax.jit(f)(-1.0)
    Array(-1., dtype=float32, weak_type=True)
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)
