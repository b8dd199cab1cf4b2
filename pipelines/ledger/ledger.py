"""The ledger of a dataset: its total budget, and the charge of every run.

A ledger is one JSON file. It is changed only by an atomic compare-and-swap (`Folder.swap`), so concurrent
runs cannot spend the same budget twice. A run is charged before it reads data. The charge is keyed by the run
id, so a run that is repeated is charged once. When the release is visible, its SHA-256 is added to the
charge. From then on this run id never draws noise again, even if the release is lost.

A ledger has an id, which every charge repeats. A charge that was copied from another ledger is refused. A
release is recorded only in the ledger that its run was charged to.
"""

import math
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from pydantic import ValidationError

from core.budget import Budget
from core.errors import InvalidValue, ShoalError
from core.groups import AnyPlan
from core.privacy_filter import at_most, best_order
from pipelines.answers.text import number, number_of
from pipelines.console.printable import CONTROL
from pipelines.errors import JobError, check_text, quoted, sentences_of
from pipelines.job.job import Job
from pipelines.job.questions import QuestionsJob
from pipelines.ledger.content import Entry, Ledger, NoLedger, read_content
from pipelines.ledger.policy import why_not
from pipelines.storage.folder import StorageError
from pipelines.storage.locate import open_file

_PATIENCE = 600.0
"""Seconds for which a swap is retried while others change the ledger."""


class LedgerRefusal(ShoalError, RuntimeError):
    """The ledger refuses the run; nothing was charged, read or written."""

    exit_code: ClassVar[int] = 3


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
        check_text(dict(fields))
        ledger = Ledger.model_validate(fields)
    except JobError as error:
        raise JobError(f"--{error}") from None
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
        JobError: the path has control characters, or the file exists or cannot be written.
    """
    if CONTROL.search(path):
        raise JobError(f"LEDGER.json is {quoted(path)}: it has control characters, so no job could name it.")
    folder, name = open_file(path)
    if not folder.create(name, ledger.identified().bytes()):
        raise JobError(f"{path} exists already: give another path.")


def read_ledger(path: str, job: Job | QuestionsJob | None = None) -> Ledger:
    """Return the ledger at `path`.

    Args:
        path: of the ledger.
        job: a job that would be charged to it, if known.

    Raises:
        JobError: there is no ledger; the text says how to make one for the job.
    """
    return _parse(path, _read(path, job))


def charge_run(
    path: str,
    job: Job | QuestionsJob,
    plan: AnyPlan,
    clock: Callable[[], datetime],
    output_id: str | None = None,
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
    for raw in _tries(path, job):
        ledger = _parse(path, raw)
        entry = _charge_of(path, ledger, job, plan, clock(), output_id)
        if entry in ledger.charges:
            return entry
        ledger = ledger.identified()
        entry = entry.model_copy(update={"ledger": ledger.id})
        if _swap(path, raw, ledger.model_copy(update={"charges": (*ledger.charges, entry)})):
            return entry
    raise StorageError(f"{path} was changed by others for {_PATIENCE:.0f} s without a pause.")


def check_charge(
    path: str,
    job: Job | QuestionsJob,
    plan: AnyPlan,
    clock: Callable[[], datetime],
    output_id: str | None = None,
) -> Entry:
    """Check that `charge_run` would work, and return the charge. Nothing is written.

    Raises:
        JobError: see `charge_run`, or the file may not be written.
        LedgerRefusal: see `charge_run`.
        StorageError: the ledger cannot be written.
    """
    entry = _charge_of(path, read_ledger(path, job), job, plan, clock(), output_id)
    folder, name = open_file(path)
    folder.prepare_swap(name)
    return entry


def check_charges(
    path: str, runs: Sequence[tuple[Job | QuestionsJob, AnyPlan]], clock: Callable[[], datetime]
) -> None:
    """Check that the ledger has enough left for the last of some runs, after the charges of the others.

    Args:
        path: of the ledger.
        runs: at least one; jobs of different run ids with their plans. What is charged costs nothing more.
        clock: returns the current time.

    Raises:
        JobError: there is no ledger.
        LedgerRefusal: the budget does not suffice.
    """
    ledger = read_ledger(path, runs[-1][0])
    for job, plan in runs[:-1]:
        if ledger.entry(job.run_id) is None:
            entry = entry_of(ledger, job, plan, clock())
            ledger = ledger.model_copy(update={"charges": (*ledger.charges, entry)})
    job, plan = runs[-1]
    if ledger.entry(job.run_id) is None:
        _admit(path, ledger, job, plan, clock())


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
    for raw in _tries(path, released=run_id):
        ledger = _parse(path, raw)
        known = _released_entry(path, ledger, run_id, release, charged)
        if known.release == release:
            return
        marked = known.model_copy(update={"release": release})
        charges = tuple(marked if entry is known else entry for entry in ledger.charges)
        if _swap(path, raw, ledger.model_copy(update={"charges": charges})):
            return
    raise StorageError(f"{path} was changed by others for {_PATIENCE:.0f} s without a pause.")


def check_release(path: str, run_id: str, release: str) -> None:
    """Check that `mark_released` would work. Nothing is written.

    Raises:
        JobError: see `mark_released`.
    """
    _released_entry(path, _parse(path, _read(path, released=run_id)), run_id, release, None)


def now() -> datetime:
    """Return the current time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def _charge_of(
    path: str,
    ledger: Ledger,
    job: Job | QuestionsJob,
    plan: AnyPlan,
    at: datetime,
    output_id: str | None,
) -> Entry:
    """Return the charge of `job` that is in the ledger, or else a new one; see `charge_run`."""
    check_promise(path, ledger, job, plan)
    known = ledger.entry(job.run_id)
    if known is None:
        _check_free(path, ledger, job, output_id)
        return _admit(path, ledger, job, plan, at).model_copy(update={"output_id": output_id})
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


