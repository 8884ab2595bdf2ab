"""Damage is never silent: flipped bits, lost ends of a log, damaged rows; the rest stays readable."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.stores.failing_disks import PROGRAMS
from tests.stores.store_factories import light

from becket.contract.config import ConfigSet
from becket.contract.memory import Append, Query
from becket.errors import Meaning, StoreError, StoreUnavailable
from becket.limits import DEFAULT_LIMITS
from becket.stores.sqlite import SqliteStore
from becket.stores.sqlite.inspect import load_record, load_usage
from becket.stores.store import Damage, now_ms
from becket.testing import check_flipped_bits

EXTENSIONS = ("notes", "other")
WORDS = ("milk", "note 1", "te")


def open_light(path: Path) -> SqliteStore:
    return light(path, DEFAULT_LIMITS, now_ms)


def contents(store: SqliteStore, *conditions: str) -> list[str]:
    return [record.content for record in store.query(Query("notes", *conditions))]


@pytest.fixture
def path(folder: Path) -> Path:
    """A store with some records and values, and an index of them."""
    path = folder / "store"
    with open_light(path) as store:
        for word in ("milk", "tea", "honey"):
            store.append(Append("notes", f"some {word}", ("food",)))
        store.append(Append("other", "six"))
        store.set_config("notes", ConfigSet("mode", "dark"))
        store.set_config("notes", ConfigSet("pace", "slow"))
        store.maintain()
    return path


def change(path: Path, statement: str) -> None:
    """Changes something in the file, as a disk that fails does: without the store."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


def left_by_the_killed(folder: Path) -> Path:
    """Returns the folder of a store whose owner was killed with all that it did in the log."""
    original = folder / "original"
    original.mkdir()
    program = [sys.executable, str(PROGRAMS / "leaves_a_log.py"), str(original / "store")]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    return original


# -- flipped bits


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_each_flipped_bit_in_the_file_is_reported(folder: Path) -> None:
    original = folder / "original"
    original.mkdir()
    with open_light(original / "store") as store:
        for number in range(120):
            store.append(Append("notes", f"note {number} about milk", ("food",), {"n": number}, str(number)))
            store.append(Append("other", f"other {number} about tea"))
            store.set_config("notes", ConfigSet(f"key{number % 7}", f"value {number}"))
        store.forget("notes", up_to=21)
        store.maintain()

    flips = check_flipped_bits(light, original, folder, name="store", extensions=EXTENSIONS, words=WORDS)

    assert flips.reported + flips.harmless == 100
    assert flips.reported > 20


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(180)
def test_each_flipped_bit_in_the_log_of_a_killed_program_is_reported(folder: Path) -> None:
    original = left_by_the_killed(folder)

    flips = check_flipped_bits(light, original, folder, name="store-wal", extensions=EXTENSIONS, words=WORDS)

    assert flips.reported > 80


@pytest.mark.slow
@pytest.mark.process
def test_the_check_finds_a_store_without_a_mark(folder: Path) -> None:
    original = left_by_the_killed(folder)
    (original / "store.mark").unlink()

    with pytest.raises(AssertionError) as caught:
        check_flipped_bits(light, original, folder, name="store-wal", extensions=EXTENSIONS, words=WORDS)
    assert "was not reported" in str(caught.value)


# -- records


BROKEN_TEXT = "UPDATE memory SET content = CAST(x'736f6d6520ff746561' AS TEXT) WHERE content = 'some tea'"


def test_a_record_that_is_not_text_is_named_and_the_others_are_read(path: Path) -> None:
    change(path, BROKEN_TEXT)

    with open_light(path) as store:
        with pytest.raises(StoreError) as caught:
            store.query(Query("notes"))
        assert caught.value.meaning is Meaning.INTERNAL
        assert "notes: record 2" in caught.value.because
        assert str(path) in str(caught.value)
        assert str(path) not in caught.value.message  # which goes over the wire
        assert contents(store, "milk") == ["some milk"]
        assert store.query(Query("other"))[0].content == "six"
        assert Damage("notes", "record 2", "invalid UTF-8") in store.verify()
    assert path.with_name("store.lock").read_bytes() == b"damaged"


