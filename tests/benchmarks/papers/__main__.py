"""Draw tables and figures of the papers again, into docs/papers.md and docs/papers/: `make reproduce`.

Noise is drawn again at each call. Data that are not in the packages of the environment are read from the
folder that SHOAL_DATA names; without it their panels stay as they are.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks.papers.blowfish import figure_1, figure_2
from tests.benchmarks.papers.clusters import table_1
from tests.benchmarks.papers.panel import PAGE, Effort, Panel
from tests.benchmarks.papers.points import needed_records
from tests.benchmarks.papers.published import figure_1_as_published

DOCS = Path(__file__).resolve().parents[3] / "docs" / "papers.md"
PARTS: dict[str, Callable[[Effort], Iterator[Panel]]] = {
    "kmeans": figure_1,
    "published": figure_1_as_published,
    "ranges": figure_2,
    "one-cluster": table_1,
    "interior-point": needed_records,
}


def reproduce(page: Path, effort: Effort, parts: list[str]) -> None:
    """Measure parts of the page and write what comes out into it."""
    for part in parts:
        start = time.process_time()
        for panel in PARTS[part](effort):
            panel.write(page)
            print(f"{panel.name}\n{panel.table()}\n", flush=True)
        print(f"{part}: {time.process_time() - start:.0f} s of processor time\n", flush=True)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, nargs="*", default=list(PARTS))
    reproduce(DOCS, PAGE, parser.parse_args().only)


if __name__ == "__main__":
    main()
