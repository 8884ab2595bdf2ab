"""The inputs of an extension's tools, held against the schemas that it declared before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from msgspec import Struct

from becket.contract.names import trim
from becket.contract.tools import Tool
from becket.errors import BadCapabilities, BadSchema, BadValue, Problem, list_problems
from becket.host.slices import Slices
from becket.typed.schema import SchemaMode, Validator, compile_schema

__all__ = ["CompiledInput", "ToolInputs", "compile_inputs"]


class ToolInputs:
    """One compiled schema for each tool; made by `compile_inputs`."""

    def __init__(self, extension: str, mode: SchemaMode, compiled: Mapping[str, CompiledInput] | None = None) -> None:
        self._extension = extension
        self.mode = mode
        self.compiled = compiled or {}

    async def check(self, tool: str, input: dict[str, Any]) -> None:
        """Looks at an input before it is sent; in a thread, where schema and input make that a long look.

        Raises:
            BadValue: it does not fit the schema, and the mode is to enforce it. All problems, each with its pointer.
        """
        compiled = self.compiled.get(tool)
        problems = [] if compiled is None else await find_problems(compiled.validator, input)
        if problems and self.mode is SchemaMode.ENFORCE:
            raise BadValue(f"input of the tool {tool!r}", problems)
        if problems:
            warn("%s: an input does not fit the tool %r: %s", self._extension, tool, list_problems(problems))


class CompiledInput(Struct, frozen=True, eq=False):
    """The schema of a tool's input, and what checks values against it."""

    schema: Any
    validator: Validator


async def compile_inputs(
    extension: str,
    tools: Sequence[Tool],
    mode: SchemaMode,
    slices: Slices,
    *,
    is_tolerant: bool = False,
    before: ToolInputs | None = None,
) -> ToolInputs:
    """Compiles the schemas of an extension's tools, some in each slice. Those that `before` has are not compiled again.

    With `is_tolerant` a tool whose schema is of no use goes without.

    Raises:
        BadCapabilities: a schema is none, or not safe to apply, and the mode is to enforce them.
    """
    known = {} if before is None else before.compiled
    compiled: dict[str, CompiledInput] = {}
    problems: list[Problem] = []
    for index, tool in enumerate(tools if mode is not SchemaMode.OFF else ()):
        name = trim(tool.name)
        one = known.get(name)
        if one is None or one.schema != tool.input_schema:
            try:
                one = CompiledInput(tool.input_schema, compile_schema(tool.input_schema))
            except BadSchema as error:
                at = f"/capabilities/tools/{index}/input_schema"
                problems += [(f"{at}{pointer}", message) for pointer, message in error.problems]
                continue
        compiled[name] = one
        await slices.pause()
    if problems and mode is SchemaMode.ENFORCE and not is_tolerant:
        raise BadCapabilities(extension, problems)
    if problems:
        warn("%s: inputs of some tools cannot be checked: %s", extension, list_problems(problems))
    return ToolInputs(extension, mode, compiled)


async def find_problems(validator: Validator, input: dict[str, Any]) -> list[Problem]:
    problems = validator.find_problems_soon(input)
    return await anyio.to_thread.run_sync(validator.find_problems, input) if problems is None else problems


def warn(text: str, *parts: object) -> None:
    import logging

    logging.getLogger("becket.host").warning(text, *parts)
