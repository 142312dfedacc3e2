"""Names of JAX that are not built yet: who asks for one is told so, and where the list of differences stands."""

import opcode
import sys
import warnings
from types import FrameType, ModuleType
from typing import Any, NoReturn

from catena.core.errors import page
from catena.core.lazy import load

# By module: names that JAX 0.10.2 has there. What is built meanwhile is found before anybody looks here.
NAMES = {
    "catena": "lib",
    "catena.lax": "stage_p",
    "catena.scipy": "",
    "catena.extend": "pallas",
}
MODULES = frozenset(["catena.lib"])
# Modules that are no part of the package, and what they are about.
OTHER_MACHINES = {
    "catena.experimental.jax2tf": "programs for TensorFlow",
    "catena.experimental.mosaic": "kernels of GPUs and TPUs",
    "catena.experimental.pallas": "kernels of GPUs and TPUs",
    "catena.experimental.roofline": "the costs of programs on TPUs",
    "catena.experimental.topologies": "accelerators that are not attached",
}
# Names that will not come, by module, and why.
_NO_MLIR = "it makes or reads MLIR itself, and programs here are jaxprs and compile without it"
_NO_REGISTRY = "it registers MLIR's dialects, and rules here write jaxprs, in operations that need no registry"
_NO_XLA = "it belongs to XLA, and programs here are compiled by LLVM directly"
_NO_SWITCH = "it is a switch of how types say what varies, which is always as by default here"
_NO_SERVER = "it moves arrays between processes of other devices (experimental.multihost_utils moves them by MPI)"
_NO_PRIMITIVE = "what it does leaves other equations here, or none"
_NO_GPU = "JAX compiles it for GPUs only"
_NO_CALL_FRAME = "it serves handlers that read XLA's call frame, and C functions are called directly here"
WITHOUT_MEANING = {
    "catena": dict.fromkeys(("auto_pcast", "remove_size_one_mesh_axis_from_type"), _NO_SWITCH),
    "catena.lax": dict.fromkeys(("precv", "psend"), _NO_GPU),
    "catena.experimental": {
        "profiler": "it reads profiles of XLA's programs, for XLA to compile by",
        "transfer": _NO_SERVER,
    },
    "catena.experimental.hijax": {"HiPspec": "values of users' own types are not split over devices"},
    "catena.experimental.jet": {"call_param_updaters": "calls have rules as other primitives have (jet_rules)"},
    "catena.experimental.scheduling_groups": {"attr_get": _NO_MLIR},
    "catena.ffi": {
        "include_dir": _NO_CALL_FRAME,
        "register_ffi_target_as_batch_partitionable": _NO_CALL_FRAME,
    },
    "catena.extend": {
        "ifrt_programs": _NO_XLA,
        "xla": _NO_XLA,
    },
    "catena.extend.core.primitives": {"empty2_p": _NO_PRIMITIVE},
    "catena.extend.lowering": dict.fromkeys(("upstream_dialects",), _NO_REGISTRY),
    "catena.extend.backend": dict.fromkeys(("get_compile_options", "ifrt_proxy", "register_backend_factory"), _NO_XLA),
    "catena.profiler": dict.fromkeys(
        ("register_subprocess", "start_server", "stop_server"),
        "it serves a profiler to other processes; jax.profiler.trace writes files that Perfetto opens",
    ),
    "catena.interpreters.pxla": {"create_compile_options": _NO_XLA},
    "catena.interpreters.mlir": dict.fromkeys(
        ("DEVICE_TO_DEVICE_TYPE", "RECV_FROM_HOST_TYPE", "SEND_TO_HOST_TYPE"),
        "it numbers XLA's kinds of channels, and programs call functions of the host directly here",
    ),
    "catena.extend.mlir": dict.fromkeys(("hlo_to_stablehlo", "refine_polymorphic_shapes"), _NO_MLIR),
}
_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


def absent(namespace: dict[str, Any], *late: str, moved: dict[str, str] | None = None) -> None:
    """Give a public module its ``__getattr__``, which Python asks for what is not there. Type checkers do not see it,
    so that they report what is missing.

    Arguments:
      namespace: the ``globals()`` of the module.
      late: modules in it that are loaded when they are first asked for.
      moved: names that are found elsewhere, deprecated here, and where they are.
    """
    elsewhere = moved or {}
    module = namespace["__name__"]

    def ask(name: str) -> Any:
        if name in late:
            return load(f"{module}.{name}")
        if name in elsewhere:
            home, _, there = elsewhere[name].rpartition(".")
            message = f"{module}.{name} is deprecated. Use {home}.{there}."
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return getattr(load(home), there)
        no_such_name(module, name, sys._getframe(1))

    namespace["__getattr__"] = ask


