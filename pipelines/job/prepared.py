"""What the preparation of rows must not be combined with, and what a plan says of it."""

from collections.abc import Sequence
from typing import Any

from pipelines.job.inputs import Input, RowsInput
from pipelines.job.privacy import Privacy


def check_prepared(
    given: Input, privacy: Privacy, unit: str | None, function: bool, public_edges: bool = False
) -> None:
    """Check that the preparation of rows keeps the promise of a job.

    Args:
        given: the input.
        privacy: the budget and the neighbors.
        unit: column of the privacy unit.
        function: whether a function receives the rows. How many rows it receives is then not public.
        public_edges: whether a row is an edge of which all but the weight is public.

    Raises:
        ValueError: one sentence that names the field.
    """
    count = getattr(given, "count", None)
    if public_edges and (given.where or given.derive or given.join or count is not None):
        raise ValueError(
            "params.change is weight: which edges there are is public, but what is made of a row may depend "
            "on its weight, so leave out input.where, input.derive, input.join and input.count."
        )
    if privacy.policy is not None and (given.derive is not None or given.join is not None):
        raise ValueError(
            "privacy.policy is about the values of columns of the input, so leave out input.derive and "
            "input.join."
        )
    prepares = [name for name in ("where", "derive", "join") if getattr(given, name) is not None]
    if not any(columns for field, columns in given.uses().items() if field != "input.where"):
        prepares = [name for name in prepares if name != "derive"]  # a number for every row changes with none
    if prepares and privacy.neighbors == "replace_one" and not function:
        raise ValueError(
            f"input.{prepares[0]} is given and privacy.neighbors is replace_one: the number of records would "
            "be public, but it may change where a row is replaced, by a condition or a null; use "
            "add_or_remove_one."
        )
    derived = unit in _made(given) or _may_be_joined(given)
    if privacy.ledger is not None and unit is not None and derived:
        raise ValueError(
            f"input.unit is {unit} and privacy.ledger is given: a ledger hides units of a column of the "
            "files, so leave out the ledger, or give input.join.columns and a unit that is in the files."
        )


def check_count(given: RowsInput, keys: Sequence[str], privacy: Privacy) -> None:
    """Check that rows may stand for several records, and that one record more is one record more.

    Args:
        given: the input.
        keys: the key columns of groups.
        privacy: the budget and the neighbors.

    Raises:
        ValueError: one sentence that names the field.
    """
    count, unit = given.count, given.unit
    if count is None:
        return
    if not count:
        raise ValueError("input.count is empty: give the name of a column, or leave it out.")
    if unit is not None:
        raise ValueError(
            f"input.count is {count} and input.unit is {unit}: the records of a row are one person each, so "
            "leave out one of them."
        )
    _check_unused(given, count, keys)
    if privacy.policy is not None or privacy.neighbors == "replace_one":
        what = "privacy.policy is given" if privacy.policy else "privacy.neighbors is replace_one"
        raise ValueError(
            f"input.count is {count} and {what}: the number of records would be public, but the largest "
            "counts are cut, so use add_or_remove_one without a policy."
        )
    if privacy.ledger is not None and (count in _made(given) or _may_be_joined(given)):
        raise ValueError(
            f"input.count is {count} and privacy.ledger is given: a ledger hides records that a column of "
            "the files counts, so leave out the ledger, or give input.join.columns and a count of the files."
        )


def _check_unused(given: RowsInput, count: str, keys: Sequence[str]) -> None:
    """Check that nothing but the count follows from the columns that the count is made of.

    A record more changes these columns of its row. If anything else of the row followed from them, all
    records of the row would change with it. Joined columns all follow from the key of the join.

    Raises:
        ValueError: one sentence that names the field.
    """
    uses = given.uses()
    made_of = {count, *uses.pop(f"input.derive.{count}", ())}
    places = {"input.columns": given.columns, **uses, "group_by.columns": tuple(keys)}
    joined = set(_joined(given))
    if given.join is not None and made_of & joined:
        made_of |= {given.join.on, *joined}
    elif given.join is not None:
        places["input.join.on"] = (given.join.on,)
    for place, names in places.items():
        used = next((name for name in names if name in made_of), None)
        if used is not None:
            raise ValueError(
                f"{place} has {used}, of which input.count is made: with one record more it would change all "
                "records of the row, so use it for the count alone."
            )
    if _may_be_joined(given):
        raise ValueError(
            f"input.count is {count} and input.join has no columns: the count may be one of them, and then "
            "nothing else may follow from its key, so give input.join.columns."
        )


def _made(given: Input) -> set[str]:
    """Return the columns that are in no file, as far as the job names them."""
    return {*(given.derive or ()), *_joined(given)}


def _joined(given: Input) -> tuple[str, ...]:
    return () if given.join is None else given.join.columns or ()


def _may_be_joined(given: Input) -> bool:
    """Return whether the names of the columns of the joined table are not in the job."""
    return given.join is not None and given.join.columns is None


def described(given: Any) -> dict[str, Any]:
    """Return the preparation of rows as releases and plans have it; empty where there is none."""
    values = given.model_dump(mode="json", include={"types", "where", "derive", "join", "count"})
    return {"rows": values} if values else {}


def notes_of(given: Any) -> list[str]:
    """Return what the reader of a plan should know of the preparation of rows.

    Args:
        given: the input.
    """
    found = []
    if given.where is not None:
        found.append(
            f"Only rows for which input.where is true are used: {given.where}. No number says how many it "
            "leaves out."
        )
    if given.derive is not None:
        derived = ", ".join(f"{name} = {text}" for name, text in given.derive.items())
        found.append(f"Derived columns: {derived}.")
    if given.join is not None:
        found.append(
            f"Rows get columns of {given.join.path} by {given.join.on}. This table must be public. A row "
            "whose key is not in it gets null."
        )
    if getattr(given, "count", None) is not None:
        from transforms.count_records import MOST_COPIES  # imports Arrow, which other jobs do not need

        found.append(
            f"A row stands for as many records as {given.count} says, at most {MOST_COPIES:,}, and the "
            "promise is for one record. What is counted are records. A row where the column is null or below "
            "1 is left out."
        )
    return found
