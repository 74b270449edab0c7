"""`cepheid console`: a local page to write queries and to see what they find."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

import cepheid
from cepheid.cli import options as o
from cepheid.cli.groups import Columns
from cepheid.cli.messages import note, out
from cepheid.cli.query_argument import load_functions

_Paths = Annotated[
    list[str] | None, typer.Argument(metavar="[PATH]...", help="Events to open: files, directories or globs.")
]
_Host = Annotated[
    str, typer.Option(metavar="NAME", help="The address to listen on; other machines can reach any but the default.")
]
_Port = Annotated[int, typer.Option(metavar="N", help="The port; 0 picks a free one.", min=0, max=65535)]
_NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address only.")]


def console(
    paths: _Paths = None,
    *,
    columns: Columns,
    time_format: o.TimeFormat = None,
    model: o.ModelPath = None,
    scoring: o.Scoring = "exact",
    functions: o.FunctionsPath = None,
    host: _Host = "127.0.0.1",
    port: _Port = 0,
    no_browser: _NoBrowser = False,
) -> None:
    """Serve a local web page to write queries, see their errors, run them on tables and streams, and ask why.

    The address contains a token, and the page needs it. The page loads nothing from elsewhere.

    Example:

        cepheid console events.parquet
    """
    from cepheid.console.server import LOOPBACK, Server, need_packages
    from cepheid.console.workspace import Workspace

    need_packages()
    load_functions(functions)
    given = {"model": cepheid.load_model(model), "scoring": scoring} if model is not None else {}
    workspace = Workspace(given=given)
    for path in paths or ():
        workspace.open(path, columns.roles(), time_format)
    server = Server(workspace, host, port)
    if host not in LOOPBACK:
        note("anyone who can reach this machine and has the token can read its files through the console")
    out.print(f"The console is at {server.address} (Ctrl-C ends it)", soft_wrap=True)
    if not no_browser:
        webbrowser.open(server.address)
    server.serve()
