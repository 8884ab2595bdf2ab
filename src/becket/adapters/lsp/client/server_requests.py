"""Handles the requests and notifications that a language server sends to its client.

A client announces the capabilities whose methods it overrides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types

from becket._loggers import adapter_logger
from becket.adapters._awaitable import maybe_await
from becket.adapters.lsp import methods
from becket.adapters.lsp.client.documents import uri_of
from becket.adapters.lsp.client_capabilities import build_client_capabilities
from becket.adapters.lsp.conversion import convert
from becket.conversion.problems import is_object
from becket.methods.registry import Registry
from becket.peer.context import Context
from becket.peer.peer import Peer

__all__ = ["ServerRequestHandlers"]

LOG_LEVELS = {
    types.MessageType.Error: logging.ERROR,
    types.MessageType.Warning: logging.WARNING,
    types.MessageType.Info: logging.INFO,
    types.MessageType.Log: logging.DEBUG,
    types.MessageType.Debug: logging.DEBUG,
}
REFRESH_METHODS = (
    methods.WORKSPACE_CODE_LENS_REFRESH,
    methods.WORKSPACE_DIAGNOSTIC_REFRESH,
    methods.WORKSPACE_FOLDING_RANGE_REFRESH,
    methods.WORKSPACE_INLAY_HINT_REFRESH,
    methods.WORKSPACE_INLINE_VALUE_REFRESH,
    methods.WORKSPACE_SEMANTIC_TOKENS_REFRESH,
)


class ServerRequestHandlers:
    """Handlers of a server's requests, which may be plain functions or `async def`.

    `methods` has all of them, for a peer or a host. `settings` are the results of `workspace/configuration`, by
    section; `registrations` has the server's registrations by id."""

    def __init__(self, root: Path | None, settings: Mapping[str, Any]) -> None:
        self.root = root
        self.settings: dict[str, Any] = dict(settings)
        self.server_info: types.ServerInfo | None = None
        self.registrations: dict[str, types.Registration] = {}
        self.methods = Registry()
        self._last_peer: Peer | None = None
        self._register()

    def reset_for_peer(self, peer: Peer) -> bool:
        """Clears the state of the previous server if this peer is a new one; returns whether it is.

        A server that a host has started may send messages before its client is ready."""
        if peer is self._last_peer:
            return False
        self._last_peer = peer
        self.registrations.clear()
        return True

    async def configuration(self, item: types.ConfigurationItem) -> Any:
        """Returns one item of `workspace/configuration`: the section of `settings`, or None."""
        value: Any = self.settings
        for part in filter(None, (item.section or "").split(".")):
            value = value.get(part) if is_object(value) else None
        return value

    async def register_capability(self, params: types.RegistrationParams) -> None:
        """Stores the server's registrations."""
        self.registrations.update({registration.id: registration for registration in params.registrations})

    async def unregister_capability(self, params: types.UnregistrationParams) -> None:
        """Removes the server's registrations."""
        for gone in params.unregisterations:
            self.registrations.pop(gone.id, None)

    async def create_progress(self, params: types.WorkDoneProgressCreateParams) -> None:
        """Accepts a token for progress reports. Raise an `RpcError` to reject it."""

    async def apply_edit(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        """Rejects the edit: this client changes no files. The capability is announced if this is overridden."""
        return types.ApplyWorkspaceEditResult(applied=False, failure_reason="this client does not apply edits")

    async def show_message_request(self, params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        """Logs the message and selects no action."""
        self.log(params.type, params.message)
        return None

    async def show_document(self, params: types.ShowDocumentParams) -> types.ShowDocumentResult:
        """Rejects the request: this client has no display."""
        return types.ShowDocumentResult(success=False)

    async def workspace_folders(self) -> Sequence[types.WorkspaceFolder] | None:
        """Returns the root, or None."""
        return None if self.root is None else [types.WorkspaceFolder(uri_of(self.root), self.root.name)]

    async def refresh(self) -> None:
        """Handles the hint that lenses, tokens, hints or diagnostics should be requested again."""

    def show_message(self, params: types.ShowMessageParams) -> None:
        """Logs a message for the user."""
        self.log(params.type, params.message)

    def log_message(self, params: types.LogMessageParams) -> None:
        """Logs a log message."""
        self.log(params.type, params.message)

    def log(self, level: types.MessageType, message: str) -> None:
        """Writes a message of the server to the log `becket.lsp`."""
        name = "server" if self.server_info is None else self.server_info.name
        adapter_logger("lsp").log(LOG_LEVELS.get(level, logging.INFO), "%s: %s", name, message)

    # -- capabilities

    def build_capabilities(self) -> types.ClientCapabilities:
        """Returns the capabilities of the overridden methods; add those of features that you use yourself."""
        announced: types.ClientCapabilities = convert(
            build_client_capabilities(frozenset(self.methods)), types.ClientCapabilities
        )
        return announced

    def fallback_handlers(self) -> Registry:
        """Returns handlers of requests that a server may send although the client has not announced them."""
        registry = Registry()
        registry.handle(methods.WORKSPACE_APPLY_EDIT)(self.apply_edit)
        registry.handle(methods.WINDOW_SHOW_DOCUMENT)(self.show_document)
        return registry

    def _register(self) -> None:
        handle, on = self.methods.handle, self.methods.on
        handle(methods.WORKSPACE_CONFIGURATION)(self._on_configuration)
        handle(methods.CLIENT_REGISTER_CAPABILITY)(self._on_register_capability)
        handle(methods.CLIENT_UNREGISTER_CAPABILITY)(self.unregister_capability)
        handle(methods.WINDOW_WORK_DONE_PROGRESS_CREATE)(self.create_progress)
        handle(methods.WINDOW_SHOW_MESSAGE_REQUEST)(self.show_message_request)
        handle(methods.WORKSPACE_WORKSPACE_FOLDERS)(self.workspace_folders)
        for method in REFRESH_METHODS:
            handle(method)(self.refresh)
        on(methods.WINDOW_SHOW_MESSAGE)(self.show_message)
        on(methods.WINDOW_LOG_MESSAGE)(self.log_message)
        if is_overridden(self.apply_edit):
            handle(methods.WORKSPACE_APPLY_EDIT)(self.apply_edit)
        if is_overridden(self.show_document):
            handle(methods.WINDOW_SHOW_DOCUMENT)(self.show_document)

    async def _on_configuration(self, params: types.ConfigurationParams) -> Sequence[Any]:
        return [await maybe_await(self.configuration(item)) for item in params.items]

    async def _on_register_capability(self, params: types.RegistrationParams, ctx: Context) -> None:
        self.reset_for_peer(ctx.peer)
        await maybe_await(self.register_capability(params))


def is_overridden(method: Callable[..., Any]) -> bool:
    return getattr(method, "__func__", method) is not getattr(ServerRequestHandlers, method.__name__)
