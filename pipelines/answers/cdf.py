"""A distribution: how the cdf speaks."""

from pipelines.answers.answer import Answer, Fact, Figure, Release, Rows, Table
from pipelines.answers.plots import draw_curve
from pipelines.answers.text import confidence, number

ROUNDS = {"cdf": "how many rows have at most each value"}


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    said = release["accuracy"]["promises"]
    return [
        f"Every cumulative count is within {said['kolmogorov_records']:,} of the truth: so the distribution "
        "is learned in Kolmogorov distance.",
        f"Every range’s count is within {said['range_error']:,} of the truth.",
        f"The standard error of a random range is {number(said['range_standard_error'])} before inference.",
    ]


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    return None


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, column = release["result"], release["domain"]["columns"][0]
    distance = result["kolmogorov"]
    ranges = [
        (f"{each['low']:g} to {each['high']:g}", f"{each['count']:,}", number(each["standard_error"]))
        for each in result["ranges"]
    ]
    figures: tuple[Figure, ...] = ()
    if rows is not None:
        curve = draw_curve(rows["value"], rows["count"].astype(float), column, "rows up to there")
        figures = (Figure(curve, "The released cumulative histogram"),)
    return Answer(
        headline=f"The distribution of {column}, within {number(distance['data'], 3)} everywhere",
        lead=(
            f"How many rows have at most each value of {column}. The shares are within "
            f"{number(distance['data'], 3)} of those of the data, and within "
            f"{number(distance['population'], 3)} of those of a population that the rows were "
            "drawn from at random."
        ),
        facts=(
            Fact("rows", (f"{result['total']:,}",)),
            Fact(
                "Kolmogorov distance",
                (number(distance["data"], 3),),
                f"to the data, with probability {confidence(release)}",
            ),
        ),
        figures=figures,
        tables=(Table("Ranges", (column, "rows", "standard error"), ranges),) if ranges else (),
    )
