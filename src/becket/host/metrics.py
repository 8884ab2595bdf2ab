"""Call counts, rates and latencies of one extension over a sliding window. Pure."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["ExtensionMetrics", "MetricsRecorder"]

WINDOW: Final = 10.0  # seconds of the window: shorter ones jump, longer ones hide the present
SLICES: Final = 20  # slices in which calls are counted, so that memory does not grow with their number
MAX_LATENCIES: Final = 256  # the newest in the window; enough for a 95th percentile


class ExtensionMetrics(Struct, frozen=True):
    """How one extension responds, and how often it calls its host: `inbound_calls`. `latency_p50` is the median of the
    window in seconds, `latency_p95` the 95th percentile; both None without calls."""

    calls: int = 0
    failures: int = 0
    per_second: float = 0.0
    latency_p50: float | None = None
    latency_p95: float | None = None
    inbound_calls: int = 0
    inbound_per_second: float = 0.0


class MetricsRecorder:
    """Counts calls that have ended."""

    __slots__ = ("_calls", "_counts", "_failures", "_first", "_inbound", "_latencies", "_lock")

    def __init__(self) -> None:
        self._calls = 0
        self._failures = 0
        self._first: float | None = None
        self._counts: deque[list[float]] = deque()  # slices of the window with calls: when each began, and how many
        self._latencies: deque[tuple[float, float]] = deque(maxlen=MAX_LATENCIES)
        self._lock = Lock()  # two threads may read at once
        self._inbound: deque[tuple[float, int]] = deque(
            maxlen=SLICES + 1
        )  # counts of earlier snapshots, and their times

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

    def snapshot(self, now: float, inbound: int = 0) -> ExtensionMetrics:
        """Returns the counts of all time, and the rate and the latencies of the window before `now`.

        `inbound` is how often the extension has called its host, in all; the rate is that since an earlier snapshot."""
        return replace(self._read_calls(now), inbound_calls=inbound, inbound_per_second=self._read_rate(now, inbound))

    def _read_rate(self, now: float, inbound: int) -> float:
        with self._lock:
            looks = self._inbound
            while len(looks) > 1 and looks[0][0] < now - WINDOW:
                looks.popleft()
            if not looks or now - looks[-1][0] >= WINDOW / SLICES:
                looks.append((now, inbound))
            since, before = looks[0]
        return (inbound - before) / max(1.0, now - since)

    def _read_calls(self, now: float) -> ExtensionMetrics:
        if self._first is None:
            return ExtensionMetrics()
        since = now - WINDOW
        recent = sum(count for began, count in [*self._counts] if began >= since)  # calls end while a thread reads
        seconds = min(WINDOW, max(1.0, now - self._first))
        latencies = sorted(latency for ended, latency in [*self._latencies] if ended >= since)
        if not latencies:
            return ExtensionMetrics(self._calls, self._failures)
        return ExtensionMetrics(
            self._calls,
            self._failures,
            recent / seconds,
            latencies[len(latencies) // 2],
            latencies[len(latencies) * 95 // 100],
        )
