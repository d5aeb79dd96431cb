"""What a handler gives back: checked against its schema, as JSON, and always an object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python

from bridge.core.content import Result
from bridge.core.declaration import Schema
from bridge.core.wire import loads
from bridge.errors import InvalidSchema, ToolError
from bridge.tools.hints import readable
from bridge.tools.problems import Problem, describe, from_pydantic
from bridge.tools.schema import Checker, admits_object, inferred
from bridge.tools.signature import MISSING


@dataclass(frozen=True, slots=True)
class Results:
    """One handler's results: an explicit schema checks them, or their type does, or nothing."""

    tool_name: str
    schema: Schema | None
    adapter: TypeAdapter[Any] | None
    checker: Checker | None

    def to_result(self, output: Any) -> Result | None:
        """The JSON object for `output`: itself if it is one, else `{"result": output}`.

        None is no answer and stays None, if the schema lets an empty object (or null) through.

        Raises:
            ToolError: It does not fit the output schema, or is not JSON.
        """
        # Serializers and validators of a handler's own type are a stranger's code.
        try:
            value = self._to_json(output)
        except ToolError:
            raise
        except ValidationError as exc:
            raise self._refused(from_pydantic(exc, output, ())) from exc
        except Exception as exc:
            raise ToolError(f'the result of "{self.tool_name}" is not JSON: {exc}') from exc

        if output is None:
            return None

        return value if isinstance(value, dict) else {"result": value}

    def _to_json(self, output: Any) -> Any:
        if output is None:
            self._check_none()
            return None

        if self.adapter is not None:
            typed = self.adapter.validate_python(output)
            return loads(self.adapter.dump_json(typed, by_alias=True, warnings=False))

        value = to_jsonable_python(output, by_alias=True, inf_nan_mode="null")
        self._check(value)
        return value

    def _check_none(self) -> None:
        """None reads as {} where the schema wants an object, else as null."""
        empty: dict[str, Any] | None = (
            {} if self.schema is not None and admits_object(self.schema) else None
        )
        if self.adapter is not None:
            self.adapter.validate_python(empty)

        self._check(empty)

    def _check(self, value: Any) -> None:
        problems = self.checker.problems(value) if self.checker is not None else None
        if problems:
            raise self._refused(problems)

    def _refused(self, problems: list[Problem]) -> ToolError:
        return ToolError(
            f'the result of "{self.tool_name}" does not fit its output schema: {describe(problems)}'
        )


def results_of(returns: Any, tool_name: str, output_schema: Schema | None = None) -> Results:
    """Work out a handler's results from its return annotation, or from an explicit schema.

    A handler without an annotation, or annotated to return nothing, has no output schema.

    Raises:
        InvalidSchema: `output_schema` is broken, or the type has no schema.
    """
    try:
        if output_schema is not None:
            return Results(tool_name, output_schema, None, Checker(output_schema))

        if returns is MISSING or returns is type(None):
            return Results(tool_name, None, None, None)

        adapter = TypeAdapter(readable(returns))
        return Results(tool_name, inferred(adapter, "serialization"), adapter, None)
    except (PydanticUserError, NameError) as exc:
        reason = str(exc).splitlines()[0]
        raise InvalidSchema(f'tool "{tool_name}": no output schema: {reason}') from exc
    except InvalidSchema as exc:
        raise InvalidSchema(f'tool "{tool_name}": its output schema is broken: {exc}') from exc
