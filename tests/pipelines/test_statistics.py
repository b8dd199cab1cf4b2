"""Statistics from the job file to the table: groups, keys, parts, and what is refused."""

import datetime
import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.rounds import examined, run_in_memory
from pipelines.job.job import check_job
from pipelines.ledger.ledger import create_ledger, new_ledger, read_ledger
from pipelines.plan import make_plan
from pipelines.run.delivery import delivery_of
from pipelines.run.run import attempt_of, build_pipeline, prepare_run
from tests.core.seeded import SeededNoise
from tests.pipelines.jobs import LINE, changes
from transforms.bound_units import Bounding, bound_in_memory
from transforms.contributions import Contributing
from transforms.open_source import open_source
from transforms.read_blocks import read_in_memory

CITIES = ["a", "b", "c", "d"]
ROWS = 6000


def job_of(**given):
    """Return changes that make the bench's job one of statistics; later ones win.

    A private key of one row is shown with probability delta.
    """
    measures = {"params": {"measures": ["count", "sum", "mean"]}, "privacy.delta": 1e-9}
    return {**changes("statistics"), **LINE, **measures, **given}


@pytest.fixture
def bench(bench):
    """6,000 rows: three cities of 2,000, 1,900 and 2,099 rows, and one row of a city of its own."""
    rng = np.random.default_rng(0)
    city = np.repeat(CITIES, [2000, 1900, 2099, 1])
    when = rng.integers(0, 3 * 86_400, ROWS)
    table = pa.table(
        {
            "x": rng.uniform(size=ROWS),
            "city": city,
            "code": np.repeat(range(4), [2000, 1900, 2099, 1]),
            "large": city < "c",
            "who": rng.integers(0, 50, ROWS),
            "when": pa.array(when, pa.timestamp("s")),
            "day": pa.array(when // 86_400, pa.int32()).cast(pa.date32()),
        }
    )
    order = rng.permutation(ROWS)
    pq.write_table(table.take(pa.array(order)), bench.rows, row_group_size=1000)
    return bench


def table_of(bench, output="out"):
    return pq.read_table(bench.folder / output / "result.parquet")


def by(columns, keys, **more):
    return {"group_by": {"columns": columns, "keys": keys, **more}}


def released(bench, *arguments, output="out", **given):
    spoiled = job_of(**{"privacy.epsilon": 20.0, "output": str(bench.folder / output), **given})
    result = bench.run(spoiled, *arguments)
    assert result.exit_code == 0, result.output
    return bench.release(output)


def test_public_keys_are_all_released(bench):
    """Noise of epsilon 20 on counts strays by more than 20 with probability below 1e-50."""
    release = released(bench, **by(["city"], ["a", "nobody", "c"]))
    assert release["result"]["groups"] == 3
    assert release["group_by"] == {"columns": ["city"], "public_keys": 3, "truncate": {}}
    table = table_of(bench)
    names = ["count", "sum", "mean"]
    assert table.column_names == ["city", *itertools.chain(*((name, f"{name}_error") for name in names))]
    assert table.column("city").to_pylist() == ["a", "c", "nobody"] or table.num_rows == 3
    counts = dict(zip(*(table.column(name).to_pylist() for name in ("city", "count")), strict=True))
    assert counts == {key: pytest.approx(n, abs=20) for key, n in (("a", 2000), ("nobody", 0), ("c", 2099))}
    page = (bench.folder / "out" / "report.html").read_text()
    assert "3 groups" in page and "nobody" in page


def test_private_keys_show_no_city_of_one_row(bench):
    for number in range(3):
        release = released(bench, output=f"out{number}", **by(["city"], "private"))
        assert release["result"]["groups"] == 3
        assert table_of(bench, f"out{number}").column("city").to_pylist() == ["a", "b", "c"]


def test_key_columns_have_their_own_types(bench):
    given = by(["code", "large", "day", "when"], "private", truncate={"when": "hour", "day": "day"})
    released(bench, **given, **{"privacy.epsilon": 50.0})
    schema = table_of(bench).schema
    types = {name: schema.field(name).type for name in ("code", "large", "day", "when")}
    assert types == {
        "code": pa.int64(),
        "large": pa.bool_(),
        "day": pa.date32(),
        "when": pa.timestamp("ms"),
    }
    days = by(["when"], ["1970-01-01", "1970-01-02", "1970-01-03"], truncate={"when": "day"})
    released(bench, output="days", **days)
    table = table_of(bench, "days")
    assert table.column("when").to_pylist() == [datetime.date(1970, 1, day) for day in (1, 2, 3)]
    assert sum(table.column("count").to_pylist()) == pytest.approx(ROWS, abs=60)


def test_keys_of_a_file_and_combinations(bench):
    path = str(bench.folder / "keys.parquet")
    pq.write_table(pa.table({"large": [True, False], "city": ["a", "c"]}), path)
    assert released(bench, **by(["city", "large"], path))["result"]["groups"] == 2
    product = {"city": ["a", "b"], "large": [True, False]}
    assert released(bench, output="all", **by(["city", "large"], product))["result"]["groups"] == 4
    counts = table_of(bench, "all").column("count").to_pylist()
    assert sorted(counts) == [pytest.approx(n, abs=20) for n in (0, 0, 1900, 2000)]


@pytest.mark.parametrize(("cities", "says"), [(["a", "c", "a"], '["a"] twice'), ([], "has no keys")])
def test_a_wrong_file_of_keys_is_one_sentence(bench, refused, cities, says):
    path = str(bench.folder / "keys.parquet")
    pq.write_table(pa.table({"city": pa.array(cities, pa.string())}), path)
    assert says in refused(bench.run(job_of(**by(["city"], path))))


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize("linked", ["symlink_to", "hardlink_to"])
def test_public_keys_are_no_rows_of_the_input(bench, refused, command, linked):
    """All of them are released as they are, also that of a single row; a link may lead to the input."""
    pq.write_table(pa.table({"x": [0.25, 0.5, 0.75], "city": ["a", "b", "c"]}), bench.rows)
    link = bench.folder / "keys.parquet"
    getattr(link, linked)(bench.rows)
    said = refused(bench.shoal(command, bench.write(bench.changed(job_of(**by(["city"], str(link)))))))
    assert f"group_by.keys is {link}: it lies in input.path {bench.job['input']['path']}, but" in said


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        ["run", "JOB"],
        ["plan", "JOB", "--simulate", "1000"],
        ["plan", "JOB", "--sweep", "privacy.epsilon=1..2"],
        ["plan", "JOB", "--solve", "privacy.epsilon", "--for", "cell_error=50"],
        ["diff", "JOB", "JOB"],
        ["cost", "JOB"],
        ["ledger", "show", "LEDGER", "--job", "JOB"],
    ],
    ids=" ".join,
)
def test_no_command_reads_keys_that_are_rows_of_the_input(bench, refused, command, several):
    """They quoted a key that is there twice, and how many keys there are."""
    own = {"params": {"cells": [4]}, **by(["city"], str(bench.rows))}
    job = bench.changed({**changes("histogram"), **LINE, **own})
    if several:
        own = {key: job.pop(key) for key in ("task", "domain", "params", "group_by")}
        job["questions"] = {"one": {**own, "columns": job["input"].pop("columns")}}
        job["input"].pop("checks")
    ledger = str(bench.folder / "ledger.json")
    create_ledger(ledger, new_ledger({"epsilon": 10.0, "delta": 1e-5}, "basic"))
    places = {"JOB": bench.write(job), "LEDGER": ledger}
    said = refused(bench.shoal(*(places.get(each, each) for each in command)))
    assert "group_by.keys is" in said and "it must be public" in said
    assert '["' not in said


