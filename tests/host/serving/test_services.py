"""Memory and configuration services: namespaced, validated, stored, with change notifications."""

from __future__ import annotations

import errno
import threading
from typing import Any

import anyio
import pytest
from tests.host.stand_ins import hosted, played
from tests.peer.scripted import request, settled

from becket import Limits, Meaning, Peer, RemoteError
from becket.contract.config import ConfigChanged, ConfigSet
from becket.contract.memory import Append, Query, Record, Records
from becket.errors import ERROR_CODES
from becket.stores.in_memory import InMemoryStore
from becket.stores.store import AppendCallback

pytestmark = pytest.mark.loops


class ThreadedStore:
    """A store that may wait for a disk, as the host sees it; it records the threads that use it."""

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008
        self.inner = InMemoryStore(limits)
        self.threads: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        def use(*arguments: Any, **options: Any) -> Any:
            self.threads.add(threading.get_ident())
            return getattr(self.inner, name)(*arguments, **options)

        return use


STORES = [InMemoryStore, ThreadedStore]


async def refused(peer: Peer, method: str, params: object) -> RemoteError:
    with pytest.raises(RemoteError) as caught:
        await peer.call(method, params)
    return caught.value


# -- memory


@pytest.mark.parametrize("store", STORES)
async def test_an_appended_record_is_found_again(store: Any) -> None:
    async with hosted(store=store()) as (_, child):
        first = await child.call("memory.append", {"namespace": "notes", "content": "Milk", "tags": ["shop"]})
        await child.call("memory.append", {"namespace": "notes", "content": "bread", "meta": {"a": [1]}})
        assert first["ok"] is True
        assert first["timestamp_ms"] > 0
        assert first["id"] == 1
        found = await child.call("memory.query", {"namespace": "notes"})
        assert [record["content"] for record in found["records"]] == ["bread", "Milk"]
        assert found["records"][0]["meta"] == {"a": [1]}
        assert "meta" not in found["records"][1]
        found = await child.call("memory.query", {"namespace": "notes", "content_contains": "MILK", "limit": 1})
        assert [record["tags"] for record in found["records"]] == [["shop"]]


async def test_records_that_do_not_fit_in_one_message_are_left_out_and_this_is_reported() -> None:
    limits = Limits(frame=200_000)
    async with hosted(limits=limits) as (_, child):
        for number in range(20):
            await child.call("memory.append", {"namespace": "notes", "content": f"{number}" + "ü" * 8_000})
        first = await child.call("memory.query", {"namespace": "notes"})
        small = await child.call("memory.query", {"namespace": "notes", "limit": 3})
    assert first["more"] is True
    assert [record["content"][:2] for record in first["records"]][:2] == ["19", "18"]
    assert 3 < len(first["records"]) < 20
    assert "more" not in small


async def test_queries_run_a_few_at_once_and_only_while_their_results_are_read() -> None:
    store = CountsQueries()
    async with played(store=store, limits=Limits(send_high=1_000)) as (_, script):
        script.queued = 1_001
        script.send(*(request(id, "memory.query", {"namespace": "notes"}) for id in range(10)))
        await settled()
        assert store.begun == 0
        script.make_room()
        for _ in range(10):
            assert (await script.receive())["result"] == {"records": []}
    assert (store.begun, store.most) == (10, 2)


