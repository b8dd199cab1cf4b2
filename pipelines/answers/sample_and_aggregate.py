"""What most subsamples answer: how sample and aggregate speaks."""

from pipelines.answers.answer import Answer, Fact, Release, Rows, Table
from pipelines.answers.text import number, on_grid

ROUNDS = {"aggregate": "what the answers of the blocks have in common, and how far they are from it"}
_FEW = 6

_ADVICE = (
    ("More rows per block.", "Fewer blocks answer more alike, and each noisy choice has fewer answers."),
    ("A smaller range of outputs or a coarser step,", "where that is known without looking at the data."),
    ("A larger epsilon.", "Twice the budget is half the noise, and a weaker promise to each row."),
)


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    params, said = release["params"], release["accuracy"]["promises"]
    blocks, fraction, step = params["blocks"], params["stable_fraction"], params["outputs"]["step"]
    sentences = []
    if said.get("leftover") is not None and said["leftover"] < _widest(release):
        within = max(said["leftover"], step)
        sentences.append(
            f"Where {100 * fraction:.4g}% of the {blocks:,} blocks answer nearly the same, the value is "
            f"within a small multiple of their spread, and {number(within)} more, whatever the others answer."
        )
    if said.get("radius_blocks") is not None and said["radius_blocks"] < fraction * blocks:
        sentences.append(
            f"The radius is no wider than what holds that many answers, to 10%, and holds all of these but "
            f"{number(said['radius_blocks'])}."
        )
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    if len(promises(release)) == 2:
        return (
            "That the blocks answer alike is not promised: it is a property of the function and of the data."
        )
    return (
        "At this budget and number of blocks, it is not promised how close the value comes to what the "
        "blocks agree on, or how many answers the radius holds. More blocks help."
    )


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, params = release["result"], release["params"]
    if result is None:
        return Answer(
            headline="Nothing was found, and that is an answer",
            lead=(
                f"No point stood out clearly enough that a part of the {params['blocks']:,} blocks agree on. "
                "The function may not be stable on subsamples of this size, or this budget could not show it."
            ),
            advice=_ADVICE,
        )
    domain = release["domain"]
    step, columns = domain["step"], domain["columns"]
    values = [on_grid(value, step) for value in result["value"]]
    few = len(values) <= _FEW
    table = Table("The answer", ("value", "released"), list(zip(columns, values, strict=True)))
    return Answer(
        headline=f"{params['function'].rpartition(':')[2]} answers about {_point(values)}",
        lead=(
            f"The rows were split at random into {params['blocks']:,} blocks, each of which answered by "
            "itself. What is released is what the answers have in common, under noise that hides any one."
        ),
        facts=(
            Fact("value", tuple(values) if few else (f"{len(values)} values, listed below",)),
            Fact(
                "radius", (on_grid(result["radius"], step),),
                f"holds about {100 * params['stable_fraction']:.4g}% of answers; wide where they disagree",
            ),
            Fact("blocks", (f"{params['blocks']:,}",)),
        ),
        tables=() if few else (table,),
    )  # fmt: skip


def _point(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"({', '.join(values[:3])}{', …' if len(values) > 3 else ''})"


def _widest(release: Release) -> float:
    domain = release["domain"]
    return float(max(high - low for low, high in zip(domain["lower"], domain["upper"], strict=True)))
