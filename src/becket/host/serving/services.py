"""Memory and configuration handlers that a host serves to one extension.

The connection alone determines the extension: the namespace or a key of another one cannot even be named. The gate of
the link decides before who may call. Changes of the configuration are read from the store's own record of them, so
that none is lost or sent twice, however fast they come.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from msgspec import Struct

from becket._loggers import host_logger, log_incident
from becket.contract.config import (
    CONFIG_CHANGED,
    CONFIG_GET,
    CONFIG_SET,
    CONFIG_SUBSCRIBE,
    ConfigChanged,
    ConfigGet,
    ConfigSaved,
    ConfigSet,
    ConfigSubscribe,
    ConfigSubscribed,
    ConfigValue,
    parse_config_key,
)
from becket.contract.memory import (
    MEMORY_APPEND,
    MEMORY_QUERY,
    Append,
    Appended,
    Query,
    Records,
    check_owner,
)
from becket.errors import BecketError, Busy, Meaning, NotSent, QuotaExceeded, RpcError, StoreError
from becket.host.starting.secrets import SecretConfig, Secrets
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.registry import Registry
from becket.peer.context import Context
from becket.peer.deferred import Deferred
from becket.peer.outbound import READY
from becket.peer.peer import Peer
from becket.permissions.gate import Gate
from becket.stores.in_memory import InMemoryStore
from becket.stores.store import Store

if TYPE_CHECKING:
    from becket.peer.protocols import Loop

__all__ = ["AsyncStore", "ExtensionServices"]

T = TypeVar("T")
ENVELOPE_BYTES = 1_024  # bytes of a response beside its records
QUERIES = 2  # of one extension at once: each may have a whole frame of records in memory, and more are not faster
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)


class ExtensionServices:
    """The memory and the configuration of one extension. `register` offers them on a link."""

    def __init__(
        self, store: Store, gate: Gate, loop: Loop, limits: Limits = DEFAULT_LIMITS, secrets: Secrets | None = None
    ) -> None:
        self._store = store
        self._config = store if secrets is None else SecretConfig(store, secrets, limits=limits)
        self._extension = gate.extension
        self._limits = limits
        self._loop = loop
        # A call to a store in memory is faster than a thread. Any other store may wait for a disk.
        self._is_inline = isinstance(store, InMemoryStore) and secrets is None
        self._gate = gate
        self._changes: ConfigSubscription | None = None

    def register(self, methods: Registry) -> None:
        """Adds a handler for each method."""
        in_thread = not self._is_inline
        self._async_store = AsyncStore(self._store, self._loop)
        self._queries = anyio.Semaphore(QUERIES, fast_acquire=True)
        methods.handle(MEMORY_APPEND)(self.append_nowait if self._is_inline else self.append)
        methods.handle(MEMORY_QUERY)(self.query if self._is_inline else self.query_in_turn)
        methods.handle(CONFIG_GET, thread=in_thread)(self.get_config)
        methods.handle(CONFIG_SET, thread=in_thread)(self.set_config)
        methods.handle(CONFIG_SUBSCRIBE)(self.subscribe)

    def close(self) -> None:
        """Stops sending changes."""
        if self._changes is not None:
            self._changes.close()

    # -- methods for the extension

    def append_nowait(self, append: Append) -> Appended:
        """Appends a record of the extension."""
        check_owner(append.namespace, self._extension)
        return call_store(self._store.append, append)

    def append(self, append: Append) -> Any:
        """The same for a store that may wait for a disk: the response is sent when the record is safe."""
        check_owner(append.namespace, self._extension)
        return call_store(self._async_store.append, append)

    def query(self, query: Query) -> Records:
        """Finds records of the extension."""
        check_owner(query.namespace, self._extension)
        return call_store(self._store.query_page, query, self._limits.frame - ENVELOPE_BYTES)

    async def query_in_turn(self, query: Query, ctx: Context) -> Records:
        """The same for a store that may wait for a disk: a few at once, and none while the send queue is full."""
        async with self._queries:
            try:
                await ctx.peer.drain()
            except NotSent as error:
                raise Busy("unread bytes", self._limits.send_queue) from error
            found: Records = await self._loop.run_in_thread(self.query, query)
            return found

    def get_config(self, wanted: ConfigGet) -> ConfigValue:
        """Reads a value of the extension."""
        return call_store(self._config.get_config, self._extension, wanted.key)

    def set_config(self, change: ConfigSet) -> ConfigSaved:
        """Changes a value of the extension."""
        return call_store(self._config.set_config, self._extension, change)

    async def subscribe(self, wanted: ConfigSubscribe, ctx: Context) -> ConfigSubscribed:
        """Sends each change from now on."""
        if self._changes is None:
            self._changes = ConfigSubscription(self, self._gate)
        return await self._changes.subscribe(wanted, ctx.peer)

    # -- for the subscription

    async def run_store_call(self, function: Callable[..., T], *arguments: object) -> T:
        """Returns the result of a store method for this extension, without blocking the loop."""
        if self._is_inline:
            return call_store(function, self._extension, *arguments)
        result: T = await self._loop.run_in_thread(call_store, function, self._extension, *arguments)
        return result

    def parse_keys(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Returns keys in their stored form.

        Raises:
            InvalidParams: one of them is not a valid key.
        """
        return tuple(parse_config_key(key, self._limits) for key in keys)

    def check_subscriptions(self, keys: int) -> None:
        """Raises QuotaExceeded for too many subscribed keys."""
        most = self._limits.config_subscriptions
        if keys > most:
            raise QuotaExceeded(self._extension, "subscriptions", used=keys, limit=most)

    @property
    def store(self) -> Store:
        """The store of the extension's data."""
        return self._store

    @property
    def config(self) -> Store | SecretConfig:
        """The configuration as the extension sees it: with its secrets."""
        return self._config

    @property
    def loop(self) -> Loop:
        """The loop of the link."""
        return self._loop


