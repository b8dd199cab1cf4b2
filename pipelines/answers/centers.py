"""Answers of k_means and k_median: centers with their counts."""

import math
from collections.abc import Sequence

from core.centers.found import Promises, Result
from pipelines.answers import maps
from pipelines.answers.answer import (
    Answer,
    Fact,
    Figure,
    Release,
    Rows,
    Table,
    domain_of,
    promises_of,
    result_of,
)
from pipelines.answers.axis import Axis
from pipelines.answers.earth import plane_of
from pipelines.answers.picture import Row, Strip, strips
from pipelines.answers.text import confidence, counted, nothing_found, number, on_grid, truth

_MOST_COLUMNS = 8


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised, many = promises_of(Promises, release), counted(release).promised
    sentences = []
    if promised.count_error is not None:
        sentences.append(
            f"The count of every center is within {number(promised.count_error)} of the number of {many} "
            "nearest to it."
        )
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    cost = "How close the cost is to the optimal cost depends on the data and is not promised."
    smallest, many = promises_of(Promises, release).smallest_group, counted(release).promised
    if smallest is not None:
        cost += (
            f" The noise is expected to move the center of a group of {number(smallest)} {many} by about a "
            f"tenth of the typical distance between it and its {many}, where that is a twentieth of the "
            "width of the domain or more, and those of larger groups less. It may move centers of narrower "
            "groups far out of them: the release says of each center how large its noise was."
        )
    if len(domain_of(release)["lower"]) == 1 or release["domain"].get("geography") is not None:
        return cost
    return (
        f"{cost} Distances are Euclidean in the units of the columns, and the noise of a center is equally "
        "large in every column. So a column with a small range counts little, and its error is large beside "
        "its range: bring the columns to similar ranges first, by public numbers."
    )


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, domain, records = result_of(Result, release), domain_of(release), counted(release)
    if result is None:
        return nothing_found("center")
    columns, step = domain["columns"], domain["step"]
    order = sorted(range(len(result.counts)), key=lambda i: -result.counts[i])  # as older releases need it
    centers = [result.centers[i] for i in order]
    counts = [result.counts[i] for i in order]
    error, sure = promises_of(Promises, release).count_error, f"with probability {confidence(release)}"
    of_kept = f" of {truth(release)}" if records.kept else ""
    within = "" if error is None else f"sum of the counts, each within {number(error)}{of_kept}, {sure}"
    noise = None if result.noise is None else [result.noise[i] for i in order]
    table = [
        (
            str(i + 1),
            f"{count:,}",
            *(on_grid(value, step) for value in center[:_MOST_COLUMNS]),
            *((_noise(noise[i]),) if noise else ()),
        )
        for i, (center, count) in enumerate(zip(centers, counts, strict=True))
    ]
    across = "column" if domain.get("geography") is None else "direction"
    headers = ("center", records.many, *columns[:_MOST_COLUMNS])
    of_noise = (f"noise in each {across}",) if noise else ()
    title = (
        "Centers"
        if len(columns) <= _MOST_COLUMNS
        else f"Centers, the first {_MOST_COLUMNS} of {len(columns)} columns"
    )
    return Answer(
        headline=f"{len(centers)} centers of {_named(columns)}{records.by}",
        lead=(
            f"Each center represents the {records.promised} that are nearest to it. The centers were "
            f"computed from noisy sums. They were not taken from any {records.one}."
        ),
        facts=(
            Fact("centers", (str(len(centers)),), said=True),
            Fact(
                records.many, (f"about {sum(counts):,}",),
                within,
            ),
        ),
        figures=_figures(release, centers, counts, noise),
        tables=(Table(title, (*headers, *of_noise), table),),
    )  # fmt: skip


def _named(columns: Sequence[str]) -> str:
    return " and ".join(columns) if len(columns) <= 3 else f"{len(columns)} columns"


def _noise(deviation: float) -> str:
    return f"± {number(deviation, 2)}" if math.isfinite(deviation) else "unknown"


def _figures(
    release: Release, centers: list[tuple[float, ...]], counts: list[int], noise: list[float] | None
) -> tuple[Figure, ...]:
    domain, many = domain_of(release), counted(release).many
    columns = domain["columns"]
    if len(columns) == 1:
        off = [0.0 if noise is None or not math.isfinite(noise[i]) else noise[i] for i in range(len(centers))]
        rows = [
            Row(f"{i}", at, *((at - error, at + error) if error else (None, None)))
            for i, ((at,), error) in enumerate(zip(centers, off, strict=True), 1)
        ]
        strip = Strip(Axis.of(columns[0], domain["lower"][0], domain["upper"][0]), rows, "center")
        drawn = strips("The centers", [strip], "center", "standard deviation of its noise to each side")
        return (Figure(drawn, "The centers in the whole domain"),)
    if len(columns) == 2:
        drawn = maps.centers(plane_of(domain), centers, counts, noise, many)
        return (Figure(drawn, "The centers in the whole domain"),)
    names = [f"center {i}: about {count:,} {many}" for i, count in enumerate(counts, 1)]
    figures = [Figure(maps.profiles(domain, centers, names), "The value of every center in each column")]
    if maps.of_colors(columns):
        error, true = promises_of(Promises, release).count_error, truth(release, "the true count")
        drawn = maps.colors(domain, centers, counts, error, many, true)
        figures.insert(0, Figure(drawn, "The centers as colors"))
    return tuple(figures)
