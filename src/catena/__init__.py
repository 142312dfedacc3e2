"""catena: expressing and composing transformations of numerical programs, under JAX's public names."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from catena.core.lazy import load as _load
from catena.core.lazy import without_collection as _without_collection
from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent
from catena.runtime import layout as _layout  # noqa: F401  (refuses a Python or NumPy on which programs cannot run)

with _without_collection():
    from catena import ad as ad
    from catena import ad_checkpoint as ad_checkpoint
    from catena import checkpoint_policies as checkpoint_policies
    from catena import custom_derivatives as custom_derivatives
    from catena import debug as debug
    from catena import dtypes as dtypes
    from catena import errors as errors
    from catena import lax as lax
    from catena import numpy as numpy
    from catena import random as random
    from catena import ref as ref
    from catena import sharding as sharding
    from catena import stages as stages
    from catena import tree as tree
    from catena import tree_util as tree_util
    from catena import typing as typing
    from catena.core.array import Array as Array
    from catena.core.config import allow_f16_reductions as allow_f16_reductions
    from catena.core.config import array_garbage_collection_guard as array_garbage_collection_guard
    from catena.core.config import check_tracer_leaks as check_tracer_leaks
    from catena.core.config import checking_leaks as checking_leaks
    from catena.core.config import config as config
    from catena.core.config import debug_infs as debug_infs
    from catena.core.config import debug_key_reuse as debug_key_reuse
    from catena.core.config import debug_nans as debug_nans
    from catena.core.config import default_device as default_device
    from catena.core.config import default_matmul_precision as default_matmul_precision
    from catena.core.config import default_prng_impl as default_prng_impl
    from catena.core.config import disable_jit as disable_jit
    from catena.core.config import enable_checks as enable_checks
    from catena.core.config import enable_custom_prng as enable_custom_prng
    from catena.core.config import enable_x64 as enable_x64
    from catena.core.config import explain_cache_misses as explain_cache_misses
    from catena.core.config import jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions
    from catena.core.config import legacy_prng_key as legacy_prng_key
    from catena.core.config import log_compiles as log_compiles
    from catena.core.config import no_execution as no_execution
    from catena.core.config import no_tracing as no_tracing
    from catena.core.config import numpy_dtype_promotion as numpy_dtype_promotion
    from catena.core.config import numpy_rank_promotion as numpy_rank_promotion
    from catena.core.config import softmax_custom_jvp as softmax_custom_jvp
    from catena.core.config import thread_guard as thread_guard
    from catena.core.config import threefry_partitionable as threefry_partitionable
    from catena.core.config import transfer_guard as transfer_guard
    from catena.core.config import transfer_guard_device_to_device as transfer_guard_device_to_device
    from catena.core.config import transfer_guard_device_to_host as transfer_guard_device_to_host
    from catena.core.config import transfer_guard_host_to_device as transfer_guard_host_to_device
    from catena.core.device import Device as Device
    from catena.core.device import default_backend as default_backend
    from catena.core.device import device_count as device_count
    from catena.core.device import devices as devices
    from catena.core.device import host_count as host_count
    from catena.core.device import host_id as host_id
    from catena.core.device import host_ids as host_ids
    from catena.core.device import local_device_count as local_device_count
    from catena.core.device import local_devices as local_devices
    from catena.core.device import process_count as process_count
    from catena.core.device import process_index as process_index
    from catena.core.device import process_indices as process_indices
    from catena.core.dtypes import float0 as float0
    from catena.core.mesh import make_mesh as make_mesh
    from catena.core.mesh import set_mesh as set_mesh
    from catena.core.named_sharding import NamedSharding as NamedSharding
    from catena.core.partition_spec import P as P
    from catena.core.ref import Ref as Ref
    from catena.core.sharding import Shard as Shard
    from catena.core.slices import ds as ds
    from catena.core.struct import ShapeDtypeStruct as ShapeDtypeStruct
    from catena.core.trace import ensure_compile_time_eval as ensure_compile_time_eval
    from catena.core.user_context import make_user_context as make_user_context
    from catena.lax.callbacks import pure_callback as pure_callback
    from catena.lax.ref_lives import empty_ref as empty_ref
    from catena.lax.ref_lives import free_ref as free_ref
    from catena.lax.ref_lives import freeze as freeze
    from catena.lax.ref_lives import new_ref as new_ref
    from catena.parallel.shard_map import shard_map as shard_map
    from catena.parallel.shard_map import smap as smap
    from catena.tools.environment import print_environment_info as print_environment_info
    from catena.transform.checkpoint import checkpoint as checkpoint
    from catena.transform.checkpoint import remat as remat
    from catena.transform.custom_gradient import closure_convert as closure_convert
    from catena.transform.custom_gradient import custom_gradient as custom_gradient
    from catena.transform.custom_jvp import custom_jvp as custom_jvp
    from catena.transform.custom_vjp import custom_vjp as custom_vjp
    from catena.transform.forward_backward import fwd_and_bwd as fwd_and_bwd
    from catena.transform.grad import grad as grad
    from catena.transform.grad import hessian as hessian
    from catena.transform.grad import jacfwd as jacfwd
    from catena.transform.grad import jacobian as jacobian
    from catena.transform.grad import jacrev as jacrev
    from catena.transform.grad import jvp as jvp
    from catena.transform.grad import linear_transpose as linear_transpose
    from catena.transform.grad import linearize as linearize
    from catena.transform.grad import value_and_grad as value_and_grad
    from catena.transform.grad import vjp as vjp
    from catena.transform.jit import jit as jit
    from catena.transform.make_jaxpr import eval_shape as eval_shape
    from catena.transform.make_jaxpr import make_jaxpr as make_jaxpr
    from catena.transform.placement import block_until_ready as block_until_ready
    from catena.transform.placement import clear_caches as clear_caches
    from catena.transform.placement import copy_to_host_async as copy_to_host_async
    from catena.transform.placement import device_get as device_get
    from catena.transform.placement import device_put as device_put
    from catena.transform.placement import effects_barrier as effects_barrier
    from catena.transform.placement import live_arrays as live_arrays
    from catena.transform.placement import typeof as typeof
    from catena.transform.pmap import pmap as pmap
    from catena.transform.scopes import named_call as named_call
    from catena.transform.scopes import named_scope as named_scope
    from catena.transform.vmap import vmap as vmap
    from catena.version import __version__ as __version__
    from catena.version import __version_info__ as __version_info__

if _TYPE_CHECKING:
    from catena import nn as nn

_open_door(globals(), "catena")


def as_jax() -> _Any:
    """Make ``import jax`` mean catena, for everybody in this process who imports it from now on: existing programs,
    and the libraries they use, run unchanged. ``python -m catena run`` does it from outside.

    Returns:
      The alias: ``remove()`` takes it away, as does leaving a ``with`` block.
    Raises:
      RuntimeError: the real JAX is imported already, whose objects its importers hold.

    >>> import catena
    >>> with catena.as_jax():
    ...     import jax.numpy as jnp
    >>> jnp is catena.numpy
    True
    """
    return _load("catena.compat.alias").as_jax()


__dir__ = _shown(
    globals(),
    "ad",
    "ad_checkpoint",
    "api_util",
    "checkpoint_policies",
    "core",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "dlpack",
    "dtypes",
    "errors",
    "experimental",
    "ffi",
    "image",
    "interpreters",
    "lax",
    "monitoring",
    "nn",
    "numpy",
    "ops",
    "profiler",
    "random",
    "ref",
    "scipy",
    "sharding",
    "stages",
    "test_util",
    "tree",
    "tree_util",
    "typing",
    "version",
)

_absent(
    globals(),
    "api_util",
    "custom_batching",
    "dlpack",
    "example_libraries",
    "experimental",
    "ffi",
    "image",
    "interpreters",
    "monitoring",
    "nn",
    "ops",
    "profiler",
    "scipy",
    "test_util",
    "version",
)
