"""What no job may say is refused in a sentence that says why, and the nearest job that may say it is not."""

import ast
import copy
import re
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import JobError
from pipelines.job.job import check_raw
from pipelines.job.text import set_key
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import LINE, REPLACED, changes

ROOT = Path(__file__).resolve().parents[3]
MOST_KEYS = 2000
"""What stands for the millions of keys that a job may have."""

LEDGER = {"privacy.ledger": "/books/ledger.json"}
UNIT = {"input.unit": "who"}
DAYS = {"lower": ["2020-01-01"], "upper": ["2020-12-31"], "step": "1 day"}
DAY = {"input.columns": ["day"], "domain": DAYS}
EARTH = {"input.columns": ["lat", "lon"], "domain": {"geography": "wgs84"}}
JOIN = {"path": "/table.parquet", "on": "key", "columns": ["size"]}
ANY_JOIN = {"path": "/table.parquet", "on": "key"}
ONE: dict[str, Any] = {"columns": ["city"], "keys": ["a", "b"]}
PRIVATE = {"columns": ["city"], "keys": "private"}
POLICY = {**REPLACED, "privacy.policy": {"distance": 0.25}}
MEDIAN = {**changes("median"), "privacy.delta": 0}
COUNTS = {**changes("statistics"), **LINE, "params": {"measures": ["count"]}}
HISTOGRAM = changes("histogram")
FUNCTION = changes("sample_and_aggregate")
EDGES = {**changes("mst_cost"), **REPLACED, "params.change": "weight"}
BY_UNIT = {**UNIT, "contributions": {"groups": 2}}
QUESTION = {"task": "median", "columns": ["x"], "domain": {"lower": [0], "upper": [1], "step": 0.25}}
SEVERAL: dict[str, Any] = {
    "input": {"path": "/rows"},
    "privacy": {"epsilon": 1.0, "delta": 0},
    "questions": {"a": QUESTION},
    "output": "/out",
}

Case = tuple[dict[str, Any], dict[str, Any], str, dict[str, Any] | None]


def code(text: str | None, function: str) -> dict[str, Any]:
    return {"params.function": function, "params.code": text}


