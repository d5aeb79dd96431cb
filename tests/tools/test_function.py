"""Python functions as tools: how they are made, called, gated, and what comes back."""

from __future__ import annotations

import contextvars
import dataclasses
import functools
import threading
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Optional, TypedDict

import anyio
import pytest
from pydantic import BaseModel, Field, RootModel

from bridge.core.confirmation import ToolConfirmation, call_hash
from bridge.core.context import (
    CallbackContext,
    Context,
    InvocationContext,
    ReadonlyContext,
    ToolContext,
    local_context,
)
from bridge.core.declaration import Declaration
from bridge.core.request import LLMRequest
from bridge.core.tool import FunctionTool, RequestProcessor
from bridge.errors import (
    ConfigError,
    ConfirmationRejected,
    ConfirmationRequired,
    InvalidArguments,
    InvalidSchema,
    ToolError,
    UpstreamUnavailable,
)
from bridge.tools.function import LocalTool, function_tool


def desk(answer: ToolConfirmation | None = None) -> ToolContext:
    return ToolContext(local_context("ann"), "c1", None, answer)


async def call(tool: LocalTool, args: Any, ctx: ToolContext | None = None) -> Any:
    return await tool.run(ctx or desk(), args)


class CityModel(BaseModel):
    city: str
    days: int = 1


@dataclasses.dataclass
class CityData:
    city: str
    days: int = 1


class CityDict(TypedDict):
    city: str
    days: int


CITY_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.spec("2.1")
async def test_keyword_parameters_form_the_arguments() -> None:
    @function_tool
    async def sum_up(a: int, b: int = 5) -> dict[str, int]:
        """Add two numbers.

        Args:
            a: The first.
            b: The second.
        """
        return {"sum": a + b}

    assert sum_up.declaration() == Declaration(
        name="sum_up",
        description="Add two numbers.",
        parameters_json_schema={
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "The first."},
                "b": {"type": "integer", "description": "The second.", "default": 5},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
        response_json_schema={"type": "object", "additionalProperties": {"type": "integer"}},
    )
    assert await call(sum_up, {"a": 2, "b": 3}) == {"sum": 5}  # 2.1
    assert await call(sum_up, {"a": 2}) == {"sum": 7}


async def test_the_first_parameter_takes_the_context_by_type_or_by_name() -> None:
    @function_tool
    async def typed(desk: ToolContext, city: str) -> dict[str, Any]:
        desk.state.set("last_city", city)
        return {"temperature_c": 22}

    @function_tool
    async def named(ctx, city: str) -> dict[str, Any]:
        ctx.state.set("last_city", city)
        return {"temperature_c": 22}

    for tool in (typed, named):
        ctx = desk()
        assert await call(tool, {"city": "Tokyo"}, ctx) == {"temperature_c": 22}  # 2.3
        assert ctx.actions.state_delta == {"last_city": "Tokyo"}
        assert list(tool.arguments.schema["properties"]) == ["city"]


def model_city(args: CityModel) -> Any:
    return args


def data_city(args: CityData) -> Any:
    return args


def maybe_city(args: CityModel | None) -> Any:
    return args


def optional_city(args: Optional[CityData]) -> Any:  # noqa: UP045
    return args


@pytest.mark.parametrize(
    ("handler", "made"),
    [
        (model_city, CityModel(city="Tokyo")),
        (data_city, CityData("Tokyo")),
        (maybe_city, CityModel(city="Tokyo")),
        (optional_city, CityData("Tokyo")),
    ],
)
async def test_a_struct_parameter_takes_the_arguments_whole(handler: Any, made: Any) -> None:
    seen = []
    spy = functools.wraps(handler)(lambda args: seen.append(args))
    tool = function_tool(spy, name="look_up")

    schema = dict(tool.arguments.schema)
    schema.pop("title")
    assert schema == CITY_SCHEMA
    await call(tool, {"city": "Tokyo"})
    assert seen == [made]


async def test_a_typed_dict_parameter_takes_the_arguments_whole() -> None:
    @function_tool
    def look_up(args: CityDict) -> dict[str, Any]:
        return {"seen": args}

    assert look_up.arguments.schema["required"] == ["city", "days"]
    assert look_up.arguments.schema["additionalProperties"] is False
    assert await call(look_up, {"city": "Tokyo", "days": 2}) == {
        "seen": {"city": "Tokyo", "days": 2}
    }
    with pytest.raises(InvalidArguments, match='"days": missing; "town": unknown'):
        await call(look_up, {"city": "Tokyo", "town": 1})


