"""Questions about each of several groups, beside others: a group has what its rows alone would give."""

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from apache_beam.options.pipeline_options import PipelineOptions

from core.budget import spend
from core.groups import GroupedPlan
from core.input_checks import Checked
from core.rounds import Block
from core.sampling import siphash
from pipelines.job.job import check_several
from pipelines.joint_plan import make_joint_plan
from pipelines.ledger.ledger import create_ledger, new_ledger, read_ledger
from pipelines.run.joint_run import prepare_questions, read_records
from tests.engines.golden import traced
from tests.pipelines.conftest import Bench
from tests.pipelines.test_groups import NOISELESS, ONE_THREAD, TWO_PROCESSES, assert_as_alone
from transforms import split_groups
from transforms.bound_units import bound_in_memory
from transforms.embedded_runner import EmbeddedRunner
from transforms.open_source import open_source
from transforms.read_blocks import ReadBlocks, Reader, list_row_groups
from transforms.run_rounds import RunStrands

LINE = {"lower": [0], "upper": [1], "step": 2.0**-10}
SQUARE = {"lower": [0, 0], "upper": [1, 1], "step": 2.0**-10}
CITIES = {"columns": ["city"], "keys": ["a", "b", "nowhere"]}
QUESTIONS: dict[str, dict[str, Any]] = {
    "middle": {"task": "median", "columns": ["y"], "domain": LINE, "params": {}},
    "by_city": {
        "task": "quantiles",
        "columns": ["x"],
        "domain": LINE,
        "group_by": CITIES,
        "params": {"probabilities": [0.1, 0.5]},
    },
    "spots": {
        "task": "one_cluster",
        "columns": ["x", "y"],
        "domain": SQUARE,
        "group_by": CITIES,
        "params": {"target": 300},
        "share": 2,
    },
    "totals": {
        "task": "statistics",
        "columns": ["y"],
        "domain": LINE,
        "group_by": {"columns": ["city"], "keys": "private"},
        "params": {"measures": ["count", "mean"]},
    },
    "cells": {
        "task": "histogram",
        "columns": ["y"],
        "domain": LINE,
        "group_by": {"columns": ["kind"], "keys": [True, False]},
        "params": {"cells": [8]},
    },
}
LABELS = {"by_city": ["a", "b", "nowhere"], "spots": ["a", "b", "nowhere"], "cells": [True, False]}


