"""A module that cannot be imported, by an error whose name is a sentence and forges a worker's mark."""

raise type('row 4711; shoal-error: [2, "row 4711"]', (Exception,), {})
