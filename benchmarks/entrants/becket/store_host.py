"""What becket's store in a file keeps when it is killed or cut off, and how fast it is: one experiment a run."""

from __future__ import annotations

import asyncio
import logging
import os
import pydoc_data.topics
import random
import resource
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from becket.contract.memory import Append, Appended, Query
from becket.errors import BecketError, NotSupported, QueryTimeout
from becket.host import connect_extension
from becket.limits import Limits
from becket.stores.sqlite import SqliteStore
from becket.stores.sqlite.writer import MAX_INDEX_BACKLOG
from becket.testing.checks.persistence import CrashReport, check_kills, check_power_cuts
from benchmarks.hosting.measurement import busy_seconds, load_settings, print_figures, waited_seconds

Values = dict[str, list[float]]
"""Each quantity that an experiment measures: its samples."""

LIMITS = Limits(memory_records=10**8, memory_bytes=10**12, store_queue=10**7)
RECORD = 200  # characters
PIECES = (3, 8)  # words in a row that a record takes from a page

settings = load_settings()
chance = random.Random(1)
words = " ".join(pydoc_data.topics.topics.values()).split()  # half a megabyte of English that every Python has


def some_text() -> str:
    parts: list[str] = []
    while sum(map(len, parts)) < RECORD:
        start = chance.randrange(len(words) - PIECES[1])
        parts += words[start : start + chance.randint(*PIECES)]
    return " ".join(parts)[:RECORD]


@contextmanager
def opened() -> Iterator[SqliteStore]:
    with TemporaryDirectory() as folder, SqliteStore(Path(folder, "store"), LIMITS) as store:
        yield store


def milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


# -- what is lost


def kills() -> Values:
    """Programs that are killed while they append, and what they had acknowledged."""
    toll = CrashReport()
    with TemporaryDirectory() as folder:
        check_kills(SqliteStore, Path(folder, "store"), chance, settings["kills"], toll)
    return {"kills_lost": [float(toll.lost)] * toll.crashes, "kills_kept": [float(toll.acknowledged)]}


def cuts() -> Values:
    """Simulated power cuts, at any moment of one program that appends."""
    with TemporaryDirectory() as folder:
        toll = check_power_cuts(SqliteStore, Path(folder), cuts=settings["cuts"])
    return {"cuts_lost": [float(toll.lost)] * toll.crashes, "cuts_kept": [float(toll.acknowledged)]}


# -- how fast it stores


def syncs() -> Values:
    """The time of the disk to sync a page: no store is faster with one record at a time."""
    with TemporaryDirectory() as folder:
        file = os.open(Path(folder, "file"), os.O_RDWR | os.O_CREAT)
        os.pwrite(file, bytes(1 << 20), 0)
        os.fsync(file)

        def sync() -> None:
            os.pwrite(file, os.urandom(4096), chance.randrange(200) * 4096)
            os.fdatasync(file)

        took = [milliseconds(sync) for _ in range(100)]
        os.close(file)
    return {"sync": took}


def appends() -> Values:
    """Callers on an event loop, each with one record after the other."""
    values: Values = {}
    for callers, count in ((1, 300), (64, 64 * 100), (256, 256 * 60)):
        texts = [some_text() for _ in range(count)]
        rates: list[float] = []
        took: list[float] = []
        for _ in range(settings["repeats"]):
            with opened() as store:
                began = time.perf_counter()
                took += asyncio.run(append_all(store, iter(texts), callers))
                rates.append(count / (time.perf_counter() - began))
        values[f"appends_{callers}"] = rates
        values[f"append_{callers}"] = took
    return values


