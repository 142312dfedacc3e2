"""The null device: with `CATENA_TEST_DEVICE=null`, every program is compiled, and then interpreted instead of run.

So every test of compiled programs asks the interpreter (`catena.compiler.interpret`) for its results. Programs that are
given stacks, or give them back, run as they are: these are addresses in native memory.
"""

from __future__ import annotations

import threading

import numpy as np

from catena.compiler.interpret.program import run
from catena.compiler.native import compile as compiler
from catena.compiler.plan.program import Program
from catena.compiler.plan.steps import NewStack, ReadStack, StackLength, WriteStack
from catena.runtime import kernels

_planned = threading.local()

BITS = "native sums keep their order, and native functions their roundings, in every program: the interpreter does not"
NATIVE = "this is about what native code says: where its threads fail first, what it refuses, what a process stores"
ROWS = [  # reasons, files and tests that are skipped
    (BITS, "compiler/test_constants.py", "test_powers_have_their_bits_whatever_tells_the_exponent",
     "test_powers_of_complex_numbers_that_are_products"),
    (BITS, "compiler/test_cascades.py", "test_columns_beside_others_have_the_sums_that_they_have_alone"),
    (BITS, "compiler/test_amx.py", "test_eager_products_have_the_bits_of_compiled_ones",
     "test_bits_hang_on_a_row_and_a_column_alone"),
    (BITS, "compiler/test_lengths.py", "test_programs_at_other_lengths_are_those_that_are_compiled",
     "test_some_lengths_are_not_planned[filters]",
     "test_around_the_work_that_threads_share_a_plan_serves", "test_sizes_that_are_the_same_by_chance_are_of_one_plan"),
    (BITS, "compiler/test_small_products.py", "test_short_sums_have_the_bits_that_they_have_in_smaller_results"),
    (BITS, "compiler/test_split_products.py", "test_eager_products_have_the_bits_of_compiled_ones"),
    (BITS, "compiler/test_blocks.py", "test_bits_are_those_of_stored_scores", "test_layers_in_a_loop_and_recomputed",
     "test_lengths_that_are_planned_by_others"),
    (BITS, "compiler/test_few_columns.py", "test_a_batch_has_the_bits_of_its_members",
     "test_rows_have_the_bits_of_fewer_rows", "test_each_column_has_the_bits_of_a_product_with_it_alone"),
    (BITS, "compiler/test_fresh_lengths.py", "test_a_fresh_length_has_the_bits_of_a_program_alone"),
    (BITS, "compiler/test_settled.py", "test_other_lengths_compute_theirs"),
    (BITS, "compiler/test_held_arrays.py", "test_other_lengths_are_looked_up"),
    (BITS, "compiler/test_gathers.py", "test_takes_of_what_is_joined"),
    (BITS, "compiler/test_insets.py", "test_functions_under_a_border_are_computed_there"),
    (BITS, "compiler/test_small_matrices.py", "test_sides_do_not_hang_on_each_other",
     "test_unknowns_do_not_hang_on_those_that_are_found_later"),
    (BITS, "compiler/test_joins.py", "test_rows_have_the_bits_of_rows_alone"),
    (BITS, "compiler/test_neighbours.py", "test_whatever_surrounds_a_reduction"),
    (BITS, "compiler/test_packing.py", "test_a_row_has_the_same_bits_however_many_are_with_it"),
    (BITS, "compiler/test_rows.py", "test_a_row_has_the_number_that_it_has_alone"),
    (BITS, "compiler/test_shared.py", "test_a_row_of_a_product_does_not_hang_on_its_tile",
     "test_programs_of_one_text_have_the_bits_of_programs_alone"),
    (BITS, "compiler/test_sharing_loads.py", "test_a_row_is_summed_as_it_is_alone"),
    (BITS, "compiler/test_splitting.py", "test_quotients_of_quotients", "test_sums_beside"),
    (BITS, "compiler/test_stacked.py", "test_the_bits_are_those_of_the_stack"),
    (BITS, "compiler/test_subnormal_products.py", "test_sums_that_are_subnormal",
     "test_sums_of_normal_numbers_that_are_subnormal", "test_products_of_normal_numbers_that_are_subnormal",
     "test_values_hang_on_their_row_and_column_alone", "test_the_same_in_a_batch_with_an_epilogue_and_eagerly",
     "test_rows_and_columns_without_any_have_the_bits_that_they_have_elsewhere"),
    (BITS, "compiler/test_stages.py", "test_a_scalar_operand_gives_the_bits_of_an_array_of_it",
     "test_an_operand_of_each_row_gives_the_bits_of_an_array_of_it",
     "test_rows_shorter_than_a_vector_are_given_what_the_first_stage_computed"),
    (BITS, "compiler/test_taken_first.py", "test_they_have_the_bits_of_the_whole", "test_in_a_loop_and_under_vmap"),
    (BITS, "compiler/test_trimming.py", "test_what_is_joined_computed_and_taken_apart_has_the_same_elements"),
    (BITS, "compiler/test_widened.py", "test_the_bits_are_those_of_a_matrix_that_was_widened"),
    (BITS, "lax/test_whole.py", "test_numpy_arrays_have_the_bits_of_arrays", "test_names_of_dtypes_are_dtypes",
     "test_what_converts_itself_has_the_bits_of_its_array"),
    (BITS, "random/test_arguments.py", "test_the_stream_is_that_of_the_flag_where_the_program_is_written"),
    (BITS, "random/test_random.py", "test_plans_of_distributions_with_parameters", "test_eager_draws_equal_compiled_ones",
     "test_flags"),
    (BITS, "numpy/test_averages.py", "test_values[mean-256]", "test_values[std, masked-256]"),
    (BITS, "numpy/test_creation.py", "test_logspace_has_the_bits_of_compiled_programs"),
    (BITS, "numpy/test_hot.py", "test_numpys_numbers_are_arrays_without_axes",
     "test_long_arrays_have_the_bits_of_a_program_however_often",
     "test_a_long_array_has_the_bits_of_a_program_however_often",
     "test_folds_of_many_numbers_have_the_bits_of_a_program"),
    (NATIVE, "compiler/test_careful.py", "test_they_are_compiled_when_there_are_such_numbers",
     "test_programs_that_are_found_on_disk_find_them", "test_none_where_they_count_as_zeros"),
    (NATIVE, "compiler/test_checks.py", "test_debug_nans_run_nothing_twice",
     "test_large_arrays_report_the_first_element_on_any_thread"),
    (NATIVE, "compiler/test_fresh_lengths.py", "test_another_process_finds_the_same_bits"),
    (NATIVE, "compiler/test_program.py", "test_a_profile_has_every_step_and_how_often_it_ran"),
    (NATIVE, "compiler/test_program.py", "test_products_are_held_against_those_of_their_dtype"),
    (NATIVE, "compiler/test_stored_programs.py", "test_another_process_compiles_nothing"),
    (NATIVE, "compiler/test_structure.py", "test_arguments_that_are_not_contiguous"),
]  # fmt: skip


