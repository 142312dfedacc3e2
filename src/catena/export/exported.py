"""Functions that outlive their process: a traced program, its types and trees, its derivatives, and all as data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from catena.core.jaxpr import ClosedJaxpr
from catena.core.trace import leaf_value
from catena.core.tree import tree_flatten, tree_structure, tree_unflatten
from catena.core.tree_errors import equality_errors_treedef
from catena.core.tree_keys import keystr
from catena.core.treedef import PyTreeDef
from catena.core.zeros import get_aval
from catena.export.container import pack
from catena.export.portable import kept_arguments
from catena.export.programs import write_programs
from catena.export.structures import read_structure, write_structure
from catena.export.values import expect
from catena.lax.composites import annotated_call
from catena.transform.arguments import leaf_paths
from catena.transform.custom_vjp import custom_vjp

HERE = "cpu"
minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10

call_exported_p = annotated_call("call_exported", lambda params: params["exported"].fun_name)


def default_export_platform() -> str:
    """The platform that functions are exported for where nobody asks for another.

    >>> import catena as jax
    >>> jax.export.default_export_platform()
    'cpu'
    """
    return HERE


@dataclass(frozen=True)
class DisabledSafetyCheck:
    """A check that is not made of an exported function; made by ``platform()`` and ``custom_call(name)``."""

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Call the function on other platforms than those that it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Let a custom call of XLA be in the function; there are none here."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the custom call that it is about, or None."""
        kind, _, name = self._impl.partition(":")
        return name if kind == "custom_call" else None

    def __repr__(self):
        return self._impl


