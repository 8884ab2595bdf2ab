"""MCP requests from server to client: roots, sampling and elicitation."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct, field

from becket.adapters.mcp.messages.base import EmptyMessage, McpMessage, Role, empty_tuple
from becket.adapters.mcp.messages.content import SamplingContent, TextContent
from becket.adapters.mcp.messages.tools import McpTool
from becket.methods.descriptors import Method, Notification

__all__ = [
    "ELICITATION_COMPLETE",
    "ELICITATION_CREATE",
    "ROOTS_CHANGED",
    "ROOTS_LIST",
    "SAMPLING_CREATE_MESSAGE",
    "USER_REJECTED",
    "CreateMessageParams",
    "CreateMessageResult",
    "ElicitParams",
    "ElicitResult",
    "ElicitationCompleted",
    "ListRootsResult",
    "ModelHint",
    "ModelPreferences",
    "Root",
    "RootsChanged",
    "SamplingMessage",
    "ToolChoice",
]

USER_REJECTED: Final = -1
"""Error code of a request that the user has rejected."""


# -- roots


class Root(McpMessage, frozen=True):
    """A folder of the client, as a `file://` URI."""

    uri: str
    name: str | None = None


class ListRootsResult(McpMessage, frozen=True):
    """All roots."""

    roots: tuple[Root, ...] = field(default_factory=empty_tuple)


class RootsChanged(McpMessage, frozen=True):
    """The client's roots have changed."""


ROOTS_LIST: Final[Method[EmptyMessage | None, ListRootsResult]] = Method(
    "roots/list", EmptyMessage | None, ListRootsResult, summary="Returns the folders that the client works on."
)
ROOTS_CHANGED: Final[Notification[RootsChanged | None]] = Notification(
    "notifications/roots/list_changed",
    RootsChanged | None,
    direction="to-extension",
    summary="The client works on other folders now.",
)


# -- sampling


class SamplingMessage(McpMessage, frozen=True):
    """A message to or from a model."""

    role: Role
    content: SamplingContent | tuple[SamplingContent, ...]

    @property
    def blocks(self) -> tuple[SamplingContent, ...]:
        """The content as a tuple of blocks."""
        return self.content if isinstance(self.content, tuple) else (self.content,)


class ModelHint(Struct, frozen=True, omit_defaults=True):
    """A name of a model, or a part of one."""

    name: str | None = None


class ModelPreferences(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Preferences for a model: names in order of preference, and priorities from 0 to 1."""

    hints: tuple[ModelHint, ...] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class ToolChoice(Struct, frozen=True, omit_defaults=True):
    """Whether the model may, must or must not use tools."""

    mode: str | None = None


class CreateMessageParams(McpMessage, frozen=True):
    """Params of a sampling request."""

    messages: tuple[SamplingMessage, ...]
    max_tokens: int
    system_prompt: str | None = None
    model_preferences: ModelPreferences | None = None
    include_context: str | None = None
    temperature: float | None = None
    stop_sequences: tuple[str, ...] | None = None
    metadata: dict[str, Any] | None = None
    tools: tuple[McpTool, ...] | None = None
    tool_choice: ToolChoice | None = None


class CreateMessageResult(McpMessage, frozen=True):
    """The response of a model, and the model's name."""

    role: Role
    content: SamplingContent | tuple[SamplingContent, ...]
    model: str
    stop_reason: str | None = None

    @classmethod
    def from_text(cls, text: str, model: str, stop_reason: str = "endTurn") -> CreateMessageResult:
        """Returns a result with this text."""
        return cls("assistant", TextContent(text), model, stop_reason=stop_reason)

    @property
    def text(self) -> str:
        """The text of the response."""
        blocks = self.content if isinstance(self.content, tuple) else (self.content,)
        return "".join(block.text for block in blocks if isinstance(block, TextContent))


SAMPLING_CREATE_MESSAGE: Final = Method(
    "sampling/createMessage",
    CreateMessageParams,
    CreateMessageResult,
    timeout=300.0,
    summary="Calls a model of the client's.",
)


# -- elicitation


class ElicitParams(McpMessage, frozen=True):
    """Params of a prompt for the user: a form, or a URL.

    `requested_schema` is the JSON Schema of a flat object, one property for each field of the form."""

    message: str
    requested_schema: dict[str, Any] | None = None
    mode: Literal["form", "url"] | None = None
    url: str | None = None
    elicitation_id: str | None = None


class ElicitResult(McpMessage, frozen=True):
    """The user's action: accept with values, decline, or cancel."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class ElicitationCompleted(McpMessage, frozen=True):
    """An elicitation at a URL is complete."""

    elicitation_id: str


ELICITATION_CREATE: Final = Method(
    "elicitation/create", ElicitParams, ElicitResult, timeout=600.0, summary="Prompts the user for input."
)
ELICITATION_COMPLETE: Final = Notification(
    "notifications/elicitation/complete", ElicitationCompleted, summary="The prompt at a URL is done."
)
