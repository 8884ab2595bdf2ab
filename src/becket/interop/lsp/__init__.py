"""LSP: language servers as peers, with the types of lsprotocol.

`await peer.call(lsp.TEXT_DOCUMENT_HOVER, HoverParams(...))` works on any peer; `LanguageClient` is a whole client of
one server; `run` and `serve` put a server that was written with pygls on becket's transports.

Each part is imported when it is first used. lsprotocol, which all of them need, takes half a second: nothing of becket
but this package imports it, or pygls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

HOMES = {
    "Document": "documents",
    "Feed": "feeds",
    "LanguageClient": "client",
    "Partial": "progress",
    "Progress": "progress",
    "WorkDone": "progress",
    "WorkProgress": "progress",
    "apply_edits": "texts",
    "path_of": "documents",
    "run": "serving",
    "serve": "serving",
    "serve_tcp": "serving",
    "serve_unix": "serving",
    "uri_of": "documents",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    home = "methods" if name.isupper() else HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    from becket.interop.lsp import methods

    return [*__all__, *methods.__all__]
