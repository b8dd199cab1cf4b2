"""Make the site of pages that are in the tree: the reference from docstrings, and links between both.

Pages are plain markdown, whose relative links work in the tree. The site has them in other places: each
module gets a page made from its docstrings, and the pages beside the code come along. So links are rewritten
here, and a code span that is the full name of something in the packages becomes a link to it. A link or name
that leads nowhere is a warning, and `strict` makes it an error.
"""

import posixpath
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from properdocs.config.defaults import ProperDocsConfig
from properdocs.structure.files import File, Files
from properdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("core", "transforms", "pipelines", "shoal")
NAMED = ("core", "transforms", "pipelines", r"shoal\.analyses")  # shoal.core is a name of what is installed
BESIDE_CODE = ("*.md", *(f"{folder}/**/*.md" for folder in (*PACKAGES, "deploy", "examples", "tests")))
"""Pages that are not in docs/."""


def modules() -> list[str]:
    """Return every public module, as its path below the root."""
    found = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    paths = (path.relative_to(ROOT) for path in found)
    return [path.as_posix() for path in paths if not any(part.startswith("_") for part in path.parts)]


def pages() -> list[str]:
    """Return every page beside the code, as its path below the root."""
    found = (path.relative_to(ROOT).as_posix() for pattern in BESIDE_CODE for path in ROOT.glob(pattern))
    return sorted(found)


def place(path: str) -> str | None:
    """Return where the site has a file or folder of the tree: below docs_dir; None where it has it not."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path in modules():
        return f"reference/{path.removesuffix('.py')}.md"
    if (ROOT / path).is_dir():
        readme = f"{path}/README.md"
        return f"repository/{readme}" if (ROOT / readme).is_file() else None
    return f"repository/{path}" if (ROOT / path).is_file() else None


def on_config(config: ProperDocsConfig) -> ProperDocsConfig:
    """Add the generated pages to the navigation, and links for full names to the markdown."""
    reference: dict[str, Any] = {}
    for module in modules():
        *folders, file = module.split("/")
        inside = reference
        for folder in folders:
            inside = inside.setdefault(folder, {})
        inside[file] = place(module)
    repository = [{page: place(page)} for page in pages()]
    config.nav = [*(config.nav or []), {"Reference": _listed(reference)}, {"Beside the code": repository}]
    config.markdown_extensions.append(FullNames())
    return config


def _listed(tree: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: _listed(inside) if isinstance(inside, dict) else inside} for name, inside in tree.items()]


def on_files(files: Files, config: ProperDocsConfig) -> Files:
    """Add a page for every module, the pages beside the code, and the other files that pages link to."""
    for module in modules():
        name = module.removesuffix(".py").replace("/", ".")
        files.append(File.generated(config, str(place(module)), content=f"::: {name}\n"))
    linked = set(pages())
    written = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
    for page in (*pages(), *written):
        linked |= {path for path in _links(page) if (ROOT / path).is_file() and not path.startswith("docs/")}
    for path in sorted(linked - set(modules())):
        files.append(File.generated(config, f"repository/{path}", abs_src_path=str(ROOT / path)))
    return files


_LINK = re.compile(r'(\]\(|src=")([^)\s"#]+)')


def _links(page: str) -> set[str]:
    """Return what a page of the tree links to, as paths below the root."""
    return {
        _target(page, link)
        for _, link in _LINK.findall((ROOT / page).read_text(encoding="utf-8"))
        if "://" not in link and not link.startswith("mailto:")
    }


def _target(page: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def on_page_markdown(markdown: str, page: Page, config: ProperDocsConfig, files: Files) -> str:
    """Lead each relative link to where the site has what it leads to."""
    uri = page.file.src_uri
    if uri.startswith("reference/"):
        return markdown
    source = uri.removeprefix("repository/") if uri.startswith("repository/") else f"docs/{uri}"

    def moved(match: re.Match[str]) -> str:
        before, link = match.groups()
        if "://" in link or link.startswith("mailto:"):
            return match.group()
        target = _target(source, link)
        to = place(target)
        if to is None and (ROOT / target).is_dir():  # a folder of code without a page: its modules
            inside = [module for module in modules() if module.startswith(f"{target}/")]
            to = place(inside[0]) if inside else None
        return before + (posixpath.relpath(to, posixpath.dirname(uri)) if to else link)

    return _LINK.sub(moved, markdown)


class FullNames(Extension):
    """Make a link of each code span that is the full name of something in the packages."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Look before the code spans of markdown itself do."""
        name = rf"(?<![`\w])`((?:{'|'.join(NAMED)})(?:\.[A-Za-z]\w*)+)`(?!`)"
        md.inlinePatterns.register(_FullName(name, md), "full-names", 195)


class _FullName(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:
        link = Element("autoref", {"identifier": m.group(1)})
        SubElement(link, "code").text = m.group(1)
        return link, m.start(0), m.end(0)