@pytest.mark.spec("2.1")
async def test_a_mapping_parameter_takes_any_names() -> None:
    def total(numbers: Mapping[str, int]) -> dict[str, int]:
        return {"sum": sum(numbers.values())}

    tool = function_tool(total)

    assert tool.arguments.schema == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }
    assert await call(tool, {"a": 2, "b": 3}) == {"sum": 5}  # 2.1
    with pytest.raises(InvalidArguments, match='"b": expected an integer, got a string'):
        await call(tool, {"a": 2, "b": "3"})


async def test_two_struct_parameters_are_two_properties() -> None:
    @function_tool
    def travel(start: CityModel, end: CityModel) -> dict[str, str]:
        return {"way": f"{start.city} to {end.city}"}

    assert set(travel.arguments.schema["properties"]) == {"start", "end"}
    args = {"start": {"city": "Tokyo"}, "end": {"city": "Osaka"}}
    assert await call(travel, args) == {"way": "Tokyo to Osaka"}


async def test_a_function_without_parameters_takes_the_empty_object_only() -> None:
    @function_tool
    def refresh() -> dict[str, bool]:
        return {"ok": True}

    assert refresh.arguments.schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert await call(refresh, {}) == {"ok": True}
    with pytest.raises(InvalidArguments, match='"force": unknown'):
        await call(refresh, {"force": True})


@dataclasses.dataclass
class Nothing:
    pass


@pytest.mark.spec("system-7")
async def test_an_empty_struct_is_an_argument_type_too() -> None:
    tool = function_tool(lambda args: {"got": args == Nothing()}, name="f", args_type=Nothing)
    assert await call(tool, {}) == {"got": True}


async def test_args_type_stands_in_for_an_annotation() -> None:
    def look_up(args) -> dict[str, str]:
        return {"city": args.city}

    tool = function_tool(look_up, args_type=CityModel)

    assert await call(tool, {"city": "Tokyo"}) == {"city": "Tokyo"}


@pytest.mark.spec("2.5")
@pytest.mark.spec("system-7")
@pytest.mark.parametrize(
    "args_type",
    [str, int, bool, list, list[CityModel], dict[int, str], RootModel[list[int]], int | None],
)
def test_an_argument_type_that_is_no_object_is_refused(args_type: Any) -> None:
    with pytest.raises(ConfigError, match='tool "f": its arguments are an object'):
        function_tool(lambda args: None, name="f", args_type=args_type)  # 2.5


def test_args_type_needs_exactly_one_parameter() -> None:
    with pytest.raises(ConfigError, match="takes one parameter"):
        function_tool(lambda a, b: None, name="f", args_type=dict)


def generator(city: str) -> Any:
    yield city


async def async_generator(city: str) -> Any:
    yield city


def takes_anything(*cities: str) -> None: ...


def takes_any_names(**cities: str) -> None: ...


