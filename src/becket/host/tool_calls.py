"""Runs a tool between the hooks before and after it: one path for programs, for models and for the command line.

Hooks and tools are callables here, without processes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from msgspec import Struct

from becket.contract.hooks import Block, HookEvent, Modify, Replace
from becket.contract.tools import format_tool_result
from becket.errors import BecketError, ToolBlocked, ToolFailed
from becket.host.hooks import RunHooks
from becket.host.tools import RegisteredTool
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = ["CallTool", "ToolOutcome", "run_tool"]

CallTool: TypeAlias = Callable[[RegisteredTool, Any], Awaitable[Any]]
"""Runs a tool with an input and returns its result, as JSON."""


class ToolOutcome(Struct, frozen=True):
    """The result of a tool, or its error. `replacement` is the text of a hook that replaces either; a failure stays
    one."""

    tool: str
    result: Any = None
    error: Exception | None = None
    replacement: str | None = None

    def unwrap(self) -> Any:
        """Returns the result as JSON. Raises the error, or ToolFailed with the text that replaces the error's."""
        if self.error is None:
            return self.result if self.replacement is None else self.replacement
        if self.replacement is None:
            raise self.error
        raise ToolFailed(self.tool, self.replacement)

    @property
    def text(self) -> str:
        """The text for a model."""
        if self.replacement is not None:
            return self.replacement
        return format_tool_result(self.result) if self.error is None else describe_failure(self.error)


async def run_tool(
    tool: RegisteredTool,
    input: Any,
    call: CallTool,
    consult: RunHooks | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
) -> ToolOutcome:
    """Consults the hooks before a tool call, runs it with the input that they agree on, and consults them about its
    output.

    Raises:
        ToolBlocked: a hook has blocked the call. The tool has not run.
    """
    if consult is not None:
        before = await consult(HookEvent.before_tool_call(tool.name, input, runtime_name=tool.runtime_name))
        if isinstance(before.result, Block):
            raise ToolBlocked(tool.name, before.result.reason, before.by)
        if isinstance(before.result, Modify):
            input = before.result.input
    try:
        outcome = ToolOutcome(tool.name, await call(tool, input))
    except Exception as error:
        outcome = ToolOutcome(tool.name, error=error)
    if consult is None:
        return outcome
    event = HookEvent.after_tool_call(tool.name, input, outcome.text, runtime_name=tool.runtime_name, limits=limits)
    after = await consult(event)
    if not isinstance(after.result, Replace):
        return outcome
    return ToolOutcome(tool.name, outcome.result, outcome.error, after.result.output)


def describe_failure(error: Exception) -> str:
    # The text of an unknown error is for the log, not for a model or an extension.
    return f"Tool execution failed: {error if isinstance(error, BecketError) else 'internal error'}"
