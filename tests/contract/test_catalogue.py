"""The catalogue holds every request and notification that the contract describes, each once."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pytest

import becket.contract
from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import Stream

MODULES = [f"becket.contract.{module.name}" for module in iter_modules(becket.contract.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_every_descriptor_of_a_module_is_in_the_catalogue(name: str) -> None:
    described = [value for value in vars(import_module(name)).values() if isinstance(value, Method | Notification)]

    assert [value.name for value in described if value not in METHODS and value not in NOTIFICATIONS] == []


def test_nothing_is_described_twice() -> None:
    requested = [(method.name, method.direction) for method in METHODS]
    received = [(notification.name, notification.direction) for notification in NOTIFICATIONS]

    assert len(set(requested)) == len(requested)
    assert len(set(received)) == len(received)
    assert set(requested) & set(received) == set()


def test_the_events_of_streams_are_notifications_to_the_caller() -> None:
    received = {notification.name: notification.direction for notification in NOTIFICATIONS}
    events = {name for method in METHODS if isinstance(method, Stream) for name in method.events}

    assert {received[name] for name in events} == {"to-host"}


def test_each_has_a_sentence_about_it() -> None:
    assert [one.name for one in (*METHODS, *NOTIFICATIONS) if not one.summary.endswith(".")] == []


def test_every_method_that_an_extension_may_call_is_served_by_the_host() -> None:
    requested = [method.name for method in METHODS if method.direction == "to-host"]

    assert requested == ["memory.append", "memory.query", "config.get", "config.set", "config.subscribe"]
