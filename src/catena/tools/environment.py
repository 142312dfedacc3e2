"""``print_environment_info``: what people are asked for who report a defect."""

from __future__ import annotations

from catena.core.lazy import load


def print_environment_info(return_string: bool = False) -> str | None:
    """Print, or return, what catena finds on this machine: versions, processor, devices and changed configuration.

    Arguments:
      return_string: whether to return the text instead of printing it.
    Returns:
      The text, or None.

    >>> import catena as jax
    >>> "executor: " in jax.print_environment_info(return_string=True)
    True
    """
    text = load("catena.tools.info").info()
    if return_string:
        return text
    print(text)
    return None
