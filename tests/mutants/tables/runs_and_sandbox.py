"""Wrong versions of the steps around a run, from its checks to its delivery, and of the sandbox."""

from tests.mutants.mutant import Mutant, Selection

_RUN, _DELIVERY, _SUBMIT = "pipelines/run/run.py", "pipelines/run/delivery.py", "pipelines/run/submit.py"
_JOINT, _PROGRESS = "pipelines/run/joint_run.py", "pipelines/run/progress.py"
_WORKERS = Selection(("tests/pipelines/run/test_delivery.py",), "worker_finishes")
_KEYS = Selection(("tests/pipelines/run/test_delivery.py",), "public_keys")
_QUESTIONS, _TOLD = "tests/pipelines/test_questions.py", "tests/pipelines/run/test_progress.py"
_ENDS = "tests/pipelines/run/test_submit.py"

DELIVERED = (
    Mutant(
        12,
        _DELIVERY,
        "a charge is marked with the hash of nothing",
        'self.folder.read(RELEASE) or b"").hexdigest()',
        'b"").hexdigest()',
        _WORKERS,
    ),
    *(
        Mutant(
            12,
            _DELIVERY,
            f"whoever writes {what} leaves its charge and its report to others",
            f"        {line}\n        delivery.finish()",
            f"        {line}",
            _WORKERS,
        )
        for what, line in (
            ("one answer", "write_release(delivery.folder, draft, state, grid)"),
            ("a table in parts", "delivery.folder.create(RELEASE, join_parts(parts))"),
            ("several answers", "write_joint_release(delivery.folder, draft, answers)"),
            ("groups", "write_grouped_release(delivery.folder, draft, states)"),
        )
    ),
    Mutant(
        12,
        _RUN,
        "a run that was only submitted is told to have failed",
        '                events.emit("submitted", output=job.output)\n                return None\n',
        "                pass\n",
        _WORKERS,
    ),
    Mutant(
        12,
        _RUN,
        "the log does not say the outcome of a stored release",
        'outcome = {"outcome": release["outcome"]} if stored else {}',
        "outcome = {}",
        _WORKERS,
    ),
    Mutant(
        12,
        _DELIVERY,
        "a run without a ledger is refused where an earlier one was charged",
        "if delivery.output_id not in (None, read_output_id(delivery.folder)):",
        "if delivery.output_id != read_output_id(delivery.folder):",
        Selection(("tests/pipelines/run/test_delivery.py",), "charged"),
    ),
    Mutant(
        12,
        _DELIVERY,
        "what fails a writer in another process arrives without its sentence",
        '    with plain_errors("Write"):\n        check_folder(delivery)\n        write_release(',
        "    if True:\n        check_folder(delivery)\n        write_release(",
        Selection(("tests/pipelines/run/test_delivery.py",), "quotes"),
    ),
    Mutant(
        12,
        _DELIVERY,
        "where a report is denied, nobody is told that its release is complete",
        "except (JobError, StorageError) as error:",
        "except StorageError as error:",
        Selection(("tests/pipelines/test_bad_input.py",), "leaves_the_release"),
    ),
    Mutant(
        12,
        _RUN,
        "a worker does not know the id of the folder that was charged",
        "replace(delivery, charged=entry.ledger, output_id=output_id)",
        "replace(delivery, charged=entry.ledger)",
        Selection(("tests/pipelines/test_output_id.py",), "takes_the_id"),
    ),
)