def takes_nameless(city: str, /) -> None: ...


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (generator, "yields"),
        (async_generator, "yields"),
        (takes_anything, "takes anything"),
        (takes_any_names, "takes anything"),
        (takes_nameless, "no usable name"),
        (lambda: None, '"<lambda>" cannot name a tool'),
        ("not a function", "is not a function"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(handler: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        function_tool(handler)


def test_a_name_that_no_model_takes_is_refused() -> None:
    with pytest.raises(ConfigError, match='"get weather" cannot name a tool'):
        function_tool(model_city, name="get weather")


def test_hints_that_cannot_be_read_are_refused() -> None:
    def f(city: Unknown) -> None: ...  # noqa: F821

    with pytest.raises(ConfigError, match='tool "f": its signature cannot be read'):
        function_tool(f)


def test_a_type_without_a_schema_is_refused() -> None:
    class Opaque:
        pass

    def takes(x: Any, y: int) -> None: ...

    def gives() -> None: ...

    takes.__annotations__["x"] = Opaque
    gives.__annotations__["return"] = Opaque
    with pytest.raises(InvalidSchema, match='tool "takes": no input schema'):
        function_tool(takes)

    with pytest.raises(InvalidSchema, match='tool "gives": no output schema'):
        function_tool(gives)


async def test_anything_callable_can_be_a_tool() -> None:
    class Adder:
        """Add to a base."""

        def __init__(self, base: int) -> None:
            self.base = base

        async def __call__(self, a: int) -> dict[str, int]:
            return {"sum": self.base + a}

        def method(self, a: int) -> dict[str, int]:
            """Add, too."""
            return {"sum": self.base + a}

    async def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    add_two: Callable[..., Any] = functools.partial(add, b=2)
    for handler, name in ((Adder(2), "adder"), (Adder(2).method, None), (add_two, "add_two")):
        tool = function_tool(handler, name=name)
        assert await call(tool, {"a": 3}) == {"sum": 5}


def test_the_decorator_takes_options() -> None:
    @function_tool(name="find", description="Find it.", is_long_running=True)
    def f(what: str) -> None:
        """Not this."""

    assert (f.name, f.description, f.is_long_running) == ("find", "Find it.", True)


def test_it_is_a_function_tool_and_a_request_processor() -> None:
    tool = function_tool(model_city)
    assert isinstance(tool, FunctionTool)
    assert isinstance(tool, RequestProcessor)


@pytest.mark.spec("2.9")
async def test_packing_enters_it_twice() -> None:
    request, first, second = LLMRequest(), function_tool(model_city), function_tool(data_city)

    await first.process_request(desk(), request)
    await second.process_request(desk(), request)

    assert request.tools == {"model_city": first, "data_city": second}
    assert request.config is not None
    [entry] = request.config.tools  # 2.9
    assert entry is not None
    assert entry.function_declarations == [first.declaration(), second.declaration()]


@pytest.mark.spec("2.13")
@pytest.mark.spec("system-8")
def test_only_the_declaration_tells_that_it_runs_long() -> None:
    tool = function_tool(model_city, description="Look up.", is_long_running=True)
    silent = function_tool(model_city, description="", is_long_running=True)

    assert tool.description == "Look up."  # 2.13
    assert tool.declaration().description.startswith("Look up.\n\nThis operation takes long.")
    assert silent.declaration().description.startswith("This operation takes long.")


class Named(BaseModel):
    user_id: int = Field(alias="userId", description="Whose.")


async def test_names_and_descriptions_of_fields_are_those_of_the_json() -> None:
    @function_tool
    def f(
        who: Named,
        size: Annotated[int, Field(description="How big.", ge=1)],
        kind: str = Field("small", alias="type-of", description="Which kind."),
        json: bool = False,
        _x: Any = None,
    ) -> dict[str, Any]:
        """Do it.

        Args:
            size: Is said already.
            json: Whether.
        """
        return {"who": who.user_id, "size": size, "kind": kind, "json": json, "x": _x}

    assert f.arguments.schema["properties"] == {
        "who": {"$ref": "#/$defs/Named"},
        "size": {"type": "integer", "description": "How big.", "minimum": 1},
        "type-of": {"type": "string", "description": "Which kind.", "default": "small"},
        "json": {"type": "boolean", "description": "Whether.", "default": False},
        "_x": {"default": None},
    }
    assert await call(f, {"who": {"userId": 7}, "size": 2}) == {
        "who": 7,
        "size": 2,
        "kind": "small",
        "json": False,
        "x": None,
    }
    with pytest.raises(InvalidArguments, match=r'"who.userId": expected an integer, got a string'):
        await call(f, {"who": {"userId": "7"}, "size": 2})


@pytest.mark.spec("2.7")
async def test_a_handlers_exception_is_its_plain_message() -> None:
    @function_tool
    async def pay() -> None:
        raise LookupError("no such account")

    with pytest.raises(ToolError, match=r"^no such account$") as caught:
        await call(pay, {})

    assert isinstance(caught.value.__cause__, LookupError)


async def test_an_exception_without_a_message_tells_its_kind() -> None:
    @function_tool
    def pay() -> None:
        raise NotImplementedError

    with pytest.raises(ToolError, match=r"^NotImplementedError$"):
        await call(pay, {})


async def test_a_handlers_tool_error_is_raised_as_it_is() -> None:
    error = UpstreamUnavailable("away")

    @function_tool
    async def pay() -> None:
        raise error

    with pytest.raises(UpstreamUnavailable) as caught:
        await call(pay, {})

    assert caught.value is error


async def test_cancelling_a_call_passes_through_its_handler() -> None:
    started, ended = anyio.Event(), []

    @function_tool
    async def wait() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            ended.append("cancelled")
            raise

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, wait, {})
        await started.wait()
        tasks.cancel_scope.cancel()

    assert ended == ["cancelled"]


async def test_a_function_that_is_not_async_runs_in_a_thread_with_the_callers_context() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    who.set("ann")
    here = threading.get_ident()

    @function_tool
    def look() -> dict[str, Any]:
        return {"elsewhere": threading.get_ident() != here, "who": who.get()}

    assert await call(look, {}) == {"elsewhere": True, "who": "ann"}


async def test_a_blocking_handler_is_abandoned_when_its_call_is_cancelled() -> None:
    release, entered = threading.Event(), threading.Event()

    @function_tool
    def block() -> None:
        entered.set()
        release.wait(60)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, block, {})
            await anyio.to_thread.run_sync(entered.wait)
            tasks.cancel_scope.cancel()
        assert not release.is_set()
    finally:
        release.set()


