"""Jobs that work, spoiled at random: in their values, their keys and their text."""

import copy
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml

from pipelines.job.params import params_model
from pipelines.ledger.ledger import Ledger, create_ledger
from pipelines.tasks import TASKS
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import changes
from transforms.unit_records import Keep

NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 100, 1000, 10**6, 0.5, -0.5, 1.5, 1e-3, 1e-9, 1e-100, 5e-324, 1e15, 1e19, 1e-17),
    *(2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 10**400),
    *(1.7e308, -1.7e308, math.nan, math.inf, -math.inf),
)
USUAL = (1, 2, 3, 5, 10, 50, 0.01, 0.1, 0.25, 0.5, 0.9, [0.5], [4, 4], [8], [[0.25, 0.5]], True, None, "0.5")
CONTROLS = ("\x1b[31m", "\x9b", "\x07", "a\nb", "\u202eb", "\x00", "\ufeff", "\u2028")
TEXTS = (
    *("", " ", "a", "1", "0.5", "true", "null", "1e5", "{run_id}", "{x}", "a b", "..", "/", "~", "-", "--"),
    *("auto", "full", "one", "mean", "replace_one", "literal", "*", "%s", "gs://", "gs://a/b", "s3://a/b"),
    *("x" * 600, "x" * 20_000, "é", "數", "\u200d", "[red]a[/]", "\ud800", *CONTROLS),
)
LISTS = ([], [[]], [{}], [None], [math.nan], [0] * 300, ["x"] * 300)
OTHERS = (None, True, False, {}, {"a": 1}, {"": 0}, *LISTS)
BUDGETS = (
    *((1e-6, 1e-9), (1e-6, 0), (100, 0), (100, 1 - 1e-16), (1e-6, 1 - 1e-16), (1, 1e-100), (1, 0.5)),
    *((1, 0), (20, 1e-6), (1e-3, 1e-6), (0.5, 1e-30), (1e-7, 1e-6), (101, 1e-6), (1, 1), (1, 5e-324)),
)
HALF = {"lower": [0, 0], "upper": [0.5, 1], "count": 3}
POLICIES: tuple[Any, ...] = (
    *({"secrets": "full"}, {"secrets": "attribute"}, {"distance": 0.25}, {"distance": 0.3}),
    *({"distance": 1e308}, {"partition": [0.5, 0.5]}, {"partition": [0.25]}, {"partition": []}),
    *({"graph": [[[0, 0], [0.25, 0.25]]]}, {"graph": [[[0], [1]]]}, {"graph": []}, {}, None),
    *({"secrets": "full", "distance": 1}, {"secrets": "full", "constraints": [HALF]}),
    {"secrets": "full", "constraints": [HALF | {"lower": [-1e308] * 2, "upper": [1e308] * 2}]},
    {"secrets": "attribute", "semantics": "closed", "constraints": [HALF | {"count": -1}]},
    {"distance": 0.25, "constraints": [{"lower": [0], "upper": [0.5], "count": 2**70}]},
)
RUN_IDS = ("monday", "2026-11-20", 7, 1.5, "", ".", "a/b", "x" * 128, "x" * 129, "é", "a\n", True, None)
DOMAINS = (
    *((0, 1, 2.0**-31), (0, 1, 2.0**-62), (0, 1, 5e-324), (0, 1, 1), (0, 1, 1e300), (0, 3, 2), (5, 5, 1)),
    *((0, 2**62, 1), (0, 2**62 + 1, 1), (-(2**63), 2**63, 2), (0, 2**64 - 1, 4), (2**63, 2**63 + 10, 1)),
    *((1, 0, 0.1), (0, 1e-300, 1e-303), (1e15, 1e15 + 1, 2.0**-3), (-1.7e308, 1.7e308, 1e300)),
    *((0, math.inf, 1), (0, 1, 0), (0, 1, -1), (0, 10, 1), (-5.5, 7.25, 0.125), (0, 1, 0.3)),
)
TAGS = ("!!binary", "!!set", "!!python/object:a.b", "!foo", "!", "!!float", "!!str")
SCALARS = ("1e999", "-.inf", ".nan", "0x10", "0o7", "1_000", "12:30", "yes", "2026-11-20", "~", "'")
DEPTHS = (19, 25, 400, 3000)


