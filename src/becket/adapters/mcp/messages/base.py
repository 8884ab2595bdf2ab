"""Base class of MCP messages, pagination params, icons, annotations and progress tokens in `_meta`.

Optional members may be absent or null. Members that nobody here knows are passed over.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

__all__ = [
    "Annotations",
    "EmptyMessage",
    "Icon",
    "McpMessage",
    "PaginatedParams",
    "Role",
    "build_progress_meta",
    "empty_tuple",
    "find_progress_token",
]

Role: TypeAlias = Literal["user", "assistant"]


class McpMessage(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Params, results, or a part of either. `meta` is what travels beside: `progressToken`, and what anybody adds."""

    meta: dict[str, Any] | None = field(default=None, name="_meta")


class EmptyMessage(McpMessage, frozen=True):
    """Nothing to say but that it was heard."""


class PaginatedParams(McpMessage, frozen=True):
    """Asks for one page of a list: the first, or the one that a `next_cursor` names."""

    cursor: str | None = None


def empty_tuple() -> tuple[Any, ...]:
    """Returns no elements: the default of a list that is always said, also where it is empty."""
    return ()


class Annotations(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """For whom something is, and how much it matters: 0 to 1."""

    audience: tuple[Role, ...] | None = None
    priority: float | None = None
    last_modified: str | None = None


class Icon(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A picture for people; `src` is a URL, or holds the picture itself."""

    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] | None = None
    theme: str | None = None


def build_progress_meta(token: int | str) -> dict[str, Any]:
    """Returns the `_meta` of a request whose caller wants to hear of its progress."""
    return {PROGRESS_TOKEN: token}


def find_progress_token(meta: dict[str, Any] | None) -> int | str | None:
    """Returns the token under which the progress of a request is to be told; None where nobody wants to hear of it."""
    token = None if meta is None else meta.get(PROGRESS_TOKEN)
    return token if isinstance(token, int | str) and not isinstance(token, bool) else None


PROGRESS_TOKEN = "progressToken"