async def test_a_sync_function_may_return_something_to_wait_for() -> None:
    async def later() -> dict[str, bool]:
        return {"ok": True}

    assert await call(function_tool(lambda: later(), name="f"), {}) == {"ok": True}


def guarded_pay(rule: Any, paid: list[Any]) -> LocalTool:
    @function_tool(require_confirmation=rule)
    def pay(amount: float, to: str = "bob") -> dict[str, bool]:
        paid.append((amount, to))
        return {"paid": True}

    return pay


async def test_a_guarded_call_waits_and_then_runs_with_the_approved_arguments() -> None:
    paid: list[Any] = []
    pay, ctx = guarded_pay(True, paid), desk()

    with pytest.raises(ConfirmationRequired):
        await call(pay, {"amount": 100}, ctx)

    [question] = ctx.actions.requested_tool_confirmations.values()
    fingerprint = call_hash("ann", pay.subject, {"amount": 100})
    assert question.payload == {
        "arguments": {"amount": 100},
        "hash": fingerprint,
        "tool": "pay",
        "upstream": "local",
    }
    assert paid == []
    yes = ToolConfirmation(confirmed=True, hash=fingerprint)
    assert await call(pay, {"amount": 100}, desk(yes)) == {"paid": True}
    with pytest.raises(ConfirmationRequired):
        await call(pay, {"amount": 999}, desk(yes))

    with pytest.raises(ConfirmationRejected):
        await call(pay, {"amount": 100}, desk(ToolConfirmation()))

    assert paid == [(100.0, "bob")]


async def test_arguments_that_do_not_fit_ask_nobody() -> None:
    ctx, paid = desk(), []

    with pytest.raises(InvalidArguments):
        await call(guarded_pay(True, paid), {"amount": "100"}, ctx)

    assert ctx.actions.requested_tool_confirmations == {}
    assert not ctx.actions.skip_summarization
    assert paid == []


async def test_a_provider_sees_converted_arguments_with_their_defaults() -> None:
    seen: list[Any] = []

    def note(name: str, args: dict[str, Any]) -> bool:
        seen.append((name, args))
        return False

    assert await call(guarded_pay(note, []), {"amount": 100}) == {"paid": True}
    assert seen == [("pay", {"amount": 100.0, "to": "bob"})]
    assert isinstance(seen[0][1]["amount"], float)


async def test_a_provider_sees_a_struct_as_a_dict_with_json_names() -> None:
    seen: list[Any] = []

    def note(name: str, args: dict[str, Any]) -> bool:
        seen.append(args)
        return False

    tool = function_tool(lambda args: None, name="f", args_type=Named, require_confirmation=note)
    await call(tool, {"userId": 7})

    assert seen == [{"userId": 7}]


@pytest.mark.spec("7.12")
async def test_a_conditional_provider_decides_call_by_call() -> None:
    pay = guarded_pay(lambda name, args: args["amount"] < 5, [])

    assert await call(pay, {"amount": 7}) == {"paid": True}  # 7.12
    with pytest.raises(ConfirmationRequired):
        await call(pay, {"amount": 4})


async def test_two_rules_are_both_asked() -> None:
    paid: list[Any] = []
    calm = guarded_pay(lambda name, args: False, paid)
    strict = calm.with_rule(guarded_pay(True, paid).rule)

    assert await call(calm, {"amount": 1}) == {"paid": True}
    with pytest.raises(ConfirmationRequired):
        await call(strict, {"amount": 1})