class Generator:
    """Jobs from one seed.

    Args:
        bench: a job that works, and its input.
        seed: of everything that is chosen.
    """

    def __init__(self, bench: Bench, seed: int) -> None:
        self._bench = bench
        self._random = random.Random(seed)
        folder = bench.folder
        (folder / "file").write_text("mine")
        (folder / "list.json").write_text("[" * 5000)
        create_ledger(str(folder / "ledger.json"), Ledger(epsilon=1000.0, delta=0.1))
        create_ledger(str(folder / "spent.json"), Ledger(epsilon=1e-5, delta=1e-12, neighbors="replace_one"))
        places = ("file", "file/below", "rows", "rows/part.parquet", "new/a", "rows/*.parquet", "rows/[")
        self._paths = [str(folder / name) for name in places]
        self._paths += ["new", "/dev/null", "/dev/null/a", "/proc/a", "x" * 300, ""]
        books = ("ledger.json", "spent.json", "list.json", "file", "missing.json", "rows")
        self._ledgers = [*(str(folder / name) for name in books), "", "/", "/dev/null"]

    def text(self) -> str:
        """Return the text of a job."""
        pick = self._random
        self._task = pick.choice(list(TASKS))
        job = self._bench.changed(changes(self._task))
        kinds = (self._at_random, self._by_name, None)
        spoils = pick.choices(kinds, (3, 8, 1), k=pick.choice((1, 1, 1, 2, 2, 3)))
        for spoil in spoils:
            if spoil is not None:
                spoil(job)
        as_yaml = pick.random() < 0.8
        text = yaml.safe_dump(job, allow_unicode=True, width=10**6) if as_yaml else json.dumps(job)
        return self._spoil_text(text) if None in spoils else text

    def _value(self) -> Any:
        pick = self._random
        kind = pick.choice((NUMBERS, NUMBERS, TEXTS, OTHERS, "list", "deep"))
        if kind == "list":
            values = NUMBERS if pick.random() < 0.7 else TEXTS
            return [pick.choice(values) for _ in range(pick.randint(1, 4))]
        if kind == "deep":
            deep: Any = 1
            for _ in range(pick.choice(DEPTHS[:2])):
                deep = [deep] if pick.random() < 0.5 else {"a": deep}
            return deep
        return copy.deepcopy(pick.choice(kind))

    def _at_random(self, job: dict[str, Any]) -> None:
        """Change a value or a key anywhere."""
        pick = self._random
        part, key = pick.choice(list(_places(job)))
        change = pick.randrange(6)
        if change == 0:
            del part[key]
        elif change == 1 and isinstance(key, str):
            at = pick.randrange(len(key) + 1)
            part[pick.choice((key[:at] + key[at + 1 :], key.upper(), f"{key}s"))] = part.pop(key)
        elif change == 2 and isinstance(part, dict):
            part[pick.choice((*TEXTS, 1, None, True, "int", "float", "tuple[a]"))] = self._value()
        elif change == 3 and isinstance(part[key], int | float):
            part[key] *= pick.choice((-1, 1e-6, 1e-3, 0.9, 1.1, 10, 1e3, 1e6, 1e12))
        elif change == 4 and isinstance(part[key], list):
            part[key] = part[key] * pick.choice((0, 2, 3, 40, 3000))
        else:
            part[key] = self._value()

    def _by_name(self, job: dict[str, Any]) -> None:
        """Give something that a job may have."""
        pick = self._random
        params, privacy, rows = (job.get(name) for name in ("params", "privacy", "input"))
        if not all(isinstance(part, dict) for part in (params, privacy, rows)):
            return
        kind = pick.choice(("params",) * 4 + ("budget", "domain", "domain", "policy", "task", "columns"))
        if kind == "params":
            task = TASKS[self._task]
            fields = params_model(task.params, task.core.choice, task.core.choices).model_fields
            name = pick.choice(list(fields))
            usual = _literals(fields[name].annotation) or (USUAL if pick.random() < 0.6 else ())
            params[name] = pick.choice(usual) if usual else self._value()
        elif kind == "budget":
            privacy["epsilon"], privacy["delta"] = pick.choice(BUDGETS)
        elif kind == "domain":
            self._domain(job)
        elif kind == "policy":
            privacy["neighbors"] = pick.choice(("replace_one", "replace_one", "add_or_remove_one"))
            privacy["policy"] = pick.choice(POLICIES)
        elif kind == "task":
            job["task"] = pick.choice(list(TASKS))
        else:
            choices: Any = (
                (rows, "columns", [pick.choices(("x", "y", "who", *TEXTS), k=pick.randint(1, 3))]),
                (privacy, "ledger", self._ledgers),
                (job, "output", self._paths),
                (job, "run_id", RUN_IDS),
                (rows, "unit", ("x", "who", "nobody", *TEXTS)),
                (rows, "keep", (*get_args(Keep), *TEXTS)),
                (rows, "order", ("x", "who", "nobody", *TEXTS)),
                (rows, "path", self._paths),
            )
            part, field, values = pick.choice(choices)
            part[field] = pick.choice(values)

    def _domain(self, job: dict[str, Any]) -> None:
        pick = self._random
        lower, upper, step = pick.choice(DOMAINS)
        columns = job["input"].get("columns")
        axes = pick.choice((len(columns) if isinstance(columns, list) else 1, 1, 2, 5))
        grid = {"lower": [lower] * axes, "upper": [upper] * axes, "step": step}
        if self._task == "sample_and_aggregate":
            job["params"]["outputs"] = grid
            return
        job["domain"] = grid
        job["input"]["columns"] = [f"c{axis}" for axis in range(axes)]
        if pick.random() < 0.3:
            center, radius = (pick.choice((0.5, *NUMBERS)) for _ in range(2))
            grid["ball"] = {"center": [center] * axes, "radius": radius}

    def _spoil_text(self, text: str) -> str:
        pick = self._random
        lines = text.split("\n")
        at = pick.randrange(len(lines))
        line, depth = lines[at], pick.choice(DEPTHS)
        key, colon, value = line.partition(":")
        lines[at] = pick.choice(
            (
                f"{key}{colon} {pick.choice(TAGS)}{value}",
                f"{key}{colon} &a{value}\nother: *a",
                f"{key}{colon} *a",
                f"{line}\n{line}",
                f"{key}{colon} {'[' * depth}{']' * depth}",
                f"{key}{colon} {'{a: ' * depth}",
                f"{line}\n<<: {{task: a}}",
                f"---\n{line}",
                f"{line}{pick.choice(CONTROLS)}",
                f"{key}{colon} 1{'0' * pick.choice((30, 400, 5000))}",
                f"{key}{colon} {pick.choice(SCALARS)}",
                line[: pick.randrange(len(line) + 1)],
                f"\t{line}",
                f"{line} # {'x' * 500}",
            )
        )
        return "\n".join(lines)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Give every mapping or list below `value`, with each of its keys or positions."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value))[:20]:
        if isinstance(key, str | int):
            yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _literals(kind: Any) -> list[Any]:
    """Return the texts that a field of such a type takes, where they are known."""
    parts = get_args(kind)
    return [text for part in parts for text in ([part] if isinstance(part, str) else _literals(part))]


def contents(folder: Path) -> dict[str, bytes]:
    """Return everything below a folder."""
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}
