"""A language server with a hover, on the stdio of pygls, or on becket's: `hover_server.py becket`."""

from __future__ import annotations

import sys

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("hover", "1")


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(ls: LanguageServer, params: types.HoverParams) -> types.Hover:
    document = ls.workspace.get_text_document(params.text_document.uri)
    line = document.lines[params.position.line]
    end = types.Position(params.position.line, len(line))
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, line), types.Range(types.Position(params.position.line, 0), end)
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["becket"]:
        from becket.adapters import lsp

        lsp.run(server)
    else:
        server.start_io()
