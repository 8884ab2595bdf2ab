"""Clocks around a workload: wall time, processor time of host and child, and how busy the machine was otherwise."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, TypedDict

__all__ = ["Usage", "Window", "latencies", "load_settings", "print_figures", "resident_kib", "thread_count", "turns"]

TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Usage(TypedDict):
    """The response of a child to the request `usage`."""

    pid: int
    cpu: float  # seconds of processor time, all threads


def load_settings() -> dict[str, Any]:
    """Returns the settings that the runner gave as the one argument."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    return settings


def turns(settings: dict[str, Any]) -> Iterator[None]:
    """Yields for each part of a run that is measured: one, or one for each line on stdin, if entrants take turns."""
    if settings.get("takes_turns"):
        for _ in sys.stdin:
            yield
    else:
        yield


def print_figures(figures: dict[str, float]) -> None:
    print(json.dumps(figures), flush=True)


class Window:
    """The measured stretch of a run. Opened after the warm-up, with what the child had used up to then."""

    def __init__(self, child: Usage | None = None) -> None:
        gc.collect()  # what the warm-up left behind is not part of the measurement
        self.pids: list[int | str] = ["self", child["pid"]] if child else ["self"]
        self.child_before = child["cpu"] if child else 0.0
        self.waited = -sum(map(waited_seconds, self.pids)) - stolen_seconds()
        self.busy = -busy_seconds()
        self.ended_children = -ended_children_seconds()
        self.host_cpu = -time.process_time()
        self.seconds = -time.perf_counter()

    def close(self) -> None:
        """Stops the clocks; the child's own figure is requested afterwards."""
        self.seconds += time.perf_counter()
        self.host_cpu += time.process_time()
        self.busy += busy_seconds()
        self.ended_children += ended_children_seconds()
        self.waited += sum(map(waited_seconds, self.pids)) + stolen_seconds()

    def figures(self, operations: int, child_cpu: float) -> dict[str, float]:
        """Returns the processor time per operation, and the figures that show whether the run was quiet.

        `foreign` is the share of a core that others took, `waited` the share of the time in which host or child
        could have run and had no core: another process had it, or another virtual machine. Children that have ended
        also used their exit, which they cannot report.
        """
        child_used = child_cpu - self.child_before
        own = self.host_cpu + max(child_used, self.ended_children)
        return {
            "host_cpu_us": self.host_cpu / operations * 1e6,
            "child_cpu_us": child_used / operations * 1e6,
            "cpu_us": (self.host_cpu + child_used) / operations * 1e6,
            "foreign": max(0.0, self.busy - own) / self.seconds,
            "waited": self.waited / self.seconds,
            "seconds": self.seconds,
        }


def busy_seconds() -> float:
    """Returns the time that all cores were busy or stolen since boot; 0 where the system does not report it."""
    return sum(core_seconds()[name] for name in ("user", "nice", "system", "irq", "softirq", "steal"))


def stolen_seconds() -> float:
    """Returns the time in which a program was ready to run and another virtual machine had the core."""
    return core_seconds()["steal"]


def core_seconds() -> dict[str, float]:
    """Returns what all cores did since boot, by the names of the kernel; 0 where the system does not report it."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    try:
        with open("/proc/stat", "rb") as file:
            ticks = [int(field) for field in file.readline().split()[1:9]]
    except (OSError, ValueError):
        ticks = []
    return dict.fromkeys(names, 0.0) | {name: count / TICK for name, count in zip(names, ticks, strict=False)}


def ended_children_seconds() -> float:
    """Returns the processor time of the children that have ended and were waited for."""
    times = os.times()
    return times.children_user + times.children_system


def waited_seconds(pid: int | str) -> float:
    """Returns how long the threads of a process were ready to run without a core; 0 where that is not reported."""
    total = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file:
                total += int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return total / 1e9


def latencies(nanoseconds: list[int]) -> dict[str, float]:
    ordered = sorted(nanoseconds)
    return {"p50_us": ordered[len(ordered) // 2] / 1e3, "p99_us": ordered[len(ordered) * 99 // 100] / 1e3}


def resident_kib(pid: int | str = "self") -> float:
    """Returns the resident memory of a process; 0 where the system does not report it."""
    return float(status_field(pid, "VmRSS:"))


def thread_count() -> int:
    return int(status_field("self", "Threads:"))


def status_field(pid: int | str, field: str) -> str:
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            return next(line.split()[1] for line in file if line.startswith(field))
    except (OSError, StopIteration):
        return "0"
