"""Answers of sample_and_aggregate: what most blocks of the rows answer."""

from core.sample_and_aggregate.found import Promises, Result
from pipelines.answers.answer import Answer, Fact, Release, Rows, Table, promises_of, result_of
from pipelines.answers.text import nothing_found, number, on_grid

_FEW = 6

_ADVICE = (
    ("More rows per block.", "Larger blocks agree better, but there are fewer answers to hide one in."),
    ("A smaller range of outputs or a larger step,", "if you can choose them without looking at the data."),
    ("A larger epsilon.", "Twice the budget halves the noise, but weakens the guarantee."),
)


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    params, promised = release["params"], promises_of(Promises, release)
    blocks, fraction, step = params["blocks"], params["stable_fraction"], params["outputs"]["step"]
    sentences = []
    if promised.leftover < _widest(release):
        within = max(promised.leftover, step)
        sentences.append(
            f"If {100 * fraction:.4g}% of the {blocks:,} blocks answer nearly the same, the error of the "
            f"value is at most a small multiple of their spread plus {number(within)}, whatever the other "
            "blocks answer."
        )
    if promised.radius_blocks < fraction * blocks:
        sentences.append(
            f"The radius is at most 10% larger than needed for that many answers, and at most "
            f"{number(promised.radius_blocks)} of these lie outside."
        )
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    if len(promises(release)) == 2:
        return (
            "It is not promised that the blocks answer alike. This depends on the function and on the data."
        )
    return (
        "At this budget and number of blocks, it is not promised how close the value is to the answers of "
        "the blocks, or how many answers lie within the radius. More blocks help."
    )


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, params = result_of(Result, release), release["params"]
    if result is None:
        return nothing_found(
            "common answer",
            f"Either too few of the {params['blocks']:,} blocks agree on one answer, or the noise at this "
            "budget hides it.",
            advice=_ADVICE,
        )
    domain = release["domain"]
    step, columns = domain["step"], domain["columns"]
    values = [on_grid(value, step) for value in result.value]
    few = len(values) <= _FEW
    table = Table("The value", ("output", "value"), list(zip(columns, values, strict=True)))
    return Answer(
        headline=f"{params['function'].rpartition(':')[2]} answers about {_point(values)}",
        lead=(
            f"The rows were split at random into {params['blocks']:,} blocks, and the function was run on "
            "each. The release is a noisy aggregate of the answers, which hides each single answer."
        ),
        facts=(
            Fact("value", tuple(values) if few else (f"{len(values)} values, listed below",)),
            Fact(
                "radius", (on_grid(result.radius, step),),
                f"about {100 * params['stable_fraction']:.4g}% of the answers lie within it",
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
