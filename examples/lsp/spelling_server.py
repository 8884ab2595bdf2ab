"""A language server that finds words that were written twice in a row, made with pygls and run by becket.

`python diagnose.py notes.md python spelling_server.py`
"""

from __future__ import annotations

import asyncio
import re

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from becket.adapters import lsp

TWICE = re.compile(r"\b(\w+)\s+\1\b", re.IGNORECASE)

server = LanguageServer("spelling-server", "1.0")


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
async def opened(ls: LanguageServer, params: types.DidOpenTextDocumentParams) -> None:
    await check(ls, params.text_document.uri)


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
async def changed(ls: LanguageServer, params: types.DidChangeTextDocumentParams) -> None:
    await check(ls, params.text_document.uri)


async def check(ls: LanguageServer, uri: str) -> None:
    """Checks one line after the other, and reports progress."""
    document = ls.workspace.get_text_document(uri)
    token = f"check {document.version}"
    await ls.window_work_done_progress_create_async(types.WorkDoneProgressCreateParams(token))
    ls.work_done_progress.begin(token, types.WorkDoneProgressBegin("Reading", percentage=0))
    found: list[types.Diagnostic] = []
    for number, line in enumerate(document.lines):
        for match in TWICE.finditer(line):
            place = types.Range(types.Position(number, match.start()), types.Position(number, match.end()))
            problem = f"`{match[1]}` stands here twice"
            found.append(types.Diagnostic(place, problem, types.DiagnosticSeverity.Warning, source="spelling"))
        done = 100 * (number + 1) // len(document.lines)
        ls.work_done_progress.report(token, types.WorkDoneProgressReport(percentage=done))
        await asyncio.sleep(0)  # others want to be served, too
    ls.work_done_progress.end(token, types.WorkDoneProgressEnd())
    ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, document.version))


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(ls: LanguageServer, params: types.HoverParams) -> types.Hover | None:
    document = ls.workspace.get_text_document(params.text_document.uri)
    word = document.word_at_position(params.position)
    return types.Hover(f"`{word}` has {len(word)} letters") if word else None


if __name__ == "__main__":
    lsp.run(server)  # in place of server.start_io()
