"""The content of a ledger: its budget, the promise that the budget buys, and the charges."""

import json
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.budget import Budget, Mechanism, Spend
from core.groups import AnyPlan
from core.neighbors import Name
from core.privacy_filter import Charge, at_most, filter_spend
from pipelines.errors import dotted
from pipelines.ledger.policy import LedgerPolicy

Spent = Annotated[float, Field(ge=0, lt=1e6, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Entry(_Part):
    """The charge of one run.

    `job` is the hash of the job, and `release` the SHA-256 of its visible release. The run guarantees
    `epsilon` and `delta` for `neighbors`. `draws` are (epsilon, delta, rho) of its draws. `ledger` is the id
    of the charged ledger, and `output_id` that of the folder of the release.
    """

    run_id: str
    job: str
    task: str
    output: str
    at: datetime
    neighbors: Name
    epsilon: Spent
    delta: Spent
    draws: tuple[tuple[Spent, Spent, Spent], ...]
    release: str | None = None
    ledger: str | None = None
    output_id: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        Budget(self.epsilon, self.delta)
        return self

    def covers(self, plan: AnyPlan) -> bool:
        """Return whether each draw of `plan` costs at most as much as the charged one, up to rounding."""
        planned = [(draw.epsilon, draw.delta, draw.rho) for draw in plan.mechanisms]
        return len(planned) == len(self.draws) and all(
            at_most(new, old)
            for ours, theirs in zip(planned, self.draws, strict=True)
            for new, old in zip(ours, theirs, strict=True)
        )

    def charge(self, neighbors: Name) -> Charge:
        """Return the cost of the run in a ledger of `neighbors`."""
        draws = tuple(Mechanism("", "", 1.0, 1.0, *draw) for draw in self.draws)
        charge = Charge(Budget(self.epsilon, self.delta), draws)
        return charge if neighbors == self.neighbors else charge.under_replacement()


class Ledger(_Part):
    """The total budget of a dataset, the promise that it buys, and the charges.

    The promise is for one row, or with a `unit` for all rows that have the same value of that column. Every
    charge must have the same unit. A guarantee for single rows is weak for a unit, which may have any number
    of rows. A guarantee for units does protect a row, but at up to twice the cost: adding a row changes the
    record of its unit, which amounts to removing one unit and adding another.

    With a `count` the promise is for one of the records that a row stands for: a value of that column that is
    higher or lower by one. Every charge must have the same count. Then all runs have the same neighbors, and
    their costs add up as those of any runs do. A run that takes whole rows for records may see a row whose
    count is higher by one as another row, which is a removal and an addition, so it is not admitted.

    `order` is None where runs are composed by adding up their epsilons and deltas. Otherwise it is the order
    of the Rényi filter that composes their draws. It is fixed when the ledger is created, so that the promise
    holds even if earlier answers decide which runs follow; see `core.privacy_filter`.

    With a `policy` the promise is for its secret pairs alone. Files of earlier versions have none.
    """

    schema_: Literal[1] = Field(default=1, alias="schema")
    id: str | None = Field(default=None, pattern="^[0-9a-f]{32}$")
    neighbors: Name = "add_or_remove_one"
    unit: str | None = None
    count: str | None = None
    epsilon: float
    delta: float
    order: float | None = Field(default=None, gt=1)
    policy: LedgerPolicy | None = None
    charges: tuple[Entry, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        Budget(self.epsilon, self.delta)
        runs = [entry.run_id for entry in self.charges]
        if len(set(runs)) < len(runs):
            raise ValueError("charges contains a run twice: a run is charged once.")
        if self.unit == "":
            raise ValueError("unit is empty: give the name of a column, or leave it out.")
        if self.count == "":
            raise ValueError("count is empty: give the name of a column, or leave it out.")
        if self.count is not None and (self.unit is not None or self.policy is not None):
            raise ValueError(
                f"count is {self.count}: it says which records a row stands for, but a unit or a policy is "
                "about whole rows, so leave one of both out."
            )
        if self.policy is not None and self.neighbors != "replace_one":
            raise ValueError(
                f"neighbors is {self.neighbors}: a policy refines replace_one, so it must be that."
            )
        if self.policy is not None and self.unit is not None:
            raise ValueError(
                f"unit is {self.unit}: a policy is about the values of single rows, so leave one of both out."
            )
        return self

    def identified(self) -> Self:
        """Return the ledger with an id that its charges repeat; a missing id is created."""
        if self.id is not None:
            return self
        made = uuid.uuid4().hex
        charges = tuple(entry.model_copy(update={"ledger": made}) for entry in self.charges)
        return self.model_copy(update={"id": made, "charges": charges})

    def spent(self) -> Spend:
        """Return the total of the charges; see `core.privacy_filter.filter_spend`."""
        charges = [entry.charge(self.neighbors) for entry in self.charges]
        return filter_spend(charges, Budget(self.epsilon, self.delta), self.order)

    def entry(self, run_id: str | None) -> Entry | None:
        """Return the charge of a run, or None."""
        return next((entry for entry in self.charges if entry.run_id == run_id), None)

    def bytes(self) -> bytes:
        """Return the file's content."""
        # Without them earlier versions can read the file, too.
        absent = {name for name in ("policy", "count") if getattr(self, name) is None}
        return (self.model_dump_json(by_alias=True, indent=1, exclude=absent) + "\n").encode()


def read_content(raw: bytes) -> Ledger:
    """Return the ledger in the content of a file.

    Raises:
        NoLedger: it is none.
    """
    try:
        ledger = Ledger.model_validate_json(raw)
    except ValidationError as error:
        raise NoLedger(_why_none(error)) from None
    json.loads(raw, object_pairs_hook=_each_once)
    return ledger


class NoLedger(ValueError):
    """A file is no ledger. The text says why, as a clause that quotes no value of the file."""


def _each_once(pairs: Sequence[tuple[str, Any]]) -> None:
    """Refuse a key that is given twice: JSON would keep the last one, and what is spent could be hidden."""
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise NoLedger("it has a mapping with one key twice")


def _why_none(error: ValidationError) -> str:
    """Return what keeps a file from being a ledger, as a clause.

    It quotes no value and no unknown key of the file, which may contain rows.
    """
    problem = error.errors(include_url=False)[0]
    kind, path = problem["type"], list(problem["loc"])
    if kind == "json_invalid":
        return "it is empty, cut off or not JSON"
    if kind == "extra_forbidden":
        return f"{dotted(path[:-1]) or 'it'} has a key that this version of Shoal does not know"
    if kind == "value_error":  # begins with the name of the field
        path.append(str(problem["ctx"]["error"]).split()[0])
    if path == ["schema"]:
        return "its schema is that of another version of Shoal"
    if not path:
        return "it is not a mapping"
    return f"{dotted(path)} {'is missing' if kind == 'missing' else 'has a value that is not allowed'}"
