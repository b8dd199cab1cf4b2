"""Plan a job from its public parameters: its rounds, its noise and its promises."""

import math
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from core.budget import Budget, spend
from core.draws import LARGEST_SCALE, charged
from core.errors import InvalidValue
from core.input_checks import with_checks
from core.plan import Chosen, Plan
from core.privacy_filter import at_most
from pipelines.answers.text import confidence, number
from pipelines.dates import as_text
from pipelines.errors import JobError, place_of
from pipelines.job.job import Job
from pipelines.job.prepared import described
from pipelines.job.privacy import LEAST_DELTA, LEAST_EPSILON
from pipelines.notes import hidden, notes, records_of
from pipelines.quantities import with_units
from pipelines.tasks import TASKS
from pipelines.tried_bounds import describe_bounds, show_bounds


def make_plan(job: Job, salt: bytes) -> Plan:
    """Plan `job`.

    Args:
        job: the checked job.
        salt: 16 secret bytes that choose samples.

    Raises:
        JobError: the task doesn't support what the job asks for.
    """
    budget = job.privacy.budget()
    checks = budget.epsilon * job.checks
    rest = replace(budget, epsilon=budget.epsilon - checks)
    try:
        plan = TASKS[job.task].core.plan(job.grid, job.task_params, rest, job.neighbors, salt)
    except InvalidValue as error:
        raise JobError(error.sentence(_place(job, error.field))) from None
    check_spend(plan, rest)
    if not job.checks:
        return plan
    if 2 * job.grid.columns >= checks * LARGEST_SCALE:
        raise JobError(
            f"input.checks is {job.checks}: noise for such a part of epsilon hides everything; give 0, which "
            "turns the checks off, or a larger part."
        )
    twice = job.unit is not None or job.neighbors.name == "replace_one"
    return with_checks(plan, checks, job.grid.columns, twice, budget)


def _place(job: Job, field: str) -> str:
    """Return where a value that core names stands in a job file."""
    own = {each.name for each in fields(TASKS[job.task].params)}
    return f"params.{field}" if field.split(".")[0] in own else place_of(field)


def check_part(part: Budget, giver: str) -> None:
    """Check that a part of a budget is one that a job of its own may have.

    Args:
        part: the part.
        giver: what gives it, as the beginning of a sentence: `questions.a.share gives it`.

    Raises:
        JobError: it is too small.
    """
    if part.epsilon < LEAST_EPSILON or 0 < part.delta < LEAST_DELTA:
        raise JobError(
            f"{giver} epsilon {number(part.epsilon)} and delta {number(part.delta)}: epsilon must be at "
            f"least {LEAST_EPSILON}, and delta 0 or at least {LEAST_DELTA}."
        )


def check_spend(plan: Plan, budget: Budget) -> None:
    """Check that the draws of the rounds spend at most the budget.

    Raises:
        JobError: they spend more.
    """
    spent = spend(charged(plan.rounds), budget.delta).epsilon
    if not at_most(spent, budget.epsilon):
        raise JobError(
            f"privacy.epsilon is {budget.epsilon}: the planned noise would spend {spent}, so nothing was run."
        )


