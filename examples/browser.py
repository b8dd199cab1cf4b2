"""Look at pages in a real browser, Chromium: at the widths of a desktop and a phone, light and dark.

`make gallery` takes its screenshots by it, and a test looks at pages with hostile names and long tables.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page, sync_playwright

WIDTHS = {"desktop": 1280, "phone": 390}
"""Pixels."""

THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")

_HEIGHT = 900
_COMMANDS = ("chromium", "chromium-browser", "google-chrome")

_CONTRAST = 3.0
"""The least ratio of brightness of text and ground, which WCAG 2.1 asks for large texts and pictures."""

_FAINT = """least => {
  const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = element => {
    for (; element; element = element.parentElement) {
      const color = parts(getComputedStyle(element).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of [...document.querySelectorAll("main *")].slice(0, 5000)) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGElement;
    if (!own || element.tagName === "title" || (drawn && style.stroke !== "none")) continue;
    const [a, b] = [light(parts(drawn ? style.fill : style.color)), light(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < least) found.push(element.textContent.slice(0, 40));
  }
  return found;
}"""
"""Texts that are hard to read: those of less contrast than `least`, among the first 5,000 elements.

The halo of a text has a stroke, and is left out."""


class NoBrowser(RuntimeError):
    """No browser is installed."""


class Trouble(AssertionError):
    """A page is not as it should be in a browser."""


@contextmanager
def browser() -> Iterator[Browser]:
    """Give a browser that is ended afterwards.

    Raises:
        NoBrowser: none is on the path.
    """
    found = next(filter(None, map(shutil.which, _COMMANDS)), None)
    if found is None:
        raise NoBrowser("chromium is not on the path: install Chromium (Debian: chromium).")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found)
        try:
            yield started
        finally:
            started.close()


def look(started: Browser, file: Path) -> Iterator[tuple[str, str, Page]]:
    """Open a page, and yield it at each width and in each theme, with the names of both.

    Raises:
        Trouble: the page writes to the console, loads something, is wider than the window, or has a text that
            is hardly seen.
    """
    heard: list[str] = []
    page = started.new_page()
    page.on("console", lambda message: heard.append(f"a message: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"an error: {error}"))
    page.on("request", lambda asked: asked.url == file.as_uri() or heard.append(f"loads {asked.url}"))
    page.on("dialog", lambda dialog: (heard.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
    try:
        page.goto(file.as_uri())
        for device, width in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": _HEIGHT})
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                heard += _seen(page, width)
                if heard:
                    raise Trouble(f"{file.name}, {device}, {theme}: {'; '.join(heard)}")
                yield device, theme, page
    finally:
        page.close()


def _seen(page: Page, width: int) -> list[str]:
    wide: int = page.evaluate("document.documentElement.scrollWidth")
    faint: list[Any] = page.evaluate(_FAINT, _CONTRAST)
    troubles = [f"it is {wide} pixels wide"] if wide > width else []
    return [*troubles, f"hardly seen: {faint}"] if faint else troubles
