"""Numbers with units show themselves, also beyond what a float holds, and after a copy."""

import pickle

import pytest

from pipelines.quantities import Amount, Degrees, Metres, Quantity

SHOWN = [
    (Degrees(46.54, 500_000.0), "46.5°"),  # a coarse grid has one decimal all the same
    (Metres(999.0, 1.0), "999 m"),
    (Metres(1000.0, 1.0), "1.000 km"),
    (Metres(-129_041.0, 10.0), "-129.04 km"),
    (Amount(2**61 + 1, "kWh", 1.0), "2,305,843,009,213,693,953 kWh"),
    (Amount(0.125, "kWh", 0.01), "0.12 kWh"),
]


@pytest.mark.parametrize(("quantity", "shown"), SHOWN)
def test_a_quantity_shows_as_many_digits_as_its_grid_has(quantity: Quantity, shown: str) -> None:
    again = pickle.loads(pickle.dumps(quantity))
    for each in (quantity, again):
        assert each.on_grid() == shown
        assert type(each) is type(quantity) and float(each) == float(quantity)