def describe(job: Job, plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON values with the keys of release.json."""
    job_values = job.model_dump(mode="json")
    return {
        "task": job.task,
        "run_id": job.run_id,
        "output": job.output,
        "method": plan.method,
        **describe_choice(job, plan),
        "privacy": {
            **job_values["privacy"],
            "unit": job.unit,
            **({} if job.count is None else {"count": job.count}),
            "keep": job.keep,
            "order": job.order,
            "hides": hidden(job, plan),
            "spent": plan.spend.epsilon,
            "spent_delta": plan.spend.delta,
            "accountant": plan.spend.accountant,
        },
        **described(job.input),
        "domain": {"columns": list(job.input.columns), **job_values["domain"]},
        **describe_groups(job),
        "params": job_values["params"],
        **describe_noise(job, plan),
        "alternatives": {name: _written(job, values) for name, values in plan.alternatives.items()},
        **describe_bounds(job, plan, lambda other: make_plan(other, bytes(16))),
        "notes": notes(job, plan),
    }


def describe_choice(job: Job, plan: Plan) -> dict[str, Any]:
    """Return as JSON values why a plan has its method, and the figures by which methods were compared.

    `comparison` is None where there was nothing to compare.
    """
    chosen = plan.chosen
    if chosen is None or len(chosen.errors) == 1:
        why = f"It is the only method for {job.neighbors.name} at these parameters."
        return {"why": why, "comparison": None}
    compared_by = records_of(job).read(chosen.compared_by)
    why = f"Methods are compared by {compared_by}. {_smallest(chosen)}"
    if chosen.asked is not None:
        best = "auto would take it, too" if chosen.best == plan.method else f"auto would take {chosen.best}"
        why = f"params.{chosen.asked} asks for it; {best}. {why}"
    return {"why": why, "comparison": {"by": compared_by, "errors": dict(chosen.errors)}}


def _smallest(chosen: Chosen) -> str:
    """Return a sentence that gives the figure of every method, the smallest one first."""
    others = [f"{name} has {figure(error)}" for name, error in chosen.errors.items() if name != chosen.best]
    smallest = chosen.errors[chosen.best]
    if math.isinf(smallest):
        return f"No method promises such a figure here, so auto takes the first one, {chosen.best}."
    listed = ", ".join(others[:-1]) + (" and " if others[:-1] else "") + others[-1]
    return f"{chosen.best} has the smallest, {figure(smallest)}; {listed}."


def figure(error: float | None) -> str:
    """Return the figure by which methods are compared as text. JSON has null for infinity."""
    return "none" if error is None or math.isinf(error) else number(error)


def describe_noise(job: Job, plan: Plan) -> dict[str, Any]:
    """Return rounds, mechanisms and accuracy of a plan as JSON values, as plans and releases have them.

    The share of a round is its part of the total cost.
    """
    shares, records = _shares(plan, job.privacy.budget()), records_of(job)
    return {
        "rounds": [
            {"round": round_.name, "purpose": records.read(round_.purpose), "share": shares[round_.name]}
            for round_ in plan.rounds
        ],
        "mechanisms": [asdict(mechanism) for mechanism in plan.mechanisms],
        "accuracy": {
            "failure": plan.failure,
            "promises": _written(job, plan.promises),
            "smallest_target": plan.smallest_target,
        },
    }


def _written(job: Job, promises: Mapping[str, Any]) -> dict[str, Any]:
    """Return promises of a method with distances as durations, where the domain is of dates."""
    return dict(as_text(TASKS[job.task].promises, promises, job.grid.times))


def describe_groups(job: Job) -> dict[str, Any]:
    """Return groups and contributions of a job as JSON values, without the public keys."""
    keys, bounds = job.group_keys, job.bounds
    contributions: dict[str, Any] = {} if bounds is None else {"contributions": asdict(bounds)}
    if bounds is not None and TASKS[job.task].subsamples:  # a function gets all rows of a unit in a group
        contributions = {"contributions": {"groups": bounds.groups}}
    if keys is None:
        return contributions
    public = None if keys.labels is None else len(keys.labels)
    truncate = {
        name: unit for name, unit in zip(keys.columns, keys.truncate, strict=True) if unit is not None
    }
    groups = {"columns": list(keys.columns), "public_keys": public, "truncate": truncate}
    return {"group_by": groups, **contributions}


def _shares(plan: Plan, budget: Budget) -> dict[str, float]:
    """Return each round's part of the total cost, where a draw costs its epsilon without composition."""
    alone: dict[tuple[float, float, float], float] = {}  # many draws are equal, and accounting is slow
    costs = {round_.name: 0.0 for round_ in plan.rounds}
    for draw in plan.mechanisms:
        key = (draw.epsilon, draw.delta, draw.rho)
        if key not in alone:
            alone[key] = draw.epsilon if draw.rho == 0 else spend([draw], budget.delta).epsilon
        costs[draw.round] += alone[key]
    total = sum(costs.values()) or 1.0  # under some policies all draws are free
    return {name: cost / total for name, cost in costs.items()}


def show(plan: Mapping[str, Any], console: Console) -> None:
    """Print the described plan."""
    privacy, accuracy = plan["privacy"], plan["accuracy"]
    task, method = Text(plan["task"], "bold"), Text(plan["method"], "bold")
    why = [] if plan["comparison"] else [plan["why"]]
    console.print(task, "by the method", Text.assemble(method, "."), *why)
    console.print(
        f"Budget: epsilon {number(privacy['epsilon'])}, delta {number(privacy['delta'])}; the noise below "
        f"spends epsilon {number(privacy['spent'], 6)}, delta {number(privacy['spent_delta'])} "
        f"({privacy['accountant']})."
    )
    if "ledger" in plan:
        console.print(plan["ledger"]["says"])
    console.print()
    shares = {entry["round"]: entry["share"] for entry in plan["rounds"]}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("round", "share", "draws", "noise scale", "sensitivity", "costs"):
        numeric = header not in ("round", "draws", "costs")
        table.add_column(header, justify="right" if numeric else "left")
    for draw, times in grouped(plan["mechanisms"]):
        share = shares.pop(draw["round"], None)
        table.add_row(
            draw["round"] if share is not None else "",
            f"{100 * share:.0f}%" if share is not None else "",
            draw["mechanism"] + (f"  × {times}" if times > 1 else ""),
            number(draw["scale"]),
            number(draw["sensitivity"]),
            cost(draw),
        )
    console.print(table)
    together = _together(plan)
    if together:
        console.print(together)
    for entry in plan["rounds"]:
        console.print(f"  • {entry['round']}: {entry['purpose']}")
    answers = TASKS[plan["task"]].answers
    promises, unpromised = answers.promises(plan), answers.unpromised(plan)
    if promises:
        console.print(Text("Promised", "bold") + f", with probability {confidence(plan)} or more:")
    for sentence in promises:
        console.print(f"  • {sentence}")
    if unpromised:
        console.print(unpromised)
    if plan["comparison"]:
        console.print("Methods", style="bold")
        console.print(plan["why"])
        console.print(_methods(plan))
    show_bounds(plan, console)
    if accuracy["smallest_target"] and not unpromised:  # which names that target, too
        console.print(
            f"From a target of {accuracy['smallest_target']:,} on, at least half of the target is promised."
        )
    console.print("Notes", style="bold")
    for note in plan["notes"]:
        console.print(f"  • {note}")
    if "needs" in plan:
        console.print("Needs", style="bold")
        console.print(plan["needs"]["says"])
    console.print(f"Release: {plan['output']}", soft_wrap=True)


def _together(plan: Mapping[str, Any]) -> str:
    """Return why the costs of the draws are no sum that equals what is spent; nothing where they are."""
    draws, privacy = plan["mechanisms"], plan["privacy"]
    if any(draw["rho"] for draw in draws):
        return (
            "Costs in ρ (zCDP, Gaussian noise) are no epsilons that add up: all draws are composed at once."
        )
    alone = sum(draw["epsilon"] for draw in draws)
    if alone <= 1.0001 * privacy["spent"]:
        return ""
    return (
        f"Each cost is that of a draw by itself, and these add up to epsilon {number(alone)}. Composed at "
        f"once, all draws spend {number(privacy['spent'])} ({privacy['accountant']}), because it is unlikely "
        "that many of them reveal much."
    )


_COUNTED_IN = {"sum_error": " (× largest value)", "mean_error": " (× half range / count)"}
"""What a promise in the table of methods is counted in, where that is neither records nor data units."""


def _methods(plan: Mapping[str, Any]) -> Table:
    """Return a table of the figures and promises of all methods, the chosen one first."""
    chosen = {**plan["accuracy"]["promises"], "smallest_target": plan["accuracy"]["smallest_target"]}
    methods = {plan["method"]: chosen, **plan["alternatives"]}
    if "domain" in plan:
        kind = TASKS[plan["task"]].promises
        methods = {name: with_units(kind, promised, plan["domain"]) for name, promised in methods.items()}
    names = list(dict.fromkeys(name for promised in methods.values() for name in promised))
    names = [n for n in names if any(isinstance(p.get(n), int | float | str) for p in methods.values())]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("method", "compared by", *names):
        title = header.replace("_", " ") + _COUNTED_IN.get(header, "")
        table.add_column(title, justify="left" if header == "method" else "right")
    for method, promised in methods.items():
        values = (promised.get(name) for name in names)
        shown = (number(v) if isinstance(v, int | float) else v or "none" for v in values)
        table.add_row(method, figure(plan["comparison"]["errors"][method]), *shown)
    return table


def grouped(mechanisms: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Return the distinct draws in order, each with the number of its copies."""
    found: list[tuple[dict[str, Any], int]] = []
    for draw in mechanisms:
        for i, (known, times) in enumerate(found):
            if known == draw:
                found[i] = (known, times + 1)
                break
        else:
            found.append((draw, 1))
    return found


def cost(draw: Mapping[str, Any]) -> str:
    """Return the privacy cost of one draw in the terms of its own guarantee."""
    if draw["rho"]:
        return f"ρ {number(draw['rho'])}"
    delta = f", δ {number(draw['delta'])}" if draw["delta"] else ""
    return f"ε {number(draw['epsilon'])}{delta}"
