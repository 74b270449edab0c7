"""The site that `make docs` builds: without warnings, without a dead link, and without anything from elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parent.parent


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
