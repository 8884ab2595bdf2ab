"""Faults of a store: killed programs, power cuts, full and failing disks, hostile callers."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import pytest
from tests.stores.failing_disks import PROGRAMS, run_on_small_disk, run_with_failing_syncs
from tests.stores.store_factories import careless, light

from becket.contract.config import ConfigSet
from becket.contract.memory import Append, Query
from becket.errors import InvalidParams, Meaning, NotSupported, QueryTimeout, StoreError
from becket.limits import DEFAULT_LIMITS, Limits
from becket.stores.sqlite import SqliteStore, writer
from becket.stores.sqlite.reserve import DiskReserve
from becket.stores.store import Store, now_ms
from becket.testing import check_power_cuts
from becket.testing.checks.power_cuts import record_disk

WAIT = 10.0
CUTS = int(os.environ.get("BECKET_POWER_CUTS", "20"))  # `make prove` makes more of them


def open_light(folder: Path, limits: Limits = DEFAULT_LIMITS) -> SqliteStore:
    return light(folder / "store", limits, now_ms)


def contents(store: Store, namespace: str = "notes") -> list[str]:
    """Returns what a namespace has, the oldest first."""
    return [record.content for record in store.query(Query(namespace, limit=1_000))][::-1]


def is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))


# -- power


def can_record() -> bool:
    with TemporaryDirectory() as path:
        (folder := Path(path, "folder")).mkdir()
        try:
            record_disk(["true"], folder)
        except NotSupported:
            return False
    return True


recorded = pytest.mark.skipif(not can_record(), reason="what a program writes cannot be recorded: it takes `strace`")


@recorded
@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(180)
def test_nothing_acknowledged_is_lost_when_the_power_fails(folder: Path) -> None:
    toll = check_power_cuts(light, folder, cuts=CUTS)

    assert (toll.crashes, toll.lost) == (CUTS, 0)
    assert toll.acknowledged > 10 * CUTS


@recorded
@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(180)
def test_the_check_finds_a_store_that_does_not_sync(folder: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        check_power_cuts(careless, folder, cuts=60)
    assert "acknowledged" in str(caught.value)


# -- children that restart and retry


@pytest.mark.process
def test_a_record_whose_response_was_lost_is_stored_once(folder: Path) -> None:
    program = [sys.executable, str(PROGRAMS / "holds_a_store.py"), str(folder / "store"), "dies"]
    for _ in range(3):
        assert subprocess.run(program, stdin=subprocess.DEVNULL, check=False).returncode == -signal.SIGKILL

    with open_light(folder) as store:
        assert store.append(Append("notes", "of another program", idem="k")).id == 1
        assert contents(store) == ["of another program"]


ASKING = "import os\nfor number in range({count}): os.write(1, b'%d\\n' % number)"


@pytest.mark.process
def test_records_of_many_children_stay_in_order_when_one_is_killed(folder: Path) -> None:
    with open_light(folder) as store:
        received: dict[str, list[str]] = {"first": [], "second": [], "killed": []}
        ids: list[int] = []

        def serve(name: str, child: subprocess.Popen[bytes]) -> None:
            assert child.stdout is not None
            for line in child.stdout:
                ids.append(store.append(Append(name, line.decode())).id or 0)
                received[name].append(line.decode())
                if name == "killed" and len(received[name]) == 20:
                    child.kill()
                    return

        children = {
            name: subprocess.Popen(
                [sys.executable, "-c", ASKING.format(count=10_000_000 if name == "killed" else 60)],
                stdout=subprocess.PIPE,
            )
            for name in received
        }
        threads = [Thread(target=serve, args=(name, child)) for name, child in children.items()]
        for thread in threads:
            thread.start()
        for child in children.values():
            child.wait()
        for thread in threads:
            thread.join()
        for child in children.values():
            assert child.stdout is not None
            child.stdout.close()

        assert len(received["first"]) == len(received["second"]) == 60
        assert len(received["killed"]) == 20
        for name, lines in received.items():
            assert contents(store, name) == lines
        assert sorted(ids) == [*range(1, len(ids) + 1)]


# -- disks


@pytest.mark.process
def test_on_a_full_disk_nothing_is_lost_and_what_makes_room_still_works(folder: Path) -> None:
    reported = run_on_small_disk("fills_a_disk.py", folder, "32m")

    acknowledged = reported.pop("acknowledged")
    assert acknowledged > 150
    more, reason = reported.pop("until full again")
    assert (more > 10, reason) == (True, "DISK_FULL")
    kept = acknowledged - 110 + 20 + more + 1
    for text in reported.pop("texts"):
        assert text.startswith(f"{folder / 'store'}: ")
        assert "the disk is full" in text
        assert "becket memory forget" in text
    assert reported == {
        "failed": "DISK_FULL",
        "again": "DISK_FULL",
        "set": "DISK_FULL",
        "readable": True,
        "remove": "ok",
        "forget": 10,
        "has ballast": False,
        "forget more": 100,
        "after forget": ["ok"] * 20,
        "with room": "ok",
        "has ballast again": True,
        "kept": kept,
        "set aside": False,
        "kept when opened again": kept,
    }


@pytest.mark.process
def test_a_revocation_on_a_full_disk_uses_the_reserved_space(folder: Path) -> None:
    reported = run_on_small_disk("revokes_on_a_full_disk.py", folder, "12m")

    assert reported == {
        "first": ["memory.write"],
        "has reserve": False,
        "second": ["memory.read"],
        "problems": ["notes"],
        "at the end": ["memory.read", "memory.write"],
        "pending": False,
    }


@pytest.mark.process
def test_a_sync_that_fails_fails_its_append_alone(folder: Path) -> None:
    reported = run_with_failing_syncs("appends_to_a_failing_disk.py", "6", folder / "store", 8)

    failed = [number for number, outcome in enumerate(reported["outcomes"]) if outcome == "INTERNAL"]
    kept = [str(number) for number in range(8) if number not in failed]
    assert len(failed) == 1
    assert reported["found"] == kept
    with open_light(folder) as store:
        assert contents(store) == kept
        assert store.append(Append("notes", "again", idem=kept[-1])).id == 7
    assert is_sound(folder / "store")


@pytest.mark.process
def test_a_disk_that_continues_failing_is_not_written_to_and_can_still_be_read(folder: Path) -> None:
    reported = run_with_failing_syncs("appends_to_a_failing_disk.py", "10+", folder / "store", 12)

    kept = [outcome for outcome in reported["outcomes"] if outcome != "INTERNAL"]
    assert 3 < len(kept) < 12
    assert reported["outcomes"] == kept + ["INTERNAL"] * (12 - len(kept))
    assert reported["found"] == [str(number) for number in range(len(kept))]
    with open_light(folder) as store:
        assert contents(store) == reported["found"]
    assert is_sound(folder / "store")


def test_a_disk_that_is_full_when_the_store_is_opened_takes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_light(folder).close()
    monkeypatch.setattr(DiskReserve, "allocate", lambda self: False)
    with SqliteStore(folder / "store") as store:
        with pytest.raises(StoreError) as caught:
            store.append(Append("notes", "milk"))
        assert caught.value.meaning is Meaning.DISK_FULL
        assert store.forget("notes") == 0
        monkeypatch.undo()
        assert store.append(Append("notes", "milk")).id == 1


def test_a_ballast_that_finds_no_room_leaves_nothing_behind(folder: Path) -> None:
    ballast = DiskReserve(folder / "store", 3 << 20)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        assert not ballast.allocate()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [*folder.iterdir()] == []
    assert ballast.allocate()
    assert (folder / "store.ballast").stat().st_size == 3 << 20
    assert ballast.allocate()
    ballast.release()
    ballast.release()


def test_a_store_that_another_process_writes_to_refuses_and_continues(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("becket.stores.sqlite.schema.BUSY_TIMEOUT", 0.05)
    with open_light(folder) as store, closing(sqlite3.connect(folder / "store", isolation_level=None)) as other:
        store.append(Append("notes", "milk"))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError):
            store.append(Append("notes", "tea"))
        other.execute("ROLLBACK")

        assert store.append(Append("notes", "coffee")).id == 2
        assert contents(store) == ["milk", "coffee"]


# -- callers


@pytest.mark.parametrize(
    "text", ["'; DROP TABLE memory; --", '" OR 1=1', "%", "_", "NEAR(", "a AND", "memory_text:x", "*", "\0", "]]", "\\"]
)
def test_hostile_texts_are_stored_and_found_as_text(folder: Path, text: str) -> None:
    with open_light(folder) as store:
        store.append(Append("notes", f"a {text} b", (text,), {text: text}, text))
        store.append(Append("other", f"a {text} b"))
        store.maintain()
        for found in (
            store.query(Query("notes", text)),
            store.query(Query("notes", f"a {text} b")),
            store.query(Query("notes", tag_prefix=text)),
            store.search("notes", f"b {text}"),
        ):
            assert [(record.id, record.tags, record.meta) for record in found] == [(1, (text,), {text: text})]
        assert store.query(Query("notes", f"x{text}")) == []
        assert store.get_config(text, "mode").value is None
        store.set_config(text, ConfigSet("mode", text))
        assert store.read_config(text).values == {"mode": text}
        assert store.read_config("notes").values == {}


@pytest.mark.parametrize(
    "append",
    [
        Append("notes", "x" * 10_000_000),
        Append("notes", "x", ("tag",) * 1_000_000),
        Append("notes", "x", (), ["x" * 100_000]),
        Append("notes", "x", idem="k" * 300),
        Append("a/b", "x"),
    ],
    ids=["content", "tags", "meta", "idem", "namespace"],
)
def test_a_record_beyond_its_limits_is_refused_before_the_disk(folder: Path, append: Append) -> None:
    with open_light(folder) as store:
        for keep in (store.append, lambda append: store.append_nowait(append, print)):
            with pytest.raises(InvalidParams):
                keep(append)
        assert contents(store) == []


def test_times_and_limits_of_any_size_are_accepted(folder: Path) -> None:
    year_9999 = 253_402_300_799_000
    times = iter([year_9999, 0, 5])
    with light(folder / "store", DEFAULT_LIMITS, lambda: next(times)) as store:
        for content in ("far", "first", "later"):
            store.append(Append("notes", content))

        assert contents(store) == ["far", "first", "later"]
        assert len(store.query(Query("notes", since_ms=-(2**70), until_ms=2**70, limit=2**70))) == 3
        assert [record.content for record in store.query(Query("notes", since_ms=year_9999))] == ["far"]
        assert [record.content for record in store.query(Query("notes", until_ms=0))] == ["first"]
        assert store.query(Query("notes", since_ms=2**70)) == []
        assert store.forget("notes", up_to=-1) == 0
        assert store.forget("notes", up_to=2**70) == 3


def test_queries_that_never_pause_do_not_let_the_log_grow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_WAL_BYTES", 1 << 20)
    longest = 0
    with open_light(folder) as store:
        is_done = Event()

        def ask() -> None:
            while not is_done.is_set():
                store.query(Query("notes", "no such thing", limit=1_000))

        threads = [Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(200):
            store.append(Append("notes", f"{number} {'x' * 16_000}"))
            longest = max(longest, writer.wal_size(folder / "store"))
        is_done.set()
        for thread in threads:
            thread.join()

    assert longest < 2 << 20  # of more than 3 MiB of records


def test_one_slow_query_does_not_hold_up_the_others(folder: Path) -> None:
    with open_light(folder) as store:
        for _ in range(3_000):
            store.append_nowait(Append("notes", "x" * 1_000), lambda outcome: None)
        store.append(Append("notes", "milk"))
        slow: list[object] = []

        def ask() -> None:
            for _ in range(5):
                try:
                    slow.append(store.query(Query("notes", "y"), timeout=0.05))
                except QueryTimeout as error:
                    slow.append(error)

        thread = Thread(target=ask)
        thread.start()
        for number in range(50):
            assert store.append(Append("notes", str(number))).ok
            assert store.query(Query("notes", limit=1))[0].content == str(number)
        thread.join()
    assert len(slow) == 5
