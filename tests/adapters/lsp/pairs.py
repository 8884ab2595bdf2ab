"""A client, and the server at the other end of its link: a peer that the test gives its handlers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeVar

from lsprotocol import types

from becket import Peer
from becket.adapters import lsp
from becket.adapters.lsp.dialect import LSP, LSP_LIMITS
from becket.testing.pairs import memory_transports

C = TypeVar("C", bound=lsp.LanguageClient)


class Recorder:
    """The notifications and requests that a server received, in order."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.initialize: types.InitializeParams
        self.changes: list[types.DidChangeTextDocumentParams] = []
        self.opened: list[types.DidOpenTextDocumentParams] = []
        self.saved: list[types.DidSaveTextDocumentParams] = []


@asynccontextmanager
async def linked(
    client: C, capabilities: types.ServerCapabilities | None = None
) -> AsyncGenerator[tuple[C, Peer, Recorder], None]:
    """Yields a client after its handshake, its server, and what the server received."""
    ours, theirs = memory_transports()
    received = Recorder()
    async with Peer.over(theirs, dialect=LSP, limits=LSP_LIMITS, name="client") as server:
        serve_life(server, received, capabilities or types.ServerCapabilities())
        async with client.over(ours) as connected:
            yield connected, server, received


def serve_life(server: Peer, received: Recorder, capabilities: types.ServerCapabilities) -> None:
    @server.handle(lsp.INITIALIZE)
    def initialize(params: types.InitializeParams) -> types.InitializeResult:
        received.words.append("initialize")
        received.initialize = params
        return types.InitializeResult(capabilities, types.ServerInfo("scripted", "1"))

    @server.on(lsp.INITIALIZED)
    def initialized() -> None:
        received.words.append("initialized")

    @server.handle(lsp.SHUTDOWN)
    def shutdown() -> None:
        received.words.append("shutdown")

    @server.on(lsp.EXIT)
    def exit() -> None:
        received.words.append("exit")

    @server.on(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        received.opened.append(params)

    @server.on(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        received.changes.append(params)

    @server.on(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        received.saved.append(params)

    @server.on(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        received.words.append(f"closed {params.text_document.uri}")

    @server.on(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: types.DidChangeConfigurationParams) -> None:
        received.words.append(f"settings {params.settings}")
