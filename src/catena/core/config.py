"""Configuration flags, under JAX's names: process-wide by ``config.update`` or the environment, per thread by ``with``.

Every flag is one row of a table. Flags that change what tracing yields take part in every cache key: the
context carries one small integer for the process-wide values and one for a thread's overrides.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import os
import re
import sys
from typing import Any

from catena.core import log
from catena.core.context import Context, context
from catena.core.failures import checks_named
from catena.core.foreign_flags import FOREIGN
from catena.core.lazy import load
from catena.core.named import NamedTuple
from catena.core.own_options import Option, define_with_absl
from catena.core.placement import default_placement
from catena.core.source import Surroundings
from catena.core.traceback import api_boundary


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


_key_numbers: dict[tuple, int] = {}
_numbers = itertools.count()


def _number(values: tuple) -> int:
    """A small integer for this combination of values, so that cache keys hash it in no time."""
    return _key_numbers.setdefault(values, next(_numbers))


def key_values(number: int) -> tuple:
    """The values that a number in a cache key stands for; none for the one that stands for no overrides."""
    return next((values for values, found in list(_key_numbers.items()) if found == number), ())


own_options: dict[str, Option] = {}  # of users, by name
AFTER_UPDATE = {"jax_logging_level": log.set_level, "jax_debug_log_modules": log.set_debug_modules}


class Config:
    """The flags as users meet them: ``config.update("jax_enable_x64", True)``, ``config.jax_enable_x64``."""

    @api_boundary
    def update(self, name: str, val) -> None:
        """Set a flag for the whole process; a thread's own ``with`` override still wins there.

        Raises:
          AttributeError: when there is no such flag.
          ValueError: when the flag does not admit the value.
        """
        if name in own_options:
            own_options[name].holder._set(val)
            return
        flag = find_flag(name)
        value = convert(flag, val)
        if flag.name == "jax_num_cpu_devices" and devices_in_use and value != Context.num_cpu_devices:
            raise RuntimeError(
                "jax_num_cpu_devices must be set before devices are used, that is before catena.devices() and anything "
                f"that is placed; there are {Context.num_cpu_devices} devices now. Set it right after the import, or "
                "by the environment variable CATENA_NUM_CPU_DEVICES."
            )
        setattr(Context, flag.attribute, value)
        refresh_global()
        refresh_derived()
        AFTER_UPDATE.get(flag.name, lambda value: None)(getattr(Context, flag.attribute))

    def read(self, name: str):
        """The value of a flag in force in this thread."""
        if name in own_options:
            return own_options[name].holder.value
        return getattr(context, find_flag(name).attribute)

    @property
    def values(self) -> dict:
        """All flags and their process-wide values."""
        own = {name: option.holder.value for name, option in own_options.items()}
        return {name: getattr(Context, flag.attribute) for name, flag in FLAGS.items()} | own

    def add_option(self, name: str, holder, opt_type, meta_args, meta_kwargs) -> None:
        """Add a flag of one's own, for ``read``, ``update`` and the command line.

        Arguments:
          name: its name, a new one.
          holder: an object that has the ``value``, and a method ``_set(value)`` for ``update``.
          opt_type: bool, int, float, str, or ``"enum"``.
          meta_args, meta_kwargs: what absl defines the flag with (``config_with_absl``), behind name and value.
        Raises:
          ValueError: the name is taken, or there is no such type.

        >>> import types
        >>> import catena as jax
        >>> holder = types.SimpleNamespace(value=3)
        >>> holder._set = lambda value: setattr(holder, "value", value)
        >>> jax.config.add_option("my_depth", holder, int, ["How deep."], {})
        >>> jax.config.update("my_depth", 4)
        >>> jax.config.read("my_depth"), jax.config.my_depth
        (4, 4)
        """
        if name in FLAGS or name in own_options:
            raise ValueError(f"Config option {name} already defined")
        own_options[name] = Option(holder, opt_type, tuple(meta_args), dict(meta_kwargs))

    def config_with_absl(self) -> None:
        """Define all flags as flags of absl; those that the command line sets are updated when ``app.run`` begins."""
        flags = [(name, Option(_Held(name), kind_for_absl(flag), (flag.help,), {})) for name, flag in FLAGS.items()]
        define_with_absl([*flags, *own_options.items()], self.update)

    @property
    def x64_enabled(self) -> bool:
        """Whether there are 64-bit types: the flag ``jax_enable_x64``."""
        return context.x64

    def parse_flags_with_absl(self) -> None:
        """Set flags from command-line arguments of the form ``--jax_enable_x64=true``, and leave the others alone."""
        parse_arguments()

    def __getattr__(self, name: str):
        if name in FLAGS:
            return getattr(context, FLAGS[name].attribute)
        if name in own_options:
            return own_options[name].holder.value
        raise AttributeError(f"'Config' object has no attribute '{name}'")

    def __setattr__(self, name: str, value):
        self.update(name, value)

    def __dir__(self):
        return [*super().__dir__(), *FLAGS]

    def __repr__(self):
        changed = [f"{name}={value!r}" for name, value in self.values.items() if value != FLAGS[name].default]
        return f"<configuration: {', '.join(changed) or 'all flags at their defaults'}>"


def parse_arguments(arguments: list[str] | None = None) -> None:
    """Set the flags named in ``arguments`` (those of the process by default)."""
    for argument in sys.argv[1:] if arguments is None else arguments:
        name, _, value = argument.removeprefix("--").partition("=")
        if argument.startswith("--") and name in FLAGS:
            config.update(name, value if value else True)
        elif argument.startswith("--") and name in own_options:
            config.update(name, own_options[name].parsed(value))


class _Held:
    """What holds the value of a flag of the table."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    @property
    def value(self):
        return getattr(Context, FLAGS[self.name].attribute)


