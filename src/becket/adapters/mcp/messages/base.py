"""Base class of MCP messages, pagination params, icons, annotations and progress tokens in `_meta`.

Optional members may be absent or null. Unknown members are ignored.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

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
    """Base of params, results and their parts. `meta` is `_meta`: `progressToken` and custom members."""

    __becket_content__: ClassVar[bool] = True  # the result of a tool already: `extension.results` derives no schema

    meta: dict[str, Any] | None = field(default=None, name="_meta")


class EmptyMessage(McpMessage, frozen=True):
    """An empty message, such as an acknowledgement."""


class PaginatedParams(McpMessage, frozen=True):
    """Params for one page of a list: the first, or that of a `next_cursor`."""

    cursor: str | None = None


def empty_tuple() -> tuple[Any, ...]:
    """Returns an empty tuple, as the default of a list that is always sent."""
    return ()


class Annotations(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Audience and priority (0 to 1) of content."""

    audience: tuple[Role, ...] | None = None
    priority: float | None = None
    last_modified: str | None = None


class Icon(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An icon; `src` is a URL or a `data:` URL."""

    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] | None = None
    theme: str | None = None


def build_progress_meta(token: int | str) -> dict[str, Any]:
    """Returns the `_meta` that requests progress."""
    return {PROGRESS_TOKEN: token}


def find_progress_token(meta: dict[str, Any] | None) -> int | str | None:
    """Returns the progress token of a request, or None."""
    token = None if meta is None else meta.get(PROGRESS_TOKEN)
    return token if isinstance(token, int | str) and not isinstance(token, bool) else None


PROGRESS_TOKEN = "progressToken"