def no_such_name(module: str, name: str, asker: FrameType) -> NoReturn:
    """Say that a module has no such name, or not yet. ``asker``: the frame that asks."""
    known = name in NAMES.get(module, "").split() or name in WITHOUT_MEANING.get(module, ())
    if known or is_missing(f"{module}.{name}"):
        refuse(not_built(f"{module}.{name}"), name, sys.modules[module], asker)
    now = OLDER.get(module, {}).get(name)
    hint = f": it has gone from JAX, and {now} does the same" if now else ""
    raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name, obj=sys.modules[module])


# Names that JAX had once, which programs and forum threads still use, and what does the same.
OLDER = {
    "catena": {
        "tree_map": "jax.tree.map",
        "tree_multimap": "jax.tree.map",
        "tree_leaves": "jax.tree.leaves",
        "tree_flatten": "jax.tree.flatten",
        "tree_unflatten": "jax.tree.unflatten",
        "tree_structure": "jax.tree.structure",
        "tree_reduce": "jax.tree.reduce",
        "tree_transpose": "jax.tree.transpose",
        "xmap": "jax.shard_map",
        "device_put_sharded": "jax.device_put(jnp.stack(shards), jax.NamedSharding(mesh, jax.P(name)))",
        "device_put_replicated": "jax.device_put(x, jax.NamedSharding(mesh, jax.P()))",
        "partial": "functools.partial",
        "mask": "jnp.where",
    },
    "catena.numpy": {
        "DeviceArray": "jax.Array",
        "alltrue": "jnp.all",
        "sometrue": "jnp.any",
        "product": "jnp.prod",
        "cumproduct": "jnp.cumprod",
        "in1d": "jnp.isin",
        "msort": "jnp.sort(x, axis=0)",
        "round_": "jnp.round",
        "row_stack": "jnp.vstack",
        "trapz": "jnp.trapezoid",
    },
    "catena.ops": {
        "index_update": "x.at[index].set(y)",
        "index_add": "x.at[index].add(y)",
        "index": "x.at[index]",
    },
    "catena.random": {"shuffle": "jax.random.permutation"},
}


def refuse(message: str, name: str, module: ModuleType, asker: FrameType) -> NoReturn:
    """Say that a module has no such name: an AttributeError, or for a statement `from module import name`, which would
    drop its message, an ImportError. ``asker``: the frame that asks.
    """
    if asker.f_code.co_code[asker.f_lasti] == _IMPORT_FROM:
        raise ImportError(message, name=module.__name__)
    raise AttributeError(message, name=name, obj=module)


def not_built(name: str) -> str:
    """What is said of a name that JAX has and this package does not have yet, or will not have."""
    if is_of_other_machines(name):
        about = OTHER_MACHINES[_in_package(name)]
        return f"{name} is about {about}: another machine than catena compiles for, and so no part of it"
    reason = why_absent(name)
    if reason is not None:
        return f"{name} is no part of catena: {reason}"
    return f"{name} is not built yet; see {page('differences.md')}#what-is-not-there-yet"


def _in_package(name: str) -> str:
    return ".".join(name.split(".")[:3])


def is_of_other_machines(name: str) -> bool:
    """Whether a name of JAX, or the module that it stands in, is no part of this package."""
    return _in_package(name) in OTHER_MACHINES


def why_absent(name: str) -> str | None:
    """Why a name of JAX is no part of this package, where that is so."""
    module, _, last = name.rpartition(".")
    return WITHOUT_MEANING.get(module, {}).get(last)


def is_missing(name: str) -> bool:
    """Whether a module, or the one that it stands in, is one of JAX's that is not here."""
    return any(m in MODULES or m in OTHER_MACHINES for m in (name, name.rpartition(".")[0]))


class Finder:
    """The last place where Python looks for a module: it knows which are not built."""

    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if is_missing(name) or why_absent(name):
            raise ModuleNotFoundError(not_built(name), name=name)


sys.meta_path.append(Finder)
