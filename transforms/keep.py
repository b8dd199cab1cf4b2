"""How the rows of a unit become one record; `transforms.unit_records` makes it."""

from typing import Literal

Keep = Literal["one", "last", "mean", "min", "max", "sum", "count"]
"""See `transforms.unit_records.kept_by`."""
