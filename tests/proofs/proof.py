"""The result of a proof: the text of its section, and whether it holds."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Proof"]


class Proof(Struct, frozen=True):
    lines: list[str]
    holds: bool
