"""A Reshuffle of keyed elements, in few steps, because every step costs a small run some milliseconds."""

from typing import Any

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

Keyed = tuple[int, Any]
"""A key and an element."""


class Spread(beam.Reshuffle):
    """Spread keyed elements over the workers; they are not computed again where a consumer is retried.

    Runners that have a Reshuffle of their own use that.
    """

    @no_annotations  # a hint of a PValue would be a warning in a caller's own pipeline
    def expand(self, pcoll: beam.pvalue.PValue) -> beam.PCollection:
        """Take and return pairs of a key and an element."""
        ungroup = beam.FlatMap(_ungrouped).with_output_types(Keyed)
        return pcoll | "Group" >> beam.GroupByKey() | "Value" >> ungroup


def _ungrouped(grouped: Any) -> list[Keyed]:
    key, values = grouped
    return [(key, value) for value in values]
