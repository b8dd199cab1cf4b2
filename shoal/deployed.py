"""What the scripts of deploy/ import. They run in a checkout, and where Shoal is installed."""

from pipelines.cli import app
from pipelines.storage.locate import open_file

__all__ = ["app", "open_file"]
