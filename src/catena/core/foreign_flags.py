"""Options of JAX that tune what is not here: XLA, GPUs, other processes, the insides of JAX.

Programs set them for JAX's sake. Here they are kept and read back, and there is nothing that they could govern: one
device, whose memory is the process's own, and a compiler that keeps what it compiled whatever it took.
"""

LEVELS = ("UNKNOWN", "O0", "O1", "O2", "O3")
GUARDS = (None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")

SWITCHES_OFF = (
    "check_proxy_envs compilation_cache_check_contents compilation_cache_expect_pgle "
    "compilation_cache_include_metadata_in_key debug_leaked_clients_on_clear_backends disable_most_optimizations "
    "disable_vmap_shmap_error disallow_mesh_context_manager distributed_debug enable_pgle "
    "experimental_unsafe_xla_runtime_errors force_dcn_cross_host_transfers raise_persistent_cache_errors "
    "remove_custom_partitioning_ptr_from_cache_key remove_size_one_mesh_axis_from_type share_binary_between_hosts "
    "thread_guard threefry_gpu_kernel_lowering"
)
SWITCHES_ON = (
    "auto_pcast compiler_enable_remat_pass cpu_enable_async_dispatch enable_preemption_service "
    "include_debug_info_in_dumps include_full_tracebacks_in_locations pprint_use_color "
    "ragged_dot_use_ragged_dot_instruction sort_devices_by_process_index use_shardy_partitioner"
)
VALUES = {
    "array_garbage_collection_guard": (None, (None, "allow", "log", "fatal")),
    "captured_constants_report_frames": (0, int),
    "captured_constants_warn_bytes": (2_000_000_000, int),
    "compiler_detailed_logging_min_ops": (10, int),
    "cpu_collectives_implementation": ("gloo", ("gloo", "mpi", "megascale")),
    "cpu_get_global_topology_timeout_minutes": (5, int),
    "cpu_get_local_topology_timeout_minutes": (2, int),
    "cuda_visible_devices": ("all", str),
    "embedded_constants_max_bytes": (32, int),
    "exec_time_optimization_effort": (0.0, float),
    "hlo_source_file_canonicalization_regex": (None, str),
    "memory_fitting_effort": (0.0, float),
    "memory_fitting_level": ("O2", LEVELS),
    "optimization_level": ("UNKNOWN", LEVELS),
    "persistent_cache_enable_xla_caches": ("xla_gpu_per_fusion_autotune_cache_dir", str),
    "persistent_cache_min_compile_time_secs": (1.0, float),
    "persistent_cache_min_entry_size_bytes": (0, int),
    "pgle_aggregation_percentile": (90, int),
    "pgle_profiling_runs": (3, int),
    "pjrt_client_create_options": (None, str),
    "rocm_visible_devices": ("all", str),
    "send_traceback_to_runtime": ("off", ("off", "on", "full")),
    "share_binary_between_hosts_timeout_ms": (1_200_000, int),
    "source_url_schema": (None, str),
    "traceback_in_locations_limit": (100, int),
    "tracer_error_num_traceback_frames": (5, int),
    "transfer_guard": (None, GUARDS),
    "transfer_guard_device_to_device": (None, GUARDS),
    "transfer_guard_device_to_host": (None, GUARDS),
    "transfer_guard_host_to_device": (None, GUARDS),
    "use_magma": ("auto", ("off", "on", "auto")),
    "xla_backend": ("", str),
    "xla_profile_version": (0, int),
}

FOREIGN = (
    {f"jax_{name}": (False, bool) for name in SWITCHES_OFF.split()}
    | {f"jax_{name}": (True, bool) for name in SWITCHES_ON.split()}
    | {f"jax_{name}": row for name, row in VALUES.items()}
)