def test_a_key_column_may_be_named_as_an_error(bench):
    given = by(["x_error"], "private") | {"input.derive": {"x_error": "city"}}
    released(bench, **given)
    assert ">x_error</th>" in (bench.folder / "out" / "report.html").read_text()


@pytest.mark.parametrize("keys", ["private", CITIES])
def test_a_table_in_parts_has_the_same_groups(bench, keys):
    whole = released(bench, **by(["city"], keys))
    parts = released(bench, output="parts", **by(["city"], keys), **{"params.parts": 3})
    assert whole["result"]["groups"] == parts["result"]["groups"] == (3 if keys == "private" else 4)
    assert len(parts["table"]) == 3
    tables = [pq.read_table(bench.folder / "parts" / part["name"]) for part in parts["table"]]
    assert sum(table.num_rows for table in tables) == whole["result"]["groups"]
    page = (bench.folder / "parts" / "report.html").read_text()
    assert "all groups are in the folder result" in page


@pytest.mark.parametrize("parts", [1, 3])
def test_quantiles_and_extremes_by_group(bench, parts):
    """x is uniform. A rank strays by 190 of 1,900 rows with probability below e^-13: its noise is of 14."""
    measures = ["count", {"quantiles": [0.25, 0.5]}, "minimum", "maximum"]
    given = {"params": {"measures": measures, "parts": parts}, "domain.step": 0.001}
    release = released(bench, **by(["city"], "private"), **given)
    assert release["params"]["measures"] == measures
    assert release["accuracy"]["promises"]["rank_error"] < 300
    folder = bench.folder / "out"
    paths = [folder / part["name"] for part in release["table"]] if parts > 1 else [folder / "result.parquet"]
    tables = [pq.read_table(path) for path in paths]
    table = pa.concat_tables(each for each in tables if each.num_rows)
    assert sorted(table.column("city").to_pylist()) == ["a", "b", "c"]
    wanted = {"quantile_0.25": 0.25, "quantile_0.5": 0.5, "minimum": 0.0, "maximum": 1.0}
    for name, value in wanted.items():
        assert np.abs(table.column(name).to_numpy() - value).max() < 0.1
        assert table.column(f"{name}_error").to_numpy().max() < 200
        assert (f"{name}_low" in table.column_names) == name.startswith("quantile")
    low, high = (table.column(f"quantile_0.5_{end}").to_numpy() for end in ("low", "high"))
    assert (low <= table.column("quantile_0.5").to_numpy()).all() and (low < high).all()
    page = (folder / "report.html").read_text()
    assert "Each quantile of any one group is within" in page and "in rank" in page


