"""MCP resource messages: list, templates, read, subscribe and updates."""

from __future__ import annotations

from typing import Any, Final

from msgspec import field

from becket.adapters.mcp.messages.base import Annotations, Icon, McpMessage, PaginatedParams, empty_tuple
from becket.adapters.mcp.messages.content import ResourceContents
from becket.methods.descriptors import Method, Notification

__all__ = [
    "RESOURCES_CHANGED",
    "RESOURCES_LIST",
    "RESOURCES_READ",
    "RESOURCES_SUBSCRIBE",
    "RESOURCES_TEMPLATES_LIST",
    "RESOURCES_UNSUBSCRIBE",
    "RESOURCE_UPDATED",
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ReadResourceResult",
    "Resource",
    "ResourceParams",
    "ResourceTemplate",
    "ResourceUpdated",
    "ResourcesChanged",
]


class Resource(McpMessage, frozen=True):
    """Something that can be read."""

    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None


class ResourceTemplate(McpMessage, frozen=True):
    """A URI with places to fill in (RFC 6570), and what can be read there."""

    uri_template: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None


class ListResourcesResult(McpMessage, frozen=True):
    """Some of a server's resources, and where the others are."""

    resources: tuple[Resource, ...]
    next_cursor: str | None = None


class ListResourceTemplatesResult(McpMessage, frozen=True):
    """Some of a server's templates, and where the others are."""

    resource_templates: tuple[ResourceTemplate, ...]
    next_cursor: str | None = None


class ResourceParams(McpMessage, frozen=True):
    """Names a resource: to be read, or watched, or no longer watched."""

    uri: str


class ReadResourceResult(McpMessage, frozen=True):
    """What a resource holds; more than one piece where it is a folder, say."""

    contents: tuple[ResourceContents, ...] = field(default_factory=empty_tuple)


class ResourceUpdated(McpMessage, frozen=True):
    """A resource that is watched is another now."""

    uri: str


class ResourcesChanged(McpMessage, frozen=True):
    """The server has other resources now."""


RESOURCES_LIST: Final[Method[PaginatedParams | None, ListResourcesResult]] = Method(
    "resources/list",
    PaginatedParams | None,
    ListResourcesResult,
    direction="to-extension",
    summary="Lists the resources of a server.",
)
RESOURCES_TEMPLATES_LIST: Final[Method[PaginatedParams | None, ListResourceTemplatesResult]] = Method(
    "resources/templates/list",
    PaginatedParams | None,
    ListResourceTemplatesResult,
    direction="to-extension",
    summary="Lists the templates of resources of a server.",
)
RESOURCES_READ: Final = Method(
    "resources/read", ResourceParams, ReadResourceResult, direction="to-extension", summary="Reads a resource."
)
RESOURCES_SUBSCRIBE: Final[Method[ResourceParams, Any]] = Method(
    "resources/subscribe", ResourceParams, Any, direction="to-extension", summary="Watches a resource."
)
RESOURCES_UNSUBSCRIBE: Final[Method[ResourceParams, Any]] = Method(
    "resources/unsubscribe",
    ResourceParams,
    Any,
    direction="to-extension",
    summary="Watches a resource no longer.",
)
RESOURCE_UPDATED: Final = Notification(
    "notifications/resources/updated", ResourceUpdated, summary="A resource that is watched is another now."
)
RESOURCES_CHANGED: Final[Notification[ResourcesChanged | None]] = Notification(
    "notifications/resources/list_changed", ResourcesChanged | None, summary="The server has other resources now."
)
