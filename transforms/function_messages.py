"""Messages between the process that asks a function and the process that runs it; see `run_function`."""

READY, DENIED, FAILED, RUN, END = b"r", b"d", b"f", b"g", b"e"
"""On the control socket: started, no sandbox here, failed to import, run a child, end it (and confirm it)."""

PROCESS, SANDBOX = "process", "sandbox"
"""How a function is kept apart: in processes of its own, or also in namespaces of their own."""
