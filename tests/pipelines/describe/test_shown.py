"""What is known of a column is shown, and no more."""

from typing import Any

from pipelines.describe.columns import PROBABILITIES, Described, Description
from pipelines.describe.shown import _share, show_description

PRIVACY = {"epsilon": 1.0, "delta": 0.0, "neighbors": "add_or_remove_one"}
ACCURACY = {"failure": 0.1, "promises": {"rank_error": 1000, "typical_rank_error": 12.0}}


def quantiles(
    values: list, lows: list, highs: list, ends: tuple = (-100, 100), step: Any = 1
) -> dict[str, Any]:
    return {
        "task": "quantiles",
        "outcome": "released",
        "domain": {"columns": ["a"], "lower": [ends[0]], "upper": [ends[1]], "step": step},
        "accuracy": ACCURACY,
        "privacy": PRIVACY,
        "result": {"probabilities": PROBABILITIES, "values": values, "lows": lows, "highs": highs},
    }


def about_rows(shares: list[float | None], rows: int = 12_345) -> dict[str, Any]:
    count = {"measure": "count", "column": None, "value": rows, "error": 20.0}
    means = [{"measure": "mean", "column": i, "value": x, "error": 0.01} for i, x in enumerate(shares)]
    return {"task": "statistics", "privacy": PRIVACY, "result": {"groups": None, "values": [count, *means]}}


def shown(columns: list[Described], answers: dict[str, Any], tables: dict[str, Any]) -> list[str]:
    release = {"answers": answers, "privacy": {**PRIVACY, "epsilon": 2.0}}
    return show_description(Description({}, columns, ["list (list)"]), release, tables)


def test_a_quantile_whose_interval_is_open_shows_its_other_end():
    values, lows, highs = [-90, 1, 2, 3, 4, 5, 6], [-100, 0, 1, 2, 3, -100, 5], [2, 3, 4, 5, 6, 100, 100]
    answers = {"rows": about_rows([0.25]), "1-a": quantiles(values, lows, highs)}
    lines = shown([Described("a", "int8", "1-a")], answers, {"rows": None, "1-a": None})
    (row,) = (line.split("  ") for line in lines if line.startswith("a "))
    assert [each.strip() for each in row if each] == [
        *("a", "int8", "25%", "≤ 2", "1", "2", "3", "4", "?", "≥ 5"),
    ]
    assert lines[0] == "12,345 rows, with a standard error of 20."
    assert "Not described: list (list)." in lines
    assert "The standard error of a share of nulls is 1%." in lines
    assert lines[-1] == (
        "All columns together spent epsilon 2, delta 0, add_or_remove_one row (no privacy unit: each row "
        "counts as one person)."
    )


def test_where_a_quantile_could_be_anything_its_interval_is_shown():
    """A value within it would be read as known: an age of 34,942,635."""
    values, ends = [20, 30, -9_000, 34_942_635, 50, 60, 70], (-(2**61), 2**61)
    lows, highs = [19, 28, -90_000, 27, 50, 0, 60], [25, 33, 60_000, 67_108_863, 50, 90, 80]
    answers = {"rows": about_rows([0.25]), "1-a": quantiles(values, lows, highs, ends)}
    lines = shown([Described("a", "int64", "1-a")], answers, {"rows": None, "1-a": None})
    (row,) = (line.split("  ") for line in lines if line.startswith("a "))
    assert [each.strip() for each in row if each][3:] == [
        "20",
        "30",
        "-90,000 to 60,000",
        "27 to 67,108,863",
        "50",
        "60",
        "70",
    ]


def test_an_interval_of_one_point_is_known_also_at_an_end_and_tenfold_is_too_wide():
    values, ends = [0, 0, 3_000, 3_000, 3_000, 100_000, 99_000], (0, 100_000)
    lows, highs = [0, 0, 1_000, 1_000, 1_000, 100_000, 5], [0, 9, 10_100, 9_900, 3_000, 100_000, 100_000]
    answers = {"rows": about_rows([0.25]), "1-a": quantiles(values, lows, highs, ends)}
    lines = shown([Described("a", "int64", "1-a")], answers, {"rows": None, "1-a": None})
    (row,) = (line.split("  ") for line in lines if line.startswith("a "))
    cells = [each.strip() for each in row if each][3:]
    assert cells == ["0", "≤ 9", "1,000 to 10,100", "3,000", "3,000", "100,000", "≥ 5"]


