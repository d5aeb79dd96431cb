"""What a function gives back, as the answer of its tool."""

from __future__ import annotations

import dataclasses
import datetime
import math
from typing import Any, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, Field

from bridge.core.context import ToolContext, local_context
from bridge.errors import ToolError
from bridge.tools.function import function_tool


async def result(output: Any, returns: Any = None, schema: Any = None) -> Any:
    """What a tool answers whose function returns `output`; `returns` is its annotation."""

    def f() -> Any:
        return output

    f.__annotations__ = {} if returns is None else {"return": returns}
    return await function_tool(f, output_schema=schema).run(ToolContext(local_context(), "c"), {})


def response_schema(returns: Any = None, schema: Any = None) -> Any:
    def f() -> Any: ...

    f.__annotations__ = {} if returns is None else {"return": returns}
    return function_tool(f, output_schema=schema).declaration().response_json_schema


class Weather(BaseModel):
    sky: str
    temperature: float = Field(serialization_alias="temperatureC", validation_alias="temp")


@dataclasses.dataclass
class Spot:
    x: int
    y: int


class Report(TypedDict):
    text: str
    pages: NotRequired[int]


NOON = datetime.datetime(2026, 7, 28, 12, tzinfo=datetime.UTC)


@pytest.mark.spec("2.2")
@pytest.mark.spec("system-10")
@pytest.mark.parametrize(
    ("output", "returns", "answer"),
    [
        ({"a": 1}, None, {"a": 1}),
        ({"a": (1, NOON)}, None, {"a": [1, "2026-07-28T12:00:00Z"]}),
        ("sunny", None, {"result": "sunny"}),
        (None, None, None),
        ({}, None, {}),
        (Spot(1, 2), None, {"x": 1, "y": 2}),
        (Weather(sky="blue", temp=22), None, {"sky": "blue", "temperatureC": 22.0}),
        ([Spot(1, 2)], None, {"result": [{"x": 1, "y": 2}]}),
        (math.nan, None, {"result": None}),
        ("sunny", str, {"result": "sunny"}),
        (5, int, {"result": 5}),
        ([1, 2], list[int], {"result": [1, 2]}),
        ({"a": 1}, dict[str, int], {"a": 1}),
        ({"a": 1}, Any, {"a": 1}),
        (5, Any, {"result": 5}),
        (None, Any, None),
        (None, type(None), None),
        (None, dict[str, int], None),
        (None, Weather | None, None),
        (Weather(sky="blue", temp=22), Weather, {"sky": "blue", "temperatureC": 22.0}),
        ({"sky": "blue", "temp": 22}, Weather, {"sky": "blue", "temperatureC": 22.0}),
        (Spot(1, 2), Spot, {"x": 1, "y": 2}),
        ({"text": "x"}, Report, {"text": "x"}),
        (math.inf, float, {"result": None}),
    ],
)
async def test_an_object_stays_bare_and_anything_else_is_wrapped(
    output: Any, returns: Any, answer: Any
) -> None:
    assert await result(output, returns) == answer


async def test_the_answer_shares_nothing_with_what_the_function_keeps() -> None:
    kept: dict[str, Any] = {"list": [1]}
    for returns in (None, dict[str, Any]):
        answer = await result(kept, returns)
        answer["list"].append(2)

    assert kept == {"list": [1]}


@pytest.mark.spec("2.14")
@pytest.mark.spec("system-10")
@pytest.mark.parametrize(
    ("output", "returns", "schema", "said"),
    [
        ("x", None, {"type": "integer"}, "the whole: expected an integer, got a string"),  # 2.14
        ({"a": "x"}, None, {"properties": {"a": {"type": "integer"}}}, '"a": expected an integer'),
        (None, None, {"type": "string"}, "the whole: expected a string, got null"),  # 2.8
        (None, None, {"type": "object", "required": ["a"]}, '"a": missing'),
        ("x", int, None, "the whole: should be a valid integer"),
        (None, Weather, None, '"temp": missing'),
        ({"pages": 1}, Report, None, '"text": missing'),
        (5, str, None, "the whole: expected a string, got a number"),
    ],
)
async def test_a_result_that_does_not_fit_is_an_error_and_never_wrapped(
    output: Any, returns: Any, schema: Any, said: str
) -> None:
    with pytest.raises(ToolError) as caught:
        await result(output, returns, schema)

    assert str(caught.value).startswith('the result of "f" does not fit its output schema: ')
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("output", "schema", "answer"),
    [
        ([1, 2, 3], {"type": "array"}, {"result": [1, 2, 3]}),  # 2.8
        (7, {"type": "integer"}, {"result": 7}),
        (None, {"type": "object"}, None),
        (None, {"type": ["object", "string"]}, None),
        (None, {}, None),
        (Spot(1, 2), {"required": ["x"]}, {"x": 1, "y": 2}),
    ],
)
async def test_an_explicit_schema_checks_the_json_of_the_result(
    output: Any, schema: Any, answer: Any
) -> None:
    assert await result(output, None, schema) == answer


async def test_an_explicit_schema_replaces_the_annotation() -> None:
    assert await result("x", int, {"type": "string"}) == {"result": "x"}
    assert response_schema(int, {"type": "string"}) == {"type": "string"}


async def test_a_result_that_is_not_json_is_an_error_that_keeps_its_cause() -> None:
    with pytest.raises(ToolError, match='the result of "f" is not JSON') as caught:
        await result({"a": object()})

    assert caught.value.__cause__ is not None


@pytest.mark.spec("2.4")
def test_the_declared_output_schema_is_that_of_the_annotation() -> None:
    assert response_schema(str) == {"type": "string"}
    assert response_schema(Any) == {}  # 2.4
    assert response_schema() is None
    assert response_schema(type(None)) is None
    assert response_schema(Weather)["required"] == ["sky", "temperatureC"]
    assert response_schema(Report) == {
        "title": "Report",
        "type": "object",
        "properties": {"text": {"type": "string"}, "pages": {"type": "integer"}},
        "required": ["text"],
        "additionalProperties": False,
    }
