"""Which tests are slow: `make test` leaves them out, and `make test-engines` runs them."""

from fnmatch import fnmatchcase

import pytest

SLOW = (
    "core/histogram/test_constraints.py::test_random_constraints_are_covered*",
    "core/k_cover/test_repeated.py*",
    "core/mechanisms/test_above_threshold.py::test_it_draws_that_distribution*",
    "core/mechanisms/test_ordered_search.py::test_no_answers_lose_more_than_is_charged*",
    "core/mechanisms/test_ordered_search.py::test_ranks_are_within_the_promised_error*",
    "core/mechanisms/test_ordered_search.py::test_the_typical_error_is_that_of_dense_records*",
    "core/one_cluster/practical/test_guarantee.py::test_promise_holds*",
    "core/one_cluster/practical/test_method.py::test_a_small_planted_ball_is_found*",
    "core/one_cluster/practical/test_method.py::test_good_radius_costs_what_the_plan_charges*",
    "core/one_cluster/practical/test_method.py::test_planted_ball_is_found*",
    "core/quantiles/test_exponential.py::test_no_worse_than_quantiles_with_that_one_probability*",
    "core/sample_and_aggregate/test_aggregator.py::test_auto_is_near_the_best_method*",
    "core/sample_and_aggregate/test_aggregator.py::test_auto_takes_no_method_whose_own_promise_is_void*",
    "core/sample_and_aggregate/test_aggregator.py::test_every_promise_holds*",
    "core/sample_and_aggregate/test_aggregator.py::test_failed_blocks_are_counted_and_charged*",
    "core/sample_and_aggregate/test_aggregator.py::test_no_radius_is_released_where_nothing_is_promised_about_it*",
    "core/test_aggregate.py::test_every_subset_is_as_likely*",
    "core/test_composition.py::test_gaussian_draws_beside_others_are_covered_and_not_much_looser*",
    "core/test_composition.py::test_own_deltas_are_spent_beside_what_composition_takes*",
    "core/test_composition.py::test_pure_draws_spend_what_they_cost_and_no_more*",
    "core/test_composition.py::test_real_noise_costs_no_more_than_it_is_charged*",
    "core/test_draws.py::test_disjoint_parts_cost_as_much_as_the_worst_way_to_change_them[gaussian*",
    "core/test_secure_noise.py::test_selection_is_the_exponential_mechanism*",
    "core/threshold/test_interior_point.py::test_ranks_are_as_private_as_charged*",
    "engines/*",
    "pipelines/ledger/test_ledger.py::test_many_small_runs_fit_a_ledger_that_composes_draws*",
    "pipelines/ledger/test_promise.py::test_a_full_ledger_has_used_most_of_its_promise*",
    "pipelines/ledger/test_promise.py::test_all_runs_of_a_ledger_keep_its_promise[*renyi-budget2]",
    "pipelines/run/test_dry_run.py*",
    "pipelines/run/test_import_function.py::test_a_plan_says_what_a_run_refuses*",
    "pipelines/run/test_run.py::test_report_of_other_dimensions*",
    "pipelines/run/test_runners.py::test_a_runner_without_what_it_needs_is_refused_before_anything_is_charged*",
    "pipelines/run/test_runners.py::test_dataflow_would_take_the_job*",
    "pipelines/run/test_salt.py*",
    "pipelines/test_bad_input.py::test_odd_rows_are_no_errors*",
    "pipelines/test_checks.py::test_counts_are_released_with_noise*",
    "pipelines/test_element_counts.py::test_neither_does_the_size_of_a_row_group*",
    "pipelines/test_element_counts.py::test_the_number_of_elements_does_not_depend_on_the_rows*",
    "pipelines/test_every_order.py*",
    "pipelines/test_every_plan.py::test_nothing_but_noise[*-first]",
    "pipelines/test_every_plan.py::test_nothing_but_noise[*-nothing]",
    "pipelines/test_every_policy.py*",
    "pipelines/test_every_promise.py*",
    "pipelines/test_every_sample.py*",
    "pipelines/test_every_sensitivity.py::test_what_a_draw_spends_is_charged[k_cover*",
    "pipelines/test_every_smooth_bound.py*",
    "pipelines/test_hostile_files.py*",
    "pipelines/test_output_id.py*",
    "pipelines/test_sample_and_aggregate.py::test_a_function_that_returns_its_first_row_gains_nothing*",
    "pipelines/test_sample_and_aggregate.py::test_attacks_in_every_block_end_in_not_found*",
    "pipelines/test_sample_and_aggregate.py::test_clusters_that_the_first_column_does_not_tell_apart_are_matched_to_anchors*",
    "pipelines/test_tasks.py::test_a_policy_that_buys_nothing_gives_up_nothing*",
    "pipelines/test_tasks.py::test_an_empty_table_is_no_error*",
    "pipelines/test_tasks.py::test_every_task_is_one_job_that_dataflow_takes*",
    "pipelines/test_tasks.py::test_one_value_many_times_is_no_error*",
    "pipelines/test_units.py::test_every_task_of_rows_runs_with_units*",
    "pipelines/test_units.py::test_few_people_with_many_rows_decide_nothing*",
    "pipelines/test_units.py::test_the_release_plan_and_report_speak_of_units*",
    "pipelines/test_units.py::test_what_is_counted_are_units*",
    "pipelines/test_wide.py*",
    "transforms/test_bound_units.py::test_beam_gives_what_memory_gives*",
    "transforms/test_evaluate_subsamples.py::test_beam_gives_what_memory_gives[two_*",
    "transforms/test_evaluate_subsamples.py::test_every_aggregator_in_beam*",
    "transforms/test_evaluate_subsamples.py::test_one_unit_more_changes_one_answer_and_a_replaced_one_two*",
    "transforms/test_evaluate_subsamples.py::test_what_is_sent_of_a_block_depends_on_its_own_rows_alone*",
    "transforms/test_run_function.py::test_an_attack_has_no_answer_and_touches_no_other*",
)
"""Tests as pytest names them, below tests/; `*` stands for any text."""


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.nodeid.removeprefix("tests/")
        if any(fnmatchcase(place, pattern.replace("[", "[[]")) for pattern in SLOW):
            item.add_marker(pytest.mark.slow)
