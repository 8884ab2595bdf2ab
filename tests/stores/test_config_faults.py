"""Configuration under load: racing writers, late and returning subscribers. For every store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from tests.stores.store_factories import light

from becket.contract.config import ConfigChanged, ConfigSet
from becket.errors import Busy, InvalidParams
from becket.limits import DEFAULT_LIMITS, Limits
from becket.stores.in_memory import InMemoryStore
from becket.stores.store import Store, now_ms


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, folder: Path) -> Iterator[Store]:
    limits = Limits(config_log=400, call_depth=4)
    store: Store = InMemoryStore(limits) if request.param == "memory" else light(folder / "store", limits, now_ms)
    yield store
    store.close()


def count_up(store: Store, times: int) -> None:
    for _ in range(times):
        while True:
            before = store.get_config("notes", "n")
            if store.set_config("notes", ConfigSet("n", str(int(before.value or 0) + 1), before.revision)).ok:
                break


def run_together(*targets: object) -> None:
    threads = [Thread(target=target) for target in targets]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_two_writers_of_one_key_lose_no_update_when_they_compare(store: Store) -> None:
    run_together(lambda: count_up(store, 100), lambda: count_up(store, 100))

    assert store.get_config("notes", "n").value == "200"


def test_without_comparing_the_last_writer_wins(store: Store) -> None:
    first = store.get_config("notes", "mode")
    store.set_config("notes", ConfigSet("mode", "dark"))
    last = store.set_config("notes", ConfigSet("mode", "light"))

    assert store.get_config("notes", "mode").value == "light"
    assert not store.set_config("notes", ConfigSet("mode", "late", first.revision)).ok
    assert store.get_config("notes", "mode").revision == last.revision


def follow(store: Store, revision: int, values: dict[str, str | None], changes: list[ConfigChanged]) -> int:
    """Applies what came after a revision, as a subscriber does, and returns how far that is."""
    for change in store.read_changes("notes", revision) or []:
        assert change.revision > revision
        values[change.key] = change.value
        changes.append(change)
        revision = change.revision
    return revision


def test_a_subscriber_that_comes_during_writes_gets_every_change_once(store: Store) -> None:
    is_started, is_done = Event(), Event()

    def write() -> None:
        for number in range(300):
            store.set_config("notes", ConfigSet(f"k{number % 7}", str(number)))
            if number == 20:
                is_started.set()
        is_done.set()

    received: list[str] = []
    end = store.watch(received.append)
    thread = Thread(target=write)
    thread.start()
    assert is_started.wait(60)
    snapshot = store.read_config("notes")
    values: dict[str, str | None] = {**snapshot.values}
    changes: list[ConfigChanged] = []
    revision = snapshot.revision
    while not is_done.is_set():
        revision = follow(store, revision, values, changes)
    follow(store, revision, values, changes)
    thread.join()
    end()

    assert [change.revision for change in changes] == [*range(snapshot.revision + 1, 301)]
    assert values == store.read_config("notes").values
    assert len(received) == 300


def test_a_subscriber_that_comes_back_continues_where_it_was_or_begins_anew(store: Store) -> None:
    seen = store.set_config("notes", ConfigSet("mode", "0")).revision or 0
    for number in range(1, 401):
        store.set_config("notes", ConfigSet("mode", str(number)))

    later = store.read_changes("notes", seen)
    assert later is not None
    assert [change.value for change in later] == [str(number) for number in range(1, 401)]
    store.set_config("notes", ConfigSet("mode", "401"))
    assert store.read_changes("notes", seen) is None
    assert store.read_config("notes").values == {"mode": "401"}


def test_a_value_that_is_refused_leaves_the_old_one_and_notifies_no_subscriber(store: Store) -> None:
    saved = store.set_config("notes", ConfigSet("mode", "dark"))
    received: list[str] = []
    store.watch(received.append)

    with pytest.raises(InvalidParams):
        store.set_config("notes", ConfigSet("mode", "x" * (DEFAULT_LIMITS.config_value + 1)))

    assert store.get_config("notes", "mode").value == "dark"
    assert store.read_changes("notes", saved.revision or 0) == []
    assert received == []


def test_a_watcher_that_makes_a_change_for_each_change_is_stopped(store: Store) -> None:
    refusals: list[Busy] = []

    def echo(extension: str) -> None:
        try:
            store.set_config(extension, ConfigSet("echo", str(len(refusals))))
        except Busy as refusal:
            refusals.append(refusal)

    store.watch(echo)
    store.set_config("notes", ConfigSet("mode", "dark"))

    assert len(refusals) == 1
    assert store.read_config("notes").revision == 4


DIES = """
import os, signal, sys
from pathlib import Path
from becket.contract.config import ConfigSet
from tests.stores.store_factories import light
from becket.limits import DEFAULT_LIMITS
from becket.stores.store import now_ms
store = light(Path(sys.argv[1]), DEFAULT_LIMITS, now_ms)
store.set_config("notes", ConfigSet("mode", "dark"))
store.watch(lambda extension: os.kill(os.getpid(), signal.SIGKILL))
store.set_config("notes", ConfigSet("mode", "light"))
"""


@pytest.mark.process
def test_a_change_that_was_not_delivered_before_the_end_is_delivered_after_it(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", DIES, str(folder / "store")], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL

    with light(folder / "store", DEFAULT_LIMITS, now_ms) as store:
        assert store.read_changes("notes", 1) == [ConfigChanged("mode", "light", 2)]
        assert store.read_config("notes").values == {"mode": "light"}
