"""Tokens: values that carry nothing but order, for programs that write it down in their types.

Compiled programs keep the order of effects by themselves, so there a token is nothing: it is neither passed nor
computed.
"""

from __future__ import annotations

import numpy as np

from catena.core.aval import abstract_token
from catena.core.primitive import NoRule, Primitive
from catena.core.token import Token
from catena.core.zeros import Zero

NO_OPERANDS = NoRule("it has no operands to be differentiated or mapped")


def _no_value(*tokens) -> None:
    """What a token is made of."""


def _lower_token(b, *tokens):
    return b.constant(np.False_)


create_token_p = Primitive(
    "create_token",
    abstract=lambda: abstract_token,
    evaluate=_no_value,
    jvp=NO_OPERANDS,
    transpose=NO_OPERANDS,
    batch=NO_OPERANDS,
    lower=_lower_token,
)


def create_token(_=None) -> Token:
    """A token: something that others can come after.

    Arguments:
      _: ignored; earlier versions of JAX took a value here.
    Returns:
      A Token.

    >>> import catena as jax, catena.lax as lax
    >>> lax.create_token()
    Token()
    >>> jax.make_jaxpr(lambda before: lax.after_all(before, lax.create_token()))(lax.create_token())
    { lambda ; a:Tok. let b:Tok = create_token; c:Tok = after_all a b in (c,) }
    """
    return create_token_p.bind()


def _after_all_abstract(*operands):
    for i, aval in enumerate(operands):
        if aval is not abstract_token:
            raise TypeError(f"Arguments to after_all must be tokens, got {aval.str_short()} at position {i}")
    return abstract_token


def _after_all_jvp(primals, tangents):
    token = after_all_p.bind(*primals)
    return token, Zero.of_primal(token)


after_all_p = Primitive(
    "after_all",
    takes_tokens=True,
    abstract=_after_all_abstract,
    evaluate=_no_value,
    jvp=_after_all_jvp,
    transpose=NoRule("tokens have no tangents to be linear in"),
    batch=NoRule("a token has no axis to map; under vmap it is one for all examples"),
    lower=_lower_token,
)


def after_all(*operands) -> Token:
    """A token that comes after all of these.

    Arguments:
      *operands: tokens, any number of them.
    Returns:
      A Token.
    Raises:
      TypeError: an operand is not a token.

    >>> import catena.lax as lax
    >>> lax.after_all(lax.create_token(), lax.create_token())
    Token()
    """
    return after_all_p.bind(*operands)
