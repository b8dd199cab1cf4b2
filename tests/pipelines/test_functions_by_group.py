"""A function that is asked about each group: blocks of its rows alone, and few groups of a unit."""

import copy
import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from core.rounds import Block
from pipelines.job.job import check_job
from pipelines.ledger.ledger import create_ledger, new_ledger, read_ledger
from pipelines.run.prepared import Prepared, steps_of
from pipelines.run.run import prepare_run, read_groups, run_job
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import changes
from transforms.bound_groups import SHARDS, split_kept, split_owners
from transforms.embedded_runner import EmbeddedRunner
from transforms.evaluate_subsamples import AnswersOfGroups, evaluate_in_memory
from transforms.group_keys import GroupKeys
from transforms.open_source import Source, open_source
from transforms.read_blocks import ReadBlocks, list_row_groups
from transforms.split_units import Splitting, gather

KEYS = ["a", "b", "nowhere"]
BLOCKS = 12
SALT = b"sixteen secrets."
BY_CITY = {
    **changes("sample_and_aggregate"),
    "group_by": {"columns": ["city"], "keys": KEYS},
    "params.blocks": BLOCKS,
    "privacy.epsilon": 8.0,
}
UNITS = {"input.unit": "who", "contributions": {"groups": 1}}
WAYS = {
    "one thread": {"direct_num_workers": 1, "direct_running_mode": "in_memory"},
    "two processes": {"direct_num_workers": 2, "direct_running_mode": "multi_processing"},
}


