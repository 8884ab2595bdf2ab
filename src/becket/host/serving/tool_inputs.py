"""Validates tool inputs against the declared JSON Schemas before a call is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from msgspec import Struct

from becket._loggers import host_logger
from becket._text import join_problems
from becket.contract.names import strip_whitespace
from becket.contract.tools import Tool
from becket.errors import BadSchema, BadValue
from becket.host.time_slices import Slices
from becket.json_schema import SchemaMode
from becket.json_schema.validator import Validator, compile_schema

__all__ = ["CompiledInput", "ToolInputSchemas", "compile_inputs"]


class ToolInputSchemas:
    """The compiled schemas of an extension's tools; created by `compile_inputs`. `disabled` has the names of the tools
    whose schemas cannot be applied, each with the problem."""

    def __init__(
        self,
        extension: str,
        mode: SchemaMode,
        compiled: Mapping[str, CompiledInput] | None = None,
        disabled: Mapping[str, str] | None = None,
    ) -> None:
        self._extension = extension
        self.mode = mode
        self.compiled = compiled or {}
        self.disabled = disabled or {}

    async def check(self, tool: str, input: Any) -> None:
        """Validates an input before it is sent; in a thread, if schema and input make that slow.

        Raises:
            BadValue: it does not fit the schema, and the mode is to enforce it. All problems, each with its pointer.
        """
        compiled = self.compiled.get(tool)
        if compiled is None:
            return
        validator = compiled.validator
        problems = validator.find_problems_within_budget(input)
        if problems is None:
            problems = await anyio.to_thread.run_sync(validator.find_problems, input)
        if problems and self.mode is SchemaMode.ENFORCE:
            raise BadValue(f"input of the tool {tool!r}", problems)
        if problems:
            text = "%s: an input does not fit the tool %r: %s"
            host_logger().warning(text, self._extension, tool, join_problems(problems))


class CompiledInput(Struct, frozen=True, eq=False):
    """The schema of a tool's input, and its validator."""

    schema: Any
    validator: Validator


async def compile_inputs(
    extension: str,
    tools: Sequence[Tool],
    mode: SchemaMode,
    slices: Slices,
    *,
    is_tolerant: bool = False,
    before: ToolInputSchemas | None = None,
) -> ToolInputSchemas:
    """Compiles the schemas of an extension's tools, some in each slice. Those in `before` are not compiled again.

    If schemas are enforced, a tool whose schema is invalid, or not safe to apply, is disabled; with `is_tolerant` it is
    called without validation.
    """
    known = {} if before is None else before.compiled
    compiled: dict[str, CompiledInput] = {}
    unusable: dict[str, str] = {}
    for tool in tools if mode is not SchemaMode.OFF else ():
        name = strip_whitespace(tool.name)
        one = known.get(name)
        if one is None or one.schema != tool.input_schema:
            try:
                one = CompiledInput(tool.input_schema, compile_schema(tool.input_schema))
            except BadSchema as error:
                unusable[name] = join_problems([(f"/input_schema{at}", text) for at, text in error.problems])
                continue
        compiled[name] = one
        await slices.pause()
    disables = mode is SchemaMode.ENFORCE and not is_tolerant
    becomes = "is disabled" if disables else "is called without a check of its input"
    marks = {"is_problem": disables}  # a host has it among its problems: nothing is reported twice
    for name, because in unusable.items():
        text = "%s: the tool %r %s, its schema cannot be applied: %s"
        host_logger().warning(text, extension, name, becomes, because, extra=marks)
    return ToolInputSchemas(extension, mode, compiled, unusable if disables else None)
