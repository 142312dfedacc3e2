"""Names of JAX that are not built yet: who asks for one is told so, and where the list of differences stands."""

import opcode
import sys
from types import FrameType, ModuleType
from typing import Any, NoReturn

from catena.core.errors import page
from catena.core.lazy import load

# By module: names that JAX 0.10.2 has there. What is built meanwhile is found before anybody looks here.
NAMES = {
    "catena": (
        "auto_pcast distributed export ffi lib make_array_from_callback "
        "make_array_from_process_local_data make_array_from_single_device_arrays memory "
        "remove_size_one_mesh_axis_from_type reshard shard_map smap"
    ),
    "catena.lax": (
        "device_put_p pbroadcast pcast precv psend ragged_all_to_all ragged_all_to_all_p select_and_scatter_p "
        "sharding_constraint_p stage_p with_sharding_constraint"
    ),
    "catena.sharding": ("auto_axes explicit_axes reshard"),
    "catena.scipy": "",
    "catena.profiler": (
        "ProfileData ProfileEvent ProfileOptions ProfilePlane device_memory_profile register_subprocess "
        "save_device_memory_profile start_server stop_server"
    ),
    "catena.core": "max_dim min_dim",
    "catena.experimental": "EArray cur_qdd primal_tangent_dtype shard_map",
    "catena.extend": "backend lowering mlir pallas sharding xla",
    "catena.interpreters": "pxla",
    "catena.interpreters.ad": "add_jaxvals defbilinear deflinear get_primitive_transpose linearize zeros_like_aval",
    "catena.interpreters.batching": "register_vmappable unregister_vmappable",
}
MODULES = frozenset(
    "catena.distributed catena.export catena.ffi catena.lib "
    "catena.experimental.mesh_utils catena.experimental.multihost_utils "
    "catena.experimental.pjit catena.experimental.shard_map catena.extend.backend "
    "catena.interpreters.pxla".split()
)
# Modules that are no part of the package, and what they are about.
OTHER_MACHINES = {
    "catena.experimental.colocated_python": "Python on the hosts of remote accelerators",
    "catena.experimental.jax2tf": "programs for TensorFlow",
    "catena.experimental.mosaic": "kernels of GPUs and TPUs",
    "catena.experimental.pallas": "kernels of GPUs and TPUs",
    "catena.experimental.roofline": "the costs of programs on TPUs",
    "catena.experimental.topologies": "accelerators that are not attached",
}
_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


def absent(namespace: dict[str, Any], *late: str) -> None:
    """Give a public module its ``__getattr__``, which Python asks for what is not there. Type checkers do not see it,
    so that they report what is missing.

    Arguments:
      namespace: the ``globals()`` of the module.
      late: modules in it that are loaded when they are first asked for.
    """
    module = namespace["__name__"]
    unbuilt = frozenset(NAMES.get(module, "").split())

    def ask(name: str) -> Any:
        if name in late:
            return load(f"{module}.{name}")
        if name in unbuilt or is_missing(f"{module}.{name}"):
            refuse(not_built(f"{module}.{name}"), name, sys.modules[module], sys._getframe(1))
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules[module])

    namespace["__getattr__"] = ask


def refuse(message: str, name: str, module: ModuleType, asker: FrameType) -> NoReturn:
    """Say that a module has no such name: an AttributeError, or for a statement `from module import name`, which would
    drop its message, an ImportError. ``asker``: the frame that asks.
    """
    if asker.f_code.co_code[asker.f_lasti] == _IMPORT_FROM:
        raise ImportError(message, name=module.__name__)
    raise AttributeError(message, name=name, obj=module)


def not_built(name: str) -> str:
    """What is said of a name that JAX has and this package does not have yet, or will not have."""
    about = OTHER_MACHINES.get(".".join(name.split(".")[:3]))
    if about is not None:
        return f"{name} is about {about}: another machine than catena compiles for, and so no part of it"
    return f"{name} is not built yet; see {page('differences.md')}#what-is-not-there-yet"


def is_missing(name: str) -> bool:
    """Whether a module, or the one that it stands in, is one of JAX's that is not here."""
    return any(m in MODULES or m in OTHER_MACHINES for m in (name, name.rpartition(".")[0]))


class Finder:
    """The last place where Python looks for a module: it knows which are not built."""

    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if is_missing(name):
            raise ModuleNotFoundError(not_built(name), name=name)


sys.meta_path.append(Finder)
