"""bridge logs in to servers: a real server, a real authorization server, a person who agrees."""

from __future__ import annotations

import json
import logging
import pickle
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from bridge.errors import OutcomeUnknown, UpstreamUnavailable
from bridge.upstream.channel import Limits, Options
from bridge.upstream.connection import Connection
from bridge.upstream.oauth import OAuth
from bridge.upstream.oauth_registration import Registration
from bridge.upstream.target import Endpoint, HttpTransport
from tests.upstream.oauth_site import Site, browse, site

PATIENT = Options(timeout=60)


@dataclass
class Person:
    """Sits at a browser, and does as bridge says."""

    asked: list[str] = field(default_factory=list)

    async def log_in(self, name: str, url: str) -> None:
        self.asked.append(url)
        assert await browse(url) == 200


@asynccontextmanager
async def connected(
    site: Site,
    store: Path,
    person: Person | None = None,
    *,
    transport: HttpTransport = "http",
    **settled: Any,
) -> AsyncIterator[Connection]:
    login = None if person is None else person.log_in
    url = f"{site.origin}/sse" if transport == "sse" else site.url
    oauth = OAuth("notes", url, store, Registration(**settled), login)
    target = Endpoint(url, transport, credentials=oauth)
    connection = Connection("notes", target, connect_timeout=30, limits=Limits(close_grace=0.2))
    try:
        yield connection
    finally:
        await connection.aclose()


async def call(connection: Connection, tool: str) -> Any:
    params = {"name": tool, "arguments": {}}
    return (await connection.request("tools/call", params, PATIENT))["content"][0]["text"]


def granted(store: Path) -> str:
    return str(json.loads(store.read_text("utf-8"))["tokens"]["access_token"])


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "logins" / "notes.json"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_person_logs_in_once_and_the_login_is_kept(
    store: Path, transport: HttpTransport
) -> None:
    person = Person()
    async with site(needed={}) as there:
        if transport == "sse":
            there.resource = {"resource": f"{there.origin}/sse"}

        async with connected(there, store, person, transport=transport) as connection:
            assert await call(connection, "look") == "done"

        async with connected(there, store, transport=transport) as connection:
            assert await call(connection, "look") == "done"

    assert len(person.asked) == len(there.logins) == 1
    assert there.logins[0]["scope"] == "read"
    assert there.registrations[0]["application_type"] == "native"
    assert set(there.presented) == {"", f"Bearer {granted(store)}"}


async def test_the_login_is_in_a_file_that_nobody_else_may_read(store: Path) -> None:
    async with site() as there, connected(there, store, Person()) as connection:
        await call(connection, "look")

    modes = [stat.S_IMODE(path.stat().st_mode) for path in store.parent.iterdir()]
    assert modes == [0o600, 0o600]
    assert stat.S_IMODE(store.parent.stat().st_mode) == 0o700


async def test_without_a_person_it_is_said_which_command_logs_in(store: Path) -> None:
    async with site() as there, connected(there, store) as connection:
        with pytest.raises(
            UpstreamUnavailable, match="needs login; run: bridge login CONFIG notes"
        ):
            await call(connection, "look")

        assert connection.status().state == "failed"
        assert connection.status().reason == "needs login; run: bridge login CONFIG notes"

    assert there.registrations == []


@pytest.mark.parametrize("lifetime", [3600, 3], ids=["the server says so", "its time is over"])
async def test_a_token_that_has_ended_is_renewed_without_a_person_and_once_for_all(
    store: Path, lifetime: int
) -> None:
    async with site(lifetime=lifetime) as there:
        async with connected(there, store, Person()) as connection:
            await call(connection, "look")

        if lifetime == 3600:
            there.end_tokens()

        there.lifetime = 3600
        there.exchanges.clear()
        async with connected(there, store) as connection, anyio.create_task_group() as calls:
            for _ in range(5):
                calls.start_soon(call, connection, "look")

    assert [form["grant_type"] for form in there.exchanges] == ["refresh_token"]
    assert there.exchanges[0]["resource"] == there.url
    assert len(there.logins) == 1


@pytest.mark.parametrize("lifetime", [3600, 3], ids=["the server says so", "its time is over"])
async def test_calls_under_way_when_the_token_ends_are_renewed_together(
    store: Path, lifetime: int
) -> None:
    async with (
        site(lifetime=lifetime) as there,
        connected(there, store, Person()) as connection,
    ):
        await call(connection, "look")
        if lifetime == 3600:
            there.end_tokens()

        there.lifetime = 3600
        there.exchanges.clear()
        async with anyio.create_task_group() as calls:
            for _ in range(5):
                calls.start_soon(call, connection, "look")

    assert [form["grant_type"] for form in there.exchanges] == ["refresh_token"]


async def test_where_renewing_ends_a_person_logs_in_again(store: Path) -> None:
    person = Person()
    async with site() as there, connected(there, store, person) as connection:
        await call(connection, "look")
        there.end_tokens()
        there.takes_refreshing = False

        assert await call(connection, "look") == "done"

    assert len(person.asked) == 2
    assert len(there.registrations) == 1