def test_parts_of_one_and_dates_are_shown_in_their_units():
    parts = [1_500_000 * i for i in range(7)]
    days = [f"2020-01-0{i}" for i in range(1, 8)]
    answers = {
        "rows": about_rows([-0.001, None]),
        "1-a": quantiles(parts, parts, parts, (-(10**9), 10**9)),
        "2-b": quantiles(days, days, days, ("0001-01-01", "9999-12-30"), "1 day"),
    }
    columns = [Described("a", "double", "1-a", 10**6), Described("b", "date", "2-b")]
    lines = shown(columns, answers, dict.fromkeys(answers))
    (numbers,) = (line.split() for line in lines if line.startswith("a "))
    (dates,) = (line.split() for line in lines if line.startswith("b "))
    assert numbers == ["a", "double", "0%", "0", "1.5", "3", "4.5", "6", "7.5", "9"]
    assert dates == ["b", "date", "?", *days]


def test_the_most_frequent_values_are_shown():
    answers = {"rows": about_rows([0.0, 0.0]), **{key: {"task": "statistics"} for key in ("1-a", "2-b")}}
    table = {"a": [f"v{i}" for i in range(8)], "count": [1000 * i for i in range(8)]}
    columns = [Described("a", "string", "1-a"), Described("b", "string", "2-b")]
    lines = shown(columns, answers, {"rows": None, "1-a": table, "2-b": None})
    assert any(line.endswith("v7 7,000, v6 6,000, v5 5,000, v4 4,000, v3 3,000 and 3 more") for line in lines)
    assert any(line.endswith("no value was found") for line in lines)


def test_an_error_of_more_ranks_than_there_are_rows_is_said_to_promise_nothing():
    values, columns = list(range(7)), [Described("a", "int8", "1-a")]
    for rows, nothing in ((999, True), (-5, True), (1000, False)):
        answers = {"rows": about_rows([0.25], rows), "1-a": quantiles(values, values, values)}
        text = " ".join(shown(columns, answers, {"rows": None, "1-a": None}))
        assert "within 1,000 rows of their rank." in text
        assert ("There are fewer rows, so this promises nothing: describe fewer columns" in text) == nothing


def test_frequent_values_are_cut_one_by_one():
    answers = {"rows": about_rows([0.0]), "1-a": {"task": "statistics"}}
    table = {"a": [f"{i}{'long' * 50}" for i in range(5)], "count": [5000 - i for i in range(5)]}
    lines = shown([Described("a", "string", "1-a")], answers, {"rows": None, "1-a": table})
    (line,) = (line for line in lines if line.startswith("a "))
    assert line.count("...") == 5 and line.endswith("... 4,996")


def test_the_worst_of_several_columns_is_said_and_no_better_one():
    """Of the errors of shares of nulls, too; one that is not known is left out."""
    values = list(range(7))
    answers = {"rows": about_rows([0.25] * 4)}
    for place, (rank, typical, null) in enumerate(
        [(300, 30.0, 0.05), (700, 20.0, 0.11), (500, 10.0, 0.02), (None, None, None)]
    ):
        asked = quantiles(values, values, values)
        promises = {"rank_error": rank, "typical_rank_error": typical}
        answers[f"{place}-a"] = {**asked, "accuracy": {"failure": 0.1, "promises": promises}}
        answers["rows"]["result"]["values"][1 + place]["error"] = null
    columns = [Described(name, "int8", name) for name in answers if name != "rows"]
    text = " ".join(shown(columns, answers, dict.fromkeys(answers)))
    assert "within 700 rows of their rank" in text
    assert "the standard error of the rank of a quantile is at most about 30 rows" in text
    assert "The standard error of a share of nulls is 11%." in text


def test_a_share_of_nearly_all_rows_is_a_hundred_percent():
    assert [_share(part) for part in (0.998, 1.2, 0.5, 0.0004, -0.1, None)] == [
        "100%",
        "100%",
        "50%",
        "0.04%",
        "0%",
        "?",
    ]
