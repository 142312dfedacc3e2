"""Parameters that JAX's equations have and ours leave out, because here they always are as they usually are.

Who looks at an equation finds them (``eqn.params``), and who applies a primitive may give them (``bind``): interpreters
of users, and programs that walk through jaxprs, are written with JAX's. Rules never see them; within the package an
equation's parameters are ``eqn.own_params``.
"""

from __future__ import annotations

from typing import Any

from catena.core.mesh import EMPTY_ABSTRACT
from catena.core.named import NamedTuple


class Unspecified:
    """How a call says that nobody said where an operand or result is put."""

    def __repr__(self):
        return "UnspecifiedValue"


UNSPECIFIED = Unspecified()


class Each(NamedTuple):
    """A tuple that has this for each argument of the jaxpr that is called (``in_avals``), or each result."""

    value: Any
    of: str


def of_names(names: str, **usual) -> dict[str, dict[str, Any]]:
    return {name: usual for name in names.split()}


ACCURATE = "exp exp2 expm1 log log1p sin cos tan tanh logistic sqrt rsqrt cbrt"

USUAL: dict[str, dict[str, Any]] = {
    **of_names(ACCURATE, accuracy=None),
    **of_names("broadcast_in_dim convert_element_type iota pure_callback reshape", sharding=None),
    **of_names("conv_general_dilated dot_general reduce_sum rng_bit_generator", out_sharding=None),
    "ragged_dot_general": {"group_offset": None, "out_sharding": None},
    "mul": {"out_dtype": None},
    "debug_callback": {"partitioned": False},
    "eig": {"implementation": None},
    "eigh": {"sort_eigenvalues": True, "subset_by_index": None, "algorithm": None},
    "qr": {"use_magma": None},
    "schur": {"sort_eig_vals": False},
    "svd": {"subset_by_index": None, "algorithm": None},
    "jit": {
        "in_shardings": Each(UNSPECIFIED, "in_avals"),
        "in_layouts": Each(None, "in_avals"),
        "donated_invars": Each(False, "in_avals"),
        "out_shardings": Each(UNSPECIFIED, "out_avals"),
        "out_layouts": Each(None, "out_avals"),
        "ctx_mesh": EMPTY_ABSTRACT,
        **{"inline": False, "keep_unused": False, "compiler_options_kvs": ()},
    },
}

OWN = {"donated_invars", "inline", "keep_unused"}  # rules know them, with these defaults
SILENT = {"algorithm", "compiler_options_kvs", "ctx_mesh", "implementation", "use_magma"}  # they change no result


def with_usual(primitive, params: dict) -> dict:
    """The parameters as JAX's equations have them."""
    usual = primitive.usual
    if not usual:
        return params
    others = {k: (v.value,) * len(getattr(params["jaxpr"], v.of)) if type(v) is Each else v for k, v in usual.items()}
    return {**others, **params}


def without_usual(primitive, params: dict) -> dict:
    """The parameters that rules know, of those that somebody gives to ``bind`` or to an equation.

    Raises:
      NotImplementedError: one of the others is not as usual.
    """
    usual = primitive.usual
    if usual.keys().isdisjoint(params):
        return params
    own = {}
    for name, value in params.items():
        if name not in usual or name in OWN:
            own[name] = value
        elif name not in SILENT and not as_usual(value, usual[name]):
            raise NotImplementedError(
                f"{primitive} takes no {name}={value!r} as a parameter: the function jax.lax.{primitive} may take it"
            )
    return own


def as_usual(value, usual) -> bool:
    """Whether a parameter is as it always is."""
    if type(usual) is Each:
        return isinstance(value, tuple) and all(as_usual(v, usual.value) for v in value)
    return value is usual or type(value) is type(usual) and value == usual
