"""What a child writes to its stderr: a bounded tail, and harmless lines for the log. Bytes in, lines out; no I/O."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from becket.errors import harmless
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.dispatch import log_unexpected

__all__ = ["StderrLog"]

SECOND = 1.0


class StderrLog:
    """Takes stderr as it comes, with fixed memory whatever comes."""

    def __init__(self, on_line: Callable[[str], None] | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        self.suppressed = 0
        self._on_line = on_line
        self._limits = limits
        self._tail = bytearray()
        self._line = bytearray()
        self._cut = 0
        self._second = -inf
        self._spent = 0
        self._unreported = 0

    def feed(self, data: bytes, now: float) -> None:
        """Takes the next bytes."""
        limit = self._limits.stderr_tail
        self._tail += data[-limit:]
        if len(self._tail) > 2 * limit:  # trimmed in halves: each byte is moved once
            del self._tail[:-limit]
        if self._on_line is None:
            return
        # A carriage return ends a line too: progress bars never send anything else.
        *lines, rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._extend(line)
            self._finish_line(now)
        self._extend(rest)

    def end(self, now: float) -> None:
        """Hands out a last line that has no end."""
        if self._on_line is not None and (self._line or self._cut):
            self._finish_line(now)
        self._report_suppressed()

    def tail(self) -> str:
        """Returns the last that was written, made harmless line by line."""
        kept = bytes(self._tail[-self._limits.stderr_tail :])
        return "\n".join(harmless(line) for line in kept.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))

    def _extend(self, part: bytes) -> None:
        room = self._limits.stderr_line - len(self._line)
        self._line += part[:room]
        self._cut += max(0, len(part) - room)

    def _finish_line(self, now: float) -> None:
        line, cut = bytes(self._line), self._cut
        self._line.clear()
        self._cut = 0
        if now - self._second >= SECOND:
            self._report_suppressed()
            self._second, self._spent = now, 0
        self._spent += len(line) + 1
        if self._spent > self._limits.stderr_rate:
            self.suppressed += 1
            self._unreported += 1
            return
        if line or cut:
            self._emit(harmless(line) + (f" ... ({cut} more bytes)" if cut else ""))

    def _report_suppressed(self) -> None:
        if self._unreported:
            count, self._unreported = self._unreported, 0
            self._emit(f"({count} lines suppressed)")

    def _emit(self, line: str) -> None:
        if self._on_line is not None:
            try:
                self._on_line(line)
            except Exception as error:
                log_unexpected(error)
