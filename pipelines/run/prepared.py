"""A job that is ready to run, and the steps of its run."""

from dataclasses import dataclass, field
from functools import cached_property

from apache_beam.options.pipeline_options import PipelineOptions

from core.each_group import in_one_pass
from core.groups import GroupedPlan
from core.plan import Plan
from core.rounds import Round, Strand, looks_of
from pipelines.console.progress import Step
from pipelines.grouped_plan import strands_of_job
from pipelines.job.job import Job
from pipelines.job.subsamples_job import SubsamplesJob
from pipelines.run.joint_run import unit_bounds
from transforms.bound_groups import CHOSEN, SHARDS
from transforms.bound_units import UnitBounds
from transforms.evaluate_subsamples import ANSWERED
from transforms.gather_parts import GATHERED
from transforms.open_source import Source
from transforms.run_function import Function
from transforms.run_rounds import passes_of
from transforms.split_units import Splitting


@dataclass(frozen=True)
class Prepared:
    """A job that passed every check that needs no row, no budget and no writing.

    Args:
        job: the job.
        options: options of Beam.
        source: its input.
        plan: its plan; that of all groups where it is asked about each of them by itself.
        salt: 16 secret bytes that choose samples.
    """

    job: Job
    options: PipelineOptions
    source: Source
    plan: Plan | GroupedPlan
    salt: bytes = field(repr=False)

    @cached_property
    def function(self) -> Function | None:
        """The function whose answers are the records; None where the records are rows or units."""
        return self.job.untrusted() if isinstance(self.job, SubsamplesJob) else None

    @property
    def splitting(self) -> Splitting:
        """How rows become the subsamples of the function."""
        source, blocks, bounds = self.source, self.job.task_params.blocks, self.job.bounds
        most = 1 if bounds is None else bounds.groups
        return Splitting(
            source.columns,
            source.unit,
            blocks,
            self.salt,
            source.preparation,
            source.groups,
            most,
            source.mixed,
        )

    @property
    def groups(self) -> int:
        """Number of groups that the job is asked about one by one; 0 where it is not."""
        keys = self.source.groups
        return len(keys.labels or ()) if keys is not None and self.job.apart else 0

    @property
    def strands(self) -> list[Strand]:
        """The rounds of the question, or of each of its groups."""
        return strands_of_job(self.job, self.plan, self.groups)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds of every strand."""
        return self.strands[0].rounds

    @property
    def apart(self) -> int:
        """Number of groups whose records are split, for strands of their own; 0 where they are not."""
        return 0 if in_one_pass(self.strands) else self.groups

    @property
    def bounding(self) -> UnitBounds | None:
        """How the rows of a unit become its records; None where rows or answers of a function are records."""
        if self.function is not None or (self.job.keep is None and self.job.bounds is None):
            return None
        return unit_bounds(self.source, self.job, self.salt)


def steps_of(prepared: Prepared) -> list[Step]:
    """Return the steps of a run that count what they have done, in order."""
    source = prepared.source
    passes = [(round_.name, 1 + looks_of(round_)) for round_ in prepared.plan.rounds]
    if prepared.groups:
        passes = [(name, 1) for name in passes_of(prepared.strands[:1])]
    gather = Step(GATHERED, source.row_groups, "row groups")
    if prepared.function is not None:
        splitting = prepared.splitting
        blocks = splitting.total
        choose = [Step(CHOSEN, SHARDS, "parts", weight=0.2)] if splitting.chooses_groups else []
        answer = Step(ANSWERED, blocks, "blocks", weight=10.0)
        return [gather, *choose, answer, *(Step(name, blocks, "answers", weight=0.1) for name, _ in passes)]
    if prepared.bounding is not None:
        parts = prepared.bounding.parts
        return [gather, *(Step(name, parts * times, "parts", weight=0.2) for name, times in passes)]
    return [Step(name, source.row_groups * times, "row groups") for name, times in passes]
