"""Handles the requests and notifications that a language server sends to its client.

What a client announces to its server follows from what is overridden.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types

from becket._loggers import lsp_logger
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
    """What a server that asks is answered, by plain functions or `async def`.

    `methods` are all of them, for a link or for a host. `settings` are what `workspace/configuration` is answered from,
    by section; `registrations` is what the server has registered, by id."""

    def __init__(self, root: Path | None, settings: Mapping[str, Any]) -> None:
        self.root = root
        self.settings: dict[str, Any] = dict(settings)
        self.server_info: types.ServerInfo | None = None
        self.registrations: dict[str, types.Registration] = {}
        self.methods = Registry()
        self._last_peer: Peer | None = None
        self._register()

    def reset_for_peer(self, peer: Peer) -> bool:
        """Forgets what the last server has told, at the first word of another; returns whether it is another.

        A server may speak before its client knows that it is there: a host may have started it."""
        if peer is self._last_peer:
            return False
        self._last_peer = peer
        self.registrations.clear()
        return True

    async def configuration(self, item: types.ConfigurationItem) -> Any:
        """Answers one item of `workspace/configuration`: the section of `settings`, None where there is none."""
        value: Any = self.settings
        for part in filter(None, (item.section or "").split(".")):
            value = value.get(part) if is_object(value) else None
        return value

    async def register_capability(self, params: types.RegistrationParams) -> None:
        """Takes what the server registers."""
        self.registrations.update({registration.id: registration for registration in params.registrations})

    async def unregister_capability(self, params: types.UnregistrationParams) -> None:
        """Forgets what the server no longer wants."""
        for gone in params.unregisterations:
            self.registrations.pop(gone.id, None)

    async def create_progress(self, params: types.WorkDoneProgressCreateParams) -> None:
        """Allows the server to report its work under a token. Raise an `RpcError` to refuse it."""

    async def apply_edit(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        """Refuses: this client changes no files. The server is told that it may ask only where this is overridden."""
        return types.ApplyWorkspaceEditResult(applied=False, failure_reason="this client does not apply edits")

    async def show_message_request(self, params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        """Logs the message, and chooses none of the actions."""
        self.log(params.type, params.message)
        return None

    async def show_document(self, params: types.ShowDocumentParams) -> types.ShowDocumentResult:
        """Refuses: there is nothing to show it on."""
        return types.ShowDocumentResult(success=False)

    async def workspace_folders(self) -> Sequence[types.WorkspaceFolder] | None:
        """Answers with the root, None where there is none."""
        return None if self.root is None else [types.WorkspaceFolder(uri_of(self.root), self.root.name)]

    async def refresh(self) -> None:
        """Takes the word that something (lenses, tokens, hints, diagnostics) should be asked for again."""

    def show_message(self, params: types.ShowMessageParams) -> None:
        """Logs a message that is meant for a person."""
        self.log(params.type, params.message)

    def log_message(self, params: types.LogMessageParams) -> None:
        """Logs a message that is meant for the log."""
        self.log(params.type, params.message)

    def log(self, level: types.MessageType, message: str) -> None:
        """Writes a message of the server to the log `becket.lsp`."""
        name = "server" if self.server_info is None else self.server_info.name
        lsp_logger().log(LOG_LEVELS.get(level, logging.INFO), "%s: %s", name, message)

    # -- what it is told of them

    def build_capabilities(self) -> types.ClientCapabilities:
        """Returns what this client can do. What is overridden is announced; add to it what you ask for yourself."""
        announced: types.ClientCapabilities = convert(
            build_client_capabilities(frozenset(self.methods)), types.ClientCapabilities
        )
        return announced

    def fallback_handlers(self) -> Registry:
        """Returns answers to what a server was told not to ask, and may ask nevertheless."""
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