def test_quantiles_of_all_records(bench):
    release = released(bench, **{"params": {"measures": [{"quantiles": [0.5]}, "maximum"]}})
    median, largest = release["result"]["values"]
    assert median["low"] <= median["value"] <= median["high"] and abs(median["value"] - 0.5) < 0.1
    assert largest["low"] is None and largest["value"] > 0.9
    assert "The quantile 0.5 of x is" in (bench.folder / "out" / "report.html").read_text()


def test_sums_that_are_clamped_for_each_unit(bench):
    """Three units have thousands of rows; x is in [0, 1], so a unit adds 1 at most to a sum.

    The last unit has one row, of 0.09. Noise of scale 1/25 strays by 0.9 with probability below e^-22.
    """
    bounds = {"input.unit": "code", "contributions": {"groups": 2, "rows": 50, "clamp": "unit"}}
    given = {
        **bounds,
        **by(["city"], CITIES),
        "params": {"measures": ["units", "sum"]},
        "privacy.epsilon": 100.0,
    }
    release = released(bench, **given)
    assert release["contributions"] == {"groups": 2, "rows": 50, "clamp": "unit"}
    sums = table_of(bench).column("sum").to_numpy()
    assert np.abs(sums - [1, 1, 1, 0]).max() < 1.0
    page = (bench.folder / "out" / "report.html").read_text()
    assert "sums clamped for each unit" in page