class CountsQueries(ThreadedStore):
    """Counts the queries, and how many of them ran at once: each lets another one begin if it can."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = self.most = self._running = 0
        self._turn = threading.Condition()

    def query_page(self, query: Query, most_bytes: int) -> Records:
        with self._turn:
            self.begun += 1
            self._running += 1
            self.most = max(self.most, self._running)
            self._turn.notify_all()
            assert self._turn.wait_for(lambda: self._running == 2 or self.begun == 10, 5)
        found = self.inner.query_page(query, most_bytes)
        with self._turn:
            self._running -= 1
        return found


async def test_queries_of_an_extension_that_does_not_read_are_busy_in_the_end() -> None:
    async with played(store=ThreadedStore(), limits=Limits(send_high=1_000, call_timeout=0.01)) as (_, script):
        script.queued = 1_001
        script.send(request(1, "memory.query", {"namespace": "notes"}))
        assert (await script.receive())["error"]["code"] == ERROR_CODES[Meaning.BUSY]


async def test_a_single_record_is_returned_however_large_its_meta_is() -> None:
    async with hosted() as (_, child):
        for letter in "ab":
            await child.call("memory.append", {"namespace": "notes", "content": letter, "meta": ["x" * 50_000]})
        found = await child.call("memory.query", {"namespace": "notes"})
    assert [record["content"] for record in found["records"]] == ["b", "a"]


async def test_the_same_append_twice_is_one() -> None:
    async with hosted() as (_, child):
        params = {"namespace": "notes", "content": "x", "idem": "k"}
        first = await child.call("memory.append", params)
        assert await child.call("memory.append", params) == first
        assert len((await child.call("memory.query", {"namespace": "notes"}))["records"]) == 1


@pytest.mark.parametrize(
    ("method", "params", "problems"),
    [
        ("memory.append", {"namespace": "notes"}, {"/content"}),
        ("memory.append", {"content": "x"}, {"/namespace"}),
        ("memory.append", {"namespace": "notes", "content": "x", "tags": "shop"}, {"/tags"}),
        ("memory.append", {"namespace": "notes", "content": "x" * 20_000}, {"/content"}),
        ("memory.append", {"namespace": "notes", "content": "x", "tags": ["t"] * 65}, {"/tags"}),
        ("memory.query", {}, {"/namespace"}),
        ("memory.query", {"namespace": "notes", "limit": -1}, {"/limit"}),
        ("config.get", {}, {"/key"}),
        ("config.get", {"key": "a.b"}, {"/key"}),
        ("config.set", {"key": "", "value": "x"}, {"/key"}),
        ("config.set", {"key": "a", "value": 5}, {"/value"}),
        ("config.subscribe", {"keys": ["a/b"]}, {"/key"}),
    ],
)
async def test_a_record_that_breaks_the_rules_is_refused_with_pointers(
    method: str, params: dict[str, Any], problems: set[str]
) -> None:
    async with hosted() as (_, child):
        error = await refused(child, method, params)
        assert error.code == -32602
        assert isinstance(error.data, dict)
        assert {problem["pointer"] for problem in error.data["problems"]} == problems


@pytest.mark.parametrize("store", STORES)
async def test_an_exhausted_quota_is_reported(store: Any) -> None:
    limits = Limits(memory_records=1)
    async with hosted(store=store(limits)) as (_, child):
        params = {"namespace": "notes", "content": "x"}
        await child.call("memory.append", params)
        error = await refused(child, "memory.append", params)
        assert error.meaning is Meaning.QUOTA


@pytest.mark.parametrize(
    ("failure", "meaning"),
    [
        (OSError(errno.ENOSPC, "No space left on /home/somebody"), Meaning.DISK_FULL),
        (OSError(errno.EIO, "/home/somebody"), Meaning.INTERNAL),
        (ZeroDivisionError("/home/somebody"), Meaning.INTERNAL),
    ],
)
async def test_a_store_that_fails_sends_an_incident_and_nothing_more(
    failure: Exception, meaning: Meaning, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(ThreadedStore):
        def append_nowait(self, append: Append, done: AppendCallback) -> None:
            raise failure

    async with hosted(store=Broken()) as (_, child):
        error = await refused(child, "memory.append", {"namespace": "notes", "content": "x"})
    assert error.meaning is meaning
    assert "somebody" not in error.message
    assert isinstance(error.data, dict)
    incident = error.data["incident"]
    assert incident in error.message
    (record,) = [record for record in caplog.records if incident in record.getMessage()]
    assert record.exc_info is not None
    assert record.exc_info[1] is failure


async def test_a_store_that_may_wait_for_a_disk_is_used_in_threads() -> None:
    store = ThreadedStore()
    async with hosted(store=store) as (_, child):
        await child.call("memory.query", {"namespace": "notes"})
        await child.call("config.set", {"key": "a", "value": "1"})
        await child.call("config.get", {"key": "a"})
        assert threading.get_ident() not in store.threads
        assert store.threads


async def test_a_given_store_outlives_the_extension() -> None:
    store = InMemoryStore()
    async with hosted(store=store) as (_, child):
        await child.call("memory.append", {"namespace": "notes", "content": "x"})
    assert isinstance(store.query(Query("notes"))[0], Record)


# -- configuration


async def test_a_value_is_set_read_and_guarded_by_its_revision() -> None:
    async with hosted() as (_, child):
        assert await child.call("config.get", {"key": "mode"}) == {"value": None, "revision": 0}
        assert await child.call("config.set", {"key": " mode ", "value": "a"}) == {"ok": True, "revision": 1}
        assert await child.call("config.get", {"key": "mode"}) == {"value": "a", "revision": 1}
        lost = await child.call("config.set", {"key": "mode", "value": "b", "if_revision": 7})
        assert lost == {"ok": False, "revision": 1}


async def test_two_extensions_on_one_store_have_separate_data() -> None:
    store = InMemoryStore()
    async with hosted(store=store, id="a") as (_, a), hosted(store=store, id="b") as (_, b):
        await a.call("config.set", {"key": "k", "value": "of a"})
        await a.call("memory.append", {"namespace": "a", "content": "of a"})
        assert (await b.call("config.get", {"key": "k"}))["value"] is None
        assert (await b.call("memory.query", {"namespace": "b"}))["records"] == []


class Changes:
    """The change notifications that an extension received."""

    def __init__(self, peer: Peer) -> None:
        self.changes: list[ConfigChanged] = []
        self._more = anyio.Event()
        peer.on("config.changed")(self.take)

    def take(self, change: ConfigChanged) -> None:
        self.changes.append(change)
        self._more.set()

    async def until(self, count: int) -> list[ConfigChanged]:
        with anyio.fail_after(60):
            while len(self.changes) < count:
                self._more = anyio.Event()
                await self._more.wait()
        await settled()
        assert len(self.changes) == count
        return self.changes


@pytest.mark.parametrize("store", STORES)
async def test_a_subscriber_gets_the_state_and_then_each_change_in_order(store: Any) -> None:
    kept = store()
    kept.set_config("notes", ConfigSet("a", "0"))
    async with hosted(store=kept) as (_, child):
        messages = Changes(child)
        begun = await child.call("config.subscribe", {})
        assert begun == {"ok": True, "revision": 1, "snapshot": {"a": "0"}}
        for number in range(50):
            kept.set_config("notes", ConfigSet("a", str(number)))
        kept.set_config("others", ConfigSet("a", "not ours"))
        kept.remove_config("notes", "a")
        changes = await messages.until(51)
        assert changes[:50] == [ConfigChanged("a", str(number), number + 2) for number in range(50)]
        assert changes[50] == ConfigChanged("a", None, 53)


async def test_an_extension_subscribes_to_a_limited_number_of_keys() -> None:
    async with hosted(limits=Limits(config_subscriptions=3)) as (_, child):
        messages = Changes(child)
        await child.call("config.subscribe", {"keys": ["a", "b"]})
        error = await refused(child, "config.subscribe", {"keys": ["c", "d"]})
        assert (error.meaning, error.data["limit"]) == (Meaning.QUOTA, 3)
        await child.call("config.subscribe", {"keys": ["a", "b", "c"]})
        for key in "abcd":
            await child.call("config.set", {"key": key, "value": "1"})
        assert [change.key for change in await messages.until(3)] == ["a", "b", "c"]


@pytest.mark.parametrize("store", STORES)
async def test_subscriptions_at_the_same_time_do_not_go_beyond_the_limit(store: Any) -> None:
    async with hosted(store=store(), limits=Limits(config_subscriptions=3)) as (_, child):
        messages = Changes(child)
        outcomes: list[bool] = []

        async def subscribe(key: str) -> None:
            try:
                outcomes.append((await child.call("config.subscribe", {"keys": [key]}))["ok"])
            except RemoteError as error:
                outcomes.append(error.meaning is not Meaning.QUOTA)

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(subscribe, f"k{number}")
        assert sorted(outcomes) == [False] * 7 + [True] * 3
        assert (await child.call("config.subscribe", {}))["ok"]  # all keys at once are always possible
        await child.call("config.set", {"key": "other", "value": "1"})
        assert [change.key for change in await messages.until(1)] == ["other"]


async def test_an_extension_is_notified_of_its_own_changes_too() -> None:
    async with hosted() as (_, child):
        messages = Changes(child)
        await child.call("config.subscribe", {})
        await child.call("config.set", {"key": "a", "value": "1"})
        assert await messages.until(1) == [ConfigChanged("a", "1", 1)]


@pytest.mark.parametrize("store", STORES)
async def test_a_returning_subscriber_gets_the_missed_changes_and_no_snapshot(store: Any) -> None:
    kept = store()
    for number in range(5):
        kept.set_config("notes", ConfigSet("a", str(number)))
    async with hosted(store=kept) as (_, child):
        messages = Changes(child)
        assert await child.call("config.subscribe", {"since": 3}) == {"ok": True, "revision": 3}
        assert await messages.until(2) == [ConfigChanged("a", "3", 4), ConfigChanged("a", "4", 5)]


async def test_the_response_to_a_subscription_leaves_before_the_changes() -> None:
    store = InMemoryStore()
    store.set_config("notes", ConfigSet("a", "1"))
    async with played(store=store) as (_, script):
        script.send(request(1, "config.subscribe", {"since": 0}))
        first, second = await script.receive(), await script.receive()
        assert first["id"] == 1
        assert second["method"] == "config.changed"


async def test_a_subscriber_that_missed_too_much_or_saw_another_store_gets_a_snapshot() -> None:
    store = InMemoryStore(Limits(config_log=2))
    for number in range(5):
        store.set_config("notes", ConfigSet("a", str(number)))
    async with hosted(store=store) as (_, child):
        for since in (1, 99):
            response = await child.call("config.subscribe", {"since": since})
            assert response == {"ok": True, "revision": 5, "snapshot": {"a": "4"}}


async def test_only_changes_of_the_subscribed_keys_are_sent() -> None:
    store = InMemoryStore()
    store.set_config("notes", ConfigSet("other", "0"))
    async with hosted(store=store) as (_, child):
        messages = Changes(child)
        assert (await child.call("config.subscribe", {"keys": [" a "]}))["snapshot"] == {}
        store.set_config("notes", ConfigSet("other", "1"))
        store.set_config("notes", ConfigSet("a", "1"))
        assert await messages.until(1) == [ConfigChanged("a", "1", 3)]


async def test_a_second_subscription_adds_to_the_first_without_duplicate_changes() -> None:
    store = InMemoryStore()
    async with hosted(store=store) as (_, child):
        messages = Changes(child)
        await child.call("config.subscribe", {"keys": ["a"]})
        store.set_config("notes", ConfigSet("a", "1"))
        store.set_config("notes", ConfigSet("b", "2"))
        await messages.until(1)
        assert await child.call("config.subscribe", {"keys": ["b"], "since": 0}) == {"ok": True, "revision": 0}
        store.set_config("notes", ConfigSet("a", "3"))
        store.set_config("notes", ConfigSet("b", "4"))
        store.set_config("notes", ConfigSet("c", "5"))
        assert await messages.until(4) == [
            ConfigChanged("a", "1", 1),
            ConfigChanged("b", "2", 2),
            ConfigChanged("a", "3", 3),
            ConfigChanged("b", "4", 4),
        ]


async def test_a_subscription_during_delivery_loses_nothing() -> None:
    store = InMemoryStore()
    for number in range(100):
        store.set_config("notes", ConfigSet("a" if number % 2 else "b", str(number)))
    async with hosted(store=store) as (_, child):
        messages = Changes(child)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(child.call, "config.subscribe", {"keys": ["a"], "since": 0})
            tasks.start_soon(child.call, "config.subscribe", {"keys": ["b"], "since": 0})
        changes = await messages.until(100)
        assert sorted(change.revision for change in changes) == list(range(1, 101))


async def test_changes_dropped_from_the_history_before_delivery_are_sent_as_a_snapshot() -> None:
    store = InMemoryStore(Limits(config_log=3))
    async with hosted(store=store) as (_, child):
        messages = Changes(child)
        store.set_config("notes", ConfigSet("gone", "x"))
        await child.call("config.subscribe", {})
        for number in range(20):  # all before the loop can send one
            store.set_config("notes", ConfigSet(f"k{number % 4}", str(number)))
        store.remove_config("notes", "gone")
        changes = await messages.until(5)
        assert {change.key: change.value for change in changes} == {
            "gone": None,
            "k0": "16",
            "k1": "17",
            "k2": "18",
            "k3": "19",
        }
        store.set_config("notes", ConfigSet("k0", "new"))
        assert (await messages.until(6))[5].value == "new"


async def test_a_change_from_another_thread_is_sent() -> None:
    store = InMemoryStore()
    async with hosted(store=store) as (_, child):
        messages = Changes(child)
        await child.call("config.subscribe", {})
        await anyio.to_thread.run_sync(store.set_config, "notes", ConfigSet("a", "1"))
        assert await messages.until(1) == [ConfigChanged("a", "1", 1)]


async def test_changes_are_sent_no_faster_than_the_extension_reads() -> None:
    limits = Limits(send_high=1_000, send_queue=100_000, config_log=10_000)
    store = InMemoryStore(limits)
    async with played(store=store, limits=limits) as (_, script):
        script.send(request(1, "config.subscribe", {}))
        await script.receive()
        script.queued = 2_000  # from now on it does not read
        for number in range(500):
            store.set_config("notes", ConfigSet("a", str(number)))
        await settled()
        assert len(script.unread()) <= 1
        script.make_room()
        await settled()
        assert len(script.unread()) >= 499


async def test_a_subscription_while_another_waits_for_delivery_loses_nothing() -> None:
    limits = Limits(send_high=1_000, send_queue=1_000_000)
    store = InMemoryStore(limits)
    async with played(store=store, limits=limits) as (_, script):
        store.set_config("notes", ConfigSet("b", "before"))
        script.send(request(1, "config.subscribe", {"keys": ["a"]}))
        await script.receive()
        script.queued = 2_000  # it does not read, and the first change waits for that
        for number in range(3):
            store.set_config("notes", ConfigSet("a", str(number)))
        await settled()
        script.send(request(2, "config.subscribe", {"keys": ["b"], "since": 0}))
        await settled()
        script.make_room()
        await settled()
        received = [output["params"] for output in script.unread() if output.get("method") == "config.changed"]
        assert [(change["key"], change["value"]) for change in received] == [
            ("a", "0"),
            ("b", "before"),
            ("a", "1"),
            ("a", "2"),
        ]


async def test_after_the_link_has_ended_the_store_has_no_subscribers() -> None:
    ends: list[str] = []

    class Watched(InMemoryStore):
        def watch(self, wake: Any) -> Any:
            end = super().watch(wake)

            def note() -> None:
                ends.append("ended")
                end()

            return note

    store = Watched()
    async with hosted(store=store) as (_, child):
        await child.call("config.subscribe", {})
        await child.call("config.subscribe", {})
        assert ends == []
    assert ends == ["ended"]
    store.set_config("notes", ConfigSet("a", "1"))


async def test_a_store_that_fails_during_delivery_ends_only_the_delivery(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(InMemoryStore):
        is_broken = False

        def read_changes(self, extension: str, since: int, keys: Any = None) -> Any:
            if self.is_broken:
                raise OSError(errno.EIO, "broken")
            return super().read_changes(extension, since, keys)

    store = Failing()
    async with hosted(store=store) as (_, child):
        messages = Changes(child)
        await child.call("config.subscribe", {})
        store.is_broken = True
        store.set_config("notes", ConfigSet("a", "1"))
        await settled()
        assert "the store failed" in caplog.text
        store.is_broken = False
        store.set_config("notes", ConfigSet("a", "2"))
        assert await messages.until(2) == [ConfigChanged("a", "1", 1), ConfigChanged("a", "2", 2)]


# -- errors by class, as dialects need them


async def test_refusals_have_their_class_and_the_message_of_the_contract() -> None:
    async with played(grants=("tools.register", "providers.register", "memory.write")) as (_, script):
        script.send(
            request(1, "memory.append", {"namespace": "others", "content": "x"}),
            request(2, "memory.query", {"namespace": "notes"}),
            request(3, "config.get", {"key": "a.b"}),
            request(4, "nobody/knows"),
        )
        responses = {one["id"]: one["error"] for one in [await script.receive() for _ in range(4)]}
    problem = responses[1]["data"]["problems"][0]
    assert problem["message"] == "namespace must equal extension id 'notes' (got 'others')"
    assert responses[1]["code"] == -32602
    assert responses[2] == {"code": 1003, "message": "permission denied: memory.read required"}
    assert responses[3]["data"]["problems"][0]["message"] == "config key must not contain dots, slashes, or spaces"
    assert responses[4]["code"] == -32601
