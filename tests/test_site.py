"""The site that `make docs` builds: without warnings, without a dead link, and without anything from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from console_page.browser import Browser

ROOT = Path(__file__).parent.parent


pytestmark = pytest.mark.slow  # it builds the whole site


class Seen(HTMLParser):
    """What a page loads, where it leads, and which of its places can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.places |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        elif tag == "link" and named.get("rel") != "canonical":
            self.loaded.append(named.get("href", ""))
        elif tag in ("script", "img", "iframe", "source") and "src" in named:
            self.loaded.append(named["src"])


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Seen]:
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=quiet)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    found = {}
    for path in site.rglob("*.html"):
        found[path] = Seen()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


def test_every_page_of_the_documentation_is_there(pages: dict[Path, Seen]) -> None:
    written = {path.stem for path in (ROOT / "docs").rglob("*.md")} - {"README"}
    assert written <= {path.stem for path in pages}


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Seen]) -> None:
    for path, seen in pages.items():
        for address in seen.loaded:
            assert not urlsplit(address).netloc, f"{path.name} loads {address}"
            target = path.parent / unquote(urlsplit(address).path)
            assert path.name == "404.html" or target.exists(), f"{path.name} loads {address}, which is not there"


def test_every_link_within_the_site_leads_somewhere(pages: dict[Path, Seen]) -> None:
    for path, seen in pages.items():
        if path.name == "404.html":  # its addresses begin at the root of a server
            continue
        for address in seen.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target in pages, f"{path.name} links to {address}"
            assert not parts.fragment or unquote(parts.fragment) in pages[target].places, f"{path.name}: {address}"


def test_links_say_where_they_lead(pages: dict[Path, Seen]) -> None:
    for path in pages:
        text = path.read_text(encoding="utf-8")
        bare = re.findall(r"<a [^>]*>(?:<code>)?([\w/-]+\.md)(?:</code>)?</a>", text)
        assert not bare, f"{path.name}: {bare}"
        assert not re.search(r"<a [^>]*>\s*(here|this|link)\s*</a>", text, re.IGNORECASE), path.name


def test_light_can_be_switched(pages: dict[Path, Seen]) -> None:
    home = next(path for path in pages if path.name == "tutorial.html").read_text(encoding="utf-8")
    assert "Switch to dark" in home


@pytest.mark.slow
def test_the_search_works_from_disk(pages: dict[Path, Seen], tmp_path: Path) -> None:
    page = next(path for path in pages if path.name == "tutorial.html")
    browser = Browser(tmp_path)
    try:
        browser.open(page.as_uri())
        browser.run("document.querySelector('[data-md-toggle=search]').click()")
        browser.run("document.querySelector('[data-md-component=search-query]').focus()")
        browser.type("[data-md-component=search-query]", "threshold")
        found = browser.until("return document.querySelector('.md-search-result__list')?.innerText", seconds=30)
    finally:
        browser.close()
    assert "threshold" in found.lower()
