"""Figures of plans that no measure has."""

NOT_MEASURED: dict[str, str] = {
    "typical_rank_error": "a standard deviation for dense records, no bound",
    "range_standard_error": "a standard deviation, no bound",
    "standard_error": "a standard deviation, no bound",
    "smallest_group": "what the noise of the averages means for one group, no bound on the answer",
    "radius_factor": "the smallest ball is not known here; make bench-one-cluster plants one",
    "resolution": "belongs to radius_factor",
    "leftover": "the largest of errors",
    "spread_factor": "belongs to errors",
    "failed_most": "a limit that the noisy number of failed blocks is compared with",
    "units_error": "that of rows, or of another total with noise of the same kind",
    "found_from": "groups are not measured here; tests/core/statistics has them",
    "rows_error": "only where coverage is given",
}
"""Figures of plans that are no promise about a release, or that are measured elsewhere."""
