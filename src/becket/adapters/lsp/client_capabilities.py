"""Builds the LSP client capabilities that a host announces."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["build_client_capabilities"]

MARKUP_KINDS: Final = ["markdown", "plaintext"]
CODE_ACTION_KINDS: Final = [
    "",
    "quickfix",
    "refactor",
    "refactor.extract",
    "refactor.inline",
    "refactor.move",
    "refactor.rewrite",
    "source",
    "source.organizeImports",
    "source.fixAll",
    "notebook",
]


def build_client_capabilities(serves: frozenset[str]) -> dict[str, Any]:
    """Returns the capabilities of a client that handles these methods."""
    links = {"linkSupport": True}
    return {
        # UTF-32 matches Python's strings; every server supports UTF-16.
        "general": {"positionEncodings": ["utf-32", "utf-16"]},
        "window": {
            "workDoneProgress": "window/workDoneProgress/create" in serves,
            "showDocument": {"support": "window/showDocument" in serves},
            "showMessage": {},
        },
        "workspace": {
            "applyEdit": "workspace/applyEdit" in serves,
            "configuration": "workspace/configuration" in serves,
            "workspaceFolders": "workspace/workspaceFolders" in serves,
            "didChangeConfiguration": {"dynamicRegistration": "client/registerCapability" in serves},
            "executeCommand": {},
            "symbol": {},
            "workspaceEdit": {"documentChanges": True},
        },
        "textDocument": {
            "synchronization": {"didSave": True},
            "publishDiagnostics": {
                "relatedInformation": True,
                "versionSupport": True,
                "codeDescriptionSupport": True,
                "dataSupport": True,
            },
            "diagnostic": {},
            "hover": {"contentFormat": MARKUP_KINDS},
            "completion": {"completionItem": {"documentationFormat": MARKUP_KINDS}},
            "signatureHelp": {},
            "declaration": links,
            "definition": links,
            "typeDefinition": links,
            "implementation": links,
            "references": {},
            "documentHighlight": {},
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
            "codeAction": {
                "codeActionLiteralSupport": {"codeActionKind": {"valueSet": CODE_ACTION_KINDS}},
                "dataSupport": True,
                "resolveSupport": {"properties": ["edit"]},
            },
            "formatting": {},
            "rangeFormatting": {},
            "rename": {"prepareSupport": True},
        },
    }