@dataclass(frozen=True, eq=False, repr=False)
class Exported:
    """A function that was exported: its program, types and trees. ``call`` runs it, ``serialize`` gives its bytes."""

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple
    out_tree: PyTreeDef
    out_avals: tuple
    platforms: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    module_kept_var_idx: tuple[int, ...]
    _program: ClosedJaxpr = field(repr=False)
    _get_vjp: Callable[[Exported], Exported] | None

    nr_devices = 1
    ordered_effects = unordered_effects = ()
    uses_global_constants = False
    calling_convention_version = maximum_supported_calling_convention_version

    @property
    def in_shardings_hlo(self) -> tuple:
        """How the arguments are laid out over devices: nobody said so, None for each."""
        return (None,) * len(self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple:
        """How the results are laid out over devices: None for each."""
        return (None,) * len(self.out_avals)

    def in_shardings_jax(self, mesh: Any) -> tuple:
        """The shardings of the arguments over a mesh: None for each."""
        return self.in_shardings_hlo

    def out_shardings_jax(self, mesh: Any) -> tuple:
        """The shardings of the results over a mesh: None for each."""
        return self.out_shardings_hlo

    def has_vjp(self) -> bool:
        """Whether the function can be differentiated."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The derivative in reverse: a function of the flat arguments and the cotangents of the flat results, that
        returns the cotangents of the arguments.

        Raises:
          ValueError: the function was read from bytes without it.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"No VJP is available for {self.fun_name!r}: it was read from bytes without derivatives. Write it "
                "by serialize(vjp_order=1)"
            )
        return self._derivative

    @functools.cached_property
    def _derivative(self) -> Exported:
        assert self._get_vjp is not None
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes, for ``deserialize``.

        Arguments:
          vjp_order: how often it can be differentiated when it is read.
        Raises:
          ValueError: ``vjp_order`` is negative, or more than there is; or a class in the trees is not registered.

        >>> import catena as jax
        >>> half = jax.export.export(jax.jit(lambda x: x / 2))(1.0)
        >>> jax.export.deserialize(half.serialize()).call(3.0)
        Array(1.5, dtype=float32, weak_type=True)
        """
        chain = chain_of(self, vjp_order)
        writer, numbers = write_programs([e._program for e in chain])
        functions = [e.written(number) for e, number in zip(chain, numbers, strict=True)]
        head = {"functions": functions, "programs": writer.programs, "arrays": writer.arrays}
        return pack(head, writer.data)

    def written(self, number: int) -> dict:
        """What is written of the function beside its program, which has this number."""
        return {
            "name": self.fun_name,
            "program": number,
            "arguments": write_structure(self.in_tree),
            "results": write_structure(self.out_tree),
            "platforms": list(self.platforms),
            "disabled_checks": [c._impl for c in self.disabled_safety_checks],
        }

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, with arguments of the types that it was exported for; under transformations, too.

        Raises:
          ValueError: structures, shapes or dtypes are others, or it was exported for other platforms.
        """
        leaves, tree = tree_flatten((args, kwargs))
        check_structure(self, tree, (args, kwargs))
        leaves = [leaf_value(x) for x in leaves]
        check_types(self, leaves)
        if HERE not in self.platforms and DisabledSafetyCheck.platform() not in self.disabled_safety_checks:
            raise ValueError(f"{self.fun_name!r} was exported for {self.platforms}, and it is called on {HERE!r}")
        return tree_unflatten(self.out_tree, self._flat(*leaves))

    @functools.cached_property
    def _flat(self) -> Callable:
        """The function of flat lists, with the derivative that was exported."""

        @custom_vjp
        def flat(*xs):
            return call_exported_p.bind(*xs, jaxpr=self._program, exported=self)

        def backward(xs, cts):
            return tuple(self.vjp().call(*xs, *cts))

        flat.defvjp(lambda *xs: (flat(*xs), xs), backward)
        return flat

    def __repr__(self):
        shown = ", ".join(a.str_short() for a in self.in_avals)
        results = ", ".join(a.str_short() for a in self.out_avals)
        return f"<Exported {self.fun_name}({shown}) -> ({results}), for {', '.join(self.platforms)}>"

    def __str__(self):
        return f"Exported(fun_name={self.fun_name}, ...)"


def chain_of(exported: Exported, vjp_order: int) -> list[Exported]:
    """A function and its derivatives, so many."""
    if expect(vjp_order, int, "vjp_order") < 0:
        raise ValueError(f"vjp_order must not be negative, got {vjp_order}")
    chain = [exported]
    for _ in range(vjp_order):
        chain.append(chain[-1].vjp())
    return chain


def check_structure(exported: Exported, tree: PyTreeDef, given) -> None:
    """Raise where arguments are of another structure than the function was exported for."""
    if tree == exported.in_tree:
        return
    differences = list(equality_errors_treedef(exported.in_tree, tree_structure(given)))
    roots = ("args", "kwargs")
    lines = [
        f"  {roots[d.path[0].idx] if d.path else '(args, kwargs)'}{keystr(d.path[1:])} was {d.first} and is {d.second}"
        for d in differences[:5]
    ]
    raise ValueError("\n".join([f"{exported.fun_name!r} was exported for arguments of another structure:", *lines]))


def argument_name(exported: Exported, i: int) -> str:
    """What a leaf of the arguments is called in messages."""
    path = leaf_paths(exported.in_tree)[i]  # of the pair of args and kwargs
    return ("args" if path.startswith("[0]") else "kwargs") + path[3:]


def check_types(exported: Exported, leaves: list) -> None:
    """Raise where arguments are of other shapes or dtypes than the function was exported for."""
    for i, (x, want) in enumerate(zip(leaves, exported.in_avals, strict=True)):
        found = get_aval(x)
        if (found.shape, found.dtype) != (want.shape, want.dtype):
            name = argument_name(exported, i)
            kind = "Shape" if found.shape != want.shape else "Dtype"
            raise ValueError(f"{kind} mismatch for {name}: expected {want.str_short()}, got {found.str_short()}")


def checked_platforms(platforms: Sequence[str] | None) -> tuple[str, ...]:
    """The names of platforms; by default of the one we are on."""
    if isinstance(platforms, str) or not all(isinstance(p, str) for p in platforms or ()):
        raise TypeError(f"platforms must be a sequence of names, got {platforms!r}")
    return tuple(platforms or (HERE,))


def read_function(item, programs, derivative: Exported | None) -> Exported:
    """The function that was written as ``item``, with its derivative.

    Raises:
      ValueError: it is none.
    """
    try:
        program = programs.program(item["program"])
        in_tree, out_tree = read_structure(item["arguments"]), read_structure(item["results"])
        name = expect(item["name"], str, "the name of a function")
        platforms = checked_platforms(item["platforms"])
        checks = tuple(DisabledSafetyCheck(expect(c, str, "a check")) for c in item["disabled_checks"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"this exported function is not well formed: {type(error).__name__}: {error}") from error
    avals = tuple(program.in_avals), tuple(program.out_avals)
    if in_tree.num_leaves != len(avals[0]) or out_tree.num_leaves != len(avals[1]):
        raise ValueError(f"the trees of {name!r} do not have the leaves of its program")
    if derivative is not None:
        check_derivative(name, avals, derivative)
    get_vjp = None if derivative is None else lambda exported: derivative
    kept = kept_arguments(program)
    return Exported(name, in_tree, avals[0], out_tree, avals[1], platforms, checks, kept, program, get_vjp)


def check_derivative(name: str, avals: tuple, derivative: Exported) -> None:
    """Raise where a derivative does not take and return what that of this function does."""
    taken = [*avals[0], *[a.to_tangent_aval() for a in avals[1]]]
    returned = [a.to_tangent_aval() for a in avals[0]]
    for found, want in ((derivative.in_avals, taken), (derivative.out_avals, returned)):
        if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in want]:
            raise ValueError(f"what is written as the derivative of {name!r} is none")
