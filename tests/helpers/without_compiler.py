"""Which tests are skipped with ``CATENA_COMPILER=none``, and why: ``make test-interpreted``.

A test that compares numbers and fails there is a defect of the executor, no line of this table.
"""

from pathlib import Path

GRAPHS = "it compiles graphs of its own making, and looks at what the compiler makes of them"
TEXTS = "it reads the compiler's texts, plans and reports"
DISK = "machine code on disk: there is none"
MEMORY = "which memory compiled programs write their results to"
THREADS = "the compiler's threads and locks"
ROUTINES = "which routines compiled programs call, and how"
LONG = "it ends work that takes minutes step by step, or one call of NumPy's"
ACCURACY = "functions are as accurate as NumPy's and SciPy's, and have other last bits"
ARRAYS = "NumPy has no arrays with such extents"
BITS = "NumPy's bits depend on how operands lie in memory"

# a reason, a file of tests (or of the package: its docstrings), and which of its tests, with or without parameters;
# without any: all of them
ROWS = [
    (BITS, "compiler/test_amx.py", "test_bits_hang_on_a_row_and_a_column_alone"),
    (TEXTS, "compiler/test_trimming.py", "test_rows_that_nobody_reads_are_not_computed",
     "test_slices_of_what_is_computed_of_joined_arrays"),
    (TEXTS, "compiler/test_updates.py", "test_few_rows_cost_no_array"),
    (BITS, "compiler/test_settled.py", "test_it_has_the_bits_of_what_is_computed_in_each_call"),
    (TEXTS, "compiler/test_settled.py", "test_calls_do_not_compute_it_again", "test_large_results_and_loops_stay",
     "test_what_is_computed_where_it_is_read_stays_there", "test_there_is_room_for_some",
     "test_what_takes_long_is_a_call", "test_programs_of_other_lengths_are_no_plans"),
    (TEXTS, "compiler/test_blocks.py"),
    (TEXTS, "lax/test_whole.py", "test_once_compiled_it_is_not_run",
     "test_floats_are_arguments_where_programs_do_not_wait"),
    (GRAPHS, "compiler/test_bounds.py"),
    (GRAPHS, "compiler/test_cascades.py"),
    (GRAPHS, "compiler/test_contraction.py"),
    (GRAPHS, "compiler/test_control.py"),
    (GRAPHS, "compiler/test_elementwise.py"),
    (GRAPHS, "compiler/test_epilogues.py"),
    (GRAPHS, "compiler/test_extremes.py"),
    (ACCURACY, "compiler/test_multiply_adds.py", "test_products_are_rounded_with_their_sums",
     "test_what_something_else_reads_is_rounded_by_itself_for_that"),
    (TEXTS, "compiler/test_cuts.py", "test_sums_of_many_terms_store_sums_and_no_terms"),
    (TEXTS, "compiler/test_multiply_adds.py", "test_nothing_is_multiplied_by_one"),
    (GRAPHS, "compiler/test_fission.py"),
    (GRAPHS, "compiler/test_ordering.py"),
    (GRAPHS, "compiler/test_pauses.py"),
    (TEXTS, "compiler/test_lengths.py"),
    (TEXTS, "compiler/test_streams.py"),
    (TEXTS, "compiler/test_staged.py"),
    (TEXTS, "compiler/test_stages.py", "test_what_hangs_on_constants_of_a_long_function_is_computed_before_the_loop"),
    (TEXTS, "compiler/test_seams.py", "test_rows_with_a_border_above_are_one_loop", "test_lengths_share_what_is_cut"),
    (TEXTS, "compiler/test_few_channels.py", "test_lanes_are_places"),
    (TEXTS, "compiler/test_gathers.py", "test_few_elements_are_computed_and_none_joined",
     "test_what_is_taken_twice_is_read_once"),
    (TEXTS, "compiler/test_narrowing.py", "test_no_row_of_places_has_64_bits"),
    (TEXTS, "compiler/test_in_turn.py", "test_nothing_is_divided"),
    (TEXTS, "compiler/test_reshapes.py", "test_indices_are_not_divided"),
    (TEXTS, "compiler/test_ahead.py", "test_rows_at_computed_places_of_large_arrays_are_fetched"),
    (TEXTS, "compiler/test_sums_of_rows.py",
     "test_rows_are_written_once_past_the_caches_and_updates_are_fetched_before"),
    (TEXTS, "compiler/test_one_each.py", "test_a_cross_entropy_and_its_gradient_are_one_pass"),
    (TEXTS, "compiler/test_splitting.py", "test_nothing_is_divided", "test_few_heads_whose_lanes_run_elsewhere"),
    (TEXTS, "compiler/test_narrow_rows.py", "test_no_byte_is_gathered"),
    (TEXTS, "compiler/test_shared_places.py", "test_small_elements_are_read_before_they_are_folded"),
    (TEXTS, "compiler/test_short_rows.py", "test_lanes_are_full_where_few_channels_are_folded"),
    (TEXTS, "compiler/test_chosen_lanes.py", "test_arrays_that_are_made_of_no_argument_stand_between_no_kernels",
     "test_lanes_are_chosen_and_no_bits_are_shuffled"),
    (TEXTS, "compiler/test_elements.py", "test_what_is_taken_apart_has_no_lanes", "test_whole_vectors_have_lanes",
     "test_slots_are_copied_as_they_are_read", "test_copies_of_slots_tell_their_sizes"),
    (GRAPHS, "compiler/test_random_programs.py"),
    (GRAPHS, "compiler/test_row_sorting.py"),
    (GRAPHS, "compiler/test_rows.py"),
    (GRAPHS, "compiler/test_structure.py"),
    (GRAPHS, "compiler/test_stack_runtime.py"),
    (GRAPHS, "compiler/test_targets.py"),
    (DISK, "runtime/test_linking.py"),
    (GRAPHS, "compiler/test_threads.py"),
    (GRAPHS, "compiler/test_vector_math.py"),
    (GRAPHS, "compiler/test_lookup.py"),
    (GRAPHS, "compiler/test_interpret.py"),
    (GRAPHS, "compiler/test_turning.py"),
    (GRAPHS, "compiler/test_bands.py", "test_which_reductions_are_taken_in_bands", "test_the_null_device_folds_bands"),
    (GRAPHS, "compiler/test_masks.py", "test_what_is_mostly_padding_is_computed_first",
     "test_what_is_computed_for_a_pad_is_computed_before_it_where_the_border_is_wide"),
    (TEXTS, "compiler/test_insets.py", "test_a_stencil_is_one_pass", "test_borders_are_set_where_the_array_is_made",
     "test_dynamic_slices_at_known_places", "test_functions_under_a_border_are_computed_there",
     "test_parts_of_loops_are_known_there", "test_small_parts_are_written_over_arrays_that_are_there",
     "test_the_gradient_of_a_stencil_has_no_copies", "test_an_update_at_a_computed_place_is_in_the_pass_around_it",
     "test_an_update_of_a_carry_stays_one"),
    (ACCURACY, "compiler/test_small_matrices.py",
     "test_eigenvalues_of_diagonal_matrices_are_the_diagonal_and_one_triangle_is_read"),
    (TEXTS, "compiler/test_apart.py", "test_few_long_rows_are_left_to_threads"),
    (TEXTS, "compiler/test_constants.py", "test_what_changes_nothing_vanishes",
     "test_remainders_of_numbers_without_a_sign_are_not_corrected",
     "test_what_is_divided_by_a_power_of_two_is_cheap", "test_a_choice_of_two_numbers_costs_two_functions",
     "test_rows_that_are_spread_are_computed_once", "test_scalars_do_not_stand_between_loops"),
    (TEXTS, "compiler/test_kinds.py", "test_products_of_one_term_each_are_elementwise"),
    (BITS, "compiler/test_sharing_loads.py", "test_a_row_is_summed_as_it_is_alone"),
    (TEXTS, "transform/test_slow.py", "test_a_function_is_told_once_with_its_line_its_parts_and_its_equations",
     "test_stages_and_programs_of_derivatives_are_told_of_too", "test_tracing_counts"),
    (TEXTS, "compiler/test_turns.py", "test_the_program_says_so"),
    (MEMORY, "transform/test_jit.py", "test_arrays_keep_the_order_that_programs_read"),
    (TEXTS, "compiler/test_intervals.py", "test_an_index_that_is_never_beyond_is_used_as_it_is"),
    (GRAPHS, "compiler/test_found_by_search.py", "test_running_folds_over_nothing_write_nothing",
     "test_numbers_that_are_results_are_no_array_where_they_are_read",
     "test_parts_are_read_where_they_lie_by_a_choice_too"),
    (GRAPHS, "compiler/test_library.py", "test_cholesky_and_triangular_solve",
     "test_cholesky_of_an_indefinite_matrix_is_nan", "test_factorisations", "test_eigenvalues",
     "test_batches_shared_out_among_threads", "test_tridiagonal_solve", "test_fft"),
    (DISK, "compiler/test_cache.py", "test_second_compilation_reads_the_code",
     "test_damaged_entries_are_ignored_and_replaced", "test_untrusted_entries_are_ignored",
     "test_off_switch_and_unwritable_places"),
    (TEXTS, "compiler/test_cache.py", "test_dump_writes_every_stage"),
    (MEMORY, "compiler/test_donation.py", "test_an_elementwise_result_is_computed_in_place",
     "test_an_update_in_place_does_not_copy", "test_a_loop_carries_the_memory_on",
     "test_a_training_step_updates_all_of_its_state", "test_large_results_use_memory_again_when_the_last_view_dies"),
    (LONG, "compiler/test_interrupts.py",
     "test_an_interrupt_ends_a_loop_within_a_second[a sum that is never stored]",
     "test_an_interrupt_ends_a_loop_within_a_second[an outer sum]", "test_loops_in_other_threads_go_on"),
    (TEXTS, "compiler/test_interrupts.py", "test_a_short_loop_is_not_slowed_by_questions",
     "test_what_takes_seconds_asks_for_signals", "test_work_that_is_interruptible_gives_the_same"),
    (TEXTS, "compiler/test_shared.py", "test_a_second_batch_size_compiles_nothing_again",
     "test_routines_and_short_rows_of_other_lengths_compile_nothing_again",
     "test_another_length_of_rows_compiles_nothing_again", "test_products_of_other_sizes_compile_nothing_again", "test_sorts_of_other_lengths_compile_nothing_again", "test_rows_done_at_once_lie_at_any_distance",
     "test_places_in_other_lengths_compile_nothing_again", "test_what_is_equal_by_chance_is_not_in_the_text_of_an_entry",
     "test_entries_that_only_call_take_llvm_no_effort",
     "test_equal_products_are_written_once_whatever_comes_after_them",
     "test_many_small_arrays_are_done_by_few_functions", "test_the_entry_of_a_training_step_only_calls",
     "test_code_lives_as_long_as_a_program_that_calls_it", "test_programs_say_what_they_linked", "test_what_runs_a_program_keeps_the_code_of_its_kernels",
     "test_threads_compile_and_free_the_same_kernels_at_once"),
    (DISK, "compiler/test_shared.py", "test_a_second_run_finds_on_disk_what_it_links"),
    (DISK, "compiler/test_stored_programs.py", "test_programs_under_the_names_of_others_are_compiled_again",
     "test_donated_arguments_and_the_program_s_text", "test_flags_types_and_donation_are_part_of_the_name",
     "test_threads_are_part_of_the_name", "test_damaged_entries_are_made_again",
     "test_a_program_whose_code_is_gone_is_made_again"),
    (TEXTS, "compiler/test_checks.py", "test_programs_without_checks_are_what_they_were",
     "test_debug_nans_run_nothing_twice"),
    (TEXTS, "house/test_docs.py", "test_examples[debugging.md]"),
    (TEXTS, "lax/test_sorting.py", "test_what_numpy_would_work_on_for_long_is_a_program_at_once"),
    (MEMORY, "runtime/test_buffers.py", "test_temporaries_of_programs_that_do_not_run_go_back_at_the_second_look"),
    (MEMORY, "runtime/test_hostile_inputs.py", "test_compiling_with_too_little_memory_is_an_error_and_not_the_end"),
    (TEXTS, "core/test_core.py", "test_dumping_the_stages"),
    (DISK, "core/test_core.py", "test_the_cache_on_disk"),
    (TEXTS, "house/test_docs.py", "test_examples[compiler.md]"),
    (TEXTS, "house/test_checked_mode.py"),
    (ROUTINES, "numpy/test_reductions.py", "test_large_arrays_of_short_rows_come_to_a_program"),
    (ROUTINES, "house/test_machines.py", "test_eager_and_compiled_code_call_the_same_routine"),
    (DISK, "house/test_machines.py", "test_programs_on_disk_are_those_of_this_library"),
    (TEXTS, "compiler/test_program.py", "test_what_is_wrong_is_found", "test_a_launch_that_writes_what_it_reads_says_so",
     "test_the_passes_are_shown_one_by_one", "test_a_profile_has_every_step_and_how_often_it_ran",
     "test_every_kind_of_step_can_be_written", "test_memory_of_an_argument_is_taken_when_nobody_reads_it_any_more",
     "test_rows_that_are_added_are_computed_where_they_go",
     "test_what_an_update_makes_a_result_of_is_computed_where_that_goes"),
    (TEXTS, "src/catena/transform/jit.py", "catena.transform.jit.JitFunction.profile"),
    (TEXTS, "src/catena/transform/profile.py", "catena.transform.profile.Profile.save"),
    (TEXTS, "house/test_docs.py", "test_examples[profiling.md]"),
    (TEXTS, "transform/test_explain.py", "test_rows_products_and_places", "test_loops_and_branches_are_shown_inside",
     "test_library_calls_sorts_and_scatters", "test_a_function_that_needs_no_arguments_is_explained_as_called_without"),
    (MEMORY, "lax/test_refs.py", "test_a_hundred_megabytes_are_updated_a_million_times_in_place",
             "test_memory_stays_where_it_is_whoever_writes"),
    (TEXTS, "lax/test_refs.py", "test_stages_show_programs_on_references"),
    (TEXTS, "transform/test_jit.py", "test_stages", "test_a_program_is_compiled_once_by_all_threads"),
    (THREADS, "runtime/test_threads_and_forks.py", "test_a_child_of_a_fork_finds_no_lock_taken",
     "test_a_fork_waits_for_what_another_thread_imports"),
    (ARRAYS, "runtime/test_hostile_inputs.py", "test_empty_values_may_have_any_other_extent"),
    (THREADS, "lax/test_scatter_many.py", "test_the_parts_are_shared_out_among_threads"),
    (ACCURACY, "lax/test_accuracy.py", "test_accurate[lgamma-float64---eager]",
     "test_accurate[lgamma-float64---compiled]", "test_accurate[erfc-float64---eager]",
     "test_accurate[erfc-float64---compiled]", "test_accurate_functions_of_several_arguments[pow-eager]",
     "test_accurate_functions_of_several_arguments[pow-compiled]"),
    (ACCURACY, "random/test_vectors.py", *(f"test_recorded_values[{name}]" for name in (
        "ball", "f", "gamma", "loggamma", "lognormal", "nn.initializers.glorot_normal", "normal", "normal_vmap_split",
    ))),
    (ACCURACY, "random/test_random.py", "test_flags"),
    (ACCURACY, "src/catena/random/normal_family.py", "catena.random.normal_family.normal", "catena.random.normal_family.truncated_normal"),
    (ACCURACY, "src/catena/nn/activations.py", *(f"catena.nn.activations.{name}" for name in ("mish", "sigmoid", "silu"))),
    (ACCURACY, "src/catena/scipy/special/error_functions.py", "catena.scipy.special.error_functions.erf"),
    (ACCURACY, "src/catena/scipy/special/gamma_functions.py", "catena.scipy.special.gamma_functions.loggamma"),
    (ACCURACY, "house/test_docs.py", "test_the_gallery_of_errors_is_current"),
    (BITS, "lax/test_same_bits.py", "test_functions_of_the_numpy_api"),
    (BITS, "compiler/test_packing.py", "test_a_row_has_the_same_bits_however_many_are_with_it",
     "test_left_operands_of_a_batch_are_copied_where_their_terms_lie_far_apart"),
    (DISK, "lax/test_same_bits.py", "test_a_loop_without_an_image_is_loaded_by_llvm",
     "test_a_process_finds_loops_without_loading_llvm", "test_loops_are_made_in_checked_mode_too"),
    (DISK, "random/test_stored.py", "test_changed_source_is_never_kept", "test_only_the_packages_own_are_kept",
     "test_damaged_programs_are_made_again", "test_the_machine_is_part_of_the_name"),
]  # fmt: skip


HERE = Path(__file__).resolve().parent.parent


def whole_file_reason(path: Path) -> str | None:
    """Why a file of tests is skipped; ``None`` where it is read."""
    return next((reason for reason, file, *tests in ROWS if not tests and path == HERE / file), None)


def reason_to_skip(name: str) -> str | None:
    """Why a test is skipped, by its name as pytest shows it; ``None`` where it runs."""
    file, _, test = name.removeprefix("tests/").partition("::")
    for reason, skipped, *tests in ROWS:
        if file == skipped and (test in tests or test.partition("[")[0] in tests):
            return reason
    return None
