"""Elements between steps, and a Reshuffle of them in few steps: each costs a small run some milliseconds."""

import pickle
from typing import Any

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations


class _OfAny(type):
    """The type of a type of which everything is an instance, where Beam checks types as a pipeline runs."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class Piece(metaclass=_OfAny):
    """Hint of an element that is pickled where it leaves a process, and not measured. It may be anything."""


class PieceCoder(beam.coders.Coder):
    """The coder of a `Piece`. Of an element without a hint, Beam makes a pickle only to find out its size."""

    def encode(self, value: Any) -> bytes:
        """Return an element as bytes."""
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)

    def decode(self, encoded: bytes) -> Any:
        """Return the element of some bytes."""
        return pickle.loads(encoded)

    def estimate_size(self, value: Any) -> int:
        """Return 1. Beam shows the sizes of elements to those who watch a run, and needs them for nothing."""
        return 1

    def is_deterministic(self) -> bool:
        """Return that equal elements may be of different bytes, so that none is a key."""
        return False

    def to_type_hint(self) -> type:
        """Return the hint."""
        return Piece


beam.coders.registry.register_coder(Piece, PieceCoder)

Keyed = tuple[int, Any]
"""A key and an element."""

KEYED = tuple[int, Piece]
"""The hint of `Keyed`."""


class Spread(beam.Reshuffle):
    """Spread keyed elements over the workers; they are not computed again where a consumer is retried.

    Runners that have a Reshuffle of their own use that.
    """

    @no_annotations  # a hint of a PValue would be a warning in a caller's own pipeline
    def expand(self, pcoll: beam.pvalue.PValue) -> beam.PCollection:
        """Take and return pairs of a key and an element."""
        ungroup = beam.FlatMap(_ungrouped).with_output_types(KEYED)
        return pcoll | "Group" >> beam.GroupByKey() | "Value" >> ungroup


def _ungrouped(grouped: Any) -> list[Keyed]:
    key, values = grouped
    return [(key, value) for value in values]
