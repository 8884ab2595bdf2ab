"""Prompts: messages that a server writes for a user to start with; and proposals for what can be filled in."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from becket.dialects.mcp.contents import Content
from becket.dialects.mcp.words import Icon, Page, Role, Words, none
from becket.methods.descriptors import Method, Notification

__all__ = [
    "COMPLETION_COMPLETE",
    "PROMPTS_CHANGED",
    "PROMPTS_GET",
    "PROMPTS_LIST",
    "ArgumentSoFar",
    "Complete",
    "Completed",
    "CompletionContext",
    "GetPrompt",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptReference",
    "PromptText",
    "PromptsChanged",
    "PromptsPage",
    "Proposals",
    "TemplateReference",
]


class PromptArgument(Struct, frozen=True, omit_defaults=True):
    """A place in a prompt that can be filled in."""

    name: str
    description: str | None = None
    required: bool | None = None
    title: str | None = None


class Prompt(Words, frozen=True):
    """A prompt."""

    name: str
    description: str | None = None
    arguments: tuple[PromptArgument, ...] | None = None
    title: str | None = None
    icons: tuple[Icon, ...] | None = None


class PromptsPage(Words, frozen=True):
    """Some of a server's prompts, and where the others are."""

    prompts: tuple[Prompt, ...]
    next_cursor: str | None = None


class GetPrompt(Words, frozen=True):
    """Asks for a prompt with its places filled in."""

    name: str
    arguments: dict[str, str] | None = None


class PromptMessage(Struct, frozen=True):
    """One message of a prompt."""

    role: Role
    content: Content


class PromptText(Words, frozen=True):
    """A prompt, ready to be said."""

    messages: tuple[PromptMessage, ...] = field(default_factory=none)
    description: str | None = None


class PromptsChanged(Words, frozen=True):
    """The server has other prompts now."""


PROMPTS_LIST: Final[Method[Page | None, PromptsPage]] = Method(
    "prompts/list", Page | None, PromptsPage, direction="to-extension", summary="Lists the prompts of a server."
)
PROMPTS_GET: Final = Method(
    "prompts/get", GetPrompt, PromptText, direction="to-extension", summary="Asks for a prompt, filled in."
)
PROMPTS_CHANGED: Final[Notification[PromptsChanged | None]] = Notification(
    "notifications/prompts/list_changed", PromptsChanged | None, summary="The server has other prompts now."
)


# -- proposals


class PromptReference(Struct, frozen=True, omit_defaults=True, tag="ref/prompt", tag_field="type"):
    """A prompt whose argument is being filled in."""

    name: str
    title: str | None = None


class TemplateReference(Struct, frozen=True, tag="ref/resource", tag_field="type"):
    """A template of resources whose argument is being filled in."""

    uri: str


class ArgumentSoFar(Struct, frozen=True):
    """What was typed of an argument."""

    name: str
    value: str


class CompletionContext(Struct, frozen=True, omit_defaults=True):
    """The arguments that are filled in already."""

    arguments: dict[str, str] | None = None


class Complete(Words, frozen=True):
    """Asks for proposals for an argument."""

    ref: PromptReference | TemplateReference
    argument: ArgumentSoFar
    context: CompletionContext | None = None


class Proposals(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Values that would fit, at most a hundred."""

    values: tuple[str, ...] = field(default_factory=none)
    total: int | None = None
    has_more: bool | None = None


class Completed(Words, frozen=True):
    """The answer with the proposals."""

    completion: Proposals = field(default_factory=Proposals)


COMPLETION_COMPLETE: Final = Method(
    "completion/complete",
    Complete,
    Completed,
    direction="to-extension",
    summary="Asks for proposals for an argument of a prompt or a template.",
)
