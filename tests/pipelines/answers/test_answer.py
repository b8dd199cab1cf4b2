"""Values of a plan or a release as dataclasses of core, and what every plan says."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from pipelines.answers.answer import Answer, Fact, parse, promises_of, result_of
from pipelines.answers.statistics import _largest, _of_groups, answer
from pipelines.compare.estimates import estimates
from pipelines.errors import JobError
from pipelines.plan import describe
from pipelines.tasks import TASKS
from tests.measured.reaching import NOT_BOUNDS, REACHING, ROUNDS_OF, SAME
from tests.pipelines.every_plan import settings


@dataclass(frozen=True)
class Inner:
    low: float


@dataclass(frozen=True)
class Outer:
    count: int
    error: float | None
    inner: Inner
    parts: tuple[tuple[float, ...], ...] = ()


GIVEN = {"count": 2, "error": None, "inner": {"low": 2**60 + 1}, "parts": [[1, 2.5], []]}


def test_values_become_dataclasses():
    found = parse(Outer, GIVEN, "result")
    assert found == Outer(2, None, Inner(2**60 + 1), ((1, 2.5), ()))
    assert isinstance(found.inner.low, int)  # float64 would round it


def test_infinity_is_null_in_json():
    assert parse(Inner, {"low": None}, "result").low == math.inf


def test_a_missing_key_may_be_none():
    older = {key: value for key, value in GIVEN.items() if key != "error"}
    assert parse(Outer, older, "result").error is None


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"size": 1}, "result.size is not a known key: the keys of result are count, error, inner, parts."),
        ({"count": ...}, "result.count is missing: result needs count, error, inner, parts."),
        ({"inner": {}}, "result.inner.low is missing: result.inner needs low."),
        ({"count": 2.5}, "result.count is 2.5, which is not a value of its task."),
        ({"count": True}, "result.count is True, which is not a value of its task."),
        ({"count": None}, "result.count is None, which is not a value of its task."),
        ({"inner": 3}, "result.inner is 3, which is not a value of its task."),
        ({"parts": [[1, "a"]]}, "result.parts[0][1] is 'a', which is not a value of its task."),
        ({"parts": 1}, "result.parts is 1, which is not a value of its task."),
    ],
)
def test_other_values_are_one_sentence(changed, says):
    given = {key: value for key, value in {**GIVEN, **changed}.items() if value is not ...}
    with pytest.raises(JobError) as refused:
        parse(Outer, given, "result")
    assert str(refused.value) == says


def test_no_result_is_none():
    assert result_of(Outer, {"result": None}) is None
    assert result_of(Inner, {"result": {"low": 1.0}}) == Inner(1.0)
    assert promises_of(Inner, {"accuracy": {"promises": {"low": 1.0}}}) == Inner(1.0)


def _is_plain(sentence: str) -> bool:
    return (
        sentence[0].isupper() and sentence.endswith(".") and "None" not in sentence and "nan" not in sentence
    )


def test_every_plan_is_explained():
    """Its promises and those of its alternatives are known to its task, and each round has a purpose.

    For each bound the plan says on which rows it is reached, or why it is larger than errors are. Where it is
    said to be reached, there are rows to show it.
    """
    shown = {(each.case.task, each.method, name) for each in REACHING for name in each.promises}
    for setting in settings():
        plan, answers = describe(setting.job, setting.plan), TASKS[setting.job.task].answers
        alternatives = [
            {**plan, "accuracy": {**plan["accuracy"], "promises": _without_target(promises)}}
            for promises in plan["alternatives"].values()
        ]
        for each in (plan, *alternatives):
            unpromised = answers.unpromised(each)
            sentences = [*answers.promises(each), *([] if unpromised is None else [unpromised])]
            assert sentences, setting.name
            assert all(map(_is_plain, sentences)), (setting.name, sentences)
        assert plan["rounds"], setting.name
        assert all(entry["purpose"].strip() for entry in plan["rounds"]), setting.name
        assert plan["why"].endswith("."), (setting.name, plan["why"])
        bounds = {name for name, promised in setting.plan.promises.items() if promised is not None}
        assert set(setting.plan.tightness) == bounds - NOT_BOUNDS, setting.name
        for name, tightness in setting.plan.tightness.items():
            assert _is_plain(tightness.says), (setting.name, tightness.says)
            if tightness.reached:
                method = ROUNDS_OF.get(plan["method"], plan["method"])
                assert (setting.job.task, method, SAME.get(name, name)) in shown, (setting.name, name)


def _without_target(promises):
    return {name: value for name, value in promises.items() if name != "smallest_target"}


def test_every_method_of_one_value_says_what_hides_it():
    """The noise that ran is described, and no other."""
    result = {"value": 0.5, "scale": None}
    leads = {}
    for setting in settings():
        task = setting.job.task
        if task in ("median", "minimum", "triangles", "mst_cost"):
            plan = describe(setting.job, setting.plan)
            columns = ["x", "y", "z"][: len(plan["domain"]["lower"])]
            several = len(columns) > 1 and task in ("median", "minimum")
            found = {"columns": [result] * len(columns)} if several else result
            release = {**plan, "result": found, "domain": {**plan["domain"], "columns": columns}}
            leads[task, setting.plan.method] = TASKS[task].answers.answer(release, None).lead
    assert all(("fitted" in lead) == (method == "smooth") for (_, method), lead in leads.items())
    assert {method for _, method in leads} == {"smooth", "global", "exponential", "ordered"}


def test_names_of_columns_are_shown_as_they_are() -> None:
    assert (
        Fact("left out", ()).title == "Left out" and Fact("mean of depDelay", ()).title == "Mean of depDelay"
    )
    assert Fact("hours_per_week", (), of_column=True).title == "hours_per_week"


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(0.0, 5.0, "not known"), (0.0, 4.0, "3, from 0 to 4"), (1.0, 5.0, "3, from 1 to 5")],
)
def test_a_quantile_whose_interval_is_the_domain_is_not_known(low, high, shown):
    table = {"city": ["a"], "quantile_0.5": [3.0], "quantile_0.5_low": [low], "quantile_0.5_high": [high]}
    release = {
        "domain": {"columns": ["x"], "lower": [0.0], "upper": [5.0], "step": 1.0},
        "group_by": {"columns": ["city"], "truncate": {}},
    }
    rows = {name: np.array(values) for name, values in table.items()}
    assert _largest(release, rows, ["quantile_0.5"]).rows == [("a", shown)]


def test_what_is_not_known_is_last_and_is_said_of_dates_too():
    release = {
        "domain": {"columns": ["x"], "lower": [0.0], "upper": [5.0], "step": 1.0},
        "group_by": {"columns": ["city"], "truncate": {}},
    }
    means = {"mean": np.array([np.nan, 5.0, 2.0, 3.0]), "mean_error": np.array([1.0, 9.0, 0.5, 0.5])}
    rows = {"city": np.array(["a", "b", "c", "d"]), **means}
    assert [row[0] for row in _largest(release, rows, ["mean"]).rows] == ["d", "c", "a", "b"]
    days = {
        "quantile_0.5": ["2020-01-05", "2020-01-04", "2020-01-01"],
        "quantile_0.5_low": ["2020-01-01", "2020-01-03", "2020-01-01"],
        "quantile_0.5_high": ["2020-01-06", "2020-01-06", "2020-01-03"],
    }
    rows = {"city": np.array(["a", "b", "c"]), **{key: np.array(each, "M8[D]") for key, each in days.items()}}
    rows["quantile_0.5_error"] = np.ones(3)
    assert _largest({**release, "domain": DATED}, rows, ["quantile_0.5"]).rows == [
        ("b", "2020-01-04, from 2020-01-03 to 2020-01-06"),
        ("c", "2020-01-01, from 2020-01-01 to 2020-01-03"),
        ("a", "not known"),
    ]


def test_times_of_keys_are_shown_as_a_job_writes_them():
    """Parquet has days for months, and milliseconds for hours."""
    release = {
        "domain": {"columns": ["x"], "lower": [0.0], "upper": [5.0], "step": 1.0},
        "group_by": {"columns": ["city", "day", "hour", "month"], "truncate": CUT},
        "params": {"measures": ["count"]},
    }
    rows = {
        "city": np.array(["a"]),
        "day": np.array(["2025-10-02"], "M8[D]"),
        "hour": np.array(["2025-10-01T23:00:00"], "M8[ms]"),
        "month": np.array(["2025-10-01"], "M8[D]"),
        "count": np.array([7]),
        "count_error": np.array([1.0]),
    }
    table = _largest(release, rows, ["count"])
    key = "a, 2025-10-02, 2025-10-01T23, 2025-10"
    assert table.headers == ("city, day (day), hour (hour), month (month)", "count")
    assert table.rows == [(key, "7 ± 1")]
    assert [each.label for each in estimates({**release, "task": "statistics", "result": {}}, rows)] == [
        f"count of {key}"
    ]
    by = {"columns": ["month"], "truncate": CUT}
    (figure,) = _of_groups({**release, "group_by": by}, rows, ["count"], "rows")
    assert "'2025-10'" in str(figure) and "month (month)" in str(figure)


CUT = {"day": "day", "hour": "hour", "month": "month"}
DATED = {"columns": ["t"], "lower": ["2020-01-01"], "upper": ["2020-01-06"], "step": "1 day"}


@pytest.mark.parametrize(("error", "shown"), [(4.9, "3 ± 4.9"), (5.1, "not known"), (775.0, "not known")])
def test_a_mean_whose_error_exceeds_its_axis_is_not_known(error, shown):
    release = {
        "domain": {"columns": ["x"], "lower": [0.0], "upper": [5.0], "step": 1.0},
        "group_by": {"columns": ["city"], "truncate": {}},
        "params": {"measures": ["mean"]},
        "accuracy": {"promises": {}, "failure": 0.1},
        "privacy": {},
    }
    rows = {"city": np.array(["a"]), "mean": np.array([3.0]), "mean_error": np.array([error])}
    assert _largest(release, rows, ["mean"]).rows == [("a", shown)]
    assert bool(_of_groups(release, rows, ["mean"], "rows")) == (error < 5)
    dated = {**rows, "mean": np.array(["2020-01-04"], "M8[D]")}
    assert (_largest({**release, "domain": DATED}, dated, ["mean"]).rows[0][1] == "not known") == (error > 5)
    value = {"measure": "mean", "column": 0, "value": 3.0, "error": error, "low": None, "high": None}
    alone = {**release, "group_by": None, "result": {"groups": None, "values": [value]}}
    found = answer(alone, None)
    assert ("not known" in found.facts[0].lines[0]) == (error > 5) == (not found.figures)


def test_a_figure_with_the_digits_of_the_headline_is_in_the_line() -> None:
    quantile = Fact("quantile 0.5", ("3",), range="from 1 to 9")
    facts = (quantile, Fact("count", ("3",), said=True), Fact("size", ("7",)))
    several = Answer("3 quantiles of x, among 3 rows", "", facts)
    assert several.brief == "3 quantiles of x, among 3 rows: quantile 0.5 3 (from 1 to 9); size 7"
    value = Fact("value", ("3",), range="from 1 to 9", said=True)
    one = Answer("The median of x is about 3", "", (value,))
    assert one.brief == "The median of x is about 3: from 1 to 9"


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        (
            np.array(["2025-10", "2025-08", "2025-09"], "M8[M]").astype("M8[D]"),
            ["2025-08", "2025-09", "2025-10"],
        ),
        (np.array([10, 9, 11]), ["9", "10", "11"]),
        (np.array(["2013-02-01", "2013-01-31"]), ["2013-01-31", "2013-02-01"]),
        (np.array(["2013-02-01", "other"]), ["other", "2013-02-01"]),
        (np.array(["z", "y", "x"]), ["y", "x", "z"]),
        (np.array([True, False]), ["false", "true"]),
        (np.arange(49), [str(key) for key in range(1, 13)]),
    ],
)
def test_groups_are_shown_by_their_key_where_it_is_a_time_or_a_number(keys, shown):
    """Others, and more than 48 groups, from the largest count down; a table in parts has not all of them."""
    counts = np.concatenate([[0, 100, 99], np.arange(98, 52, -1)])[: len(keys)]
    release = {
        "domain": {"columns": ["x"], "lower": [0.0], "upper": [5.0], "step": 1.0},
        "group_by": {"columns": ["k"], "truncate": {"k": "month"} if keys.dtype.kind == "M" else {}},
        "params": {"measures": ["count"]},
    }
    rows = {"k": keys, "count": counts, "count_error": np.ones(len(keys))}
    table = _largest(release, rows, ["count"])
    assert [row[0] for row in table.rows] == shown
    ordered = keys.dtype.kind in "iM" or keys[-1] == "2013-01-31"
    assert ("with the largest count" in table.title) == (not ordered or len(keys) > 48)
    (figure,) = _of_groups(release, rows, ["count"], "rows")
    places = [str(figure).index(f"'{key}'") for key in shown]
    assert places == sorted(places)
    in_parts = _largest({**release, "table": {"parts": 2}}, rows, ["count"])
    assert "with the largest count" in in_parts.title
