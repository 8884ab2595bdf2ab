"""Defines `plain`, the default dialect of `Peer`: JSON-RPC 2.0 with LSP framing and no handshake."""

from __future__ import annotations

from becket.dialects.dialect import Dialect, ProgressFormat
from becket.jsonrpc.calls import CancellationFormat

__all__ = ["PLAIN"]

PLAIN = Dialect(
    name="plain",
    cancellation=CancellationFormat("$/cancelRequest"),
    progress=ProgressFormat("$/progress"),
)