def kind_for_absl(flag: Flag):
    """The type of a flag, as of options of one's own; flags with other values than of one type are texts."""
    return flag.kind if flag.kind in (bool, int, float) and type(flag.default) is flag.kind else str


def find_flag(name: str) -> Flag:
    """The row of the table."""
    try:
        return FLAGS[name] if name in FLAGS else FLAGS[f"jax_{name.removeprefix('catena_')}"]
    except KeyError:
        close = load("difflib").get_close_matches(name, FLAGS, 1)
        hint = f". Did you mean: {close[0]}?" if close else ""
        raise AttributeError(f"Unrecognized config option: {name}{hint}") from None


def read(name: str):
    """The value of a flag in force in this thread."""
    return getattr(context, FLAGS[name].attribute)


TRACED = [flag for flag in FLAGS.values() if flag.traced]


EVALUATION_FLAGS = (
    "debug_nans",
    "debug_infs",
    "checks",
    "no_execution",
    "default_placement",
)  # what evaluation asks about, as one bool: debug_checks

# What is in force in a thread beside flags, and caches keep apart: meshes, what equations note, whether lines are
# recorded, and whether known values are evaluated.
IN_FORCE = ("mesh", "abstract_mesh", "physical_mesh", "typed_axes", "said", "recorded", "folding")


def _process_wide() -> tuple:
    return *(getattr(Context, flag.attribute) for flag in TRACED), Context.default_device


def refresh_global() -> None:
    """Number the process-wide values; again where another thread changed one meanwhile, so that the last is right."""
    values = None
    while values is None or any(a is not b for a, b in zip(values, _process_wide(), strict=True)):
        values = _process_wide()
        Context.default_placement = default_placement(Context.default_device)
        Context.global_key = _number((*values[:-1], Context.default_placement))
    Context.debug_checks = any(getattr(Context, name) for name in EVALUATION_FLAGS)
    Context.surroundings = surroundings(Context)


def surroundings(where) -> Surroundings:
    """What equations say was in force, in this thread or process-wide."""
    return Surroundings(where.said[0], where.threefry_partitionable, where.abstract_mesh, where.said[1])


def refresh_derived() -> None:
    """Recompute what this thread derives from its overrides."""
    own = vars(context)
    if "mesh_placement" in own:
        context.default_placement = own["mesh_placement"]
    elif "default_device" in own:
        context.default_placement = default_placement(context.default_device)
    else:
        own.pop("default_placement", None)
    overrides = tuple((flag.name, own[flag.attribute]) for flag in TRACED if flag.attribute in own)
    if own.get("default_placement", Context.default_placement) != Context.default_placement:
        overrides += (("default_placement", context.default_placement),)
    overrides += tuple((name, own[name]) for name in IN_FORCE if name in own)
    if overrides:
        context.local_key = _number(overrides)
        context.surroundings = surroundings(context)
    else:
        own.pop("local_key", None)
        own.pop("surroundings", None)
    if any(name in own for name in EVALUATION_FLAGS):
        context.debug_checks = any(getattr(context, name) for name in EVALUATION_FLAGS)
    else:
        own.pop("debug_checks", None)


@contextlib.contextmanager
def override(name: str, value):
    """Set a flag in this thread within a ``with`` block."""
    with overridden(FLAGS[name].attribute, convert(FLAGS[name], value)):
        yield


@contextlib.contextmanager
def overridden(attribute: str, value):
    """Set an attribute of this thread's context that caches keep apart, within a ``with`` block."""
    own = vars(context)
    had, previous = attribute in own, own.get(attribute)
    setattr(context, attribute, value)
    refresh_derived()
    try:
        yield
    finally:
        if had:
            setattr(context, attribute, previous)
        else:
            delattr(context, attribute)
        refresh_derived()


UNSET = object()  # the local value of a flag that this thread does not override


