"""The turns of a conversation."""

from __future__ import annotations

from bridge.core.content import Blob, Content, FunctionCall, FunctionResponse, Part
from bridge.models.turns import NO_ANSWER, Answer, ModelTurn, UserTurn, to_turns

PNG, WAV = Blob("image/png", b"png"), Blob("audio/wav", b"wav")
HELLO = Part(text="Hello")


def call(call_id: str, name: str = "look") -> Part:
    return Part(function_call=FunctionCall(call_id, name, {}))


def answer(call_id: str, name: str = "look", value: int = 1) -> Part:
    return Part(function_response=FunctionResponse(call_id, name, {"value": value}))


def test_what_the_user_says_in_a_row_is_one_turn() -> None:
    contents = [Content("user", (HELLO,)), Content("user", (Part(text="there"),))]

    assert to_turns(contents) == [UserTurn((), (HELLO, Part(text="there")))]


def test_what_the_model_says_in_a_row_stays_apart() -> None:
    contents = [Content("model", (HELLO,)), Content("model", (Part(text="there"),))]

    assert to_turns(contents) == [ModelTurn((HELLO,)), ModelTurn((Part(text="there"),))]


def test_answers_come_before_what_was_said_beside_them() -> None:
    contents = [
        Content("model", (call("a"), call("b"))),
        Content("user", (answer("a"), HELLO)),
        Content("user", (answer("b"),)),
    ]

    answers = Answer("a", "look", {"value": 1}), Answer("b", "look", {"value": 1})
    assert to_turns(contents)[1:] == [UserTurn(answers, (HELLO,))]


def test_a_blob_right_after_an_answer_belongs_to_it() -> None:
    contents = [
        Content("model", (call("a"), call("b"))),
        Content("user", tuple(media_of_both())),
    ]

    first = Answer("a", "look", {"value": 1}, (PNG, WAV))
    second = Answer("b", "look", {"value": 1})
    said = (HELLO, Part(inline_data=PNG))
    assert to_turns(contents)[1:] == [UserTurn((first, second), said)]


def media_of_both() -> list[Part]:
    """An answer with two blobs, one without, then a text with a blob of the user's own."""
    png = Part(inline_data=PNG)
    return [answer("a"), png, Part(inline_data=WAV), answer("b"), HELLO, png]


def test_a_blob_of_the_next_content_is_the_users_own() -> None:
    contents = [
        Content("model", (call("a"),)),
        Content("user", (answer("a"),)),
        Content("user", (Part(inline_data=PNG),)),
    ]

    answers = (Answer("a", "look", {"value": 1}),)
    assert to_turns(contents)[1:] == [UserTurn(answers, (Part(inline_data=PNG),))]


def test_calls_without_ids_get_some_that_are_free_and_their_answers_the_same() -> None:
    contents = [
        Content("model", (call("call_1"),)),
        Content("user", (answer("call_1"),)),
        Content("model", (call(""), call("", "sing"), call(""))),
        Content("user", (answer("", "sing", 2), answer("", value=3), answer("", value=4))),
    ]

    turns = to_turns(contents)

    assert turns[2:] == [
        ModelTurn((call("call_2"), call("call_3", "sing"), call("call_4"))),
        UserTurn(
            (
                Answer("call_3", "sing", {"value": 2}),
                Answer("call_2", "look", {"value": 3}),
                Answer("call_4", "look", {"value": 4}),
            ),
            (),
        ),
    ]
    assert to_turns(contents) == turns


def test_a_call_without_an_answer_is_answered_before_anything_else_is_said() -> None:
    contents = [
        Content("model", (call("a"), call("b"))),
        Content("user", (answer("b"), HELLO)),
        Content("model", (call("c"),)),
        Content("model", (HELLO,)),
        Content("model", (call("d"),)),
    ]

    answers = Answer("b", "look", {"value": 1}), Answer("a", "look", NO_ANSWER)
    assert to_turns(contents) == [
        ModelTurn((call("a"), call("b"))),
        UserTurn(answers, (HELLO,)),
        ModelTurn((call("c"),)),
        UserTurn((Answer("c", "look", NO_ANSWER),), ()),
        ModelTurn((HELLO,)),
        ModelTurn((call("d"),)),
        UserTurn((Answer("d", "look", NO_ANSWER),), ()),
    ]


def test_an_answer_is_the_users_side_whoever_says_it() -> None:
    contents = [Content("model", (call("a"),)), Content("model", (answer("a"),))]

    assert to_turns(contents)[1:] == [UserTurn((Answer("a", "look", {"value": 1}),), ())]
