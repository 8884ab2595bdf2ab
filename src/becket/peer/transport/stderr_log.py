"""Buffers a child's stderr: a bounded tail, and escaped, rate-limited lines. No I/O.

Lines are passed on in portions: a function that logs a line may take long, and the loop is shared. Lines beyond the
rate are counted and never split.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import thread_time

from becket._text import escape
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.error_mapping import log_internal_error

__all__ = ["StderrLog"]

RATE_INTERVAL = 1.0
PORTION = 0.001  # seconds of processor time: 30 to 100 lines through `logging`


class StderrLog:
    """Takes stderr in chunks, with fixed memory and bounded time for each."""

    def __init__(
        self,
        on_line: Callable[[str], None] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        cpu_time: Callable[[], float] = thread_time,
    ) -> None:
        self.suppressed = 0
        self._on_line = on_line
        self._limits = limits
        self._cpu_time = cpu_time
        self._tail = bytearray()
        self._waiting = b""  # whole lines and the start of one that were not passed on yet
        self._line = bytearray()
        self._truncated_bytes = 0
        self._ended_in_return = False
        self._interval_start = -inf
        self._bytes = 0  # passed on in this second
        self._lines = 0
        self._is_over_rate = False
        self._unreported = 0

    @property
    def is_behind(self) -> bool:
        """Whether lines wait for `hand_out`. More may be fed, at the expense of those that wait."""
        return bool(self._waiting)

    def feed(self, data: bytes, now: float) -> None:
        """Takes the next bytes, and passes on a portion of lines."""
        limit = self._limits.stderr_tail
        self._tail += data[-limit:]
        if len(self._tail) > 2 * limit:  # trimmed in halves: each byte is moved once
            del self._tail[:-limit]
        if self._on_line is None:
            return
        if self._ended_in_return and data.startswith(b"\n"):
            data = data[1:]
        self._ended_in_return = data.endswith(b"\r")
        self._begin_second(now)
        if len(self._waiting) + len(data) > limit:
            self._suppress(self._waiting)
            self._waiting = b""
        if self._is_over_rate and not self._waiting:
            self._suppress(data)
        else:
            # A carriage return ends a line too: progress bars send nothing else.
            self._waiting += data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            self.hand_out(now)

    def hand_out(self, now: float) -> None:
        """Passes on lines until they have taken a portion of processor time."""
        self._begin_second(now)
        clock = self._cpu_time
        until = clock() + PORTION
        data, start = self._waiting, 0
        while (end := data.find(b"\n", start)) >= 0 and not self._is_over_rate:
            self._extend(data[start:end])
            start = end + 1
            self._finish_line()
            if clock() > until:
                self._waiting = data[start:]
                return
        self._waiting = b""
        if end >= 0:
            self._suppress(data[start:])
        else:
            self._extend(data[start:])

    def close(self, now: float) -> None:
        """Passes on a last line without an end; lines that still wait are counted."""
        self._begin_second(now)
        self._suppress(self._waiting)
        self._waiting = b""
        if self._on_line is not None and (self._line or self._truncated_bytes):
            self._finish_line()
        self._report_suppressed()

    def tail(self) -> str:
        """Returns the last lines, each escaped."""
        kept = bytes(self._tail[-self._limits.stderr_tail :]).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if kept.isascii() and (text := kept.decode()).replace("\n", "").isprintable():
            return text  # 32,768 lines one by one would take 15 ms
        return "\n".join(map(escape, kept.split(b"\n")))

    def _begin_second(self, now: float) -> None:
        if now - self._interval_start >= RATE_INTERVAL:
            self._interval_start = now
            self._bytes = self._lines = 0
            self._is_over_rate = False
            self._report_suppressed()

    def _extend(self, part: bytes) -> None:
        room = self._limits.stderr_line - len(self._line)
        self._line += part[:room]
        self._truncated_bytes += max(0, len(part) - room)

    def _finish_line(self) -> None:
        line, cut = bytes(self._line), self._truncated_bytes
        self._line.clear()
        self._truncated_bytes = 0
        self._bytes += len(line) + 1
        self._lines += 1
        if self._bytes > self._limits.stderr_rate or self._lines > self._limits.stderr_lines:
            self._is_over_rate = True
            self._count(1)
        elif line or cut:
            self._emit(escape(line) + (f" ... ({cut} more bytes)" if cut else ""))

    def _suppress(self, data: bytes) -> None:
        """Counts the lines that end in these bytes; keeps the start of the next one."""
        if (lines := data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")) == 0:
            self._extend(data)
            return
        self._count(lines)
        self._line.clear()
        self._truncated_bytes = 0
        self._extend(data[max(data.rfind(b"\n"), data.rfind(b"\r")) + 1 :])

    def _count(self, lines: int) -> None:
        self.suppressed += lines
        self._unreported += lines

    def _report_suppressed(self) -> None:
        if self._unreported:
            count, self._unreported = self._unreported, 0
            self._emit(f"({count} lines suppressed)")

    def _emit(self, line: str) -> None:
        if self._on_line is not None:
            try:
                self._on_line(line)
            except Exception as error:
                log_internal_error(error)
