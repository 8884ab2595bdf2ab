"""How the writer handles each kind of SQLite error; those of real disks are elsewhere."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.stores.store_factories import light

from becket.contract.config import ConfigSet
from becket.contract.memory import Append, Query
from becket.errors import Meaning, QuotaExceeded, StoreError, StoreUnavailable
from becket.limits import DEFAULT_LIMITS
from becket.stores.sqlite import SqliteStore, schema, writer
from becket.stores.sqlite.reserve import DiskReserve
from becket.stores.sqlite.transactions import Transactions
from becket.stores.store import now_ms


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("made up")
    error.sqlite_errorcode = code
    return error


FULL = sqlite_error(sqlite3.SQLITE_FULL)
BROKEN = sqlite_error(sqlite3.SQLITE_IOERR_FSYNC)
BUSY = sqlite_error(sqlite3.SQLITE_BUSY)


@pytest.fixture
def store(folder: Path) -> Iterator[SqliteStore]:
    with light(folder / "store", DEFAULT_LIMITS, now_ms) as store:
        store.append(Append("notes", "milk"))
        store.set_config("notes", ConfigSet("mode", "dark"))
        yield store


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets a method of the ledger fail, with these errors and then no more."""

    def arrange(name: str, *errors: sqlite3.Error) -> None:
        method = getattr(Transactions, name)
        left = [*errors]

        def failing(self: Transactions, *arguments: object) -> object:
            if left:
                raise left.pop(0)
            return method(self, *arguments)

        monkeypatch.setattr(Transactions, name, failing)

    return arrange


def contents(store: SqliteStore) -> list[str]:
    return [record.content for record in store.query(Query("notes"))]


def test_a_full_disk_refuses_what_adds_and_does_what_makes_room(store: SqliteStore, fail: Callable[..., None]) -> None:
    fail("commit", FULL)

    assert store.remove_config("notes", "mode").ok
    assert store.get_config("notes", "mode").value is None
    assert store.append(Append("notes", "tea")).id == 2  # there is room again: the disk only seemed full


@pytest.mark.parametrize(
    ("code", "cause", "remedy"),
    [
        (sqlite3.SQLITE_READONLY, "it cannot be written", "writable"),
        (sqlite3.SQLITE_BUSY, "another program writes", "end that program"),
        (sqlite3.SQLITE_IOERR_FSYNC, "the disk failed", "look at the disk"),
    ],
)
def test_an_error_names_path_cause_and_remedy_and_the_wire_gets_no_path(
    store: SqliteStore, fail: Callable[..., None], code: int, cause: str, remedy: str
) -> None:
    fail("commit", sqlite_error(code))

    with pytest.raises(StoreError) as caught:
        store.append(Append("notes", "tea"))
    assert str(caught.value).startswith(str(store.path))
    assert cause in caught.value.message
    assert remedy in str(caught.value)
    assert str(store.path) not in caught.value.message
    assert store.append(Append("notes", "tea")).id == 2


def test_a_full_disk_that_has_no_room_for_anything_refuses_all(store: SqliteStore, fail: Callable[..., None]) -> None:
    fail("commit", FULL, FULL)

    with pytest.raises(StoreError) as caught:
        store.remove_config("notes", "mode")
    assert caught.value.meaning is Meaning.DISK_FULL
    assert store.get_config("notes", "mode").value == "dark"


def test_a_failure_while_space_is_reserved_does_not_end_the_thread(
    store: SqliteStore, fail: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail("commit", FULL)
    monkeypatch.setattr(DiskReserve, "release", lambda self: 1 / 0)

    for _ in range(2):
        with pytest.raises(StoreError):
            store.append(Append("notes", "tea"))
    assert contents(store) == ["milk"]


def test_a_disk_with_hardly_any_room_counts_as_full(
    store: SqliteStore, fail: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "free_bytes", lambda path: 1_000)
    fail("commit", BROKEN, BROKEN)

    with pytest.raises(StoreError) as caught:
        store.append(Append("notes", "tea"))
    assert caught.value.meaning is Meaning.DISK_FULL


@pytest.mark.parametrize("error", [FULL, BROKEN])
def test_where_a_rollback_fails_nothing_more_is_written_and_all_can_be_read(
    store: SqliteStore, fail: Callable[..., None], error: sqlite3.Error
) -> None:
    fail("commit", error)
    fail("roll_back", BROKEN)

    for _ in range(3):
        with pytest.raises(StoreError):
            store.append(Append("notes", "tea"))
    assert contents(store) == ["milk"]
    store.close()
    with light(store.path, DEFAULT_LIMITS, now_ms) as again:
        assert contents(again) == ["milk"]
        assert again.append(Append("notes", "tea")).id == 2


def test_an_index_that_cannot_be_filled_does_not_affect_the_store(
    folder: Path, fail: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    fail("index_batch", BROKEN, sqlite_error(sqlite3.SQLITE_CORRUPT))
    with caplog.at_level(logging.ERROR, "becket.host"), light(folder / "store", DEFAULT_LIMITS, now_ms) as store:
        store.append(Append("notes", "milk"))
        store.maintain()
        store.append(Append("notes", "more milk"))

        assert [record.content for record in store.query(Query("notes", "milk"))] == ["more milk", "milk"]
    assert len([record for record in caplog.records if "not kept" in record.getMessage()]) == 2


def test_a_log_that_cannot_be_emptied_is_only_noted(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer, "BUSY_TIMEOUT", "not a number")

    with caplog.at_level(logging.ERROR, "becket.host"):
        store.maintain()

    assert contents(store) == ["milk"]


def test_a_store_that_another_process_writes_to_all_the_time_cannot_be_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    light(folder / "store", DEFAULT_LIMITS, now_ms).close()
    monkeypatch.setattr(schema, "BUSY_TIMEOUT", 0.05)
    with closing(sqlite3.connect(folder / "store", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable) as caught:
            light(folder / "store", DEFAULT_LIMITS, now_ms)
        other.execute("ROLLBACK")
    assert "locked" in caught.value.because
    light(folder / "store", DEFAULT_LIMITS, now_ms).close()


@pytest.mark.parametrize("error", [BROKEN, BUSY], ids=["opened again", "rolled back"])
def test_a_rolled_back_transaction_does_not_count_for_a_quota(
    folder: Path, fail: Callable[..., None], error: sqlite3.Error
) -> None:
    with light(folder / "store", DEFAULT_LIMITS.but(memory_records=2, config_keys=1), now_ms) as store:
        store.append(Append("notes", "milk"))
        for add in (
            lambda: store.append(Append("notes", "tea")),
            lambda: store.set_config("notes", ConfigSet("mode", "dark")),
        ):
            fail("commit", error)
            with pytest.raises(StoreError):
                add()
        assert store.append(Append("notes", "tea")).id == 2
        assert store.set_config("notes", ConfigSet("pace", "slow")).ok
        with pytest.raises(QuotaExceeded):
            store.append(Append("notes", "honey"))
        assert store.verify() == []


def test_after_a_failing_disk_nothing_is_written_to_a_file_that_is_not_sound(
    store: SqliteStore, fail: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_damage(connection: sqlite3.Connection) -> None:
        raise sqlite_error(sqlite3.SQLITE_CORRUPT)

    monkeypatch.setattr(writer, "check_integrity", find_damage)
    fail("commit", BROKEN)
    for _ in range(2):
        with pytest.raises(StoreError):
            store.append(Append("notes", "tea"))
    assert contents(store) == ["milk"]
