"""The report: one self-contained HTML file, made from the release alone."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from pipelines.answers.answer import Rows, Table, domain_of
from pipelines.answers.checks import check_facts, kept_facts
from pipelines.answers.picture import Picture
from pipelines.answers.text import confidence, counted, hides, key_names, number, spent_delta
from pipelines.grouped_release import answers_by_group
from pipelines.joint_plan import budget_sentence
from pipelines.plan import cost, figure, grouped
from pipelines.report.draw import draw
from pipelines.tasks import TASKS

_COVERS = (
    "Everything on this page, and everything that anyone can compute from it.",
    "Every {one} equally, including {one}s that are far from all others.",
    "Against everyone, whatever they know about the other {one}s, now or later.",
    "Whether anything was found at all. An empty answer is protected in the same way.",
)
_COVERS_NOT = (
    "<b>A person with several {one}s.</b> The promise is for one {one}. It becomes weaker with every further "
    "{one} of the same person.",
    "<b>Several releases together.</b> Each run on the same data spends its own budget, and the budgets add "
    "up.",
    "<b>Facts about groups.</b> What the release says about many people may suggest something about a person "
    "who resembles them, even if that person is not in the data.",
    "<b>Public settings.</b> Everyone may know that the run took place, with its columns, bounds, step, "
    "parameters and budget. They must have been chosen without looking at the data.",
    "<b>The computers.</b> The input and the memory are as safe as the computers that ran the job. The "
    "running time is not hidden.",
)


_MOST_PARTS = 50
"""Groups of which a report has a part; the index has all."""


def render(release: Mapping[str, Any], rows: Rows = None) -> str:
    """Return the report as one HTML page that loads nothing.

    Args:
        release: a value as in release.json.
        rows: the columns of its result.parquet, if there is one.
    """
    return str(_environment().get_template("report.html").render(_shown(release, rows)))


def render_questions(
    release: Mapping[str, Any], answers: Mapping[str, Mapping[str, Any]], rows: Mapping[str, Rows]
) -> str:
    """Return the report of several questions as one HTML page: an index, and a part for each question.

    Args:
        release: a value as in release.json.
        answers: of each question, as a release of its own.
        rows: the columns of the table of each question, if it has one.
    """
    environment, privacy = _environment(), release["privacy"]
    shown = {}
    for name, answer in answers.items():
        by_group = "groups" in answer
        part = "by_group.html" if by_group else "answer.html"
        one = _shown_groups(answer, answers_by_group(answer, rows[name]), name) if by_group else None
        one = _shown(answer, rows[name]) if one is None else one
        bodies = [environment.get_template(each).render(one) for each in (part, "settings.html")]
        one["body"] = Markup("\n".join(bodies))  # both escape what they show
        shown[name] = one
    settings = [
        ("Neighbors", f"{privacy['neighbors']}: {privacy['hides']}"),
        ("Privacy unit", privacy["unit"] or "none: each row counts as one person"),
        ("Composed by", privacy["accountant"]),
        *_of_the_run(release),
    ]
    page = environment.get_template("questions.html")
    whole = {"answers": shown, "budget": budget_sentence(privacy, len(shown)), "settings": settings}
    return str(page.render({**_guarantee(release), **whole, "release": release}))


def render_groups(release: Mapping[str, Any], groups: Sequence[tuple[str, Mapping[str, Any], Rows]]) -> str:
    """Return the report of a job by group as one HTML page: an index, and a part for each of the first ones.

    Args:
        release: a value as in release.json.
        groups: of each group its name, its answer as a release of its own, and its columns of the table.
    """
    return str(_environment().get_template("groups.html").render(_shown_groups(release, groups)))


def render_curve(title: str, lead: str, source: str, figures: Sequence[tuple[str, Picture, Table]]) -> str:
    """Return curves of plans, or that of a ledger, as one HTML page.

    Args:
        title: of the page.
        lead: what the curves are.
        source: one sentence about what the page was made from.
        figures: of each curve its name, its picture, and its table.
    """
    drawn = [(name, draw(picture), table) for name, picture, table in figures]
    page = _environment().get_template("curve.html")
    return str(page.render({"title": title, "lead": lead, "source": source, "figures": drawn}))


def _shown_groups(
    release: Mapping[str, Any], groups: Sequence[tuple[str, Mapping[str, Any], Rows]], question: str = ""
) -> dict[str, Any]:
    """Return what the templates show of all groups; see `render_groups`.

    Args:
        release: a value as in release.json, or the answer of a question as one.
        groups: see `render_groups`.
        question: name of the question, if it is one of several.
    """
    template, answers = _environment().get_template("found.html"), TASKS[release["task"]].answers
    whole: dict[str, Any] = {}
    parts: list[Markup] = []
    briefs = []
    for name, one, rows in groups:  # one after the other: all pictures would take much memory
        if len(parts) < _MOST_PARTS:
            shown = _shown(one, rows, f"Group {name}")
            whole = whole or shown
            parts.append(Markup(template.render(shown)))  # it escapes what it shows
            briefs.append(shown["answer"].brief)
        else:
            briefs.append(answers.answer(one, rows).brief)
    by = " and ".join(key_names(release["group_by"]))
    title = f"{len(groups)} group{'s' if len(groups) > 1 else ''} by {by}"
    return {
        **whole,
        **_guarantee(release),
        "title": title,
        "anchor": f"{question}-group" if question else "group",
        "index": [{"name": name, "answer": briefs[i]} for i, (name, _, _) in enumerate(groups)],
        "parts": parts,
        "each": groups[0][1]["privacy"],
        "release": release,
        "settings": _settings(release),
    }


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # only a report needs it

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: files(__package__).joinpath(name).read_text("utf-8")),
    )
    environment.filters["number"] = number
    environment.filters["cost"] = cost
    environment.filters["draw"] = draw
    return environment


def _shown(release: Mapping[str, Any], rows: Rows, of: str | None = None) -> dict[str, Any]:
    """Return what the templates show of a release, or of that of a group, whose name is `of`."""
    answers = TASKS[release["task"]].answers
    return {
        **_guarantee(release),
        "of": of,
        "release": release,
        "domain": release["domain"],
        "answer": answers.answer(release, rows),
        "title": None,
        "kept": kept_facts(release),
        "checks": check_facts(release),
        "confidence": confidence(release),
        "promises": answers.promises(release),
        "why": release.get("why"),
        "methods": _methods(release),
        "rounds": _rounds(release),
        "unpromised": answers.unpromised(release),
        "settings": _settings(release),
    }


def _guarantee(release: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the templates say of the privacy of a release."""
    privacy, one = release["privacy"], counted(release).one
    delta = spent_delta(privacy)
    return {
        "privacy": privacy,
        "hides": privacy["hides"],
        "hides_less": privacy["hides"] != hides(privacy["neighbors"], privacy["unit"], privacy.get("count")),
        "one": one,
        "factor": _three_digits(math.exp(privacy["epsilon"]), math.ceil)
        if privacy["epsilon"] < 20
        else "many millions",
        "spent_delta": delta,
        "odds": f"1 in {number(1 / delta)}" if delta else None,
        "posterior": posterior(privacy["epsilon"]),
        "beyond": _beyond(privacy["epsilon"], delta),
        "covers": [sentence.format(one=one) for sentence in _COVERS],
        "covers_not": [Markup(sentence.format(one=one)) for sentence in _COVERS_NOT],
    }


