"""A panel of the page on papers: its table and its figure, and how much is measured for them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Args:
        runs: of each point of a curve of k-means.
        trees: drawings of the noise of each tree of counts; a quarter as many inferences.
        trials: of each target of the 1-cluster, and of each number of records for an interior point.
        epsilons: of the curves, the last of which is that of the tables.
        records: of the planted data of the 1-cluster.
        bits: of the universes of interior points.
        measured: most bits with which records are measured, too.
        panels: most panels of a figure, and dimensions of the 1-cluster; None for all.
    """

    runs: int
    trees: int
    trials: int
    epsilons: tuple[float, ...]
    records: int
    bits: tuple[int, ...]
    measured: int
    panels: int | None = None


PAGE = Effort(
    runs=11,
    trees=40,
    trials=10,
    epsilons=(0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
    records=5_000,
    bits=(8, 16, 32, 64, 256, 1024, 4096, 8192),
    measured=64,
)
SMALLEST = Effort(1, 4, 1, epsilons=(1.0,), records=1_000, bits=(8,), measured=8, panels=1)
"""What a test runs: each step once."""


@dataclass(frozen=True)
class Panel:
    """What was measured for one figure or table of a paper.

    Args:
        name: of the panel in the page, and of its file.
        header: names of the columns.
        rows: the cells, as text.
        svg: the figure, or None.
    """

    name: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    svg: str | None = None

    def table(self) -> str:
        """Return the table as markdown."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        cells = ((cell.replace("|", "\\|") for cell in line) for line in lines)
        return "\n".join(f"| {' | '.join(line)} |" for line in cells)

    def write(self, page: Path) -> None:
        """Write the table into a page, between its comments, and the figure into the folder of its name.

        Raises:
            ValueError: the page has no place for the table.
        """
        text = page.read_text(encoding="utf-8")
        place = re.compile(rf"(<!-- table: {self.name} -->\n).*?(<!-- end -->)", re.S)
        made, places = place.subn(lambda at: f"{at[1]}\n{self.table()}\n\n{at[2]}", text)
        if places != 1:
            raise ValueError(f"{page.name} has {places} places for the table {self.name}: it must have one.")
        page.write_text(made, encoding="utf-8")
        if self.svg is not None:
            folder = page.with_suffix("")
            folder.mkdir(exist_ok=True)
            (folder / f"{self.name}.svg").write_text(self.svg, encoding="utf-8")
