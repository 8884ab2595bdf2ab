"""Derives the output schema of a tool from its return annotation, and checks every result against it.

Without an annotation, or with `Any`, content of a dialect or a type that has no JSON, there is no schema and no check.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any, Final

import msgspec

from becket._text import join_problems
from becket.contract.json_narrowing import is_array, is_object
from becket.conversion.introspect import get_type_name, is_model, needs_cattrs, unwrap_annotation, walk_annotation
from becket.errors import BadValue, Problem
from becket.extension.decorators import unwrap
from becket.extension.tool_input.signature import (
    DEFINITIONS_PREFIX,
    ToolSchemaBuilder,
    is_object_type,
    parameter_annotation,
    parameter_decoder,
)
from becket.jsonrpc.json_values import decode_json, encode_json

__all__ = ["Output", "read_tool_output"]

CONTENT_MARKER: Final = "__becket_content__"  # true for classes that an adapter sends as content, without a schema
SIMPLE: Final = (str, int, float, bool, NoneType)


class ToolOutput:
    """The output of a tool: `schema` for the host, and `write`, which checks a result."""

    def __init__(self, kind: Any, schemas: ToolSchemaBuilder) -> None:
        self._kind = kind
        self._read = parameter_decoder(kind, schemas)
        self._is_shaped = needs_cattrs(kind)
        self.schema: dict[str, Any] | None = None
        if kind is not NoneType:
            self.schema = (
                schemas.build_for_class(kind) if is_object_type(unwrap_annotation(kind)) else schemas.of_result(kind)
            )

    def write(self, tool: str, value: Any) -> Any:
        """Returns a result in the form to encode.

        Raises:
            TypeError: it does not fit the annotation; the text names every problem with its JSON pointer.
        """
        if type(value) is self._kind and self._kind in SIMPLE:
            return value
        plain = self._make_plain(value)
        problems = self._find_problems(plain)
        if problems:
            raise misfit(tool, self._kind, problems)
        return plain if self._is_shaped else value

    def _make_plain(self, value: Any) -> Any:
        if self._is_shaped:
            from becket.conversion.attrs_classes import unstructure

            return unstructure(value)
        return decode_json(encode_json(value))  # as the host will decode it, including raw JSON

    def _find_problems(self, plain: Any) -> list[Problem]:
        try:
            self._read(plain)
        except msgspec.ValidationError as error:
            from becket.conversion.problems import find_problems, to_problem

            return find_problems(plain, self._kind) or [to_problem(error)]
        except BadValue as error:
            return list(error.problems)
        if self.schema is None or not holds_classes(self.schema) or not (is_object(plain) or is_array(plain)):
            return []
        from becket.extension.tool_input.checks import find_unknown_members

        return find_unknown_members(plain, self.schema, "")


class ModelOutput:
    """`ToolOutput` for types with pydantic models, which have their own schemas and encoding."""

    def __init__(self, kind: Any) -> None:
        from becket.conversion.pydantic_models import find_model

        self._kind = kind
        self._model = find_model(kind)
        self.schema: dict[str, Any] | None = flat(self._model.schema("serialization"))

    def write(self, tool: str, value: Any) -> Any:
        """Returns a result as JSON values; raises TypeError as `ToolOutput.write` does."""
        plain, problem = self._model.write(value)
        if problem:
            from becket.json_schema.validator import compile_schema

            # pydantic names no place; its schema does, where JSON shows the difference.
            found = compile_schema(self.schema, trusted=True).find_problems(plain)
            raise misfit(tool, self._kind, list(found) or [("", problem)])
        return plain


Output = ToolOutput | ModelOutput


def flat(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema without a `$ref` at its root: a recursive model is among its definitions."""
    name = schema.get("$ref", "").removeprefix(DEFINITIONS_PREFIX)
    whole = {**schema["$defs"][name], "$defs": schema["$defs"]} if name else dict(schema)
    whole.pop("title", None)
    return whole


def misfit(tool: str, kind: Any, problems: Sequence[Problem]) -> TypeError:
    what = f"the tool {tool!r} returned what does not fit its annotation `{annotation_text(kind)}`"
    return TypeError(f"{what}: {join_problems(problems)}")


def read_tool_output(function: Any) -> Output | None:
    """Returns the output of a function from its annotation, or None if there is nothing to check."""
    target = unwrap(function)
    if "return" not in target.__annotations__:
        return None
    try:
        kind = parameter_annotation("return", target, function)
        kind = NoneType if kind is None else kind
        if kind is Any or is_content(kind):
            return None
        if any(is_model(part) for part in walk_annotation(kind, into_members=True)):
            return ModelOutput(kind)
        return ToolOutput(kind, ToolSchemaBuilder(function))
    except (TypeError, NotImplementedError, RecursionError):
        return None  # a name that exists for type checkers only, or a class without a schema


def is_content(kind: Any) -> bool:
    return any(getattr(part, CONTENT_MARKER, False) for part in walk_annotation(kind, into_members=False))


def holds_classes(schema: dict[str, Any]) -> bool:
    return "properties" in schema or "$defs" in schema


def annotation_text(kind: Any) -> str:
    return get_type_name(kind) if isinstance(kind, type) else str(kind).replace("typing.", "")
