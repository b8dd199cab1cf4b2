"""A ledger over time, as a page with a picture."""

from datetime import UTC, datetime, timedelta

from pipelines.ledger.page import ledger_page, over_time
from pipelines.ledger.table import describe_ledger
from tests.pipelines.ledger.test_table import ledger

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def described(charges: int) -> dict:
    made = ledger(charges)
    weekly = [
        entry.model_copy(update={"at": FIRST + timedelta(weeks=week)})
        for week, entry in enumerate(made.charges)
    ]
    return describe_ledger(made.model_copy(update={"epsilon": 5.0, "charges": tuple(weekly)}))


def test_the_picture_adds_up_the_charges():
    line, limit = over_time(described(8)).plots[0]["layer"]
    points = line["data"]["values"]
    assert [point["y"] for point in points] == [0.25 * i for i in range(9)] + [2.0]
    at = [point["x"] / 1000 for point in points[1:-1]]
    assert at == [(FIRST + timedelta(weeks=week)).timestamp() for week in range(8)]
    assert points[0]["x"] < points[1]["x"] and points[-2]["x"] < points[-1]["x"]
    assert limit["data"]["values"] == [{"y": 5.0}]
    assert line["mark"]["interpolate"] == "step-after"  # nothing is spent between two runs
    assert max(line["encoding"]["y"]["scale"]["domain"]) > 5.0  # the limit is no edge of the picture


def test_a_clock_that_was_set_back_draws_no_line_back():
    told = described(3)
    told["charges"][1]["at"] = "1999-01-01T00:00:00Z"
    points = over_time(told).plots[0]["layer"][0]["data"]["values"]
    at = [point["x"] for point in points]
    assert at == sorted(at) and at[1] == at[2]
    assert [point["y"] for point in points] == [0.0, 0.25, 0.5, 0.75, 0.75]


def test_a_ledger_without_charges_has_a_page():
    page = ledger_page(described(0)).decode()
    assert "Epsilon 5 of 5 is left" in page and "0 runs charged" in page and page.count("<svg ") == 1


def test_all_that_is_spent_is_in_the_picture_and_what_fits_is_said():
    """Also where a ledger has less than was charged to it, such as one that somebody changed."""
    told = {**described(2), "epsilon": 0.25, "left": None}
    layers = over_time(told).plots[0]["layer"]
    assert max(layers[0]["encoding"]["y"]["scale"]["domain"]) > 0.5
    page = ledger_page({**told, "fits": {"runs": 0, "says": "No further run fits."}}).decode()
    assert "Nothing is left: the charges exceed delta 1e-5" in page and "No further run fits." in page
    assert "1 run charged" in ledger_page(described(1)).decode()


def test_the_page_escapes_names():
    told = described(2)
    told["charges"][1]["run_id"] = "<script>"
    page = ledger_page(told).decode()
    assert "Epsilon 4.5 of 5 is left" in page and "2 runs charged" in page
    assert "&lt;script&gt;" in page and "<script>" not in page
