"""How often an extension is called, how long its answers take, and how often it calls its host: counts, and a window
that slides. Pure: time comes in with each question; making the calls is whoever asks.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["Figures", "Meter"]

WINDOW: Final = 10.0  # seconds that the figures are about: shorter ones jump, longer ones hide what happens now
SLICES: Final = 20  # parts in which calls are counted, so that memory does not grow with their number
MOST_LATENCIES: Final = 256  # the newest in the window; enough for a 95th percentile


class Figures(Struct, frozen=True):
    """How one extension answers, and how often it calls its host: `asked`. `latency` is the median of the window in
    seconds, `latency_95` what 95 of 100 calls stay below; both None where there was none."""

    calls: int = 0
    failures: int = 0
    per_second: float = 0.0
    latency: float | None = None
    latency_95: float | None = None
    asked: int = 0
    asked_per_second: float = 0.0


class Meter:
    """Counts calls that have ended."""

    __slots__ = ("_asked", "_calls", "_counts", "_failures", "_first", "_latencies", "_lock")

    def __init__(self) -> None:
        self._calls = 0
        self._failures = 0
        self._first: float | None = None
        self._counts: deque[list[float]] = deque()  # slices of the window with calls: when each began, and how many
        self._latencies: deque[tuple[float, float]] = deque(maxlen=MOST_LATENCIES)
        self._lock = Lock()  # two threads may look at once
        self._asked: deque[tuple[float, int]] = deque(maxlen=SLICES + 1)  # counts of earlier looks, and when these were

    def record(self, began: float, ended: float, *, failed: bool) -> None:
        """Counts a call."""
        self._calls += 1
        self._failures += failed
        if self._first is None:
            self._first = began
        counts = self._counts
        if not counts or ended - counts[-1][0] >= WINDOW / SLICES:
            counts.append([ended, 0])
            if len(counts) > SLICES + 1:
                counts.popleft()
        counts[-1][1] += 1
        self._latencies.append((ended, ended - began))

    def read(self, now: float, asked: int = 0) -> Figures:
        """Returns the counts of all time, and the rate and the latencies of the window before `now`.

        `asked` is how often the extension has called its host, in all; the rate is that since an earlier look."""
        return replace(self._read_calls(now), asked=asked, asked_per_second=self._read_rate(now, asked))

    def _read_rate(self, now: float, asked: int) -> float:
        with self._lock:
            looks = self._asked
            while len(looks) > 1 and looks[0][0] < now - WINDOW:
                looks.popleft()
            if not looks or now - looks[-1][0] >= WINDOW / SLICES:
                looks.append((now, asked))
            since, before = looks[0]
        return (asked - before) / max(1.0, now - since)

    def _read_calls(self, now: float) -> Figures:
        if self._first is None:
            return Figures()
        since = now - WINDOW
        recent = sum(count for began, count in [*self._counts] if began >= since)  # calls end while a thread looks
        seconds = min(WINDOW, max(1.0, now - self._first))
        latencies = sorted(latency for ended, latency in [*self._latencies] if ended >= since)
        if not latencies:
            return Figures(self._calls, self._failures)
        return Figures(
            self._calls,
            self._failures,
            recent / seconds,
            latencies[len(latencies) // 2],
            latencies[len(latencies) * 95 // 100],
        )
