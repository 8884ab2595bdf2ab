"""Holds PendingCall and BlockingStream, the results of BlockingPeer.begin and .stream.

Imported when one is made: a program that only serves starts without them.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any, Generic, TypeVar, cast

from becket.errors import CallCancelled
from becket.peer.loops.thread_loop import ThreadFuture, ThreadLoop
from becket.peer.streams import CallStream, Gap

__all__ = ["BlockingStream", "PendingCall"]

R_co = TypeVar("R_co", covariant=True)
E_co = TypeVar("E_co", covariant=True)


class PendingCall(Generic[R_co]):
    """A call in flight. Dropping the last reference to it cancels it."""

    # defaults for an instance whose constructor was interrupted
    _coroutine: Coroutine[Any, Any, Any] | None = None
    _outcome: tuple[Any, BaseException | None] | None = None

    def __init__(self, loop: ThreadLoop, method: str, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._loop = loop
        self._method = method
        self._coroutine = coroutine
        self._future: ThreadFuture | None = None
        with loop.locked():
            self._step(None)

    def _step(self, error: BaseException | None) -> None:
        coroutine = self._coroutine
        assert coroutine is not None
        try:
            self._future = coroutine.send(None) if error is None else coroutine.throw(error)
        except StopIteration as stop:
            self._outcome = (stop.value, None)
        except BaseException as failure:
            self._outcome = (None, failure)

    def result(self) -> R_co:
        """Waits for the response and returns its result. Raises what `call` raises, on every call."""
        with self._loop.locked():
            while (outcome := self._outcome) is None:
                self._wait()
        value, failure = outcome
        if failure is not None:
            raise failure
        return cast("R_co", value)

    def _wait(self) -> None:
        waiter = self._future
        assert waiter is not None
        try:
            self._loop.wait(waiter)
        except BaseException as interruption:  # a KeyboardInterrupt, for example: the call is abandoned
            if self._outcome is None:
                self._step(interruption)
            raise
        if self._outcome is None and self._future is waiter:  # else another thread was faster
            self._step(None)

    def cancel(self) -> None:
        """Cancels the call at the other peer; `result` raises from then on."""
        with self._loop.locked():
            if self._outcome is None:
                waiter = self._future
                self._step(CallCancelled(self._method))
                if waiter is not None:
                    waiter.set_result(None)  # wakes the threads that wait in `result`

    def __del__(self) -> None:
        if self._outcome is None and self._coroutine is not None:
            # Runs in any thread, with any lock held: the pump abandons the call.
            self._loop.call_soon(self._coroutine.close)


class BlockingStream(Generic[E_co, R_co]):
    """A call and its events, for a thread."""

    def __init__(self, loop: ThreadLoop, stream: CallStream[Any, Any]) -> None:
        self._loop = loop
        self._stream = stream

    @property
    def dropped(self) -> int:
        """How many events were dropped because the consumer was too slow."""
        return self._stream.dropped

    @property
    def skipped(self) -> int:
        """How many events could not be decoded."""
        return self._stream.skipped

    def __enter__(self) -> BlockingStream[E_co, R_co]:
        self._loop.run(self._stream.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._stream.__aexit__())

    def __iter__(self) -> Iterator[E_co | Gap]:
        while True:
            with self._loop.locked():
                ready = self._stream.batch_nowait()
            if ready:
                yield from ready
                continue
            try:
                yield self._loop.run(self._stream.__anext__())
            except StopAsyncIteration:
                return

    def result(self) -> R_co:
        """Waits for the response of the call and returns its result. Unread events are dropped."""
        result: R_co = self._loop.run(self._stream.result())
        return result
