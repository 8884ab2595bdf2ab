"""Log records of extensions as events: only with subscribers, and bounded."""

from __future__ import annotations

from becket.host.events import EventBus, ExtensionEvent, ExtensionLogged, ExtensionStarted, HostEvent, PermissionGranted
from becket.host.logs import LogEventPublisher, LogRateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_at_once_and_then_a_limited_number_a_second() -> None:
    throttle = LogRateLimit(3, 2.0)

    assert [throttle.acquire(50.0) for _ in range(5)] == [0, 0, 0, None, None]
    assert [throttle.acquire(50.5), throttle.acquire(50.6)] == [2, None]
    assert [throttle.acquire(90.0) for _ in range(4)] == [1, 0, 0, None]


def test_a_line_is_delivered_to_subscribers() -> None:
    events, received = EventBus(), list[HostEvent]()
    log = LogEventPublisher("notes", events, Clock())
    assert not log
    events.subscribe(ExtensionLogged, received.append)
    assert log

    log("error", "no disk")

    assert received == [ExtensionLogged("notes", "error", "no disk")]


def test_a_flood_is_sampled_and_the_rest_counted() -> None:
    events, received, clock = EventBus(), list[ExtensionLogged](), Clock()
    events.subscribe(ExtensionLogged, received.append)
    loud, calm = LogEventPublisher("loud", events, clock), LogEventPublisher("calm", events, clock)
    for number in range(10_000):
        loud("info", str(number))
    calm("info", "is heard all the same")
    clock.now += 1
    loud("info", "last")

    assert len(received) == 503
    assert received[-3:] == [
        ExtensionLogged("calm", "info", "is heard all the same"),
        ExtensionLogged("loud", "warning", "9500 lines were left out here"),
        ExtensionLogged("loud", "info", "last"),
    ]


def test_a_subscriber_to_a_class_gets_all_subclasses() -> None:
    events = EventBus()
    assert not events.has_subscribers(ExtensionLogged)
    end = events.subscribe(ExtensionStarted | PermissionGranted, lambda event: None)
    assert events.has_subscribers(PermissionGranted)
    assert not events.has_subscribers(ExtensionLogged)
    assert not events.has_subscribers(ExtensionEvent)
    end()
    assert not events.has_subscribers(PermissionGranted)
    events.subscribe(ExtensionEvent, lambda event: None)
    assert events.has_subscribers(ExtensionLogged)
