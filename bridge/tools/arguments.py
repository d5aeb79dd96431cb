"""What a handler takes: its argument type, the JSON Schema of it, and the way from JSON to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError

from bridge.core.content import Args
from bridge.core.declaration import Schema
from bridge.core.wire import dumps
from bridge.errors import ConfigError, InvalidArguments, InvalidSchema, ToolError
from bridge.tools.hints import annotated, bare, is_object_type, readable
from bridge.tools.problems import Problem, describe, from_pydantic, kind_of
from bridge.tools.schema import Checker, has_open_objects, inferred
from bridge.tools.signature import MISSING, Parameter, Signature


@dataclass(frozen=True, slots=True)
class Arguments:
    """One handler's arguments.

    `fields` pairs each of the handler's parameters with the attribute that holds its value, or
    is None where the handler takes the argument object whole.
    """

    tool_name: str
    schema: Schema
    adapter: TypeAdapter[Any]
    fields: tuple[tuple[str, str], ...] | None
    checker: Checker | None
    forbids_unknown: bool

    def convert(self, args: Args) -> Any:
        """From JSON to the handler's type: an explicit schema first, then the type itself.

        Types are strict: a string is no number and a boolean is no number, but 1.0 is an integer,
        as JSON has it. Names that the schema does not know are refused.

        Raises:
            InvalidArguments: They do not fit; the text says all of what is wrong.
            ToolError: A validator of the handler's own type failed otherwise.
        """
        if not isinstance(args, dict):
            raise InvalidArguments(
                f'the arguments of "{self.tool_name}" must be an object, not {kind_of(args)}'
            )

        try:
            self._check(args)
            return self._typed(args)
        except ToolError:
            raise
        except Exception as exc:  # the validators of a handler's type are a stranger's code
            raise ToolError(
                f'the arguments of "{self.tool_name}" could not be converted: {exc}'
            ) from exc

    def shown(self, value: Any) -> Args:
        """Converted arguments as a dict under their JSON names, defaults filled in.

        Raises:
            ToolError: The type cannot be shown so.
        """
        try:
            shown = self.adapter.dump_python(value, by_alias=True, warnings=False)
        except Exception as exc:  # a stranger's serializer
            raise ToolError(f'the arguments of "{self.tool_name}" cannot be shown: {exc}') from exc

        return dict(shown)

    def _check(self, args: Args) -> None:
        problems = None if self.checker is None else self.checker.problems(args)
        if problems:
            raise self._refused(problems)

    def _typed(self, args: Args) -> Any:
        try:
            data = dumps(args)
        except (ValueError, TypeError) as exc:
            raise InvalidArguments(
                f'the arguments of "{self.tool_name}" are not JSON: {exc}'
            ) from exc

        try:
            return self._read(data)
        except ValidationError as exc:
            error = exc

        if any(_is_whole_float(detail["input"]) for detail in error.errors(include_url=False)):
            try:
                return self._read(dumps(_with_whole_numbers(args)))
            except ValidationError as exc:
                error = exc

        known = list(self.schema.get("properties", ()))
        raise self._refused(from_pydantic(error, args, known))

    def _read(self, data: bytes) -> Any:
        if self.forbids_unknown:
            return self.adapter.validate_json(data, strict=True, extra="forbid")

        return self.adapter.validate_json(data, strict=True)

    def _refused(self, problems: list[Problem]) -> InvalidArguments:
        return InvalidArguments(
            f'the arguments of "{self.tool_name}" do not fit: {describe(problems)}'
        )


def arguments_of(
    signature: Signature,
    tool_name: str,
    *,
    args_type: Any = None,
    input_schema: Schema | None = None,
    descriptions: Mapping[str, str] | None = None,
) -> Arguments:
    """Work out a handler's arguments from its signature, or from what is given explicitly.

    A single parameter whose type is an object takes the arguments whole; otherwise each
    parameter takes the property of its name.

    Raises:
        ConfigError: The argument type is not one whose values are JSON objects.
        InvalidSchema: `input_schema` is broken, or the type has no schema.
    """
    whole = _whole_type(signature, tool_name, args_type)
    try:
        if whole is not None:
            adapter, fields = TypeAdapter(readable(whole)), None
        else:
            adapter, fields = _adapter_for(signature.parameters, tool_name, descriptions or {})
        schema = inferred(adapter, "validation")
        checker = None if input_schema is None else Checker(input_schema)
    except (PydanticUserError, NameError) as exc:
        reason = str(exc).splitlines()[0]
        raise InvalidSchema(f'tool "{tool_name}": no input schema: {reason}') from exc
    except InvalidSchema as exc:
        raise InvalidSchema(f'tool "{tool_name}": its input schema is broken: {exc}') from exc

    if checker is not None:
        return Arguments(tool_name, checker.schema, adapter, fields, checker, False)

    if fields is not None:
        schema.pop("title", None)

    # Forbidding unknown names at reading overrules a type that allows them; the schema does not.
    is_open = has_open_objects(schema)
    checker = Checker(schema) if is_open else None
    return Arguments(tool_name, schema, adapter, fields, checker, not is_open)


def _whole_type(signature: Signature, tool_name: str, args_type: Any) -> Any:
    """The type of the whole argument object, or None where each parameter is a property."""
    parameters = signature.parameters
    if args_type is None:
        hint = bare(parameters[0].annotation) if len(parameters) == 1 else None
        return hint if is_object_type(hint) else None

    whole = bare(args_type)
    if not is_object_type(whole):
        name = getattr(whole, "__name__", str(whole))
        raise ConfigError(
            f'tool "{tool_name}": its arguments are an object, so their type is a pydantic model, '
            f"dataclass, TypedDict or dict with string keys, not {name}"
        )

    if len(parameters) != 1:
        raise ConfigError(
            f'tool "{tool_name}": with args_type its function takes one parameter '
            f"(after the context), not {len(parameters)}"
        )

    return whole


def _adapter_for(
    parameters: tuple[Parameter, ...], tool_name: str, descriptions: Mapping[str, str]
) -> tuple[TypeAdapter[Any], tuple[tuple[str, str], ...]]:
    """A model with one field a parameter; its attributes have names that clash with nothing."""
    fields = tuple((parameter.name, f"p{index}") for index, parameter in enumerate(parameters))
    definitions: dict[str, Any] = {}
    for parameter, (name, attribute) in zip(parameters, fields, strict=True):
        hint = Any if parameter.annotation is MISSING else readable(parameter.annotation)
        # What the parameter says of itself comes after, and so wins.
        field = Field(alias=name, description=descriptions.get(name))
        default = ... if parameter.default is MISSING else parameter.default
        definitions[attribute] = (annotated(hint, field), default)

    model = create_model(tool_name, __config__=ConfigDict(extra="ignore"), **definitions)
    return TypeAdapter(model), fields


def _is_whole_float(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _with_whole_numbers(value: Any) -> Any:
    """The JSON value with 1.0 written as 1, which JSON Schema calls an integer."""
    if isinstance(value, dict):
        return {key: _with_whole_numbers(item) for key, item in value.items()}

    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]

    return int(value) if _is_whole_float(value) else value
