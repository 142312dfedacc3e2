"""The table of configuration flags, under JAX's names, and what each admits.

A row for each; the values in force are in `config`.
"""

from __future__ import annotations

import operator
import os
from typing import Any

from catena.core import log
from catena.core.failures import checks_named
from catena.core.foreign_flags import FOREIGN
from catena.core.lazy import load
from catena.core.named import NamedTuple


class Flag(NamedTuple):
    """A configuration flag.

    ``name`` is JAX's; ``kind`` is bool, int, float, str, "device", "checks" or a tuple of the values admitted;
    ``traced`` tells whether the flag changes what tracing, compiling or calling a compiled function does, so that
    caches keep the values apart; ``attribute`` is where the context keeps the value in force.
    """

    name: str
    default: Any
    kind: Any
    help: str
    traced: bool = False

    @property
    def attribute(self) -> str:
        return {"jax_enable_x64": "x64"}.get(self.name, self.name.removeprefix("jax_"))

    @property
    def environment_variables(self) -> tuple[str, str]:
        bare = self.name.removeprefix("jax_").upper()
        return f"CATENA_{bare}", f"JAX_{bare}", *OLDER_VARIABLES.get(self.name, ())


OLDER_VARIABLES = {"jax_dump_ir_to": ("CATENA_DUMP",)}

PRECISIONS = (
    "default",
    "high",
    "highest",
    "bfloat16",
    "tensorfloat32",
    "float32",
    "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16",
    "F16_F16_F32",
    "BF16_BF16_BF16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "F32_F32_F32",
    "F64_F64_F64",
)
PRNG_IMPLEMENTATIONS = ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")

FLAGS = {
    flag.name: flag
    for flag in (
        Flag("jax_enable_x64", False, bool, "64-bit dtypes are available and the default.", traced=True),
        Flag(
            "jax_numpy_dtype_promotion",
            "standard",
            ("standard", "strict"),
            "Implicit promotion of dtypes.",
            traced=True,
        ),
        Flag(
            "jax_numpy_rank_promotion",
            "allow",
            ("allow", "warn", "raise"),
            "Implicit promotion of ranks.",
            traced=True,
        ),
        Flag("jax_default_matmul_precision", None, (None, *PRECISIONS), "Precision of products.", traced=True),
        Flag("jax_debug_nans", False, bool, "An error where an operation yields a NaN.", traced=True),
        Flag("jax_debug_infs", False, bool, "An error where an operation yields an infinity.", traced=True),
        Flag(
            "jax_checks",
            "",
            "checks",
            "What is checked in every operation, compiled ones too: `index`, `nan`, `inf`, `div`, `overflow`, several "
            "with commas, or `all`.",
            traced=True,
        ),
        Flag("jax_disable_jit", False, bool, "jit calls the Python function instead.", traced=True),
        Flag("jax_enable_checks", False, bool, "Check every jaxpr that is made.", traced=True),
        Flag("jax_check_tracer_leaks", False, bool, "An error where a tracer outlives its trace.", traced=True),
        Flag(
            "jax_no_execution",
            False,
            bool,
            "An error where an operation or a compiled program would run.",
            traced=True,
        ),
        Flag("jax_check_bounds", False, bool, "Compiled programs check every load and store.", traced=True),
        Flag("jax_no_tracing", False, bool, "An error where a function would be traced again."),
        Flag("jax_log_compiles", False, bool, "Log every compilation."),
        Flag(
            "jax_slow_compile_secs",
            1.0,
            float,
            "Log a line about each function that took so many seconds or more to trace and compile; `inf`: never.",
        ),
        Flag("jax_explain_cache_misses", False, bool, "Log why a function is traced again."),
        Flag("jax_logging_level", "NOTSET", log.LEVELS, "Level of the log."),
        Flag("jax_debug_log_modules", "", str, "Modules, comma-separated, whose whole log is shown."),
        Flag("jax_dump_ir_to", "", str, "A folder that every stage of compilation is written to."),
        Flag("jax_enable_compilation_cache", True, bool, "Object code is kept on disk for the next process."),
        Flag(
            "jax_compilation_cache_dir",
            None,
            str,
            "Where object code is kept; by default the user's cache folder.",
        ),
        Flag(
            "jax_executor",
            None,
            (None, "vectorised", "threads", "mpi"),
            "What runs programs of one device on a mesh: one program for all, a thread for each, a process for each. "
            "By default, several processes are 'mpi', and one is 'vectorised'.",
            traced=True,
        ),
        Flag(
            "jax_ordered_sums",
            False,
            bool,
            "Sums over the processes of MPI are folded in order of rank, as threads do it: the same bits everywhere.",
            traced=True,
        ),
        Flag(
            "jax_flush_subnormals",
            False,
            bool,
            "Compiled programs take subnormal numbers as zeros, as those of XLA; to multiply such, element by element, "
            "takes processors a hundred times as long.",
            traced=True,
        ),
        Flag("jax_default_device", None, "device", "Where new arrays are made."),
        Flag("jax_platforms", "cpu", str, "The platforms to use."),
        Flag("jax_platform_name", "", str, "The platform to use; an older name of jax_platforms."),
        Flag(
            "jax_num_cpu_devices",
            1,
            int,
            "How many virtual CPU devices there are; fixed once they are used. Where nobody sets it, "
            "`--xla_force_host_platform_device_count` in the environment variable `XLA_FLAGS` counts.",
        ),
        Flag(
            "jax_traceback_filtering",
            "auto",
            ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
            "How tracebacks are shortened to the user's frames.",
        ),
        Flag("jax_softmax_custom_jvp", False, bool, "softmax has a derivative rule of its own.", traced=True),
        Flag("jax_check_static_indices", False, bool, "An error where a static index is out of bounds.", traced=True),
        Flag(
            "jax_explicit_x64_dtypes",
            "warn",
            ("error", "warn", "allow"),
            "What asking for a 64-bit dtype does where there are none.",
            traced=True,
        ),
        Flag(
            "jax_disable_bwd_checks", False, bool, "Take cotangents of any type from rules of custom_vjp.", traced=True
        ),
        Flag("jax_high_dynamic_range_gumbel", False, bool, "gumbel draws in mode 'high' by default.", traced=True),
        Flag("jax_log_checkpoint_residuals", False, bool, "Log what checkpoint keeps for the backward pass."),
        Flag(
            "jax_default_prng_impl",
            "threefry2x32",
            PRNG_IMPLEMENTATIONS,
            "The generator of new keys.",
            traced=True,
        ),
        Flag("jax_threefry_partitionable", True, bool, "Which of two threefry streams is drawn.", traced=True),
        Flag("jax_enable_custom_prng", False, bool, "PRNGKey makes typed keys.", traced=True),
        Flag(
            "jax_legacy_prng_key",
            "allow",
            ("allow", "warn", "error"),
            "What a raw key passed to a sampler does.",
        ),
        Flag(
            "jax_debug_key_reuse",
            False,
            (False, True, "warn"),
            "An error where a random key is used twice; 'warn' is a warning, in eager code.",
            traced=True,
        ),
        Flag("jax_random_seed_offset", 0, int, "Added to every seed.", traced=True),
        Flag("jax_compilation_cache_max_size", -1, int, "Bytes of object code kept on disk; -1: half a gigabyte."),
        *(Flag(name, default, kind, "Governs nothing here.") for name, (default, kind) in FOREIGN.items()),
    )
}


