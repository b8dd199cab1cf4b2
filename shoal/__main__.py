"""The command: `shoal`, or `python -m shoal`."""

from pipelines.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
