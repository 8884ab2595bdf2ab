"""Stores of becket 0.1 are upgraded when they are opened, entirely or not at all, with a backup."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.stores.first_version import make_first_version, version_of
from tests.stores.store_factories import light

from becket.contract.config import ConfigChanged, ConfigSet, ConfigValue
from becket.contract.memory import Append, Query, Record
from becket.errors import StoreError, StoreUnavailable
from becket.limits import DEFAULT_LIMITS
from becket.stores.sqlite import SqliteStore, upgrade
from becket.stores.store import now_ms


@pytest.fixture
def path(folder: Path) -> Path:
    path = folder / "store"
    make_first_version(path)
    return path


def open_light(path: Path) -> SqliteStore:
    return light(path, DEFAULT_LIMITS, now_ms)


def test_all_stored_data_is_there_and_verified(path: Path, folder: Path) -> None:
    with open_light(path) as store:
        assert store.query(Query("notes")) == [
            Record("notes", 20, "tea ", (), id=3),
            Record("notes", 10, "Milk", ("food",), {"a": 1}, 1),
        ]
        assert store.append(Append("notes", "again", idem="k")).id == 1
        assert store.get_config("notes", "mode") == ConfigValue("dark", 2)
        assert store.read_changes("notes", 0) == [ConfigChanged("mode", "light", 1), ConfigChanged("mode", "dark", 2)]
        store.maintain()
        assert [record.id for record in store.query(Query("notes", "milk"))] == [1]
        assert store.verify() == []
        assert store.append(Append("notes", "new")).id == 4
        assert store.set_config("other", ConfigSet("mode", "dark")).revision == 3
        assert store.verify() == []
    with open_light(path) as store:
        assert store.damage == ()
        assert store.verify() == []
    assert {file.name for file in folder.iterdir()} == {"store", "store.lock", "store.mark"}


def test_the_version_in_the_file_is_raised_so_that_an_older_becket_refuses_it(path: Path, folder: Path) -> None:
    assert version_of(path) == 1
    with open_light(path):
        assert version_of(path) == 2
        with open_light(folder / "new"):
            assert version_of(folder / "new") == 2


def test_readers_do_not_upgrade_it(path: Path) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        SqliteStore(path, read_only=True)
    assert "version 1" in caught.value.because
    assert "start its host" in caught.value.hint
    assert version_of(path) == 1


@pytest.mark.parametrize("version", [0, 3])
def test_an_unknown_version_is_refused(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")

    with pytest.raises(StoreUnavailable) as caught:
        open_light(path)
    assert f"version {version}" in caught.value.because


def test_an_upgrade_that_fails_leaves_the_store_and_a_copy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "seal_schema", lambda connection: connection.execute("no SQL"))
    with pytest.raises(StoreUnavailable):
        open_light(path)
    assert version_of(path) == 1
    copy = upgrade.copy_path(path)
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM memory").fetchone() == (3,)
    monkeypatch.undo()

    with open_light(path) as store:
        assert len(store.query(Query("notes"))) == 2
    assert not copy.exists()


def test_a_copy_that_a_killed_program_left_after_its_upgrade_is_removed(path: Path) -> None:
    open_light(path).close()
    upgrade.copy_path(path).write_bytes(b"left")

    open_light(path).close()
    assert not upgrade.copy_path(path).exists()


def test_values_that_were_not_text_before_are_named_after(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE memory SET content = CAST(x'ff' AS TEXT) WHERE content = 'tea '")

    with open_light(path) as store:
        with pytest.raises(StoreError) as caught:
            store.query(Query("notes"))
        assert "record 3" in caught.value.because
        assert [record.id for record in store.query(Query("notes", "milk"))] == [1]
        assert "record 3" in {damage.what for damage in store.verify()}