INPUTS: list[Case] = [
    ({}, {"input.unit": ""}, "input.unit is empty: give the name of a column", UNIT),
    ({}, {"output": ""}, "output is empty: give the folder", None),
    ({}, {"input.path": ""}, "input.path is empty: give a file", None),
    ({}, {"input.path": ["/a", "/b"]}, "input.path is ['/a', '/b']: give one path; a folder", None),
    ({}, {"input.columns": []}, "input.columns is []: give at least one column, each once.", None),
    ({}, {"input.columns": ["x", "x"]}, "input.columns is ['x', 'x']: give at least one column", None),
    ({}, {"input.types": {}}, "input.types is empty: give the type", {"input.types": {"x": "number"}}),
    ({}, {"input.derive": {}}, "input.derive has 0 columns: give 1 to 100", {"input.derive": {"z": "y"}}),
    (
        {},
        {"input.derive": {f"d{i}": "x" for i in range(101)}},
        "input.derive has 101 columns: give 1 to 100",
        {"input.derive": {f"d{i}": "x" for i in range(100)}},
    ),
    ({}, {"input.derive": {"": "x"}}, "input.derive has a column without a name: give it one.", None),
    ({}, {"input.where": "true"}, "input.where: it names no column", {"input.where": "x > 0"}),
    ({}, {"input.derive": {"z": "x +"}}, "input.derive.z: ", {"input.derive": {"z": "1"}}),
    ({}, {"input.join": {**JOIN, "path": ""}}, "input.join has an empty path or an empty key", None),
    ({}, {"input.join": {**JOIN, "on": ""}}, "input.join has an empty path or an empty key", None),
    (
        {},
        {"input.join": {**JOIN, "columns": ["key"]}},
        "input.join.columns is ['key']: give at least one column, each once, without the key.",
        {"input.join": JOIN},
    ),
    ({}, {"input.join": {**JOIN, "columns": []}}, "input.join.columns is []: give", None),
    ({}, {"input.join": {**JOIN, "columns": ["a", "a"]}}, "input.join.columns is ['a', 'a']: give", None),
    ({}, {"input.columns": ["x"]}, "input.columns has 1 columns and domain.lower 2 values", None),
    ({}, {"input.checks": 0.51}, "input.checks is 0.51: it must be from 0 to 0.5.", {"input.checks": 0.5}),
    ({}, {"input.checks": -0.01}, "input.checks is -0.01: it must be from 0 to 0.5.", {"input.checks": 0}),
    (
        {**HISTOGRAM, **POLICY},
        {"input.checks": 0.01},
        "input.checks is 0.01 and privacy.policy is given",
        {"input.checks": ...},
    ),
    (
        MEDIAN,
        {"input.keep": "mean"},
        "input.keep is mean, but there is no input.unit",
        {"input.keep": "mean", **UNIT},
    ),
    (changes("triangles"), UNIT, "input.unit is who: triangles hides one edge of a graph", {}),
    (
        {**changes("cdf"), **POLICY},
        UNIT,
        "input.unit is who and privacy.policy is given: a policy is about the values of single rows",
        {},
    ),
    (
        {**changes("threshold"), **UNIT},
        {"input.keep": "mean"},
        "input.keep is mean: labels cannot be combined, so for threshold it must be one or last.",
        {"input.keep": "one"},
    ),
    (
        {**HISTOGRAM, **UNIT},
        {"input.keep": "count"},
        "input.keep is count: a record is then the number",
        {"input.keep": "sum"},
    ),
    ({**UNIT, "input.keep": "last"}, {"input.order": ""}, "input.order is empty", {"input.order": "t"}),
    (UNIT, {"input.keep": "last"}, "input.keep is last, but there is no input.order", {"input.keep": "min"}),
    (UNIT, {"input.order": "t"}, "input.order is t, but input.keep is one: only last uses an order", None),
]

DOMAINS: list[Case] = [
    (
        {**changes("triangles")},
        {"domain": {key: 2 * value if isinstance(value, list) else value for key, value in DAYS.items()}},
        "domain has dates: columns of triangles are numbers.",
        None,
    ),
    (
        HISTOGRAM,
        {"domain": {"lower": ["2020-01-01", 0], "upper": ["2020-12-31", 1], "step": "1 day"}},
        "domain has dates and numbers in axes [1]: all must be of one kind.",
        None,
    ),
    (
        {**MEDIAN, **DAY, **UNIT},
        {"input.keep": "sum"},
        "input.keep is sum and domain has dates: a sum is a number and no date",
        {"input.keep": "mean"},
    ),
    ({**MEDIAN, **DAY, **UNIT}, {"input.keep": "count"}, "input.keep is count and domain has dates", None),
    (
        {**COUNTS, **DAY},
        {"params.measures": ["count", "sum"]},
        "params.measures has sum and domain has dates: a sum of dates is no date",
        {"params.measures": ["count", "mean"]},
    ),
    (EARTH, {"domain.ball": {"center": [0, 0], "radius": 1}}, "domain.ball is given beside domain.geo", {}),
    (
        {**MEDIAN, **DAY},
        {"domain.ball": {"center": [0], "radius": 1}},
        "domain.ball is given and domain has dates: it is for numbers.",
        {},
    ),
    (
        EARTH,
        {**HISTOGRAM, "params": {"cells": 4}},
        "domain.geography is wgs84, but histogram is not about distances between rows",
        {},
    ),
    (EARTH, {"input.columns": ["lon", "lat"]}, "input.columns is ['lon', 'lat'] and domain.geography", {}),
    (EARTH, {"input.columns": ["lat", "y"]}, "input.columns is ['lat', 'y'] and domain.geography", {}),
    (EARTH, {"input.columns": ["x", "lon"]}, "input.columns is ['x', 'lon'] and domain.geography", {}),
    (
        {**EARTH, **UNIT},
        {"input.keep": "min"},
        "input.keep is min and domain.geography is wgs84: a place has no min, so use one, last or mean.",
        {"input.keep": "mean"},
    ),
    ({}, {"domain.units": {}}, "domain.units is empty: give the unit of a column", None),
    (EARTH, {"domain.units": {"lat": "deg"}}, "domain.units is given beside domain.geography", {}),
    (changes("triangles"), {"domain.units": {"x": "m"}}, "domain.units is given, but rows of triangles", {}),
    (
        {},
        {"domain.units": {"z": "m"}},
        "domain.units has 'z': the columns are x, y.",
        {"domain.units": {"y": "m"}},
    ),
    ({**MEDIAN, **DAY}, {"domain.units": {"day": "d"}}, "domain.units has day, a column of dates", {}),
    (
        {},
        {"domain.units": {"x": "m" * 21}},
        f"domain.units.x is '{'m' * 21}': give 1 to 20 characters, with no space",
        {"domain.units": {"x": "m" * 20}},
    ),
    ({}, {"domain.units": {"x": " m"}}, "domain.units.x is ' m': give", {"domain.units": {"x": "m m"}}),
    ({}, {"domain.units": {"x": ""}}, "domain.units.x is '': give 1 to 20 characters", None),
]