def _methods(release: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return every method with the figure by which it was compared; earlier versions released none."""
    comparison = release.get("comparison")
    return [] if comparison is None else [(name, figure(e)) for name, e in comparison["errors"].items()]


def _rounds(release: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return name, purpose, share and draws of each round.

    Releases of earlier versions list no rounds. For these, purpose and share are None.
    """
    draws: dict[str, list[tuple[dict[str, Any], int]]] = {}
    for drawn, times in grouped(release["mechanisms"]):
        draws.setdefault(drawn["round"], []).append((drawn, times))
    listed = release.get("rounds") or [{"round": name, "purpose": None, "share": None} for name in draws]
    return [{"name": entry["round"], **entry, "draws": draws.get(entry["round"], [])} for entry in listed]


def _three_digits(value: float, rounded: Callable[[float], int]) -> str:
    """Return a number above 0 with three digits, rounded by `math.ceil` or `math.floor`."""
    digits = 10.0 ** (math.floor(math.log10(value)) - 2)
    return number(rounded(value / digits) * digits, 3)


def posterior(epsilon: float) -> str:
    """Return the largest posterior probability after an even prior, in percent, rounded up."""
    percent = 100 / (1 + math.exp(-min(epsilon, 700)))
    digits = 0 if percent < 99 else 2
    rounded = math.ceil(percent * 10**digits) / 10**digits
    return "100%" if rounded >= 100 else f"{rounded:.{digits}f}%"


def _beyond(epsilon: float, delta: float) -> str:
    """Return how often the largest posterior probability may be exceeded.

    For the privacy loss L, (epsilon, delta) is E max(0, 1 - e^(epsilon - L)) <= delta. So L is above
    epsilon + 1 with a probability of at most delta / (1 - 1 / e).
    """
    above, odds = posterior(epsilon + 1), (1 - math.exp(-1)) / max(delta, 1e-300)
    if not delta or above == posterior(epsilon):
        return ""
    if odds < 2 or above == "100%":
        return "; because of δ it may be higher"
    least = _three_digits(odds, math.floor)
    return f"; because of δ it may be higher, and above {above} with a probability of at most 1 in {least}"


def _unit(release: Mapping[str, Any]) -> str:
    privacy = release["privacy"]
    if privacy["unit"] is None:
        one = "row" if privacy.get("count") is None else f"of the {privacy['count']} records of a row"
        return f"none: each {one} counts as one person"
    order = privacy.get("order")  # earlier versions have none
    return f"{privacy['unit']}{counted(release).by}" + (f" (by {order})" if order else "")


def _prepared(rows: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return how the rows were prepared; see `pipelines.job.prepared.described`."""
    derived = ", ".join(f"{name} = {text}" for name, text in rows.get("derive", {}).items())
    join = rows.get("join")
    joined = None if join is None else f"{join['path']} by {join['on']}"
    shown = {"Rows used": rows.get("where"), "Derived columns": derived, "Joined table": joined}
    shown["Records of a row"] = rows.get("count")
    return [(name, text) for name, text in shown.items() if text]


def _settings(release: Mapping[str, Any]) -> list[tuple[str, str]]:
    domain, privacy = domain_of(release), release["privacy"]
    bounds = [
        f"{name} from {number(low)} to {number(high)}"
        for name, low, high in zip(domain["columns"], domain["lower"], domain["upper"], strict=True)
    ]
    shown = bounds if len(bounds) <= 6 else [*bounds[:5], f"and {len(bounds) - 5} more"]
    params = [f"{name} {_as_text(value)}" for name, value in release["params"].items() if value is not None]
    settings = [
        ("Task and method", f"{release['task']}, {release['method']}"),
        ("Domain", f"{'; '.join(shown)}; step {number(domain['step'])}{_distances(domain)}"),
        *_prepared(release.get("rows", {})),
        ("Parameters", ", ".join(params)),
        ("Neighbors", f"{privacy['neighbors']}: {privacy['hides']}"),
        ("Privacy unit", _unit(release)),
        ("Composed by", privacy["accountant"]),
        *_of_the_run(release),
    ]
    if release.get("group_by"):
        groups = release["group_by"]
        cut = "".join(f"; {name} cut to its {unit}" for name, unit in groups["truncate"].items())
        public = groups["public_keys"]
        keys = "private" if public is None else f"{public:,} public ones"
        settings.insert(2, ("Groups", f"by {' and '.join(groups['columns'])}{cut}; keys: {keys}"))
    if release.get("contributions"):
        bounds = release["contributions"]
        clamped = "; sums clamped for each unit" if bounds.get("clamp") == "unit" else ""
        rows_each = f"at most {bounds['rows']:,}" if "rows" in bounds else "all"
        most = f"groups: at most {bounds['groups']:,} of a unit; rows: {rows_each} in each"
        settings.insert(2, ("Contributions", most + clamped))
    if domain.get("ball"):
        ball = domain["ball"]
        settings.insert(2, ("Domain ball", f"radius {number(ball['radius'])} about {ball['center']}"))
    return settings


def _distances(domain: Mapping[str, Any]) -> str:
    geography = domain.get("geography")
    return "" if geography is None else f"; distances on the Earth ({geography})"


def _as_text(value: Any) -> str:
    """Return a parameter as text: a list of names, or of keys with lists, without brackets and quotes."""
    if not isinstance(value, list) or not all(isinstance(item, str | dict) for item in value):
        return str(value)
    pairs = [item if isinstance(item, dict) else {item: ()} for item in value]
    return " and ".join(
        " ".join([name, ", ".join(map(str, given))]).strip() for pair in pairs for name, given in pair.items()
    )


def _of_the_run(release: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        ("Software", ", ".join(f"{name} {number_}" for name, number_ in release["software"].items())),
        ("Run", release["run_id"]),
        ("Job (SHA-256)", release["job"]),
    ]
