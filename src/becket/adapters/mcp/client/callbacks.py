"""Handles roots, sampling and elicitation requests with the client's callbacks.

A feature without a callback is neither announced nor handled.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from becket.adapters._awaitable import maybe_await
from becket.adapters.mcp.messages.base import EmptyMessage
from becket.adapters.mcp.messages.client_features import (
    ELICITATION_CREATE,
    ROOTS_LIST,
    SAMPLING_CREATE_MESSAGE,
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    ElicitResult,
    ListRootsResult,
    Root,
)
from becket.adapters.mcp.messages.lifecycle import (
    PING,
    ClientCapabilities,
    ElicitationCapability,
    ListCapability,
    SamplingCapability,
)
from becket.errors import InvalidParams
from becket.methods.descriptors import Method
from becket.methods.registry import Registry

__all__ = ["ClientCallbacks", "ElicitationCallback", "RootLike", "SamplingCallback", "parse_root"]

T = TypeVar("T")

RootLike: TypeAlias = str | os.PathLike[str] | Root
"""A folder by its path, a URI (a string with `://`), or a `Root`."""

SamplingCallback: TypeAlias = Callable[[CreateMessageParams], CreateMessageResult | Awaitable[CreateMessageResult]]
ElicitationCallback: TypeAlias = Callable[[ElicitParams], "ElicitResult | Mapping[str, Any] | Awaitable[Any] | None"]
"""Returns the user's action; or only the values for an accept, or None for a decline."""


class ClientCallbacks:
    """Callbacks for requests of a server; `async def`, or plain functions that return at once.

    `samples_tools` announces that `sample` supports tools, `elicits_urls` that `elicit` can send the user to a URL."""

    def __init__(
        self,
        *,
        roots: Sequence[RootLike] | None = None,
        sample: SamplingCallback | None = None,
        elicit: ElicitationCallback | None = None,
        samples_tools: bool = False,
        elicits_urls: bool = False,
    ) -> None:
        self.roots = None if roots is None else tuple(map(parse_root, roots))
        self._sample = sample
        self._elicit = elicit
        self._samples_tools = samples_tools
        self._elicits_urls = elicits_urls

    def capabilities(self) -> ClientCapabilities:
        """Returns the capabilities to announce."""
        return ClientCapabilities(
            roots=None if self.roots is None else ListCapability(list_changed=True),
            sampling=None if self._sample is None else SamplingCapability(tools={} if self._samples_tools else None),
            elicitation=None if self._elicit is None else self._elicitation_capability(),
        )

    def _elicitation_capability(self) -> ElicitationCapability:
        # Servers of older versions know only forms, which are an empty object there.
        return ElicitationCapability(form={}, url={}) if self._elicits_urls else ElicitationCapability()

    def methods(self, *, requires: str | None = None) -> Registry:
        """Returns the handlers; sampling and elicitation can require a permission of the server."""
        methods = Registry()
        methods.handle(PING)(on_ping)
        if self.roots is not None:
            methods.handle(ROOTS_LIST)(self._list_roots)
        if self._sample is not None:
            methods.handle(with_permission(SAMPLING_CREATE_MESSAGE, requires))(self._on_sampling)
        if self._elicit is not None:
            methods.handle(with_permission(ELICITATION_CREATE, requires))(self._on_elicitation)
        return methods

    def _list_roots(self, params: EmptyMessage | None) -> ListRootsResult:
        return ListRootsResult(self.roots or ())

    async def _on_sampling(self, params: CreateMessageParams) -> CreateMessageResult:
        assert self._sample is not None
        if not self._samples_tools and (params.tools is not None or params.tool_choice is not None):
            raise InvalidParams([("/tools", "this client gives no tools to models")])
        result: CreateMessageResult = await maybe_await(self._sample(params))
        return result

    async def _on_elicitation(self, params: ElicitParams) -> ElicitResult:
        assert self._elicit is not None
        if params.mode == "url" and not self._elicits_urls:
            raise InvalidParams([("/mode", "this client does not open URLs")])
        result: Any = await maybe_await(self._elicit(params))
        if isinstance(result, ElicitResult):
            return result
        return ElicitResult("decline") if result is None else ElicitResult("accept", dict(result))


def with_permission(method: Method[Any, Any], permission: str | None) -> Method[Any, Any]:
    return Method(method.name, method.params, method.result, requires=permission)


def on_ping(params: EmptyMessage | None) -> EmptyMessage:
    return EmptyMessage()


def parse_root(root: RootLike) -> Root:
    """Returns a `Root`; a folder becomes a `file://` URI."""
    if isinstance(root, Root):
        return root
    if isinstance(root, str) and "://" in root:
        return Root(root)
    path = Path(root).absolute()
    return Root(path.as_uri(), path.name or None)
