"""The docstrings of functions that come in families, so that they say the same things in the same words."""

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


def document(fun, purpose: str, arguments: str, returns: str, raises: str, example: str, result: str):
    """Give ``fun`` the docstring of its family."""
    fun.__doc__ = _DOC.format(
        purpose=purpose,
        arguments=arguments,
        returns=returns,
        raises=raises,
        example=example,
        result=result.replace("\n", "\n    "),
    )
    fun.__module__ = "catena.numpy"
    return fun


def document_unary(fun, purpose, returns, example, result, takes="numbers or booleans", refused=""):
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


def document_binary(fun, purpose, returns, example, result, names="x, y", refused=""):
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
