"""`plain`: JSON-RPC 2.0 with the base protocol of LSP. No handshake; what `Peer` speaks unless told otherwise."""

from __future__ import annotations

from becket.dialects.dialect import Dialect, ProgressForm
from becket.rpc.records import Cancelling

__all__ = ["PLAIN"]

PLAIN = Dialect(
    name="plain",
    cancelling=Cancelling("$/cancelRequest"),
    progress=ProgressForm("$/progress"),
)
