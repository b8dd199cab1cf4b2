"""A job that finds bounds, which needs none: its domain may be left out."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from pipelines.job.domain import Domain
from pipelines.job.groups import RowsByGroupJob

_LARGEST = 10**15


class BoundsJob(RowsByGroupJob):
    """A job that finds bounds."""

    domain: Annotated[
        Domain,
        Field(
            default=None,
            description="Where bounds are sought. Without it they are whole numbers of at most 10^15 in "
            "size; give a wide one with a finer step for a column of fractions.",
        ),
    ]

    @classmethod
    def completed(cls, raw: Mapping[str, Any]) -> dict[str, Any]:
        """See `Job.completed`."""
        given = raw.get("input")
        columns = given.get("columns") if isinstance(given, Mapping) else None
        if "domain" in raw or not columns or not isinstance(columns, list):
            return super().completed(raw)
        ends = {"lower": [-_LARGEST] * len(columns), "upper": [_LARGEST] * len(columns)}
        return {**raw, "domain": {**ends, "step": 1}}
