"""What is measured: the workloads, their sizes, and the payloads that every entrant sends.

Pure data. How a workload is driven stands in `hosting`, what an entrant does with it in `entrants`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["EVENT_TEXT", "GROWTH_SIZES", "MESSAGE_TEXT", "WORKLOADS", "Workload"]

MESSAGE_TEXT = "The quick brown fox jumps over the lazy dog, and then it does all of that again while nobody looks. "
EVENT_TEXT = "twenty bytes of text"
GROWTH_SIZES = (1, 100, 10_000)
SLOW = 0.2  # of the asyncio floor's speed
TURNS = 10
START_TURNS = 40  # of one start each, whose times vary most

assert len(MESSAGE_TEXT) == 100
assert len(EVENT_TEXT) == 20


@dataclass(frozen=True)
class Workload:
    """One thing to measure: `figure` is the number that the table shows and that ratios are taken of."""

    name: str
    title: str
    figure: str
    unit: str
    sizes: dict[str, int]
    quick: dict[str, int]
    is_time: bool = False  # less is better
    is_pinned: bool = True  # host and child on a core each; starts use the whole machine, as they do in life
    may_go_first: bool = True  # at the priority of `--nice`; a hundred starts at once would stop all that others do
    turns: int = 1  # parts of a run, for entrants that take turns
    rounds_at_most: int = 1_000
    rounds_of_slow: int = 1_000  # for entrants below `SLOW`, whose runs take minutes

    def takes_part(self, speed: float, round_number: int) -> bool:
        """Returns whether an entrant of that speed runs in that round."""
        return round_number < (self.rounds_of_slow if speed < SLOW else self.rounds_at_most)

    def settings(self, speed: float, *, quick: bool, turns: int = 1) -> dict[str, Any]:
        """Returns the sizes for an entrant that is `speed` times as fast as the asyncio floor, in one of these turns.

        Slow entrants get fewer operations, so that every run takes about as long; a rate does not depend on it. The
        events of W3 stay as many, for a backlog is part of what is measured; only a quick run has fewer.
        """
        sizes = {**self.sizes, **self.quick} if quick else dict(self.sizes)
        for name in ("calls", "repeats", *(("events",) if quick else ())):
            if name in sizes:
                least = 1 if name == "repeats" else 10 if self.name == "W4" else 256
                sizes[name] = max(int(sizes[name] * min(speed, 1.0)), least)
        for name in ("calls", "repeats", "starts"):
            if name in sizes:
                sizes[name] = max(sizes[name] // turns, 1)
        return {"workload": self.name, **sizes}


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            "W1",
            "one call after another, 100 bytes",
            "calls_s",
            "calls/s",
            {"calls": 20_000, "warmup": 1_000},
            {"calls": 8_000, "warmup": 500},
            turns=TURNS,
        ),
        Workload(
            "W2",
            "64 calls in flight, 100 bytes",
            "calls_s",
            "calls/s",
            {"calls": 128_000, "warmup": 6_400, "in_flight": 64},
            {"calls": 51_200, "warmup": 3_200},
            turns=TURNS,
        ),
        Workload(
            "W3",
            "100,000 typed notifications to the host",
            "events_s",
            "events/s",
            {"events": 100_000, "warmup": 1_000, "repeats": 4},
            {"repeats": 2},
            turns=TURNS,
        ),
        Workload(
            "W4",
            "a string of 1 MiB echoed",
            "mib_s",
            "MiB/s",
            {"calls": 100, "warmup": 5, "payload": 1 << 20},
            {"calls": 50},
        ),
        Workload(
            "W5",
            "the child calls the host, one call after another",
            "calls_s",
            "calls/s",
            {"calls": 20_000, "warmup": 1_000},
            {"calls": 8_000, "warmup": 500},
            turns=TURNS,
        ),
        Workload(
            "W6",
            "spawn to finished handshake",
            "start_ms",
            "ms",
            {"starts": 10},
            {"starts": 5},
            is_time=True,
            is_pinned=False,
            turns=START_TURNS,
        ),
        Workload(
            "W7",
            "100 children at once, then a call each",
            "start_s",
            "s",
            {"children": 100, "laps": 5},
            {"children": 20},
            is_time=True,
            is_pinned=False,
            may_go_first=False,
            rounds_at_most=3,
            rounds_of_slow=1,
        ),
        Workload(
            "N4",
            "processor time of the host for a tool call without its validation, in calls of the peer below it",
            "times",
            "calls",
            {"calls": 40_000, "warmup": 500},
            {"calls": 16_000},
            is_time=True,
        ),
    )
}
