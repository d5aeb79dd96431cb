"""A model over HTTP: what is sent, what is asked again, and what becomes of failures."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from bridge.core.content import Blob, Content, FunctionCall, Part
from bridge.core.declaration import ModelTool
from bridge.core.request import GenerateConfig, LLMRequest
from bridge.core.response import LLMResponse
from bridge.core.wire import dumps
from bridge.errors import CapabilityError, ConfigError, ModelError
from bridge.models.openai_compatible import OpenAICompatible
from tests.models.conftest import KEY, SERVER, Desk
from tests.processes import started, unused_port
from tests.servers import chat_completions

HELLO = {"say": "Hello there"}
SAID = Content("model", (Part(text="Hello there"),))
BUSY = {"status": 503, "headers": {"retry-after": "0"}, "json": {"error": "busy"}}


@pytest.fixture
async def model(desk: Desk) -> AsyncIterator[OpenAICompatible]:
    made = desk.model()
    yield made
    await made.aclose()


async def answers(model: OpenAICompatible, *, stream: bool = False) -> list[LLMResponse]:
    request = LLMRequest(contents=[Content("user", (Part(text="Hi"),))])
    return [answer async for answer in model.generate(request, stream=stream)]


async def failure(model: OpenAICompatible, *, stream: bool = False) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await answers(model, stream=stream)

    return caught.value


async def test_the_key_and_the_headers_go_with_each_request(desk: Desk) -> None:
    await desk.script(HELLO)
    model = OpenAICompatible(
        desk.base_url + "/?api-version=7", "small", api_key=KEY, headers={"X-Team": "red"}
    )
    await answers(model)
    await model.aclose()

    (heard,) = await desk.heard()
    assert heard["headers"]["authorization"] == f"Bearer {KEY}"
    assert heard["headers"]["x-team"] == "red"
    assert heard["headers"]["content-type"] == "application/json"
    assert heard["query"] == "api-version=7"
    assert heard["body"] == {
        "model": "small",
        "messages": [{"role": "user", "content": "Hi"}],
    }


@pytest.mark.parametrize("key", [None, ""])
async def test_without_a_key_none_is_sent(desk: Desk, key: str | None) -> None:
    await desk.script(HELLO)
    model = desk.model(api_key=key)
    await answers(model)
    await model.aclose()

    (heard,) = await desk.heard()
    assert "authorization" not in heard["headers"]


async def test_usage_and_the_models_version_are_kept(desk: Desk, model: OpenAICompatible) -> None:
    await desk.script(HELLO, HELLO)

    (plain,) = await answers(model)
    *_, streamed = await answers(model, stream=True)

    assert plain == streamed
    assert plain == LLMResponse(
        content=SAID,
        turn_complete=True,
        finish_reason="STOP",
        model_version=chat_completions.MODEL,
        usage_metadata=chat_completions.USAGE,
    )


async def test_one_connection_serves_many_requests(desk: Desk, model: OpenAICompatible) -> None:
    await desk.script(HELLO, HELLO, HELLO)

    for stream in (False, True, False):
        await answers(model, stream=stream)

    assert len({heard["client"] for heard in await desk.heard()}) == 1


async def test_a_model_works_in_every_event_loop(desk: Desk, model: OpenAICompatible) -> None:
    await desk.script(HELLO, HELLO, HELLO)

    async def elsewhere() -> list[LLMResponse]:
        try:
            return await answers(model)
        finally:
            await model.aclose()

    first = await answers(model)
    second = await anyio.to_thread.run_sync(anyio.run, elsewhere)
    third = await answers(model)

    assert first == second == third
    here, there, here_again = [heard["client"] for heard in await desk.heard()]
    assert here == here_again != there


async def test_a_closed_model_can_be_asked_again(desk: Desk, model: OpenAICompatible) -> None:
    await desk.script(HELLO, HELLO)

    await answers(model)
    await model.aclose()
    await model.aclose()
    (answer,) = await answers(model)

    assert answer.content == SAID


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_provider_is_asked_again(
    desk: Desk, model: OpenAICompatible, status: int, stream: bool
) -> None:
    busy = {**BUSY, "status": status}
    await desk.script(busy, busy, HELLO)

    *_, answer = await answers(model, stream=stream)

    assert answer.content == SAID
    first, *others = await desk.bodies()
    assert others == [first, first]


async def test_a_busy_provider_is_asked_only_so_often(desk: Desk) -> None:
    await desk.script(BUSY, BUSY, HELLO)
    model = desk.model(retries=1)

    error = await failure(model)
    await model.aclose()

    assert error.status == 503
    assert str(error) == f"{desk.base_url}/chat/completions answered with status 503: busy"
    assert len(await desk.heard()) == 2


async def test_a_provider_that_wants_a_long_pause_is_not_waited_for(
    desk: Desk, model: OpenAICompatible
) -> None:
    await desk.script({**BUSY, "status": 429, "headers": {"retry-after": "3600"}}, HELLO)

    assert (await failure(model)).status == 429
    assert len(await desk.heard()) == 1


@pytest.mark.parametrize("status", [307, 400, 401, 404])
async def test_a_refusal_is_raised_at_once_with_its_status_and_reason(
    desk: Desk, model: OpenAICompatible, status: int
) -> None:
    said = {"error": {"message": "no such model"}}
    headers = {"location": f"{desk.base_url}/elsewhere", "retry-after": "0"}
    await desk.script({"status": status, "headers": headers, "json": said}, HELLO)

    error = await failure(model)

    assert error.status == status
    assert str(error).endswith(f"answered with status {status}: no such model")
    assert len(await desk.heard()) == 1


async def test_a_refusal_without_a_word_is_named_by_its_status(
    desk: Desk, model: OpenAICompatible
) -> None:
    await desk.script({"status": 404, "text": ""})
    assert str(await failure(model)).endswith("answered with status 404: Not Found")


async def test_a_long_error_is_not_shown_whole(desk: Desk, model: OpenAICompatible) -> None:
    await desk.script({"status": 400, "text": "x" * 1_000_000})
    assert len(str(await failure(model))) < 600


async def test_a_stream_that_breaks_is_raised_and_not_asked_again(
    desk: Desk, model: OpenAICompatible
) -> None:
    await desk.script({**HELLO, "then": "cut"}, HELLO)
    heard: list[LLMResponse] = []

    with pytest.raises(ModelError, match="/chat/completions was lost"):
        async for answer in model.generate(LLMRequest(), stream=True):
            heard += [answer]

    assert [answer.partial for answer in heard] == [True, True]
    assert len(await desk.heard()) == 1


@pytest.mark.parametrize("ending", [[], ["data: {}\n\n"], ["data: [DO"]])
async def test_a_stream_that_ends_before_the_answer_is_raised(
    desk: Desk, model: OpenAICompatible, ending: list[str]
) -> None:
    chunks = [*chat_completions.chunked(HELLO, is_whole=False), *ending]
    await desk.script({"chunks": chunks, "then": "stop"})

    error = await failure(model, stream=True)

    assert str(error).endswith("the stream ended before the answer did")


@pytest.mark.parametrize("ending", [["data: [DONE]\n\n"], [": still there\n\n"], []])
async def test_an_answer_that_is_finished_needs_no_last_word(
    desk: Desk, model: OpenAICompatible, ending: list[str]
) -> None:
    chunks = [*chat_completions.chunked(HELLO, is_whole=True), *ending]
    await desk.script({"chunks": chunks, "then": "stop"})

    *_, answer = await answers(model, stream=True)

    assert answer.content == SAID


async def test_a_last_word_ends_an_answer_without_a_reason(
    desk: Desk, model: OpenAICompatible
) -> None:
    chunks = [*chat_completions.chunked(HELLO, is_whole=False), "data: [DONE]\n\n"]
    await desk.script({"chunks": chunks, "then": "hang"})

    *_, answer = await answers(model, stream=True)

    assert (answer.content, answer.finish_reason) == (SAID, "")


async def test_slow_chunks_are_waited_for(desk: Desk) -> None:
    await desk.script({**HELLO, "pause": 0.1})
    model = desk.model(timeout=5.0)

    *pieces, answer = await answers(model, stream=True)
    await model.aclose()

    assert (len(pieces), answer.content) == (2, SAID)


@pytest.mark.parametrize("stream", [False, True])
async def test_silence_has_a_bound_and_is_not_asked_again(desk: Desk, stream: bool) -> None:
    await desk.script({**HELLO, "then": "hang"}, HELLO)
    model = desk.model(timeout=0.2)

    error = await failure(model, stream=stream)
    await model.aclose()

    assert str(error) == f"{desk.base_url}/chat/completions was silent for 0.2 s"
    assert len(await desk.heard()) == 1


async def test_an_error_inside_a_stream_is_raised(desk: Desk, model: OpenAICompatible) -> None:
    chunks = [
        *chat_completions.chunked(HELLO, is_whole=False),
        {"error": {"message": f"overloaded, {KEY}"}},
    ]
    await desk.script({"chunks": chunks})

    error = await failure(model, stream=True)

    assert str(error).endswith("the provider reports an error: overloaded, [secret]")


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        ({"status": 200, "text": "<html>"}, "is not JSON: <html>"),
        ({"status": 200, "json": [1]}, "is not a JSON object"),
        ({"status": 200, "json": {"error": {"message": "no credit"}}}, "error: no credit"),
        ({"status": 200, "json": {"choices": []}}, "has no choices"),
    ],
)
async def test_what_is_no_answer_is_raised(
    desk: Desk, model: OpenAICompatible, step: dict[str, Any], fault: str
) -> None:
    await desk.script(step)
    assert fault in str(await failure(model))


async def test_a_provider_that_does_not_stream_answers_whole(
    desk: Desk, model: OpenAICompatible
) -> None:
    await desk.script({"status": 200, "json": chat_completions.whole(HELLO)})

    (answer,) = await answers(model, stream=True)

    assert (answer.content, answer.partial) == (SAID, False)


async def test_a_provider_that_streams_unasked_is_heard_to_the_end(
    desk: Desk, model: OpenAICompatible
) -> None:
    await desk.script({"chunks": [*chat_completions.chunked(HELLO, is_whole=True)]})

    (answer,) = await answers(model)

    assert (answer.content, answer.partial) == (SAID, False)


@pytest.mark.parametrize("stream", [False, True])
async def test_malformed_arguments_are_an_answer_with_an_error_code(
    desk: Desk, model: OpenAICompatible, stream: bool
) -> None:
    await desk.script({"calls": [{"id": "a", "name": "look", "arguments": '{"at": '}]})

    (answer,) = await answers(model, stream=stream)

    assert (answer.error_code, answer.content) == ("MALFORMED_FUNCTION_CALL", None)
    assert 'called "look" with arguments that are not JSON: {"at":' in answer.error_message


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_without_an_id_is_left_without_one(
    desk: Desk, model: OpenAICompatible, stream: bool
) -> None:
    await desk.script({"calls": [{"id": "", "name": "look", "arguments": {}}]})

    (answer,) = await answers(model, stream=stream)

    assert answer.content == Content("model", (Part(function_call=FunctionCall("", "look", {})),))


async def test_a_refusal_is_streamed_like_any_text(desk: Desk, model: OpenAICompatible) -> None:
    await desk.script({"refuse": "I will not."})

    *pieces, answer = await answers(model, stream=True)

    assert len(pieces) == 3
    assert (answer.error_code, answer.error_message) == ("REFUSAL", "I will not.")


async def test_a_tool_of_the_providers_own_is_refused_before_anything_is_sent(
    desk: Desk, model: OpenAICompatible
) -> None:
    config = GenerateConfig(tools=[ModelTool(native={"google_search": {}})])

    with pytest.raises(CapabilityError, match='"small" has no tool of its own named "google_'):
        await anext(model.generate(LLMRequest(config=config)))

    assert await desk.heard() == []


async def test_a_request_may_name_its_model(desk: Desk, model: OpenAICompatible) -> None:
    await desk.script(HELLO)

    _ = [answer async for answer in model.generate(LLMRequest(model="large"))]

    (body,) = await desk.bodies()
    assert body["model"] == "large"


async def test_options_are_fields_of_each_request(desk: Desk) -> None:
    await desk.script(HELLO)
    model = desk.model(options={"temperature": 0, "stream_options": None})
    await answers(model, stream=True)
    await model.aclose()

    (body,) = await desk.bodies()
    assert (body["temperature"], "stream_options" in body) == (0, False)


async def test_no_error_and_no_log_shows_a_secret(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = {"error": f"wrong key {KEY} or team-token-1"}
    await desk.script({**BUSY, "json": echo}, {"status": 401, "json": echo})
    url = f"{desk.base_url}?code=query-secret"
    model = OpenAICompatible(url, "small", api_key=KEY, headers={"X-Token": "team-token-1"})

    error = await failure(model)
    await model.aclose()

    assert str(error).endswith("answered with status 401: wrong key [secret] or [secret]")
    shown = caplog.text + repr(error) + repr(model) + repr(vars(error))
    assert "asking again" in shown
    for secret in (KEY, "team-token-1", "query-secret"):
        assert secret not in shown


async def test_a_secret_is_not_shown_where_an_error_is_cut_short(
    desk: Desk, model: OpenAICompatible
) -> None:
    await desk.script({"status": 400, "text": "x" * 390 + KEY})
    assert "sk-" not in str(await failure(model))


async def test_a_script_may_be_a_file(tmp_path: Path) -> None:
    script = tmp_path / "steps.json"
    script.write_bytes(dumps([HELLO]))
    port = unused_port()
    command = [sys.executable, str(SERVER), "--port", str(port), "--script", str(script)]
    model = OpenAICompatible(f"http://127.0.0.1:{port}/main/v1", "small")

    async with started(command, port=port):
        (answer,) = await answers(model)
        with pytest.raises(ModelError, match="the script has no more steps"):
            await answers(model)

        await model.aclose()

    assert answer.content == SAID


async def test_nobody_there_is_said_plainly() -> None:
    url = f"http://127.0.0.1:{unused_port()}/v1"
    model = OpenAICompatible(url, "small", api_key=KEY, retries=1)

    error = await failure(model)
    await model.aclose()

    assert str(error) == f"cannot connect to {url}/chat/completions: Connection refused"
    assert error.status is None


@pytest.mark.parametrize(
    "url", ["", "localhost:11434", "ftp://example.com", "http://", "http:///v1", "http://a:b@c/v1"]
)
def test_a_base_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="the base URL of a model"):
        OpenAICompatible(url, "small")


@pytest.mark.parametrize("key", ["sk-secret\n", " sk-secret", "sk-sécret", "sk\tsecret"])
def test_a_key_that_http_cannot_carry_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError, match='of the header "Authorization"') as caught:
        OpenAICompatible("http://127.0.0.1/v1", "small", api_key=key)

    assert "cret" not in str(caught.value)


def test_an_unknown_kind_of_media_is_refused() -> None:
    with pytest.raises(ValueError, match="media has 'video'; use audio, file, image"):
        OpenAICompatible("http://127.0.0.1/v1", "small", media=["image", "video"])


async def test_media_are_sent_only_where_the_model_takes_them(desk: Desk) -> None:
    await desk.script(HELLO, HELLO)
    blob = Part(inline_data=Blob("image/png", b"png"))
    for media in (["image"], []):
        model = desk.model(media=media)
        request = LLMRequest(contents=[Content("user", (blob,))])
        _ = [answer async for answer in model.generate(request)]
        await model.aclose()

    shown, named = [body["messages"][0]["content"] for body in await desk.bodies()]
    assert shown[0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert named == "[image/png, 3 bytes, not shown to this model]"
