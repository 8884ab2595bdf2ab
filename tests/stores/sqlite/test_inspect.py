"""Reading a store from outside: usage and single records, while another process holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.contract.config import ConfigSet
from becket.contract.memory import Append, Record
from becket.errors import StoreUnavailable
from becket.limits import DEFAULT_LIMITS
from becket.stores.sqlite import SqliteStore
from becket.stores.sqlite.inspect import ExtensionUsage, load_record, load_usage


def test_the_records_of_each_extension_are_shown_while_another_process_holds_the_store(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    times = iter([10, 20, 30, 40])
    with SqliteStore(path, DEFAULT_LIMITS, lambda: next(times)) as store:
        store.append(Append("notes", "milk"))
        store.append(Append("notes", "honey"))
        store.append(Append("dice", "6"))
        store.set_config("eliza", ConfigSet("pace", "1"))
        store.forget("dice")

        assert load_usage(path) == [
            ExtensionUsage("dice", 0, 0, None, 0),
            ExtensionUsage("eliza", 0, 0, None, 1),
            ExtensionUsage("notes", 2, 9, 20, 0),
        ]


def test_a_record_is_found_by_its_id(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with SqliteStore(path, DEFAULT_LIMITS, lambda: 10) as store:
        kept = store.append(Append("notes", "milk", ("shop",), {"price": 1}))
        store.append(Append("dice", "6"))

    assert kept.id is not None
    assert load_record(path, "notes", kept.id) == Record("notes", 10, "milk", ("shop",), {"price": 1}, kept.id)
    assert load_record(path, "notes", kept.id + 1) is None
    assert load_record(path, "nobody", kept.id) is None


@pytest.mark.parametrize("id", [-1, 2**40, 2**80])
def test_an_invalid_id_is_not_found(tmp_path: Path, id: int) -> None:
    path = tmp_path / "store.sqlite"
    SqliteStore(path).close()

    assert load_record(path, "notes", id) is None


def test_a_missing_or_damaged_store_cannot_be_inspected(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with pytest.raises(StoreUnavailable):
        load_usage(path)

    SqliteStore(path).close()
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\xff" * (len(data) - 100))
    with pytest.raises(StoreUnavailable):
        load_usage(path)
