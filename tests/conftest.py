"""Which tests are slow, or audits: `make test` leaves out both, `make test-slow` runs the slow ones."""

import re

import pytest
from hypothesis import settings

settings.register_profile("any machine", deadline=None)  # seconds say how busy the machine is
settings.load_profile("any machine")

AUDITS = (
    "core/mechanisms/test_ordered_search.py::test_probabilities_of_the_found_point_are_close_for_neighbors*",
    "core/one_cluster/practical/test_both_at_once.py::test_the_draws_are_those_of_two_passes*",
    "core/sample_and_aggregate/test_aggregator.py::test_every_promise_holds*",
    "core/statistics/test_ranks.py::test_promises_hold_in_every_group*",
    "core/threshold/test_interior_point.py::test_ranks_are_as_private_as_charged*",
    "pipelines/choose/test_solve.py::test_the_solved_epsilon_is_nearly_the_smallest*",
    "pipelines/simulation/test_simulate.py::test_promises_hold_on_made_up_rows_in_any_units*",
    "pipelines/test_sample_and_aggregate.py::test_a_function_that_returns_its_first_row_gains_nothing*",
    "pipelines/test_sample_and_aggregate.py::test_attacks_in_every_block_end_in_not_found*",
)
"""Long tests beside those that have the mark `audit`; see `SLOW`. Shorter ones of the same kind stay."""