class ConfigSubscription:
    """Which changes of its configuration an extension gets, and which it has got.

    Each subscribed key has a floor: only changes after that revision are sent. A second subscription adds to the first.
    One task at a time reads the changes and sends them, and waits while the extension does not read."""

    def __init__(self, services: ExtensionServices, gate: Gate) -> None:
        self._services = services
        self._extension = gate.extension
        self._gate = gate
        self._floors: dict[str | None, int] = {}  # None is for all keys
        self._position = 0  # all changes up to this revision were sent, or have no subscription
        self._sent_keys: set[str] = set()  # keys with a value, as far as the extension knows
        self._peer: Peer | None = None
        self._is_dirty = False
        self._is_rewound = False
        self._is_sending = False
        self._ends: list[Callable[[], None]] = []

    async def subscribe(self, wanted: ConfigSubscribe, peer: Peer) -> ConfigSubscribed:
        """Adds a subscription and returns its first revision."""
        store, config, use = self._services.store, self._services.config, self._services.run_store_call
        keys = None if wanted.keys is None else self._services.parse_keys(wanted.keys)
        self._check_room(keys)
        if not self._ends:
            self._ends = [store.watch(self._on_store_changed), self._gate.subscribe(self._on_revoked)]
        if wanted.since is not None and await use(config.read_changes, wanted.since, keys) is not None:
            response = ConfigSubscribed(True, wanted.since)
            begins = wanted.since
        else:
            snapshot = await use(config.read_config, keys)
            response = ConfigSubscribed(True, snapshot.revision, snapshot.values)
            begins = snapshot.revision
            self._sent_keys.update(snapshot.values)
        self._check_room(keys)  # again: others may have subscribed meanwhile
        self._peer = peer
        self._add(keys, begins)
        self._services.loop.call_soon(self._schedule_send)  # after the response, which is sent first
        return response

    def _check_room(self, keys: tuple[str, ...] | None) -> None:
        """Raises QuotaExceeded if these would be too many keys. A subscription to all keys counts as none."""
        if keys is not None:
            self._services.check_subscriptions(len((self._floors.keys() | set(keys)) - {None}))

    def _add(self, keys: tuple[str, ...] | None, begins: int) -> None:
        if self._floors:
            # Changes that were sent already are not sent again, even if the new subscription begins earlier.
            self._floors = {key: max(floor, self._position) for key, floor in self._floors.items()}
            self._position = min(self._position, begins)
        else:
            self._position = begins
        self._floors.update(dict.fromkeys((None,) if keys is None else keys, begins))
        self._is_dirty = self._is_rewound = True

    def _matches(self, change: ConfigChanged) -> bool:
        floors = [self._floors[key] for key in (change.key, None) if key in self._floors]
        return bool(floors) and change.revision > min(floors)

    # -- sending

    def _on_store_changed(self, extension: str) -> None:
        if extension == self._extension:  # in the thread of the change
            self._services.loop.call_from_thread(self._mark_dirty)

    def _mark_dirty(self) -> None:
        self._is_dirty = True
        self._schedule_send()

    def _schedule_send(self) -> None:
        if self._is_dirty and not self._is_sending and self._floors:
            self._is_sending = True
            self._services.loop.spawn(self._send_changes())

    async def _send_changes(self) -> None:
        try:
            while self._is_dirty and self._floors:
                self._is_dirty = self._is_rewound = False
                changes = await self._services.run_store_call(self._services.config.read_changes, self._position)
                if changes is None:
                    await self._send_snapshot()
                for change in changes or ():
                    if self._is_rewound:
                        break  # a new subscription may want earlier changes
                    await self._send_change(change)
        except BecketError as error:  # the link has ended, or the store has failed
            host_logger().debug("%s gets no further configuration changes: %s", self._extension, error)
        finally:
            self._is_sending = False

    async def _send_change(self, change: ConfigChanged) -> None:
        sent = self._send(change)
        self._position = max(self._position, change.revision)
        await sent

    async def _send_snapshot(self) -> None:
        """Sends the current values: the store no longer has the changes that led to them."""
        snapshot = await self._services.run_store_call(self._services.config.read_config)
        values: dict[str, str | None] = dict.fromkeys(self._sent_keys - snapshot.values.keys())
        values.update(snapshot.values)
        sent: Awaitable[None] = READY
        for key, value in values.items():
            sent = self._send(ConfigChanged(key, value, snapshot.revision))
        self._position = max(self._position, snapshot.revision)
        await sent

    def _send(self, change: ConfigChanged) -> Awaitable[None]:
        """Sends a change if it is subscribed; the returned awaitable waits while the send queue is full."""
        if self._peer is None or not self._matches(change):
            return READY
        sent = self._peer.notify(CONFIG_CHANGED, change)
        if change.value is None:
            self._sent_keys.discard(change.key)
        else:
            self._sent_keys.add(change.key)
        return sent

    # -- the end

    def _on_revoked(self, permission: str) -> None:
        if permission == CONFIG_CHANGED.requires:
            self._services.loop.call_from_thread(self.close)

    def close(self) -> None:
        """Stops sending."""
        ends, self._ends = self._ends, []
        for end in ends:
            end()
        self._floors.clear()
        self._peer = None


