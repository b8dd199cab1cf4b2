"""Wrong versions of axes of dates and timestamps."""

from tests.mutants.mutant import Mutant, Selection

_ROUNDED = Selection(("tests/core/test_times.py",), "rounded or grid")
_WRITTEN = Selection(("tests/core/test_times.py",), "written or calendar or lengths or refused")
_ANSWERS = Selection(("tests/pipelines/test_every_date.py",), "steps_of_numbers or policies or plain")
_READ = Selection(("tests/pipelines/test_every_date.py",), "nulls or out_of_bounds")
_JOBS = Selection(("tests/pipelines/test_dates.py",))

AXES = (
    Mutant(
        12,
        "core/times.py",
        "the middle between two steps goes up",
        "point += up | (half & (point % 2 == 1))",
        "point += up | half",
        _ROUNDED,
    ),
    Mutant(
        12,
        "core/times.py",
        "a part of a tick does not count at an odd step",
        "((more == 1) & (twice > finer))",
        "((more == 1) & (twice > finer + finer))",
        _ROUNDED,
    ),
    Mutant(
        12,
        "core/times.py",
        "a part of a tick above the upper bound is not out of bounds",
        "above |= (at == last) & (rest > 0)",
        "above |= (at == last) & (rest < 0)",
        _ROUNDED,
    ),
    Mutant(
        12,
        "core/times.py",
        "negative instants are rounded towards 1970",
        "at = values // finer if finer > 1 else values",
        "at = np.fix(values / finer).astype(np.int64) if finer > 1 else values",
        _ROUNDED,
    ),
    Mutant(
        12,
        "core/times.py",
        "coarse instants far out of bounds wrap",
        "below, above = at < first, at > last",
        "below, above = at * coarser < low, at * coarser > high",
        _ROUNDED,
    ),
    Mutant(
        12,
        "core/times.py",
        "an axis of numbers beside dates may begin between two whole numbers",
        "if pair is None and not (",
        "if pair is None and False and not (",
        _WRITTEN,
    ),
    Mutant(
        12,
        "core/instants.py",
        "an offset has the wrong sign",
        "seconds = ((hour * 60) + minute - away) * 60 + second",
        "seconds = ((hour * 60) + minute + away) * 60 + second",
        _WRITTEN,
    ),
    Mutant(
        12,
        "core/times.py",
        "a step need not divide the time between the bounds",
        "    over = (end - start) % length\n",
        "    over = 0\n",
        _WRITTEN,
    ),
    Mutant(
        12,
        "core/times.py",
        "a bound without a zone suits one with a zone",
        '(found.timed, found.zoned) != (self.tick != "D" or between, self.zoned)',
        'found.timed != (self.tick != "D" or between)',
        _JOBS,
    ),
    Mutant(
        12,
        "core/marks.py",
        "a point of several axes is on the first",
        "tuple(translate(item, each, change, i) for i, each in enumerate(value))",
        "tuple(translate(item, each, change, axis) for each in value)",
        _JOBS,
    ),
    Mutant(
        12,
        "core/one_cluster/found.py",
        "a radius is a number",
        "    radius: Length\n",
        "    radius: float\n",
        _ANSWERS,
    ),
    Mutant(
        12,
        "core/statistics/found.py",
        "a mean is rounded to a step",
        '{"value": Mark.BETWEEN, "error": Mark.LENGTH}',
        '{"value": Mark.POSITION, "error": Mark.LENGTH}',
        _JOBS,
    ),
    Mutant(
        12,
        "transforms/count_outside.py",
        "a time of the day moves a date64",
        "        ticks //= _DAY",
        "        ticks = np.rint(ticks / _DAY).astype(np.int64)",
        _READ,
    ),
    Mutant(
        12,
        "transforms/count_outside.py",
        "a null is the first of January 1970",
        "    held = pc.is_valid(column).to_numpy(zero_copy_only=False)\n    native",
        "    held = np.ones(len(column), dtype=np.bool_)\n    native",
        _READ,
    ),
    Mutant(
        12,
        "transforms/open_source.py",
        "a column of numbers may be an axis of dates",
        "if times is not None and not number and found != times.kind:",
        "if times is not None and not number and found not in (None, times.kind):",
        _JOBS,
    ),
    Mutant(
        12,
        "pipelines/job/job.py",
        "a sum of dates depends on where the axis begins",
        'if "sum" in getattr(asked, "measures", ()):',
        "if False:",
        _JOBS,
    ),
)
