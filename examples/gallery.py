"""Run the examples; write the answer of each, and its pictures, into the documentation: `make gallery`.

The outputs of the notebook are written again, too.

The page docs/tasks/TASK.md gets the answer of examples/TASK.yaml, as a terminal shows it, and
docs/gallery/TASK.png the first picture of its report. docs/gallery/TASK-DEVICE-THEME.png are screenshots of
the report in a browser. Noise is drawn again at each call.
"""

import io
import os
import re
import tempfile
from pathlib import Path

import vl_convert
import yaml
from PIL import Image
from playwright.sync_api import Browser

import shoal
from examples import notebook
from examples.browser import browser, look
from examples.make_data import write

EXAMPLES = Path(__file__).resolve().parent
DOCS = EXAMPLES.parent / "docs"
STYLE = EXAMPLES.parent / "pipelines" / "report" / "style.css"

_WIDTH = 600
"""Pixels of a picture."""

_TONES = 64
"""Colors of a picture, which make it a third as large."""

_BOTTOM = "Math.ceil(document.querySelector('.figures').getBoundingClientRect().bottom + scrollY) + 24"

_ANSWER = re.compile(r"(?<=^## An answer\n\n```text\n).*?(?=^```)", re.M | re.S)


def picture(report: str) -> bytes:
    """Return the first picture of a report as a PNG, in the colors of the light theme on paper."""
    found = re.search(r"<svg.*?</svg>", report, re.S)
    if found is None:
        raise ValueError("The report has no picture.")
    light = STYLE.read_text().partition("@media")[0]
    colors = dict(re.findall(r"(--[\w]+): ([^;]+);", light))
    svg = re.sub(r"var\((--\w+)\)", lambda name: colors[name[1]], found[0])
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups())  # type: ignore[union-attr]
    paper = f'<rect width="100%" height="100%" fill="{colors["--card"]}"/>'
    size = f'width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="Liberation Sans"'
    svg = svg.replace("<svg", head, 1).replace("</title>", f"</title>{paper}", 1)
    return vl_convert.svg_to_png(svg, scale=_WIDTH / width)


def save(png: bytes, name: str) -> None:
    """Write a picture of the gallery, in few colors."""
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(_TONES, dither=Image.Dither.NONE)
    image.save(DOCS / "gallery" / f"{name}.png", optimize=True)


def shoot(started: Browser, task: str, report: str) -> None:
    """Write screenshots of a report, from its head to its pictures, at each width and in each theme.

    Raises:
        Trouble: see `look`.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{task}.html"
        file.write_text(report, encoding="utf-8")
        for device, theme, page in look(started, file):
            clip = {"x": 0, "y": 0, "width": page.viewport_size["width"], "height": page.evaluate(_BOTTOM)}
            save(page.screenshot(full_page=True, clip=clip), f"{task}-{device}-{theme}")


def main() -> None:
    """Write answers and pictures of all examples."""
    write()
    os.chdir(EXAMPLES)
    with browser() as started:
        _draw_all(started)
    notebook.write()


def _draw_all(started: Browser) -> None:
    for file in sorted(EXAMPLES.glob("*.yaml")):
        job = yaml.safe_load(file.read_text())
        del job["output"]
        release = shoal.run(job)
        page = DOCS / "tasks" / f"{file.stem}.md"
        text = "\n".join(line.rstrip() for line in str(release).strip().splitlines()) + "\n"
        page.write_text(_ANSWER.sub(lambda _, text=text: text, page.read_text(), count=1))
        save(picture(release.report), file.stem)
        shoot(started, file.stem, release.report)


if __name__ == "__main__":
    main()
