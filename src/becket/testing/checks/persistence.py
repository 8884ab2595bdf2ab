"""`check_persistent_store` and `check_power_cuts`: durability across restarts, kills and power cuts.

Besides the contract of every store: acknowledged data is there after reopening, nothing is there twice, and one
process owns the store at a time.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from itertools import count, islice
from pathlib import Path
from random import Random

from msgspec import Struct

from becket.contract.config import ConfigSet, ConfigValue
from becket.contract.memory import Append, Query
from becket.errors import QuotaExceeded
from becket.limits import Limits
from becket.stores.store import Clock, Store, StoreOpener, now_ms
from becket.testing.checks.assertions import expect, expect_equal, expect_error
from becket.testing.checks.power_cuts import record_disk
from becket.testing.checks.store import check_store, run_check
from becket.testing.checks.store_model import SMALL_LIMITS, ManualClock, StoreComparison
from becket.testing.checks.store_writer import THREADS, build_writer_command, namespace_of

__all__ = ["CrashReport", "check_persistent_store", "check_power_cuts"]

ROUNDS = 5  # random sequences
STEPS = 100  # operations in each
MANY = 1_000_000  # appends: more than a program can make before it is killed
EARLY = 120  # acknowledgements after which a program is killed at the latest
APPENDS = 100  # by each thread before the power cut
FIRST = 50  # steps in which the store is created: a quarter of all cuts fall into them
ALL = Limits().memory_page


class CrashReport(Struct):
    """The number of crashes, of acknowledged changes, and of those lost."""

    crashes: int = 0
    acknowledged: int = 0
    lost: int = 0


def check_persistent_store(open_store: StoreOpener, folder: Path, *, seed: int = 0, kills: int = 5) -> CrashReport:
    """Checks a persistent store in this folder: its contract, reopening, and `kills` kills.

    `open_store` must be a class or a function of a module, so that other processes can import it.

    Raises:
        AssertionError: with a sentence that says what is wrong.
    """
    paths = (folder / f"store{number}" for number in count())

    def make(limits: Limits, clock: Clock) -> Store:
        return open_store(next(paths), limits, clock)

    check_store(make, seed=seed)
    run_check("opening again", check_reopen, open_store, next(paths))
    run_check("one owner", check_single_owner, open_store, next(paths))
    for number in range(ROUNDS):
        which = f"seed {seed}, lasting conversation {number}"
        clock, random = ManualClock(), Random(f"{seed}/{number}")
        opened = partial(open_store, next(paths), SMALL_LIMITS, clock)
        run_check(which, StoreComparison(opened, clock, random, which, lasts=True).run, STEPS)
    report = CrashReport()
    run_check("killing", check_kills, open_store, next(paths), Random(seed), kills, report)
    return report


# -- closed


def check_reopen(open_store: StoreOpener, path: Path) -> None:
    clock, limits = ManualClock(), SMALL_LIMITS.but(memory_records=4)

    with closing(open_store(path, limits, clock)) as store:
        first = store.append(Append("notes", "Milk", ("food",), {"a": [1, "é"]}, "k"))
        clock.now = 10  # back
        store.append(Append("notes", "tea"))
        last = store.append(Append("notes", "forgotten"))
        store.forget("other")
        store.set_config("notes", ConfigSet("mode", "dark"))
        saved = store.set_config("notes", ConfigSet("mode", "light"))
        store.remove_config("notes", "mode", if_revision=0)
        records, changes = store.query(Query("notes")), store.read_changes("notes", 0)

    with closing(open_store(path, limits, clock)) as store:
        expect_equal(store.query(Query("notes")), records, "opened again: the records")
        expect_equal(len(store.query(Query("notes", "milk", until_ms=2_000))), 1, "opened again: what a query finds")
        expect_equal(
            store.append(Append("notes", "other", idem="k")), first, "opened again: the result of a repeated `idem`"
        )
        expect_equal(store.get_config("notes", "mode"), ConfigValue("light", saved.revision), "opened again: a value")
        expect_equal(store.read_changes("notes", 0), changes, "opened again: the changes")
        expect_equal(store.forget("notes", up_to=last.id), 3, "opened again: how many records are forgotten")

    with closing(open_store(path, limits, clock)) as store:
        expect_equal(store.query(Query("notes")), [], "opened again: forgotten records")
        new, later = store.append(Append("notes", "new")), store.set_config("other", ConfigSet("mode", "dark"))
        expect((new.id or 0) > (last.id or 0), f"opened again: the id {new.id}, after {last.id} was forgotten")
        expect_equal(
            (later.revision or 0) > (saved.revision or 0), True, "opened again: whether the next revision is larger"
        )
        for content in ("2", "3", "4"):
            store.append(Append("notes", content))

    with closing(open_store(path, limits, clock)) as store:
        expect_error(QuotaExceeded, "opened again: an append beyond the quota", store.append, Append("notes", "5"))


def check_single_owner(open_store: StoreOpener, path: Path) -> None:
    with closing(open_store(path, Limits(), now_ms)) as store:
        store.append(Append("notes", "milk"))
        expect_error(Exception, "a second opening of an open store", open_store, path, Limits(), now_ms)
        expect_equal(len(store.query(Query("notes"))), 1, "an open store after a second opening was refused")
        store.append(Append("notes", "tea"))
    with closing(open_store(path, Limits(), now_ms)) as store:
        expect_equal(len(store.query(Query("notes"))), 2, "a store that was opened again")


# -- killed


def check_kills(open_store: StoreOpener, path: Path, random: Random, kills: int, report: CrashReport) -> None:
    newest: dict[str, list[int | None]] = {}
    for number in range(kills):
        output = run_and_kill(build_writer_command(open_store, path, number, MANY), random.randint(1, EARLY))
        with closing(open_store(path, Limits(), now_ms)) as store:
            check_durable(store, number, output, report)
            expect_equal(store.verify(), [], f"what is reported lost or damaged after {number + 1} kills")
            for namespace, ids in newest.items():
                expect_equal(
                    newest_ids(store, namespace), ids, f"{namespace}: its newest record, after {number + 1} kills"
                )
            for thread in range(THREADS):
                namespace = namespace_of(number, thread)
                newest[namespace] = newest_ids(store, namespace)


def newest_ids(store: Store, namespace: str) -> list[int | None]:
    return [record.id for record in store.query(Query(namespace, limit=1))]


def run_and_kill(command: list[str], lines: int) -> list[str]:
    """Starts a program, kills it after `lines` lines of output, and returns all lines."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=build_child_env()) as child:
        assert child.stdout is not None
        try:
            output = [line.decode() for line in islice(child.stdout, lines)]
        finally:
            child.send_signal(signal.SIGKILL)
        output += [line.decode() for line in child.stdout]
    return output


