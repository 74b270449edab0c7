"""The console's server: one page and its answers, for whoever has the token, on this machine unless told otherwise."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.console import answers
from cepheid.console.streams import Streams
from cepheid.console.workspace import Workspace
from cepheid.errors import CepheidError
from cepheid.simulate import retail_visits

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_STATIC = Path(__file__).parent / "static"
_HEADERS = {
    # Nothing from elsewhere, no scripts in the page itself: a name or value that looks like one stays text.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
# Whoever comes without the token is told where it is, and can give it.
_REFUSED_HEADERS = {
    **_HEADERS,
    "Content-Security-Policy": _HEADERS["Content-Security-Policy"].replace("form-action 'none'", "form-action 'self'"),
}
_REFUSED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cepheid console</title></head>
<body><h1>Cepheid console</h1><p>{}.</p>
<p>It is in the address that <code>cepheid console</code> printed in its terminal, after <code>token=</code>; a console
that was started again has a new one.</p>
<form action="/" method="get"><label>Token <input name="token" autocomplete="off" autofocus></label>
<button type="submit">Open</button></form></body></html>
"""
_LARGEST = 1 << 20  # bytes of a request
Answer = Callable[[dict[str, Any]], dict[str, Any]]


def need_packages() -> None:
    """An error that says how to get what the console needs."""
    try:
        import starlette
        import uvicorn  # noqa: F401
    except ImportError:
        hint = "pip install 'cepheid[console]'"
        raise CepheidError("the console needs the packages starlette and uvicorn", hint=hint) from None
    assert starlette


def console_app(workspace: Workspace, token: str, host: str = "127.0.0.1", streams: Streams | None = None) -> Starlette:
    """The application. Every request needs the token: in the address, which then becomes a cookie."""
    need_packages()
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.responses import FileResponse, JSONResponse, StreamingResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    streams = streams or Streams(workspace.given)

    async def page(_: Request) -> Response:
        return FileResponse(_STATIC / "index.html", media_type="text/html")

    def answering(answer: Answer) -> Callable[[Request], object]:
        async def respond(request: Request) -> Response:
            if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                return JSONResponse({"error": {"message": "JSON is needed"}}, 415)
            body = await request.body()
            if len(body) > _LARGEST:
                return JSONResponse({"error": {"message": "the request is too large"}}, 413)
            try:
                asked = json.loads(body)
                if not isinstance(asked, dict):
                    raise ValueError("a JSON object is needed")
                return JSONResponse(await run_in_threadpool(answer, asked))
            except CepheidError as error:
                return JSONResponse({"error": answers.error_of(error)}, 400)
            except (KeyError, TypeError, ValueError, RecursionError) as error:
                return JSONResponse({"error": {"message": f"{type(error).__name__}: {error}"}}, 400)

        return respond

    async def news(request: Request) -> Response:
        try:
            stream = streams.stream(int(request.path_params["number"]))
        except CepheidError as error:
            return JSONResponse({"error": answers.error_of(error)}, 404)

        async def lines() -> AsyncIterator[str]:
            heard = stream.listen(patience=2.0)
            try:
                while True:
                    item = await run_in_threadpool(next, heard, _END)
                    if item is _END or await request.is_disconnected():
                        return
                    yield ": still here\n\n" if item is None else f"data: {json.dumps(item)}\n\n"
            finally:  # a stream runs for the page that watches it
                stream.stopped.set()

        return StreamingResponse(lines(), media_type="text/event-stream")

    @asynccontextmanager
    async def until_the_end(_: Starlette) -> AsyncIterator[None]:
        yield
        streams.stop()

    routes: list[Any] = [
        Route("/", page),
        Route("/api/stream/{number:int}", news),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]
    for name, answer in _answers(workspace, streams).items():
        routes.append(Route(f"/api/{name}", answering(answer), methods=["POST"]))
    guard = Middleware(Guard, token=token, hosts=(*LOOPBACK, host))
    return Starlette(routes=routes, middleware=[guard], lifespan=until_the_end)


_END = object()


