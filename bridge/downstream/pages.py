"""Pages for machines beside an MCP endpoint, such as its metrics: behind the same guard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bridge.downstream.guard import Refused
from bridge.downstream.web import App

METHODS: Final = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Load:
    """What goes on in a front at this moment: requests that run calls, and legacy sessions."""

    calls: int
    sessions: int


class Page(Protocol):
    """What is shown at one path of one front."""

    def open(self, load: Callable[[], Load]) -> None:
        """Begin; `load` says what goes on in the front, whenever it is asked in the event loop."""
        ...

    async def body(self) -> tuple[str, bytes]:
        """The media type and the body of an answer."""
        ...


NO_PAGES: Final[Mapping[str, Page]] = MappingProxyType({})


def beside(app: App, pages: Mapping[str, Page], load: Callable[[], Load]) -> App:
    """The app with these pages beside it; the very app if there are none."""
    if not pages:
        return app

    for page in pages.values():
        page.open(load)

    return Pages(app, pages)


class Pages:
    """An app of ours with pages beside it, by path, as an app behind the guard."""

    def __init__(self, app: App, pages: Mapping[str, Page]) -> None:
        self._app = app
        self._pages = pages

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one HTTP request.

        Raises:
            Refused: It cannot be answered; the exception holds what is.
        """
        page = self._pages.get(scope["path"])
        if page is None:
            return self._app(scope, receive, send)

        return self._show(page, scope, receive, send)

    async def _show(self, page: Page, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in METHODS:
            raise Refused(405, "method not allowed", {"Allow": ", ".join(METHODS)})

        kind, body = await page.body()
        await Response(body, headers={"Content-Type": kind})(scope, receive, send)

    async def run(self) -> None:
        """Do what the app has to do beside the requests, until cancelled."""
        await self._app.run()

    def end_streams(self) -> None:
        """End every response that is no answer to a request."""
        self._app.end_streams()
