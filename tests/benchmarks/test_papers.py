"""The papers' figures can be drawn again: the smallest form of each part writes its tables and figures."""

import re
from pathlib import Path

import pytest

from tests.benchmarks.papers.__main__ import DOCS, PARTS, reproduce
from tests.benchmarks.papers.panel import SMALLEST, Panel


@pytest.mark.parametrize("part", PARTS)
def test_the_smallest_form_writes_tables_and_figures(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOAL_DATA", raising=False)
    page, text = tmp_path / "papers.md", DOCS.read_text()
    page.write_text(re.sub(r"( -->\n).*?(<!-- end -->)", r"\1\2", text, flags=re.S))
    reproduce(page, SMALLEST, [part])
    written = re.findall(r"<!-- table: (\S+) -->\n\n\| .* \|\n(?:\|.*\|\n)+\n<!-- end -->", page.read_text())
    measured = [name for name in re.findall(r"<!-- table: (\S+) -->", text) if name.startswith(part)]
    assert written == measured[:1]
    figures = {path.stem for path in (tmp_path / "papers").glob("*.svg")}
    assert figures == set(written) - {"one-cluster"}


def test_the_page_shows_the_figures_that_there_are() -> None:
    shown = set(re.findall(r"\]\(papers/(\S+)\.svg\)", DOCS.read_text()))
    assert shown == {path.stem for path in DOCS.with_suffix("").glob("*.svg")}


def test_a_table_goes_between_its_comments_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- table: x -->\nold\n<!-- end -->\nb\n")
    Panel("x", ("one", "two"), [("1", "|X|")]).write(page)
    assert page.read_text() == (
        "a\n<!-- table: x -->\n\n| one | two |\n| --- | --- |\n| 1 | \\|X\\| |\n\n<!-- end -->\nb\n"
    )
    with pytest.raises(ValueError, match="0 places for the table y"):
        Panel("y", ("one",), [("1",)]).write(page)
