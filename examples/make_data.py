"""Write the rows of the examples into `data/` beside this file: public airports, and made-up rows.

The airports are those of `shoal demo`. Everything else is made up from fixed seeds, the same at each call.
"""

import datetime
from pathlib import Path

import airportsdata
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(__file__).parent / "data"
FIRST_DAY = datetime.datetime(2026, 11, 9, tzinfo=datetime.UTC)
"""A Monday."""


def airports() -> pa.Table:
    """Return the world's airports: `country`, `lat` and `lon` in degrees, `elevation` in feet."""
    rows = [dict(airport) for airport in airportsdata.load().values()]
    return pa.Table.from_pylist(rows).select(["icao", "country", "elevation", "lat", "lon"])


def checkins(rng: np.random.Generator) -> pa.Table:
    """Return a week of check-ins in a made-up town.

    The columns are `user`, `time`, `kind`, `spent` in EUR, and `east` and `north` in metres.

    4,000 users have 2 to 40 rows each. A third of all rows are near three squares, each some 200 m wide.
    """
    per_user = np.minimum(1 + rng.geometric(0.2, 4_000), 40)
    user = np.repeat(np.arange(4_000), per_user)
    n = len(user)
    hour = np.clip(rng.normal(14, 4, n), 0, 23.99)
    seconds = (rng.integers(0, 7, n) * 24 + hour) * 3600
    place = rng.uniform(0, 10_000, (n, 2))
    squares = np.array([[6_200, 3_400], [2_500, 7_000], [8_100, 8_300]])
    square = rng.choice(4, n, p=[0.13, 0.11, 0.10, 0.66])
    at_square = square < 3
    place[at_square] = squares[square[at_square]] + rng.normal(0, 50, (int(at_square.sum()), 2))
    kinds = np.array(["bar", "cafe", "museum", "shop"])
    kind = rng.choice(4, n, p=[0.2, 0.4, 0.1, 0.3])
    spent = np.round(rng.lognormal(np.array([2.7, 1.6, 2.4, 3.2])[kind], 0.5), 2)
    order = rng.permutation(n)
    columns = {
        "user": [f"user-{number:04}" for number in user[order]],
        "time": [FIRST_DAY + datetime.timedelta(seconds=int(second)) for second in seconds[order]],
        "kind": kinds[kind[order]],
        "spent": spent[order],
        "east": np.round(place[order, 0]),
        "north": np.round(place[order, 1]),
    }
    return pa.table(columns)


def by_day(rows: pa.Table, folder: Path) -> None:
    """Write check-ins as a file for each day, such as checkins-2026-11-09.parquet."""
    folder.mkdir(exist_ok=True)
    days = np.array([time.date().isoformat() for time in rows["time"].to_pylist()])
    for day in np.unique(days):
        pq.write_table(rows.filter(pa.array(days == day)), folder / f"checkins-{day}.parquet")


def exams(rng: np.random.Generator) -> pa.Table:
    """Return 6,000 exams: `hours` of learning, `points` of 100, and `passed`, from about 50 points on."""
    hours = np.round(rng.gamma(4, 6, 6_000), 1)
    points = np.clip(np.round(28 + 1.2 * hours + rng.normal(0, 9, 6_000)), 0, 100)
    passed = (points >= 50) ^ (rng.random(6_000) < 0.03)
    return pa.table({"hours": hours, "points": points.astype(np.int64), "passed": passed.astype(np.int64)})


def friends(rng: np.random.Generator) -> pa.Table:
    """Return the edges of a graph of 400 people in 10 groups; in a group 60% of pairs are friends."""
    u, v = np.triu_indices(400, 1)
    same = u // 40 == v // 40
    chosen = rng.random(len(u)) < np.where(same, 0.6, 0.005)
    return pa.table({"u": u[chosen], "v": v[chosen]})


def roads(rng: np.random.Generator) -> pa.Table:
    """Return roads from each of 2,000 crossings to its next 3, with a `weight` of 1 to 10 minutes."""
    u = np.repeat(np.arange(2_000), 3)
    v = (u + np.tile([1, 2, 3], 2_000)) % 2_000
    return pa.table({"u": u, "v": v, "weight": np.round(rng.uniform(1, 10, len(u)), 1)})


def write(folder: Path = DATA) -> None:
    """Write every table into `folder`."""
    folder.mkdir(exist_ok=True)
    pq.write_table(airports(), folder / "airports.parquet")
    for seed, make in enumerate((checkins, exams, friends, roads)):
        pq.write_table(make(np.random.default_rng(seed)), folder / f"{make.__name__}.parquet")
    by_day(pq.read_table(folder / "checkins.parquet"), folder / "days")


if __name__ == "__main__":
    write()
