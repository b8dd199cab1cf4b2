"""The ledger of a dataset: its total budget, and the charge of every run.

A ledger is one JSON file. It is changed only by an atomic compare-and-swap (`Folder.swap`), so concurrent
runs cannot spend the same budget twice. A run is charged before it reads data. The charge is keyed by the run
id, so a run that is repeated is charged once. When the release is visible, its SHA-256 is added to the
charge. From then on this run id never draws noise again, even if the release is lost.

A ledger has an id, which every charge repeats. A charge that was copied from another ledger is refused. A
release is recorded only in the ledger that its run was charged to.
"""

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
from pipelines.errors import JobError, sentences_of
from pipelines.job.job import Job
from pipelines.ledger.policy import LedgerPolicy, why_not
from pipelines.storage.folder import StorageError
from pipelines.storage.locate import open_file

_ROUNDING = 1e-9
_PATIENCE = 600.0
"""Seconds for which a swap is retried while others change the ledger."""


class LedgerRefusal(ShoalError, RuntimeError):
    """The ledger refuses the run; nothing was charged, read or written."""

    exit_code: ClassVar[int] = 3


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

    def covers(self, plan: Plan) -> bool:
        """Return whether each draw of `plan` costs at most as much as the charged one, up to rounding."""
        planned = [(draw.epsilon, draw.delta, draw.rho) for draw in plan.mechanisms]
        return len(planned) == len(self.draws) and all(
            new <= old * (1 + _ROUNDING)
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

    `order` is None where runs are composed by adding up their epsilons and deltas. Otherwise it is the order
    of the Rényi filter that composes their draws. It is fixed when the ledger is created, so that the promise
    holds even if earlier answers decide which runs follow; see `core.privacy_filter`.

    With a `policy` the promise is for its secret pairs alone. Files of earlier versions have none.
    """

    schema_: Literal[1] = Field(default=1, alias="schema")
    id: str | None = Field(default=None, pattern="^[0-9a-f]{32}$")
    neighbors: Name = "add_or_remove_one"
    unit: str | None = None
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
        absent = {"policy"} if self.policy is None else None  # then earlier versions can read the file, too
        return (self.model_dump_json(by_alias=True, indent=1, exclude=absent) + "\n").encode()


def new_ledger(fields: Mapping[str, Any], accountant: str) -> Ledger:
    """Return a ledger without charges, from the options of `shoal ledger create`.

    Args:
        fields: neighbors, unit, epsilon, delta and policy; see `Ledger`.
        accountant: `basic`, or `renyi` for a Rényi filter of the order that suits the budget.

    Raises:
        JobError: an option is wrong.
    """
    if accountant not in ("basic", "renyi"):
        raise JobError(f"--accountant is {accountant}: it must be basic or renyi.")
    try:
        ledger = Ledger.model_validate(fields)
    except ValidationError as error:
        raise JobError(*(f"--{sentence}" for sentence in sentences_of(error, Ledger))) from None
    if accountant == "basic":
        return ledger
    try:
        order = best_order(Budget(ledger.epsilon, ledger.delta))
    except InvalidValue as error:
        raise JobError(error.sentence(f"--{error.field}")) from None
    return ledger.model_copy(update={"order": order})


def create_ledger(path: str, ledger: Ledger) -> None:
    """Write a new ledger with a new id.

    Raises:
        JobError: the file exists, or cannot be written.
    """
    folder, name = open_file(path)
    if not folder.create(name, ledger.identified().bytes()):
        raise JobError(f"{path} exists already: give another path.")


def read_ledger(path: str) -> Ledger:
    """Return the ledger at `path`.

    Raises:
        JobError: there is no ledger.
    """
    return _parse(path, _read(path))


def charge_run(
    path: str, job: Job, plan: Plan, clock: Callable[[], datetime], output_id: str | None = None
) -> Entry:
    """Charge `job` to the ledger, unless its run id is charged already.

    Args:
        path: of the ledger.
        job: the job.
        plan: the plan of the job.
        clock: returns the current time.
        output_id: id of the folder of the release.

    Returns:
        The charge as it stands in the ledger.

    Raises:
        JobError: there is no ledger, or the run id belongs to another job.
        LedgerRefusal: the budget does not suffice, or the promises differ.
    """
    for raw in _tries(path):
        ledger = _parse(path, raw)
        known = ledger.entry(job.run_id)
        _check_promise(path, ledger, job, plan)
        if known is not None:
            if known.job != job.hash():
                raise JobError(
                    f"run_id is {job.run_id}: privacy.ledger contains a run of another job with this id; "
                    "give each job its own run_id."
                )
            if not known.covers(plan):
                raise LedgerRefusal(
                    f"privacy.ledger {path} has charged run {job.run_id} for other noise than this version "
                    "of Shoal plans: run it with the version that made the charge, or give another run_id."
                )
            if known.release is None and known.output_id not in (None, output_id):
                raise LedgerRefusal(
                    f"privacy.ledger {path} has charged run {job.run_id} for another folder than the one now "
                    f"at {job.output}, and that folder may contain a release: restore it, run where it is, "
                    "or give another run_id, which is charged separately."
                )
            return known
        ledger = ledger.identified()
        entry = _admit(path, ledger, job, plan, clock()).model_copy(update={"output_id": output_id})
        if _swap(path, raw, ledger.model_copy(update={"charges": (*ledger.charges, entry)})):
            return entry
    raise StorageError(f"{path} was changed by others for {_PATIENCE:.0f} s without a pause.")


def check_room(path: str, job: Job, plan: Plan, clock: Callable[[], datetime]) -> tuple[Ledger, Spend]:
    """Return the ledger as it would be with `job` charged, and its total. Nothing is written.

    Raises:
        JobError: there is no ledger.
        LedgerRefusal: the charge would be refused.
    """
    ledger = read_ledger(path)
    if ledger.entry(job.run_id) is None:
        entry = _admit(path, ledger, job, plan, clock())
        ledger = ledger.model_copy(update={"charges": (*ledger.charges, entry)})
    return ledger, ledger.spent()


def mark_released(path: str, run_id: str, release: str, charged: str | None = None) -> None:
    """Add the SHA-256 of the visible release to the charge of `run_id`, unless it is there.

    Args:
        path: of the ledger.
        run_id: of the run.
        release: SHA-256 of its release.
        charged: id of the ledger that the run was charged to, if known.

    Raises:
        JobError: the ledger is another one, the run was never charged, or the charge has another release.
    """
    for raw in _tries(path):
        ledger = _parse(path, raw)
        if charged is not None and ledger.id != charged:
            raise JobError(
                f"privacy.ledger {path} is another ledger (id {ledger.id}) than the one that run {run_id} "
                f"was charged to (id {charged}): restore that one, and run the job again."
            )
        known = ledger.entry(run_id)
        if known is None:
            raise JobError(
                f"privacy.ledger {path} contains no charge of run {run_id}, although its release is visible."
            )
        if known.release == release:
            return
        if known.release is not None:
            raise JobError(
                f"privacy.ledger {path} has recorded another release of run {run_id} than the one in "
                f"{known.output}."
            )
        marked = known.model_copy(update={"release": release})
        charges = tuple(marked if entry is known else entry for entry in ledger.charges)
        if _swap(path, raw, ledger.model_copy(update={"charges": charges})):
            return
    raise StorageError(f"{path} was changed by others for {_PATIENCE:.0f} s without a pause.")


def now() -> datetime:
    """Return the current time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def _admit(path: str, ledger: Ledger, job: Job, plan: Plan, at: datetime) -> Entry:
    """Return the charge of `job`.

    Raises:
        LedgerRefusal: the budget does not suffice, or the promises differ.
    """
    _check_promise(path, ledger, job, plan)
    about = f"privacy.ledger {path}"
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
            else "its delta would be exceeded"
        )
        raise LedgerRefusal(
            f"{about} has epsilon {ledger.epsilon:g} and delta {ledger.delta:g} in all, and "
            f"{len(ledger.charges)} charges; with this run's epsilon {counted.epsilon:g} and delta "
            f"{counted.delta:g} {would}. Nothing was charged."
        )
    return entry


