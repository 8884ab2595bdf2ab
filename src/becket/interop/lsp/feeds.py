"""What a server tells without being asked, handed to whoever listens; and things that are about to be opened."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

import anyio

from becket.errors import ConnectionLost, DisconnectReason
from becket.peer.peer import Peer

__all__ = ["Bell", "Feed", "Opening"]

T = TypeVar("T")
MOST = 4_096  # values that wait for a listener that does not come; then the oldest are dropped


class Feed(Generic[T]):
    """Values from when its block is entered: `async with client.progress() as feed: async for report in feed: ...`.

    It ends with the link: quietly where this side has closed it, with `ConnectionLost` otherwise. A listener that falls
    behind loses the oldest values; `dropped` counts them."""

    def __init__(self, feeds: set[Feed[T]], peer: Callable[[], Peer]) -> None:
        self.dropped = 0
        self._feeds = feeds
        self._peer = peer
        self._values: deque[T] = deque()
        self._arrival = Bell()

    def put(self, value: T) -> None:
        """Takes a value for whoever listens."""
        if len(self._values) == MOST:
            self._values.popleft()
            self.dropped += 1
        self._values.append(value)
        self._arrival.ring()

    async def __aenter__(self) -> Feed[T]:
        self._feeds.add(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._feeds.discard(self)
        self._values.clear()

    def __aiter__(self) -> Feed[T]:
        return self

    async def __anext__(self) -> T:
        while not self._values:
            try:
                await self._arrival.wait(self._peer())
            except ConnectionLost as lost:
                if lost.reason is DisconnectReason.LOCAL_CLOSE:
                    raise StopAsyncIteration from None
                raise
        return self._values.popleft()


class Bell:
    """Wakes all who wait for what the other side is to bring about."""

    def __init__(self) -> None:
        self._rung = anyio.Event()

    def ring(self) -> None:
        """Wakes those who wait now. Whether it was for them they must see for themselves."""
        self._rung.set()

    async def wait(self, peer: Peer) -> None:
        """Waits until it is rung.

        Raises:
            ConnectionLost: the link has ended before.
        """
        if self._rung.is_set():
            self._rung = anyio.Event()
        rung = self._rung  # those who come later may wait for another
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                await peer.wait_closed()
                group.cancel_scope.cancel()

            group.start_soon(watch)
            await rung.wait()
            group.cancel_scope.cancel()
        if not rung.is_set() and peer.close_reason is not None:
            raise peer.close_reason


class Opening(Generic[T]):
    """Something that is about to be opened: `async with` it, or `await` it and close it yourself."""

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
