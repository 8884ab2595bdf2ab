"""Delivers a server's unsolicited notifications to async iterators, bounded, until the connection ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

import anyio

from becket.errors import ConnectionLost, DisconnectReason
from becket.peer.peer import Peer

__all__ = ["AsyncOpener", "PeerCondition", "Subscription"]

T = TypeVar("T")
MAX_QUEUED = 4_096  # values; beyond this the oldest are dropped


class Subscription(Generic[T]):
    """Values received in its block: `async with client.progress() as feed: async for report in feed: ...`.

    The iteration ends when this peer closes the connection, and raises `ConnectionLost` if it ends otherwise. A slow
    consumer loses the oldest values; `dropped` counts them."""

    def __init__(self, feeds: set[Subscription[T]], peer: Callable[[], Peer]) -> None:
        self.dropped = 0
        self._subscriptions = feeds
        self._peer = peer
        self._values: deque[T] = deque()
        self._condition = PeerCondition()

    def put(self, value: T) -> None:
        """Queues a value."""
        if len(self._values) == MAX_QUEUED:
            self._values.popleft()
            self.dropped += 1
        self._values.append(value)
        self._condition.notify_all()

    async def __aenter__(self) -> Subscription[T]:
        self._subscriptions.add(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._subscriptions.discard(self)
        self._values.clear()

    def __aiter__(self) -> Subscription[T]:
        return self

    async def __anext__(self) -> T:
        while not self._values:
            try:
                await self._condition.wait(self._peer())
            except ConnectionLost as lost:
                if lost.reason is DisconnectReason.LOCAL_CLOSE:
                    raise StopAsyncIteration from None
                raise
        return self._values.popleft()


class PeerCondition:
    """A condition variable whose waiters also wake up when the connection ends."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def notify_all(self) -> None:
        """Wakes all current waiters, which must check their own condition."""
        self._event.set()

    async def wait(self, peer: Peer) -> None:
        """Waits for `notify_all`.

        Raises:
            ConnectionLost: the connection ended first.
        """
        if self._event.is_set():
            self._event = anyio.Event()
        event = self._event  # later waiters may replace it
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                await peer.wait_closed()
                group.cancel_scope.cancel()

            group.start_soon(watch)
            await event.wait()
            group.cancel_scope.cancel()
        if not event.is_set() and peer.close_reason is not None:
            raise peer.close_reason


class AsyncOpener(Generic[T]):
    """Opens a resource: either `async with` it, or `await` it and close the resource yourself."""

    def __init__(self, open: Callable[[], Awaitable[T]], close: Callable[[T], Awaitable[None]]) -> None:
        self._open = open
        self._close = close
        self._opened: T

    def __await__(self) -> Generator[Any, Any, T]:
        return self._open().__await__()

    async def __aenter__(self) -> T:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        await self._close(self._opened)
