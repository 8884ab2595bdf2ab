"""MCP prompt and argument completion messages."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from becket.adapters.mcp.messages.base import Icon, McpMessage, PaginatedParams, Role, empty_tuple
from becket.adapters.mcp.messages.content import Content
from becket.methods.descriptors import Method, Notification

__all__ = [
    "COMPLETION_COMPLETE",
    "PROMPTS_CHANGED",
    "PROMPTS_GET",
    "PROMPTS_LIST",
    "CompleteParams",
    "CompleteResult",
    "Completion",
    "CompletionArgument",
    "CompletionContext",
    "GetPromptParams",
    "GetPromptResult",
    "ListPromptsResult",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptReference",
    "PromptsChanged",
    "ResourceTemplateReference",
]


class PromptArgument(Struct, frozen=True, omit_defaults=True):
    """An argument of a prompt."""

    name: str
    description: str | None = None
    required: bool | None = None
    title: str | None = None


class Prompt(McpMessage, frozen=True):
    """A prompt."""

    name: str
    description: str | None = None
    arguments: tuple[PromptArgument, ...] | None = None
    title: str | None = None
    icons: tuple[Icon, ...] | None = None


class ListPromptsResult(McpMessage, frozen=True):
    """A page of a server's prompts."""

    prompts: tuple[Prompt, ...]
    next_cursor: str | None = None


class GetPromptParams(McpMessage, frozen=True):
    """Params of `prompts/get`."""

    name: str
    arguments: dict[str, str] | None = None


class PromptMessage(Struct, frozen=True):
    """One message of a prompt."""

    role: Role
    content: Content


class GetPromptResult(McpMessage, frozen=True):
    """A prompt with its arguments filled in."""

    messages: tuple[PromptMessage, ...] = field(default_factory=empty_tuple)
    description: str | None = None


class PromptsChanged(McpMessage, frozen=True):
    """The server's prompts have changed."""


PROMPTS_LIST: Final[Method[PaginatedParams | None, ListPromptsResult]] = Method(
    "prompts/list",
    PaginatedParams | None,
    ListPromptsResult,
    direction="to-extension",
    summary="Lists the prompts of a server.",
)
PROMPTS_GET: Final = Method(
    "prompts/get", GetPromptParams, GetPromptResult, direction="to-extension", summary="Returns a prompt, filled in."
)
PROMPTS_CHANGED: Final[Notification[PromptsChanged | None]] = Notification(
    "notifications/prompts/list_changed", PromptsChanged | None, summary="The server has other prompts now."
)


# -- completion


class PromptReference(Struct, frozen=True, omit_defaults=True, tag="ref/prompt", tag_field="type"):
    """The prompt of the completed argument."""

    name: str
    title: str | None = None


class ResourceTemplateReference(Struct, frozen=True, tag="ref/resource", tag_field="type"):
    """The resource template of the completed argument."""

    uri: str


class CompletionArgument(Struct, frozen=True):
    """The argument to complete, with its beginning."""

    name: str
    value: str


class CompletionContext(Struct, frozen=True, omit_defaults=True):
    """The other arguments."""

    arguments: dict[str, str] | None = None


class CompleteParams(McpMessage, frozen=True):
    """Params of `completion/complete`."""

    ref: PromptReference | ResourceTemplateReference
    argument: CompletionArgument
    context: CompletionContext | None = None


class Completion(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """At most 100 completions."""

    values: tuple[str, ...] = field(default_factory=empty_tuple)
    total: int | None = None
    has_more: bool | None = None


class CompleteResult(McpMessage, frozen=True):
    """Result of `completion/complete`."""

    completion: Completion = field(default_factory=Completion)


COMPLETION_COMPLETE: Final = Method(
    "completion/complete",
    CompleteParams,
    CompleteResult,
    direction="to-extension",
    summary="Returns completions of an argument of a prompt or a template.",
)
