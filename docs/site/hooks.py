"""What the site needs besides the pages.

Links that leave docs/ lead to the sources, which the site does not hold: on a code host they open the file, in the
site they become plain text, and pictures are copied. Links that bear the name of a file bear the title of its page.
The search works from disk, with a script of our own where the theme would load one from the network.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

_LINK = re.compile(r'(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?(?:\s+"[^"]*")?\)')
_COPIED = "img/from-elsewhere"
_FROM_THE_NETWORK = "https://unpkg.com/iframe-worker/shim"
_SEARCH = "assets/search-from-disk.js"


def on_files(files: Files, config: Any) -> Files:
    """Adds the pictures that pages show from outside docs/."""
    root = Path(config["docs_dir"])
    for file in list(files.documentation_pages()):
        for picture, _, target, _ in _LINK.findall(file.content_string):
            source = _outside(root, file.src_uri, target)
            if picture and source is not None:
                files.append(File.generated(config, f"{_COPIED}/{source.name}", content=source.read_bytes()))
    script = (root / "site" / "search-from-disk.js").read_text(encoding="utf-8")
    files.append(File.generated(config, _SEARCH, content=script))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrites the links that leave docs/."""
    root = Path(config["docs_dir"])
    up = "../" * (len(PurePosixPath(page.file.src_uri).parts) - 1)

    def rewritten(found: re.Match[str]) -> str:
        picture, text, target, place = found.groups()
        source = _outside(root, page.file.src_uri, target)
        if source is None and not picture and text.strip("`").endswith(".md"):
            title = _title((root / page.file.src_uri).parent / target)
            return f"[{title or text}]({target}{place or ''})"
        if source is None:
            return found[0]
        return f"![{text}]({up}{_COPIED}/{source.name})" if picture else text

    return _LINK.sub(rewritten, markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The search needs nothing from the network."""
    up = "../" * (len(PurePosixPath(page.file.dest_uri).parts) - 1)
    return output.replace(_FROM_THE_NETWORK, f"{up}{_SEARCH}")


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """The same for the page that says that there is no such page."""
    return output.replace(_FROM_THE_NETWORK, f"/{_SEARCH}")


def _title(path: Path) -> str | None:
    """The first heading of a page."""
    if not path.is_file():
        return None
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].strip().replace("[", "").replace("]", "") if found else None


def _outside(root: Path, page: str, target: str) -> Path | None:
    """The file that a link leads to, if that lies outside docs/."""
    if re.match(r"[a-z]+:|/", target):
        return None
    path = (root / page).parent.joinpath(target).resolve()
    return None if path.is_relative_to(root.resolve()) else path
