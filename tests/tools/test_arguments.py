"""From JSON to a handler's own types: strict, complete in what it refuses, and short about it."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
import typing
import uuid
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from bridge.core.context import ToolContext, local_context
from bridge.errors import InvalidArguments, InvalidSchema, ToolError
from bridge.tools.function import LocalTool, function_tool


async def call(tool: LocalTool, args: Any) -> Any:
    return await tool.run(ToolContext(local_context(), "c1"), args)


async def refusal(tool: LocalTool, args: Any) -> str:
    """What is said of arguments that do not fit, after the opening words."""
    with pytest.raises(InvalidArguments) as caught:
        await call(tool, args)

    opening = f'the arguments of "{tool.name}" do not fit: '
    text = str(caught.value)
    assert text.startswith(opening)
    return text.removeprefix(opening)


class Kind(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Place(BaseModel):
    street: str
    lines: list[str] = []


@function_tool
async def order(
    city: str,
    days: int = 1,
    ratio: float = 1.0,
    urgent: bool = False,
    kind: Kind = Kind.SMALL,
    fruit: Literal["mandarin", "kiwi"] = "kiwi",
    place: Place | None = None,
    either: int | list[str] = 0,
    count: Annotated[int, Field(ge=1, le=5)] = 1,
) -> None:
    """Take whatever fits."""


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"city": 5}, '"city": expected a string, got a number'),
        ({}, '"city": missing'),
        ({"city": "T", "days": "1"}, '"days": expected an integer, got a string'),
        ({"city": "T", "days": True}, '"days": expected an integer, got a boolean'),
        ({"city": "T", "days": 1.5}, '"days": expected an integer, got a number'),
        ({"city": "T", "days": None}, '"days": expected an integer, got null'),
        ({"city": "T", "ratio": False}, '"ratio": expected a number, got a boolean'),
        ({"city": "T", "urgent": 1}, '"urgent": expected a boolean, got a number'),
        ({"city": "T", "urgent": "yes"}, '"urgent": expected a boolean, got a string'),
        ({"city": "T", "kind": "huge"}, "\"kind\": expected 'small' or 'large'"),
        ({"city": "T", "fruit": "banana"}, "\"fruit\": expected 'mandarin' or 'kiwi'"),
        ({"city": "T", "place": []}, '"place": expected an object, got an array'),
        ({"city": "T", "place": {}}, '"place.street": missing'),
        (
            {"city": "T", "place": {"street": "x", "lines": ["a", 2]}},
            '"place.lines[1]": expected a string, got a number',
        ),
        ({"city": "T", "either": {}}, '"either": expected an integer or an array, got an object'),
        ({"city": "T", "count": 9}, '"count": should be less than or equal to 5'),
        ({"cty": "T", "city": "T"}, '"cty": unknown; did you mean "city"?'),
        ({"city": "T", "zzz": 1}, '"zzz": unknown'),
        ({"city": "T", "place": {"street": "x", "zip": 1}}, '"place.zip": unknown'),
        ({"city": {}, "days": []}, "BOTH"),
    ],
)
async def test_what_does_not_fit_is_said_precisely(args: Any, said: str) -> None:
    if said == "BOTH":
        said = '"city": expected a string, got an object; "days": expected an integer, got an array'

    assert await refusal(order, args) == said


async def test_more_than_ten_problems_are_counted() -> None:
    said = await refusal(order, {"city": "T", **{f"x{i}": i for i in range(25)}})

    assert said.count("unknown") == 10
    assert said.endswith("and 15 more")


async def test_names_of_any_length_are_told_shortly() -> None:
    assert len(await refusal(order, {"city": "T", "x" * 1_000_000: 1})) < 200


async def test_values_are_never_repeated_to_the_caller() -> None:
    assert "hunter2" not in await refusal(order, {"city": ["hunter2"], "days": "hunter2"})


@pytest.mark.parametrize("args", [None, [], "x", 5])
async def test_arguments_that_are_no_object_are_refused(args: Any) -> None:
    with pytest.raises(InvalidArguments, match='the arguments of "order" must be an object, not'):
        await call(order, args)


async def test_a_whole_number_is_an_integer_however_it_is_written() -> None:
    @function_tool
    def f(n: int, deep: dict[str, list[int]], x: float, free: Any) -> dict[str, Any]:
        return {"seen": [n, deep, x, free]}

    result = await call(f, {"n": 3.0, "deep": {"a": [1.0, 2]}, "x": 2, "free": "1.0"})

    assert result == {"seen": [3, {"a": [1, 2]}, 2.0, "1.0"]}
    assert [type(value) for value in result["seen"]][::2] == [int, float]


@given(st.integers())
async def test_integers_of_any_size_arrive_exactly(n: int) -> None:
    assert await call(echo, {"value": n}) == {"value": n}


@function_tool
async def echo(value: int) -> dict[str, int]:
    return {"value": value}


async def test_json_forms_of_richer_types_are_read() -> None:
    @function_tool
    def f(day: datetime.date, key: uuid.UUID, tags: set[str], pair: tuple[int, str]) -> None:
        assert (day, tags, pair) == (datetime.date(2026, 7, 28), {"a"}, (1, "b"))
        assert key.int == 1

    args = {"day": "2026-07-28", "key": str(uuid.UUID(int=1)), "tags": ["a"], "pair": [1, "b"]}
    assert await call(f, args) is None
    assert (await refusal(f, args | {"day": "tomorrow"})).startswith(
        '"day": should be a valid date in the format YYYY-MM-DD'
    )


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    city: str
    place: Place | None = None


async def test_a_type_that_allows_other_names_keeps_them_and_closed_ones_stay_closed() -> None:
    tool = function_tool(lambda args: {"seen": args.model_dump()}, name="f", args_type=Open)

    assert tool.arguments.schema["additionalProperties"] is True
    assert await call(tool, {"city": "T", "more": 1}) == {
        "seen": {"city": "T", "place": None, "more": 1}
    }
    assert "unknown" not in await refusal(tool, {"more": 1})
    assert await refusal(tool, {"city": "T", "place": {"street": "x", "zip": 1}}) == (
        '"place": fits none of the allowed forms'
    )


class Node(BaseModel):
    name: str
    children: list[Node] = []


async def test_a_recursive_type_says_at_its_root_that_it_is_an_object() -> None:
    tool = function_tool(lambda args: {"deep": args.children[0].name}, name="f", args_type=Node)

    assert tool.arguments.schema["type"] == "object"
    assert tool.arguments.schema["additionalProperties"] is False
    assert tool.arguments.schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert await call(tool, {"name": "a", "children": [{"name": "b"}]}) == {"deep": "b"}


class Range(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def check(self) -> Range:
        if self.low > self.high:
            raise ValueError("low must not be above high")

        return self


async def test_a_types_own_validators_speak() -> None:
    tool = function_tool(lambda args: None, name="f", args_type=Range)
    assert await refusal(tool, {"low": 2, "high": 1}) == "the whole: low must not be above high"


def breaks(value: int) -> int:
    raise KeyError("a bug")


@pytest.mark.spec("2.7")
async def test_a_validator_that_breaks_is_an_error_that_keeps_its_cause() -> None:
    def f(n: Annotated[int, AfterValidator(breaks)]) -> None: ...

    with pytest.raises(ToolError, match='the arguments of "f" could not be converted') as caught:
        await call(function_tool(f), {"n": 1})

    assert not isinstance(caught.value, InvalidArguments)
    assert isinstance(caught.value.__cause__, KeyError)


async def test_arguments_that_are_not_json_are_refused() -> None:
    with pytest.raises(InvalidArguments, match="are not JSON"):
        await call(order, {"city": object()})


async def test_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(InvalidArguments):
        await call(order, {"city": "\ud800"})


FRUIT = {
    "type": "object",
    "properties": {"fruit": {"enum": ["mandarin", "kiwi"]}},
    "required": ["fruit"],
}


@function_tool(input_schema=FRUIT)
async def eat(args: dict[str, Any]) -> None:
    """Eat what the schema allows."""


@pytest.mark.spec("2.4")
async def test_an_explicit_schema_is_shown_as_it_is_and_checked() -> None:
    assert eat.declaration().parameters_json_schema == FRUIT  # 2.4
    assert await call(eat, {"fruit": "mandarin"}) is None
    assert await refusal(eat, {"fruit": "banana"}) == '"fruit": expected "mandarin" or "kiwi"'
    assert await refusal(eat, {}) == '"fruit": missing'
    for args in (1, None):
        with pytest.raises(InvalidArguments, match="must be an object"):
            await call(eat, args)


@pytest.mark.spec("system-8")
async def test_a_schema_that_disagrees_with_the_type_leaves_nothing_that_fits() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}

    @function_tool(input_schema=schema)
    def f(x: int) -> None: ...

    assert await refusal(f, {"x": 1}) == '"x": expected a string, got a number'
    assert await refusal(f, {"x": "a"}) == '"x": expected an integer, got a string'


async def test_other_names_are_the_explicit_schemas_business() -> None:
    @function_tool(input_schema={"type": "object"})
    def loose(x: int) -> dict[str, int]:
        return {"x": x}

    @function_tool(input_schema={"type": "object", "additionalProperties": False})
    def tight(x: int) -> None: ...

    assert await call(loose, {"x": 1, "y": 2}) == {"x": 1}
    assert await refusal(tight, {"x": 1}) == '"x": unknown'


@pytest.mark.parametrize("schema", [{"type": "strin"}, {"$ref": "https://example.com/s.json"}])
def test_a_broken_schema_fails_when_the_tool_is_made(schema: Any) -> None:
    with pytest.raises(InvalidSchema, match='tool "f": its input schema is broken'):
        function_tool(lambda args: None, name="f", args_type=dict, input_schema=schema)

    with pytest.raises(InvalidSchema, match='tool "f": its output schema is broken'):
        function_tool(lambda args: None, name="f", args_type=dict, output_schema=schema)


OldDict = typing.TypedDict("OldDict", {"a-b": int, "other": "OldOther"}, total=False)


class OldOther(typing.TypedDict):
    name: str
    size: typing.NotRequired[int]


class NewDict(TypedDict, total=False):
    name: str


async def test_typed_dicts_of_either_module_are_read_at_any_depth() -> None:
    @function_tool
    def f(args: OldDict, others: list[OldOther] | None = None, new: NewDict | None = None) -> Any:
        return {"seen": [args, others, new]}

    seen = [{"a-b": 1, "other": {"name": "x"}}, [{"name": "y", "size": 2}], {}]
    args = dict(zip(("args", "others", "new"), seen, strict=True))
    assert await call(f, args) == {"seen": seen}
    assert await refusal(f, {"args": {"other": {"size": 1}}}) == '"args.other.name": missing'
    assert await refusal(f, {"args": {"x": 1}}) == '"args.x": unknown'


@dataclasses.dataclass
class Box:
    width: int
    label: str = dataclasses.field(default="", metadata={"description": "unused"})


async def test_nested_dataclasses_are_checked_too() -> None:
    @function_tool
    def f(box: Box, boxes: list[Box]) -> dict[str, int]:
        return {"width": box.width + sum(b.width for b in boxes)}

    assert await call(f, {"box": {"width": 1}, "boxes": [{"width": 2}]}) == {"width": 3}
    assert await refusal(f, {"box": {"width": 1}, "boxes": [{}, {"width": 1, "x": 2}]}) == (
        '"boxes[0].width": missing; "boxes[1].x": unknown'
    )


async def test_defaults_that_json_has_no_word_for_still_apply() -> None:
    sentinel = object()

    @function_tool
    def f(limit: float = math.inf, mark: Any = sentinel) -> dict[str, bool]:
        return {"defaults": limit == math.inf and mark is sentinel}

    assert f.arguments.schema["properties"] == {"limit": {"type": "number"}, "mark": {}}
    assert await call(f, {}) == {"defaults": True}


async def test_a_handler_may_keep_and_change_what_it_gets() -> None:
    @function_tool
    def f(args: dict[str, Any]) -> None:
        args["list"].append("mine")

    sent = {"list": []}
    await call(f, sent)

    assert sent == {"list": []}
