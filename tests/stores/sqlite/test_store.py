"""The SQLite store passes `check_store`, groups commits, and acknowledges only what is on disk."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest
from tests.stores.store_factories import light, without_index

from becket.contract.config import ConfigSet
from becket.contract.memory import Append, Appended, Query
from becket.errors import (
    BecketError,
    Busy,
    LocalProtocolError,
    Meaning,
    QueryTimeout,
    QuotaExceeded,
    StoreError,
    StoreUnavailable,
)
from becket.limits import DEFAULT_LIMITS, Limits
from becket.stores.sqlite import SqliteStore, reader, store, transactions, writer
from becket.stores.store import Clock, Store, StoreOpener, now_ms
from becket.testing import check_persistent_store, check_store

WAIT = 5.0
KILLS = int(os.environ.get("BECKET_STORE_KILLS", "5"))  # `make prove` kills more programs


@pytest.fixture
def notes(folder: Path) -> Iterator[SqliteStore]:
    """An open store."""
    with light(folder / "store", DEFAULT_LIMITS, now_ms) as notes:
        yield notes


def contents(notes: Store, needle: str | None = None) -> list[str]:
    return [record.content for record in notes.query(Query("notes", needle))]


# -- the contract


@pytest.mark.parametrize(("open_store", "seed"), [(light, 0), (without_index, 1)])
def test_sqlite_store_passes_check_store(folder: Path, open_store: StoreOpener, seed: int) -> None:
    paths = (folder / str(number) for number in count())

    check_store(lambda limits, clock: open_store(next(paths), limits, clock), seed=seed)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(120)
def test_acknowledged_records_survive_reopening_and_kill(folder: Path) -> None:
    toll = check_persistent_store(light, folder, kills=KILLS)

    assert (toll.crashes, toll.lost) == (KILLS, 0)
    assert toll.acknowledged > 8 * KILLS


# -- many at once


class HeldClock:
    """A clock that blocks its readers until it is released."""

    def __init__(self) -> None:
        self.is_read = Event()
        self.may_go = Event()

    def __call__(self) -> int:
        self.is_read.set()
        assert self.may_go.wait(WAIT)
        return 1


class Outcomes(list[object]):
    """The arguments of `done`, and a way to wait for all calls."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.is_complete = Event()

    def __call__(self, outcome: object) -> None:
        self.append(outcome)
        if len(self) == self.expected:
            self.is_complete.set()

    def wait(self) -> list[object]:
        assert self.is_complete.wait(WAIT)
        return self


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with each commit."""
    made: list[None] = []
    commit = transactions.Transactions.commit

    def counted(self: transactions.Transactions) -> None:
        commit(self)
        made.append(None)

    monkeypatch.setattr(transactions.Transactions, "commit", counted)
    return made


def test_records_that_wait_together_are_committed_together(folder: Path, commits: list[None]) -> None:
    clock, outcomes = HeldClock(), Outcomes(100)
    with without_index(folder / "store", DEFAULT_LIMITS, clock) as notes:
        notes.append_nowait(Append("notes", "first"), outcomes)
        assert clock.is_read.wait(WAIT)
        for number in range(99):
            notes.append_nowait(Append("notes", str(number)), outcomes)
        clock.may_go.set()
        responses = outcomes.wait()

    assert len(commits) == 2
    assert [response.id for response in responses if isinstance(response, Appended)] == [*range(1, 101)]


def test_no_append_is_acknowledged_before_the_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    outcomes = Outcomes(1)
    commit = transactions.Transactions.commit

    def watched(self: transactions.Transactions) -> None:
        seen.append(len(outcomes))
        commit(self)
        seen.append(len(outcomes))

    with without_index(folder / "store", DEFAULT_LIMITS, now_ms) as notes:
        monkeypatch.setattr(transactions.Transactions, "commit", watched)
        notes.append_nowait(Append("notes", "milk"), outcomes)
        outcomes.wait()

    assert seen == [0, 0]


def test_an_acknowledged_record_is_found_at_once(notes: SqliteStore) -> None:
    for number in range(50):
        notes.append(Append("notes", f"milk {number}"))
        assert contents(notes, f"milk {number}") == [f"milk {number}"]


def test_appends_beyond_the_queue_limit_are_refused(folder: Path) -> None:
    clock = HeldClock()
    with light(folder / "store", Limits(store_queue=2), clock) as notes:
        notes.append_nowait(Append("notes", "first"), lambda outcome: None)
        assert clock.is_read.wait(WAIT)
        for content in ("second", "third"):
            notes.append_nowait(Append("notes", content), lambda outcome: None)
        with pytest.raises(Busy) as caught:
            notes.append(Append("notes", "fourth"))
        clock.may_go.set()

    assert caught.value.limit == 2
    with light(folder / "store", DEFAULT_LIMITS, now_ms) as notes:
        assert contents(notes) == ["third", "second", "first"]


async def test_a_loop_hands_over_records_without_waiting(notes: SqliteStore) -> None:
    loop = asyncio.get_running_loop()

    async def append(content: str) -> Appended:
        response: asyncio.Future[Appended | BecketError] = loop.create_future()
        notes.append_nowait(
            Append("notes", content), lambda outcome: loop.call_soon_threadsafe(response.set_result, outcome)
        )
        outcome = await response
        assert isinstance(outcome, Appended)
        return outcome

    responses = await asyncio.gather(*(append(str(number)) for number in range(50)))

    assert [response.id for response in responses] == [*range(1, 51)]
    assert contents(notes) == [str(number) for number in reversed(range(50))]


@pytest.mark.parametrize(
    "wait",
    [
        lambda notes: notes.append(Append("notes", "tea")),
        lambda notes: notes.set_config("notes", ConfigSet("mode", "dark")),
        lambda notes: notes.close(),
    ],
)
def test_a_commit_callback_cannot_wait_for_the_store(notes: SqliteStore, wait: Callable[[SqliteStore], object]) -> None:
    problems = Outcomes(1)

    def done(outcome: object) -> None:
        try:
            wait(notes)
        except LocalProtocolError as problem:
            problems(problem)

    notes.append_nowait(Append("notes", "milk"), done)

    problems.wait()
    assert contents(notes) == ["milk"]


def test_a_commit_callback_can_append_more(notes: SqliteStore) -> None:
    outcomes = Outcomes(1)

    notes.append_nowait(Append("notes", "1"), lambda _: notes.append_nowait(Append("notes", "2"), outcomes))

    outcomes.wait()
    assert contents(notes) == ["2", "1"]


def test_a_failure_other_than_of_the_disk_is_reported_and_the_store_continues(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    times = iter([1, None, 3])
    with light(folder / "store", DEFAULT_LIMITS, lambda: next(times) + 0) as notes:  # type: ignore[operator]
        notes.append(Append("notes", "milk"))
        with pytest.raises(StoreError) as caught, caplog.at_level(logging.ERROR, "becket.host"):
            notes.append(Append("other", "coffee"))
        response = notes.append(Append("notes", "tea"))

        assert response.id == 2
        assert contents(notes) == ["tea", "milk"]
        assert notes.query(Query("other")) == []
    assert caught.value.meaning is Meaning.INTERNAL
    assert any(caught.value.incident in record.getMessage() for record in caplog.records)


# -- time limits


def test_a_query_that_only_sqlite_works_on_ends_in_its_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PROGRESS_STEPS", 100)
    with light(folder / "store", DEFAULT_LIMITS, now_ms) as notes:
        for _ in range(2_000):
            notes.append_nowait(Append("notes", "milk", ("food",)), lambda outcome: None)
        notes.append(Append("notes", "milk"))
        with pytest.raises(QueryTimeout) as caught:
            notes.query(Query("notes", tag_prefix="drink"), timeout=0.0002)

        assert caught.value.seconds == 0.0002
        assert notes.query(Query("notes", tag_prefix="drink")) == []


def test_a_query_that_scans_everything_ends_in_its_time(notes: SqliteStore) -> None:
    for _ in range(2_000):
        notes.append_nowait(Append("notes", "x" * 2_000), lambda outcome: None)
    notes.append(Append("notes", "milk"))

    with pytest.raises(QueryTimeout):
        notes.query(Query("notes", "y"), timeout=0.001)
    assert contents(notes, "y") == []


def test_a_query_waits_for_a_connection_no_longer_than_its_time(folder: Path) -> None:
    with light(folder / "store", DEFAULT_LIMITS, now_ms):
        readers = reader.ReaderPool(folder / "store", has_index=True)
        lent = [readers.acquire(WAIT) for _ in range(reader.MAX_CONNECTIONS)]
        for one in lent:
            one.__enter__()
        with pytest.raises(QueryTimeout), readers.acquire(0.01):
            pass
        for one in lent:
            one.__exit__(None, None, None)
        readers.close()
        with pytest.raises(LocalProtocolError), readers.acquire(WAIT):
            pass


def test_a_connection_is_returned_whatever_was_done_with_it(folder: Path) -> None:
    with light(folder / "store", DEFAULT_LIMITS, now_ms):
        readers = reader.ReaderPool(folder / "store", has_index=True)
        for statement in ("SELECT * FROM nowhere", "DELETE FROM memory"):
            with pytest.raises(sqlite3.OperationalError), readers.acquire(WAIT) as (connection, _):
                connection.execute(statement)
        with readers.acquire(WAIT) as (connection, _):
            connection.execute("ROLLBACK")
        with readers.acquire(WAIT) as (connection, _):
            assert connection.in_transaction
        readers.close()


def test_a_store_is_closed_when_its_queries_get_responses(notes: SqliteStore) -> None:
    for number in range(500):
        notes.append_nowait(Append("notes", f"{number}"), lambda outcome: None)
    found: list[int] = []
    refused: list[LocalProtocolError] = []

    def ask() -> None:
        try:
            while True:
                found.append(len(notes.query(Query("notes", "4"))))
        except LocalProtocolError as error:
            refused.append(error)

    threads = [Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    notes.append(Append("notes", "last"))
    notes.close()
    for thread in threads:
        thread.join()

    assert len(refused) == 6
    assert found[-1] > 0


# -- what is where


def test_only_its_owner_can_read_the_file(folder: Path) -> None:
    with SqliteStore(folder / "store", ballast=100) as notes:
        notes.append(Append("notes", "milk"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}

    assert modes == dict.fromkeys(
        ["store", "store-wal", "store-shm", "store.lock", "store.mark", "store.ballast"], 0o600
    )
    assert {path.name for path in folder.iterdir()} == {"store", "store.lock", "store.mark", "store.ballast"}
    assert (folder / "store.ballast").stat().st_size == 100


def test_a_path_may_have_any_letters_and_be_relative(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with SqliteStore("a ?#%20'é.sqlite", ballast=0) as notes:
        notes.append(Append("notes", "milk"))

    assert os.path.exists(folder / "a ?#%20'é.sqlite")
    with SqliteStore(folder / "a ?#%20'é.sqlite", ballast=0) as notes:
        assert contents(notes) == ["milk"]


def test_maintenance_leaves_no_log_and_a_full_index(notes: SqliteStore) -> None:
    for number in range(600):
        notes.append_nowait(Append("notes", f"milk {number}"), lambda outcome: None)
    notes.maintain()

    assert notes.index_backlog == 0
    assert writer.wal_size(notes.path) == 0
    assert contents(notes, "milk 599") == ["milk 599"]


def test_an_idle_store_runs_its_maintenance(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emptied = Event()
    empty_log = writer.StoreWriter.checkpoint

    def watched(self: writer.StoreWriter) -> None:
        empty_log(self)
        emptied.set()

    monkeypatch.setattr(writer.StoreWriter, "checkpoint", watched)
    monkeypatch.setattr(writer, "CHECKPOINT_DELAY", 0.05)
    with light(folder / "store", DEFAULT_LIMITS, now_ms) as notes:
        assert emptied.wait(WAIT)
        emptied.clear()
        notes.append(Append("notes", "milk"))
        assert emptied.wait(WAIT)

        assert writer.wal_size(notes.path) == 0
        assert notes.index_backlog == 0


def test_the_index_is_never_far_behind_while_records_arrive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_INDEX_BACKLOG", 20)
    monkeypatch.setattr(writer, "INDEX_DELAY", 60.0)
    with light(folder / "store", DEFAULT_LIMITS, now_ms) as notes:
        for number in range(100):
            notes.append(Append("notes", f"milk {number}"))
            assert notes.index_backlog <= 22


# -- copies and read-only stores


def test_a_copy_is_a_store_of_the_moment_in_which_it_was_made(notes: SqliteStore, folder: Path) -> None:
    notes.append(Append("notes", "milk", idem="k"))
    notes.set_config("notes", ConfigSet("mode", "dark"))
    notes.back_up(folder / "copy")
    notes.append(Append("notes", "tea"))

    with light(folder / "copy", DEFAULT_LIMITS, now_ms) as copy:
        assert contents(copy) == ["milk"]
        assert copy.append(Append("notes", "milk", idem="k")).id == 1
        assert copy.get_config("notes", "mode").value == "dark"
    assert stat.S_IMODE((folder / "copy").stat().st_mode) == 0o600


def test_a_copy_overwrites_nothing(notes: SqliteStore, folder: Path) -> None:
    (folder / "copy").write_text("precious", encoding="utf-8")

    with pytest.raises(FileExistsError):
        notes.back_up(folder / "copy")
    assert (folder / "copy").read_text(encoding="utf-8") == "precious"


def test_a_closed_store_makes_no_copy(notes: SqliteStore, folder: Path) -> None:
    notes.close()

    with pytest.raises(LocalProtocolError):
        notes.back_up(folder / "copy")


def test_a_read_only_store_reads_what_the_owner_writes_and_writes_nothing(notes: SqliteStore) -> None:
    notes.append(Append("notes", "milk"))

    with SqliteStore(notes.path, read_only=True) as onlooker:
        notes.append(Append("notes", "tea"))
        assert contents(onlooker, "tea") == ["tea"]
        assert onlooker.search("notes", "milk")[0].content == "milk"
        for write in (
            lambda: onlooker.append(Append("notes", "coffee")),
            lambda: onlooker.append_nowait(Append("notes", "coffee"), print),
            lambda: onlooker.set_config("notes", ConfigSet("mode", "dark")),
            lambda: onlooker.remove_config("notes", "mode"),
            lambda: onlooker.forget("notes"),
            lambda: onlooker.maintain(),
        ):
            with pytest.raises(LocalProtocolError):
                write()
    assert contents(notes) == ["tea", "milk"]


def test_a_reader_opens_a_store_that_no_process_holds(folder: Path) -> None:
    with light(folder / "store", DEFAULT_LIMITS, now_ms) as notes:
        notes.append(Append("notes", "milk"))

    with SqliteStore(folder / "store", read_only=True) as onlooker:
        assert contents(onlooker) == ["milk"]


def test_a_read_only_store_is_not_created(folder: Path) -> None:
    with pytest.raises(StoreUnavailable):
        SqliteStore(folder / "store", read_only=True)
    assert [*folder.iterdir()] == []


# -- without an index


def test_a_store_works_without_an_index_and_builds_it_where_sqlite_has_fts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(store, "can_index", lambda: False)
        with light(folder / "store", DEFAULT_LIMITS, now_ms) as notes:
            notes.append(Append("notes", "early milk"))
            assert contents(notes, "milk") == ["early milk"]

    with light(folder / "store", DEFAULT_LIMITS, now_ms) as notes:
        notes.append(Append("notes", "late milk"))
        notes.maintain()
        assert contents(notes, "milk") == ["late milk", "early milk"]

    with without_index(folder / "store", DEFAULT_LIMITS, now_ms) as notes:
        notes.append(Append("notes", "latest milk"))
        notes.forget("notes", up_to=1)
        assert contents(notes, "milk") == ["latest milk", "late milk"]

    with light(folder / "store", DEFAULT_LIMITS, now_ms) as notes:
        assert contents(notes, "milk") == ["latest milk", "late milk"]


def test_the_default_clock_is_that_of_the_machine(folder: Path) -> None:
    clock: Clock = now_ms
    before = clock()
    with SqliteStore(folder / "store", ballast=0) as notes:
        assert before <= notes.append(Append("notes", "milk")).timestamp_ms <= clock()


@pytest.mark.parametrize("limits", [Limits(config_keys=1), Limits(config_bytes=10)])
def test_values_above_a_limit_that_was_lowered_can_be_removed(folder: Path, limits: Limits) -> None:
    keys = ("mode", "pace", "tone")
    with light(folder / "store", Limits(), now_ms) as store:
        for key in keys:
            store.set_config("notes", ConfigSet(key, "value"))

    with light(folder / "store", limits, now_ms) as store:
        with pytest.raises(QuotaExceeded):
            store.set_config("notes", ConfigSet("more", "value"))
        for key in keys:
            assert store.remove_config("notes", key).ok
        assert store.read_config("notes").values == {}
        assert store.set_config("notes", ConfigSet("more", "value")).ok
