"""Roder tool call messages."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from becket.methods.descriptors import Method

__all__ = ["TOOLS_CALL", "ToolCallParams", "ToolCallResult"]


class ToolCallParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Params of a tool call. Thread and turn identify the caller."""

    provider_id: str
    tool_name: str
    call_id: str
    thread_id: str
    turn_id: str
    arguments: Any


class ToolCallResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Result of a tool: `content` for the model, `data` for programs. `is_error` marks a failed tool."""

    content: str
    is_error: bool
    data: Any = None


TOOLS_CALL: Final = Method(
    "tools/call",
    ToolCallParams,
    ToolCallResult,
    timeout=30.0,
    direction="to-extension",
    summary="Runs a tool that the manifest lists.",
)
