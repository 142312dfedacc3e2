"""Policies for ``checkpoint``: which intermediate values are kept for the backward pass.

A policy is a function ``(primitive, *avals, **params) -> bool``: whether the results of that operation are kept.
"""

from __future__ import annotations

from collections.abc import Callable

from catena.core.named import NamedTuple

PRODUCTS = ("dot_general", "conv_general_dilated", "ragged_dot_general")


class _Decision:
    """What a policy of the user's may return instead of a bool."""

    __slots__ = ("name", "kept")

    def __init__(self, name: str, kept: bool):
        self.name, self.kept = name, kept

    def __bool__(self) -> bool:
        return self.kept

    def __repr__(self) -> str:
        return self.name


Saveable, Recompute = _Decision("Saveable", True), _Decision("Recompute", False)


class Offloadable(NamedTuple):
    """The decision to keep a value in another memory; on the CPU it is simply kept."""

    src: str
    dst: str


def everything_saveable(*_, **__) -> bool:
    """Keep every value, as without ``checkpoint``.

    >>> from catena import checkpoint_policies
    >>> checkpoint_policies.everything_saveable()
    True
    """
    return True


def nothing_saveable(*_, **__) -> bool:
    """Keep nothing but the arguments; the default.

    >>> from catena import checkpoint_policies
    >>> checkpoint_policies.nothing_saveable()
    False
    """
    return False


def dots_saveable(prim, *args, **params) -> bool:
    """Keep the results of matrix products and convolutions.

    >>> import catena as jax
    >>> f = jax.checkpoint(lambda x: x @ x, policy=jax.checkpoint_policies.dots_saveable)
    """
    return prim.name in PRODUCTS


checkpoint_dots = dots_saveable


def dots_with_no_batch_dims_saveable(prim, *args, **params) -> bool:
    """Keep the results of matrix products that have no batch dimensions.

    >>> import catena as jax
    >>> f = jax.checkpoint(lambda x: x @ x, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
    """
    return prim.name == "dot_general" and not any(params["dimension_numbers"][1])


checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def _is_named(prim, params, names) -> bool:
    return prim.name == "name" and params["name"] in names


def save_only_these_names(*names_which_can_be_saved: str) -> Callable[..., bool]:
    """Keep the values given one of these names by ``checkpoint_name``, and no others.

    >>> from catena import checkpoint_policies
    >>> policy = checkpoint_policies.save_only_these_names("attention")
    """
    names = frozenset(names_which_can_be_saved)
    return lambda prim, *_, **params: _is_named(prim, params, names)


def save_any_names_but_these(*names_not_to_save: str) -> Callable[..., bool]:
    """Keep every named value except those with these names.

    >>> from catena import checkpoint_policies
    >>> policy = checkpoint_policies.save_any_names_but_these("scores")
    """
    names = frozenset(names_not_to_save)
    return lambda prim, *_, **params: prim.name == "name" and params["name"] not in names


def save_anything_except_these_names(*names_not_to_save: str) -> Callable[..., bool]:
    """Keep every value except those with these names.

    >>> from catena import checkpoint_policies
    >>> policy = checkpoint_policies.save_anything_except_these_names("scores")
    """
    names = frozenset(names_not_to_save)
    return lambda prim, *_, **params: not _is_named(prim, params, names)


def save_from_both_policies(policy_1: Callable[..., bool], policy_2: Callable[..., bool]) -> Callable[..., bool]:
    """Keep what either of two policies keeps.

    >>> from catena import checkpoint_policies as p
    >>> policy = p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("scores"))
    """
    return lambda prim, *args, **params: bool(policy_1(prim, *args, **params) or policy_2(prim, *args, **params))


def save_and_offload_only_these_names(
    *, names_which_can_be_saved, names_which_can_be_offloaded, offload_src: str, offload_dst: str
) -> Callable[..., bool]:
    """Keep the values with the first names on the device and those with the others in ``offload_dst``.

    On the CPU both memories are the same, so offloaded values are simply kept.

    >>> from catena import checkpoint_policies as p
    >>> policy = p.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=["a"],
    ...     names_which_can_be_offloaded=["b"],
    ...     offload_src="device",
    ...     offload_dst="pinned_host",
    ... )
    """
    check_memory(offload_src)
    check_memory(offload_dst)
    both = set(names_which_can_be_saved) & set(names_which_can_be_offloaded)
    if both:
        raise ValueError(f"The names should be exclusive and should not intersect, got {sorted(both)} in both")
    return save_only_these_names(*names_which_can_be_saved, *names_which_can_be_offloaded)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable[..., bool]:
    """Keep the results of matrix products without batch dimensions in ``offload_dst``; on the CPU, simply keep them.

    >>> from catena import checkpoint_policies
    >>> policy = checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    """
    check_memory(offload_src)
    check_memory(offload_dst)
    return dots_with_no_batch_dims_saveable


MEMORIES = ("device", "pinned_host", "unpinned_host")


def check_memory(kind: str) -> None:
    """Raise ValueError where ``kind`` is not the name of a memory."""
    if kind not in MEMORIES:
        raise ValueError(f"a memory is one of {MEMORIES}, got {kind!r}")