def find_flag(name: str) -> Flag:
    """The row of the table."""
    try:
        return FLAGS[name] if name in FLAGS else FLAGS[f"jax_{name.removeprefix('catena_')}"]
    except KeyError:
        close = load("difflib").get_close_matches(name, FLAGS, 1)
        hint = f". Did you mean: {close[0]}?" if close else ""
        raise AttributeError(f"Unrecognized config option: {name}{hint}") from None


def convert(flag: Flag, value):
    """``value`` as the flag keeps it, or a ValueError that says what the flag admits."""
    if flag.kind is bool:
        return as_bool(flag, value)
    return KINDS.get(flag.kind, as_choice)(flag, value)


def as_choice(flag: Flag, value):
    value = getattr(value, "value", value)
    if True in flag.kind and value not in flag.kind:  # a level, or on or off
        return as_bool(flag, value)
    if value not in flag.kind:
        raise ValueError(f"new enum value must be in {list(flag.kind)}, got {value} of type {type(value)}.")
    return value


def as_int(flag: Flag, value) -> int | None:
    if value is None and flag.default is None:
        return None
    try:
        return int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        raise ValueError(f"new int config value must be of type int, got {value} of type {type(value)}.") from None


def as_text(flag: Flag, value) -> str | None:
    if value is None or isinstance(value, (str, os.PathLike)):
        return None if value is None else os.fspath(value)
    raise ValueError(f"new string config value must be None or of type str, got {value} of type {type(value)}.")


PLATFORMS = ("cpu", "gpu", "tpu")


def as_device(flag: Flag, value):
    if not value and isinstance(value, str):
        return None
    if value is None or hasattr(value, "platform") or (isinstance(value, str) and value in PLATFORMS):
        return value
    raise ValueError(
        f"{flag.name} must be a device (such as `jax.devices('cpu')[0]`), the name of a platform (one of "
        f"{', '.join(PLATFORMS)}), or None; got {value!r}"
    )


def as_float(flag: Flag, value) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"new float config value must be of type float, got {value} of type {type(value)}.") from None


def as_checks(flag: Flag, value) -> str:
    return checks_named(value)


KINDS = {int: as_int, float: as_float, str: as_text, "device": as_device, "checks": as_checks}


def as_bool(flag: Flag, value) -> bool:
    if isinstance(value, str):
        lowered = value.lower()
        if lowered in ("1", "true", "t", "yes", "y", "on"):
            return True
        if lowered in ("0", "false", "f", "no", "n", "off", ""):
            return False
        raise ValueError(f"{flag.name} is a bool, got {value!r}")
    return bool(value)


def from_environment(flag: Flag, variable: str):
    text = os.environ[variable]
    try:
        return convert(flag, text)
    except ValueError as error:
        raise ValueError(f"the environment variable {variable}={text!r} is not valid: {error}") from None


def kind_for_absl(flag: Flag):
    """The type of a flag, as of options of one's own; flags with other values than of one type are texts."""
    return flag.kind if flag.kind in (bool, int, float) and type(flag.default) is flag.kind else str
