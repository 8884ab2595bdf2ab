"""Resources: what can be read of a server by its URI, listed one by one or as templates, and watched."""

from __future__ import annotations

from typing import Any, Final

from msgspec import field

from becket.dialects.mcp.contents import ResourceContents
from becket.dialects.mcp.words import Annotations, Icon, Page, Words, none
from becket.methods.descriptors import Method, Notification

__all__ = [
    "RESOURCES_CHANGED",
    "RESOURCES_LIST",
    "RESOURCES_READ",
    "RESOURCES_SUBSCRIBE",
    "RESOURCES_TEMPLATES_LIST",
    "RESOURCES_UNSUBSCRIBE",
    "RESOURCE_UPDATED",
    "ReadResource",
    "Resource",
    "ResourceRead",
    "ResourceTemplate",
    "ResourceTemplatesPage",
    "ResourceUpdated",
    "ResourcesChanged",
    "ResourcesPage",
]


class Resource(Words, frozen=True):
    """Something that can be read."""

    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None


class ResourceTemplate(Words, frozen=True):
    """A URI with places to fill in (RFC 6570), and what can be read there."""

    uri_template: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None


class ResourcesPage(Words, frozen=True):
    """Some of a server's resources, and where the others are."""

    resources: tuple[Resource, ...]
    next_cursor: str | None = None


class ResourceTemplatesPage(Words, frozen=True):
    """Some of a server's templates, and where the others are."""

    resource_templates: tuple[ResourceTemplate, ...]
    next_cursor: str | None = None


class ReadResource(Words, frozen=True):
    """Names a resource: to be read, or watched, or no longer watched."""

    uri: str


class ResourceRead(Words, frozen=True):
    """What a resource holds; more than one piece where it is a folder, say."""

    contents: tuple[ResourceContents, ...] = field(default_factory=none)


class ResourceUpdated(Words, frozen=True):
    """A resource that is watched is another now."""

    uri: str


class ResourcesChanged(Words, frozen=True):
    """The server has other resources now."""


RESOURCES_LIST: Final[Method[Page | None, ResourcesPage]] = Method(
    "resources/list",
    Page | None,
    ResourcesPage,
    direction="to-extension",
    summary="Lists the resources of a server.",
)
RESOURCES_TEMPLATES_LIST: Final[Method[Page | None, ResourceTemplatesPage]] = Method(
    "resources/templates/list",
    Page | None,
    ResourceTemplatesPage,
    direction="to-extension",
    summary="Lists the templates of resources of a server.",
)
RESOURCES_READ: Final = Method(
    "resources/read", ReadResource, ResourceRead, direction="to-extension", summary="Reads a resource."
)
RESOURCES_SUBSCRIBE: Final[Method[ReadResource, Any]] = Method(
    "resources/subscribe", ReadResource, Any, direction="to-extension", summary="Watches a resource."
)
RESOURCES_UNSUBSCRIBE: Final[Method[ReadResource, Any]] = Method(
    "resources/unsubscribe",
    ReadResource,
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
