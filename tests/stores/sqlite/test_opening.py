"""A store is opened by one process at a time; failures are explained, and nothing is overwritten."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.stores.store_factories import light

from becket.contract.config import ConfigSet
from becket.contract.memory import Append, Query
from becket.errors import LocalProtocolError, Meaning, NotSupported, StoreError, StoreInUse, StoreUnavailable
from becket.limits import DEFAULT_LIMITS
from becket.stores.sqlite import SqliteStore, lock, schema
from becket.stores.store import now_ms

PROGRAMS = Path(__file__).parents[1] / "programs"
PAGE = 4096


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "store"


@pytest.fixture
def filled(path: Path) -> Path:
    """The path of a store with some pages of records."""
    with light(path, DEFAULT_LIMITS, now_ms) as store:
        for number in range(200):
            store.append_nowait(Append("notes", f"{number} {'x' * 400}"), lambda outcome: None)
        store.set_config("notes", ConfigSet("mode", "dark"))
    return path


def open_light(path: Path) -> SqliteStore:
    return light(path, DEFAULT_LIMITS, now_ms)


def count_of(store: SqliteStore) -> int:
    return len(store.query(Query("notes", limit=1_000)))


def leave_it(path: Path) -> None:
    """Makes a store look as if its owner had died."""
    (path.parent / f"{path.name}.lock").write_text("999999999\n", encoding="ascii")


# -- one owner


@pytest.mark.process
def test_the_error_for_a_second_process_names_the_first(path: Path) -> None:
    program = [sys.executable, str(PROGRAMS / "holds_a_store.py"), str(path), "stays"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"kept\n"

        with pytest.raises(StoreInUse) as caught:
            open_light(path)
        with SqliteStore(path, read_only=True) as onlooker:
            assert count_of(onlooker) == 1

        other.stdin.close()
        assert other.wait(60) == 0
    assert caught.value.pid == other.pid
    assert str(other.pid) in str(caught.value)
    with open_light(path) as store:
        assert count_of(store) == 1


def test_this_program_cannot_open_a_store_twice_either(path: Path) -> None:
    with open_light(path), pytest.raises(StoreInUse) as caught:
        open_light(path)
    assert caught.value.pid == os.getpid()


@pytest.mark.process
def test_the_store_of_a_killed_program_is_free_and_is_verified(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    check_sound = schema.check_integrity
    monkeypatch.setattr(
        "becket.stores.sqlite.store.check_integrity", lambda one, most: (looked.append(one), check_sound(one, most))
    )
    program = [sys.executable, str(PROGRAMS / "holds_a_store.py"), str(path), "dies"]
    assert subprocess.run(program, stdin=subprocess.DEVNULL, check=False).returncode == -9

    with open_light(path) as store:
        assert len(looked) == 1
        again = store.append(Append("notes", "of another program", idem="k"))
        assert (again.id, count_of(store)) == (1, 1)
    open_light(path).close()
    assert len(looked) == 1


def test_a_store_is_in_use_although_its_holder_is_unknown(path: Path) -> None:
    holder = lock.StoreLock(path)
    os.truncate(f"{path}.lock", 0)

    with pytest.raises(StoreInUse) as caught:
        open_light(path)
    holder.release(in_order=True)
    assert caught.value.pid is None


@pytest.mark.parametrize(
    ("pid", "is_there"),
    [(None, False), pytest.param(os.getpid(), True, id="this program"), (1, True), (2**22 + 1, False)],
)
def test_only_an_owner_that_lives_is_named(pid: int | None, is_there: bool) -> None:
    with another_user():
        assert lock.is_process_alive(pid) is is_there


def test_a_lock_that_the_system_does_not_give_is_explained(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def no_locks(file: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)

    with pytest.raises(StoreUnavailable) as caught:
        open_light(path)
    assert "No locks available" in str(caught.value)


def test_a_system_without_locks_is_not_supported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)

    with pytest.raises(NotSupported):
        open_light(path)


# -- what is no store, or not for us


@pytest.mark.parametrize("content", [b"hello, this is a letter", b"SQLite format 3\0", b"\0" * 5_000])
def test_a_file_of_something_else_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    with pytest.raises(StoreUnavailable) as caught:
        open_light(path)
    assert "not a becket store" in caught.value.because
    assert path.read_bytes() == content
    path.unlink()
    open_light(path).close()


def test_a_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE memory (key INTEGER PRIMARY KEY)")
    before = path.read_bytes()

    with pytest.raises(StoreUnavailable) as caught:
        open_light(path)
    assert "not a becket store" in caught.value.because
    assert path.read_bytes() == before


def test_a_store_of_a_later_version_is_refused_and_left_alone(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("PRAGMA user_version = 7")
    before = filled.read_bytes()

    with pytest.raises(StoreUnavailable) as caught:
        open_light(filled)
    assert "version 7" in caught.value.because
    assert filled.read_bytes() == before


def test_a_folder_that_does_not_exist_is_named(folder: Path) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        open_light(folder / "nowhere" / "store")
    assert "folder" in caught.value.because
    assert str(folder / "nowhere" / "store") == caught.value.path


def test_a_folder_instead_of_a_file_is_refused(path: Path) -> None:
    path.mkdir()

    with pytest.raises(StoreUnavailable):
        open_light(path)


@contextmanager
def another_user() -> Iterator[None]:
    """Runs as a user who may not do everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("forbid", [lambda path: path.parent.chmod(0o555), lambda path: path.chmod(0o444)])