PRIVACY: list[Case] = [
    (
        MEDIAN,
        {"privacy.epsilon": 9.9e-7},
        "privacy.epsilon is 9.9e-07: it must be",
        {"privacy.epsilon": 1e-6},
    ),
    (MEDIAN, {"privacy.epsilon": 100.1}, "privacy.epsilon is 100.1: it must be", {"privacy.epsilon": 100}),
    (
        MEDIAN,
        {"privacy.delta": 9e-101},
        "privacy.delta is 9e-101: it must be 0, or",
        {"privacy.delta": 1e-100},
    ),
    (MEDIAN, {"privacy.ledger": ""}, "privacy.ledger is empty: give the path of a ledger", LEDGER),
    ({**HISTOGRAM, **POLICY}, {"input.derive": {"z": "x"}}, "privacy.policy is about the values of col", {}),
    ({**HISTOGRAM, **POLICY}, {"input.join": JOIN}, "privacy.policy is about the values of columns", {}),
    *(
        (
            {**MEDIAN, **REPLACED},
            {f"input.{key}": value},
            f"input.{key} is given and privacy.neighbors is replace_one: the number of records would be pub",
            {"privacy.neighbors": "add_or_remove_one", f"input.{key}": value},
        )
        for key, value in (("where", "x > 0"), ("join", JOIN), ("derive", {"z": "1 + y"}))
    ),
    (
        {**MEDIAN, **REPLACED},
        {"input.where": "x > 0", "input.derive": {"z": "1"}},
        "input.where is given",
        {},
    ),
    *(
        (EDGES, {f"input.{key}": value}, "params.change is weight: which edges there are is public", {})
        for key, value in (("where", "w > 0"), ("join", JOIN), ("derive", {"z": "w"}))
    ),
    (
        {**changes("mst_cost"), "input.count": "n"},
        {"params.change": "weight"},
        "params.change is weight:",
        {},
    ),
    (
        {**MEDIAN, **LEDGER, "input.unit": "size"},
        {"input.derive": {"size": "y"}},
        "input.unit is size and privacy.ledger is given: a ledger hides units of a column of the files",
        {"input.derive": {"sizes": "y"}},
    ),
    (
        {**MEDIAN, **LEDGER, "input.unit": "size"},
        {"input.join": JOIN},
        "input.unit is size and privacy.led",
        {},
    ),
    (
        {**MEDIAN, **LEDGER, **UNIT},
        {"input.join": ANY_JOIN},
        "input.unit is who and privacy.ledger is given",
        {"input.join": JOIN},
    ),
    (MEDIAN, {"input.count": ""}, "input.count is empty: give the name", {"input.count": "n"}),
    (
        {**MEDIAN, "input.count": "n"},
        UNIT,
        "input.count is n and input.unit is who: the records of a row are one person each",
        {},
    ),
    (
        {**MEDIAN, "input.count": "n"},
        REPLACED,
        "input.count is n and privacy.neighbors is replace_one: the number of records would be public",
        {},
    ),
    (
        {**HISTOGRAM, "input.count": "n"},
        POLICY,
        "input.count is n and privacy.policy is given: the number of records would be public",
        {},
    ),
    (
        {**MEDIAN, **LEDGER, "input.count": "n"},
        {"input.derive": {"n": "m + 1"}},
        "input.count is n and privacy.ledger is given: a ledger hides records",
        {"input.derive": {"other": "1"}},
    ),
    (
        {**MEDIAN, **LEDGER, "input.count": "size"},
        {"input.join": JOIN},
        "input.count is size and privacy",
        {},
    ),
    (
        {**MEDIAN, "input.count": "n"},
        {"input.join": ANY_JOIN},
        "input.count is n and input.join has no columns: the count may be one of them",
        {"input.join": JOIN},
    ),
    *(
        (
            {**COUNTS, "input.count": "n", "params.failure": 0.1},
            wrong,
            f"{place}, of which input.count is made: with one record more it would change",
            right,
        )
        for place, wrong, right in (
            ("input.columns has n", {"input.columns": ["n"]}, {"input.columns": ["m"]}),
            ("input.where has n", {"input.where": "n > 1"}, {"input.where": "m > 1"}),
            ("input.derive.z has n", {"input.derive": {"z": "n"}}, {"input.derive": {"z": "m"}}),
            ("group_by.columns has n", {"group_by": {"columns": ["n"], "keys": [1]}}, {"group_by": ONE}),
            ("input.join.on has n", {"input.join": {**JOIN, "on": "n"}}, {"input.join": JOIN}),
            (
                "input.where has m",
                {"input.derive": {"n": "m + 1"}, "input.where": "m > 1"},
                {"input.derive": {"n": "m + 1"}, "input.where": "o > 1"},
            ),
            (
                "input.where has key",
                {"input.join": {**JOIN, "columns": ["n", "size"]}, "input.where": "key > 1"},
                {"input.join": {**JOIN, "columns": ["n", "size"]}, "input.where": "o > 1"},
            ),
            (
                "input.where has size",
                {"input.join": {**JOIN, "columns": ["n", "size"]}, "input.where": "size > 1"},
                None,
            ),
        )
    ),
]