def build_child_env() -> dict[str, str]:
    """Returns the variables with which a child process can import what this one can."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def check_durable(store: Store, round_number: int, output: Iterable[str], report: CrashReport) -> None:
    """Checks that everything acknowledged is there, once and in order, and at most one append more."""
    acknowledged: dict[str, list[int]] = {}
    for line in output:
        name, _, id = line.split()
        acknowledged.setdefault(name, []).append(int(id))
    report.crashes += 1
    for thread in range(THREADS):
        namespace = namespace_of(round_number, thread)
        check_namespace(store, namespace, acknowledged.get(namespace, []), report)
    revisions = acknowledged.get("config", [])
    value = store.get_config("notes", "n")
    report.acknowledged += len(revisions)
    report.lost += max(0, (revisions[-1] if revisions else 0) - (value.revision or 0))
    expect(
        (value.revision or 0) >= max(revisions, default=0),
        f"acknowledged revision {max(revisions, default=0)}, stored: {value}",
    )


def check_namespace(store: Store, namespace: str, ids: list[int], report: CrashReport) -> None:
    found = store.query(Query(namespace, limit=ALL))[::-1]
    stored = [record.id or 0 for record in found]
    report.acknowledged += len(ids)
    report.lost += len(set(ids) - set(stored))
    expect_equal(stored[: len(ids)], ids, f"{namespace}: the ids that were acknowledged")
    expect(len(stored) <= len(ids) + 1, f"{namespace}: {len(stored)} records, although {len(ids)} were acknowledged")
    numbers = [int(record.content.partition(" ")[0]) for record in found]
    expect_equal(numbers, [*range(len(found))], f"{namespace}: the records, in the order of the appends")
    if found:  # a caller without a result repeats the append
        again = store.append(Append(namespace, "again", idem=str(len(found) - 1)))
        expect_equal(again.id, stored[-1], f"{namespace}: the result of the last append, when it is repeated")


# -- power cuts


def check_power_cuts(open_store: StoreOpener, folder: Path, *, seed: int = 0, cuts: int = 50) -> CrashReport:
    """Checks that a store keeps what it acknowledged when the power fails, at `cuts` points of one recorded run.

    `open_store` must be a class or a function of a module, so that other processes can import it.

    Raises:
        AssertionError: with a sentence that says what is wrong.
        NotSupported: the writes of a process cannot be recorded here.
    """
    random, report = Random(seed), CrashReport()
    original = folder / "original"
    original.mkdir()
    recording = record_disk(
        build_writer_command(open_store, original / "store", 0, APPENDS), original, env=build_child_env()
    )
    for number in range(cuts):
        last = len(recording.steps)
        at = random.randint(0, last if number % 4 else min(last, FIRST))
        target = folder / f"cut{number}"
        output = recording.simulate_cut(at, random, target)
        run_check(
            f"seed {seed}, cut {number}, after step {at}", check_cut, open_store, target / "store", output, report
        )
        shutil.rmtree(target)
    return report


def check_cut(open_store: StoreOpener, path: Path, output: list[str], report: CrashReport) -> None:
    with closing(open_store(path, Limits(), now_ms)) as store:
        check_durable(store, 0, output, report)
        expect_equal(store.verify(), [], "what is reported lost or damaged")
