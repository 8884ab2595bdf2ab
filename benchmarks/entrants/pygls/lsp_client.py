"""The client of pygls, which requests a hover from a language server."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from benchmarks.hosting.request_loop import Ask, run_client
from benchmarks.workloads import MESSAGE_TEXT

logging.disable(logging.CRITICAL)
URI = "file:///notes.md"


@asynccontextmanager
async def connect(command: list[str]) -> AsyncIterator[Ask]:
    client = LanguageClient("benchmark", "1")
    await client.start_io(*command)
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
    client.initialized(types.InitializedParams())
    item = types.TextDocumentItem(URI, "markdown", 1, MESSAGE_TEXT)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    place = types.HoverParams(types.TextDocumentIdentifier(URI), types.Position(0, 0))
    yield lambda: client.text_document_hover_async(place)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


run_client(connect)