@pytest.fixture
def several(bench: Bench) -> dict[str, Any]:
    """A job about the bench's rows in cities and with units; some lie outside, some have no value or city."""
    rows = pq.read_table(bench.rows)
    rng, n = np.random.default_rng(5), len(rows)
    x = rows.column("x").to_numpy().copy()
    x[::17], x[::19] = np.nan, 1.5
    city = np.array(["a", "b", "c", None], dtype=object)[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    table = {"x": x, "y": rows.column("y"), "who": rng.integers(0, n // 3, n)}
    table |= {"city": pa.array(city, pa.string()), "kind": rng.integers(0, 2, n) == 1}
    pq.write_table(pa.table(table), bench.rows, row_group_size=1000)
    return {
        "input": {"path": bench.job["input"]["path"]},
        "privacy": {"epsilon": 20.0, "delta": 1e-5},
        "questions": copy.deepcopy(QUESTIONS),
        "output": bench.job["output"],
    }


def written(bench: Bench, job: dict[str, Any]) -> str:
    """Write the job as JSON, since a YAML file has no aliases for what two questions share."""
    return bench.write(json.dumps(job))


def with_units(job: dict[str, Any]) -> dict[str, Any]:
    """A unit keeps one of its groups in each question, so that units of several cities lose rows."""
    job["input"]["unit"] = "who"
    for name in {*LABELS, "totals"} & set(job["questions"]):
        job["questions"][name]["contributions"] = {"groups": 1}
    return job


def alone(prepared: Any, name: str, place: int) -> list[Block]:
    """Return the records of a run on the rows of one group alone, as a condition on rows leaves them."""
    job = prepared.job.jobs[name]
    if prepared.bounding is None:
        (column,), label = job.group_by.columns, LABELS[name][place]
        value = f"'{label}'" if isinstance(label, str) else str(label).lower()
        only = job.input.model_copy(update={"where": f"{column} == {value}"})
        source = open_source(only.path, only.columns, preparation=only.preparation())
        reader = Reader.of(source, job.grid, job.checks > 0)
        return [
            block for file in source.files for part in list_row_groups(file) for block in reader.blocks(part)
        ]
    number, found = list(prepared.job.jobs).index(name), []
    for block in bound_in_memory(prepared.sources[name], prepared.bounding.bounds[number]):
        mine = block.groups == place
        ids = siphash(block.ids[mine], prepared.salt, (place << 40) + split_groups._GROUP)
        found.append(Block(block.points[mine], ids))
    return found


@pytest.mark.parametrize(
    ("mode", "units", "relation"),
    [
        (ONE_THREAD, False, "add_or_remove_one"),
        (ONE_THREAD, False, "replace_one"),
        (ONE_THREAD, True, "add_or_remove_one"),
        (TWO_PROCESSES, True, "replace_one"),
    ],
)
def test_each_group_of_a_question_has_the_aggregates_of_its_rows_alone(
    several: dict[str, Any], tmp_path: Path, mode: dict[str, Any], units: bool, relation: str
) -> None:
    several["privacy"]["neighbors"] = relation
    prepared = prepare_questions(
        check_several(with_units(several) if units else several), "FnApiRunner", [], None
    )
    strands = list(map(traced, prepared.strands))
    output = tmp_path / "states"
    output.mkdir()

    def keep(last: tuple[int, Any]) -> None:
        with (output / str(last[0])).open("xb") as file:
            pickle.dump(last[1], file)

    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([], **mode)) as pipeline:
        elements, records = read_records(
            prepared, pipeline | ReadBlocks(next(iter(prepared.sources.values())))
        )
        elements | RunStrands(strands, NOISELESS, records, 5) | beam.Map(keep)
    names = list(prepared.job.jobs)
    assert [names[question] for question, _ in records.owners] == [
        name for name in names for _ in (LABELS.get(name, [0]) if name != "by_city" else [0])
    ]
    assert len(list(output.iterdir())) == len(strands) == 8
    for number, (question, place) in enumerate(records.owners):
        name = names[question]
        ended = pickle.loads((output / str(number)).read_bytes())
        for group in range(len(LABELS[name])) if name == "by_city" else [place] * (name in LABELS):
            blocks = alone(prepared, name, group)
            assert (sum(len(block.ids) for block in blocks) > 0) == (LABELS[name][group] != "nowhere")
            got = assert_as_alone(strands[number], ended, group, blocks)
            if isinstance(got, Checked) and (name, group) == ("by_city", 0):
                assert min(got.left_out[0], got.moved[0]) > 0


@pytest.mark.parametrize("units", [False, True])
def test_one_release_has_all_groups_of_all_questions(
    bench: Bench, several: dict[str, Any], units: bool
) -> None:
    asked = {name: labels for name, labels in LABELS.items() if units or name != "spots"}  # it takes long
    several["questions"] = {
        name: QUESTIONS[name] for name in QUESTIONS if name in asked or name not in LABELS
    }
    if units:
        several["questions"] = copy.deepcopy(several["questions"])
        with_units(several)
    ledger = str(bench.folder / "ledger.json")
    promise = {"neighbors": "add_or_remove_one", "epsilon": 25.0, "delta": 1e-4}
    whole = promise | ({"unit": "who"} if units else {})
    create_ledger(ledger, new_ledger(whole, "basic"))
    several["privacy"]["ledger"] = ledger
    result = bench.shoal("run", written(bench, several))
    assert result.exit_code == 0, result.stderr
    release, out = bench.release(), bench.folder / "out"
    answers = release["answers"]
    assert list(answers) == list(several["questions"]) and release["outcome"] == "released"
    for name, labels in asked.items():
        answer = answers[name]
        assert [group["key"] for group in answer["groups"]] == [[label] for label in labels]
        assert answer["group_by"]["public_keys"] == len(labels) and "result" not in answer
        assert answer["each_group"]["epsilon"] == answer["privacy"]["epsilon"]
        assert answer["outcome"] == "released"
    results = [group["result"] for name in ("by_city", "cells") for group in answers[name]["groups"]]
    assert len({json.dumps(each, sort_keys=True) for each in results}) > len(results) // 2  # by their noise
    rows = pq.read_table(out / "cells.parquet")
    assert rows.column_names[0] == "kind" and len(rows) == 16
    assert answers["cells"]["table"][0]["name"] == "cells.parquet"
    if not units:
        kinds = pq.read_table(bench.rows).column("kind").to_numpy()
        counts = rows.column("count").to_numpy()
        assert abs(counts[:8].sum() - np.count_nonzero(kinds)) < 150  # of a standard error below 20
    (entry,) = read_ledger(ledger).charges
    draws = [draw for answer in answers.values() for draw in answer["mechanisms"]]
    assert list(entry.draws) == [(d["epsilon"], d["delta"], d["rho"]) for d in draws]
    page = (out / "report.html").read_text()
    assert "3 groups by city" in page and "2 groups by kind" in page
    for name, labels in asked.items():
        assert all(f'id="{name}-group-{place}"' in page for place in range(len(labels)))
    anchors = re.findall(r'\bid="([^"]*)"', page)
    assert len(anchors) == len(set(anchors))
    assert "nowhere: " in result.stdout and "All groups together spent" in result.stdout
    shown = bench.shoal("report", str(out))
    assert shown.exit_code == 0, shown.stderr


def test_a_unit_has_an_identity_of_its_own_in_each_group(several: dict[str, Any]) -> None:
    """Groups of a question sample with one key; see `test_a_unit_is_sampled_independently_in_its_groups`."""
    del several["questions"]["spots"]  # whose plans take long
    rows = prepare_questions(check_several(several), "FnApiRunner", [], None)
    assert [split is not None and split.salt is None for split in rows.splits] == [
        name in LABELS and name != "by_city" for name in rows.job.jobs
    ]
    units = prepare_questions(check_several(with_units(several)), "FnApiRunner", [], None)
    assert {split.salt for split in units.splits if split is not None} == {units.salt}


def test_what_is_drawn_of_groups_composes_with_other_questions(several: dict[str, Any]) -> None:
    """A unit in two groups of each question: their draws count twice, and all compose to the whole budget."""
    del with_units(several)["questions"]["spots"]  # whose plans take long
    asked = [name for name in LABELS if name in several["questions"]]
    for name in asked:
        several["questions"][name]["contributions"] = {"groups": 2}
    job = check_several(several)
    plan = make_joint_plan(job, {name: bytes([number]) * 16 for number, name in enumerate(job.jobs)})
    drawn = []
    for name, its in plan.plans.items():
        own = [
            draw for step in its.rounds for draw in (m for d in step.draws() for m in d.mechanisms(step.name))
        ]
        drawn += own * (2 if name in asked else 1)
    assert sorted(map(repr, plan.mechanisms)) == sorted(map(repr, drawn))
    together = spend(drawn, job.privacy.delta).epsilon
    assert plan.spend.epsilon <= min(together, 20.0) * (1 + 1e-9)
    assert plan.spend.epsilon > 0.9 * 20.0


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "private keys": (
        {"by_city.group_by": {"columns": ["city"], "keys": "private"}},
        "questions.by_city.group_by.keys is private: quantiles answers for public keys alone",
    ),
    "too many groups": (
        {
            "by_city.group_by": {"columns": ["city"], "keys": list(map(str, range(600)))},
            "spots.group_by": {"columns": ["city"], "keys": list(map(str, range(600)))},
        },
        "questions ask about 1,202 groups one by one: together they may be at most 1,000",
    ),
    "no contributions": (
        {"unit": "who", "by_city.contributions": ...},
        "questions.by_city.group_by is given: give contributions",
    ),
    "rows of a unit": (
        {"unit": "who", "by_city.contributions": {"groups": 1, "rows": 2}},
        "questions.by_city.contributions.rows is 2: quantiles takes one row of a unit in each group",
    ),
    "a part that is too small": (
        {"unit": "who", "cells.contributions": {"groups": 20}, "cells.share": 1e-3, "spots.share": 1e4},
        "questions.cells: privacy gives each group epsilon 9.997e-7 and delta",
    ),
    "a graph": (
        {"graph": {"task": "triangles", "columns": ["x", "y"], "domain": SQUARE, "group_by": CITIES}},
        "questions.graph.group_by is not a known key",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(bench: Bench, several: dict[str, Any], refused: Any, name: str) -> None:
    changes, expected = BAD[name]
    if "unit" in changes:
        with_units(several)
    for key, value in changes.items():
        question, _, own = key.partition(".")
        if own:
            several["questions"][question] |= {own: value}
            if value is ...:
                del several["questions"][question][own]
        elif key != "unit":
            several["questions"][key] = value
    assert expected in refused(bench.shoal("run", written(bench, several)))


def test_the_example_of_the_docs_can_be_planned() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "groups.md").read_text()
    (job,) = re.findall(r"```yaml\n(input: [^`]*questions:[^`]*)```", text)
    several = check_several(yaml.safe_load(job))
    plan = make_joint_plan(several, {name: bytes(16) for name in several.jobs})
    spots = plan.plans["hot_spots"]
    assert isinstance(spots, GroupedPlan)
    assert plan.mechanisms.count(spots.each.mechanisms[0]) == 2 * spots.each.mechanisms.count(
        spots.each.mechanisms[0]
    )


def test_a_plan_shows_what_a_group_gets(bench: Bench, several: dict[str, Any]) -> None:
    shown = bench.shoal("plan", written(bench, with_units(several)))
    assert shown.exit_code == 0, shown.stderr
    assert "3 groups by city, each answered by itself" in shown.stdout
    planned = json.loads(bench.shoal("plan", "--json", written(bench, several)).stdout)
    assert planned["questions"]["spots"]["each_group"]["epsilon"] > 1
    assert planned["privacy"]["spent"] <= 20.0 * (1 + 1e-9)
