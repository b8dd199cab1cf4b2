"""Releases that no run made: every figure of one is another one, so that none can stand for another."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Made = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any] | None]
"""What a release says of its job, what it promises, and its result."""

LINE = {"columns": ["x"], "lower": [-7.0], "upper": [25.0], "step": 0.5}
PLANE = {"columns": ["x", "y"], "lower": [-7.0, 2.0], "upper": [25.0, 12.0], "step": 0.5}
EARTH = {
    "columns": ["lat", "lon"],
    "geography": "wgs84",
    "lower": [-90, -180],
    "upper": [90, 180],
    "step": 10,
}
COLORS = {"columns": ["red", "green", "blue"], "lower": [0.0] * 3, "upper": [255.0] * 3, "step": 1.0}
DAYS = {"columns": ["t"], "lower": ["2020-01-01"], "upper": ["2020-01-31"], "step": "2 days"}
GROUPS = {"columns": ["city"], "truncate": {}, "public_keys": None}
CASES: dict[str, Made] = {
    "a ball": (
        {
            "task": "one_cluster",
            "domain": PLANE,
            "params": {"target": 5003},
            "privacy": {"unit": "who", "keep": "one"},
            "checks": {"standard_error": 7.5, "left_out": [30, 14], "moved": [36, 41]},
        },
        {"missing": 11, "radius_factor": 13.0, "resolution": 17.0, "count_error": 19},
        {"center": [3.5, 4.5], "radius": 5.5, "count": 6007, "at_least": 5801, "radius_factor": 7.25},
    ),
    "no ball": (
        {"task": "one_cluster", "domain": PLANE, "params": {"target": 5003}, "smallest_target": 7919},
        {"missing": None, "radius_factor": None, "resolution": None, "count_error": 19},
        None,
    ),
    "balls": (
        {
            "task": "k_cover",
            "domain": PLANE,
            "params": {"target": 503, "k": 3, "coverage": None},
            "privacy": {"unit": "who", "keep": "last"},
        },
        {"missing": 11, "radius_factor": 13.0, "resolution": None, "count_error": 19, "rows_error": 23},
        {
            "balls": [
                {"center": [3.5, 4.5], "radius": 5.5, "count": 601, "at_least": 577, "radius_factor": 7.25},
                {"center": [6.5, 7.5], "radius": 8.5, "count": 509, "at_least": 487, "radius_factor": 7.25},
            ],
            "rows": 3001,
        },
    ),
    "all balls": (
        {"task": "k_cover", "domain": LINE, "params": {"target": None, "k": 1, "coverage": 0.35}},
        {"missing": None, "radius_factor": None, "resolution": None, "count_error": 29, "rows_error": None},
        {"balls": [{"center": [3.5], "radius": 5.5, "count": 601}], "rows": None},
    ),
    "centers": (
        {"task": "k_means", "domain": PLANE, "params": {"k": 3}, "privacy": {"unit": "who", "keep": "mean"}},
        {"count_error": 19, "smallest_group": 118},
        {
            "centers": [[3.5, 4.5], [5.5, 6.5], [7.5, 8.5]],
            "counts": [211, 307, 103],
            "noise": [0.25, 0.125, None],
        },
    ),
    "cells": (
        {
            "task": "histogram",
            "domain": LINE,
            "params": {"cells": [4]},
            "privacy": {"count": "n"},
            "checks": {"standard_error": 7.5, "left_out": [15], "moved": [29]},
        },
        {"cell_error": 11, "released_from": None, "standard_error": 3.0},
        {"cells": [4], "released": 4, "total": 607},
    ),
    "cells above a threshold": (
        {
            "task": "histogram",
            "domain": LINE,
            "params": {"cells": [64]},
            "contributions": {"groups": 1, "rows": 2},
            "privacy": {"unit": "who"},
        },
        {"cell_error": 11, "released_from": 17, "standard_error": 3.0},
        {"cells": [64], "released": 2, "total": 607},
    ),
    "a distribution": (
        {
            "task": "cdf",
            "domain": LINE,
            "params": {"ranges": [[1.2, 3.7]]},
            "privacy": {"unit": "who", "keep": "max"},
        },
        {"kolmogorov_records": 45, "range_error": 76, "range_standard_error": 19.0},
        {
            "total": 2003,
            "kolmogorov": {"data": 0.0625, "population": 0.125},
            "ranges": [
                {"low": 1.2, "high": 3.7, "first": 1.5, "last": 3.5, "count": 211, "standard_error": 13.25},
                {"low": 1.2, "high": 1.3, "first": None, "last": None, "count": 0, "standard_error": 0.0},
            ],
        },
    ),
    "rectangles": (
        {
            "task": "ranges",
            "domain": PLANE,
            "params": {"ranges": []},
            "privacy": {"unit": "who", "keep": "min"},
        },
        {"cell_error": 51, "standard_error": 3.5},
        {
            "total": 1997,
            "boxes": 65,
            "cells": 224,
            "ranges": [
                {
                    "lower": [1.5, 2.5],
                    "upper": [3.5, 4.5],
                    "count": 211.5,
                    "standard_error": 13.25,
                    "low": 197,
                    "high": 227,
                }
            ],
        },
    ),
    "quantiles": (
        {"task": "quantiles", "domain": LINE, "params": {}, "privacy": {"unit": "who", "keep": "one"}},
        {"rank_error": 139, "typical_rank_error": 41.5},
        {"probabilities": [0.25, 0.75], "values": [1.5, 4.5], "lows": [0.5, -7.0], "highs": [2.5, 25.0]},
    ),
    "many quantiles": (
        {"task": "quantiles", "domain": LINE, "params": {}, "privacy": {"unit": "who", "keep": "sum"}},
        {"rank_error": 139, "typical_rank_error": None},
        {
            "probabilities": [each / 100 for each in range(5, 95, 7)],
            "values": [each + 0.5 for each in range(13)],
            "lows": [float(each) for each in range(13)],
            "highs": [float(each + 1) for each in range(13)],
        },
    ),
    "a median": (
        {"task": "median", "method": "exponential", "domain": LINE, "params": {"quantile": 0.5}},
        {"rank_error": 16, "typical_rank_error": 2.0},
        {"value": 3.5, "scale": None, "low": 1.5, "high": 4.5},
    ),
    "a low quantile of two columns": (
        {
            "task": "median",
            "method": "ordered",
            "domain": PLANE,
            "params": {"quantile": 0.25},
            "privacy": {"unit": "who", "keep": "count"},
            "checks": {"standard_error": 7.5, "left_out": [18, 3], "moved": [30, 3]},
        },
        {"rank_error": 32, "typical_rank_error": 4.0},
        {
            "columns": [
                {
                    "value": 3.5,
                    "scale": None,
                    "low": 1.5,
                    "high": 4.5,
                    "rank_error": 31,
                    "typical_rank_error": 4.0,
                },
                {
                    "value": 5.5,
                    "scale": None,
                    "low": 2.0,
                    "high": 12.0,
                    "rank_error": 29,
                    "typical_rank_error": 4.0,
                },
            ]
        },
    ),
    "a largest value": (
        {"task": "minimum", "method": "smooth", "domain": LINE, "params": {"largest": True}},
        {"rank_error": None, "typical_rank_error": None},
        {"value": 3.5, "scale": 0.75, "low": None, "high": None},
    ),
    "a point": (
        {"task": "interior_point", "domain": LINE, "params": {}},
        {"records_needed": 23},
        {"point": 3.5},
    ),
    "no point": (
        {"task": "interior_point", "domain": LINE, "params": {}},
        {"records_needed": 23},
        None,
    ),
    "a threshold": (
        {"task": "threshold", "domain": PLANE, "params": {}},
        {"alpha": 0.01, "records_needed": 900, "errors": 13},
        {"threshold": 3.5},
    ),
    "bounds": (
        {"task": "bounds", "domain": PLANE, "params": {"outside": 0.03}},
        {"records_outside": 110},
        {"columns": [{"lower": -1.5, "upper": 123457.5}, {"lower": 2.0, "upper": 4.5}]},
    ),
    "narrow bounds": (
        {"task": "bounds", "domain": LINE, "params": {"outside": 0.0}},
        {"records_outside": 110},
        {"columns": [{"lower": 1.5, "upper": 1.75}]},
    ),
    "triangles": (
        {"task": "triangles", "method": "smooth", "domain": PLANE, "params": {}},
        {"error": None},
        {"value": 1234.5, "scale": 17.5, "within": 80.5},
    ),
    "the cost of a tree": (
        {"task": "mst_cost", "method": "global", "domain": PLANE, "params": {}},
        {"error": 2.25},
        {"value": 14.5, "scale": 1.0},
    ),
    "a function": (
        {
            "task": "sample_and_aggregate",
            "method": "one_cluster",
            "domain": {**LINE, "columns": ["value_0"]},
            "params": {"blocks": 103, "stable_fraction": 0.8, "function": "a.b:slope"},
        },
        {"leftover": 0.5, "radius_blocks": 19, "errors": [1.25], "spread_factor": 1, "failed_error": 23},
        {"value": [3.5], "radius": 1.5, "failed_blocks": -3},
    ),
    "a median of answers": (
        {
            "task": "sample_and_aggregate",
            "method": "smooth_median",
            "domain": {**LINE, "columns": ["value_0"]},
            "params": {"blocks": 103, "stable_fraction": 0.8, "function": "a.b:slope"},
        },
        {"leftover": 0.5, "radius_blocks": None, "errors": [1.25], "spread_factor": 17, "failed_error": 23},
        {"value": [3.5], "radius": None, "failed_blocks": 5},
    ),
    "a mean of answers": (
        {
            "task": "sample_and_aggregate",
            "method": "average",
            "domain": {**PLANE, "columns": ["value_0", "value_1"]},
            "params": {"blocks": 103, "stable_fraction": 0.8, "function": "f.py:both", "ranges": "tight"},
        },
        {"leftover": 0.5, "radius_blocks": None, "mean_errors": [1.25, 2.25], "failed_error": None},
        {"value": [3.5, 4.5], "radius": None, "errors": [1.25, 2.25], "failed_blocks": None},
    ),
    "statistics": (
        {
            "task": "statistics",
            "domain": {**PLANE, "units": {"y": "kWh"}},
            "params": {"measures": ["count", "sum", "mean", "variance", {"quantiles": [0.25]}]},
            "privacy": {"unit": "who", "keep": "one"},
        },
        {
            "count_error": 13,
            "units_error": None,
            "sum_error": 11.0,
            "mean_error": 22.0,
            "found_from": None,
            "rank_error": 3,
            "extreme_error": None,
        },
        {
            "groups": None,
            "values": [
                {"measure": "count", "column": None, "value": 1999, "error": 4.5, "low": None, "high": None},
                {"measure": "sum", "column": 1, "value": 1004.5, "error": 3.25, "low": None, "high": None},
                {"measure": "mean", "column": 0, "value": 3.5, "error": 0.25, "low": None, "high": None},
                {"measure": "mean", "column": 1, "value": 4.5, "error": 11.0, "low": None, "high": None},
                {"measure": "variance", "column": 1, "value": 7.5, "error": 1.25, "low": None, "high": None},
                {"measure": "variance", "column": 0, "value": None, "error": None, "low": None, "high": None},
                {
                    "measure": "quantile_0.25",
                    "column": 0,
                    "value": 5.5,
                    "error": 2.5,
                    "low": 4.5,
                    "high": 6.5,
                },
            ],
        },
    ),
    "statistics of kept rows": (
        {
            "task": "statistics",
            "domain": LINE,
            "params": {"measures": ["units", "sum"]},
            "privacy": {"unit": "who"},
            "contributions": {"groups": 1, "rows": 3, "clamp": "unit"},
        },
        {
            "count_error": None,
            "units_error": 13,
            "sum_error": 11.0,
            "mean_error": 22.0,
            "found_from": None,
            "rank_error": None,
            "extreme_error": None,
        },
        {
            "groups": None,
            "values": [
                {"measure": "units", "column": None, "value": 1999, "error": 4.5, "low": None, "high": None},
                {"measure": "sum", "column": 0, "value": 1004.5, "error": 3.25, "low": None, "high": None},
                {"measure": "count", "column": None, "value": 3001, "error": 6.5, "low": None, "high": None},
            ],
        },
    ),
    "a ball on the Earth": (
        {"task": "one_cluster", "domain": EARTH, "params": {"target": 5003}},
        {"missing": 11, "radius_factor": 13.0, "resolution": 4321.0, "count_error": 19},
        {"center": [48.5, 2.25], "radius": 123450.0, "count": 6007},
    ),
    "a ball in the north": (
        {
            "task": "one_cluster",
            "domain": {**EARTH, "lower": [30, 160], "upper": [70, -110]},
            "params": {"target": 5003},
        },
        {"missing": 11, "radius_factor": 13.0, "resolution": None, "count_error": 19},
        {"center": [60.5, 179.5], "radius": 1234.0, "count": 6007},
    ),
    "a ball on a map": (
        {
            "task": "one_cluster",
            "domain": {**EARTH, "lower": [47, 7], "upper": [48, 9]},
            "params": {"target": 5003},
        },
        {"missing": 11, "radius_factor": 13.0, "resolution": 432.1, "count_error": 19},
        {"center": [47.25, 8.5], "radius": 1250.0, "count": 6007},
    ),
    "centers of colors": (
        {"task": "k_median", "domain": COLORS, "params": {"k": 2}},
        {"count_error": 19, "smallest_group": None},
        {"centers": [[51.0, 102.0, 204.0], [255.0, 0.0, 153.0]], "counts": [11, 307], "noise": None},
    ),
    "centers of a column": (
        {"task": "k_median", "domain": LINE, "params": {"k": 2}},
        {"count_error": None, "smallest_group": None},
        {"centers": [[3.5], [9.5]], "counts": [211, 307], "noise": [0.25, 0.75]},
    ),
    "statistics of dates": (
        {"task": "statistics", "domain": DAYS, "params": {"measures": ["mean", "minimum"]}},
        {
            "count_error": 13,
            "units_error": None,
            "sum_error": None,
            "mean_error": 22.0,
            "found_from": None,
            "rank_error": None,
            "extreme_error": 5,
        },
        {
            "groups": None,
            "values": [
                {
                    "measure": "mean",
                    "column": 0,
                    "value": "2020-01-05T12:00:00",
                    "error": "3 days",
                    "low": None,
                    "high": None,
                },
                {"measure": "variance", "column": 0, "value": 7.5, "error": 1.5, "low": None, "high": None},
                {
                    "measure": "minimum",
                    "column": 0,
                    "value": "2020-01-03",
                    "error": 2.5,
                    "low": None,
                    "high": None,
                },
            ],
        },
    ),
    "a median of dates": (
        {"task": "median", "method": "smooth", "domain": DAYS, "params": {"quantile": 0.5}},
        {"rank_error": 16, "typical_rank_error": 2.0},
        {"value": "2020-01-05", "scale": None, "low": "2020-01-01", "high": "2020-01-31"},
    ),
    "a minimum of dates": (
        {"task": "minimum", "method": "smooth", "domain": DAYS, "params": {"largest": False}},
        {"rank_error": None, "typical_rank_error": None},
        {"value": "2020-01-05", "scale": "6 days", "low": None, "high": None},
    ),
    "groups of dates": (
        {"task": "statistics", "domain": DAYS, "params": {"measures": ["mean"]}, "group_by": GROUPS},
        {
            "count_error": 13,
            "units_error": None,
            "sum_error": None,
            "mean_error": 22.0,
            "found_from": 7,
            "rank_error": None,
            "extreme_error": None,
        },
        {"groups": 2, "values": []},
    ),
    "groups": (
        {
            "task": "statistics",
            "domain": PLANE,
            "params": {"measures": ["units", "sum", "minimum", {"quantiles": [0.25]}]},
            "group_by": GROUPS,
            "privacy": {"unit": "who"},
            "contributions": {"groups": 2, "rows": 3, "clamp": "row"},
        },
        {
            "count_error": None,
            "units_error": 13,
            "sum_error": 11.0,
            "mean_error": None,
            "found_from": 17,
            "rank_error": 3,
            "extreme_error": 5,
        },
        {"groups": 3, "values": []},
    ),
    "public groups": (
        {
            "task": "statistics",
            "domain": LINE,
            "params": {"measures": ["count"]},
            "group_by": {**GROUPS, "public_keys": 3},
        },
        {"count_error": 13, "units_error": None, "sum_error": None, "mean_error": None, "found_from": None},
        {"groups": 3, "values": []},
    ),
    "cells of places": (
        {
            "task": "histogram",
            "domain": {**PLANE, "columns": ["lat", "lon"]},
            "params": {"cells": [2, 2]},
            "privacy": {"unit": "who", "keep": "count"},
            "file": "where.parquet",
        },
        {"cell_error": None, "released_from": 17, "standard_error": 3.0},
        {"cells": [2, 2], "released": 3, "total": 619},
    ),
    "cells of three columns": (
        {
            "task": "histogram",
            "domain": {"columns": ["x", "y", "z"], "lower": [0.0] * 3, "upper": [8.0] * 3, "step": 0.5},
            "params": {"cells": [2, 2, 2]},
            "table": [{"name": "a"}],
        },
        {"cell_error": 11, "released_from": 17, "standard_error": 3.0},
        {"cells": [2, 2, 2], "released": 2, "total": 619},
    ),
    "cells in parts": (
        {"task": "histogram", "domain": LINE, "params": {"cells": [4]}, "table": [{"name": "a"}]},
        {"cell_error": 11, "released_from": None, "standard_error": 3.0},
        {"cells": [4], "released": 4, "total": 607},
    ),
    "a long distribution": (
        {"task": "cdf", "domain": {**LINE, "upper": [1000.0]}, "params": {"ranges": []}},
        {"kolmogorov_records": 45, "range_error": 76, "range_standard_error": 19.0},
        {"total": 2003, "kolmogorov": {"data": 0.0625, "population": 0.125}, "ranges": []},
    ),
    "many groups": (
        {"task": "statistics", "domain": LINE, "params": {"measures": ["count"]}, "group_by": GROUPS},
        {"count_error": 13, "units_error": None, "sum_error": None, "mean_error": None, "found_from": None},
        {"groups": 14, "values": []},
    ),
    "no group": (
        {"task": "statistics", "domain": LINE, "params": {"measures": ["count"]}, "group_by": GROUPS},
        {"count_error": 13, "units_error": None, "sum_error": None, "mean_error": None, "found_from": 19},
        None,
    ),
}

_CITIES = np.array(["a", "b", "c"])
ROWS: dict[str, dict[str, Any]] = {
    "cells": {
        "cell_0": np.arange(4),
        "lower_0": np.array([-7.0, 1.0, 9.0, 17.0]),
        "upper_0": np.array([1.0, 9.0, 17.0, 25.0]),
        "count": np.array([101, -3, 211, 298]),
    },
    "cells of places": {
        "cell_0": np.array([0, 0, 1]),
        "lower_0": np.array([-7.0, -7.0, 9.0]),
        "upper_0": np.array([9.0, 9.0, 25.0]),
        "cell_1": np.array([0, 1, 1]),
        "lower_1": np.array([2.0, 7.0, 7.0]),
        "upper_1": np.array([7.0, 12.0, 12.0]),
        "count": np.array([101, 211, 307]),
    },
    "cells of three columns": {
        **{f"cell_{axis}": np.array([0, 1]) for axis in range(3)},
        **{f"lower_{axis}": np.array([0.0, 4.0 + axis]) for axis in range(3)},
        **{f"upper_{axis}": np.array([1.0 + axis, 8.0]) for axis in range(3)},
        "count": np.array([5, 211]),
    },
    "cells above a threshold": {
        "cell_0": np.array([20, 40]),
        "lower_0": np.array([3.0, 13.0]),
        "upper_0": np.array([3.5, 13.5]),
        "count": np.array([107, 500]),
    },
    "a distribution": {"value": np.array([-7.0, 3.5, 25.0]), "count": np.array([11, 211, 2003])},
    "rectangles": {
        "first_0": np.array([-7.0, -7.0]),
        "last_0": np.array([8.5, -3.5]),
        "first_1": np.array([2.0, 2.0]),
        "last_1": np.array([12.0, 3.5]),
        "count": np.array([211, 1786]),
    },
    "groups of dates": {
        "city": _CITIES[:2],
        "mean": np.array(["2020-01-05T12", "2020-01-03T06"], "M8[s]"),
        "mean_error": np.array([3.0, 1.0]),
    },
    "groups": {
        "city": _CITIES,
        "units": np.array([41, 53, 47]),
        "units_error": np.array([1.5, 2.5, 3.5]),
        "sum_0": np.array([101.0, 103.0, 107.0]),
        "sum_0_error": np.array([4.5, 5.5, 6.5]),
        "sum_1": np.array([201.0, 203.0, 207.0]),
        "sum_1_error": np.array([7.5, 8.5, 9.5]),
        "minimum_0": np.array([1.5, 2.5, 3.5]),
        "minimum_0_error": np.array([10.5, 11.5, 12.5]),
        "minimum_1": np.array([4.5, 5.5, 6.5]),
        "minimum_1_error": np.array([13.5, 14.5, 15.5]),
        "quantile_0.25_0": np.array([7.5, 8.5, 9.5]),
        "quantile_0.25_0_error": np.array([16.5, 17.5, 18.5]),
        "quantile_0.25_0_low": np.array([6.5, -7.0, 8.5]),
        "quantile_0.25_0_high": np.array([9.0, 25.0, 9.75]),
        "quantile_0.25_1": np.array([10.5, 11.5, 3.5]),
        "quantile_0.25_1_error": np.array([2.25, 2.75, 3.25]),
        "quantile_0.25_1_low": np.array([9.5, 10.5, 2.0]),
        "quantile_0.25_1_high": np.array([11.0, 12.0, 4.0]),
    },
    "public groups": {
        "city": _CITIES,
        "count": np.array([4, -3, 5]),
        "count_error": np.array([1.5, 2.5, 1.5]),
    },
}
"""The columns of their tables."""

ROWS["cells in parts"] = ROWS["cells"]
ROWS["a long distribution"] = {"value": np.arange(-7.0, 1001.0), "count": 2 * np.arange(1008)}
ROWS["many groups"] = {
    "city": np.array([*"abcdefghijklmn"]),
    "count": np.arange(101, 129, 2),
    "count_error": np.full(14, 3.5),
}
