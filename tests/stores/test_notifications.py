"""Subscribers of a store are notified, and cannot break a change or cause endless ones."""

from __future__ import annotations

import logging
from threading import Thread

import pytest

from becket.contract.memory import Appended
from becket.errors import Busy
from becket.stores.notifications import ChangeNotifier, complete_append


def test_every_subscriber_is_notified_until_it_unsubscribes() -> None:
    watchers = ChangeNotifier(3)
    one: list[str] = []
    two: list[str] = []
    end = watchers.subscribe(one.append)
    watchers.subscribe(two.append)

    watchers.notify("notes")
    end()
    end()
    watchers.notify("other")
    watchers.clear()
    watchers.notify("nobody")

    assert (one, two) == (["notes"], ["notes", "other"])


def test_a_subscriber_that_fails_is_logged_and_the_others_are_notified(caplog: pytest.LogCaptureFixture) -> None:
    watchers = ChangeNotifier(3)
    received: list[str] = []
    watchers.subscribe(lambda extension: 1 / 0)
    watchers.subscribe(received.append)

    with caplog.at_level(logging.ERROR, "becket.host"):
        watchers.notify("notes")

    assert received == ["notes"]
    assert [record.exc_info and record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]


def test_changes_within_changes_are_refused_beyond_the_depth_of_their_own_thread() -> None:
    watchers = ChangeNotifier(2)
    depths: list[int] = []
    refusals: list[Busy] = []

    def change(depth: int) -> None:
        try:
            watchers.check_depth()
        except Busy as refusal:
            refusals.append(refusal)
            return
        depths.append(depth)
        end = watchers.subscribe(lambda extension: change(depth + 1))
        watchers.notify("notes")
        end()

    change(0)
    elsewhere = Thread(target=change, args=(0,))
    watchers.subscribe(lambda extension: elsewhere.start() if elsewhere.ident is None else None)
    watchers.notify("notes")
    elsewhere.join()

    assert depths[:2] == [0, 1]
    assert depths.count(0) == 2
    assert {refusal.limit for refusal in refusals} == {2}


def test_a_callback_that_fails_after_the_commit_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    received: list[object] = []
    response = Appended(True, 1, 1)

    with caplog.at_level(logging.ERROR, "becket.host"):
        complete_append(lambda outcome: 1 / 0, response)
        complete_append(received.append, response)

    assert received == [response]
    assert len(caplog.records) == 1