class Responses:
    """Brings responses from the store's thread to the loop: all that come together with one call."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._come: deque[tuple[asyncio.Future[Appended], Appended | BecketError]] = deque()

    def expect(self) -> tuple[asyncio.Future[Appended], Callable[[Appended | BecketError], None]]:
        future: asyncio.Future[Appended] = self._loop.create_future()

        def done(outcome: Appended | BecketError) -> None:
            self._come.append((future, outcome))
            if len(self._come) == 1:
                self._loop.call_soon_threadsafe(self._deliver)

        return future, done

    def _deliver(self) -> None:
        while self._come:
            future, outcome = self._come.popleft()
            if isinstance(outcome, BecketError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


async def append_all(store: SqliteStore, texts: Iterator[str], callers: int) -> list[float]:
    responses = Responses()
    took: list[float] = []

    async def call() -> None:
        for text in texts:
            began = time.perf_counter()
            kept, done = responses.expect()
            store.append_nowait(Append("notes", text), done)
            await kept
            took.append((time.perf_counter() - began) * 1e3)

    await asyncio.gather(*(call() for _ in range(callers)))
    return took


def children() -> Values:
    """Extensions that append through their hosts, each with many calls at once: together, and one alone."""
    requested = {"count": settings["appends"] * 2, "callers": 64}
    return {
        f"children_{count}": [asyncio.run(append_from(count, "append", requested)) for _ in range(settings["repeats"])]
        for count in (1, 4)
    }


def batches() -> Values:
    """The same with many calls in each message."""
    requested = {"count": settings["appends"] * 5}
    values: Values = {"batches_1": [], "batches_4": [], "batches_share": []}
    for _ in range(settings["repeats"]):  # in turn, since others may use the machine
        for count in (1, 4):
            values[f"batches_{count}"].append(asyncio.run(append_from(count, "append_batches", requested)))
        values["batches_share"].append(100 * values["batches_4"][-1] / rate_of_callers(4 * requested["count"]))
    return values


def rate_of_callers(count: int) -> float:
    """Returns how many records a second 64 callers on a loop store, of so many as the extensions append."""
    with opened() as store:
        began = time.perf_counter()
        asyncio.run(append_all(store, iter(["x" * RECORD] * count), 64))
        return count / (time.perf_counter() - began)


async def append_from(count: int, tool: str, requested: dict[str, int]) -> float:
    """Returns how many records a second so many extensions store, by a tool of theirs."""
    program = [sys.executable, str(Path(__file__).with_name("append_child.py"))]
    variables = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    grants = ["memory.write", "tools.register"]
    with opened() as store:
        async with AsyncExitStack() as stack:
            extensions = [
                await stack.enter_async_context(
                    connect_extension(program, id=f"appender{number}", env=variables, grants=grants, store=store)
                )
                for number in range(count)
            ]
            rates = await asyncio.gather(*(one.call_tool_json(tool, requested) for one in extensions))
    return float(sum(rates))


# -- with many records


def large() -> Values:
    with opened() as store:
        lag = fill(store, settings["records"])
        values = queries(store)
        values["lag"] = lag
        fall_behind(store)
        values["behind"] = values_of_newest(store)
        # One after the other, while the index follows behind.
        values["append_large"] = [
            milliseconds(lambda text=text: store.append(Append("notes", text)))
            for text in [some_text() for _ in range(settings["appends"])]
        ]
        values["open"] = [open_killed(store.path) for _ in range(3)]
        values["verify"] = [milliseconds(store.verify)]
    return values


def open_killed(path: Path) -> float:
    """Returns what it takes to open a store whose owner was killed: a copy of one that is open."""
    with TemporaryDirectory() as folder:
        for part in ("", "-wal", ".mark"):
            shutil.copy(f"{path}{part}", folder)
        copy = Path(folder, path.name)
        copy.with_name(f"{path.name}.lock").write_text("999999999\n", encoding="ascii")
        opened: list[SqliteStore] = []
        took = milliseconds(lambda: opened.append(SqliteStore(copy, LIMITS, ballast=0)))
        if opened[0].damage:
            raise SystemExit(f"Error: {opened[0].damage}")
        opened[0].close()
    return took


def fill(store: SqliteStore, count: int) -> list[float]:
    """Appends so many records, half of them to one extension; returns how far the index was behind."""
    are_kept = Event()
    behind: list[float] = []

    def note_lag() -> None:
        behind.append(store.index_backlog)

    for number in range(count):
        name = "notes" if number % 2 else f"other{number % 10}"
        looks = number % 100 == 0
        store.append_nowait(Append(name, some_text()), lambda outcome, looks=looks: looks and note_lag())
        if number % 10_000 == 0:
            store.append(Append("notes", some_text()))  # not faster than they are stored
    store.append_nowait(Append("notes", "last"), lambda outcome: are_kept.set())
    are_kept.wait()
    store.maintain()
    return behind


def fall_behind(store: SqliteStore) -> None:
    """Appends so much at once that the index must follow from now on, however fast more comes."""
    for _ in range(MAX_INDEX_BACKLOG):
        store.append_nowait(Append("notes", some_text()), lambda outcome: None)
    store.append(Append("notes", some_text()))


def some_words() -> list[str]:
    known = [word for word in dict.fromkeys(word.lower() for word in words) if word.isalpha() and len(word) > 3]
    return chance.sample(known[:2_000], settings["queries"])


def values_of_newest(store: SqliteStore) -> list[float]:
    return [milliseconds(lambda word=word: store.query(Query("notes", word))) for word in some_words()]


def queries(store: SqliteStore) -> Values:
    some = some_words()
    pairs = [f"{one} {other}" for one, other in zip(some, islice(some, 1, None), strict=False)]
    return {
        "recent": [milliseconds(lambda: store.query(Query("notes"))) for _ in some],
        "newest": values_of_newest(store),
        "ranked": [milliseconds(lambda text=text: store.search("notes", text)) for text in [*some, *pairs]],
        "pairs": [milliseconds(lambda text=text: store.search("notes", text)) for text in pairs],
        "absent": [milliseconds(lambda: store.query(Query("notes", "#@"))) for _ in range(20)],
        "overrun": [overrun(store, 0.005) for _ in range(20)],
    }


def overrun(store: SqliteStore, timeout: float) -> float:
    """Returns by how much a query of everything is later than it may be."""

    def ask() -> None:
        try:
            store.query(Query("notes", tag_prefix="#@"), timeout=timeout)
        except QueryTimeout:
            pass

    return max(0.0, milliseconds(ask) - timeout * 1e3)


EXPERIMENTS: dict[str, Callable[[], Values]] = {
    "kills": kills,
    "cuts": cuts,
    "syncs": syncs,
    "appends": appends,
    "children": children,
    "batches": batches,
    "large": large,
}


def used_seconds() -> float:
    """Returns the processor time of this program and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main() -> None:
    logging.disable()
    busy, waited, used, began = busy_seconds(), waited_seconds("self"), used_seconds(), time.perf_counter()
    try:
        values = EXPERIMENTS[settings["experiment"]]()
    except NotSupported as error:
        raise SystemExit(f"Error: {error}") from None
    seconds = time.perf_counter() - began
    figures: dict[str, Any] = {
        "values": values,
        "foreign": max(0.0, busy_seconds() - busy - (used_seconds() - used)) / seconds,
        "waited": (waited_seconds("self") - waited) / seconds,
    }
    print_figures(figures)


main()