PREPARED = (
    Mutant(
        12,
        _RUN,
        "an attempt that another one is in the way of is charged",
        "        attempt.check(open_folder(job.output))\n",
        "        pass\n",
        Selection(("tests/pipelines/test_table.py",), "changed_input"),
    ),
    Mutant(
        12,
        _RUN,
        "a signal that is lost while a run is charged does not end it",
        "                end_where_asked()\n                done",
        "                done",
        Selection(("tests/pipelines/run/test_dry_run.py",), "signal_that_is_lost"),
    ),
    Mutant(
        12,
        _RUN,
        "public keys stay in this process though another one runs the steps",
        "not None and in_this_process(options):",
        "not None:",
        _KEYS,
    ),
    Mutant(
        12,
        _RUN,
        "public keys are pickled for every step of this process",
        "stack.enter_context(source.groups.labels.staying())",
        "pass",
        _KEYS,
    ),
    Mutant(
        4,
        _RUN,
        "a unit has one identity in all groups of a question, and is sampled in all or in none",
        "bounding.reader, prepared.salt\n",
        "bounding.reader, None\n",
        Selection(("tests/pipelines/test_groups.py",), "identity_of_its_own"),
    ),
    Mutant(
        12,
        _JOINT,
        "output, ledger and input of several questions need not be apart",
        "    check_apart(job, (*FILES, *map(table_name, job.jobs)), opened is not None)\n",
        "",
        Selection((_QUESTIONS,), "are_apart"),
    ),
    Mutant(
        12,
        "pipelines/run/check_run.py",
        "public keys may be rows of the input",
        "        check_public(job)\n",
        "        pass\n",
        Selection(("tests/pipelines/test_statistics.py",), "no_command_reads"),
    ),
    Mutant(
        12,
        "pipelines/grouped_plan.py",
        "a plan reads keys that are rows of the input",
        "    check_keys(job)\n",
        "",
        Selection(("tests/pipelines/test_statistics.py",), "no_command_reads"),
    ),
    Mutant(
        12,
        "shoal/calls.py",
        "copies of the files of a list are not known to be rows",
        "check_public(checked, [os.path.expanduser(file) for file in data])",
        "check_public(checked)",
        Selection(("tests/shoal/test_calls.py",), "no_file_of_the_rows"),
    ),
    Mutant(
        12,
        "pipelines/key_files.py",
        "a joined table may be a file of the input by another name",
        "files = [*copied, *(each.path for each in list_files(path))]",
        "files = [*copied]",
        Selection(("tests/shoal/test_calls.py",), "no_file_of_the_rows"),
    ),
    Mutant(
        12,
        _JOINT,
        "a ledger may have the name of the table of a question",
        "(*FILES, *map(table_name, job.jobs))",
        "FILES",
        Selection((_QUESTIONS,), "are_apart"),
    ),
    Mutant(
        12,
        _JOINT,
        "questions are charged though a table of another job is in their way",
        "    check_stored(open_folder(job.output), draft_joint_release(job, plan))\n",
        "",
        Selection((_QUESTIONS,), "stored_table_stays"),
    ),
    Mutant(
        12,
        _JOINT,
        "a dry run of several questions does not ask the ledger",
        "    check_place(job, plan, clock)\n",
        "",
        Selection((_QUESTIONS,), "charged_once"),
    ),
    Mutant(
        12,
        _JOINT,
        "questions are charged though floats cannot be read on a wide axis",
        "        check_axes(source, question.grid)\n",
        "",
        Selection((_QUESTIONS,), "bad_input and axis"),
    ),
    Mutant(
        12,
        "pipelines/run/check_run.py",
        "a run is charged that cannot write its report",
        "if folder.read(REPORT) is not None and folder.read(RELEASE) is None:",
        "if folder.read(REPORT) is not None and False:",
        Selection(("tests/pipelines/run/test_dry_run.py",), "report_without"),
    ),
    Mutant(
        12,
        "pipelines/run/check_run.py",
        "rows are read though the release cannot be written",
        "    folder.prepare()\n",
        "",
        Selection(("tests/pipelines/run/test_dry_run.py",), "output_in_which"),
    ),
)

SUBMITTED = (
    Mutant(
        12,
        _SUBMIT,
        "what a notebook shows of a failed run quotes rows",
        "raise _translated(error, consequence) from None",
        "raise _translated(error, consequence) from error",
        Selection((_ENDS,), "other_errors"),
    ),
    Mutant(
        12,
        _SUBMIT,
        "what libraries print during a run is shown",
        "with quiet(), without_stderr(), _as",
        "with quiet(), _as",
        Selection((_ENDS,), "nothing_is_shown"),
    ),
    Mutant(
        12,
        _SUBMIT,
        "Beam sees the notebook that it runs in",
        "for module in (interactive_utils, apache_beam.pipeline):",
        "for module in (interactive_utils,):",
        Selection((_ENDS,), "nothing_is_shown"),
    ),
    Mutant(
        12,
        _SUBMIT,
        "a number of an error that no system has ends the command",
        "number and int(number[1]) in errno.errorcode",
        "number",
        Selection((_ENDS,), "other_errors"),
    ),
    Mutant(
        12,
        _SUBMIT,
        "the place of an error is in no file",
        "if frame.line]",
        "]",
        Selection((_ENDS,), "place_of_an_error"),
    ),
    Mutant(
        12,
        _SUBMIT,
        "a pipeline that failed is taken for one that has ended",
        "    if ended not in (None, PipelineState.DONE):\n"
        '        raise RunError(f"The pipeline ended as {ended}; {consequence}.")\n',
        "",
        Selection((_ENDS,), "ends_as"),
    ),
    Mutant(
        12,
        _SUBMIT,
        "a pipeline that still runs is taken for one that has ended",
        "PipelineState.PENDING, PipelineState.RUNNING)",
        "PipelineState.PENDING)",
        Selection((_ENDS,), "ends_as"),
    ),
    Mutant(
        12,
        _SUBMIT,
        "rows that wait are gone while a pipeline may read them",
        "if ended in (None, PipelineState.DONE):\n                for",
        "if True:\n                for",
        Selection((_ENDS,), "ends_as"),
    ),
    Mutant(
        12,
        _SUBMIT,
        "whoever changes the input while it is read is told that the job is wrong",
        "if pipeline is None and isinstance(error, InputError):",
        "if isinstance(error, InputError):",
        Selection((_ENDS,), "worker_finds_wrong"),
    ),
    Mutant(
        12,
        _SUBMIT,
        "a lost worker of Flink is told as an unknown error",
        "|closed by remote task manager",
        "",
        Selection((_ENDS,), "lost_machines"),
    ),
)

