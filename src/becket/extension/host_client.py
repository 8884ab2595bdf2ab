"""Provides self.host: typed clients of the host's memory, configuration, log and methods.

`HostClient` is for coroutines: its methods are awaited. `BlockingHostClient` offers the same to plain functions: it
runs the methods of the other and returns their values. Only `log` is the same for both: it never waits.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack, overload

from becket.contract.argument_checks import check_strs
from becket.errors import LocalProtocolError
from becket.extension.decorators import is_async_def
from becket.extension.runtime_blocking import UserFunction
from becket.methods.descriptors import Method, Notification

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Literal

    from becket.contract.config import ConfigChanged, ConfigSaved, ConfigSubscribed, ConfigValue
    from becket.contract.handshake import HostInfo
    from becket.contract.log import LogLevel
    from becket.contract.memory import Appended, Record
    from becket.extension.runtime import Runtime
    from becket.extension.runtime_blocking import CoroutineRunner
    from becket.peer.options import CallOptions

    LogLevelName = LogLevel | Literal["debug", "info", "warning", "error", "critical"]

__all__ = [
    "BlockingConfigClient",
    "BlockingHostClient",
    "BlockingMemoryClient",
    "ConfigClient",
    "HostClient",
    "MemoryClient",
]

F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")


class SessionInfo(Protocol):
    """What a client reads of its session."""

    @property
    def extension_id(self) -> str: ...
    @property
    def host_info(self) -> HostInfo | None: ...


class HostClient:
    """The host, for an `async def`: `await self.host.memory.query(content_contains="milk")`."""

    def __init__(self, runtime: Runtime, session: SessionInfo) -> None:
        self._runtime = runtime
        self._session = session
        self._memory = MemoryClient(runtime, self)
        self._config = ConfigClient(runtime)

    @property
    def extension(self) -> str:
        """The id that the host uses for this extension."""
        return self._session.extension_id

    @property
    def info(self) -> HostInfo | None:
        """Name and version of the host, if it sent them."""
        return self._session.host_info

    @property
    def blocking(self) -> BlockingHostClient:
        """The same for a plain `def`: `self.host.blocking.memory.query(content_contains="milk")`."""
        return BlockingHostClient(self, self._runtime, self._memory, self._config)

    @property
    def memory(self) -> MemoryClient:
        """The memory of this extension, in the namespace that is its id."""
        self._check_can_await("memory")
        return self._memory

    @property
    def config(self) -> ConfigClient:
        """This extension's own configuration."""
        self._check_can_await("config")
        return self._config

    def _check_can_await(self, name: str) -> None:
        """Raises LocalProtocolError in a plain function, where nothing would await the coroutine."""
        if self._runtime.is_in_plain_function():
            raise LocalProtocolError(
                f"`self.host.{name}` is for `async def`, and this is a plain function: use `self.host.blocking.{name}`"
            )

    @overload
    def call(
        self, method: Method[None, R], params: None = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, R]: ...
    @overload
    def call(self, method: Method[P, R], params: P, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, R]: ...
    @overload
    def call(
        self, method: str, params: object = None, *, returns: type[T], **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def call(
        self, method: str, params: object = None, *, returns: Any = ..., **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, Any]: ...
    def call(self, method: Any, params: Any = None, **options: Any) -> Coroutine[Any, Any, Any]:
        """Calls any method of the host, as `Peer.call` does."""
        self._check_can_await("call")
        return self._runtime.call(method, params, options)

    @overload
    def notify(self, method: Notification[None], params: None = None) -> Coroutine[Any, Any, None]: ...
    @overload
    def notify(self, method: Notification[P], params: P) -> Coroutine[Any, Any, None]: ...
    @overload
    def notify(self, method: str, params: object = None) -> Coroutine[Any, Any, None]: ...
    def notify(self, method: Any, params: Any = None) -> Coroutine[Any, Any, None]:
        """Sends a notification to the host, as `Peer.notify` does: a widget, for example, or the content of a
        settings editor."""
        self._check_can_await("notify")
        return self._runtime.notify(method, params)

    def log(self, message: object, *, level: LogLevelName = "info", logger: str | None = None) -> None:
        """Writes to the host's log without waiting; to stderr if the dialect has no log messages, in their form.

        A message that is not a str, such as an exception, is converted with `str`.

        Raises:
            ValueError: there is no such level.
        """
        from becket.contract.log import LOG, LogLevel, LogRecord, format_log_record

        record = LogRecord(LogLevel(level), logger or self.extension, str(message))

        def write() -> None:
            print(format_log_record(record), end="", file=sys.stderr, flush=True)

        if self._runtime.can_log():
            self._runtime.notify_or_fallback(LOG, record, write)
        else:
            write()


class MemoryClient:
    """The memory of this extension. Needs `memory.read` and `memory.write`."""

    def __init__(self, runtime: Runtime, host: HostClient) -> None:
        self._runtime = runtime
        self._host = host

    async def append(
        self, content: str, *, tags: Iterable[str] = (), meta: Any = None, idem: str | None = None
    ) -> Appended:
        """Appends a record and returns when it is safe. A second record with the same `idem` is not added.

        Raises:
            RemoteError: the host does not allow it, or the record is too large.
        """
        from becket.contract.memory import MEMORY_APPEND, Append

        record = Append(self._host.extension, content, check_strs(tags, "tags"), meta, idem)
        kept: Appended = await self._runtime.call(MEMORY_APPEND, record, {})
        return kept

    async def query(
        self,
        content_contains: str | None = None,
        *,
        tag_prefix: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        limit: int | None = None,
    ) -> tuple[Record, ...]:
        """Returns the records for which all conditions hold, the newest first, at most `limit` (50 by default).

        Raises:
            RemoteError: the host does not allow it.
        """
        from becket.contract.memory import MEMORY_QUERY, Query

        query = Query(self._host.extension, content_contains, tag_prefix, since_ms, until_ms, limit)
        found: tuple[Record, ...] = (await self._runtime.call(MEMORY_QUERY, query, {})).records
        return found


ConfigChangeHandler = Callable[["ConfigChanged"], Awaitable[None] | None]


class ConfigClient:
    """This extension's own configuration. Needs `config.write` to set and `config.subscribe` to watch."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._change_handlers: list[UserFunction] = []

    async def get(self, key: str) -> str | None:
        """Returns a value, None if there is none."""
        return (await self.read(key)).value

    async def read(self, key: str) -> ConfigValue:
        """Returns a value with its revision, if the host sends one."""
        from becket.contract.config import CONFIG_GET, ConfigGet

        value: ConfigValue = await self._runtime.call(CONFIG_GET, ConfigGet(key), {})
        return value

    async def set(self, key: str, value: str, *, if_revision: int | None = None) -> ConfigSaved:
        """Changes a value and returns when it is safe. With `if_revision` only if it has not changed since.

        Raises:
            RemoteError: the host does not allow it.
        """
        from becket.contract.config import CONFIG_SET, ConfigSet

        saved: ConfigSaved = await self._runtime.call(CONFIG_SET, ConfigSet(key, value, if_revision), {})
        return saved

    async def subscribe(self, keys: Iterable[str] | None = None, *, since: int | None = None) -> ConfigSubscribed:
        """Subscribes to changes: of these keys, or all; after this revision, or after a snapshot.

        Raises:
            RemoteError: the host does not allow it.
        """
        from becket.contract.config import CONFIG_SUBSCRIBE, ConfigSubscribe

        wanted = ConfigSubscribe(None if keys is None else check_strs(keys, "keys"), since)
        subscribed: ConfigSubscribed = await self._runtime.call(CONFIG_SUBSCRIBE, wanted, {})
        return subscribed

    def on_change(self, function: F) -> F:
        """Registers a function, plain or `async def`, that is called with each `ConfigChanged`, one after another, in
        order.

        Register it before you subscribe; `subscribe` selects the changes."""
        if is_async_def(function) and self._runtime.is_blocking:
            raise TypeError(f"{function.__qualname__} is `async def`: this extension runs without an event loop")
        if not self._change_handlers:
            from becket.contract.config import CONFIG_CHANGED

            # Under a descriptor without a permission: the host requires it of this extension, not the reverse.
            self._runtime.add_notification_handler(
                Notification(CONFIG_CHANGED.name, CONFIG_CHANGED.params), self._on_config_changed
            )
        self._change_handlers.append(UserFunction(function, is_async_def(function)))
        return function

    async def _on_config_changed(self, change: ConfigChanged) -> None:
        for handler in list(self._change_handlers):
            await self._runtime.run_function(handler, change)


# -- the same for plain functions


class BlockingHostClient:
    """The host, for a plain `def`: its methods return the values themselves, wherever the function runs."""

    def __init__(self, host: HostClient, runtime: Runtime, memory: MemoryClient, config: ConfigClient) -> None:
        self._host = host
        self._runtime = runtime
        self._memory = BlockingMemoryClient(memory, runtime.run)
        self._config = BlockingConfigClient(config, runtime.run)

    @property
    def extension(self) -> str:
        """The id that the host uses for this extension."""
        return self._host.extension

    @property
    def info(self) -> HostInfo | None:
        """Name and version of the host, if it sent them."""
        return self._host.info

    @property
    def memory(self) -> BlockingMemoryClient:
        """The memory of this extension, in the namespace that is its id."""
        return self._memory

    @property
    def config(self) -> BlockingConfigClient:
        """This extension's own configuration."""
        return self._config

    @overload
    def call(self, method: Method[None, R], params: None = None, **options: Unpack[CallOptions]) -> R: ...
    @overload
    def call(self, method: Method[P, R], params: P, **options: Unpack[CallOptions]) -> R: ...
    @overload
    def call(self, method: str, params: object = None, *, returns: type[T], **options: Unpack[CallOptions]) -> T: ...
    @overload
    def call(
        self, method: str, params: object = None, *, returns: Any = ..., **options: Unpack[CallOptions]
    ) -> Any: ...
    def call(self, method: Any, params: Any = None, **options: Any) -> Any:
        """Calls any method of the host, as `BlockingPeer.call` does."""
        return self._runtime.run(self._runtime.call, method, params, options)

    @overload
    def notify(self, method: Notification[None], params: None = None) -> None: ...
    @overload
    def notify(self, method: Notification[P], params: P) -> None: ...
    @overload
    def notify(self, method: str, params: object = None) -> None: ...
    def notify(self, method: Any, params: Any = None) -> None:
        """Sends a notification to the host, as `BlockingPeer.notify` does."""
        self._runtime.run(self._runtime.notify, method, params)

    def log(self, message: object, *, level: LogLevelName = "info", logger: str | None = None) -> None:
        """Writes to the host's log, as `HostClient.log` does."""
        self._host.log(message, level=level, logger=logger)


class BlockingMemoryClient:
    """`MemoryClient` for a plain `def`."""

    def __init__(self, memory: MemoryClient, run: CoroutineRunner) -> None:
        self._memory = memory
        self._run = run

    def append(self, content: str, *, tags: Iterable[str] = (), meta: Any = None, idem: str | None = None) -> Appended:
        """Appends a record and returns when it is safe, as `MemoryClient.append` does."""
        return self._run(self._memory.append, content, tags=tags, meta=meta, idem=idem)

    def query(
        self,
        content_contains: str | None = None,
        *,
        tag_prefix: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        limit: int | None = None,
    ) -> tuple[Record, ...]:
        """Returns the records for which all conditions hold, as `MemoryClient.query` does."""
        return self._run(
            self._memory.query,
            content_contains,
            tag_prefix=tag_prefix,
            since_ms=since_ms,
            until_ms=until_ms,
            limit=limit,
        )


class BlockingConfigClient:
    """`ConfigClient` for a plain `def`."""

    def __init__(self, config: ConfigClient, run: CoroutineRunner) -> None:
        self._config = config
        self._run = run

    def get(self, key: str) -> str | None:
        """Returns a value, None if there is none."""
        return self._run(self._config.get, key)

    def read(self, key: str) -> ConfigValue:
        """Returns a value with its revision, if the host sends one."""
        return self._run(self._config.read, key)

    def set(self, key: str, value: str, *, if_revision: int | None = None) -> ConfigSaved:
        """Changes a value and returns when it is safe, as `ConfigClient.set` does."""
        return self._run(self._config.set, key, value, if_revision=if_revision)

    def subscribe(self, keys: Iterable[str] | None = None, *, since: int | None = None) -> ConfigSubscribed:
        """Subscribes to changes, as `ConfigClient.subscribe` does."""
        return self._run(self._config.subscribe, keys, since=since)

    def on_change(self, function: F) -> F:
        """Registers a function for each `ConfigChanged`, as `ConfigClient.on_change` does."""
        return self._config.on_change(function)
