"""Every release is total: whatever integers the noise makes of its numbers, no round fails,
nor the writing of what it released, nor its report.

Noise of a scale that is large beside int64 wraps, and then a noisy number may be any one. A failure would
tell what was drawn, and a run that failed between a draw and its release could draw again.
"""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.rounds import parts_of
from pipelines.answers.answer import Answer
from pipelines.grouped_release import draft_grouped_release, write_grouped_release
from pipelines.release import RELEASE, draft_release, encode_part, find_release, write_release
from pipelines.report.page import report_page
from pipelines.report.summary import summary_of
from pipelines.storage.folder import Folder
from pipelines.storage.locate import open_folder
from pipelines.table import Attempt, join_parts, write_part
from pipelines.tasks import TASKS
from tests.core.seeded import SeededNoise
from tests.pipelines.every_plan import GroupSetting, Setting, blocks, grouped_plans
from tests.pipelines.test_every_plan import aggregate, covered, released

WRITTEN = sorted(covered())[::13]
"""Every thirteenth setting: files and a report take about a second."""
OTHERS = sorted(set(covered()) - set(WRITTEN))

FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
ROUNDED = 0.006
"""By which part of itself a figure of a report may differ: it has three digits or more."""
NOT_REPORTED = ("noise", "typical_rank_error", "radius_factor")
"""Where there are several columns, centers or balls, a report has the largest of these, or none."""

ENDS = np.array([-(2**63), 2**63 - 1, 0])


class AnyNumber(SeededNoise):
    """Noise after which a number is an end of int64, 0, or any number, each for a fourth of them."""

    def laplace(self, values: Any, scale: float) -> Any:
        return self._any(np.shape(values))

    def gaussian(self, values: Any, scale: float) -> Any:
        return self._any(np.shape(values))

    def _any(self, shape: tuple[int, ...]) -> Any:
        which, drawn = self._rng.integers(0, 4, shape), self._rng.integers(-(2**63), 2**63 - 1, shape)
        return np.where(which < 3, ENDS[np.minimum(which, 2)], drawn).astype(np.int64)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", covered())
def test_no_round_fails_by_its_noise(name: str) -> None:
    setting = covered()[name]
    state = last_state(setting)
    for part in state if parts_of(setting.plan.rounds[-1]) > 1 else (state,):
        found = getattr(part, "state", part)
        result = found.result(setting.job.grid)
        assert result is None or is_dataclass(result)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name", [*WRITTEN, *(pytest.param(name, marks=pytest.mark.audit) for name in OTHERS)]
)
def test_no_file_fails_by_its_noise(name: str, tmp_path: Path) -> None:
    setting = covered()[name]
    folder = open_folder(str(tmp_path))
    release = written(folder, setting, last_state(setting))
    assert release["outcome"] in ("released", "not_found")
    assert summary_of(folder, release)
    page = report_page(folder, release).decode()
    assert "</html>" in page
    check_report(page, release)
    if "groups" not in release:
        check_line(TASKS[release["task"]].answers.answer(release, None))


def check_line(answer: Answer) -> None:
    """Check that the line of an answer has every figure, each once, and says where a true one is."""
    for fact in () if answer.advice else answer.facts:
        figure = ", ".join(fact.lines)
        assert figure in answer.headline if fact.said else f"{fact.name} {figure}" in answer.brief
        assert fact.range in answer.brief


def check_report(page: str, release: Mapping[str, Any]) -> None:
    """Check that a report has every figure of a result, rounded or not, but those of `NOT_REPORTED`."""
    bare = re.sub(r"<style.*?</style>|<script.*?</script>", "", page, flags=re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]+>", " ", bare)).replace("\N{MINUS SIGN}", "-")
    shown = [float(figure.replace(",", "")) for figure in FIGURE.findall(text)]
    most = 0.5 * np.max(release["domain"]["step"]) if "domain" in release else 0.0
    for name, value in figures_of(release.get("result")):
        if isinstance(value, str):
            assert value in text, name
        elif name not in NOT_REPORTED:
            off = np.abs(np.abs(shown) - abs(value))
            assert (off <= max(most, ROUNDED * abs(value))).any(), f"{name} {value}"


def figures_of(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the figures and texts of a result with their names."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from figures_of(each, key)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from figures_of(each, name)
    elif value is not None and not isinstance(value, bool):
        yield name, value


def last_state(setting: Setting) -> Any:
    """Return what the last round of a plan ends with, or what its parts do."""
    state, noise, data = setting.plan.start, AnyNumber(1), blocks(setting, "even")
    for step in setting.plan.rounds:
        state = released(step, aggregate(step, data, state), state, noise)
    return state


def written(folder: Folder, setting: Setting, state: Any) -> Mapping[str, Any]:
    """Write what a run writes of its last state, or states; return the release."""
    job, plan = setting.job, setting.plan
    if isinstance(setting, GroupSetting):
        grouped = next(job for job, its in grouped_plans().values() if its is setting.grouped)
        draft = draft_grouped_release(grouped, setting.grouped)
        groups = range(len(draft.grouping.labels or ()))
        write_grouped_release(folder, draft, [(number, state) for number in groups])
        job = grouped
    elif parts_of(plan.rounds[-1]) > 1:
        attempt = Attempt.of(len(state), b"records")
        attempt.claim(folder)
        parts = [
            write_part(
                folder, attempt, number, encode_part(draft_release(job, plan), job.grid, part), job.hash()
            )
            for number, part in enumerate(state)
        ]
        folder.create(RELEASE, join_parts(parts))
    else:
        write_release(folder, draft_release(job, plan), state, job.grid)
    found = find_release(folder, job.hash(), str(job.run_id))
    assert found is not None
    return found
