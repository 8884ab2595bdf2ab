"""Exports the LSP dialect, LanguageClient, pygls serving and a descriptor for each LSP method.

`await peer.call(lsp.TEXT_DOCUMENT_HOVER, HoverParams(...))` works on any peer; `LanguageClient` is a whole client of
one server; `run` and `serve` put a server that was written with pygls on becket's transports.

Each part is imported when it is first used. lsprotocol, which all of them need, takes half a second: nothing of becket
but this package imports it, or pygls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._extras import needs_extra
from becket._lazy import import_module, lazy_exports

if TYPE_CHECKING:
    from becket.adapters.lsp.client.documents import TextDocument as TextDocument, path_of as path_of, uri_of as uri_of
    from becket.adapters.lsp.client.language_client import LanguageClient as LanguageClient
    from becket.adapters.lsp.client.subscriptions import Subscription as Subscription
    from becket.adapters.lsp.dialect import LSP as LSP
    from becket.adapters.lsp.methods import *  # (one name for each method of LSP)
    from becket.adapters.lsp.positions import apply_edits as apply_edits
    from becket.adapters.lsp.progress import (
        PartialResult as PartialResult,
        Progress as Progress,
        WorkDone as WorkDone,
        WorkProgress as WorkProgress,
    )
    from becket.adapters.lsp.pygls_server import (
        run as run,
        serve as serve,
        serve_tcp as serve_tcp,
        serve_unix as serve_unix,
    )

EXPORTS = {
    "becket.adapters.lsp.client.documents": "TextDocument path_of uri_of",
    "becket.adapters.lsp.client.language_client": "LanguageClient",
    "becket.adapters.lsp.client.subscriptions": "Subscription",
    "becket.adapters.lsp.dialect": "LSP",
    "becket.adapters.lsp.positions": "apply_edits",
    "becket.adapters.lsp.progress": "PartialResult Progress WorkDone WorkProgress",
    "becket.adapters.lsp.pygls_server": "run serve serve_tcp serve_unix",
}

find_export, _ = lazy_exports(globals(), EXPORTS)


def __getattr__(name: str) -> object:
    if name == "LSP":  # needs no extra
        return find_export(name)
    with needs_extra("lsp"):
        return getattr(import_module("becket.adapters.lsp.methods"), name) if name.isupper() else find_export(name)


def __dir__() -> list[str]:
    with needs_extra("lsp"):
        from becket.adapters.lsp import methods

    return [*(name for names in EXPORTS.values() for name in names.split()), *methods.__all__]