def _answers(workspace: Workspace, streams: Streams) -> dict[str, Answer]:
    def tables(_: dict[str, Any]) -> dict[str, Any]:
        known = [stream for stream in streams.running.values() if stream.query is not None]
        watched = [{"number": stream.number, "query": stream.query} for stream in known]
        return {"tables": [table.told() for table in workspace.tables.values()], "streams": watched}

    def opened(asked: dict[str, Any]) -> dict[str, object]:
        how = [str(asked[name]).strip() or None if asked.get(name) else None for name in ("time_format", "format")]
        return {"opened": workspace.open(str(asked["path"]).strip(), None, *how).told()}

    def example(asked: dict[str, Any]) -> dict[str, Any]:
        if asked.get("table"):
            return {"query": answers.example_of(workspace.table(asked["table"]))}
        day = retail_visits(300, loss=0.0, theft=0.2, timestamps=True, seed=1).events
        return {"opened": workspace.add("example: a store", day).told()}

    def roles(asked: dict[str, Any]) -> dict[str, Any]:
        return {"opened": workspace.with_roles(str(asked["table"]), asked).told()}

    def start(asked: dict[str, Any]) -> dict[str, Any]:
        table = workspace.table(asked.get("table"))
        speed = min(max(float(asked.get("per_second") or 1000.0), 1.0), 1e7)
        text, delay = str(asked.get("text") or ""), str(asked.get("delay") or "")
        return {"stream": streams.start(text, table, speed, delay, bool(asked.get("watch"))).number}

    def stop(asked: dict[str, Any]) -> dict[str, Any]:
        streams.stream(int(asked["stream"])).stopped.set()
        return {}

    return {
        "tables": tables,
        "open": opened,
        "roles": roles,
        "example": example,
        "check": lambda asked: answers.check(workspace, asked),
        "complete": lambda asked: answers.completions(workspace, asked),
        "run": lambda asked: answers.run(workspace, asked),
        "more": lambda asked: answers.more(workspace, asked),
        "explain": lambda asked: answers.explain(workspace, asked),
        "why": lambda asked: answers.why(workspace, asked),
        "forecast": lambda asked: answers.forecast(workspace, asked),
        "stream": start,
        "stop": stop,
    }


class Guard:
    """Lets in who has the token, from a page of this server: no other site, and no other name for this machine."""

    def __init__(self, app: Any, token: str, hosts: tuple[str, ...]) -> None:
        self.app, self.token, self.hosts = app, token, hosts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Checks host, origin and token of a request, and adds the headers that keep the page to itself."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        from starlette.requests import Request
        from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse

        request = Request(scope)
        refusal = self.refusal(request)
        if refusal is not None:
            response: Response = PlainTextResponse(refusal, 403, headers=_HEADERS)
            if request.url.path == "/":
                response = HTMLResponse(_REFUSED.format(escape(refusal)), 403, headers=_REFUSED_HEADERS)
            await response(scope, receive, send)
            return
        if request.url.path == "/" and "token" in request.query_params:
            entered = RedirectResponse("/", 303, headers=_HEADERS)
            entered.set_cookie(self.cookie(request), self.token, httponly=True, samesite="strict")
            await entered(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await self.app(scope, receive, with_headers)

    def refusal(self, request: Request) -> str | None:
        """Why a request is not let in, or None."""
        host = request.headers.get("host", "")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if name not in self.hosts:
            return f"the console does not accept requests for the host {name}"
        origin = request.headers.get("origin")
        if origin is not None and origin != f"{request.url.scheme}://{host}":
            return "the console accepts requests from its own page only"
        given = request.query_params.get("token") or request.cookies.get(self.cookie(request)) or ""
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return "the console needs the token: open the address that it printed"
        return None

    def cookie(self, request: Request) -> str:
        """Its name; cookies of one machine are shared by its ports."""
        return f"cepheid-{request.url.port or 80}"


class Server:
    """A console that runs in a thread, for tests and notebooks; `address` opens it."""

    def __init__(
        self, workspace: Workspace, host: str = "127.0.0.1", port: int = 0, streams: Streams | None = None
    ) -> None:
        need_packages()
        import uvicorn

        self.token = secrets.token_urlsafe(16)
        self.host = host
        settings = uvicorn.Config(
            console_app(workspace, self.token, host, streams), host=host, port=port, log_level="warning", lifespan="on"
        )
        self.server = uvicorn.Server(settings)
        self.socket = settings.bind_socket()
        self.port = int(self.socket.getsockname()[1])

    @property
    def address(self) -> str:
        """The page, with the token."""
        return f"http://{self.host}:{self.port}/?token={self.token}"

    def serve(self) -> None:
        """Serves until it is interrupted."""
        self.server.run(sockets=[self.socket])

    def start(self) -> Server:
        """Serves in a thread, and is ready on return."""
        threading.Thread(target=self.serve, daemon=True).start()
        while not self.server.started:
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """Ends the thread."""
        self.server.should_exit = True