def _check_free(path: str, ledger: Ledger, job: Job | QuestionsJob, output_id: str | None) -> None:
    """Check that no other run is charged for a release in this folder, which holds one.

    Raises:
        LedgerRefusal: one is, so whichever of the two came last would be charged for nothing.
    """
    for entry in ledger.charges if output_id is not None else ():
        if entry.output_id == output_id and entry.release is None:
            raise LedgerRefusal(
                f"privacy.ledger {path} has charged run {entry.run_id} for a release in {job.output}, which "
                "has none yet, and a folder holds one: let that run end, or give another output, such as "
                "one with {run_id} in its name. Nothing was charged for this run."
            )


def entry_of(ledger: Ledger, job: Job | QuestionsJob, plan: AnyPlan, at: datetime) -> Entry:
    """Return the charge of `job`, whether or not the budget suffices."""
    return Entry(
        run_id=str(job.run_id),
        job=job.hash(),
        task=job.task,
        output=job.output,
        at=at,
        neighbors=job.privacy.neighbors,
        epsilon=job.privacy.epsilon,
        delta=plan.spend.delta,
        draws=tuple((draw.epsilon, draw.delta, draw.rho) for draw in plan.mechanisms),
        ledger=ledger.id,
    )


def _admit(path: str, ledger: Ledger, job: Job | QuestionsJob, plan: AnyPlan, at: datetime) -> Entry:
    """Return the charge of `job`.

    Raises:
        LedgerRefusal: the budget does not suffice.
    """
    about, entry = f"privacy.ledger {path}", entry_of(ledger, job, plan, at)
    spent = ledger.model_copy(update={"charges": (*ledger.charges, entry)}).spent()
    if not at_most(spent.epsilon, ledger.epsilon):
        counted = entry.charge(ledger.neighbors).budget
        would = (
            f"it would come to epsilon {spent.epsilon:.6g} by {spent.accountant}"
            if math.isfinite(spent.epsilon)
            else "its delta would be exceeded"
        )
        remains = max(0.0, ledger.epsilon - ledger.spent().epsilon)
        left = f" Epsilon {number(remains, 6)} is left." if math.isfinite(spent.epsilon) else ""
        raise LedgerRefusal(
            f"{about} has epsilon {number(ledger.epsilon)} and delta {number(ledger.delta)} in all, and "
            f"{number_of(len(ledger.charges), 'charge')}; with this run's epsilon {number(counted.epsilon)} "
            f"and delta {number(counted.delta)} {would}. Nothing was charged for it.{left}"
        )
    return entry