EVERY_ROW = {"groups": 4, "rows": ROWS}
"""Bounds that leave out nothing, so that a unit keeps the same rows with other groups beside them."""

MEASURED = {
    "a pair of sums": {},
    "moments and ranks": {"params": {"measures": ["variance", {"quantiles": [0.5]}, "minimum"]}},
    "rows and units": {
        "params": {"measures": ["count", "units", "mean"]},
        "input.unit": "who",
        "contributions": EVERY_ROW,
    },
    "sums of units": {
        "params": {"measures": ["units", "sum"]},
        "input.unit": "who",
        "contributions": {**EVERY_ROW, "clamp": "unit"},
    },
}


def read_records(job):
    """Return the records of a job in memory, bounded by its contributions."""
    source = open_source(job.input.path, job.input.columns, job.unit, groups=job.group_keys)
    if job.bounds is None:
        return list(read_in_memory(source, job.grid))
    bounding = Bounding.of(source, job.grid, "one", bytes(16))
    contributing = Contributing.of(source, bounding, job.bounds.groups, job.bounds.rows)
    return list(bound_in_memory(source, contributing))


@pytest.mark.parametrize("keys", ["private", CITIES])
@pytest.mark.parametrize("measured", MEASURED)
def test_the_totals_of_a_group_are_those_of_the_filtered_file(bench, keys, measured):
    """Aggregate for aggregate: what a run without groups would sum up on the rows of one city."""
    given, rows = job_of(**MEASURED[measured]), pq.read_table(bench.rows)
    job = check_job(bench.changed(given | by(["city"], keys)))
    (step,) = (getattr(each, "round_", each) for each in make_plan(job, bytes(16)).rounds)
    parts = [step.summarize(block, None) for block in read_records(job)]
    whole = examined(step, type(parts[0]).merged(parts))
    assert len(whole) == 4 and len(parts) > 1
    without = replace(step, grouping=None, selection=None)
    for place, city in enumerate(CITIES):
        path = bench.folder / "filtered" / f"{city}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(rows.filter(pa.compute.equal(rows.column("city"), city)), path)
        one = {"contributions": {**given["contributions"], "groups": 1}} if "contributions" in given else {}
        alone = check_job(bench.changed(given | one | {"input.path": str(path)}))
        some = [without.summarize(block, None) for block in read_records(alone)]
        total = type(some[0]).merged(some)
        assert (total.totals == whole.totals[place]).all()
        for ours, theirs in zip(whole.values, total.values, strict=True):
            assert ours.at(place) == theirs.at(0)


@pytest.mark.parametrize("options", [(), ("--", "--direct_running_mode=multi_processing")])
def test_a_pipeline_releases_what_memory_does(bench, monkeypatch, options):
    """Golden: without noise the table of a pipeline is that of `run_in_memory`, in one process and in two."""
    given = job_of(**by(["city", "day"], "private"), **{"privacy.epsilon": 50.0})
    job = check_job(bench.changed(given))
    source = open_source(job.input.path, job.input.columns, groups=job.group_keys)
    plan = make_plan(job, bytes(16))
    blocks = list(read_in_memory(source, job.grid))
    wanted = run_in_memory(plan.rounds, blocks, plan.start, SeededNoise(0, 0.0)).table(job.grid)
    result = bench.run(given, *(["--runner", "FnApiRunner"] if options else []), *options)
    if result.exit_code == 2:
        pytest.skip("this runner is refused")
    assert result.exit_code == 0, result.output
    table = table_of(bench)
    assert table.column("city").to_pylist() == list(wanted["city"])
    assert np.abs(table.column("count").to_numpy() - wanted["count"]).max() < 20


UNITS = {"input.unit": "code", "contributions": {"groups": 2, "rows": 50}}