# -- appends


class AsyncStore:
    """Appends records to a store for callers on one loop."""

    __slots__ = ("_completed", "_is_delivering", "_loop", "_store")

    def __init__(self, store: Store, loop: Loop) -> None:
        self._store = store
        self._loop = loop
        self._completed: deque[PendingAppend] = deque()
        self._is_delivering = False

    def append(self, append: Append) -> Deferred:
        """Submits a record. The result is settled when it is safe; a record whose caller has left is stored too.

        Raises:
            BecketError: why it is rejected.
        """
        pending = PendingAppend(self, Deferred())
        self._store.append_nowait(append, pending)
        return pending.result

    def complete(self, pending: PendingAppend) -> None:
        """Delivers an outcome to the loop, from any thread."""
        self._completed.append(pending)
        if not self._is_delivering:
            self._is_delivering = True
            try:
                self._loop.call_from_thread(self._deliver)
            except RuntimeError:
                pass  # the loop has ended, and no caller waits there any more

    def _deliver(self) -> None:
        self._is_delivering = False  # first: outcomes from now on are delivered here, or by another call
        while self._completed:
            pending = self._completed.popleft()
            pending.result.settle(pending.outcome)


class PendingAppend(Struct, eq=False, gc=False):
    """The callback of one append. Thousands may be pending, so it is no partial, which the garbage collector visits."""

    store: AsyncStore
    result: Deferred
    outcome: Appended | BecketError | None = None

    def __call__(self, outcome: Appended | BecketError) -> None:
        self.outcome = outcome
        self.store.complete(self)


# -- failures of the store


def call_store(function: Callable[..., T], *arguments: Any) -> T:
    """Returns the result of a store method. Of an error in it, only an incident id reaches the wire."""
    try:
        return function(*arguments)
    except RpcError:
        raise
    except Exception as error:
        raise build_store_error(error) from error


def build_store_error(error: Exception) -> StoreError:
    """Returns the error response for a store that has failed: an incident id, under which the log has the rest."""
    incident = log_incident(host_logger(), "the store failed", error)
    is_full = isinstance(error, OSError) and error.errno in DISK_FULL_ERRNOS
    return StoreError(Meaning.DISK_FULL if is_full else Meaning.INTERNAL, incident)
