"""What a proof returns: the text of its section, and whether all that it is about holds."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Proof"]


class Proof(Struct, frozen=True):
    lines: list[str]
    holds: bool
