"""bridge as the OAuth client of an HTTP upstream (MCP, authorization).

Tokens come from the SDK's provider, which does discovery, registration, PKCE and the checks that
belong to them; they ride on requests as any header does. A token is renewed without a person. Where
a person must log in, one is asked only if this process was told how; otherwise the upstream's
reason says which command does it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import anyio
from mcp.client.auth import AuthorizationCodeResult
from mcp.client.auth.utils import union_scopes

from bridge.telemetry import log
from bridge.upstream.channel import ChannelError, HttpStatusError
from bridge.upstream.credentials import LoginNeeded, Refusal
from bridge.upstream.oauth_flow import Client, Flow, Keeping
from bridge.upstream.oauth_loopback import LoginFailed, is_free, open_loopback
from bridge.upstream.oauth_registration import Registration, bound, callbacks
from bridge.upstream.oauth_store import Record, Store
from bridge.upstream.owner import PerLoop

LOGIN_SECONDS = 300.0  # for a person to log in
TURN_SECONDS = 30.0  # for another process to be done with the same login
MOST_LOGINS = 3
"""How often a person is asked within `LOGINS_SECONDS`, so that a server cannot ask for ever."""

LOGINS_SECONDS = 300.0
UNUSED = "http://127.0.0.1/callback"  # the callback where no person is asked
REFUSED_SECONDS = 30.0  # in which a login that failed is not asked for again

Login: TypeAlias = Callable[[str, str], Awaitable[None]]
"""Takes an upstream's name and the URL where a person logs in to it, and shows it to one."""


@dataclass(slots=True)
class _Patience:
    """How often a person was asked, and how it went."""

    asked_at: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_LOGINS))
    failed_at: float = float("-inf")
    failure: str = ""


