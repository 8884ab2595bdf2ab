"""Exports the LSP dialect, LanguageClient, pygls serving and a descriptor for each LSP method.

`await peer.call(lsp.TEXT_DOCUMENT_HOVER, HoverParams(...))` works on any peer; `LanguageClient` is a whole client of
one server; `run` and `serve` put a server that was written with pygls on becket's transports.

Each part is imported when it is first used. lsprotocol, which all of them need, takes half a second: nothing of becket
but this package imports it, or pygls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from becket.adapters.lsp.client.documents import TextDocument, path_of, uri_of
    from becket.adapters.lsp.client.language_client import LanguageClient
    from becket.adapters.lsp.client.subscriptions import Subscription
    from becket.adapters.lsp.methods import *  # noqa: F403  (one name for each method of LSP)
    from becket.adapters.lsp.positions import apply_edits
    from becket.adapters.lsp.progress import PartialResult, Progress, WorkDone, WorkProgress
    from becket.adapters.lsp.pygls_server import run, serve, serve_tcp, serve_unix

__all__ = [
    "LanguageClient",
    "PartialResult",
    "Progress",
    "Subscription",
    "TextDocument",
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

LAZY_EXPORTS = {
    "TextDocument": "client.documents",
    "Subscription": "client.subscriptions",
    "LanguageClient": "client.language_client",
    "PartialResult": "progress",
    "Progress": "progress",
    "WorkDone": "progress",
    "WorkProgress": "progress",
    "apply_edits": "positions",
    "path_of": "client.documents",
    "run": "pygls_server",
    "serve": "pygls_server",
    "serve_tcp": "pygls_server",
    "serve_unix": "pygls_server",
    "uri_of": "client.documents",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    home = "methods" if name.isupper() else LAZY_EXPORTS.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    from becket.adapters.lsp import methods

    return [*__all__, *methods.__all__]