@pytest.mark.parametrize(
    "statement",
    [
        BROKEN_TEXT,
        "UPDATE memory SET content = 'some pea' WHERE content = 'some tea'",
        "UPDATE memory SET time_ms = time_ms + 1 WHERE content = 'some tea'",
        """UPDATE memory SET tags = '["good"]' WHERE content = 'some tea'""",
        "UPDATE memory SET tags = 'no JSON' WHERE content = 'some tea'",
        "UPDATE memory SET meta = 'no JSON' WHERE content = 'some tea'",
        "UPDATE memory SET content = 7 WHERE content = 'some tea'",
        "UPDATE memory SET content = x'00' WHERE content = 'some tea'",
    ],
)
def test_a_changed_record_is_reported_by_every_reader(path: Path, statement: str) -> None:
    change(path, statement)

    with open_light(path) as store:
        for read in (
            lambda: store.query(Query("notes")),
            lambda: store.query(Query("notes", since_ms=1)),
            lambda: load_record(path, "notes", 2),
        ):
            with pytest.raises((StoreError, StoreUnavailable)) as caught:
                read()
            assert "record 2" in caught.value.because
        assert "record 2" in {damage.what for damage in store.verify()}
        assert contents(store, "honey") == ["some honey"]


def test_a_damaged_record_can_be_forgotten_and_the_store_is_intact_again(path: Path) -> None:
    change(path, BROKEN_TEXT)

    with open_light(path) as store:
        assert store.verify() != []
        assert store.forget("notes", up_to=2) == 2
        store.maintain()
        assert store.verify() == []
        assert contents(store) == contents(store, "hon") == ["some honey"]
    with open_light(path) as store:
        assert contents(store, "hon") == ["some honey"]
        assert store.verify() == []


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("DELETE FROM memory WHERE content = 'some tea'", "records"),
        ("DELETE FROM config WHERE key = 'mode'", "configuration"),
        ("DELETE FROM changes WHERE key = 'mode'", "the log of configuration changes"),
        (
            "INSERT INTO memory SELECT key + 9, time_ms, peak_ms, size, odd, content, tags, meta, NULL, sum FROM memory"
            " WHERE content = 'some tea'",
            "records",
        ),
    ],
)
def test_a_row_that_is_missing_or_came_back_is_reported(path: Path, statement: str, what: str) -> None:
    change(path, statement)

    with open_light(path) as store:
        assert ("notes", what) in {(damage.extension, damage.what) for damage in store.verify()}


def test_an_index_that_misses_something_is_reported_and_made_anew(path: Path) -> None:
    change(path, "INSERT INTO memory_text (memory_text, rowid, folded) VALUES ('delete', -1099511627778, 'tea')")

    with open_light(path) as store:
        assert contents(store, "some tea") == []
        assert [damage.what for damage in store.verify()] == ["the index of texts"]
    with open_light(path) as store:
        assert contents(store, "some tea") == ["some tea"]
        store.maintain()
        assert contents(store, "some tea") == ["some tea"]
        assert store.verify() == []


# -- configuration and counters


def test_a_value_that_has_changed_is_named_and_may_be_set_again(path: Path) -> None:
    change(path, "UPDATE config SET value = 'dork' WHERE key = 'mode'")

    with open_light(path) as store:
        for read in (lambda: store.get_config("notes", "mode"), lambda: store.read_config("notes")):
            with pytest.raises(StoreError) as caught:
                read()
            assert "`mode`" in caught.value.because
        assert store.get_config("notes", "pace").value == "slow"
        with pytest.raises(StoreError):
            store.set_config("notes", ConfigSet("mode", "light", 1))
        assert store.set_config("notes", ConfigSet("mode", "light")).ok
        assert store.get_config("notes", "mode").value == "light"
        assert store.verify() == []


def test_a_change_that_has_changed_is_reported(path: Path) -> None:
    change(path, "UPDATE changes SET value = 'dork' WHERE key = 'mode'")

    with open_light(path) as store:
        with pytest.raises(StoreError):
            store.read_changes("notes", 0)
        assert len(store.read_changes("notes", 1) or ()) == 1


