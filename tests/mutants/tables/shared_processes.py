"""Wrong versions of processes that answer many subsamples, and of the functions that they run."""

from tests.mutants.mutant import Mutant, Selection

_RUNNER, _PROCESS = "transforms/run_function.py", "transforms/function_process.py"
_SHARED = Selection(("tests/transforms/test_shared_process.py",))
_ANALYSES = Selection(("tests/shoal/test_analyses.py",))
_ATTACKS = Selection(("tests/transforms/test_run_function.py",))
_SEEN = Selection(("tests/transforms/test_what_a_block_sees.py",))
_REGRESSION, _ROWS = "shoal/analyses/regression.py", "shoal/analyses/rows.py"

SHARED = (
    Mutant(
        12,
        _RUNNER,
        "one process answers many subsamples by any function",
        "return self.place in SHARING and self.text is None",
        "return self.text is None",
        _ATTACKS,
    ),
    Mutant(
        12,
        _RUNNER,
        "a file that is named like a function of Shoal is trusted",
        "self.place in SHARING and self.text is None and",
        "self.place in SHARING and",
        _SHARED,
    ),
    Mutant(
        12,
        _RUNNER,
        "time is not constant where one process answers many",
        " and self.text is None and not self.constant_time",
        " and self.text is None",
        _SHARED,
    ),
    Mutant(
        12,
        _RUNNER,
        "a large subsample shares a process, whose memory it may exceed",
        "function.shares and not self._report_errors and len(rows) <= most",
        "function.shares and not self._report_errors",
        _SHARED,
    ),
    Mutant(
        12,
        _RUNNER,
        "a subsample shares a process whatever the limit of time is",
        "(function.megabytes << 20) / _MEMORY - _LEAST, function.seconds * _EACH_SECOND)",
        "(function.megabytes << 20) / _MEMORY - _LEAST, 10 * function.seconds * _EACH_SECOND)",
        _SHARED,
    ),
    Mutant(
        12,
        _RUNNER,
        "the least memory of a shared process is not counted",
        "(function.megabytes << 20) / _MEMORY - _LEAST,",
        "(function.megabytes << 20) / _MEMORY,",
        _SHARED,
    ),
    Mutant(
        12,
        _RUNNER,
        "a failure of a shared process is taken for one of the subsample",
        "            if len(raw) == 8 * self.function.grid.dimension:\n                return raw\n",
        "            return raw\n",
        _SHARED,
    ),
    Mutant(
        12,
        _RUNNER,
        "the process of a failed subsample answers the next one",
        "        raw = self._exchange(RUN, rows, patience)\n        self._end_child()\n",
        "        raw = self._exchange(RUN, rows, patience)\n",
        _ATTACKS,
    ),
    Mutant(
        12,
        _RUNNER,
        "an answer that nobody waited for is that of the next subsample",
        "            self.close()\n            raise\n",
        "            raise\n",
        _SHARED,
    ),
    Mutant(
        12,
        _PROCESS,
        "all subsamples of a process share one limit of time",
        "seconds = resource.RLIM_INFINITY if many else math.ceil(limits.seconds)",
        "seconds = math.ceil(limits.seconds)",
        _SHARED,
    ),
    Mutant(
        12,
        _PROCESS,
        "a process of one subsample has no limit of time that it cannot change",
        "seconds = resource.RLIM_INFINITY if many else math.ceil(limits.seconds)",
        "seconds = resource.RLIM_INFINITY",
        _ATTACKS,
    ),
    Mutant(
        12,
        _PROCESS,
        "every process answers as many subsamples as come",
        "                answers = many\n",
        "                answers = True\n",
        _ATTACKS,
    ),
    Mutant(
        12,
        _PROCESS,
        "where memory is free follows from processes that earlier blocks started",
        "        if os.fork() == 0:\n            _kill_others(os.getppid())\n        while True:\n",
        "        while True:\n            for pid in _children(os.getpid()):\n"
        "                os.kill(pid, signal.SIGKILL)\n",
        _SEEN,
    ),
    Mutant(
        12,
        _PROCESS,
        "where memory is free follows from how many blocks came before",
        "    _end_children(child)\n    if not",
        "    _children(os.getpid())\n    _end_children(child)\n    if not",
        _SEEN,
    ),
    Mutant(
        12,
        _PROCESS,
        "where memory is free follows from what earlier blocks wrote",
        "        child = os.fork()\n        if child == 0:\n            try:\n"
        "                remove(folder)\n            finally:\n                os._exit(0)\n"
        "        os.waitpid(child, 0)\n",
        "        remove(folder)\n",
        _SEEN,
    ),
    Mutant(
        12,
        _PROCESS,
        "processes that a block started go on",
        "        os.waitpid(-1, os.WNOHANG)\n",
        "        raise ChildProcessError\n",
        _ATTACKS,
    ),
    Mutant(
        12,
        _REGRESSION,
        "slopes are summed by BLAS, whose bits may follow from addresses",
        "(left[k:] * along).sum(axis=1)",
        "left[k:] @ along",
        _SHARED,
    ),
    Mutant(
        12,
        _REGRESSION,
        "features that depend on others have slopes of rounding errors",
        "squares[chosen - k] > _CONDITION**2",
        "squares[chosen - k] > 0",
        _ANALYSES,
    ),
    Mutant(
        12,
        _REGRESSION,
        "features that nearly depend on others count as dependent",
        "squares[chosen - k] > _CONDITION**2",
        "squares[chosen - k] > _CONDITION",
        _ANALYSES,
    ),
    Mutant(
        12,
        _REGRESSION,
        "of several best fits some other one is taken",
        "        for other in solved:  # at right angles to the others, of length 1\n",
        "        for other in solved[1:]:\n",
        _ANALYSES,
    ),
    Mutant(
        12,
        _ROWS,
        "sums that are out of range make slopes of 0",
        "    if not np.isfinite(widest).all():\n",
        "    if False:\n",
        _ANALYSES,
    ),
    Mutant(
        12,
        _ROWS,
        "a column of one value varies by rounding",
        "varies = widest > _ROUNDING * np.abs(columns).max(axis=1, initial=0.0)",
        "varies = widest > 0",
        _ANALYSES,
    ),
)
