"""Events of a host: delivered by class, in one order; a subscriber that fails affects no other."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable

import pytest

from becket.errors import LocalProtocolError
from becket.host import events as module
from becket.host.diagnostics import Diagnostic
from becket.host.events import (
    MAX_QUEUED_EVENTS,
    EventBus,
    ExtensionDegraded,
    ExtensionEvent,
    ExtensionExited,
    ExtensionRecovered,
    ExtensionStarted,
    ExtensionStateChanged,
    HostEvent,
    HostStalled,
    ProblemFound,
)
from becket.host.lifecycle import ExtensionState

STARTED = ExtensionStarted("notes", 7, 0.03)
EXITED = ExtensionExited("notes", 1, stderr_tail="boom")
STALLED = HostStalled(1.5)


@pytest.mark.parametrize(
    ("kind", "received"),
    [
        (HostEvent, [STARTED, EXITED, STALLED]),
        (ExtensionEvent, [STARTED, EXITED]),
        (ExtensionExited, [EXITED]),
        (ExtensionExited | HostStalled, [EXITED, STALLED]),
        (ExtensionDegraded, []),
    ],
)
def test_a_subscriber_gets_the_classes_that_it_subscribed_to(kind: type[HostEvent], received: list[HostEvent]) -> None:
    events = EventBus()
    seen: list[HostEvent] = []
    events.subscribe(kind, seen.append)

    for event in (STARTED, EXITED, STALLED):
        events.publish(event)

    assert seen == received


@pytest.mark.parametrize("kind", [int, HostStalled | int, "HostStalled", HostStalled(1.0)])
def test_subscribing_to_a_class_that_is_not_an_event_is_refused(kind: type[HostEvent]) -> None:
    with pytest.raises(TypeError):
        EventBus().subscribe(kind, print)


def test_a_coroutine_function_cannot_subscribe() -> None:
    async def take(event: HostEvent) -> None:
        raise AssertionError

    with pytest.raises(TypeError):
        EventBus().subscribe(HostEvent, take)


def test_a_thousand_subscribers_are_notified_although_one_fails(caplog: pytest.LogCaptureFixture) -> None:
    events = EventBus()
    received: list[int] = []

    def build_subscriber(number: int) -> Callable[[HostEvent], None]:
        def take(event: HostEvent) -> None:
            if number == 500:
                raise RuntimeError("dead")
            received.append(number)

        return take

    for number in range(1_000):
        events.subscribe(HostEvent, build_subscriber(number))

    with caplog.at_level(logging.ERROR, "becket.host"):
        events.publish(STARTED)
        events.publish(EXITED)

    alive = [number for number in range(1_000) if number != 500]
    assert received == alive * 2
    assert [record.args for record in caplog.records] == [("ExtensionStarted",), ("ExtensionExited",)]


def test_a_removed_subscriber_is_not_notified_and_may_be_removed_twice() -> None:
    events = EventBus()
    seen: list[HostEvent] = []
    end = events.subscribe(HostEvent, seen.append)
    events.publish(STARTED)

    end()
    end()
    events.publish(EXITED)

    assert seen == [STARTED]


def test_a_subscriber_removed_by_an_earlier_one_does_not_get_the_same_event() -> None:
    events = EventBus()
    seen: list[HostEvent] = []
    events.subscribe(HostEvent, lambda event: end())
    end = events.subscribe(HostEvent, seen.append)

    events.publish(STARTED)

    assert seen == []


def test_a_subscriber_added_during_an_event_gets_the_next_one() -> None:
    events = EventBus()
    seen: list[HostEvent] = []
    events.subscribe(ExtensionStarted, lambda event: events.subscribe(HostEvent, seen.append))

    events.publish(STARTED)
    events.publish(EXITED)

    assert seen == [EXITED]


def test_events_that_cause_events_reach_all_in_the_same_order() -> None:
    events = EventBus()
    first: list[HostEvent] = []
    second: list[HostEvent] = []

    def react(event: HostEvent) -> None:
        first.append(event)
        if isinstance(event, ExtensionExited):
            events.publish(STALLED)

    events.subscribe(HostEvent, react)
    events.subscribe(HostEvent, second.append)

    events.publish(EXITED)

    assert first == second == [EXITED, STALLED]


def test_a_cycle_of_events_ends_and_the_next_event_is_delivered(caplog: pytest.LogCaptureFixture) -> None:
    events = EventBus()
    seen: list[HostEvent] = []
    events.subscribe(ExtensionDegraded, lambda event: [events.publish(event) for _ in range(2)])
    events.subscribe(ExtensionRecovered, seen.append)

    with caplog.at_level(logging.ERROR, "becket.host"):
        events.publish(ExtensionDegraded("notes", "slow"))
    events.publish(ExtensionRecovered("notes"))

    assert seen == [ExtensionRecovered("notes")]
    failures = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert {type(failure) for failure in failures} == {LocalProtocolError}
    assert str(MAX_QUEUED_EVENTS) in str(failures[0])


def test_an_exception_that_ends_the_program_is_not_a_failing_subscriber() -> None:
    events = EventBus()

    def interrupt(event: HostEvent) -> None:
        raise KeyboardInterrupt

    end = events.subscribe(HostEvent, interrupt)
    with pytest.raises(KeyboardInterrupt):
        events.publish(STARTED)
    end()

    seen: list[HostEvent] = []
    events.subscribe(HostEvent, seen.append)
    events.publish(EXITED)
    assert seen == [EXITED]


def test_every_event_is_frozen_explained_and_exported() -> None:
    kinds = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, HostEvent)]

    assert len(kinds) > 20
    for kind in kinds:
        assert kind.__struct_config__.frozen
        assert kind.__doc__
        assert kind.__name__ in module.__all__


def test_an_event_is_a_dictionary_with_the_name_of_its_class() -> None:
    assert STARTED.to_dict() == {
        "event": "extension_started",
        "extension": "notes",
        "pid": 7,
        "seconds": 0.03,
        "version": None,
    }
    moved = ExtensionStateChanged("notes", ExtensionState.STOPPED, ExtensionState.SPAWNING).to_dict()
    assert (moved["before"], moved["after"]) == ("stopped", "spawning")
    assert type(moved["before"]) is str


def test_a_problem_is_reported_with_all_of_its_members() -> None:
    problem = Diagnostic(problem="no such folder", path="/a")

    assert ProblemFound(problem).to_dict() == {"event": "problem_found", "diagnostic": problem.to_dict()}
