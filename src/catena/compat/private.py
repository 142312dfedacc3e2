"""JAX's private modules, as far as libraries reach into them: names of ``jax._src`` and ``jaxlib``, and ours for them.

A name is here when a library that is used needs it; who reaches for another is told which one, and from where.
"""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter
from types import ModuleType
from typing import Any

from catena.compat import pallas
from catena.core.lazy import load
from catena.core.unbuilt import is_of_other_machines, not_built, refuse

# In pickles: the functions of generators, for which the generator itself stands, and the steps of key paths.
IMPLEMENTATION = "catena.compat.pickles:Implementation"
RBG = ("_rbg_seed", "_rbg_split", "_rbg_random_bits", "_rbg_fold_in", "_unsafe_rbg_split", "_unsafe_rbg_fold_in")
KEYS = ("DictKey", "SequenceKey", "GetAttrKey", "FlattenedIndexKey")
# What JAX's tutorial on primitives takes from its private modules, with the operations of StableHLO.
API = ("grad", "hessian", "jacfwd", "jacrev", "jit", "jvp", "linearize", "value_and_grad", "vjp", "vmap")

# The steps of `einsum` (AQT calls them with a product of its own) and of `vectorize` (quaxed).
CONTRACTIONS = ("_default_poly_einsum_handler", "_einsum")
SIGNATURES = ("_apply_excluded", "_check_output_dims", "_parse_gufunc_signature", "_parse_input_dimensions")

# Module -> name in it -> where it is: a module and a name in it. Or: module -> the module of ours.
NAMES: dict[str, dict[str, str] | str] = {
    "jaxlib": {"__version__": "catena:__version__"},
    "jaxlib.version": {"__version__": "catena:__version__", "__version_info__": "catena:__version_info__"},
    "jaxlib._jax": {"PjitFunction": "catena.transform.jit:JitFunction"},
    "jaxlib._jax.pytree": {
        "PyTreeDef": "catena.compat.pickles:Structure",
        **{name: f"catena.tree_util:{name}" for name in KEYS},
    },
    "jaxlib.mlir": {},
    "jaxlib.mlir.ir": "catena.extend.mlir.ir",
    "jaxlib.mlir.dialects": {},
    "jaxlib.mlir.dialects.func": "catena.extend.mlir.dialects.func",
    "jaxlib.mlir.dialects.stablehlo": "catena.extend.mlir.dialects.stablehlo",
    "jaxlib.xla_client": {"Device": "catena:Device"},
    "jax._src": {},
    "jax._src.ad_util": {"stop_gradient_p": "catena.core.structural:stop_gradient_p"},
    "jax._src.array": {"_reconstruct_array": "catena.compat.pickles:array"},
    "jax._src.api": {name: f"catena:{name}" for name in API},
    "jax._src.api_util": {
        "infer_argnums_and_argnames": "catena.transform.arguments:infer_argnums_and_argnames",
    },
    "jax._src.checkify": "catena.experimental.checkify",
    "jax._src.compiler": "catena.compat.compiler",
    "jax._src.config": {
        "config": "catena:config",
        "numpy_rank_promotion": "catena.core.config:numpy_rank_promotion",
    },
    "jax._src.core": {
        **{name: f"catena.core:{name}" for name in ("AbstractValue", "Primitive", "ShapedArray", "Trace", "Tracer")},
        **{name: f"catena.extend.core:{name}" for name in ("TraceTag", "set_current_trace", "take_current_trace")},
        **{name: f"catena.extend.core:{name}" for name in ("ClosedJaxpr", "Jaxpr", "JaxprEqn", "Literal", "Var")},
        "jaxpr_as_fun": "catena.extend.core:jaxpr_as_fun",
        "concrete_or_error": "catena.extend.core:concrete_or_error",
        "full_lower": "catena.compat.literals:full_lower",
        "trace_state_clean": "catena.core.trace:trace_state_clean",
    },
    "jax._src.distributed": {"global_state": "catena.compat.processes:global_state"},
    "jax._src.dispatch": {"wait_for_tokens": "catena:effects_barrier"},
    "jax._src.dtypes": {
        "DType": "numpy:dtype",
        "ExtendedDType": "catena.core.dtypes:ExtendedDType",
        "TypePromotionError": "catena.core.lattice:TypePromotionError",
        "canonicalize_dtype": "catena.core.dtypes:canonicalize_dtype",
        "dtype": "catena.lax:dtype",
        "extended": "catena.dtypes:extended",
        "finfo": "catena.numpy:finfo",
        "result_type": "catena.numpy:result_type",
        "to_complex_dtype": "catena.core.dtypes:to_complex_dtype",
    },
    "jax._src.flatten_util": "catena.flatten_util",
    "jax._src.interpreters": {},
    "jax._src.interpreters.batching": {"is_vmappable": "catena.transform.vmappable:is_vmappable"},
    "jax._src.interpreters.partial_eval": "catena.interpreters.partial_eval",
    "jax._src.lax": {},
    "jax._src.lib": {},
    "jax._src.lib._jax": {"PjitFunction": "catena.transform.jit:JitFunction"},
    "jax._src.lib.xla_client": {"XlaRuntimeError": "catena.errors:JaxRuntimeError"},
    "jax._src.lib.mlir": {},
    "jax._src.lib.mlir.ir": "catena.extend.mlir.ir",
    "jax._src.lib.mlir.dialects": {},
    "jax._src.lib.mlir.dialects.hlo": "catena.extend.mlir.dialects.stablehlo",
    "jax._src.literals": "catena.compat.literals",
    "jax._src.lax.convolution": {"ConvDimensionNumbers": "catena.lax:ConvDimensionNumbers"},
    "jax._src.lax.lax": {name: f"catena.lax:{name}" for name in ("Precision", "RandomAlgorithm", "RoundingMethod")},
    "jax._src.lax.linalg": "catena.lax.linalg",
    "jax._src.lax.slicing": {
        name: f"catena.lax:{name}"
        for name in ("GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers")
    },
    "jax._src.numpy": {},
    "jax._src.numpy.array_methods": {
        "_IndexUpdateHelper": "catena.numpy.index_update:IndexUpdateHelper",
        "_IndexUpdateRef": "catena.numpy.index_update:IndexUpdateRef",
    },
    "jax._src.numpy.einsum": {name: f"catena.compat.contractions:{name}" for name in CONTRACTIONS},
    "jax._src.numpy.index_tricks": {name: f"catena.numpy.grids:{name}" for name in ("CClass", "RClass")},
    "jax._src.numpy.lax_numpy": {},
    "jax._src.numpy.ufuncs": {"ufunc": "catena.numpy:ufunc"},
    "jax._src.numpy.util": {
        name: f"catena.compat.promotion:{name}"
        for name in ("check_arraylike", "promote_dtypes_complex", "promote_dtypes_inexact")
    },
    "jax._src.numpy.vectorize": {name: f"catena.compat.signatures:{name}" for name in SIGNATURES},
    "jax._src.random": {},
    "jax._src.random.prng": {
        "PRNGImpl": IMPLEMENTATION,
        "PRNGKeyArray": "catena.compat.pickles:Keys",
    },
    "jax._src.random.rbg": dict.fromkeys(RBG, IMPLEMENTATION),
    "jax._src.random.threefry2x32": {
        f"threefry_{part}": f"catena.extend.random:threefry_prng_impl.{part}"
        for part in ("seed", "split", "random_bits", "fold_in")
    },
    "jax._src.public_test_util": {"check_close": "catena.compat.testing:check_close"},
    "jax._src.pjit": {"jit_p": "catena.extend.core.primitives:jit_p"},
    "jax._src.state": {},
    "jax._src.state.types": {"AbstractRef": "catena.core.aval:AbstractRef"},
    "jax._src.traceback_util": {
        "api_boundary": "catena.core.traceback:api_boundary",
        "include_frame": "catena.core.traceback:include_frame",
        "register_exclusion": "catena.extend.source_info_util:register_exclusion",
        "_exclude_paths": "catena.core.traceback:EXCLUDED",
    },
    "jax._src.tree_util": {
        "_registry": "catena.compat.nodes:registry",
        "default_registry": "catena.tree_util:default_registry",
        "flatten_one_level": "catena.tree_util:flatten_one_level",
        "prefix_errors": "catena.core.tree_errors:prefix_errors",
    },
    "jax._src.xla_bridge": {
        "_backends": "catena.compat.backends:backends",
        "get_backend": "catena.extend.backend:get_backend",
    },
    "jax._src.typing": {
        "Array": "catena:Array",
        "ArrayLike": "catena.typing:ArrayLike",
        "DTypeLike": "catena.typing:DTypeLike",
        "SupportsDType": "catena.typing:SupportsDType",
    },
    # In public modules: what bijx takes from another, and what orbax imports, to use it where there are accelerators.
    "jax.experimental.ode.api_util": "catena.api_util",
    "jax.experimental.colocated_python.func": {},
    "jax.experimental.colocated_python.serialization": {"DeviceList": "builtins:tuple"},
    "jax.extend.ifrt_programs": {},
    "jax.extend.ifrt_programs.ifrt_programs": {},
    "jax.interpreters.pxla": {},
    **{name: {} for name in pallas.MODULES},
}