@pytest.mark.parametrize("column", ["records", "bytes", "last_id", "indexed", "key_bytes", "revision", "name"])
def test_counters_that_have_changed_are_reported_when_the_store_is_opened(path: Path, column: str) -> None:
    value = "'nctes'" if column == "name" else f"{column} + 64"
    change(path, f"UPDATE extensions SET {column} = {value} WHERE name = 'notes'")

    with open_light(path) as store:
        assert [damage.what for damage in store.damage] == ["the row of extension 1"]
        for use in (lambda: store.append(Append("notes", "more")), lambda: store.append(Append("unknown", "more"))):
            with pytest.raises(StoreError) as caught:
                use()
            assert "extension 1" in caught.value.because
        assert store.append(Append("other", "seven")).id == 5
        assert store.query(Query("other", "seven"))[0].id == 5
        assert "the row of extension 1" in {damage.what for damage in store.verify()}
    with pytest.raises(StoreUnavailable):
        load_usage(path)


# -- the mark


def lose_the_log(original: Path) -> Path:
    """Removes the log of a killed program, as one flipped bit at its beginning does."""
    (original / "store-wal").unlink()
    (original / "store-shm").unlink()
    return original / "store"


@pytest.mark.process
def test_lost_acknowledged_records_are_reported_with_their_range(folder: Path) -> None:
    path = lose_the_log(left_by_the_killed(folder))

    with SqliteStore(path, read_only=True) as onlooker:
        (seen,) = onlooker.verify()
    with open_light(path) as store:
        assert store.damage == (seen,)
        assert seen.what == "records 1 to 121 and configuration changes 1 to 121"
        assert "commits 1 to" in seen.problem
        assert store.append(Append("notes", "new")).id == 122  # no acknowledged id is used again
        assert store.set_config("notes", ConfigSet("mode", "dark")).revision == 122
        assert store.verify() == [seen]
    with open_light(path) as store:
        assert store.damage == ()
        assert store.verify() == [seen]
        store.accept_losses()
        assert store.verify() == []


@pytest.mark.process
def test_records_that_come_back_because_their_removal_is_lost_are_reported(folder: Path) -> None:
    original = left_by_the_killed(folder)
    kept = folder / "kept"
    shutil.copytree(original, kept)
    with open_light(original / "store"):
        pass
    with open_light(original / "store") as store:
        assert store.forget("other") > 0
        shutil.copy(original / "store.mark", kept / "store.mark")

    with open_light(kept / "store") as store:
        (damage,) = store.damage
        assert damage.what.startswith("commits")
        assert "may have reappeared" in damage.problem


def test_a_damaged_mark_is_reported_and_written_anew(path: Path) -> None:
    mark = path.with_name("store.mark")
    data = bytearray(mark.read_bytes())
    data[10] ^= 1
    mark.write_bytes(data)

    with open_light(path) as store:
        assert [damage.what for damage in store.damage] == ["the mark"]
        assert len(contents(store)) == 3
    with open_light(path) as store:
        assert store.damage == ()


@pytest.mark.parametrize("lose", [os.unlink, lambda mark: os.truncate(mark, 0)])
def test_a_store_that_was_copied_without_its_mark_is_whole(path: Path, lose: Callable[[Path], None]) -> None:
    lose(path.with_name("store.mark"))

    with open_light(path) as store:
        assert store.damage == ()
        assert store.verify() == []
        assert store.append(Append("notes", "new")).id == 5


def test_a_store_that_is_gone_is_reported_by_its_mark(path: Path) -> None:
    path.unlink()

    with open_light(path) as store:
        assert [damage.what for damage in store.damage] == ["records 1 to 4 and configuration changes 1 to 2"]
        assert store.append(Append("notes", "new")).id == 5


# -- the file as a whole


def test_a_store_that_was_set_aside_is_reported_until_that_is_accepted(path: Path) -> None:
    with open(path, "r+b") as file:
        file.seek(100)
        file.write(b"\xa5" * 3_000)

    with open_light(path) as store:
        assert [damage.what for damage in store.damage] == ["the file"]
        assert str(store.quarantined) in store.damage[0].problem
        assert store.verify() == [*store.damage]
    with open_light(path) as store:
        assert [damage.what for damage in store.verify()] == ["the file"]
        store.accept_losses()
        assert store.verify() == []


def test_tables_that_differ_from_the_schema_are_found_when_the_store_is_opened(path: Path) -> None:
    change(path, "CREATE TRIGGER gone AFTER INSERT ON memory BEGIN DELETE FROM memory; END")

    with open_light(path) as store:
        assert store.quarantined is not None
