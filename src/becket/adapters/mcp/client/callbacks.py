"""Handles roots, sampling and elicitation requests with the client's callbacks.

What nobody gave a function for is not offered, and not answered.
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
"""A folder by its path, or a root as it is told. A text with `://` in it is a URI."""

SamplingCallback: TypeAlias = Callable[[CreateMessageParams], CreateMessageResult | Awaitable[CreateMessageResult]]
ElicitationCallback: TypeAlias = Callable[[ElicitParams], "ElicitResult | Mapping[str, Any] | Awaitable[Any] | None"]
"""Returns what the person has done; or only the values, or None for a no."""


class ClientCallbacks:
    """What a server may ask for. A function may be `async def`, or a plain one that returns at once.

    `samples_tools` says that `sample` can give tools to the model, `elicits_urls` that `elicit` can send a person to a
    URL: servers ask for neither otherwise."""

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
        """Returns what a server is told of it."""
        return ClientCapabilities(
            roots=None if self.roots is None else ListCapability(list_changed=True),
            sampling=None if self._sample is None else SamplingCapability(tools={} if self._samples_tools else None),
            elicitation=None if self._elicit is None else self._elicitation_capability(),
        )

    def _elicitation_capability(self) -> ElicitationCapability:
        # Servers of older versions know only forms, and an object without members for them.
        return ElicitationCapability(form={}, url={}) if self._elicits_urls else ElicitationCapability()

    def methods(self, *, requires: str | None = None) -> Registry:
        """Returns the handlers. Those that ask a model or a person may require a permission of the server."""
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

    async def _on_sampling(self, asked: CreateMessageParams) -> CreateMessageResult:
        assert self._sample is not None
        if not self._samples_tools and (asked.tools is not None or asked.tool_choice is not None):
            raise InvalidParams([("/tools", "this client gives no tools to models")])
        answer: CreateMessageResult = await maybe_await(self._sample(asked))
        return answer

    async def _on_elicitation(self, asked: ElicitParams) -> ElicitResult:
        assert self._elicit is not None
        if asked.mode == "url" and not self._elicits_urls:
            raise InvalidParams([("/mode", "this client sends nobody to a URL")])
        answer: Any = await maybe_await(self._elicit(asked))
        if isinstance(answer, ElicitResult):
            return answer
        return ElicitResult("decline") if answer is None else ElicitResult("accept", dict(answer))


def with_permission(method: Method[Any, Any], permission: str | None) -> Method[Any, Any]:
    return Method(method.name, method.params, method.result, requires=permission)


def on_ping(params: EmptyMessage | None) -> EmptyMessage:
    return EmptyMessage()


def parse_root(root: RootLike) -> Root:
    """Returns a root as it is told: a folder as a `file://` URI."""
    if isinstance(root, Root):
        return root
    if isinstance(root, str) and "://" in root:
        return Root(root)
    path = Path(root).absolute()
    return Root(path.as_uri(), path.name or None)
