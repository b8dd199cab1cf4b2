"""Run commands of `shoal`, each in a fork of one process, and print the modules that each has loaded.

What every plan needs is imported before the forks, so that a plan takes a tenth of a second and not half of
one. Further modules can be, too: `python -m tests.pipelines.loaded MODULE,MODULE COMMAND...`, where each
command is a JSON list of arguments.
"""

import contextlib
import io
import json
import os
import sys
from importlib import import_module

SHARED = ("pipelines.cli", "typer._adapters", "pipelines.console.printable", "pipelines.plan")


def modules_after(arguments: list[str]) -> list[str]:
    """Return the names of all modules that are loaded after a command, which must end well."""
    from pipelines.cli import app

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code: object = 1
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                app(arguments)
        except SystemExit as left:
            code = left.code
        with os.fdopen(writer, "w") as told:
            json.dump({"code": code, "modules": sorted(sys.modules)}, told)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        found = json.load(told)
    os.waitpid(child, 0)
    assert found["code"] in (0, None), arguments
    return found["modules"]


if __name__ == "__main__":
    for name in (*SHARED, *filter(None, sys.argv[1].split(","))):
        import_module(name)
    shared = sorted(sys.modules)
    print(json.dumps([shared, *(modules_after(json.loads(command)) for command in sys.argv[2:])]))
