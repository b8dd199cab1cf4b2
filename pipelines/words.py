"""What plans and releases promise, in plain words."""

import math
import re
from collections.abc import Mapping
from typing import Any

NEIGHBORS = {
    "add_or_remove_one": "one row more or one row less; the number of rows is private",
    "replace_one": "one row replaced by another; the number of rows is public",
}

ROUNDS = {
    "good_radius": "how wide a box must be to hold the target",
    "good_center": "which box of that width",
    "average_1": "the mean of the rows around it",
    "average_2": "the mean again, from closer",
    "fit_radius": "the radius that fits, and how many rows it holds",
}


def number(value: float, digits: int = 4) -> str:
    """Return `value` for a person: `digits` significant ones, thousands separated, 1e-9 for 1e-09."""
    if math.isfinite(value) and 10**digits <= abs(value) < 10**15:
        return f"{value:,.0f}"
    return re.sub(r"e([-+])0+", r"e\1", f"{value:.{digits}g}")


def on_grid(value: float, step: float) -> str:
    """Return a value in data units with the decimals that the step can tell apart."""
    decimals = max(0, min(12, math.ceil(-math.log10(step) - 1e-9)))
    return f"{value:,.{decimals}f}"


def promises(release: Mapping[str, Any]) -> list[str]:
    """Return the accuracy that a plan or a release promises, one sentence each.

    Args:
        release: with `params` and `accuracy`, as in release.json.
    """
    target, said = release["params"]["target"], release["accuracy"]["promises"]
    sentences = []
    if said.get("missing") is not None:
        sentences.append(
            f"Where {target:,} rows lie close together, a ball is found, and it truly holds at least "
            f"{target - said['missing']:,} rows."
        )
    if said.get("radius_factor") is not None:
        more = f", or {number(said['resolution'])} where that is more" if said.get("resolution") else ""
        sentences.append(
            f"Its radius is at most {number(said['radius_factor'], 3)} times that of the smallest ball with "
            f"{target:,} rows{more}. This is proved for the worst data; mostly it is far closer."
        )
    if said.get("count_error") is not None:
        sentences.append(f"The count is within {said['count_error']:,} of the truth.")
    return sentences


def unpromised(release: Mapping[str, Any]) -> str | None:
    """Return what a person might expect to be promised and isn't, or None."""
    accuracy, target = release["accuracy"], release["params"]["target"]
    if accuracy["promises"].get("missing") is not None:
        return None
    smallest = accuracy.get("smallest_target")
    begins = f" At this budget, that begins at a target of {smallest:,}." if smallest else ""
    return (
        f"For a target of {target:,}, it is not promised that a ball is found, how many rows it holds and "
        f"how small it is.{begins} Real clusters are often found far below."
    )


def confidence(failure: float) -> str:
    """Return the probability with which the promises hold, together."""
    return f"{number(100 * (1 - failure))}%"


def summary(release: Mapping[str, Any]) -> list[str]:
    """Return a release in a few lines for a terminal."""
    privacy, domain, result = release["privacy"], release["domain"], release["result"]
    spent = f"epsilon {number(privacy['epsilon'])}, delta {number(privacy['delta'])}, {privacy['neighbors']}"
    if result is None:
        return [
            "Nothing was found, and that is an answer: it is as private as any other, and as dear.",
            f"spent   {spent}",
        ]
    step = domain["step"]
    center = ", ".join(
        f"{column} {on_grid(value, step)}"
        for column, value in zip(domain["columns"], result["center"], strict=True)
    )
    error = release["accuracy"]["promises"].get("count_error")
    within = (
        f" (within {error:,} with probability {confidence(release['accuracy']['failure'])})" if error else ""
    )
    return [
        f"center  {center}",
        f"radius  {on_grid(result['radius'], step)}",
        f"count   {result['count']:,}{within}",
        f"spent   {spent}",
    ]
