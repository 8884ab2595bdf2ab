"""Defines the LSP dialect record and the default limits of an LSP link."""

from __future__ import annotations

from becket.adapters.lsp.dialect import LSP
from becket.limits import Limits

__all__ = ["LSP_LIMITS"]

LSP_LIMITS: Limits = LSP.limits