@pytest.mark.parametrize("processes", [1, 2])
def test_a_pipeline_bounds_contributions_as_memory_does(bench, processes):
    """Golden: counts of a pipeline are those of bounds in memory, by noise of epsilon 50 on 4 units."""
    given = job_of(**by(["day"], "private", truncate={"day": "day"}), **UNITS)
    given |= {"params.measures": ["count", "units", "mean"], "privacy.epsilon": 50.0}
    rows = pq.read_table(bench.rows)
    people = pa.array(np.random.default_rng(1).integers(0, 400, ROWS))
    table = rows.set_column(rows.column_names.index("code"), "code", people)
    pq.write_table(table, bench.rows, row_group_size=1000)
    given |= {"contributions": {"groups": 2, "rows": 2}}
    options = ["--runner", "FnApiRunner", "--", "--direct_running_mode=multi_processing"]
    options += ["--direct_num_workers=2"]
    result = bench.run(given, *(options if processes == 2 else []))
    assert result.exit_code == 0, result.output
    release = bench.release()
    assert release["contributions"] == {"groups": 2, "rows": 2, "clamp": "row"}
    assert release["privacy"]["unit"] == "code" and release["privacy"]["keep"] is None
    job = check_job(bench.changed(given))
    source = open_source(job.input.path, job.input.columns, job.unit, groups=job.group_keys)
    bounding = Bounding.of(source, job.grid, "one", bytes(16))
    blocks = list(bound_in_memory(source, Contributing.of(source, bounding, 2, 2)))
    plan = make_plan(job, bytes(16))
    wanted = run_in_memory(plan.rounds, blocks, plan.start, SeededNoise(0, 0.0)).table(job.grid)
    found = table_of(bench)
    assert found.column("day").to_pylist() == wanted["day"].tolist() and found.num_rows == 3
    # Another salt keeps other groups of each unit, but as many: 400 units in 2 of 3 days, 2 rows in each.
    for name, total in (("units", 800), ("count", 1600)):
        assert wanted[name].sum() == pytest.approx(total, rel=0.03)  # few have one row in a day
        assert sum(found.column(name).to_pylist()) == pytest.approx(wanted[name].sum(), abs=40)
    page = (bench.folder / "out" / "report.html").read_text()
    assert "rows of any one group is within" in page and "one unit more or one unit less" in page


