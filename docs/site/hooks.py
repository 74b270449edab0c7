"""What the site needs besides the pages: links that leave docs/ lead to the sources, which the site does not hold.

On a code host such links open the file. In the site they become plain text, and pictures are copied.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_COPIED = "img/from-elsewhere"


def on_files(files: Files, config: Any) -> Files:
    """Adds the pictures that pages show from outside docs/."""
    root = Path(config["docs_dir"])
    for file in list(files.documentation_pages()):
        for picture, _, target, _ in _LINK.findall(file.content_string):
            source = _outside(root, file.src_uri, target)
            if picture and source is not None:
                files.append(File.generated(config, f"{_COPIED}/{source.name}", content=source.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrites the links that leave docs/."""
    root = Path(config["docs_dir"])
    up = "../" * (len(PurePosixPath(page.file.src_uri).parts) - 1)

    def rewritten(found: re.Match[str]) -> str:
        picture, text, target, _ = found.groups()
        source = _outside(root, page.file.src_uri, target)
        if source is None:
            return found[0]
        return f"![{text}]({up}{_COPIED}/{source.name})" if picture else text

    return _LINK.sub(rewritten, markdown)


def _outside(root: Path, page: str, target: str) -> Path | None:
    """The file that a link leads to, if that lies outside docs/."""
    if re.match(r"[a-z]+:|/", target):
        return None
    path = (root / page).parent.joinpath(target).resolve()
    return None if path.is_relative_to(root.resolve()) else path
