"""`check_store`: verifies the contract of a store.

It uses only the public interface. Each rule is checked with the smallest sequence that can break it; then long
random sequences are applied to the store and to a naive model, and the results must be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from threading import Barrier, Thread

from becket.contract.config import ConfigSet
from becket.contract.memory import Append, Query
from becket.stores.store import Store, StoreFactory
from becket.testing.checks.assertions import expect, expect_equal, expect_error
from becket.testing.checks.config_rules import CONFIG_RULES
from becket.testing.checks.memory_rules import MEMORY_RULES
from becket.testing.checks.opened_store import ROOMY, Outcomes, fail, fill, opened
from becket.testing.checks.store_model import SMALL_LIMITS, ManualClock, StoreComparison

__all__ = ["check_store", "run_check"]

ROUNDS = 20  # random sequences
STEPS = 150  # operations in each
THREADS = 4
TURNS = 50  # operations of each thread


def check_store(factory: StoreFactory, *, seed: int = 0) -> None:
    """Checks that the stores of `factory` keep their contract; raises with the rule that is broken.

    Each store must be new and empty. Another `seed` produces other sequences.

    Raises:
        AssertionError: with a sentence that says what is wrong.
    """
    for check in _RULES:
        run_check(check.__name__.removeprefix("_check_").replace("_", " "), check, factory)
    for number in range(ROUNDS):
        which = f"seed {seed}, conversation {number}"
        clock = ManualClock()
        conversation = StoreComparison(partial(factory, SMALL_LIMITS, clock), clock, Random(f"{seed}/{number}"), which)
        run_check(which, conversation.run, STEPS)


def run_check(what: str, check: Callable[..., None], *arguments: object) -> None:
    """Runs one check; turns an unexpected exception of the store into an AssertionError."""
    try:
        check(*arguments)
    except AssertionError:
        raise
    except Exception as problem:
        raise AssertionError(f"{what}: the store raised {problem!r} instead of returning a result") from problem


# -- rules for the store as a whole


def _check_threads(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        failures: list[BaseException] = []
        together = Barrier(THREADS)

        def work(name: int) -> None:
            try:
                together.wait(10)
                handed = Outcomes(TURNS)
                for turn in range(TURNS):
                    store.append(Append("notes", f"{name}/{turn}"))
                    store.append_nowait(Append("other", f"{name}/{turn}"), handed)
                    while not _count_up(store):
                        pass
                handed.wait()
            except BaseException as failure:
                failures.append(failure)

        threads = [Thread(target=work, args=(name,)) for name in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise AssertionError(f"used by {THREADS} threads at once, the store raised {failures[0]!r}") from failures[
                0
            ]
        expect_equal(
            store.get_config("notes", "n").value, str(THREADS * TURNS), "set_config: updates were lost between threads"
        )
        for name in range(THREADS):
            mine = [f"{name}/{turn}" for turn in range(TURNS - 1, -1, -1)]
            for namespace, way in {"notes": "append", "other": "append_nowait"}.items():
                found = store.query(Query(namespace, f"{name}/", limit=60))
                expect_equal([record.content for record in found], mine, f"{way}: the records of one thread")


def _count_up(store: Store) -> bool:
    before = store.get_config("notes", "n")
    return store.set_config("notes", ConfigSet("n", str(int(before.value or 0) + 1), before.revision)).ok


def _check_verifying(factory: StoreFactory) -> None:
    with opened(factory, SMALL_LIMITS) as (store, time):
        expect_equal(store.verify(), [], "verify: of an empty store")
        fill(store, "Milk", "\0 \ufffe \uffff", "", "x")
        time.now = 5  # backwards
        last = store.append(Append("notes", "é", ("a",), {"b": 1}, "k"))
        for value in map(str, range(SMALL_LIMITS.config_log + 2)):
            store.set_config("notes", ConfigSet("mode", value))
        store.remove_config("notes", "mode")
        expect_equal(store.verify(), [], "verify: of a store to which nothing has happened")
        store.forget("notes", up_to=(last.id or 0) - 2)
        expect_equal(store.verify(), [], "verify: after records were forgotten")


def _check_closing(factory: StoreFactory) -> None:
    store = factory(ROOMY, ManualClock())
    end = store.watch(fail)
    handed = Outcomes(TURNS)
    for turn in range(TURNS):
        store.append_nowait(Append("notes", str(turn)), handed)
    store.close()
    expect(handed.is_complete, "close: what was handed over was not kept before it returned")
    store.close()
    end()
    calls: list[tuple[Callable[..., object], tuple[object, ...]]] = [
        (store.append, (Append("notes", "text"),)),
        (store.append_nowait, (Append("notes", "text"), fail)),
        (store.query, (Query("notes"),)),
        (store.search, ("notes", "text")),
        (store.forget, ("notes",)),
        (store.get_config, ("notes", "a")),
        (store.set_config, ("notes", ConfigSet("a", "1"))),
        (store.remove_config, ("notes", "a")),
        (store.read_config, ("notes",)),
        (store.read_changes, ("notes", 0)),
        (store.watch, (fail,)),
        (store.verify, ()),
    ]
    for call, arguments in calls:
        expect_error(Exception, f"{call.__name__} of a closed store", call, *arguments)


_RULES = (
    *MEMORY_RULES,
    *CONFIG_RULES,
    _check_threads,
    _check_verifying,
    _check_closing,
)