class Interpreted:
    """An executable whose results are the interpreter's; all else is the compiled one's."""

    def __init__(self, executable, program: Program):
        self._executable, self._program = executable, program

    def __getattr__(self, name: str):
        return getattr(self._executable, name)

    def __call__(self, *args: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(run(self._program, args))

    def entry(self, args: tuple, outs: tuple) -> int:
        for out, result in zip(outs, run(self._program, args), strict=False):
            kernels.view(out.ctypes.data, out.shape, out.dtype)[...] = result  # arrays that are given up are read-only
        return 0


def install() -> None:
    """Makes the compiler give out interpreted programs."""
    plan, compile_region = compiler.plan, compiler.compile_region

    def planned(*args):
        _planned.program = plan(*args)
        return _planned.program

    def interpreted(region, *args, **named):
        executable = compile_region(region, *args, **named)
        program = _planned.program
        return executable if _exchanges_stacks(program) else Interpreted(executable, program)

    compiler.plan, compiler.compile_region = planned, interpreted


def _exchanges_stacks(program: Program) -> bool:
    region = program.fused.region
    uses = any(isinstance(step, NewStack | ReadStack | StackLength | WriteStack) for _, step in program.steps())
    return uses and any(v.dtype == np.uint64 for v in (*region.inputs, *region.outputs))
