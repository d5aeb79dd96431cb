"""The conversation with an authorization server: the SDK's provider decides, this sends.

The provider writes its flow as requests to be sent in turn (an `httpx2.Auth`). Among them is the
request that was refused, which is answered with that refusal instead of being sent again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

from bridge.upstream.credentials import VERSION_HEADER, Refusal
from bridge.upstream.oauth_loopback import LoginFailed
from bridge.upstream.oauth_places import BoundedStream, check_place
from bridge.upstream.oauth_store import Record
from bridge.upstream.wording import excerpt, reason

STEP_SECONDS = 15.0  # for one answer of the authorization server
CLIENT_NAME = "bridge"
NATIVE_GRANTS = ["authorization_code", "refresh_token"]

Show = Callable[[str], Awaitable[None]]
Answer = Callable[[], Awaitable[AuthorizationCodeResult]]

_in_flow: ContextVar[bool] = ContextVar("in_flow", default=False)


class _Quiet(logging.Filter):
    """Keeps the SDK from logging our flows: what it says may quote answers that hold tokens."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _in_flow.get()


logging.getLogger("mcp.client.auth.oauth2").addFilter(_Quiet())


@dataclass(frozen=True, slots=True)
class Client:
    """How we present ourselves: the callback's URL, and where our own description is found.

    `client_id` and `issuer`, where they are not empty, are who we are, and to whom alone.
    """

    redirect_url: str
    metadata_url: str | None = None
    client_id: str = ""
    issuer: str = ""


class Keeping:
    """A record as the SDK's provider reads and changes it; an SDK `TokenStorage`."""

    def __init__(self, record: Record, keep: Callable[[Record], Awaitable[None]]) -> None:
        self.record = record
        self._keep = keep

    async def get_tokens(self) -> OAuthToken | None:
        """What was kept."""
        return self.record.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Remember new ones; they are kept with the rest when the flow has ended."""
        self.record = replace(self.record, tokens=tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """What was kept."""
        return self.record.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep it at once: a registration that is lost would be made again."""
        self.record = replace(self.record, client=client_info)
        await self._keep(self.record)


class Flow:
    """One flow, of one upstream, from a record to the next."""

    def __init__(
        self,
        url: str,
        client: Client,
        keeping: Keeping,
        show: Show | None = None,
        answer: Answer | None = None,
    ) -> None:
        """`show` takes the authorization URL to a person; `answer` waits for what comes back."""
        self._url = httpx2.URL(url)
        self._client = client
        self._show = show
        described = {
            "redirect_uris": [client.redirect_url],
            "client_name": CLIENT_NAME,
            "grant_types": NATIVE_GRANTS,
        }
        self._provider = OAuthClientProvider(
            url,
            OAuthClientMetadata.model_validate(described),
            keeping,
            self._ask if show is not None else None,
            answer,
            client.metadata_url,
        )
        context, record = self._provider.context, keeping.record
        context.oauth_metadata = record.server
        context.protected_resource_metadata = record.resource
        context.auth_server_url = record.issuer

    async def renew(self, version: str) -> Record | None:
        """Use the refresh token; None if the server does not take it.

        Raises:
            LoginFailed: The authorization server cannot be reached, or must not be.
        """
        self._provider.context.token_expiry_time = 1.0  # which is past, so that it renews
        with _translated():
            await self._run(Refusal(401, version=version), renewing=True)

        return self._outcome() if self._provider.context.is_token_valid() else None

    async def log_in(self, refusal: Refusal) -> Record:
        """Have a person log in, as this refusal wants it.

        Raises:
            LoginFailed: Nothing came of it; says why, and holds no secret.
        """
        with _translated():
            await self._run(refusal, renewing=False)

        return self._outcome()

    def _outcome(self) -> Record:
        context = self._provider.context
        return Record(
            context.current_tokens,
            context.token_expiry_time,
            context.client_info,
            context.oauth_metadata,
            context.protected_resource_metadata,
            context.auth_server_url,
        )

    async def _run(self, refusal: Refusal, *, renewing: bool) -> None:
        headers = {VERSION_HEADER: refusal.version} if refusal.version else {}
        refused = httpx2.Request("POST", self._url, headers=headers)
        is_answered = renewing
        async with (
            httpx2.AsyncClient(
                timeout=STEP_SECONDS, headers={"Accept-Encoding": "identity"}
            ) as client,
            aclosing(self._provider.async_auth_flow(refused)) as flow,
        ):
            outgoing = await anext(flow)
            while outgoing is not refused or not is_answered:
                if outgoing is refused:
                    is_answered = True
                    challenge = {"WWW-Authenticate": refusal.challenge}
                    response = httpx2.Response(refusal.status, headers=challenge, request=refused)
                else:
                    response = await self._send(client, outgoing)

                outgoing = await flow.asend(response)

    async def _send(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        await check_place(request.url, self._url)
        with anyio.fail_after(STEP_SECONDS):
            response = await client.send(request, stream=True, follow_redirects=False)
            try:
                if isinstance(response.stream, httpx2.AsyncByteStream):
                    response.stream = BoundedStream(response.stream)

                await response.aread()
            finally:
                await response.aclose()

        return response

    async def _ask(self, url: str) -> None:
        """Show a person where to log in, once it is clear that the place can be trusted."""
        context = self._provider.context
        await check_place(httpx2.URL(url), self._url)
        self._check_issuer()
        methods = context.oauth_metadata and context.oauth_metadata.code_challenge_methods_supported
        if "S256" not in (methods or ()):
            raise LoginFailed("its authorization server does not support PKCE with S256")

        client = context.client_info
        if client is not None and client.client_secret and not client.token_endpoint_auth_method:
            client.token_endpoint_auth_method = self._secret_method()

        assert self._show is not None
        await self._show(url)

    def _check_issuer(self) -> None:
        """Credentials, and a person's consent, are for one authorization server alone."""
        context, ours = self._provider.context, self._client
        issuer = str(context.oauth_metadata.issuer) if context.oauth_metadata else ""
        is_other = bool(ours.issuer) and issuer.removesuffix("/") != ours.issuer.removesuffix("/")
        if ours.client_id and (
            context.client_info is None or context.client_info.client_id != ours.client_id
        ):
            is_other = True

        if is_other:
            raise LoginFailed(
                f"it leads to another authorization server, {excerpt(issuer)}; refused"
            )

    def _secret_method(self) -> str:
        """How our secret is sent: the first of the ways that we know, which is the default, too."""
        metadata = self._provider.context.oauth_metadata
        known = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
        basic, post = "client_secret_basic", "client_secret_post"
        return post if known and post in known and basic not in known else basic


@contextmanager
def _translated() -> Iterator[None]:
    """Turn what goes wrong into LoginFailed. Nothing is chained: it may hold tokens."""
    token = _in_flow.set(True)
    try:
        yield
    except LoginFailed:
        raise
    except TimeoutError:
        raise LoginFailed("its authorization server did not answer in time") from None
    except OAuthFlowError as exc:
        quotes = isinstance(exc.__cause__ or exc.__context__, ValueError)
        said = "an answer that cannot be used" if quotes else excerpt(str(exc))
        raise LoginFailed(f"its authorization server gave no login: {said}") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as exc:
        raise LoginFailed(f"its authorization server cannot be reached: {reason(exc)}") from None
    except ValueError:
        raise LoginFailed("its authorization server gave an answer that cannot be used") from None
    finally:
        _in_flow.reset(token)
