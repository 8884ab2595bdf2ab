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
    """A resource."""

    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None


class ResourceTemplate(McpMessage, frozen=True):
    """A URI template (RFC 6570) for resources."""

    uri_template: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None


class ListResourcesResult(McpMessage, frozen=True):
    """A page of a server's resources."""

    resources: tuple[Resource, ...]
    next_cursor: str | None = None


class ListResourceTemplatesResult(McpMessage, frozen=True):
    """A page of a server's resource templates."""

    resource_templates: tuple[ResourceTemplate, ...]
    next_cursor: str | None = None


class ResourceParams(McpMessage, frozen=True):
    """Params of requests about one resource."""

    uri: str


class ReadResourceResult(McpMessage, frozen=True):
    """Contents of a resource; several for a folder, for example."""

    contents: tuple[ResourceContents, ...] = field(default_factory=empty_tuple)


class ResourceUpdated(McpMessage, frozen=True):
    """A subscribed resource has changed."""

    uri: str


class ResourcesChanged(McpMessage, frozen=True):
    """The server's list of resources has changed."""


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
