"""The ledger of a dataset: what may be spent on it in all, and every run's charge.

A ledger is one JSON file that is only ever swapped for one with more in it (`Folder.swap`), so runs that
race never spend together what one of them alone could. A run is charged before it reads data and is keyed by
its run id, so a run that is tried again is charged once. When its release is visible, the charge is marked
with the release's SHA-256: from then on the run id never draws noise again, even where the release is lost.

A ledger is known by its id, which every charge repeats: a charge that was copied from another ledger is
refused, and a release marks no other ledger than the one that its run was charged to.
"""

import json
import math
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.budget import Budget, Mechanism, Spend
from core.errors import InvalidValue, ShoalError
from core.neighbors import Name
from core.plan import Plan
from core.privacy_filter import Charge, at_most, best_order, filter_spend
from pipelines.errors import JobError, say
from pipelines.job.job import Job
from pipelines.storage.folder import StorageError
from pipelines.storage.locate import open_file

_ROUNDING = 1e-9
_PATIENCE = 600.0
"""Seconds for which a swap that others keep overtaking is tried again."""


class LedgerRefusal(ShoalError, RuntimeError):
    """The ledger does not admit the run; nothing was charged, read or written by it."""

    exit_code: ClassVar[int] = 3


Spent = Annotated[float, Field(ge=0, lt=1e6, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Entry(_Part):
    """One run's charge.

    `job` is the hash of the job, `release` the SHA-256 of its visible release; `neighbors`, `epsilon` and
    `delta` are as the run guarantees them, and `draws` what it draws: (epsilon, delta, rho) each. `ledger` is
    the id of the ledger that was charged, `output_id` that of the folder that the run publishes in.
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

    def covers(self, plan: Plan) -> bool:
        """Say whether what `plan` draws is what was charged, or costs less, but for rounding."""
        planned = [(draw.epsilon, draw.delta, draw.rho) for draw in plan.mechanisms]
        return len(planned) == len(self.draws) and all(
            new <= old * (1 + _ROUNDING)
            for ours, theirs in zip(planned, self.draws, strict=True)
            for new, old in zip(ours, theirs, strict=True)
        )

    def charge(self, neighbors: Name) -> Charge:
        """Return what counts in a ledger of `neighbors`."""
        draws = tuple(Mechanism("", "", 1.0, 1.0, *draw) for draw in self.draws)
        charge = Charge(Budget(self.epsilon, self.delta), draws)
        return charge if neighbors == self.neighbors else charge.under_replacement()


class Ledger(_Part):
    """What may be spent on a dataset, on which promise, and what was charged.

    The promise is for one row, or with a `unit` for all rows that have one value of that column. Every charge
    has the same promise: what is hidden of a row says little of a unit, which may have any number of rows.
    What is hidden of a unit says more than the same of a row, but not as much as its epsilon seems to: a row
    added to a unit's others changes a record, which is as much as one unit less and another one more.

    `order` is None where runs are composed by adding up their epsilons and deltas, and otherwise the order of
    the Rényi filter that composes their draws. It is fixed when the ledger is made, so that the promise holds
    however runs are chosen by earlier answers; see `core.privacy_filter`.
    """

    schema_: Literal[1] = Field(default=1, alias="schema")
    id: str | None = Field(default=None, pattern="^[0-9a-f]{32}$")
    neighbors: Name = "add_or_remove_one"
    unit: str | None = None
    epsilon: float
    delta: float
    order: float | None = Field(default=None, gt=1)
    charges: tuple[Entry, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        Budget(self.epsilon, self.delta)
        runs = [entry.run_id for entry in self.charges]
        if len(set(runs)) < len(runs):
            raise ValueError("charges has a run twice: a run is charged once.")
        if self.unit == "":
            raise ValueError("unit is empty: give the name of a column, or leave it out.")
        return self

    def identified(self) -> Self:
        """Return the ledger with an id, which its charges repeat: a new one, where it has none."""
        if self.id is not None:
            return self
        made = uuid.uuid4().hex
        charges = tuple(entry.model_copy(update={"ledger": made}) for entry in self.charges)
        return self.model_copy(update={"id": made, "charges": charges})

    def spent(self) -> Spend:
        """Return what the charges spend together; see `core.privacy_filter.filter_spend`."""
        charges = [entry.charge(self.neighbors) for entry in self.charges]
        return filter_spend(charges, Budget(self.epsilon, self.delta), self.order)

    def entry(self, run_id: str | None) -> Entry | None:
        """Return the charge of a run, or None."""
        return next((entry for entry in self.charges if entry.run_id == run_id), None)

    def bytes(self) -> bytes:
        """Return the file's content."""
        return (self.model_dump_json(by_alias=True, indent=1) + "\n").encode()


def new_ledger(fields: Mapping[str, Any], accountant: str) -> Ledger:
    """Return a ledger without charges, as `shoal ledger create` makes it from its options.

    Args:
        fields: neighbors, unit, epsilon and delta; see `Ledger`.
        accountant: `basic`, or `renyi` for a Rényi filter of the order that suits the budget.

    Raises:
        JobError: an option is wrong.
    """
    if accountant not in ("basic", "renyi"):
        raise JobError(f"--accountant is {accountant}: it must be basic or renyi.")
    try:
        ledger = Ledger.model_validate(fields)
    except ValidationError as error:
        raise JobError(*(f"--{sentence}" for sentence in say(error, Ledger))) from None
    if accountant == "basic":
        return ledger
    try:
        order = best_order(Budget(ledger.epsilon, ledger.delta))
    except InvalidValue as error:
        raise JobError(error.sentence(f"--{error.field}")) from None
    return ledger.model_copy(update={"order": order})


def create_ledger(path: str, ledger: Ledger) -> None:
    """Write a new ledger, with an id of its own.

    Raises:
        JobError: there is a file already, or none can be written.
    """
    folder, name = open_file(path)
    if not folder.create(name, ledger.identified().bytes()):
        raise JobError(f"{path} exists already: a ledger is created once; give another path.")


def read_ledger(path: str) -> Ledger:
    """Return the ledger at `path`.

    Raises:
        JobError: there is none.
    """
    return _parse(path, _read(path))


def charge_run(
    path: str, job: Job, plan: Plan, clock: Callable[[], datetime], output_id: str | None = None
) -> Entry:
    """Charge `job` to the ledger, unless its run id is charged already.

    Args:
        path: of the ledger.
        job: the job.
        plan: what it will draw.
        clock: tells the time.
        output_id: of the folder that the run publishes in.

    Returns:
        The charge as it stands in the ledger.

    Raises:
        JobError: no ledger, or the run id belongs to another job.
        LedgerRefusal: it doesn't fit, or its promise is of another kind.
    """
    for raw in _tries(path):
        ledger = _parse(path, raw)
        known = ledger.entry(job.run_id)
        if known is not None:
            if known.job != job.hash():
                raise JobError(
                    f"run_id is {job.run_id}: privacy.ledger has it as the run of another job; "
                    "give each job its own."
                )
            if not known.covers(plan):
                raise LedgerRefusal(
                    f"privacy.ledger {path} has charged run {job.run_id} for other noise than this version "
                    "of Shoal plans: run it with the version that was charged, or give another run_id."
                )
            if known.release is None and known.output_id not in (None, output_id):
                raise LedgerRefusal(
                    f"privacy.ledger {path} has charged run {job.run_id} for another folder than the one now "
                    f"at {job.output}, and that folder may hold a release: put it back, run where it is, or "
                    "give another run_id, which is charged by itself."
                )
            return known
        ledger = ledger.identified()
        entry = _admit(path, ledger, job, plan, clock()).model_copy(update={"output_id": output_id})
        if _swap(path, raw, ledger.model_copy(update={"charges": (*ledger.charges, entry)})):
            return entry
    raise StorageError(f"{path} was changed by others for {_PATIENCE:.0f} s without a pause.")


def check_room(path: str, job: Job, plan: Plan, clock: Callable[[], datetime]) -> tuple[Ledger, Spend]:
    """Return the ledger and what it would have spent with `job` charged; charge nothing.

    Raises:
        JobError: no ledger.
        LedgerRefusal: it would be refused.
    """
    ledger = read_ledger(path)
    if ledger.entry(job.run_id) is None:
        entry = _admit(path, ledger, job, plan, clock())
        ledger = ledger.model_copy(update={"charges": (*ledger.charges, entry)})
    return ledger, ledger.spent()


def mark_released(path: str, run_id: str, release: str, charged: str | None = None) -> None:
    """Mark the charge of `run_id` with its visible release's SHA-256, unless it is.

    Args:
        path: the ledger's.
        run_id: the run's.
        release: SHA-256 of its release.
        charged: id of the ledger that the run was charged to, where that is known.

    Raises:
        JobError: it is another ledger, the run was never charged, or it had another release.
    """
    for raw in _tries(path):
        ledger = _parse(path, raw)
        if charged is not None and ledger.id != charged:
            raise JobError(
                f"privacy.ledger {path} is another ledger (id {ledger.id}) than the one that run {run_id} "
                f"was charged to (id {charged}): put that one back, and run it again."
            )
        known = ledger.entry(run_id)
        if known is None:
            raise JobError(f"privacy.ledger {path} has no charge of run {run_id}, whose release is visible.")
        if known.release == release:
            return
        if known.release is not None:
            raise JobError(
                f"privacy.ledger {path} knows another release of run {run_id} than the one in {known.output}."
            )
        marked = known.model_copy(update={"release": release})
        charges = tuple(marked if entry is known else entry for entry in ledger.charges)
        if _swap(path, raw, ledger.model_copy(update={"charges": charges})):
            return
    raise StorageError(f"{path} was changed by others for {_PATIENCE:.0f} s without a pause.")


def describe_ledger(ledger: Ledger) -> dict[str, Any]:
    """Return the ledger as JSON values, with what is spent and left."""
    spent = ledger.spent()
    fits = math.isfinite(spent.epsilon)
    return {
        **json.loads(ledger.model_dump_json(by_alias=True)),
        "spent": spent.epsilon if fits else None,
        "left": max(0.0, ledger.epsilon - spent.epsilon) if fits else None,
        "accountant": spent.accountant,
    }


def now() -> datetime:
    """Return the time, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def _admit(path: str, ledger: Ledger, job: Job, plan: Plan, at: datetime) -> Entry:
    """Return the charge of `job`, if the ledger has room for it."""
    about = f"privacy.ledger {path}"
    if ledger.neighbors == "add_or_remove_one" and job.privacy.neighbors == "replace_one":
        raise LedgerRefusal(
            f"{about} promises to hide add_or_remove_one, where the number of records is private; the job's "
            "replace_one makes it public, at no epsilon at all: charge it to a ledger of replace_one."
        )
    if job.unit != ledger.unit:
        theirs, ours = _whose(ledger.unit), _whose(job.unit)
        raise LedgerRefusal(
            f"{about} promises to hide {theirs}, and the job hides {ours}: charge it to a ledger made for "
            f"{ours}, or let input.unit say what the ledger does."
        )
    if job.privacy.policy is not None:
        raise LedgerRefusal(
            f"{about} promises differential privacy, and the job's privacy.policy hides less: run it without "
            "a ledger, or without a policy."
        )
    if plan.hides is not None:
        raise LedgerRefusal(
            f"{about} promises to hide {job.privacy.neighbors} of whole rows, and the job hides less: "
            f"{plan.hides}. Run it without a ledger."
        )
    entry = Entry(
        run_id=str(job.run_id),
        job=job.hash(),
        task=job.task,
        output=job.output,
        at=at,
        neighbors=job.privacy.neighbors,
        epsilon=job.privacy.epsilon,
        delta=job.privacy.delta,
        draws=tuple((draw.epsilon, draw.delta, draw.rho) for draw in plan.mechanisms),
        ledger=ledger.id,
    )
    spent = ledger.model_copy(update={"charges": (*ledger.charges, entry)}).spent()
    if not at_most(spent.epsilon, ledger.epsilon):
        counted = entry.charge(ledger.neighbors).budget
        would = (
            f"it would come to epsilon {spent.epsilon:.6g} by {spent.accountant}"
            if math.isfinite(spent.epsilon)
            else "its delta would not suffice"
        )
        raise LedgerRefusal(
            f"{about} has epsilon {ledger.epsilon:g} and delta {ledger.delta:g} in all, and "
            f"{len(ledger.charges)} charges; with this run's epsilon {counted.epsilon:g} and delta "
            f"{counted.delta:g} {would}. Nothing was charged."
        )
    return entry


def _whose(unit: str | None) -> str:
    return "rows" if unit is None else f"units of {unit}"


def _read(path: str) -> bytes:
    folder, name = open_file(path)
    raw = folder.read(name)
    if raw is None:
        raise JobError(
            f"privacy.ledger {path} does not exist: make it with `shoal ledger create {path} --epsilon E "
            "--delta D`, and --unit COLUMN where the jobs have input.unit."
        )
    return raw


def _parse(path: str, raw: bytes) -> Ledger:
    try:
        ledger = Ledger.model_validate_json(raw)
    except ValidationError:  # whose text would quote the file, which may be one of rows
        raise JobError(
            f"{path} is not a ledger of schema 1: give one that `shoal ledger create` made."
        ) from None
    foreign = next((entry for entry in ledger.charges if entry.ledger != ledger.id), None)
    if foreign is not None:
        raise JobError(
            f"{path} holds the charge of run {foreign.run_id}, which was made in another ledger: charges "
            "cannot be moved, so put the file back as it was."
        )
    return ledger


def _tries(path: str) -> Iterator[bytes]:
    """Give the file's content again and again, pausing longer each time, until patience ends."""
    end, pause = time.monotonic() + _PATIENCE, 0.02
    while time.monotonic() < end:
        yield _read(path)
        time.sleep(pause)  # whoever is overtaken pauses; one of them always gets through
        pause = min(1.5 * pause, 2.0)


def _swap(path: str, seen: bytes, ledger: Ledger) -> bool:
    folder, name = open_file(path)
    return folder.swap(name, seen, ledger.bytes())
