"""A history in which every call is followed by its answers, as models want to read it (§21).

Answers may have come late, in pieces, or with other things in between. Nothing here changes the
events it is given.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from bridge.core.content import Content, Part
from bridge.core.event import Event
from bridge.errors import BridgeError


def rearranged(events: Sequence[Event]) -> list[Event]:
    """The events with every call followed directly by one event of its newest answers.

    Raises:
        BridgeError: The newest event answers a call that is nowhere, or calls of two events.
    """
    return _paired(_latest_in_place(events))


def merged_responses(events: Sequence[Event], call_ids: Collection[str] | None = None) -> Event:
    """Several events that answer the same calls as one: the first, brought up to date.

    A later answer takes the place of an earlier one with its id, or is added; what is no answer
    is added. Media go with the answer that they follow. With `call_ids`, answers to other calls
    are left out.
    """
    kept: list[list[Part]] = []
    places: dict[str, int] = {}
    for parts in (parts for event in events for parts in _answers_with_media(event)):
        answer = parts[0].function_response
        if answer is None:
            kept.append(parts)
        elif call_ids is not None and answer.id not in call_ids:
            continue
        elif answer.id in places:
            kept[places[answer.id]] = parts
        else:
            places[answer.id] = len(kept)
            kept.append(parts)

    base = events[0]
    role = "user" if base.content is None else base.content.role
    return replace(base, content=Content(role, tuple(part for parts in kept for part in parts)))


def _latest_in_place(events: Sequence[Event]) -> list[Event]:
    """Move the newest event, if it answers an earlier call, to where that call is.

    Whatever was merely said in between is left out; other calls and their answers stay.
    """
    answered = _answered_ids(events[-1]) if events else set()
    if len(events) < 2 or not answered or answered & _called_ids(events[-2]):
        return list(events)

    index = _call_index(events, answered)
    call_ids = _called_ids(events[index])
    kept, answers = list(events[: index + 1]), []
    for event in events[index + 1 : -1]:
        if _called_ids(event):
            kept.append(event)
        elif _answered_ids(event) & call_ids:
            answers.append(event)
        elif _answered_ids(event):
            kept.append(event)

    return [*kept, merged_responses([*answers, events[-1]])]


def _call_index(events: Sequence[Event], answered: set[str]) -> int:
    """Where the newest event is that made one of the calls, and with it all of them."""
    for index in range(len(events) - 2, -1, -1):
        called = _called_ids(events[index])
        if not called & answered:
            continue

        strays = answered - called
        if strays:
            raise BridgeError(
                f"the newest event answers calls that were not made together: {_listed(strays)} "
                f"are not among {_listed(called)}; answer the calls of one event at a time"
            )

        return index

    raise BridgeError(
        f"there is no call for the answers with these ids: {_listed(answered)}; "
        "answer with the id that the call has"
    )


def _paired(events: Sequence[Event]) -> list[Event]:
    """Put behind every call the events that answer it last, merged; drop answers elsewhere."""
    if len(events) < 2:
        return list(events)

    last: dict[str, int] = {}
    for index, event in enumerate(events):
        last.update(dict.fromkeys(_answered_ids(event), index))

    paired: list[Event] = []
    for event in events:
        if _answered_ids(event):
            continue

        paired.append(event)
        paired.extend(_answers_to(event, events, last))

    return paired


def _answers_to(call: Event, events: Sequence[Event], last: Mapping[str, int]) -> list[Event]:
    """One event of the answers to the calls of `call`; none where nobody has answered."""
    call_ids = _called_ids(call)
    places = sorted({last[call_id] for call_id in call_ids if call_id in last})
    return [merged_responses([events[place] for place in places], call_ids)] if places else []


def _called_ids(event: Event) -> set[str]:
    return {call.id for call in event.function_calls()}


def _answers_with_media(event: Event) -> list[list[Part]]:
    """The event's parts, each by itself, but for media, which stay with the answer before them."""
    found: list[list[Part]] = []
    for part in event.parts:
        if part.inline_data is not None and found and found[-1][0].function_response is not None:
            found[-1].append(part)
        else:
            found.append([part])

    return found


def _answered_ids(event: Event) -> set[str]:
    return {answer.id for answer in event.function_responses()}


def _listed(ids: Collection[str]) -> str:
    return ", ".join(f'"{one}"' for one in sorted(ids))
