"""Centers with their sizes: how k-means and k-median speak."""

from collections.abc import Sequence

from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, Table
from pipelines.answers.drawing import draw_centers, draw_profiles
from pipelines.answers.text import confidence, number, on_grid

ROUNDS = {
    "moments": "along which directions the rows spread",
    "coreset": "how many rows lie in the cells of a tree, and first centers from them",
    "average_1": "the rows about each center pull it",
    "average_2": "and again",
    "average_3": "and again",
    "average_4": "and again",
}
_FEW = 8


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    said = release["accuracy"]["promises"]
    sentences = [f"Every count is within {number(said['count_error'])} of the number of rows nearest to it."]
    if said.get("smallest_group") is not None:
        sentences.append(
            f"Noise moves the center of {number(said['smallest_group'])} rows by about a tenth of the radius "
            "within which rows pull it, and less for more."
        )
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return "How close the cost comes to the best one depends on the data, and is not promised."


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, domain = release["result"], release["domain"]
    columns, step = domain["columns"], domain["step"]
    order = sorted(range(len(result["counts"])), key=lambda i: -result["counts"][i])
    centers = [result["centers"][i] for i in order]
    counts = [result["counts"][i] for i in order]
    error = release["accuracy"]["promises"]["count_error"]
    shown = columns[:_FEW]
    table = [
        (str(i + 1), f"{count:,}", *(on_grid(value, step) for value in center[:_FEW]))
        for i, (center, count) in enumerate(zip(centers, counts, strict=True))
    ]
    title = "Centers" if len(columns) <= _FEW else f"Centers, the first {_FEW} of {len(columns)} columns"
    return Answer(
        headline=f"{len(centers)} centers of {_named(columns)}",
        lead=(
            "Each stands for the rows that are nearest to it. They were computed from noisy sums; none "
            "was taken from any row."
        ),
        facts=(
            Fact("centers", (str(len(centers)),)),
            Fact(
                "rows", (f"about {sum(counts):,}",),
                f"each count within {number(error)}, with probability {confidence(release)}",
            ),
        ),
        figures=_figures(release, centers, counts),
        tables=(Table(title, ("center", "rows", *shown), table),),
    )  # fmt: skip


def _named(columns: Sequence[str]) -> str:
    return " and ".join(columns) if len(columns) <= 3 else f"{len(columns)} columns"


def _figures(release: Release, centers: list[list[float]], counts: list[int]) -> tuple[Figure, ...]:
    domain = release["domain"]
    if len(domain["columns"]) == 2:
        drawn = draw_centers(domain, centers, counts)
        return (Figure(drawn, "Centers in the whole domain; the larger, the more rows"),)
    drawn = draw_profiles(domain, centers)
    return (Figure(drawn, "Every center across the columns, from the lower to the upper bound of each"),)
