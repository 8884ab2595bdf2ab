"""Runs one experiment with becket alone and prints its samples, and the figures that show whether it was quiet."""

from __future__ import annotations

import resource
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from benchmarks.hosting.measurement import busy_seconds, print_figures, resident_kib, status_field, waited_seconds

__all__ = ["Values", "forget_peak", "peak_kib", "print_experiment"]

Values = dict[str, list[float]]
"""Each quantity that an experiment measures: its samples."""


async def print_experiment(experiment: Awaitable[Values]) -> None:
    """Awaits an experiment and prints what it measured."""
    busy, waited, used, began = busy_seconds(), waited_seconds("self"), used_seconds(), time.perf_counter()
    values = await experiment
    seconds = time.perf_counter() - began
    figures: dict[str, Any] = {
        "values": values,
        "foreign": max(0.0, busy_seconds() - busy - (used_seconds() - used)) / seconds,
        "waited": (waited_seconds("self") - waited) / seconds,
    }
    print_figures(figures)


def used_seconds() -> float:
    """Returns the processor time of this program and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def forget_peak() -> float:
    """Lets the peak of the resident memory begin anew and returns what is resident now."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        pass  # the peak is that since the start: more than fair
    return resident_kib()


def peak_kib() -> float:
    """Returns the peak of the resident memory."""
    return float(status_field("self", "VmHWM:"))