WRONG = [
    ({"contributions": {"rows": 2}}, "contributions is given, but there is no input.unit"),
    ({**UNITS, "contributions": {"rows": 0}}, "contributions has groups 1 and rows 0: both must be above 0"),
    ({**UNITS}, "contributions.groups is 2, but there is no group_by"),
    (by(["city"], "private") | UNITS | {"input.keep": "one"}, "input.keep is one and contributions is given"),
    (
        by(["city"], "private") | UNITS | {"contributions": {"groups": 2**20, "rows": 2**20}},
        "contributions has groups 1048576 and rows 1048576: both must be above 0",
    ),
    (
        by(["city", "code"], "private") | UNITS,
        "which is input.unit: each group would have one unit",
    ),
    (by([], "private"), "group_by.columns is []: give at least one column, each once"),
    (by(["city", "city"], "private"), "each once"),
    (by(["x"], "private"), "group_by.columns: x is double in part.parquet; keys are text"),
    (by(["when"], "private"), "give group_by.truncate with hour, day, week or month"),
    (
        by(["when"], ["2013-01-31"], truncate={"when": "week"}),
        "which is timestamp[ms] in the files; its keys are text such as 2013-01-28, a Monday.",
    ),
    (by(["nowhere"], "private"), "group_by.columns: nowhere is missing from part.parquet"),
    (by(["city"], "private", truncate={"city": "day"}), "group_by.truncate is for timestamps and dates"),
    (by(["city"], "private", truncate={"day": "day"}), "group_by.truncate has day"),
    (by(["city"], ["a", "a"]), 'group_by.keys has ["a"] twice'),
    (by(["city"], []), "group_by.keys has no keys"),
    (by(["city"], [1.5]), "group_by.keys has 1.5: the values of a key are text, whole numbers"),
    (by(["city"], [["a", [1]]]), "group_by.keys has [1]: the values of a key are text"),
    (by(["city"], {"city": [None]}), "group_by.keys has None: the values of a key are text"),
    (by(["city"], 5), "group_by.keys is 5: it must be text"),
    (by(["city"], [["a", 1]]), "a key has one value for each of group_by.columns"),
    (by(["city"], {"town": ["a"]}), "group_by.keys has lists for town"),
    (by(["city"], ["x" * 300]), "a key of more than 256 bytes"),
    (by(["city"], "nowhere.parquet"), "group_by.keys: nowhere.parquet does not exist"),
    (by(["city"], [1, 2]), "group_by.keys has 1 for city, which is string in the files; its keys are text."),
    (by(["city"], "private") | {"input.unit": "code"}, "input.unit is code and group_by is given"),
    (by(["city"], "private") | {"privacy.delta": 0.0}, "privacy.delta is 0.0: private keys need one above 0"),
    (
        by(["count"], "private"),
        "group_by.columns has count, which is the name of another column of the table",
    ),
    ({"params.measures": ["surprise"]}, "params.measures has 'surprise': the measures are count, units, sum"),
    ({"params.measures": ["average"]}, "has 'average' (did you mean mean?): the measures are count, units"),
    ({"params.measures": ["counts"]}, "params.measures has 'counts' (did you mean count?): the measures"),
    ({"params.measures": ["median"]}, "has 'median' (did you mean {quantiles: [0.5]}?): the measures are"),
    ({"params.measures": []}, "params.measures is []"),
    (
        {"params.measures": [{"quantiles": [0.5]}, {"quantiles": [0.9]}]},
        "params.measures has 2 times quantiles: give all of them in one list.",
    ),
    ({"params.measures": [{"quantiles": [0.5, 0.1]}]}, "they must ascend, each above 0 and below 1"),
    (
        {"params.measures": [{"median": [0.5]}]},
        "has median (did you mean {quantiles: [0.5]}?): the measures are",
    ),
    ({"params.measures": [5]}, "params.measures"),
    ({"params.measures": [{"quantiles": 0.5}]}, "params.measures[0].quantiles is 0.5: it must be a list."),
    (
        by(["minimum_low"], "private") | {"params.measures": ["minimum"]},
        "the name of another column of the table",
    ),
    (
        {**UNITS, "contributions": {"clamp": "group"}},
        "contributions.clamp is 'group': it must be 'row' or 'unit'",
    ),
    (
        {**UNITS, "contributions": {"clamp": "unit"}},
        "params.measures has mean: it is of rows, so it needs contributions.clamp: row",
    ),
    (
        {**UNITS, "contributions": {"clamp": "unit"}, "params.measures": ["sum"], "domain.lower": [0.0001]},
        "domain.lower",
    ),
    ({"params.parts": 2}, "params.parts is 2"),
    ({"privacy.delta": 0.0, "params.method": "gaussian"}, "gaussian needs one above 0"),
]


@pytest.mark.parametrize(("wrong", "says"), WRONG)
def test_wrong_jobs_are_one_sentence(bench, refused, wrong, says):
    assert says in refused(bench.run(job_of(**wrong)))


FLOATS = {"input.derive": {"w": "x * 2"}}
UNPAID: dict[str, tuple[dict, str]] = {
    "a key column of floats": (by(["x"], "private"), "group_by.columns: x is double"),
    "a key of floats that is made": (FLOATS | by(["w"], "private"), "group_by.columns: w is"),
    "a group in no key list": (by(["city", "day"], {"city": ["a"]}), "group_by.keys has lists for city"),
    "keys twice": (by(["city"], ["a", "a"]), 'group_by.keys has ["a"] twice'),
    "an unknown measure": ({"params.measures": ["average"]}, "params.measures has 'average'"),
    "L times groups beyond int64": (
        by(["city"], "private") | {"input.unit": "code", "contributions": {"groups": 2**40, "rows": 2**40}},
        "so that totals fit into int64",
    ),
    "an expression of no column": ({"input.where": "1 == 1"}, "input.where: it names no column"),
    "an expression of mixed types": ({"input.where": "city > 1"}, "> takes values of one kind"),
    "an expression that asks for an aggregate": ({"input.where": "x > mean(x)"}, "it calls mean, but"),
}