SLOW = (
    "benchmarks/test_every_benchmark.py::test_it_runs_to_its_end*",
    "benchmarks/test_papers.py::test_the_smallest_form_writes_tables_and_figures[one-cluster*",
    "core/graphs/test_cuts.py::test_spanning_costs_equal_brute_force*",
    "core/histogram/test_constraints.py::test_random_constraints_are_covered*",
    "core/histogram/test_expected.py::test_auto_errs_little_more_than_the_better_method*",
    "core/k_cover/test_repeated.py*",
    "core/mechanisms/test_above_threshold.py::test_it_draws_that_distribution*",
    "core/mechanisms/test_choosing.py::test_it_reaches_its_delta_and_no_more*",
    "core/mechanisms/test_ordered_search.py::test_no_answers_lose_more_than_is_charged*",
    "core/mechanisms/test_splits.py::test_outcomes_of_neighbors_are_as_likely_as_charged*",
    "core/one_cluster/practical/test_ball_cover.py::test_crowded_balls_are_those_of_all_balls*",
    "core/one_cluster/practical/test_guarantee.py::test_promise_holds*",
    "core/one_cluster/practical/test_method.py::test_a_small_planted_ball_is_found*",
    "core/one_cluster/practical/test_method.py::test_good_radius_costs_what_the_plan_charges*",
    "core/one_cluster/practical/test_method.py::test_planted_ball_is_found*",
    "core/quantiles/test_brackets.py::test_a_point_and_a_candidate_are_chosen*",
    "core/quantiles/test_brackets.py::test_intervals_are_about_as_wide*",
    "core/quantiles/test_choice.py::test_auto_is_near_the_best*",
    "core/quantiles/test_exponential.py::test_neighbors_are_as_likely_as_charged*",
    "core/quantiles/test_exponential.py::test_the_promise_is_reached_where_all_rows_have_the_highest_value*",
    "core/quantiles/test_exponential.py::test_no_worse_than_quantiles_with_that_one_probability*",
    "core/quantiles/test_recursive.py::test_the_promise_of_nine_quantiles_in_a_wide_domain*",
    "core/quantiles/test_intervals.py::test_intervals_hold_the_true_quantiles*",
    "core/quantiles/test_task.py::test_huge_universes_and_many_quantiles*",
    "core/sample_and_aggregate/test_aggregator.py::test_auto_takes_no_method_whose_own_promise_is_void*",
    "core/sample_and_aggregate/test_aggregator.py::test_failed_blocks_are_counted_and_charged*",
    "core/sample_and_aggregate/test_aggregator.py::test_no_radius_is_released_where_nothing_is_promised_about_it*",
    "core/sample_and_aggregate/test_task.py::test_the_budget_is_spent_and_no_more*",
    "core/test_aggregate.py::test_every_subset_is_as_likely*",
    "core/test_composition.py::test_gaussian_draws_beside_others_are_covered_and_not_much_looser*",
    "core/test_composition.py::test_own_deltas_are_spent_beside_what_composition_takes*",
    "core/test_composition.py::test_pure_draws_spend_what_they_cost_and_no_more*",
    "core/test_composition.py::test_real_noise_costs_no_more_than_it_is_charged*",
    "core/test_discrete_noise.py::test_draws_one_by_one_have_the_distribution*",
    "core/test_discrete_noise.py::test_every_word_gives_the_step_that_inversion_gives*",
    "core/test_discrete_noise.py::test_every_word_proposes_as_the_distribution_says*",
    "core/test_draws.py::test_disjoint_parts_cost_as_much_as_the_worst_way_to_change_them[gaussian*",
    "core/test_focus.py::test_few_counts_are_held_for_quantiles*",
    "core/test_focus.py::test_stages_of_quantiles_are_those_of_all_points*",
    "core/test_secure_noise.py::test_selection_is_the_exponential_mechanism*",
    "core/threshold/test_exponential.py::test_thresholds_are_chosen_by_the_exponential_mechanism*",
    "core/threshold/test_exponential.py::test_on_the_hardest_examples_the_promise_is_what_is_measured*",
    "engines/*",
    "pipelines/compare/test_compare.py::test_rows_that_each_run_draws_anew*",
    "pipelines/choose/test_solve.py::test_a_target_and_a_number_of_blocks_are_solved_for*",
    "pipelines/choose/test_solve.py::test_the_solved_epsilon_keeps_its_promise_on_made_up_rows*",
    "pipelines/choose/test_sweep.py::test_every_point_is_the_plan_at_its_value*",
    "pipelines/choose/test_sweep.py::test_typical_errors_are_those_of_the_plan_or_of_runs*",
    "pipelines/compare/test_compare.py::test_a_run_and_its_job_have_the_same_plan*",
    "pipelines/compare/test_compare.py::test_noise_explains_the_changes_between_releases_of_the_same_rows*",
    "pipelines/console/test_exit.py::test_it_would_wait_forever_otherwise*",
    "pipelines/console/test_streams.py::test_every_name_can_be_written*",
    "pipelines/describe/test_columns.py::test_a_run_describes_every_column*",
    "pipelines/ledger/test_ledger.py::test_many_small_runs_fit_a_ledger_that_composes_draws*",
    "pipelines/ledger/test_promise.py::test_a_full_ledger_has_used_most_of_its_promise*",
    "pipelines/ledger/test_promise.py::test_all_runs_of_a_ledger_keep_its_promise[*renyi-budget2]",
    "pipelines/run/test_cost.py::test_a_function_that_is_not_there*",
    "pipelines/run/test_cost.py::test_a_date_may_be_a_value_and_a_key*",
    "pipelines/report/test_draw.py::test_every_variant_has_pictures_too*",
    "pipelines/report/test_summary.py*",
    "pipelines/run/test_cost.py::test_looks_are_passes*",
    "pipelines/test_large_noise.py::test_a_plan_has_noise_that_fits_or_is_refused*",
    "pipelines/run/test_cost.py::test_rows_of_units_go_through_the_runner*",
    "pipelines/run/test_cost.py::test_rows_of_units_wait_on_disk*",
    "pipelines/run/test_cost.py::test_what_is_predicted*",
    "pipelines/run/test_dry_run.py*",
    "pipelines/run/test_import_function.py::test_a_plan_says_what_a_run_refuses*",
    "pipelines/run/test_progress.py::test_a_run_counts_every_piece_of_the_steps_that_are_expected*",
    "pipelines/run/test_run.py::test_demo_runs_twice*",
    "pipelines/run/test_run.py::test_replace_one_runs*",
    "pipelines/run/test_run.py::test_report_of_other_dimensions*",
    "pipelines/run/test_runners.py::test_dataflow_would_take_the_job*",
    "pipelines/run/test_salt.py*",
    "pipelines/simulation/test_simulate.py::test_a_function_leaves_nothing_either*",
    "pipelines/simulation/test_simulate.py::test_errors_are_those_of_the_noise*",
    "pipelines/simulation/test_simulate.py::test_nothing_is_written_charged_or_sent*",
    "pipelines/test_bad_input.py::test_odd_rows_are_no_errors*",
    "pipelines/test_bounds.py::test_the_domain_of_the_answer_is_that_of_the_next_job",
    "pipelines/test_checks.py::test_counts_are_released_with_noise*",
    "pipelines/test_checks.py::test_the_default_costs_a_task_one_percent_of_its_accuracy*",
    "pipelines/test_dates.py::test_a_mean_of_dates_has_a_time_of_the_day",
    "pipelines/test_dates.py::test_questions_about_dates_and_numbers_share_a_run",
    "pipelines/test_dates.py::test_rows_are_screened_by_a_ball_of_dates",
    "pipelines/test_dates.py::test_tables_have_the_types_of_dates",
    "pipelines/test_element_counts.py::test_neither_do_the_parts_of_a_table*",
    "pipelines/test_element_counts.py::test_neither_does_it_for_groups*",
    "pipelines/test_element_counts.py::test_neither_does_it_for_several_questions*",
    "pipelines/test_element_counts.py::test_neither_does_the_size_of_a_row_group*",
    "pipelines/test_element_counts.py::test_the_number_of_elements_does_not_depend_on_the_rows*",
    "pipelines/test_every_charge.py::test_some_neighbors_lose_in_all_groups*",
    "pipelines/test_every_date.py::test_dates_are_the_steps_of_numbers*",
    "pipelines/test_every_date.py::test_units_are_those_of_numbers",
    "pipelines/test_every_group.py::test_all_groups_together_spend*",
    "pipelines/test_every_order.py*",
    "pipelines/test_every_plan.py::test_nothing_but_noise[*-first]",
    "pipelines/test_every_plan.py::test_nothing_but_noise[*-nothing]",
    "pipelines/test_every_policy.py*",
    "pipelines/test_every_promise.py*",
    "pipelines/test_every_sample.py*",
    "pipelines/test_every_sensitivity.py::test_what_a_draw_spends_is_charged[*-at_the_floor]",
    "pipelines/test_every_sensitivity.py::test_what_a_draw_spends_is_charged[*-two_clumps]",
    "pipelines/test_every_sensitivity.py::test_what_a_draw_spends_is_charged[k_cover*",
    "pipelines/test_every_sensitivity.py::test_what_a_draw_spends_is_charged[questions-*",
    "pipelines/test_every_smooth_bound.py*",
    "pipelines/test_files.py::test_a_run_reads_csv*",
    "pipelines/test_geography.py::test_a_ball_across_the_date_line_is_found_and_screened[k_cover*",
    "pipelines/test_geography.py::test_a_ball_across_the_date_line_is_found_and_screened[one_cluster-domain1*",
    "pipelines/test_geography.py::test_centers_are_places[k_median*",
    "pipelines/test_geography.py::test_places_of_a_unit_become_one[mean*",
    "pipelines/test_geography.py::test_what_is_left_out_and_moved*",
    "pipelines/test_grouped_questions.py::test_each_group_of_a_question_has_the_aggregates*",
    "pipelines/test_grouped_questions.py::test_one_release_has_all_groups*",
    "pipelines/test_groups.py::test_a_report_shows_some_groups*",
    "pipelines/test_groups.py::test_changed_groups_are_one_sentence*",
    "pipelines/test_groups.py::test_commands_on_groups*",
    "pipelines/test_groups.py::test_each_group_has_the_aggregates*",
    "pipelines/test_groups.py::test_names_of_table_columns_are_taken*",
    "pipelines/test_groups.py::test_one_release_has_an_answer*",
    "pipelines/test_groups.py::test_the_ledger_is_charged_once*",
    "pipelines/test_hostile_files.py*",
    "pipelines/test_output_id.py*",
    "pipelines/test_questions.py::test_a_policy_of_questions_has_no_ledger*",
    "pipelines/test_questions.py::test_a_stored_table_stays_and_other_noise_is_refused*",
    "pipelines/test_questions.py::test_each_question_has_the_aggregates_of_a_run_of_its_own*",
    "pipelines/test_questions.py::test_one_policy_is_that*",
    "pipelines/test_questions.py::test_statistics_by_group_stand_beside_other_questions*",
    "pipelines/test_questions.py::test_the_ledger_is_charged_once_for_all_draws*",
    "pipelines/test_questions.py::test_units_run_too*",
    "pipelines/test_count.py::test_counts_are_the_same_as_rows*",
    "pipelines/test_count.py::test_every_task_runs_on_counts*",
    "pipelines/test_rows.py::test_every_task_runs_on_prepared_rows*",
    "pipelines/test_rows.py::test_the_number_of_elements_does_not_depend_on_what_is_kept*",
    "pipelines/test_sample_and_aggregate.py::test_a_process_imports_scikit_learn_where_its_function_needs_it*",
    "pipelines/test_sample_and_aggregate.py::test_check_function_says_what_is_wrong[mean_sleepily*",
    "pipelines/test_sample_and_aggregate.py::test_clusters_that_the_first_column_does_not_tell_apart_are_matched_to_anchors*",
    "pipelines/test_statistics.py::test_a_pipeline_bounds_contributions_as_memory_does*",
    "pipelines/test_statistics.py::test_a_pipeline_releases_what_memory_does*",
    "pipelines/test_statistics.py::test_quantiles_and_extremes_by_group*",
    "pipelines/test_memory.py*",
    "pipelines/test_statistics.py::test_sums_that_are_clamped_for_each_unit*",
    "pipelines/test_systems.py*",
    "pipelines/test_table.py::test_a_foreign_file_is_not_taken_for_a_part*",
    "pipelines/test_table.py::test_a_part_of_another_job_is_not_taken*",
    "pipelines/test_table.py::test_another_random_row_of_a_unit_does_not_join_parts*",
    "pipelines/test_table.py::test_parts_that_are_there_stay*",
    "pipelines/test_tasks.py::test_a_policy_that_buys_nothing_gives_up_nothing*",
    "pipelines/test_tasks.py::test_an_empty_table_is_no_error*",
    "pipelines/test_tasks.py::test_every_task_is_one_job_that_dataflow_takes*",
    "pipelines/test_tasks.py::test_one_value_many_times_is_no_error*",
    "pipelines/test_tasks.py::test_policies_run*",
    "pipelines/test_units.py::test_every_task_of_rows_runs_with_units*",
    "pipelines/test_units.py::test_few_people_with_many_rows_decide_nothing*",
    "pipelines/test_units.py::test_the_release_plan_and_report_speak_of_units*",
    "pipelines/test_units.py::test_what_is_counted_are_units*",
    "pipelines/test_wide.py*",
    "shoal/test_beam.py::test_batches_give_the_release_of_a_file*",
    "shoal/test_beam.py::test_the_number_of_elements*",
    "shoal/test_beam.py::test_what_a_job_does_to_rows*",
    "shoal/test_choose.py*",
    "shoal/test_shown.py::test_groups_of_a_question_have_an_answer_each*",
    "test_examples.py::test_an_example_runs*",
    "test_examples.py::test_the_notebook_runs*",
    "test_examples.py::test_the_quick_start_can_be_followed*",
    "test_examples.py::test_the_tutorial_can_be_followed*",
    "transforms/test_bound_units.py::test_a_unit_more_or_less_is_one_record_more_or_less*",
    "transforms/test_bound_units.py::test_beam_gives_what_memory_gives*",
    "transforms/test_bound_units.py::test_records_do_not_depend_on_order_files_or_row_groups*",
    "transforms/test_draw_parts.py::test_all_parts_together_are_the_table_in_memory[two_*",
    "transforms/test_embedded_runner.py::test_elements_that_are_slow_to_encode_arrive_whole*",
    "transforms/test_embedded_runner.py::test_no_bundle_is_empty_where_another_has_elements*",
    "transforms/test_evaluate_expression.py::test_arrow_agrees_with_python_row_by_row*",
    "transforms/test_evaluate_expression.py::test_no_row_sees_another*",
    "transforms/test_evaluate_subsamples.py::test_beam_gives_what_memory_gives*",
    "transforms/test_evaluate_subsamples.py::test_every_aggregator_in_beam*",
    "transforms/test_evaluate_subsamples.py::test_one_unit_more_changes_one_answer_and_a_replaced_one_two*",
    "transforms/test_evaluate_subsamples.py::test_what_is_sent_of_a_block_depends_on_its_own_rows_alone*",
    "shoal/test_estimators.py::test_scikit_learn_checks_hold*",
    "transforms/test_run_function.py::*[sandbox*",
    "transforms/test_run_function.py::test_a_function_that_waits_has_more_time_than_one_that_computes*",
    "transforms/test_run_function.py::test_an_attack_has_no_answer_and_touches_no_other*",
    "transforms/test_run_function.py::test_nothing_that_the_module_made_while_it_was_imported_reaches_the_next*",
    "transforms/test_run_strands.py::test_every_strand_is_what_it_is_alone*",
    "transforms/test_spill.py::test_rows_do_not_go_through_a_runner_in_this_process[multi_*",
    "transforms/test_whole_file.py::test_whole_files_in_a_process_without_threads*",
)
"""Tests as pytest names them, below tests/; `*` stands for any text."""


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(pattern).replace(r"\*", ".*") for pattern in patterns))


_SLOW, _AUDITS = _any_of(SLOW), _any_of(AUDITS)


def is_slow(place: str) -> bool:
    """Say whether a test is slow.

    Args:
        place: as pytest names it, below tests/.
    """
    return _SLOW.fullmatch(place) is not None


def is_audit(place: str) -> bool:
    """Say whether a test is an audit; see `is_slow`."""
    return _AUDITS.fullmatch(place) is not None


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.nodeid.removeprefix("tests/")
        if is_slow(place):
            item.add_marker(pytest.mark.slow)
        if is_audit(place):
            item.add_marker(pytest.mark.audit)