class PrivateModule(ModuleType):
    """A private module of JAX's: its names are looked up where ours stand."""

    def __getattr__(self, name: str) -> Any:
        if f"{self.__name__}.{name}" in NAMES:
            return importlib.import_module(f"{self.__name__}.{name}")
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        caller = sys._getframe(1)
        refuse(_why_not(f"{self.__name__}.{name}", caller.f_globals.get("__name__", "somebody")), name, self, caller)


def _why_not(name: str, asker: str) -> str:
    """What is said of a name that is not there."""
    ours = f"catena{name.removeprefix('jax')}"
    if is_of_other_machines(ours):
        return not_built(ours).replace("catena", "jax", 1)
    return (
        f"{name} is private to JAX, and catena, which is jax here, has no such name; {asker} reaches for it. What is "
        "there stands in catena/compat/private.py."
    )


def inside(package: str) -> list[str]:
    """The names of modules that stand in a public package of JAX's, and are put there with the alias."""
    return [last for parent, _, last in (name.rpartition(".") for name in NAMES) if parent == package not in NAMES]


def module(name: str) -> ModuleType | None:
    """The stand-in for a private module; None where there is none."""
    if name not in NAMES:
        return None
    names = NAMES[name]
    if isinstance(names, str):
        return load(names)
    made = PrivateModule(name, "Names of JAX's that catena has elsewhere.")
    made.__path__ = []  # so that its submodules are asked for
    for key, place in names.items():
        source, _, attribute = place.partition(":")
        setattr(made, key, attrgetter(attribute)(load(source)))
    return made
