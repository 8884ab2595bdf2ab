"""Drives the workloads through an entrant whose host makes blocking calls, with threads of its own or none."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Protocol

from benchmarks.hosting.measurement import (
    Usage,
    Window,
    latencies,
    load_settings,
    print_figures,
    resident_kib,
    thread_count,
)
from benchmarks.workloads import MESSAGE_TEXT

__all__ = ["Connect", "Subject", "run_host"]


class Subject(Protocol):
    """One connected child as the workloads see it."""

    def handshake(self) -> object:
        """Whatever this entrant does before a first call may be made."""
        ...

    def echo(self, text: str) -> Any: ...

    def echo_many(self, text: str, calls: int, in_flight: int) -> None:
        """Makes that many calls, so many of them at a time, and returns when all have a response."""
        ...

    def text_of(self, response: Any) -> str: ...

    def count(self, events: int) -> int:
        """Has the child send that many events and returns the sum of their numbers."""
        ...

    def drive(self, calls: int) -> object:
        """Has the child make that many calls to the host before it responds."""
        ...

    def usage(self) -> Usage: ...


Connect = Callable[[list[str]], AbstractContextManager[Subject]]


def run_host(connect: Connect) -> None:
    """Runs the workload that the settings name, and prints its figures."""
    settings = load_settings()
    print_figures(WORKLOADS[settings["workload"]](connect, settings))


def one_after_another(connect: Connect, settings: dict[str, Any]) -> dict[str, float]:
    with connect(settings["child"]) as subject:
        subject.handshake()
        check_echo(subject, MESSAGE_TEXT)
        echo = subject.echo
        for _ in range(settings["warmup"]):
            echo(MESSAGE_TEXT)

        calls = settings["calls"]
        took: list[int] = []
        window = Window(subject.usage())
        for _ in range(calls):
            began = time.perf_counter_ns()
            echo(MESSAGE_TEXT)
            took.append(time.perf_counter_ns() - began)
        window.close()
        return {
            "calls_s": calls / window.seconds,
            **latencies(took),
            **window.figures(calls, subject.usage()["cpu"]),
        }


def many_in_flight(connect: Connect, settings: dict[str, Any]) -> dict[str, float]:
    with connect(settings["child"]) as subject:
        subject.handshake()
        check_echo(subject, MESSAGE_TEXT)
        calls, in_flight = settings["calls"], settings["in_flight"]
        subject.echo_many(MESSAGE_TEXT, settings["warmup"], in_flight)

        window = Window(subject.usage())
        subject.echo_many(MESSAGE_TEXT, calls, in_flight)
        window.close()
        return {"calls_s": calls / window.seconds, **window.figures(calls, subject.usage()["cpu"])}


def events(connect: Connect, settings: dict[str, Any]) -> dict[str, float]:
    with connect(settings["child"]) as subject:
        subject.handshake()
        check_count(subject, settings["warmup"])

        window = Window(subject.usage())
        for _ in range(settings["repeats"]):
            check_count(subject, settings["events"])
        window.close()
        total = settings["events"] * settings["repeats"]
        return {"events_s": total / window.seconds, **window.figures(total, subject.usage()["cpu"])}


def large_payload(connect: Connect, settings: dict[str, Any]) -> dict[str, float]:
    with connect(settings["child"]) as subject:
        subject.handshake()
        text = "x" * settings["payload"]
        check_echo(subject, text)
        echo = subject.echo
        for _ in range(settings["warmup"]):
            echo(text)

        calls = settings["calls"]
        window = Window(subject.usage())
        for _ in range(calls):
            echo(text)
        window.close()
        mib = calls * settings["payload"] / (1 << 20)
        return {"mib_s": mib / window.seconds, **window.figures(calls, subject.usage()["cpu"])}


def calls_back(connect: Connect, settings: dict[str, Any]) -> dict[str, float]:
    with connect(settings["child"]) as subject:
        subject.handshake()
        subject.drive(settings["warmup"])

        calls = settings["calls"]
        window = Window(subject.usage())
        subject.drive(calls)
        window.close()
        return {"calls_s": calls / window.seconds, **window.figures(calls, subject.usage()["cpu"])}


def start(connect: Connect, settings: dict[str, Any]) -> dict[str, float]:
    took: list[float] = []
    resident: list[float] = []
    child_cpu = 0.0
    window = Window()
    for _ in range(settings["starts"]):
        began = time.perf_counter()
        with connect(settings["child"]) as subject:
            subject.handshake()
            took.append((time.perf_counter() - began) * 1e3)
            usage = subject.usage()
            resident.append(resident_kib(usage["pid"]) / 1024)
            child_cpu += usage["cpu"]
    window.close()
    return {
        "start_ms": statistics.median(took),
        "rss_mib": statistics.median(resident),
        **window.figures(settings["starts"], child_cpu),
    }


def many_children(connect: Connect, settings: dict[str, Any]) -> dict[str, float]:
    children, laps = settings["children"], settings["laps"]
    with ExitStack() as stack:
        resident_before = resident_kib()
        window = Window()
        subjects = [stack.enter_context(connect(settings["child"])) for _ in range(children)]
        for subject in subjects:
            subject.handshake()
        for subject in subjects:
            subject.echo(MESSAGE_TEXT)
        window.close()
        figures = {
            "start_s": window.seconds,
            "threads": thread_count(),
            "host_kib_child": (resident_kib() - resident_before) / children,
            **window.figures(children, sum(subject.usage()["cpu"] for subject in subjects)),
        }

        began = time.perf_counter()
        for _ in range(laps):
            for subject in subjects:
                subject.echo(MESSAGE_TEXT)
        figures["lap_call_us"] = (time.perf_counter() - began) / (laps * children) * 1e6
        return figures


def check_echo(subject: Subject, text: str) -> None:
    if subject.text_of(subject.echo(text)) != text:
        raise RuntimeError("the echo is not what was sent")


def check_count(subject: Subject, total: int) -> None:
    if subject.count(total) != total * (total - 1) // 2:
        raise RuntimeError("events were lost or repeated")


WORKLOADS = {
    "W1": one_after_another,
    "W2": many_in_flight,
    "W3": events,
    "W4": large_payload,
    "W5": calls_back,
    "W6": start,
    "W7": many_children,
}