@pytest.fixture
def cities(bench: Bench) -> Bench:
    """Rows in three cities, where x and y go together in one and apart in another; some have no city."""
    rng, n = np.random.default_rng(3), 3000
    city = np.array(["a", "b", "c", None], dtype=object)[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    x = rng.uniform(size=n)
    y = np.where(city == "b", 1 - x, x) + rng.normal(0, 0.01, n)
    table = {"x": x, "y": y, "who": rng.integers(0, n // 3, n), "city": pa.array(city, pa.string())}
    pq.write_table(pa.table(table), bench.rows, row_group_size=700)
    return bench


def prepared_of(cities: Bench, **more: Any) -> Prepared:
    return prepare_run(check_job(cities.changed(BY_CITY | more)))


def answers_in_beam(prepared: Prepared, folder: Path, way: str) -> dict[int, list[Block]]:
    """Return the records of each group, as every pass of a run reads them."""
    folder.mkdir()

    def keep(element: Any, records: AnswersOfGroups) -> None:
        for group, block in records.blocks_of(element, range(len(KEYS))):
            name = f"{group} {element[0]}.json"
            with (folder / name).open("x") as file:
                json.dump([group, block.ids.tolist(), block.points.tolist()], file)

    options = PipelineOptions([], **WAYS[way])
    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        elements, records = read_groups(prepared, pipeline | ReadBlocks(prepared.source))
        _ = elements | "Keep them" >> beam.Map(keep, records)
    found: dict[int, dict[int, list[int]]] = {group: {} for group in range(len(KEYS))}
    seen: Counter[int] = Counter()
    for path in folder.iterdir():
        group, ids, points = json.loads(path.read_text())
        seen[group] += 1
        found[group].update(zip(ids, points, strict=True))
    assert seen == dict.fromkeys(range(len(KEYS)), BLOCKS)  # with rows or without
    return found


def answers_alone(prepared: Prepared, label: str) -> dict[int, list[int]]:
    """Return the answers of the rows of one city, as a condition on rows leaves them."""
    given: Any = prepared.job.input
    only = given.model_copy(update={"where": f"city == '{label}'"})
    source = open_source(only.path, only.columns, only.unit, preparation=only.preparation())
    own = replace(prepared.splitting, keys=None, preparation=source.preparation)
    assert prepared.function is not None
    blocks = list(evaluate_in_memory(source, own, prepared.function))
    return {int(block.ids[0]): block.points[0].tolist() for block in blocks if len(block.ids)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("whose", ["rows", "units"])
def test_each_group_has_the_answers_of_its_rows_alone(
    cities: Bench, tmp_path: Path, whose: str, way: str
) -> None:
    """A unit may be in all three cities here, so none of its rows is left out."""
    more = {} if whose == "rows" else UNITS | {"contributions": {"groups": 3}}
    prepared = prepared_of(cities, **more)
    found = answers_in_beam(prepared, tmp_path / "answers", way)
    for number, label in enumerate(KEYS):
        assert found[number] == answers_alone(prepared, label)
        assert len(found[number]) == (0 if label == "nowhere" else BLOCKS)


def source_of(folder: Path, who: list[Any], city: list[str | None]) -> tuple[Source, GroupKeys]:
    keys = GroupKeys(("city",), (None,), check_keys())
    folder.mkdir(parents=True, exist_ok=True)
    table = {"x": np.arange(len(who), dtype=float), "who": who, "city": pa.array(city, pa.string())}
    pq.write_table(pa.table(table), folder / "rows.parquet", row_group_size=50)
    return open_source(str(folder), ["x"], "who", groups=keys), keys


def check_keys() -> Any:
    job: Any = check_job(
        {**changes_of_rows(), "group_by": {"columns": ["city"], "keys": ["a", "b", "c", "d"]}}
    )
    return job.group_by.labels


def changes_of_rows() -> dict[str, Any]:
    given = copy.deepcopy(changes("sample_and_aggregate"))
    return {
        "task": given["task"],
        "params": given["params"],
        "input": {"path": "/nowhere", "columns": ["x", "y"]},
        "privacy": {"epsilon": 1.0, "delta": 1e-6},
        "output": "/nowhere/out",
    }


def rows_of_blocks(folder: Path, who: list[int], city: list[str | None], most: int) -> dict[int, list[int]]:
    """Return the rows of each block of each group, by the block's number."""
    source, keys = source_of(folder, who, city)
    splitting = Splitting(("x",), "who", 5, SALT, keys=keys, groups=most)
    owned: dict[int, list[Any]] = {}
    for file in source.files:
        for descriptor in list_row_groups(file):
            for number, piece in split_owners(splitting, descriptor):
                owned.setdefault(number, []).append(piece)
    shards: dict[int, list[Any]] = {}
    for number, pieces in owned.items():
        for part, shard in split_kept(splitting, (number, pieces[::-1])):
            shards.setdefault(part, []).append(shard)
    found = {}
    for part, some in shards.items():
        for number, rows in gather(splitting, part, some):
            table = pa.ipc.open_stream(rows).read_all() if rows else pa.table({"x": np.empty(0)})
            assert table.column_names == ["x"]  # neither the unit nor the group
            found[number] = table.column("x").to_numpy().astype(int).tolist()
    assert set(found) == set(range(4 * 5))
    return found


@pytest.fixture
def visitors() -> tuple[list[int], list[str | None]]:
    rng = np.random.default_rng(1)
    who = rng.integers(0, 40, 400).tolist()
    city = np.array(["a", "b", "c", "d", "elsewhere", None], dtype=object)[rng.integers(0, 6, 400)].tolist()
    return who, city


@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_unit_is_in_few_groups_with_all_of_its_rows_in_one_block_of_each(
    tmp_path: Path, visitors: tuple[list[int], list[str | None]], most: int
) -> None:
    who, city = visitors
    found = rows_of_blocks(tmp_path, who, city, most)
    rows = [row for block in found.values() for row in block]
    assert len(rows) == len(set(rows))
    for unit, block in itertools.product(set(who), found.values()):  # in the order of the file
        own = [row for row in block if who[row] == unit]
        assert own == sorted(own)
    of_unit: dict[int, dict[str | None, set[int]]] = {}
    for number, block in found.items():
        for row in block:
            assert "abcd"[number // 5] == city[row]
            of_unit.setdefault(who[row], {}).setdefault(city[row], set()).add(number)
    pairs = {(unit, place) for unit, place in zip(who, city, strict=True) if place in set("abcd")}
    public = Counter(unit for unit, _ in sorted(pairs, key=str))
    for unit, groups in of_unit.items():
        assert len(groups) == min(most, public[unit])
        assert all(len(blocks) == 1 for blocks in groups.values())
        for group in groups:  # no row is left out of a group that a unit keeps
            own = [row for row in range(len(who)) if (who[row], city[row]) == (unit, group)]
            assert set(own) <= set(rows)


def test_what_is_sent_of_units_depends_on_their_own_rows_alone(
    tmp_path: Path, visitors: tuple[list[int], list[str | None]]
) -> None:
    """Also where a file has a dictionary of them, which has the others, too."""
    who, city = visitors
    pieces = []
    for renamed in (None, 7):
        names: list[Any] = ["somebody else" if unit == renamed else f"person {unit}" for unit in who]
        source, keys = source_of(tmp_path / str(renamed), names, city)
        splitting = Splitting(("x",), "who", 5, SALT, keys=keys, groups=2)
        sent: dict[int, list[Any]] = {}
        for descriptor in list_row_groups(source.files[0]):
            for number, piece in split_owners(splitting, descriptor):
                sent.setdefault(number, []).append(piece.rows)
        pieces.append(sent)
    assert len(pieces[0]) == len(pieces[1]) == SHARDS
    assert sum(any(rows) for rows in pieces[0].values()) > 20
    assert sum(pieces[0][number] != pieces[1][number] for number in range(SHARDS)) <= 2


@pytest.mark.parametrize("shards", [SHARDS, 3])
def test_a_unit_less_changes_no_row_of_others(
    tmp_path: Path,
    visitors: tuple[list[int], list[str | None]],
    monkeypatch: pytest.MonkeyPatch,
    shards: int,
) -> None:
    """Nor their order, where it shares its shard with many or with few others."""
    monkeypatch.setattr("transforms.bound_groups.SHARDS", shards)
    who, city = visitors
    before = rows_of_blocks(tmp_path / "all", who, city, 2)
    for gone in range(6):
        less = [None if unit == gone else place for unit, place in zip(who, city, strict=True)]
        after = rows_of_blocks(tmp_path / str(gone), who, less, 2)
        changed = [number for number in before if before[number] != after[number]]
        assert len(changed) == 2 and len({number // 5 for number in changed}) == 2
        for number in changed:
            assert after[number] == [row for row in before[number] if who[row] != gone]


@pytest.mark.parametrize("whose", ["rows", "units"])
def test_one_release_has_an_answer_for_each_group(cities: Bench, whose: str) -> None:
    """Noise of scale 5/6 makes none of 40 blocks more than the 16 that may fail with probability 2e-9."""
    ledger = str(cities.folder / "books" / "ledger.json")
    about = {"neighbors": "add_or_remove_one", "epsilon": 100.0, "delta": 1e-5}
    create_ledger(ledger, new_ledger(about | ({"unit": "who"} if whose == "units" else {}), "renyi"))
    more = {} if whose == "rows" else UNITS
    more = more | {"params.blocks": 40, "params.stable_fraction": 0.6, "params.aggregator": "median"}
    more |= {"privacy.epsilon": 40.0}
    job = check_job(cities.changed(BY_CITY | more | {"privacy.ledger": ledger}))
    release = run_job(job)
    first, second, third = release["groups"]
    assert [group["outcome"] for group in release["groups"][:2]] == ["released", "released"]
    assert first["result"]["value"][0] > 0.9 and second["result"]["value"][0] < -0.9
    # an empty group may be released by noise, see test_how_often_nothing_is_released_by_noise
    assert (third["result"] is None) == (third["outcome"] == "not_found")
    assert run_job(job) == release
    (charge,) = read_ledger(ledger).charges
    assert charge.epsilon == 40.0
    page = (cities.folder / "out" / "report.html").read_text()
    assert "3 groups by city" in page and "Group nowhere" in page
    kept = {"groups": 1} if whose == "units" else None
    assert release.get("contributions") == kept
    assert ("rows: all in each" in page) == (whose == "units")


def test_a_unit_in_two_groups_halves_what_each_of_them_gets(cities: Bench) -> None:
    given = UNITS | {"contributions": {"groups": 2}, "privacy.epsilon": 1.0}
    plan = json.loads(cities.shoal("plan", "--json", cities.write(cities.changed(BY_CITY | given))).stdout)
    assert 0.45 < plan["each_group"]["epsilon"] < 0.75 and plan["privacy"]["spent"] <= 1.0
    replaced = BY_CITY | {"privacy.neighbors": "replace_one", "privacy.epsilon": 1.0}
    plan = json.loads(cities.shoal("plan", "--json", cities.write(cities.changed(replaced))).stdout)
    assert plan["each_group"]["epsilon"] == 0.5


def test_a_plan_shows_other_bounds_of_units(cities: Bench) -> None:
    given = UNITS | {"contributions": {"groups": 2, "guess": {"groups": 3, "rows": 5}}}
    shown = cities.shoal("plan", cities.write(cities.changed(BY_CITY | given)))
    assert shown.exit_code == 0, shown.stderr
    assert "Bounds of contributions" in shown.stdout
    planned = json.loads(cities.shoal("plan", "--json", cities.write(cities.changed(BY_CITY | given))).stdout)
    tried = planned["bounds"]["tried"]
    assert [(each["groups"], each["rows"]) for each in tried] == [(2, None), (1, None), (4, None)]
    for each in tried:
        assert each["left_out"]["rows"] == pytest.approx(each["left_out"]["units"])


def test_a_unit_is_charged_for_no_more_groups_than_there_are(cities: Bench) -> None:
    given = UNITS | {"privacy.epsilon": 1.0}
    parts = []
    for groups in (3, 10):
        job = cities.write(cities.changed(BY_CITY | given | {"contributions": {"groups": groups}}))
        parts.append(json.loads(cities.shoal("plan", "--json", job).stdout)["each_group"]["epsilon"])
    assert parts[0] == parts[1]


def test_two_releases_of_units_are_compared(cities: Bench) -> None:
    for name in ("one", "two"):
        job = BY_CITY | UNITS | {"run_id": name, "output": str(cities.folder / name)}
        assert cities.shoal("run", cities.write(cities.changed(job))).exit_code == 0
    compared = cities.shoal("diff", str(cities.folder / "one"), str(cities.folder / "two"))
    assert compared.exit_code == 0, compared.stderr


def test_the_steps_of_a_run_count_the_blocks_of_all_groups(cities: Bench) -> None:
    names = {step.name: step.pieces for step in steps_of(prepared_of(cities, **UNITS))}
    assert names["answer blocks"] == 3 * BLOCKS and names["choose groups"] == 256
    assert "choose groups" not in {step.name for step in steps_of(prepared_of(cities))}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "private keys": ({"group_by.keys": "private"}, "group_by.keys is private: sample_and_aggregate answers"),
    "a unit": (
        {"input.unit": "who"},
        "input.unit is who and group_by is given: give contributions, such as {groups: 4}, since",
    ),
    "rows of a unit": (
        {**UNITS, "contributions": {"groups": 2, "rows": 3}},
        "contributions.rows is 3: sample_and_aggregate takes all rows of a unit in each group",
    ),
    "clamped sums": (
        {**UNITS, "contributions": {"clamp": "unit"}},
        "contributions.clamp is unit: it is for sums, which sample_and_aggregate has not",
    ),
    "contributions without groups": (
        {**UNITS, "group_by": ...},
        "contributions is given, but sample_and_aggregate without group_by takes all rows of a unit",
    ),
    "a policy": (
        {"privacy.neighbors": "replace_one", "privacy.policy": {"secrets": "full"}},
        "privacy.policy and group_by are given",
    ),
    "checks": ({"input.checks": 0.1}, "input.checks is not a known key"),
    "a key column of floats": ({"group_by.columns": ["x"]}, "group_by.columns: x is double"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(cities: Bench, refused: Any, name: str) -> None:
    given, expected = BAD[name]
    said = refused(cities.shoal("run", cities.write(cities.changed(copy.deepcopy(BY_CITY) | given))))
    assert expected in said
