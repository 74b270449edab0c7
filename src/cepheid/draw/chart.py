"""Charts that open offline: an altair chart that shows itself as a drawing, without anything from the network."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from cepheid.errors import CepheidError

VEGA_LITE = "6.4"  # the version that vl-convert draws with, and that pages carry
_KINDS = (".svg", ".png", ".html", ".json")


@dataclass(frozen=True)
class Chart:
    """A chart with a name for who cannot see it. In a notebook it is a drawing; `altair` is the chart to go on with.

    Altair's own way to show charts loads scripts from the network; this one needs none.
    """

    altair: Any
    name: str

    def to_dict(self) -> dict[str, Any]:
        """As Vega-Lite."""
        found: dict[str, Any] = self.altair.to_dict()
        return found

    def svg(self) -> str:
        """As a drawing."""
        drawing: str = _vl_convert().vegalite_to_svg(json.dumps(self.to_dict()), vl_version=VEGA_LITE)
        return drawing.replace("<svg", f'<svg role="img" aria-label="{escape(self.name, quote=True)}"', 1)

    def save(self, path: str | Path) -> None:
        """Writes it: .svg, .png, .json (Vega-Lite), or .html, a page that opens offline and answers the mouse."""
        path = Path(path)
        match path.suffix.lower():
            case ".svg":
                path.write_text(self.svg(), encoding="utf-8")
            case ".png":
                path.write_bytes(
                    _vl_convert().vegalite_to_png(json.dumps(self.to_dict()), vl_version=VEGA_LITE, scale=2)
                )
            case ".html":
                page = _vl_convert().vegalite_to_html(json.dumps(self.to_dict()), vl_version=VEGA_LITE, bundle=True)
                path.write_text(page, encoding="utf-8")
            case ".json":
                path.write_text(json.dumps(self.to_dict(), indent=2), encoding="utf-8")
            case other:
                raise CepheidError(f"no format for '{other}'", hint=f"use one of {', '.join(_KINDS)}")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        return {"image/svg+xml": self.svg(), "text/plain": self.name}


def _vl_convert() -> Any:
    try:
        import vl_convert
    except ImportError:
        hint = "pip install 'cepheid[report]'"
        raise CepheidError("charts need the packages altair and vl-convert-python", hint=hint) from None
    return vl_convert