GROUPS: list[Case] = [
    (COUNTS, {"group_by": {"columns": [], "keys": ["a"]}}, "group_by.columns is []: give at least", None),
    (
        COUNTS,
        {"group_by": {"columns": ["c", "c"], "keys": "private"}},
        "group_by.columns is ['c', 'c']",
        None,
    ),
    (
        COUNTS,
        {"group_by": {**PRIVATE, "truncate": {"day": "day"}}},
        "group_by.truncate has day, which is not in group_by.columns.",
        {"group_by": {**PRIVATE, "columns": ["day"], "truncate": {"day": "day"}}},
    ),
    (COUNTS, {"group_by": {**ONE, "keys": ""}}, "group_by.keys is empty: give private", {"group_by": ONE}),
    (COUNTS, {"group_by": {**ONE, "keys": []}}, "group_by.keys has no keys: give at least one.", None),
    (
        COUNTS,
        {"group_by": {**ONE, "keys": [*range(MOST_KEYS + 1)]}},
        "group_by.keys has 2,001 keys: give at most 2,000.",
        {"group_by": {**ONE, "keys": [*range(MOST_KEYS)]}},
    ),
    (
        COUNTS,
        {"group_by": {"columns": ["a", "b"], "keys": {"a": [*range(MOST_KEYS // 2)], "b": [1, 2, 3]}}},
        "group_by.keys has 3,000 combinations: there may be at most 2,000.",
        {"group_by": {"columns": ["a", "b"], "keys": {"a": [*range(MOST_KEYS // 2)], "b": [1, 2]}}},
    ),
    (COUNTS, {"group_by": {**ONE, "keys": ["a", "b", "a"]}}, 'group_by.keys has ["a"] twice', None),
    (
        COUNTS,
        {"group_by": {**ONE, "keys": ["é" * 127]}},
        "group_by.keys has a key of more than 256 bytes: ",
        {"group_by": {**ONE, "keys": ["é" * 126]}},
    ),
    (
        COUNTS,
        {"group_by": {**ONE, "keys": [["a", "b"]]}},
        "group_by.keys has ['a', 'b']: a key has one v",
        None,
    ),
    (
        COUNTS,
        {"group_by": {**ONE, "keys": {"town": ["a"]}}},
        "group_by.keys has lists for town: give one",
        None,
    ),
    (COUNTS, {"group_by": {**ONE, "keys": [0.5]}}, "group_by.keys has 0.5: the values of a key are", None),
    (
        COUNTS,
        {"group_by": {**ONE, "columns": ["count_error"]}},
        "group_by.columns has count_error, which is the name of another column of the table",
        {"group_by": {**ONE, "columns": ["sum_error"]}},
    ),
    (
        {**HISTOGRAM, "params": {"cells": 4}},
        {"group_by": {**ONE, "columns": ["cell_0"]}},
        "group_by.columns has cell_0, which is the name of another column of the table",
        {"group_by": {**ONE, "columns": ["cell"]}},
    ),
    (
        {**COUNTS, "group_by": ONE},
        UNIT,
        "input.unit is who and group_by is given: give contributions, such as {groups: 4, rows: 2}, since",
        BY_UNIT,
    ),
    (
        COUNTS,
        {"contributions": {}},
        "contributions is given, but there is no input.unit, so each row is",
        UNIT,
    ),
    (
        {**COUNTS, **BY_UNIT, "group_by": ONE},
        {"input.keep": "one"},
        "input.keep is one and contributions is given: with contributions rows remain records",
        {},
    ),
    (
        {**COUNTS, **UNIT},
        {"contributions": {"groups": 2}},
        "contributions.groups is 2, but there is no group_by",
        {"contributions": {"groups": 1, "rows": 2}},
    ),
    (
        {**COUNTS, **UNIT},
        {"contributions": {"guess": {"groups": 1.5}}},
        "contributions.guess.groups is 1.5, but there is no group_by",
        {"contributions": {"guess": {"groups": 1.0}}},
    ),
    (
        COUNTS,
        {"params.parts": 2},
        "params.parts is 2: without group_by the answer is one row.",
        {"params.parts": 2, "group_by": PRIVATE},
    ),
    (
        {**COUNTS, **BY_UNIT},
        {"group_by": {**PRIVATE, "columns": ["who"]}},
        "group_by.columns has 'who', which is input.unit: each group would have one unit",
        {"group_by": {**ONE, "columns": ["who"]}},
    ),
    (
        {**MEDIAN, **UNIT},
        {"contributions": {}},
        "contributions is given, but median without group_by takes",
        {},
    ),
    (
        {**FUNCTION, **UNIT},
        {"contributions": {}},
        "contributions is given, but sample_and_aggregate with",
        {},
    ),
    (
        MEDIAN,
        {"group_by": PRIVATE},
        "group_by.keys is private: median answers for public keys alone",
        {"group_by": ONE},
    ),
    (
        {**HISTOGRAM, **POLICY, "params": {"cells": 4}},
        {"group_by": ONE},
        "privacy.policy and group_by are given: a policy is about values of one row, but a row may change",
        {},
    ),
    (
        {**HISTOGRAM, "params": {"cells": 4, "method": "sparse", "parts": 2}},
        {"group_by": ONE},
        "params.parts is 2 and group_by is given: the tables of all groups are one file",
        {},
    ),
    (
        {**MEDIAN, **UNIT, "group_by": ONE, "input.checks": 0.0},
        {"contributions": {"rows": 2}},
        "contributions.rows is 2: median takes one row of a unit in each group, so it must be 1",
        {"contributions": {"rows": 1}},
    ),
    (
        {**FUNCTION, **UNIT, "group_by": ONE},
        {"contributions": {"rows": 2}},
        "contributions.rows is 2: sample_and_aggregate takes all rows of a unit in each group that it keeps",
        {"contributions": {"rows": 1}},
    ),
    (
        {**MEDIAN, **UNIT, "group_by": ONE, "input.checks": 0.0},
        {"contributions": {"clamp": "unit"}},
        "contributions.clamp is unit: it is for sums, which median has not.",
        {"contributions": {"clamp": "row"}},
    ),
    (
        {**MEDIAN, **UNIT, "group_by": ONE, "input.checks": 0.0},
        {"contributions": {"groups": 21}},
        "contributions.groups is 21: for median it may be at most 20",
        {"contributions": {"groups": 20}},
    ),
    (
        {**MEDIAN, **BY_UNIT, "group_by": ONE},
        {"input.checks": 0.01},
        "input.checks is 0.01, and input.unit and group_by are given: rows out of bounds of a unit",
        {"input.checks": ...},
    ),
    (
        MEDIAN,
        {"group_by": {**ONE, "keys": [*range(1001)]}},
        "group_by.keys has 1,001 keys: median answers for at most 1,000 groups",
        {"group_by": {**ONE, "keys": [*range(1000)]}},
    ),
]

FUNCTIONS: list[Case] = [
    (
        FUNCTION,
        code("def f(rows): pass", "a.b:f"),
        "params.code is given, but params.function is a.b:f: a job has the code of a function FILE.py:name",
        code("def f(rows): pass", "f.py:f"),
    ),
    (FUNCTION, code(None, "f.py:f"), "params.code is missing, but params.function is f.py:f", None),
    *(
        (
            FUNCTION,
            {"params.function": name},
            f"params.function is {name}: it must be FILE.py:name, or module:name",
            {"params.function": "a.b:c"},
        )
        for name in ("a.b", "a:b.c", "a-b:c", "1a:c", ":c", "a:", "a..b:c", "a.b:c d")
    ),
    *(
        (
            {**FUNCTION, "params.outputs": {"lower": [0, 0], "upper": [1, 1], "step": 0.5}},
            {"params.default": wrong},
            "params.default is [",
            {"params.default": [0.5, 7.0]},
        )
        for wrong in ([0.5], [0.5, 0.5, 0.5], [0.5, float("inf")], [float("nan"), 0.5])
    ),
    (
        FUNCTION,
        {"params.outputs": {"lower": [0], "upper": [2**31 + 1], "step": 1}},
        "params.outputs.step is 1, which makes more than 2^31 steps of axis 0",
        {"params.outputs": {"lower": [0], "upper": [2**31 - 1], "step": 1}},
    ),
    (FUNCTION, {"params.time_limit": 0}, "params.time_limit is 0.0: it must be", {"params.time_limit": 1e-3}),
    (
        FUNCTION,
        {"params.time_limit": 86_401},
        "params.time_limit is 86401.0: it must be above 0 and at most 86,400.",
        {"params.time_limit": 86_400},
    ),
    (
        FUNCTION,
        {"params.memory_limit": 0},
        "params.memory_limit is 0: it must be",
        {"params.memory_limit": 1},
    ),
    (
        FUNCTION,
        {"params.memory_limit": 1_000_001},
        "params.memory_limit is 1000001: it must be from 1 to 1,000,000 megabytes.",
        {"params.memory_limit": 1_000_000},
    ),
    (
        {**FUNCTION, **REPLACED},
        {"privacy.policy": {"distance": 1}},
        "privacy.policy is about points of a domain, but a function receives rows as they are",
        {},
    ),
    *(
        (FUNCTION, {"input.bounds": wrong}, f"input.bounds has {says}", {"input.bounds": [[0, 1], [0, 2]]})
        for wrong, says in (
            ([[0, 1]], "1 entries for 2 columns: give one per column."),
            ([[0, 1], [0, 1], [0, 1]], "3 entries for 2 columns: give one per column."),
            ([[0, 1], [1, 1]], "[1.0, 1.0]: give two finite numbers, the lower one first."),
            ([[0, float("inf")], [0, 1]], "[0.0, inf]: give two finite numbers, the lower one first."),
        )
    ),
    (
        {**FUNCTION, **LEDGER, "input.unit": "size"},
        {"input.join": JOIN},
        "input.unit is size and privacy.ledger is given",
        {},
    ),
]


def of_a(**more: Any) -> dict[str, Any]:
    return {"questions": {"a": {**QUESTION, **more}}}


QUESTIONS: list[Case] = [
    (SEVERAL, {"task": "median"}, "task is not a key of a job with questions; each question has its own", {}),
    (SEVERAL, {"questions": {}}, "questions is {}: it must be a mapping of 1 to 100 questions", None),
    (
        SEVERAL,
        {"questions": {f"q{i}": QUESTION for i in range(101)}},
        "questions is ",
        {"questions": {f"q{i}": QUESTION for i in range(100)}},
    ),
    (SEVERAL, {"input": ["/rows"]}, "input is ['/rows']: it must be a mapping (key: value).", None),
    *(
        (
            SEVERAL,
            {f"input.{key}": value},
            f"input.{key} is given beside questions: give it in each question, as questions.NAME.{key}.",
            {},
        )
        for key, value in (("columns", ["x"]), ("keep", "one"), ("order", "t"), ("checks", 0.0))
    ),
    (SEVERAL, {"questions": {"a": [1]}}, "questions.a is [1]: it must be a mapping (key: value).", None),
    (
        SEVERAL,
        of_a(task="medain"),
        "questions.a.task is 'medain' (did you mean median?): the tasks are",
        None,
    ),
    (
        SEVERAL,
        of_a(task="sample_and_aggregate"),
        "questions.a.task is sample_and_aggregate, which needs a job of its own",
        None,
    ),
    (
        SEVERAL,
        of_a(shares=1),
        "questions.a.shares is not a known key (did you mean questions.a.share?)",
        None,
    ),
    (
        SEVERAL,
        {"questions": {"a": {"task": "median"}}},
        "questions.a.columns is missing: questions.a nee",
        None,
    ),
    *(
        (
            SEVERAL,
            {
                "privacy.neighbors": "replace_one",
                "privacy.policy": {
                    "secrets": "full",
                    "constraints": [{"lower": [0], "upper": [1], "count": 1}],
                }
                if key == "constraints"
                else {"graph": [[[0], [1]]]},
            },
            f"privacy.policy.{key} is given beside questions: it is about points of one domain",
            None,
        )
        for key in ("graph", "constraints")
    ),
    *(
        (
            SEVERAL,
            of_a(share=wrong),
            f"questions.a.share is {wrong}: it must be a number from 0.000001",
            right,
        )
        for wrong, right in (
            (0, of_a(share=1e-6)),
            (9e-7, None),
            (1_000_001, of_a(share=10**6)),
            (True, of_a(share=1)),
        )
    ),
    (
        {**SEVERAL, "input": {"path": "/rows", "unit": "who"}},
        {
            "questions": {
                "a": {**QUESTION, "keep": "last", "order": "t"},
                "b": {**QUESTION, "keep": "last", "order": "s"},
            }
        },
        "questions.b.order is s, but questions.a.order is t: the questions of a job must have one order.",
        {
            "questions": {
                "a": {**QUESTION, "keep": "last", "order": "t"},
                "b": {**QUESTION, "keep": "last", "order": "t"},
            }
        },
    ),
    (
        SEVERAL,
        {"questions": {"a/b": QUESTION}},
        "questions has the name 'a/b': it must be 1 to 64 letters",
        None,
    ),
    (
        SEVERAL,
        {"questions": {"a" * 65: QUESTION}},
        "questions has the name 'aaa",
        {"questions": {"a" * 64: QUESTION}},
    ),
    (
        SEVERAL,
        {"questions": {"Result": QUESTION}},
        "questions.Result has the name of a table of a release",
        None,
    ),
    (
        SEVERAL,
        {"questions": {"night": QUESTION, "Night": QUESTION}},
        "questions has night and Night: their files would be one where case does not count",
        None,
    ),
]
IDS: list[Case] = [
    ({}, {"output": "/out/{date}"}, "output is /out/{date}: the only placeholder is {run_id}.", None),
    (
        {},
        {"input.path": "/a/{run_id}"},
        "input.path is /a/{run_id}: it names the run id",
        {"run_id": "monday"},
    ),
    (
        {"input.path": "/a/{date}"},
        {"run_id": "monday"},
        "input.path is /a/{date}, whose {date} is the date at the end of run_id, but run_id is monday",
        {"run_id": "monday-2026-11-16"},
    ),
    ({}, {"task": ...}, "task is missing: the tasks are", None),
    ({}, {"task": "medain"}, "task is 'medain' (did you mean median?): the tasks are", None),
    ({}, {"params": {"target": {5}}}, "The job contains a value that is not text, a number, a list", None),
]
CASES = [*INPUTS, *DOMAINS, *PRIVACY, *GROUPS, *FUNCTIONS, *QUESTIONS, *IDS]


@pytest.fixture(autouse=True)
def _few_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.job.groups.MOST_KEYS", MOST_KEYS)


def job_of(base: dict[str, Any], *changed: dict[str, Any]) -> dict[str, Any]:
    if base.get("questions") is None:
        return changed_job({key: value for each in (base, *changed) for key, value in each.items()})
    job = copy.deepcopy(base)
    for key, value in (pair for each in changed for pair in each.items()):
        job = {**job, key: value} if "." not in key else set_key(job, key, value)
    return job


def sentences(job: dict[str, Any]) -> tuple[str, ...]:
    """Return what is said against a job; nothing where it may be."""
    try:
        check_raw(job)
    except JobError as error:
        return tuple(map(str, error.args))
    return ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[2][:60])
def test_a_wrong_job_is_told_why_and_the_nearest_right_one_is_none(case: Case) -> None:
    base, wrong, says, right = case
    said = sentences(job_of(base, wrong))
    assert len(said) == 1 and said[0].startswith(says), said
    assert right is None or not sentences(job_of(base, right))


def patterns(file: Path) -> dict[str, re.Pattern[str]]:
    """Return what the errors say that a file raises, by their place, with any text for what they quote."""
    found = {}
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            text = node.exc.args[0]
            parts = text.values if isinstance(text, ast.JoinedStr) else [text]
            plain = [part.value if isinstance(part, ast.Constant) else None for part in parts]
            if any(each is not None for each in plain):
                said = "".join(".*" if each is None else re.escape(str(each)) for each in plain)
                found[f"{file.name}:{node.lineno}"] = re.compile(re.sub(r"(\\\.)+$", "", said), re.S)
    return found


ELSEWHERE = ("text", "function_file", "policy", "schema")
"""Files whose errors are about a text, a file or a policy, which have tests of their own."""


def test_every_sentence_is_said() -> None:
    """A new one needs a case above."""
    files = [file for file in (ROOT / "pipelines" / "job").glob("*.py") if file.stem not in ELSEWHERE]
    known = {place: each for file in files for place, each in patterns(file).items()}
    said = {sentence for base, wrong, *_ in CASES for sentence in sentences(job_of(base, wrong))}
    never = [place for place, each in known.items() if not any(each.search(text) for text in said)]
    assert len(known) > 70 and never == []
