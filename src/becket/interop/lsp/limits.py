"""What a link of LSP holds and waits for unless told otherwise, at either end."""

from __future__ import annotations

from becket.dialects.lsp import LSP
from becket.limits import Limits

__all__ = ["LIMITS"]

LIMITS: Limits = LSP.limits