async def test_where_renewing_ends_and_nobody_is_there_the_upstream_says_so(store: Path) -> None:
    async with site() as there:
        async with connected(there, store, Person()) as connection:
            await call(connection, "look")

        there.end_tokens()
        there.takes_refreshing = False
        async with connected(there, store) as connection:
            with pytest.raises(UpstreamUnavailable, match="needs login"):
                await call(connection, "look")


async def test_a_login_of_another_process_is_found(store: Path) -> None:
    async with site() as there, connected(there, store) as serving:
        with pytest.raises(UpstreamUnavailable, match="needs login"):
            await call(serving, "look")

        async with connected(there, store, Person()) as other:
            await call(other, "look")

        await anyio.sleep(serving.pause)
        assert await call(serving, "look") == "done"


async def test_a_tool_that_wants_more_is_granted_that_beside_what_was_granted(store: Path) -> None:
    person = Person()
    async with site() as there, connected(there, store, person) as connection:
        assert await call(connection, "look") == "done"
        assert await call(connection, "change") == "done"
        assert await call(connection, "change") == "done"

    assert [asked["scope"] for asked in there.logins] == ["read", "read write"]


async def test_what_is_wanted_where_nobody_is_there_is_asked_for_at_the_next_login(
    store: Path,
) -> None:
    async with site() as there:
        async with connected(there, store, Person()) as connection:
            await call(connection, "look")

        async with connected(there, store) as connection:
            with pytest.raises(UpstreamUnavailable, match=r"more than was granted.*bridge login"):
                await call(connection, "change")

            assert await call(connection, "look") == "done"

        async with connected(there, store, Person()) as connection:
            assert isinstance(connection.target, Endpoint)
            account = connection.target.credentials
            assert isinstance(account, OAuth)
            account.begin_anew()
            assert await call(connection, "change") == "done"

    assert [asked["scope"] for asked in there.logins] == ["read", "read write"]


async def test_a_server_that_is_never_content_does_not_ask_for_ever(store: Path) -> None:
    person = Person()
    async with (
        site(needed={"look": "the moon"}) as there,
        connected(there, store, person) as connection,
    ):
        for said in ("403", "403", "yet another login after 3 logins"):
            with pytest.raises(UpstreamUnavailable, match=said):
                await call(connection, "look")

    assert len(person.asked) == 3


async def test_scopes_of_the_configuration_are_asked_for_instead(store: Path) -> None:
    async with (
        site() as there,
        connected(there, store, Person(), scopes=("read", "write")) as connection,
    ):
        assert await call(connection, "change") == "done"

    assert [asked["scope"] for asked in there.logins] == ["read write"]


async def test_only_the_answer_with_the_state_is_taken_and_only_once(store: Path) -> None:
    statuses: list[int] = []

    class Attacked(Person):
        async def log_in(self, name: str, url: str) -> None:
            asked = {k: v[0] for k, v in parse_qs(urlsplit(url).query).items()}
            callback = asked["redirect_uri"]
            for query in ("", "?code=x", "?code=x&state=guessed", "?error=no&state=guessed"):
                status = await browse(f"{callback}{query}")
                statuses.append(status)

            statuses.append(await browse(callback.replace("callback", "elsewhere")))
            await super().log_in(name, url)

    async with site() as there, connected(there, store, Attacked()) as connection:
        assert await call(connection, "look") == "done"

    assert statuses == [400, 400, 400, 400, 404]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"error": "access_denied", "code": None}, "the login was refused: access_denied"),
        ({"iss": "https://elsewhere.example.com"}, "iss mismatch"),
        ({"iss": None}, "missing iss"),
        ({"code": "made-up"}, "gave no login: Token exchange failed"),
    ],
)
async def test_an_answer_that_is_not_good_is_no_login_and_is_not_asked_for_again(
    store: Path, answers: dict[str, str | None], said: str
) -> None:
    person = Person()
    async with site(answers=answers) as there, connected(there, store, person) as connection:
        with pytest.raises(UpstreamUnavailable, match=said):
            await call(connection, "look")

        await anyio.sleep(connection.pause)
        with pytest.raises(UpstreamUnavailable, match=said):
            await call(connection, "look")

    assert len(person.asked) == 1


@pytest.mark.parametrize(
    ("metadata", "resource", "said"),
    [
        ({"code_challenge_methods_supported": None}, {}, "does not support PKCE"),
        ({"code_challenge_methods_supported": ["plain"]}, {}, "does not support PKCE"),
        ({"authorization_endpoint": "http://192.0.2.1/go"}, {}, "http://192.0.2.1/go, which is"),
        ({}, {"authorization_servers": ["http://169.254.169.254/x"]}, "which is not https"),
        ({}, {"resource": "https://elsewhere.example.com/mcp"}, "does not match expected"),
    ],
)
async def test_nobody_is_led_where_it_is_not_safe(
    store: Path, metadata: dict[str, Any], resource: dict[str, Any], said: str
) -> None:
    person = Person()
    async with (
        site(metadata=metadata, resource=resource) as there,
        connected(there, store, person) as connection,
    ):
        with pytest.raises(UpstreamUnavailable, match=said):
            await call(connection, "look")

    assert person.asked == []


