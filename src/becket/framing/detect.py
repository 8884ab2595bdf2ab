"""Detects the framing of a connection from its first bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.errors import BadFrame, LocalProtocolError
from becket.framing.content_length import ContentLength
from becket.framing.framing import Frame, SkippedFrame
from becket.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from becket.framing.json_lines import JsonLines
    from becket.framing.length_prefixed import LengthPrefixed
    from becket.framing.oversize import OpenScanner

__all__ = ["AutoDetect", "detect_framing"]

WHITE_SPACE = b" \t\r\n"


def detect_framing(prefix: bytes) -> type[ContentLength | JsonLines | LengthPrefixed] | None:
    """Returns the framing whose input begins like this, or None: more bytes are needed.

    Input that begins like none of them goes to `ContentLength`, the default, which has the best error messages.
    """
    start = prefix.lstrip(WHITE_SPACE)[:1]
    if not start:
        return None
    if start in (b"{", b"["):
        from becket.framing.json_lines import JsonLines

        return JsonLines
    if start == b"\0":  # the first of four bytes is zero for every frame below 16 MiB
        from becket.framing.length_prefixed import LengthPrefixed

        return LengthPrefixed
    return ContentLength


class AutoDetect:
    """Detects the framing from the first bytes read, and delegates to it from then on. Nothing can be sent before."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.error: BadFrame | None = None
        self.frames = 0
        self.chosen: ContentLength | JsonLines | LengthPrefixed | None = None
        self._limits = limits
        self._prefix: bytes = b""
        self._scanner: OpenScanner | None = None

    @property
    def pending(self) -> int:
        return 0 if self.chosen is None else self.chosen.pending

    def scan_oversize(self, scanner: OpenScanner) -> None:
        """Skips responses above the limit from now on, in any framing."""
        self._scanner = scanner

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        chosen = self.chosen
        if chosen is None:
            chunk = self._prefix + chunk
            framing = detect_framing(chunk)
            if framing is None:
                # Only one framing skips blank lines, of any number; it needs none of them.
                self._prefix = chunk[: self._limits.header]
                return []
            self._prefix = b""
            chosen = self.chosen = framing(self._limits)
            if self._scanner is not None:
                chosen.scan_oversize(self._scanner)
        found = chosen.feed(chunk)
        self.error = chosen.error
        self.frames = chosen.frames
        return found

    def end(self) -> BadFrame | None:
        return None if self.chosen is None else self.chosen.end()

    def prefix(self, size: int) -> bytes | None:
        return None if self.chosen is None else self.chosen.prefix(size)

    def encode(self, body: bytes) -> bytes:
        if self.chosen is None:
            raise LocalProtocolError("the framing is unknown until the other peer has sent something")
        return self.chosen.encode(body)
