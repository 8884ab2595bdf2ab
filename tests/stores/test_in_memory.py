"""Behaviour of the store in memory beyond `check_store`."""

from __future__ import annotations

import logging
from time import time

import pytest

from becket.contract.config import ConfigSet
from becket.contract.memory import Append, Query
from becket.errors import LocalProtocolError, Meaning, QuotaExceeded
from becket.limits import Limits
from becket.stores.in_memory import InMemoryStore


def test_the_default_clock_is_that_of_the_machine() -> None:
    before = int(time() * 1000)

    response = InMemoryStore().append(Append("notes", "milk"))

    assert before <= response.timestamp_ms <= int(time() * 1000) + 1


def test_a_quota_error_has_the_used_and_the_allowed_amount() -> None:
    store = InMemoryStore(Limits(memory_records=1))
    store.append(Append("notes", "milk"))

    with pytest.raises(QuotaExceeded) as caught:
        store.append(Append("notes", "tea"))

    assert caught.value.meaning is Meaning.QUOTA
    assert caught.value.data == {"what": "records", "used": 1, "limit": 1}


def test_a_closed_store_refuses_every_operation() -> None:
    store = InMemoryStore()
    store.close()

    with pytest.raises(LocalProtocolError) as caught:
        store.query(Query("notes"))
    assert "closed" in str(caught.value)


def test_a_watcher_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    store = InMemoryStore()
    store.watch(lambda extension: 1 / 0)

    with caplog.at_level(logging.ERROR, "becket.host"):
        store.set_config("notes", ConfigSet("mode", "dark"))

    assert [record.exc_info and record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]


def test_a_store_without_a_change_history_still_stores_values() -> None:
    store = InMemoryStore(Limits(config_log=0))
    saved = store.set_config("notes", ConfigSet("mode", "dark"))

    assert saved.revision is not None
    assert store.read_changes("notes", 0) is None
    assert store.read_changes("notes", saved.revision) == []
    assert store.get_config("notes", "mode").value == "dark"
