"""Interior points: records that each method needs against the size of the domain.

The paper has theorems and no figure. This draws what they say with constants: promises, and measurements
on the hard cases of the benchmark.
"""

from collections.abc import Iterator

from core.budget import Budget
from core.neighbors import Neighbors
from tests.benchmarks.lines import draw_lines
from tests.benchmarks.ordered import records_needed
from tests.benchmarks.papers.panel import Effort, Panel
from tests.core.interior_point.universe import HUGE, planned

BUDGET, RELATION = Budget(1.0, 1e-6), Neighbors("replace_one")
_RECORDS = "records needed"


def needed_records(effort: Effort) -> Iterator[Panel]:
    """Plan every method on every universe, and measure on the smaller ones."""
    rows, points = [], []
    for bits in effort.bits:
        cells = []
        for method in HUGE:
            plan = planned(method, 1 << bits, BUDGET, RELATION)
            promised = int(plan.promises["records_needed"])
            points.append(
                {"policy": method, "kind": "promised", "log2 of the domain": bits, _RECORDS: promised}
            )
            cells.append(f"{promised:,}")
            if bits <= effort.measured:
                found = records_needed(plan, bits, effort.trials)
                points.append({**points[-1], "kind": "measured", _RECORDS: found})
                cells[-1] += f" / {found:,}"
        rows.append([f"2^{bits}", *cells])
    title = "Records for an interior point, epsilon 1, delta 1e-6"
    svg = draw_lines(title, points, "log2 of the domain", _RECORDS, log=True, what="method")
    yield Panel("interior-point", ("domain", "exponential", "HeavyPaths", "TreeLog"), rows, svg)
