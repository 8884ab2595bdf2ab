"""Events that a coroutine of this program produces in a task, read like those of a call.

The task ends when the stream is left. A producer that is faster than its reader waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import anyio

from becket.errors import CallTimeout, LocalProtocolError
from becket.peer.streams import Gap

if TYPE_CHECKING:
    from becket.peer.protocols import Loop

__all__ = ["Emit", "LocalStream"]

E = TypeVar("E")
R = TypeVar("R")

MAX_EVENTS: Final = 16  # events that wait for the reader; a producer bounds the size of each

Emit = Callable[[E], Awaitable[None]]
"""Passes an event to the reader, and waits while the reader is too slow."""


class LocalStream(Generic[E, R]):
    """A stream of what `produce` emits, which ends with what it returns or raises.

    `timeout` is for all of it, `idle_timeout` for the time without an event; both in seconds."""

    def __init__(
        self,
        loop: Loop,
        name: str,
        produce: Callable[[Emit[E]], Coroutine[Any, Any, R]],
        *,
        timeout: float | None = None,
        idle_timeout: float | None = None,
    ) -> None:
        self.dropped = 0
        self.skipped = 0
        self._loop = loop
        self._name = name
        self._produce = produce
        self._timeout = inf if timeout is None else timeout
        self._idle = inf if idle_timeout is None else idle_timeout
        self._until = inf
        self._scope = anyio.CancelScope()
        self._sender, self._receiver = anyio.create_memory_object_stream[E](MAX_EVENTS)
        self._ended = anyio.Event()
        self._result: R
        self._error: Exception | None = None

    # -- the task

    async def __aenter__(self) -> LocalStream[E, R]:
        self._until = anyio.current_time() + self._timeout
        self._extend()
        self._loop.spawn(self._work())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()
        self._receiver.close()

    async def _work(self) -> None:
        try:
            with self._scope:
                self._result = await self._produce(self._emit)
                return
            if anyio.current_time() >= self._scope.deadline:
                self._error = CallTimeout(self._name, min(self._timeout, self._idle))
            else:
                self._error = LocalProtocolError(f"{self._name}: left before it ended")
        except Exception as error:  # the reader raises it
            self._error = error
        finally:
            if self._error is None and not hasattr(self, "_result"):  # the loop ends
                self._error = LocalProtocolError(f"{self._name}: the host was closed")
            self._ended.set()
            self._sender.close()

    async def _emit(self, event: E) -> None:
        await self._sender.send(event)
        self._extend()

    def _extend(self) -> None:
        self._scope.deadline = min(self._until, anyio.current_time() + self._idle)

    # -- the reader

    def done(self) -> bool:
        """Whether the task has ended."""
        return self._ended.is_set()

    async def __anext__(self) -> E | Gap:
        try:
            return await self._receiver.receive()
        except anyio.EndOfStream:
            if self._error is not None:
                raise self._error from None
            raise StopAsyncIteration from None

    def batch_nowait(self) -> list[E | Gap]:
        """Returns the buffered events, without waiting."""
        ready: list[E | Gap] = []
        while True:
            try:
                ready.append(self._receiver.receive_nowait())
            except (anyio.WouldBlock, anyio.EndOfStream):
                return ready

    async def result(self) -> R:
        """Returns what the producer returned; unread events are dropped. Raises what it raised."""
        if not self.done():
            async for _ in self._receiver:
                self.dropped += 1
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._result
