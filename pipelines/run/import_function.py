"""Import the function of a job in a process of its own, before budget is spent."""

from pipelines.errors import JobError
from transforms.run_function import Function, FunctionError, FunctionRunner


def import_function(function: Function) -> None:
    """Check that the function can be imported, in a process that has read no rows.

    Raises:
        JobError: it cannot.
    """
    try:
        FunctionRunner(function).close()
    except FunctionError as error:
        raise JobError(str(error)) from None