async def test_a_client_that_was_registered_by_hand_is_used_with_its_secret(store: Path) -> None:
    async with (
        site(clients={"ours": "canary-secret"}) as there,
        connected(
            there, store, Person(), client_id="ours", client_secret="canary-secret"
        ) as connection,
    ):
        await call(connection, "look")
        there.end_tokens()
        assert await call(connection, "look") == "done"

    assert [form["grant_type"] for form in there.exchanges] == [
        "authorization_code",
        "refresh_token",
    ]
    assert there.registrations == []


async def test_a_client_is_used_at_its_own_authorization_server_alone(store: Path) -> None:
    person = Person()
    ours = {"client_id": "ours", "client_secret": "canary-secret"}
    async with (
        site(clients={"ours": "canary-secret"}) as there,
        connected(there, store, person, issuer="https://other.example.com", **ours) as connection,
    ):
        with pytest.raises(UpstreamUnavailable, match="another authorization server"):
            await call(connection, "look")

    assert person.asked == there.exchanges == []


async def test_no_time_passes_for_connecting_while_a_person_logs_in(store: Path) -> None:
    class Slow(Person):
        async def log_in(self, name: str, url: str) -> None:
            await anyio.sleep(1.5)  # longer than it may take to connect
            await super().log_in(name, url)

    async with site() as there, connected(there, store, Slow()) as connection:
        connection.connect_timeout = 1.0
        assert (await connection.link()).era == "modern"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_no_time_passes_for_a_call_while_a_person_logs_in(
    store: Path, transport: HttpTransport
) -> None:
    class Slower(Person):
        async def log_in(self, name: str, url: str) -> None:
            await anyio.sleep(1.5 * len(self.asked))  # the second time, longer than a call may take
            await super().log_in(name, url)

    async with site() as there:
        if transport == "sse":
            there.resource = {"resource": f"{there.origin}/sse"}

        async with connected(there, store, Slower(), transport=transport) as connection:
            await call(connection, "look")
            there.end_tokens()
            there.takes_refreshing = False
            params = {"name": "look", "arguments": {}}
            answer = await connection.request("tools/call", params, Options(timeout=1.0))

    assert answer["content"][0]["text"] == "done"
    assert len(there.logins) == 2


async def test_a_call_that_is_refused_did_not_run_and_is_not_called_unknown(store: Path) -> None:
    person = Person()
    async with site() as there, connected(there, store, person) as connection:
        await call(connection, "look")
        there.end_tokens()
        there.takes_refreshing = False
        there.answers = {"error": "access_denied", "code": None}
        with pytest.raises(UpstreamUnavailable, match="access_denied") as refused:
            await call(connection, "look")

    assert not isinstance(refused.value, OutcomeUnknown)


async def test_no_token_shows_in_logs_or_errors(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    async with (
        site(clients={"ours": "canary-secret"}) as there,
        connected(
            there, store, Person(), client_id="ours", client_secret="canary-secret"
        ) as connection,
    ):
        await call(connection, "look")
        await call(connection, "change")
        there.end_tokens()
        await call(connection, "look")
        there.end_tokens()
        there.takes_refreshing = False
        there.grants = False
        with pytest.raises(UpstreamUnavailable, match="an answer that cannot be used") as refused:
            await call(connection, "look")

        error: BaseException | None = refused.value
        while error is not None:
            said.append(f"{error!s} {error!r}")
            error = error.__cause__ or error.__context__

        said.append(connection.target.without_secrets(f"x {granted(store)} canary-secret"))

    told = "\n".join([*caplog.messages, caplog.text, *said])
    verifiers = [form["code_verifier"] for form in there.exchanges if "code_verifier" in form]
    hidden = [*there.secrets, *verifiers, "canary-secret"]
    assert [secret for secret in hidden if secret[-12:] in told] == []
    assert 'upstream "notes" needs a login; open http' in told


async def test_a_login_can_be_pickled_and_begins_anew(store: Path) -> None:
    async with site() as there:
        async with connected(there, store, Person()) as connection:
            await call(connection, "look")

        oauth = OAuth("notes", there.url, store, Registration())
        copied = pickle.loads(pickle.dumps(oauth))
        assert copied.header() is None
        assert await copied.current() == f"Bearer {granted(store)}"


async def test_a_file_that_holds_something_else_is_no_login(tmp_path: Path) -> None:
    store = written(tmp_path / "x", '{"tokens": {"access_token": 5}, "client": [], "issuer": 1}')
    async with site() as there, connected(there, store, Person()) as connection:
        assert await call(connection, "look") == "done"


async def test_a_place_where_nothing_can_be_kept_is_named(tmp_path: Path) -> None:
    place = written(tmp_path / "file", "") / "login.json"
    async with (
        site() as there,
        connected(there, place, Person()) as connection,
    ):
        with pytest.raises(UpstreamUnavailable, match=r"the login in .* cannot be"):
            await call(connection, "look")
