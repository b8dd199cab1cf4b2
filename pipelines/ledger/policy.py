"""The policy of a ledger, and which runs hide as much as a ledger promises."""

from typing import Self, cast

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from core.groups import AnyPlan
from core.neighbors import Name
from pipelines.errors import JobError
from pipelines.job.domain import Domain
from pipelines.job.job import Job, RowsJob
from pipelines.job.policy import JobPolicy
from pipelines.job.questions import QuestionsJob
from transforms.column_types import KINDS, exact_axes, used_types

_PLACES = {"columns": "input.columns", "domain": "domain", "policy": "privacy.policy", "path": "input.path"}


class LedgerPolicy(BaseModel):
    """A policy of a ledger: secret pairs, and the universe whose points they are.

    Runs of one policy compose as any others do: their epsilons add up for every two neighbors (He,
    Machanavajjhala and Ding 2014, Theorem 4.1). This needs the same neighbors in every run. Another domain or
    other columns would make other neighbors of the same rows, so they are part of the policy here.

    Known counts are counts of one input, so with them `path` is that input. Without them it is None: if two
    databases differ by one secret pair, their parts in any file differ by that pair, or not at all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    columns: tuple[str, ...]
    domain: Domain
    policy: JobPolicy
    path: str | None = None

    @classmethod
    def of(cls, job: Job) -> Self:
        """Return the policy of a job.

        Raises:
            JobError: the job has no policy.
        """
        policy = job.privacy.policy
        if policy is None:
            raise JobError("--policy is a job without privacy.policy: give a job that has one.")
        path = job.input.path if policy.constraints else None
        return cls(columns=job.input.columns, domain=cast(RowsJob, job).domain, policy=policy, path=path)


def why_not(
    neighbors: Name,
    unit: str | None,
    count: str | None,
    policy: LedgerPolicy | None,
    job: Job | QuestionsJob,
    plan: AnyPlan,
) -> str | None:
    """Return why a run cannot be charged to a ledger, as a predicate; None where it hides enough.

    A run of full privacy hides every pair of values, so also the secret pairs of a policy (Lemma 5.2). This
    does not hold under known counts, where neighbors differ in several rows.

    Args:
        neighbors: of the ledger.
        unit: of the ledger.
        count: of the ledger.
        policy: of the ledger.
        job: the job.
        plan: the plan of the job.
    """
    if neighbors == "add_or_remove_one" and job.privacy.neighbors == "replace_one":
        return (
            "promises add_or_remove_one, which keeps the number of records private; the job's replace_one "
            "makes it public: charge the job to a ledger of replace_one."
        )
    if job.unit != unit:
        theirs, ours = _whose(unit), _whose(job.unit)
        return (
            f"promises to hide {theirs}, but the job hides {ours}: charge it to a ledger for {ours}, or set "
            "input.unit as in the ledger."
        )
    kind = "text" if unit is None else (job.input.types or {}).get(unit, "text")
    if kind != "text":
        return (
            f"promises to hide {_whose(unit)} as they are in the files, but input.types makes it {kind}, "
            "so that several of its texts may be one unit: leave that type out, or run the job without a "
            "ledger."
        )
    if neighbors == "replace_one":
        jobs = job.jobs.values() if isinstance(job, QuestionsJob) else [job]
        other = next((name for own in jobs for name in _retyped(own)), None)
        if other is not None:
            return (
                "promises replace_one, under which the rows that have all values are public, but input.types "
                f"gives {other} another type than its use does, with which other rows have them: leave that "
                "type out, or charge the job to a ledger of add_or_remove_one."
            )
    if job.count != count:
        theirs, ours = _records(count), _records(job.count)
        return (
            f"promises to hide {theirs}, but the job hides {ours}: charge it to a ledger "
            f"{'without --count' if job.count is None else f'made with --count {job.count}'}, or set "
            "input.count as in the ledger."
        )
    if plan.hides is not None:
        return (
            f"promises to hide {job.privacy.neighbors} of whole rows, but the job hides less: {plan.hides}. "
            "Run it without a ledger."
        )
    if plan.policy is not None and isinstance(job, QuestionsJob):
        return (
            "promises one neighbor relation, but under privacy.policy each question of the job has secret "
            "pairs of its own: run it without a ledger, or give the questions jobs of their own."
        )
    if plan.policy is None:
        if policy is None or not policy.policy.constraints:
            return None
        return (
            "promises to hide changes of several rows that keep the known counts of its policy, but the job "
            "hides a change of one row: give the job the privacy.policy of the ledger."
        )
    if policy is None:
        return (
            "promises differential privacy, but the job's privacy.policy hides less: charge it to a ledger "
            "made with --policy for this policy, or run it without a policy."
        )
    return _difference(policy, LedgerPolicy.of(cast(Job, job)))


def _retyped(job: Job) -> list[str]:
    """Return the axes to which a job gives another type than files without types have for them."""
    if not isinstance(job, RowsJob):
        return []  # a function gets rows with missing values, too
    grid = job.grid
    uses = used_types(job.input.columns, times=grid.times, exact=exact_axes(job.input.columns, grid))
    given = {name: KINDS[kind] for name, kind in (job.input.types or {}).items() if name in uses}
    times = {name for name, kind in uses.items() if kind is not None and pa.types.is_timestamp(kind)}
    return [
        name
        for name, kind in given.items()
        if kind != uses[name] and not (name in times and pa.types.is_timestamp(kind))
    ]


def _difference(theirs: LedgerPolicy, ours: LedgerPolicy) -> str | None:
    """Return why a run under a policy cannot be charged to a ledger of a policy; None where both are one."""
    for field in LedgerPolicy.model_fields:
        if getattr(theirs, field) != getattr(ours, field):
            return (
                f"promises to hide the secret pairs of its policy, but the job has another {_PLACES[field]}: "
                "epsilons add up only under one policy, on the same columns and domain. Charge the job to a "
                "ledger that is made with --policy for it."
            )
    return None


def _records(count: str | None) -> str:
    return "whole rows" if count is None else f"one of the records of a row, which {count} counts"


def _whose(unit: str | None) -> str:
    return "rows" if unit is None else f"units of {unit}"
