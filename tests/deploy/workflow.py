"""Run a workflow of Google Cloud in memory: the part of its language that deploy/ uses.

Its expressions are Python's as well: +, comparisons, and, or, keys of maps as attributes, and the functions
below. Times are seconds since 1970; `sys.sleep` moves the clock on.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

Call = Callable[[dict[str, Any]], Any]


class Raised(Exception):
    """An error of the workflow, with the value that was raised."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


class _Map(dict):  # type: ignore[type-arg]
    """A map whose keys are attributes too."""

    __getattr__ = dict.__getitem__


class Workflow:
    """A run of `main`.

    Args:
        source: the parsed workflow.
        calls: what stands for each connector, by its name; they may raise `Raised`.
        now: when it starts.
    """

    def __init__(self, source: Mapping[str, Any], calls: Mapping[str, Call], now: datetime) -> None:
        self._steps = source["main"]["steps"]
        (self._parameter,) = source["main"]["params"]
        self._calls = {**calls, "sys.sleep": self._sleep}
        self.clock = now.timestamp()
        self._names: dict[str, Any] = {
            "text": SimpleNamespace(substring=lambda text, start, end: text[start:end]),
            "time": SimpleNamespace(format=lambda at: datetime.fromtimestamp(at, UTC).isoformat()),
            "sys": SimpleNamespace(now=lambda: self.clock, get_env=lambda name: f"the-{name.lower()}"),
            "map": SimpleNamespace(get=lambda values, key: values.get(key)),
        }

    def run(self, argument: Mapping[str, Any]) -> Any:
        """Return what the workflow returns; raise `Raised` where it does."""
        self._names[self._parameter] = _Map(argument)
        return self._block(self._steps)[1]

    def _block(self, steps: Sequence[Mapping[str, Any]]) -> tuple[str, Any]:
        """Run steps; return how they ended (`end`, `return` or `next`) and with what."""
        names = [next(iter(step)) for step in steps]
        at = 0
        while at < len(steps):
            (step,) = steps[at].values()
            how, value = self._step(step)
            if how == "end":
                at += 1
            elif how == "next" and value in names:
                at = names.index(value)
            else:
                return how, value
        return "end", None

    def _step(self, step: Mapping[str, Any]) -> tuple[str, Any]:
        if "try" in step:
            try:
                return self._step(step["try"])
            except Raised as error:
                self._names[step["except"]["as"]] = error.value
                return self._block(step["except"]["steps"])
        for change in step.get("assign", []):
            ((name, value),) = change.items()
            self._names[name] = self._value(value)
        if "call" in step:
            result = self._calls[step["call"]](self._value(step["args"]))
            self._names[step.get("result", "_")] = _maps(result)
        for case in step.get("switch", []):
            if self._value(case["condition"]):
                return self._jump(case) or ("end", None)
        return self._jump(step) or ("end", None)

    def _jump(self, step: Mapping[str, Any]) -> tuple[str, Any] | None:
        if "raise" in step:
            raise Raised(self._value(step["raise"]))
        if "return" in step:
            return "return", self._value(step["return"])
        return ("next", step["next"]) if "next" in step else None

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._value(part) for key, part in value.items()}
        found = re.fullmatch(r"\$\{(.*)\}", value) if isinstance(value, str) else None
        return eval(found[1], {"__builtins__": {}}, self._names) if found else value

    def _sleep(self, args: dict[str, Any]) -> None:
        self.clock += args["seconds"]


def _maps(value: Any) -> Any:
    return _Map({key: _maps(part) for key, part in value.items()}) if isinstance(value, dict) else value
