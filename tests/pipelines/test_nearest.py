"""A mistyped key gets the nearest right one in the message, and no other problem is told of it."""

import copy
from itertools import chain

import pytest

from core.nearest import nearest
from pipelines.errors import JobError
from pipelines.job.job import check_raw, job_model
from pipelines.nearest import nearest_path, paths_of
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import changes

QUESTION = {
    "task": "median",
    "columns": ["x"],
    "domain": {"lower": [0], "upper": [1], "step": 0.25},
}
QUESTIONS_JOB = {
    "input": {"path": "/rows"},
    "privacy": {"epsilon": 1.0, "delta": 0},
    "questions": {"middle": QUESTION},
    "output": "/out",
}


def said(job):
    with pytest.raises(JobError) as refused:
        check_raw(job)
    return refused.value.args


def mistyped(key):
    """Return a key with two letters exchanged, or with one too many where it has only two."""
    return f"{key[0]}{key[2]}{key[1]}{key[3:]}" if len(key) > 2 and key[1] != key[2] else f"{key}s"


def keys(value, above=()):
    """Yield the path of every key of a mapping, and of the mappings in it."""
    for key, item in value.items():
        yield (*above, key)
        if isinstance(item, dict):
            yield from keys(item, (*above, key))


@pytest.mark.parametrize("task", TASKS)
def test_every_key_of_a_job_is_found_by_its_mistyped_form(task):
    job = changed_job(changes(task))
    tried = 0
    for path in keys(job):
        if path == ("task",):
            continue
        wrong = copy.deepcopy(job)
        part = wrong
        for key in path[:-1]:
            part = part[key]
        part[mistyped(path[-1])] = part.pop(path[-1])
        sentences = said(wrong)
        name = ".".join((*path[:-1], mistyped(path[-1])))
        assert len(sentences) == 1, sentences
        assert sentences[0].startswith(f"{name} is not a known key (did you mean {'.'.join(path)}?): "), name
        tried += 1
    assert tried > 10


def test_every_key_of_everyjob_model_is_nearest_to_its_mistyped_form():
    models = [job_model(task) for task in TASKS]
    for model in models:
        known = set(paths_of(model))
        for path in known:
            beside = [other[-1] for other in known if other[:-1] == path[:-1]]
            wrong = (*path[:-1], mistyped(path[-1]))
            if mistyped(path[-1]) not in {each[-1] for each in known}:
                assert nearest_path(wrong, model, beside) == path
    assert len(set(chain.from_iterable(map(paths_of, models)))) > 60


@pytest.mark.parametrize(
    ("changed", "meant"),
    [
        ({"epsilon": 1.0}, "epsilon is not a known key (did you mean privacy.epsilon?)"),
        ({"params.columns": ["x"]}, "params.columns is not a known key (did you mean input.columns?)"),
        ({"task": "one_clutser"}, "task is 'one_clutser' (did you mean one_cluster?): the tasks are"),
        ({"task": ..., "taks": "median"}, "task is missing (taks is not a known key): the tasks are"),
        ({"surprise": 1}, "surprise is not a known key: a job's keys are"),
    ],
)
def test_a_key_in_the_wrong_place_or_a_task(changed, meant):
    assert said(changed_job(changed))[0].startswith(meant)


def test_questions_have_nearest_keys_too():
    def wrong(**keys):
        return {**QUESTIONS_JOB, "questions": {"middle": {**QUESTION, **keys}}}

    where = "questions.middle"
    told = {
        f"{where}.colunms is not a known key (did you mean {where}.columns?)": wrong(colunms=["x"]),
        f"{where}.task is 'medain' (did you mean median?)": wrong(task="medain"),
        f"{where}.params.quantil is not a known key (did you mean {where}.params.quantile?)": wrong(
            params={"quantil": 0.5}
        ),
        "privcy is not a key of a job with questions (did you mean privacy?)": {
            **QUESTIONS_JOB,
            "privcy": {},
        },
    }
    for sentence, job in told.items():
        assert said(job)[0].startswith(sentence)


@pytest.mark.parametrize(
    "word, task",
    [("mean", "statistics"), ("Sum", "statistics"), ("percentiles", "quantiles"), ("max", "minimum")],
)
def test_a_word_for_what_a_task_answers_means_that_task(word, task):
    for job in ({"task": word}, {**QUESTIONS_JOB, "questions": {"middle": {**QUESTION, "task": word}}}):
        assert f"task is '{word}' (did you mean {task}?): the tasks are" in said(job)[0]


def test_nothing_is_meant_by_a_word_that_is_near_to_none():
    assert nearest("surprise", ["task", "input", "params"]) is None
    assert nearest("TARGET", ["target"]) == "target"


def test_a_plural_is_the_key_beside_it_before_the_same_word_elsewhere():
    """The key `units` of a domain is something else than `input.unit`."""
    (sentence,) = said(
        {**changed_job(changes("median")), "input": {"path": "/a", "columns": ["x"], "units": "u"}}
    )
    assert "input.units is not a known key (did you mean input.unit?)" in sentence


def test_a_singular_is_the_key_beside_it_too():
    (sentence,) = said(changed_job({**changes("median"), "domain.unit": {"x": "m"}}))
    assert "domain.unit is not a known key (did you mean domain.units?)" in sentence


@pytest.mark.parametrize(
    ("word", "path"),
    [("lowr", ("domain", "lower")), ("epsiln", ("privacy", "epsilon")), ("lowest", None)],
)
def test_a_key_elsewhere_must_be_near_and_the_shortest_way_is_told(word, path):
    """A word that might be another one is not taken for a key of another part."""
    model = job_model("histogram")
    assert nearest_path((word,), model, model.model_fields) == path
    assert nearest_path((), model, model.model_fields) is None


def test_the_nearest_word_is_told_as_it_is_written():
    assert nearest("longitud", ["Longitude", "Latitude"]) == "Longitude"
    assert nearest("LATITUDE", ["longitude", "Latitude"]) == "Latitude"
