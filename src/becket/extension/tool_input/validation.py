"""Validates tool inputs against their JSON Schemas inside the extension.

Imported only if an extension enables it. A schema is compiled when its tool is called for the first time.
"""

from __future__ import annotations

from typing import Any

from becket._loggers import extension_logger
from becket._text import join_problems
from becket.errors import BadSchema, InvalidParams, Problem
from becket.json_schema import SchemaMode
from becket.json_schema.validator import Validator, compile_schema

__all__ = ["InputSchemaValidator"]

INPUT_POINTER = "/input"  # the position of the input in the params of `tool.call`


class InputSchemaValidator:
    """The compiled schemas of one extension. The schemas are the author's own; the inputs are not."""

    def __init__(self, extension: str, mode: SchemaMode) -> None:
        self._extension = extension
        self._mode = mode
        self._validators: dict[str, Validator | None] = {}

    def check(self, tool: str, schema: dict[str, Any], input: object) -> None:
        """Validates an input before its tool runs.

        Raises:
            InvalidParams: it does not fit, and the mode is to enforce; all problems, each with its pointer into the
                params of the call.
            BadSchema: the schema is invalid, and the mode is to enforce it.
        """
        if tool not in self._validators:
            self._validators[tool] = self._compile(tool, schema)
        validator = self._validators[tool]
        found = [] if validator is None else validator.find_problems(input)
        problems: list[Problem] = [(INPUT_POINTER + pointer, text) for pointer, text in found]
        if problems and self._mode is SchemaMode.ENFORCE:
            raise InvalidParams(problems)
        if problems:
            self._warn(f"an input does not fit the tool {tool!r}: {join_problems(problems)}")

    def _compile(self, tool: str, schema: dict[str, Any]) -> Validator | None:
        try:
            return compile_schema(schema, trusted=True)
        except BadSchema as error:
            if self._mode is SchemaMode.ENFORCE:
                raise
            self._warn(f"inputs of the tool {tool!r} cannot be checked: {error}")
            return None

    def _warn(self, text: str) -> None:
        extension_logger(self._extension).warning("%s", text)