def test_a_folder_or_a_file_that_may_not_be_written_is_explained(filled: Path, forbid: Callable[[Path], None]) -> None:
    filled.parent.chmod(0o777)
    filled.with_name("store.lock").unlink()
    forbid(filled)

    with another_user(), pytest.raises(StoreUnavailable) as caught:
        open_light(filled)
    assert str(filled) in str(caught.value)
    assert "writ" in caught.value.hint
    filled.parent.chmod(0o755)
    filled.chmod(0o600)
    filled.with_name("store.lock").unlink(missing_ok=True)
    with open_light(filled) as store:
        assert count_of(store) == 200


def test_a_file_that_may_not_be_read_is_explained(filled: Path) -> None:
    filled.parent.chmod(0o777)
    filled.with_name("store.lock").unlink()
    filled.chmod(0)

    with another_user(), pytest.raises(StoreUnavailable) as caught:
        open_light(filled)
    assert "cannot be opened" in caught.value.because


# -- damage


def spoil(path: Path, start: int, size: int) -> bytes:
    """Overwrites a part of a file and returns what it is then."""
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * size)
    return path.read_bytes()


@pytest.mark.parametrize("start", [PAGE, 3 * PAGE, 6 * PAGE])
def test_a_damaged_store_is_set_aside_whole_and_a_new_one_is_begun(
    filled: Path, start: int, caplog: pytest.LogCaptureFixture
) -> None:
    spoilt = spoil(filled, start, 2 * PAGE)
    leave_it(filled)

    with caplog.at_level(logging.ERROR, "becket.host"), open_light(filled) as store:
        assert store.quarantined is not None
        assert store.quarantined.read_bytes() == spoilt
        assert count_of(store) == 0
        assert store.append(Append("notes", "new")).ok
    assert any(str(store.quarantined) in record.getMessage() for record in caplog.records)
    with open_light(filled) as store:
        assert store.quarantined is None
        assert count_of(store) == 1


def test_damage_that_is_seen_at_once_needs_no_unclean_end(filled: Path) -> None:
    spoil(filled, 100, PAGE - 100)

    with open_light(filled) as store:
        assert store.quarantined is not None


def test_a_file_that_is_set_aside_never_overwrites_an_earlier_one(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(schema.datetime):
        @classmethod
        def now(cls, tz: object = None) -> Stopped:
            return cls(2026, 1, 1, tzinfo=schema.UTC)

    monkeypatch.setattr(schema, "datetime", Stopped)
    names: list[str] = []
    for _ in range(3):
        spoil(filled, 100, PAGE - 100)
        with open_light(filled) as store:
            assert store.quarantined is not None
            names.append(store.quarantined.name)

    assert names == [f"store.damaged-20260101T000000{suffix}" for suffix in ("", "-2", "-3")]
    assert all(filled.with_name(name).exists() for name in names)


def test_damage_that_a_query_finds_is_reported_and_checked_at_the_next_opening(filled: Path) -> None:
    with open_light(filled) as store:
        assert count_of(store) == 200
    pages = os.path.getsize(filled) // PAGE
    with open_light(filled) as store:
        spoil(filled, 2 * PAGE, (pages - 2) * PAGE)
        with pytest.raises(StoreError) as caught:
            count_of(store)
        assert caught.value.meaning is Meaning.INTERNAL
        assert "sqlite" not in str(caught.value).lower()
    with open_light(filled) as store:
        assert store.quarantined is not None


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()

    with open_light(path) as store:
        assert store.append(Append("notes", "milk")).id == 1


def test_the_log_of_a_store_that_is_gone_does_not_get_into_a_new_one(path: Path, folder: Path) -> None:
    with open_light(path) as store:
        store.append(Append("notes", "milk"))
        log = (folder / "store-wal").read_bytes()
    path.unlink()
    (folder / "store-wal").write_bytes(log)

    with open_light(path) as store:
        assert count_of(store) == 0
    assert [file.read_bytes() for file in folder.glob("store.damaged-*-wal")] == [log]


def test_a_store_that_was_never_finished_is_begun_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "SCHEMA", schema.SCHEMA + "CREATE TABLE oops (")
    with pytest.raises(StoreUnavailable):
        open_light(path)
    monkeypatch.undo()

    with open_light(path) as store:
        assert store.append(Append("notes", "milk")).id == 1


def test_a_closed_store_refuses_every_operation(path: Path) -> None:
    store = open_light(path)
    store.close()
    store.close()

    with pytest.raises(LocalProtocolError) as caught:
        store.query(Query("notes"))
    assert "closed" in str(caught.value)
