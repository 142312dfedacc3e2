"""Configuration flags, under JAX's names: process-wide by ``config.update`` or the environment, per thread by ``with``.

Every flag is one row of a table (`flags`). Flags that change what tracing yields take part in every cache key: the
context carries one small integer for the process-wide values and one for a thread's overrides.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys

from catena.core import log
from catena.core.context import Context, context
from catena.core.flags import FLAGS, convert, find_flag, from_environment, kind_for_absl
from catena.core.own_options import Option, define_with_absl
from catena.core.placement import default_placement
from catena.core.source import Surroundings
from catena.core.traceback import api_boundary

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
