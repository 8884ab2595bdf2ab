"""What a link of LSP holds and waits for unless told otherwise, at either end."""

from __future__ import annotations

from msgspec.structs import replace

from becket.dialects.lsp import LSP
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = ["LIMITS"]

LIMITS: Limits = replace(DEFAULT_LIMITS, **LSP.habits.limits)