@pytest.mark.parametrize("name", UNPAID)
def test_wrong_groups_measures_and_expressions_spend_nothing(bench, refused, name):
    wrong, says = UNPAID[name]
    unit = {"unit": wrong["input.unit"]} if "input.unit" in wrong else {}
    ledger = str(bench.folder / "ledger.json")
    about = {"neighbors": "add_or_remove_one", "epsilon": 50.0, "delta": 1e-4, **unit}
    create_ledger(ledger, new_ledger(about, "renyi"))
    assert says in refused(bench.run(job_of(**wrong, **{"privacy.ledger": ledger})))
    assert not read_ledger(ledger).charges


def test_private_keys_are_for_statistics(bench, refused):
    assert "one_cluster answers for public keys alone" in refused(bench.run(by(["city"], "private")))


def test_a_job_without_groups_has_no_key_for_them(bench):
    assert "group_by" not in check_job(bench.changed(job_of())).model_dump(mode="json")


def test_names_of_elements_hold_no_key(bench):
    """What an engine shows of a pipeline's graph has public keys alone."""
    job = check_job(bench.changed(job_of(**by(["city"], "private"))))
    prepared = prepare_run(job)
    graph = build_pipeline(prepared, delivery_of(job), prepared.plan.rounds).to_runner_api()
    assert b"nobody" not in graph.SerializeToString()


def test_keys_may_be_derived_from_rows_that_where_keeps(bench):
    """With rows as records, where noise of epsilon 20 hardly strays by more than 60; and with units."""
    rows = {"input.derive": {"hour": "hour(when)"}, "input.where": "city != 'c'"}
    given = {**rows, **by(["hour", "city"], {"hour": list(range(24)), "city": ["a", "b", "c"]})}
    released(bench, **given)
    table = table_of(bench)
    assert table.num_rows == 72 and table.schema.field("hour").type == pa.int64()
    counts = table.group_by("city").aggregate([("count", "sum")]).to_pydict()
    found = dict(zip(counts["city"], counts["count_sum"], strict=True))
    assert found == {city: pytest.approx(n, abs=60) for city, n in (("a", 2000), ("b", 1900), ("c", 0))}
    units = {"input.unit": "code", "contributions": {"groups": 24, "rows": 1000}}
    job = check_job(bench.changed(job_of(**given, **units)))
    asked, preparation = job.input, job.input.preparation()
    source = open_source(asked.path, asked.columns, job.unit, preparation=preparation, groups=job.group_keys)
    bounding = Bounding.of(source, job.grid, "one", bytes(16))
    blocks = list(bound_in_memory(source, Contributing.of(source, bounding, 24, 1000)))
    kept = [block.labels[block.groups] for block in blocks]
    assert sum(map(len, kept)) == 3900 and len(set(np.concatenate(kept).tolist())) == 48


def test_other_keys_of_a_file_are_another_attempt(bench):
    """In which part a key is follows from the file: parts of two orders would show a group twice."""
    path, found = bench.folder / "keys.parquet", []
    for keys in (["a", "b", "c"], ["b", "c", "a"]):
        pq.write_table(pa.table({"city": keys}), path)
        asked = by(["city"], str(path)) | {"params.parts": 2, "run_id": "monday"}
        found.append(attempt_of(prepare_run(check_job(bench.changed(job_of(**asked))))))
    assert found[0] is not None and found[1] is not None and found[0].id != found[1].id