class FlagContext:
    """A context manager for one flag: ``with debug_nans(True):`` sets it in this thread; booleans default to True."""

    def __init__(self, name: str):
        self.flag = FLAGS[name]
        self.__name__ = name.removeprefix("jax_")
        self.__doc__ = f"Set the flag {name} in this thread within a ``with`` block. {self.flag.help}"

    def __call__(self, new_val=UNSET):
        if new_val is UNSET and self.flag.kind is not bool and self.flag.kind != (False, True, "warn"):
            raise TypeError(f"{self.__name__} takes a value, got none")
        return override(self.flag.name, True if new_val is UNSET else new_val)

    @property
    def value(self):
        """The value in force in this thread."""
        return getattr(context, self.flag.attribute)

    def get_global(self):
        """The process-wide value."""
        return getattr(Context, self.flag.attribute)

    def get_local(self):
        """The value that this thread overrides the process-wide one by; ``UNSET`` where it does not."""
        return vars(context).get(self.flag.attribute, UNSET)

    def __bool__(self):
        raise TypeError(f"{self.__name__} is a context manager, not a value: its value is {self.__name__}.value")

    def __repr__(self):
        return f"<context manager of the flag {self.flag.name}>"


devices_in_use: list = []  # holds True from then on


def fix_number_of_devices() -> None:
    """Let the number of virtual CPU devices be what it is from now on. Where nobody set the flag, what
    XLA was told counts.
    """
    if not devices_in_use:
        devices_in_use.append(True)
        if Context.num_cpu_devices == FLAGS["jax_num_cpu_devices"].default:
            Context.num_cpu_devices = number_by_xla() or Context.num_cpu_devices


def number_by_xla() -> int | None:
    """The number of devices in the environment variable by which XLA is told."""
    found = re.findall(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return int(found[-1]) if found else None


def _initialise() -> None:
    """Defaults, then the environment: ``CATENA_`` variables win over ``JAX_`` ones."""
    for flag in FLAGS.values():
        value = flag.default
        for variable in flag.environment_variables:
            if variable in os.environ:
                value = from_environment(flag, variable)
                break
        setattr(Context, flag.attribute, value)
        if flag.name in AFTER_UPDATE and value != flag.default:
            AFTER_UPDATE[flag.name](value)
    refresh_global()


def from_environment(flag: Flag, variable: str):
    text = os.environ[variable]
    try:
        return convert(flag, text)
    except ValueError as error:
        raise ValueError(f"the environment variable {variable}={text!r} is not valid: {error}") from None


_initialise()
config = Config()

checks = FlagContext("jax_checks")
check_tracer_leaks = FlagContext("jax_check_tracer_leaks")
debug_infs = FlagContext("jax_debug_infs")
debug_key_reuse = FlagContext("jax_debug_key_reuse")
debug_nans = FlagContext("jax_debug_nans")
default_device = FlagContext("jax_default_device")
default_matmul_precision = FlagContext("jax_default_matmul_precision")
default_prng_impl = FlagContext("jax_default_prng_impl")
enable_checks = FlagContext("jax_enable_checks")
enable_custom_prng = FlagContext("jax_enable_custom_prng")
enable_x64 = FlagContext("jax_enable_x64")
explain_cache_misses = FlagContext("jax_explain_cache_misses")
legacy_prng_key = FlagContext("jax_legacy_prng_key")
log_compiles = FlagContext("jax_log_compiles")
no_execution = FlagContext("jax_no_execution")
no_tracing = FlagContext("jax_no_tracing")
numpy_dtype_promotion = FlagContext("jax_numpy_dtype_promotion")
numpy_rank_promotion = FlagContext("jax_numpy_rank_promotion")
allow_f16_reductions = FlagContext("jax_allow_f16_reductions")
jax2tf_associative_scan_reductions = FlagContext("jax2tf_associative_scan_reductions")
softmax_custom_jvp = FlagContext("jax_softmax_custom_jvp")
threefry_partitionable = FlagContext("jax_threefry_partitionable")
array_garbage_collection_guard = FlagContext("jax_array_garbage_collection_guard")
thread_guard = FlagContext("jax_thread_guard")
transfer_guard = FlagContext("jax_transfer_guard")
transfer_guard_device_to_device = FlagContext("jax_transfer_guard_device_to_device")
transfer_guard_device_to_host = FlagContext("jax_transfer_guard_device_to_host")
transfer_guard_host_to_device = FlagContext("jax_transfer_guard_host_to_device")


def checking_leaks():
    """Raise an error where a tracer outlives its trace, in this thread within a ``with`` block.

    >>> import catena as jax
    >>> with jax.checking_leaks():
    ...     y = jax.jit(lambda x: x + 1)(1)
    """
    return override("jax_check_tracer_leaks", True)


def disable_jit(disable: bool = True):
    """Make ``jit`` call the Python function itself, in this thread within a ``with`` block.

    Arguments:
      disable: whether to disable; ``False`` enables again inside.

    >>> import catena as jax
    >>> with jax.disable_jit():
    ...     y = jax.jit(lambda x: print(x) or x)(1)
    1
    """
    return override("jax_disable_jit", disable)
