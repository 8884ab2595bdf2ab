"""The rules for the configuration in a store, each with the smallest sequence that can break it."""

from __future__ import annotations

from becket.contract.config import ConfigChanged, ConfigSaved, ConfigSet, ConfigValue
from becket.errors import Busy, InvalidParams, QuotaExceeded
from becket.stores.store import Snapshot, StoreFactory
from becket.testing.checks.assertions import expect, expect_equal, expect_error
from becket.testing.checks.opened_store import ROOMY, fail, opened
from becket.testing.checks.store_model import SMALL_LIMITS

__all__ = ["CONFIG_RULES"]


def _check_values(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        expect_equal(store.get_config("notes", "mode"), ConfigValue(None, 0), "get_config: a key without a value")
        first = store.set_config("notes", ConfigSet("mode", "é\n"))
        other = store.set_config("other", ConfigSet("mode", "theirs"))
        again = store.set_config("notes", ConfigSet(" mode ", ""))
        expect(first.ok and other.ok and again.ok, "set_config: the result is not ok")
        revisions = [saved.revision or 0 for saved in (first, other, again)]
        expect(0 < revisions[0] < revisions[1] < revisions[2], f"set_config: revisions do not grow: {revisions}")
        expect_equal(
            store.get_config("notes", "mode\t"), ConfigValue("", again.revision), "get_config: the value and revision"
        )
        expect_equal(
            store.get_config("other", "mode"), ConfigValue("theirs", other.revision), "get_config: another extension's"
        )


def _check_comparing(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        first = store.set_config("notes", ConfigSet("mode", "a", 0))
        expect(first.ok, "set_config: if_revision 0 where there is no value is not ok")
        expect_equal(
            store.set_config("notes", ConfigSet("mode", "b", 0)),
            ConfigSaved(False, first.revision),
            "set_config: if_revision 0 where there is a value",
        )
        second = store.set_config("notes", ConfigSet("mode", "b", first.revision))
        expect(second.ok, "set_config: if_revision with the key's own revision is not ok")
        expect_equal(
            store.set_config("notes", ConfigSet("mode", "c", first.revision)),
            ConfigSaved(False, second.revision),
            "set_config: if_revision of an older change",
        )
        expect_equal(
            store.set_config("notes", ConfigSet("new", "c", 7)),
            ConfigSaved(False, 0),
            "set_config: if_revision where there is no value",
        )
        expect_equal(store.read_config("notes").values, {"mode": "b"}, "set_config: a change that was not ok is there")
        expect_equal(
            len(store.read_changes("notes", 0) or []), 2, "read_changes: a change that was not ok is in the log"
        )


def _check_removing(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        expect_equal(
            store.remove_config("notes", "mode"), ConfigSaved(True, 0), "remove_config: where there is no value"
        )
        saved = store.set_config("notes", ConfigSet("mode", "a"))
        expect_equal(
            store.remove_config("notes", "mode", if_revision=0),
            ConfigSaved(False, saved.revision),
            "remove_config: if_revision 0 where there is a value",
        )
        removed = store.remove_config("notes", " mode", if_revision=saved.revision)
        expect(
            removed.ok and (removed.revision or 0) > (saved.revision or 0), f"remove_config: the result is {removed}"
        )
        expect_equal(
            store.get_config("notes", "mode"), ConfigValue(None, 0), "get_config: a key whose value was removed"
        )
        expect_equal(
            store.read_changes("notes", saved.revision or 0),
            [ConfigChanged("mode", None, removed.revision or 0)],
            "read_changes: a removed value",
        )


def _check_config_rules(factory: StoreFactory) -> None:
    with opened(factory, SMALL_LIMITS) as (store, _):
        for key in ("", " ", "a.b", "a/b", "a b", "a\x00b", "é" * 8 + "x"):
            expect_error(InvalidParams, f"get_config of the key {key!r}", store.get_config, "notes", key)
            expect_error(
                InvalidParams, f"set_config of the key {key!r}", store.set_config, "notes", ConfigSet(key, "a")
            )
            expect_error(InvalidParams, f"remove_config of the key {key!r}", store.remove_config, "notes", key)
        expect_error(
            InvalidParams,
            "set_config of too large a value",
            store.set_config,
            "notes",
            ConfigSet("mode", "é" * 16 + "x"),
        )
        store.set_config("notes", ConfigSet("é" * 8, "é" * 16))
        expect_equal(store.read_config("notes").values, {"é" * 8: "é" * 16}, "set_config: what was refused is there")


def _check_config_quotas(factory: StoreFactory) -> None:
    with opened(factory, SMALL_LIMITS.but(config_keys=2)) as (store, _):
        for key in ("a", "b"):
            store.set_config("notes", ConfigSet(key, "1"))
        expect_error(QuotaExceeded, "set_config of one key too many", store.set_config, "notes", ConfigSet("c", "1"))
        store.set_config("notes", ConfigSet("a", "2"))
        store.set_config("other", ConfigSet("c", "1"))
        store.remove_config("notes", "b")
        store.set_config("notes", ConfigSet("c", "1"))
        expect_equal(store.read_config("notes").values, {"a": "2", "c": "1"}, "set_config: the values within the share")
    with opened(factory, SMALL_LIMITS.but(config_bytes=10)) as (store, _):
        store.set_config("notes", ConfigSet("é", "é123456"))  # 2 + 8
        store.set_config("notes", ConfigSet("é", "12345678"))
        expect_error(
            QuotaExceeded, "set_config of one byte too many", store.set_config, "notes", ConfigSet("é", "123456789")
        )
        store.set_config("notes", ConfigSet("é", "1"))
        store.set_config("notes", ConfigSet("b", "123456"))
        expect_equal(
            store.read_config("notes").values, {"é": "1", "b": "123456"}, "set_config: the values within the share"
        )


def _check_snapshots(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        expect_equal(store.read_config("notes"), Snapshot(0, {}), "read_config: of an empty store")
        store.set_config("notes", ConfigSet("a", "1"))
        store.set_config("notes", ConfigSet("b", "2"))
        last = store.set_config("other", ConfigSet("c", "3")).revision or 0
        expect_equal(store.read_config("notes"), Snapshot(last, {"a": "1", "b": "2"}), "read_config: of all keys")
        expect_equal(store.read_config("notes", ("b", "c")), Snapshot(last, {"b": "2"}), "read_config: of some keys")
        expect_equal(store.read_config("notes", ()), Snapshot(last, {}), "read_config: of no keys")
        store.read_config("notes").values.clear()
        expect_equal(
            store.read_config("notes").values, {"a": "1", "b": "2"}, "read_config: a snapshot was changed from outside"
        )


def _check_changes(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        expect_equal(store.read_changes("notes", 0), [], "read_changes: of an empty store")
        made: list[ConfigChanged] = []
        for key, value in [("a", "1"), ("b", "2"), ("a", "3"), ("a", "3")]:
            made.append(ConfigChanged(key, value, store.set_config("notes", ConfigSet(key, value)).revision or 0))
            store.set_config("other", ConfigSet(key, "theirs"))
        for index, change in enumerate(made):
            expect_equal(
                store.read_changes("notes", change.revision), made[index + 1 :], "read_changes: after each revision"
            )
        expect_equal(store.read_changes("notes", 0, ("b", "c")), made[1:2], "read_changes: of some keys")
        expect_equal(store.read_changes("notes", 0, ()), [], "read_changes: of no keys")
        expect_equal(store.read_changes("unknown", 0), [], "read_changes: of an extension without any")
        last = store.read_config("notes").revision
        expect_equal(store.read_changes("notes", last), [], "read_changes: after the last revision")
        expect_equal(
            store.read_changes("notes", last + 1), None, "read_changes: after a revision that was never reached"
        )


def _check_forgetting(factory: StoreFactory) -> None:
    with opened(factory, SMALL_LIMITS.but(config_log=3)) as (store, _):
        revisions = [store.set_config("notes", ConfigSet("a", str(number))).revision or 0 for number in range(5)]
        for number in range(9):
            store.set_config("other", ConfigSet("a", str(number)))
        counts = [None, None, 3, 2, 1, 0]
        found = [store.read_changes("notes", since) for since in [0, *revisions]]
        expect_equal(
            [None if changes is None else len(changes) for changes in found],
            counts,
            "read_changes: where three are remembered",
        )
        expect_equal(
            store.read_changes("notes", 0, ("b",)), None, "read_changes: of keys whose changes may be forgotten"
        )


def _check_watching(factory: StoreFactory) -> None:
    with opened(factory) as (store, _):
        seen: list[tuple[str, str | None]] = []
        end = store.watch(lambda extension: seen.append((extension, store.get_config(extension, "a").value)))
        store.watch(fail)
        late: list[str] = []
        store.watch(late.append)
        saved = store.set_config("notes", ConfigSet("a", "1"))
        expect(saved.ok, "set_config: the result is not ok where a watcher failed")
        expect_equal(seen, [("notes", "1")], "watch: what a watcher finds when it is woken")
        store.set_config("notes", ConfigSet("a", "2", 0))
        expect_equal(len(seen), 1, "watch: a watcher was woken without a change")
        store.remove_config("other", "a")
        store.remove_config("notes", "a")
        expect_equal(seen[1:], [("notes", None)], "watch: what a watcher finds when a value was removed")
        end()
        end()
        store.set_config("notes", ConfigSet("a", "3"))
        expect_equal(len(seen), 2, "watch: a watcher was woken after it was ended")
        expect_equal(late, ["notes"] * 3, "watch: a watcher behind one that fails")


def _check_watchers_that_change(factory: StoreFactory) -> None:
    with opened(factory, ROOMY.but(call_depth=3)) as (store, _):
        problems: list[BaseException] = []

        def count_up(extension: str) -> None:
            value = int(store.get_config(extension, "n").value or 0)
            try:
                store.set_config(extension, ConfigSet("n", str(value + 1)))
            except BaseException as problem:
                problems.append(problem)

        store.watch(count_up)
        store.set_config("notes", ConfigSet("n", "0"))
        expect_equal(
            [type(problem) for problem in problems], [Busy], "watch: a watcher that makes a change for each change"
        )
        expect_equal(
            store.get_config("notes", "n").value,
            "2",
            "watch: how far one counts, where three changes may be within each other",
        )
        store.set_config("notes", ConfigSet("n", "0"))
        expect_equal(len(problems), 2, "watch: the same once more")


CONFIG_RULES = (
    _check_values,
    _check_comparing,
    _check_removing,
    _check_config_rules,
    _check_config_quotas,
    _check_snapshots,
    _check_changes,
    _check_forgetting,
    _check_watching,
    _check_watchers_that_change,
)
