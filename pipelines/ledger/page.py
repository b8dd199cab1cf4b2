"""A ledger over time, as a page with a picture."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from itertools import accumulate
from typing import Any

import numpy as np

from pipelines.answers.answer import Table
from pipelines.answers.axis import Axis
from pipelines.answers.picture import Picture, curve, layer
from pipelines.answers.text import number
from pipelines.ledger.table import HEADERS, rows_of
from pipelines.report.page import as_page
from pipelines.report.report import render_curve


def ledger_page(ledger: Mapping[str, Any]) -> bytes:
    """Return what the charges of a ledger spent over time, as an HTML page that loads nothing.

    Args:
        ledger: as `describe_ledger` returns it, with what `look_ahead` returns.
    """
    runs = len(ledger["charges"])
    lead = (
        f"{runs:,} run{'s' if runs != 1 else ''} charged, composed by {ledger['accountant']}. In the table, "
        "counted is what a run adds to the spent epsilon."
    )
    left, whole = ledger["left"], number(ledger["epsilon"])
    title = (
        f"Nothing is left: the charges exceed delta {number(ledger['delta'])}"
        if left is None
        else f"Epsilon {number(left)} of {whole} is left"
    )
    if "fits" in ledger:
        lead = f"{lead} {ledger['fits']['says']}"
    table = Table("Charges", HEADERS, rows_of(ledger))
    source = "This page was made from the ledger alone."
    return as_page(render_curve(title, lead, source, [("Spent over time", over_time(ledger), table)]))


def over_time(ledger: Mapping[str, Any]) -> Picture:
    """Return the spent epsilon after each charge, below that of the ledger, as a picture.

    A charge without a known share counts as nothing.
    """
    told = [datetime.fromisoformat(entry["at"]).timestamp() for entry in ledger["charges"]]
    at = list(accumulate(told, max))  # clocks may be set back
    spent = list(accumulate((entry["counted"] or 0.0 for entry in ledger["charges"]), initial=0.0))
    x = Axis.of_instants("charged at", at)
    y = Axis.of("epsilon", 0, 1.05 * max(ledger["epsilon"], *spent))
    places = np.array([x.low, *at, x.high])
    drawn = curve(
        "Spent epsilon over time", x, y, (places, np.array([*spent, spent[-1]]), "spent"), steps=True
    )
    whole = [{"y": y.place(ledger["epsilon"])}]
    limit = layer("rule", "epsilon of the ledger", whole, {"y": y.encoded("y")}, "sun", strokeWidth=2)
    (plot,) = drawn.plots
    return replace(drawn, plots=({**plot, "layer": [*plot["layer"], limit]},))