def _check_promise(path: str, ledger: Ledger, job: Job, plan: Plan) -> None:
    differs = why_not(ledger.neighbors, ledger.unit, ledger.policy, job, plan)
    if differs is not None:
        raise LedgerRefusal(f"privacy.ledger {path} {differs}")


def _read(path: str) -> bytes:
    folder, name = open_file(path)
    raw = folder.read(name)
    if raw is None:
        raise JobError(
            f"privacy.ledger {path} does not exist: create it with `shoal ledger create {path} --epsilon E "
            "--delta D`, and --unit COLUMN if the jobs have input.unit."
        )
    return raw


def _parse(path: str, raw: bytes) -> Ledger:
    try:
        ledger = Ledger.model_validate_json(raw)
    except ValidationError:  # its text would quote the file, which may contain rows
        raise JobError(
            f"{path} is not a ledger of schema 1: give one that `shoal ledger create` made."
        ) from None
    foreign = next((entry for entry in ledger.charges if entry.ledger != ledger.id), None)
    if foreign is not None:
        raise JobError(
            f"{path} contains the charge of run {foreign.run_id}, which belongs to another ledger: charges "
            "cannot be moved, so restore the file."
        )
    return ledger


def _tries(path: str) -> Iterator[bytes]:
    """Yield the content of the file for each try, with growing pauses, until the time is over."""
    end, pause = time.monotonic() + _PATIENCE, 0.02
    while time.monotonic() < end:
        yield _read(path)
        time.sleep(pause)  # whoever loses a race pauses; one of them always wins
        pause = min(1.5 * pause, 2.0)


def _swap(path: str, seen: bytes, ledger: Ledger) -> bool:
    folder, name = open_file(path)
    return folder.swap(name, seen, ledger.bytes())
