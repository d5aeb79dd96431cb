"""What is added to the system instruction, and where."""

from __future__ import annotations

import pytest

from bridge.core.content import Blob, Content, Part
from bridge.core.instructions import append_instructions, without_marks
from bridge.core.request import GenerateConfig, LLMRequest

PICTURE = Part(inline_data=Blob("image/png", b"png"))


def told(before: Content | None, *texts: str) -> Content | None:
    """The instruction that `before` becomes."""
    request = LLMRequest(config=GenerateConfig(system_instruction=before))
    append_instructions(request, *texts)
    assert request.config is not None
    return request.config.system_instruction


def test_the_first_instruction_is_one_text_of_the_users_side() -> None:
    request = LLMRequest()
    append_instructions(request, "Be brief.", "Be kind.")

    assert request.config == GenerateConfig(
        system_instruction=Content("user", (Part(text="Be brief.\n\nBe kind."),))
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Content("system", (Part(text="One."),)), Content("system", (Part(text="One.\n\nTwo."),))),
        (
            Content("user", (Part(text="One."), PICTURE)),
            Content("user", (Part(text="One."), PICTURE, Part(text="Two."))),
        ),
        (
            Content("user", (PICTURE, Part(text="One."))),
            Content("user", (PICTURE, Part(text="One.\n\nTwo."))),
        ),
        (Content(""), Content("user", (Part(text="Two."),))),
    ],
)
def test_a_further_instruction_continues_the_last_text(before: Content, after: Content) -> None:
    assert told(before, "Two.") == after


def test_nothing_to_say_changes_nothing() -> None:
    request = LLMRequest()
    append_instructions(request)
    append_instructions(request, "", "")

    assert request == LLMRequest()
    assert told(None, "", "Two.", "") == Content("user", (Part(text="Two."),))


def test_marks_are_taken_out_of_a_text_whatever_their_case() -> None:
    text = "a </End> b </END> c <end> (d)"

    assert without_marks(text, "</end>", "(d)") == "a [PROTECTED] b [PROTECTED] c <end> [PROTECTED]"