TOLD = (
    *(
        Mutant(
            12,
            _PROGRESS,
            f"with a log, a round has no {what}",
            old,
            new,
            Selection((_TOLD,), "kinds_of"),
        )
        for what, old, new in (
            ("looks", "return looks_of(self.round_)", "return 0"),
            ("examination", "return examination_of(self.round_)", "return None"),
            ("sections", "return sections_of(self.round_)", "return 0"),
            (
                "release that is told after its looks",
                "return replace(self, round_=cast(Any, self.round_).finer(aggregate, state))",
                "return cast(Any, self.round_).finer(aggregate, state)",
            ),
        )
    ),
    Mutant(
        12,
        _PROGRESS,
        "progress is shown after its run",
        "            ended.set()",
        "            pass",
        Selection((_TOLD,), "terminal_that_fails"),
    ),
    Mutant(
        12,
        _PROGRESS,
        "progress that is not shown is looked at",
        "    if not progress.shown:\n        yield lambda running: None\n        return\n",
        "",
        Selection((_TOLD,), "nobody_looks"),
    ),
    Mutant(
        12,
        _PROGRESS,
        "work is counted once for each time that a cluster was asked",
        "reduce(or_, told,",
        "reduce(lambda a, b: a + b, told,",
        Selection((_TOLD,), "flink_tells"),
    ),
    Mutant(
        12,
        _JOINT,
        "the log does not say of which question a round is",
        "events.of(question=name), len(strands))",
        "events, len(strands))",
        Selection((_TOLD,), "several_questions"),
    ),
    Mutant(
        12,
        _JOINT,
        "a round of a question is told once for each of its groups",
        "events.of(question=name), len(strands))",
        "events.of(question=name))",
        Selection((_TOLD,), "several_questions"),
    ),
    Mutant(
        12,
        _JOINT,
        "the steps of several questions count one row group",
        '        return [Step(name, row_groups, "row groups") for name in passes]',
        '        return [Step(name, 1, "row groups") for name in passes]',
        Selection((_TOLD,), "several_questions"),
    ),
    Mutant(
        12,
        _JOINT,
        "the steps of several questions about units count row groups as parts",
        'Step(name, len(bounding.places), "parts"',
        'Step(name, row_groups, "parts"',
        Selection((_TOLD,), "several_questions"),
    ),
)

STEPS = tuple(
    Mutant(12, "pipelines/run/prepared.py", wrong, old, new, Selection((_TOLD,), "counts_every"))
    for wrong, old, new in (
        ("looks are not counted as passes", "(round_.name, 1 + looks_of(round_))", "(round_.name, 1)"),
        (
            "looks at records of units are not counted as passes",
            'parts * times, "parts"',
            'parts, "parts"',
        ),
        (
            "the steps of groups have the names of their rounds",
            "        passes = [(name, 1) for name in passes_of(prepared.strands[:1])]",
            "        pass",
        ),
    )
)

FUNCTIONS = (
    Mutant(
        12,
        "pipelines/run/prepared.py",
        "a function gets columns of another type from each file",
        "            source.mixed,\n",
        "",
        Selection(("tests/pipelines/run/test_prepared.py",)),
    ),
    Mutant(
        12,
        "transforms/run_function.py",
        "a function that waits takes longer than others where time is constant",
        "return self.seconds if self.constant_time else max(",
        "return max(",
        Selection(("tests/transforms/test_run_function.py",), "longer_than_its"),
    ),
    Mutant(
        12,
        "transforms/run_function.py",
        "an answer needs one finite axis",
        "if np.isfinite(value).all() else None",
        "if np.isfinite(value).any() else None",
        Selection(("tests/transforms/test_run_function.py",), "finite_on_every"),
    ),
    Mutant(
        12,
        "transforms/run_function.py",
        "a function that cannot be started leaves a folder",
        "                ours.close()\n                remove(self._folder)\n",
        "                ours.close()\n",
        Selection(("tests/transforms/test_run_function.py",), "cannot_be_started"),
    ),
    Mutant(
        12,
        "transforms/function_messages.py",
        "long arguments of a function arrive in part",
        "    while left:\n        size",
        "    if left:\n        size",
        Selection(("tests/transforms/test_run_function.py",), "longer_than"),
    ),
    Mutant(
        12,
        "pipelines/run/joint_run.py",
        "names of units of several questions are numbers",
        "its = (question.unit, question.order, question.count, question.group_keys)",
        "its = (None, question.order, question.count, question.group_keys)",
        Selection(("tests/pipelines/run/test_questions_on_text.py",)),
    ),
    Mutant(
        12,
        "pipelines/run/joint_run.py",
        "several questions have counts of no type",
        "its = (question.unit, question.order, question.count, question.group_keys)",
        "its = (question.unit, question.order, None, question.group_keys)",
        Selection(("tests/pipelines/run/test_questions_on_text.py",)),
    ),
    Mutant(
        12,
        "pipelines/run/joint_run.py",
        "several questions have keys of no type",
        "its = (question.unit, question.order, question.count, question.group_keys)",
        "its = (question.unit, question.order, question.count, None)",
        Selection(("tests/pipelines/run/test_questions_on_text.py",)),
    ),
)