def check_promise(path: str, ledger: Ledger, job: Job | QuestionsJob, plan: AnyPlan) -> None:
    """Check that a ledger promises what the run of a job keeps.

    Raises:
        LedgerRefusal: the promises differ.
    """
    differs = why_not(ledger.neighbors, ledger.unit, ledger.count, ledger.policy, job, plan)
    if differs is not None:
        raise LedgerRefusal(f"privacy.ledger {path} {differs}")


def _released_entry(path: str, ledger: Ledger, run_id: str, release: str, charged: str | None) -> Entry:
    """Return the charge of a run whose release is visible; see `mark_released`."""
    if charged is not None and ledger.id != charged:
        raise JobError(
            f"privacy.ledger {path} is another ledger (id {ledger.id}) than the one that run {run_id} "
            f"was charged to (id {charged}): restore that one, and run the job again."
        )
    known = ledger.entry(run_id)
    if known is None:
        raise JobError(
            f"privacy.ledger {path} contains no charge of run {run_id}, although its release is visible: "
            "restore the ledger that the run was charged to, since a new one forgets what was spent."
        )
    if known.release not in (None, release):
        raise JobError(
            f"privacy.ledger {path} has recorded another release of run {run_id} than the one in "
            f"{known.output}: restore the file that the run wrote."
        )
    return known


def _read(path: str, job: Job | QuestionsJob | None = None, released: str | None = None) -> bytes:
    folder, name = open_file(path)
    raw = folder.read(name)
    if raw is None and released is not None:
        raise JobError(
            f"privacy.ledger {path} does not exist, although the release of run {released} is visible: "
            "restore the ledger that the run was charged to, since a new one forgets what was spent."
        )
    if raw is None:
        units = ", and --unit COLUMN if the jobs have input.unit" if job is None else ""
        raise JobError(
            f"privacy.ledger {path} does not exist: create it with `shoal ledger create {path} --epsilon E "
            f"--delta D{_options(job)}`{units}. --accountant renyi admits many more runs that are small."
        )
    return raw


def _options(job: Job | QuestionsJob | None) -> str:
    """Return the options with which `shoal ledger create` makes a ledger of the promise of a job."""
    if job is None:
        return ""
    privacy = job.privacy
    given = {
        "unit": job.unit,
        "count": job.count,
        "policy": None if privacy.policy is None else "JOB.yaml",
        "neighbors": None
        if privacy.neighbors == "add_or_remove_one" or privacy.policy
        else privacy.neighbors,
    }
    return "".join(f" --{name} {shlex.quote(value)}" for name, value in given.items() if value is not None)


def _parse(path: str, raw: bytes) -> Ledger:
    try:
        ledger = read_content(raw)
    except NoLedger as error:
        raise JobError(
            f"{path} is not a ledger of schema 1, as {error}: give one that `shoal ledger create` "
            "made. If this was one, restore it, since a new one forgets what was spent."
        ) from None
    foreign = next((entry for entry in ledger.charges if entry.ledger != ledger.id), None)
    if foreign is not None:
        raise JobError(
            f"{path} contains the charge of run {foreign.run_id}, which belongs to another ledger: charges "
            "cannot be moved, so restore the file."
        )
    return ledger


def _tries(path: str, job: Job | QuestionsJob | None = None, released: str | None = None) -> Iterator[bytes]:
    """Yield the content of the file for each try, with growing pauses, until the time is over."""
    end, pause = time.monotonic() + _PATIENCE, 0.02
    while time.monotonic() < end:
        yield _read(path, job, released)
        time.sleep(pause)  # whoever loses a race pauses; one of them always wins
        pause = min(1.5 * pause, 2.0)


def _swap(path: str, seen: bytes, ledger: Ledger) -> bool:
    folder, name = open_file(path)
    return folder.swap(name, seen, ledger.bytes())
