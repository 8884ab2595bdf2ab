"""becket's client, which requests a hover from a language server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lsprotocol import types

from becket.adapters import lsp
from benchmarks.hosting.request_loop import Ask, run_client
from benchmarks.workloads import MESSAGE_TEXT


@asynccontextmanager
async def connect(command: list[str]) -> AsyncIterator[Ask]:
    client = lsp.LanguageClient()
    async with (
        client.connect_process(command, inherit_env=True, on_stderr=lambda _: None),
        client.open_document("file:///notes.md", MESSAGE_TEXT) as document,
    ):
        place = types.HoverParams(document.identifier, types.Position(0, 0))
        yield lambda: client.call(lsp.TEXT_DOCUMENT_HOVER, place)


run_client(connect)
