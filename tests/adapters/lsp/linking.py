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
    """What a server was told and asked of its life, in order."""

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
    """Yields a client that has shaken hands, its server, and what that was told."""
    ours, theirs = memory_transports()
    told = Recorder()
    async with Peer.over(theirs, dialect=LSP, limits=LSP_LIMITS, name="client") as server:
        serve_life(server, told, capabilities or types.ServerCapabilities())
        async with client.over(ours) as connected:
            yield connected, server, told


def serve_life(server: Peer, told: Recorder, capabilities: types.ServerCapabilities) -> None:
    @server.handle(lsp.INITIALIZE)
    def initialize(params: types.InitializeParams) -> types.InitializeResult:
        told.words.append("initialize")
        told.initialize = params
        return types.InitializeResult(capabilities, types.ServerInfo("scripted", "1"))

    @server.on(lsp.INITIALIZED)
    def initialized() -> None:
        told.words.append("initialized")

    @server.handle(lsp.SHUTDOWN)
    def shutdown() -> None:
        told.words.append("shutdown")

    @server.on(lsp.EXIT)
    def exit() -> None:
        told.words.append("exit")

    @server.on(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        told.opened.append(params)

    @server.on(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        told.changes.append(params)

    @server.on(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        told.saved.append(params)

    @server.on(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        told.words.append(f"closed {params.text_document.uri}")

    @server.on(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: types.DidChangeConfigurationParams) -> None:
        told.words.append(f"settings {params.settings}")
