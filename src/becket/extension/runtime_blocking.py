"""Runs an extension's plain functions without an event loop; holds what both runtimes share.

The handlers of an extension are written once, as coroutines that await only methods of a runtime. Without an event loop
these methods never suspend, so that a handler runs in one step. A plain function gets objects whose methods return
values; a `CoroutineRunner` gets these values, directly or in the loop's thread.
"""

from __future__ import annotations

from _thread import LockType, allocate_lock
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from msgspec import Struct

from becket.errors import BecketError, LocalProtocolError
from becket.methods.descriptors import Notification

if TYPE_CHECKING:
    from typing import Protocol

    from becket.extension.mapping import HostCallMapping
    from becket.peer.blocking_peer import BlockingContext, BlockingPeer
    from becket.peer.peer import Peer

    class CoroutineRunner(Protocol):
        """Calls a function that returns an awaitable, and returns the awaited result."""

        def __call__(self, function: Callable[P, Awaitable[T]], /, *arguments: P.args, **keywords: P.kwargs) -> T: ...


__all__ = [
    "BlockingEventSender",
    "BlockingRuntime",
    "BlockingShutdown",
    "UserFunction",
    "can_log",
    "check_not_awaitable",
    "run_synchronously",
]

P = ParamSpec("P")
T = TypeVar("T")


class UserFunction(Struct, frozen=True, eq=False):
    """A bound function of the author, and how it is run."""

    function: Any
    is_async: bool
    is_inline: bool = False


class BlockingEventSender:
    """`EventSender` without an event loop."""

    __slots__ = ("_context",)

    def __init__(self, context: BlockingContext) -> None:
        self._context = context

    async def notify(self, notification: Notification[Any], params: object) -> None:
        self._context.notify(notification, params)

    def notify_best_effort(self, notification: Notification[Any], params: object) -> None:
        try:
            self._context.peer.notify(notification, params)
        except BecketError:
            pass


def run_synchronously(function: Callable[P, Awaitable[T]], /, *arguments: P.args, **keywords: P.kwargs) -> T:
    """Runs a coroutine that never suspends."""
    steps = function(*arguments, **keywords).__await__()
    try:
        next(steps)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise LocalProtocolError("this function awaited something that needs an event loop")


class BlockingRuntime:
    """Runs plain functions over a `BlockingPeer`."""

    is_blocking = True
    peer: BlockingPeer
    client_mapping: HostCallMapping | None = None

    def __init__(self) -> None:
        self.run: CoroutineRunner = run_synchronously

    def is_in_plain_function(self) -> bool:
        return True

    async def run_function(self, routine: UserFunction, /, *arguments: Any, **keywords: Any) -> Any:
        return self.run_inline(routine, *arguments, **keywords)

    def run_inline(self, routine: UserFunction, /, *arguments: Any, **keywords: Any) -> Any:
        return check_not_awaitable(routine, routine.function(*arguments, **keywords))

    def wrap_context(self, routine: UserFunction, context: Any) -> Any:
        return context

    def create_event_sender(self, context: Any) -> BlockingEventSender:
        return BlockingEventSender(context)

    async def call(self, method: Any, params: Any, options: dict[str, Any]) -> Any:
        if self.client_mapping is None:
            return self.peer.call(method, params, **options)
        request = self.client_mapping.map_request(method, params)
        return request.decode_result(self.peer.call(request.method, request.params, **options))

    async def notify(self, method: Any, params: Any) -> None:
        self._notify(method, params)

    def _notify(self, method: Any, params: Any) -> None:
        if self.client_mapping is None:
            self.peer.notify(method, params)
        elif mapped := self.client_mapping.map_notification(method, params):
            self.peer.notify(mapped.method, mapped.params)

    def can_log(self) -> bool:
        return can_log(self.peer, self.client_mapping)

    def notify_or_fallback(
        self, notification: Notification[Any], params: object, otherwise: Callable[[], None]
    ) -> None:
        try:
            self._notify(notification, params)
        except BecketError:
            otherwise()

    def add_notification_handler(
        self, notification: Notification[Any], function: Callable[[Any], Coroutine[Any, Any, None]]
    ) -> None:
        def handle(params: Any) -> None:
            run_synchronously(function, params)

        self.peer.on(notification, thread=True)(handle)

    def close_soon(self) -> None:
        """Closes the link in a separate thread, so that the running handler can still respond."""
        # The reading thread holds the link's lock until the response is sent.
        run_in_daemon_thread(self.peer.close)

    def create_read_wait(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """Returns a function that ends a wait, from any thread, and one that waits and reads meanwhile."""
        from becket.peer.loops.thread_loop import ThreadFuture

        waiter = ThreadFuture()

        async def end_pause() -> None:
            waiter.set_result(None)

        async def pause() -> None:
            await waiter

        def wait() -> None:
            try:
                self.peer.run(pause())
            except RuntimeError:
                pass  # the link has ended meanwhile

        return lambda: self.peer.run(end_pause()), wait

    def create_shutdown(self, work: Callable[[], Coroutine[Any, Any, None]]) -> BlockingShutdown:
        return BlockingShutdown(self, work)


class BlockingShutdown:
    """Runs `on_stop` once, in a thread, while the link is read."""

    def __init__(self, runtime: BlockingRuntime, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._runtime = runtime
        self._work = work
        self._lock = allocate_lock()
        self._done_lock: LockType | None = None
        self._readers: list[Callable[[], None]] = []

    async def run_once(self) -> None:
        """Runs it, or waits until the first caller's run has ended."""
        with self._ensure_started():
            pass

    async def run_once_in_handler(self) -> None:
        """The same from the reading thread, which goes on reading: `on_stop` may call the host."""
        wake, wait = self._runtime.create_read_wait()
        self._readers.append(wake)
        if self._ensure_started().locked():
            wait()

    def _ensure_started(self) -> LockType:
        with self._lock:
            if self._done_lock is None:
                self._done_lock = allocate_lock()
                self._done_lock.acquire()
                run_in_daemon_thread(self._run, self._done_lock)
            return self._done_lock

    def _run(self, done: LockType) -> None:
        try:
            run_synchronously(self._work)
        finally:
            done.release()
            for wake in self._readers:
                wake()


def can_log(peer: Peer | BlockingPeer, client_mapping: HostCallMapping | None) -> bool:
    """Returns whether the host accepts log messages over the link."""
    if client_mapping is None:
        return "log" in peer.features
    from becket.contract.log import LOG

    return client_mapping.can_notify(LOG)


def run_in_daemon_thread(function: Callable[..., object], *arguments: object) -> None:
    """Runs a function in a daemon thread that `threading` knows, since authors' code runs in it."""
    from threading import Thread  # not at the start of an extension

    Thread(target=function, args=arguments, name="becket end", daemon=True).start()


def check_not_awaitable(routine: UserFunction, result: Any) -> Any:
    """Returns the result of a plain function, and raises TypeError for an awaitable, which would never run."""
    if hasattr(result, "__await__"):
        if hasattr(result, "close"):
            result.close()
        name = getattr(routine.function, "__qualname__", repr(routine.function))
        raise TypeError(f"{name} is a plain `def` and returned an awaitable: make it `async def`")
    return result