class OAuth:
    """One upstream's login: its `Credentials`, for every connection to it."""

    def __init__(
        self,
        name: str,
        url: str,
        store: Path,
        registration: Registration,
        login: Login | None = None,
    ) -> None:
        """`login` shows a person where to log in; without it nobody is asked."""
        self._name = name
        self._url = url
        self._path = store
        self._registration = registration
        self._login = login
        self._begin()

    def _begin(self) -> None:
        self._store = Store(self._path)
        self._record = Record()
        self._turns = PerLoop(anyio.Lock)
        self._patience = _Patience()
        self._is_anew = False

    def __getstate__(self) -> dict[str, object]:
        """What survives pickling: everything but what is alive."""
        alive = {"_store", "_record", "_turns", "_patience", "_is_anew"}
        return {name: value for name, value in self.__dict__.items() if name not in alive}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Begin anew from what survived."""
        self.__dict__.update(state)
        self._begin()

    def header(self) -> str | None:
        """See `Credentials.header`."""
        return None if self._is_anew else self._record.header

    async def current(self) -> str | None:
        """See `Credentials.current`."""
        if self._is_anew:
            return None

        if self._record.tokens is None:
            self._record = self._registration.settle(await self._store.read())

        if self._record.header is None and self._record.is_renewable:
            async with self._turn():
                if self._record.header is None and await self._renewed(""):
                    return self._presented()

        return self._record.header

    async def renewed(self, refusal: Refusal, used: str | None, *, again: bool) -> str:
        """See `Credentials.renewed`."""
        async with self._turn():
            header = self.header()
            if header is not None and header != used:
                return header  # somebody else was refused before us, and has what is needed

            is_expired = refusal.status == 401 and not again and not self._is_anew
            if is_expired and self._record.is_renewable and await self._renewed(refusal.version):
                return self._presented()

            if self._login is None:
                raise await self._nobody(refusal)

            await self._asked(refusal, self._login)
            return self._presented()

    async def log_in(self) -> None:
        """Have a person log in, whether the server asked for that or not.

        Raises:
            ChannelError: Nothing came of it.
        """
        assert self._login is not None
        async with self._turn():
            await self._asked(Refusal(401), self._login)

    def begin_anew(self) -> None:
        """Let the next request need a person, whatever was kept; that stays until one comes."""
        self._is_anew = True

    def secrets(self) -> Iterator[str]:
        """See `Credentials.secrets`."""
        yield self._registration.client_secret
        yield from self._record.secrets()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """A block for one task of all processes that share the file, with what it holds now."""
        seconds = TURN_SECONDS if self._login is None else LOGIN_SECONDS
        async with self._turns.here(), self._store.turn(seconds):
            self._record = self._registration.settle(await self._store.read())
            yield

    async def _keep(self, record: Record) -> None:
        self._record = record
        await self._store.write(record)

    def _granted(self, more: str) -> str:
        """The scopes that we have, and more."""
        granted = self._record.tokens.scope if self._record.tokens is not None else None
        return union_scopes(granted, more) or ""

    def _presented(self) -> str:
        """What was just granted, however soon its time is over."""
        tokens = self._record.tokens
        if tokens is None:
            raise LoginFailed("its authorization server gave no token")

        return f"Bearer {tokens.access_token}"

    async def _renewed(self, version: str) -> bool:
        """Use the refresh token; whether that gave a new token."""
        keeping = Keeping(self._record, self._keep)
        record = await Flow(self._url, self._client(UNUSED), keeping).renew(version)
        if record is None:
            log.info('upstream "%s": its authorization server renews the login no more', self._name)
            return False

        await self._keep(replace(record, wanted=self._record.wanted))
        return True

    async def _nobody(self, refusal: Refusal) -> ChannelError:
        """Why the request did not run, and what a person can do; scopes are noted for then."""
        command = f"run: bridge login CONFIG {self._name}"
        if not refusal.wants_scope:
            return LoginNeeded(f"needs login; {command}")

        await self._keep(replace(self._record, wanted=self._granted(refusal.scope)))
        return HttpStatusError(403, f"it wants more than was granted; {command}")

    async def _asked(self, refusal: Refusal, login: Login) -> None:
        """Have a person log in, as often as is decent, and keep what comes of it."""
        patience = self._patience
        now = time.monotonic()
        if now - patience.failed_at < REFUSED_SECONDS:
            raise LoginFailed(patience.failure)

        recent = [then for then in patience.asked_at if now - then < LOGINS_SECONDS]
        if len(recent) >= MOST_LOGINS:
            within = f"{MOST_LOGINS} logins within {LOGINS_SECONDS:g} s"
            raise LoginFailed(f"the server wants yet another login after {within}")

        patience.asked_at.append(now)
        wanted = self._record.wanted
        scoped = self._registration.scoped(
            refusal, self._granted(wanted) if self._is_anew else wanted
        )
        try:
            await self._keep(await self._logged_in(scoped, login))
            self._is_anew = False
        except LoginFailed as exc:
            patience.failed_at, patience.failure = time.monotonic(), str(exc)
            raise

    async def _logged_in(self, refusal: Refusal, login: Login) -> Record:
        shown: list[str] = []
        async with open_loopback(self._port()) as loopback:

            async def show(url: str) -> None:
                shown.append(url)
                loopback.expect(url)
                log.warning('upstream "%s" needs a login; open %s', self._name, url)
                await login(self._name, url)

            async def answer() -> AuthorizationCodeResult:
                given = await loopback.answer()
                told = {"code": given.get("code", ""), "state": given.get("state")}
                return AuthorizationCodeResult.model_validate({**told, "iss": given.get("iss")})

            keeping = Keeping(self._for_callback(loopback.url), self._keep)
            flow = Flow(self._url, self._client(loopback.url), keeping, show, answer)
            with anyio.move_on_after(LOGIN_SECONDS):
                return bound(await flow.log_in(refusal))

        if not shown:
            raise LoginFailed("its authorization server did not answer in time")

        raise LoginFailed(f"nobody logged in within {LOGIN_SECONDS:g} s at {shown[0]}")

    def _client(self, callback: str) -> Client:
        given = self._registration
        return Client(callback, given.client_metadata_url or None, given.client_id, given.issuer)

    def _port(self) -> int:
        """Where browsers come back to: as configured, else as registered, else any port."""
        if self._registration.redirect_port:
            return self._registration.redirect_port

        registered = callbacks(self._record)
        port = urlsplit(registered[0]).port if registered else None
        return port if port is not None and is_free(port) else 0

    def _for_callback(self, url: str) -> Record:
        """The record to begin with: a registration for another callback is made anew."""
        registered = callbacks(self._record)
        if registered and url not in registered:
            return replace(self._record, client=None)

        return self._record
