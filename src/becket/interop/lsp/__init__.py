"""LSP: language servers as peers, with the types of lsprotocol.

`await peer.call(lsp.TEXT_DOCUMENT_HOVER, HoverParams(...))` works on any peer; `LanguageClient` is a whole client of
one server; `serve` puts a server that was written with pygls on becket's transports. Importing this takes half a
second, nearly all of it lsprotocol's own: nothing else of becket imports it.
"""

from __future__ import annotations

from becket.interop.lsp import methods
from becket.interop.lsp.client import LanguageClient
from becket.interop.lsp.documents import Document, path_of, uri_of
from becket.interop.lsp.feeds import Feed
from becket.interop.lsp.methods import *  # noqa: F403  (one name for each method of LSP)
from becket.interop.lsp.progress import Partial, Progress, WorkDone, WorkProgress
from becket.interop.lsp.serving import run, serve, serve_tcp, serve_unix
from becket.interop.lsp.texts import apply_edits

__all__ = [
    "Document",
    "Feed",
    "LanguageClient",
    "Partial",
    "Progress",
    "WorkDone",
    "WorkProgress",
    "apply_edits",
    "path_of",
    "run",
    "serve",
    "serve_tcp",
    "serve_unix",
    "uri_of",
]
__all__ += methods.__all__
