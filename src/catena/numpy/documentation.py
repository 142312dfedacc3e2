"""The docstrings of functions that come in families, so that they say the same things in the same words.

All are without the indentation of the source, which compilers of Python leave in (until 3.12) or take out (since 3.13).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Fun = TypeVar("Fun", bound=Callable[..., Any])

_DOC = """{purpose}

Arguments:
  {arguments}
Returns:
  {returns}
Raises:
  {raises}

>>> import catena.numpy as jnp
>>> {example}
{result}
"""

_NOT_ARRAYS = "is neither an array nor a scalar"


def document(fun: Fun, purpose: str, arguments: str, returns: str, raises: str, example: str, result: str) -> Fun:
    """Give ``fun`` the docstring of its family."""
    fun.__doc__ = _DOC.format(
        purpose=purpose,
        arguments=arguments,
        returns=returns,
        raises=raises,
        example=example,
        result=result,
    )
    fun.__module__ = "catena.numpy"
    return fun


def document_unary(fun: Fun, purpose, returns, example, result, takes="numbers or booleans", refused="") -> Fun:
    """The docstring of a function of one array."""
    return document(
        fun,
        purpose,
        f"x: an array of any shape, or a scalar; {takes}.",
        f"An array of the shape of ``x``; {returns}.",
        f"TypeError: ``x`` {_NOT_ARRAYS}{refused}.",
        example,
        result,
    )


def document_binary(fun: Fun, purpose, returns, example, result, names="x, y", refused="") -> Fun:
    """The docstring of a function of two arrays."""
    return document(
        fun,
        purpose,
        f"{names}: arrays or scalars, of shapes that broadcast together.",
        f"An array of the broadcast shape; {returns}.",
        f"TypeError: an argument {_NOT_ARRAYS}, or the shapes do not broadcast{refused}.",
        example,
        result,
    )


# ----------------------------------------------------------------------------------------------------
# Families whose functions have docstrings of their own, which say what is particular


def family(**words: str) -> Callable[[Fun], Fun]:
    """A decorator for the functions of a family: it completes their docstrings with what they share.

    ``words`` explains parameters by name, and says what ``returns`` and ``raises`` are. A function's own
    docstring goes first; parameters of which neither speaks are left out.
    """

    def complete(fun):
        if fun.__doc__ is None:  # python -OO
            return fun
        text, mark, example = inspect.cleandoc(fun.__doc__).partition("\n\n>>>")
        text, before_source, source = text.partition("\n\nSource:")
        purpose, own = _sections(text)
        code = fun.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        known = {name for entry in own["Arguments"] for name in entry.split(", ")}
        shared = {n: _indented(f"{n}: {words[n]}", 4) for n in names if n in words and n not in known}
        explained = own["Arguments"] | shared
        order = sorted(explained, key=lambda n: names.index(n.partition(",")[0]))
        fun.__doc__ = "\n".join([
            f"{purpose}\n\nArguments:",
            *(explained[n] for n in order),
            "Returns:",
            own["Returns"] or _indented(words["returns"], 4),
            "Raises:",
            own["Raises"] or _indented(words["raises"], 2),
        ]) + before_source + source + mark + example  # fmt: skip
        return fun

    return complete


def _indented(text: str, continued: int) -> str:
    """An entry of a section, whose further lines are indented by ``continued``."""
    return "  " + text.replace("\n", "\n" + " " * continued)


def _sections(text: str) -> tuple:
    """The purpose, and the sections by header: arguments by name, the others as text."""
    purpose, found, header = [], {"Arguments": {}, "Returns": "", "Raises": ""}, None
    for line in text.split("\n"):
        if line.removesuffix(":") in found and line.endswith(":"):
            header = line.removesuffix(":")
        elif header is None:
            purpose.append(line)
        elif header != "Arguments":
            found[header] += "\n" * bool(found[header]) + line
        elif line[2:3] != " ":  # an argument; what is indented further goes on with it
            name = line.partition(":")[0].strip()
            found[header][name] = line
        else:
            found[header][name] += "\n" + line
    return "\n".join(purpose).rstrip(), found