async def test_a_copy_under_another_name_is_the_same_tool_to_an_approval() -> None:
    pay = guarded_pay(True, [])
    other = pay.relabelled("bank__pay", "Pay somebody.")

    assert (other.name, other.description) == ("bank__pay", "Pay somebody.")
    assert other.subject == pay.subject
    assert other.declaration().name == "bank__pay"
    assert pay.relabelled("p").description == pay.description
    assert pay.name == "pay"


def test_the_definition_of_a_tool_names_all_that_it_says_of_itself() -> None:
    def f(a: int) -> str: ...

    def g(a: float) -> str: ...

    tools = [
        function_tool(f, name="t", description="x"),
        function_tool(f, name="t", description="y"),
        function_tool(g, name="t", description="x"),
        function_tool(f, name="t", description="x", output_schema={}),
    ]
    again = function_tool(f, name="t", description="x")

    assert len({tool.subject.definition for tool in tools}) == 4
    assert again.subject == tools[0].subject


class Wants:
    """Functions whose first parameter is for the call's context, however that is written."""

    @staticmethod
    def optional(call: Optional[ToolContext], city: str) -> str:  # noqa: UP045
        return f"{call.function_call_id} {city}" if call else "nothing"

    @staticmethod
    def or_none(call: ToolContext | None = None, city: str = "") -> str:
        return f"{call.function_call_id} {city}" if call else "nothing"

    @staticmethod
    def with_metadata(call: Annotated[ToolContext, "the call"], city: str) -> str:
        return f"{call.function_call_id} {city}"

    @staticmethod
    def as_text(call: "ToolContext", city: "str") -> str:  # noqa: UP037
        return f"{call.function_call_id} {city}"

    @staticmethod
    def readable(call: ReadonlyContext, city: str) -> str:
        return f"c1 {city}" if call.user_id == "ann" else "nothing"

    @staticmethod
    def deep(call: Annotated[Optional[ReadonlyContext], "x"], city: str) -> str:  # noqa: UP045
        return f"c1 {city}" if call is not None and call.user_id == "ann" else "nothing"

    @staticmethod
    def anything(ctx: Any, city: str) -> str:
        return f"{ctx.function_call_id} {city}"


@pytest.mark.parametrize("name", [name for name in vars(Wants) if not name.startswith("_")])
async def test_the_context_parameter_may_be_annotated_in_many_ways(name: str) -> None:
    tool = function_tool(getattr(Wants, name))

    assert list(tool.arguments.schema["properties"]) == ["city"]
    assert await call(tool, {"city": "Rome"}) == {"result": "c1 Rome"}


def takes_whole(call: Context, city: str) -> None: ...
def takes_run(call: InvocationContext, city: str) -> None: ...
def takes_hook_context(ctx: CallbackContext, city: str) -> None: ...
def takes_it_later(city: str, ctx: ToolContext) -> None: ...
def takes_two(ctx: ToolContext, other: ToolContext) -> None: ...
def takes_it_by_name(*, ctx: ToolContext, city: str) -> None: ...
def takes_many(*ctx: ToolContext) -> None: ...
def takes_a_text(ctx: str, city: str) -> None: ...
def takes_a_model(ctx: CityModel) -> None: ...


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (takes_whole, '"call" is annotated Context, and a tool\'s function is given a ToolContext'),
        (takes_run, '"call" is annotated InvocationContext'),
        (takes_hook_context, '"ctx" is annotated CallbackContext'),
        (takes_it_later, '"ctx" is for the call\'s context: make it the first parameter'),
        (takes_two, '"other" is for the call\'s context'),
        (takes_it_by_name, '"ctx" is for the call\'s context: make it a plain first parameter'),
        (takes_many, '"ctx" is for the call\'s context: make it a plain first parameter'),
        (takes_a_text, "give it another name"),
        (takes_a_model, "give it another name"),
    ],
)
def test_a_context_parameter_that_cannot_work_is_refused(handler: Any, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        function_tool(handler)

    assert said in str(refused.value)
    assert str(refused.value).startswith(f'tool "{handler.__name__}": parameter "')


def test_an_annotation_that_is_not_there_at_run_time_is_refused_with_a_reason() -> None:
    def lost(call: Any, city: str) -> None: ...

    lost.__annotations__["call"] = "NotImported"
    with pytest.raises(ConfigError, match=r"NotImported.*importable where the function is defined"):
        function_tool(lost)
