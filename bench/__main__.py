"""Runs benchmarks: `python -m bench [NAME ...] [--quick]`. Without names, all of them."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path


def main() -> None:
    """Each benchmark is a module of this package with `main(quick) -> dict`."""
    here = Path(__file__).parent
    names = sorted(path.stem for path in here.glob("*.py") if not path.stem.startswith("_") and path.stem != "measure")
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*names, []], help=f"which: {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything works")
    chosen = parser.parse_args()
    for name in chosen.names or names:
        print(f"\n=== {name} ===")
        importlib.import_module(f"bench.{name}").main(chosen.quick)


if __name__ == "__main__":
    main()
