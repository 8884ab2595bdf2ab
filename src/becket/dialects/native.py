"""Defines `native`, becket's own dialect: cancellation, progress, deadlines, credit, pings and logs."""

from __future__ import annotations

from becket.dialects.dialect import Dialect, ProgressFormat
from becket.jsonrpc.calls import CancellationFormat

__all__ = ["FEATURES", "NATIVE"]

FEATURES = frozenset({"cancel", "progress", "deadline", "credit", "ping", "log", "no_params"})

NATIVE = Dialect(
    name="native",
    cancellation=CancellationFormat("$/cancelRequest"),
    progress=ProgressFormat("$/progress"),
    ping="$/ping",
    credit="$/credit",
    features=FEATURES,
)
