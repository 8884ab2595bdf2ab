"""Runs an extension's coroutines, and its plain functions in workers, on asyncio or trio.

An `async def` is awaited; a plain `def` runs in a worker. There is a worker for every concurrent request, since all of
them may wait for each other. Calls of a plain function to the host are awaited in the loop's thread.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from becket._deprecated import RenamedMember
from becket.errors import BecketError, LocalProtocolError, NotSupported
from becket.extension.runtime_blocking import UserFunction, can_log, check_not_awaitable
from becket.methods.descriptors import Method, Notification
from becket.methods.error_mapping import call_sync

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractContextManager

    import trio

    from becket.extension.mapping import HostCallMapping, MappedRequest
    from becket.limits import Limits
    from becket.peer.blocking_peer import BlockingPeer
    from becket.peer.context import Context
    from becket.peer.peer import Peer

__all__ = ["AsyncRuntime", "AsyncioWorkers", "EventSender", "TrioWorkers", "WorkerContext"]

P = ParamSpec("P")
T = TypeVar("T")

INLINE_WAIT_ERROR = "an inline function cannot wait for the host: make it `async def`, or leave out `inline=True`"
COROUTINE_WAIT_ERROR = "this would stop the event loop: an `async def` awaits the methods of `self.host` itself"


class EventSender:
    """Sends events of a call to its caller."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def notify(self, notification: Notification[Any], params: object) -> Coroutine[Any, Any, None]:
        """Sends an event of the call; waits under backpressure."""
        return self._context.notify(notification, params)

    def notify_best_effort(self, notification: Notification[Any], params: object) -> None:
        """Sends an event without waiting, also after the call was cancelled."""
        try:
            self._context.peer.notify_nowait(notification, params)
        except BecketError:
            pass  # the link is closed, or its send queue is full


class AsyncRuntime:
    """Coroutines and plain functions, over a `Peer`."""

    is_blocking = False
    peer: Peer
    client_mapping: HostCallMapping | None = None

    def __init__(self, limits: Limits) -> None:
        self.workers: AsyncioWorkers | TrioWorkers = create_workers(limits)
        self._thread = get_ident()
        self._is_inline = False

    def is_in_plain_function(self) -> bool:
        """Returns whether this is called from a plain function, which cannot await anything."""
        return self._is_inline or get_ident() != self._thread

    def run(self, function: Callable[P, Awaitable[T]], /, *arguments: P.args, **keywords: P.kwargs) -> T:
        """Awaits a call in the loop's thread and returns its result, for a plain function in a worker."""
        if get_ident() == self._thread:
            raise LocalProtocolError(INLINE_WAIT_ERROR if self._is_inline else COROUTINE_WAIT_ERROR)

        async def call() -> T:
            return await function(*arguments, **keywords)

        return self.workers.run_in_loop(call)

    def call_in_loop(self, function: Callable[[], T]) -> T:
        """Calls a quick function in the loop's thread: trio's clock can be read only there."""
        if get_ident() == self._thread:
            return function()

        async def call() -> T:
            return function()

        return self.workers.run_in_loop(call)

    async def run_function(self, routine: UserFunction, /, *arguments: Any, **keywords: Any) -> Any:
        """Runs a function of the author and returns its result."""
        function = routine.function
        if routine.is_async:
            return await function(*arguments, **keywords)
        if routine.is_inline:
            return call_sync(self.run_inline, routine, *arguments, **keywords)

        def work() -> Any:
            return check_not_awaitable(routine, call_sync(function, *arguments, **keywords))

        return await self.workers.run_in_worker(work)

    def run_inline(self, routine: UserFunction, /, *arguments: Any, **keywords: Any) -> Any:
        """Runs an inline function of the author and returns its result."""
        self._is_inline = True
        try:
            result = routine.function(*arguments, **keywords)
        finally:
            self._is_inline = False
        return check_not_awaitable(routine, result)

    def wrap_context(self, routine: UserFunction, context: Any) -> Any:
        """Returns the context of a call for an `async def` or a plain `def`."""
        return context if routine.is_async else WorkerContext(context, self)

    def create_event_sender(self, context: Any) -> EventSender:
        return EventSender(context)

    def call(self, method: Any, params: Any, options: dict[str, Any]) -> Coroutine[Any, Any, Any]:
        if self.client_mapping is None:
            return self.peer.call(method, params, **options)
        return self._call_mapped(self.client_mapping.map_request(method, params), options)

    async def _call_mapped(self, request: MappedRequest, options: dict[str, Any]) -> Any:
        return request.decode_result(await self.peer.call(request.method, request.params, **options))

    async def notify(self, method: Any, params: Any) -> None:
        if self.client_mapping is None:
            await self.peer.notify(method, params)
        elif mapped := self.client_mapping.map_notification(method, params):
            await self.peer.notify(mapped.method, mapped.params)

    def can_log(self) -> bool:
        return can_log(self.peer, self.client_mapping)

    def notify_or_fallback(
        self, notification: Notification[Any], params: object, otherwise: Callable[[], None]
    ) -> None:
        """Sends a notification without waiting, from any thread; calls `otherwise` if that fails."""

        def notify_now() -> None:
            try:
                if self.client_mapping is None:
                    self.peer.notify_nowait(notification, params)
                elif mapped := self.client_mapping.map_notification(notification, params):
                    self.peer.notify_nowait(mapped.method, mapped.params)
            except BecketError:
                otherwise()

        if get_ident() == self._thread:
            notify_now()
        else:
            self.workers.call_soon(notify_now)

    def add_notification_handler(
        self, notification: Notification[Any], function: Callable[[Any], Coroutine[Any, Any, None]]
    ) -> None:
        """Registers a handler of a notification; its calls run one after another."""

        async def handle(params: Any) -> None:
            await function(params)

        self.peer.on(notification)(handle)

    def close_soon(self) -> None:
        """Closes the link in a separate task, so that the running handler can still respond."""
        self.workers.spawn(self.peer.aclose)

    def create_shutdown(self, work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncShutdown:
        return AsyncShutdown(self, work)

    def close(self) -> None:
        """Stops the workers."""
        self.workers.close()


class AsyncShutdown:
    """Runs `on_stop` once and to its end, although a caller is cancelled."""

    def __init__(self, runtime: AsyncRuntime, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._runtime = runtime
        self._work = work
        self._done: asyncio.Event | trio.Event | None = None

    async def run_once(self) -> None:
        """Runs it, or waits until the first caller's run has ended."""
        if self._done is None:
            self._done = self._runtime.workers.create_event()
            await self._runtime.workers.run_to_end(self._run)
        else:
            await self._done.wait()

    run_once_in_handler = run_once

    async def _run(self) -> None:
        assert self._done is not None
        try:
            await self._work()
        finally:
            self._done.set()


class WorkerContext:
    """`BlockingContext` for a plain function in a worker: its methods run in the loop's thread."""

    __slots__ = ("_context", "_run", "_runtime")

    def __init__(self, context: Context, runtime: AsyncRuntime) -> None:
        self._context = context
        self._runtime = runtime
        self._run = runtime.run

    @property
    def method(self) -> str:
        """The method that was called."""
        return self._context.method

    @property
    def is_streamed(self) -> bool:
        """Whether a running call has received the notification as well."""
        return self._context.is_streamed

    @property
    def peer(self) -> BlockingPeer:
        """Raises NotSupported: the peer of this extension is on an event loop."""
        raise NotSupported("ctx.peer", "this extension has an event loop: use ctx.call and ctx.notify")

    @property
    def caller(self) -> str | None:
        """None: a host needs no permission to call its extension."""
        return self._context.caller

    @property
    def wire_request(self) -> object:
        """The request as a host of another dialect sent it, or None."""
        return getattr(self._context, "wire_request", None)

    @property
    def id(self) -> int | float | str | None:
        """The id of the request, None for a notification."""
        return self._context.id

    @property
    def deadline(self) -> float:
        """When the caller stops waiting, on the loop's clock; infinity without a limit."""
        return self._context.deadline

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller has cancelled the call. A long function checks it from time to time."""
        return self._context.is_cancelled

    def remaining(self) -> float:
        """Returns the seconds until the deadline; infinity without a limit."""
        return self._runtime.call_in_loop(self._context.remaining)

    def respond(self, result: object = None) -> None:
        """Responds now, while the function goes on. See `Context.respond`."""
        self._context.respond(result)

    answer = RenamedMember("respond")

    def progress(self, value: object) -> None:
        """Sends progress of the call; waits under backpressure."""
        self._run(self._context.progress, value)

    def notify(self, method: str | Notification[Any], params: Any = None) -> None:
        """Sends a notification that belongs to this call."""
        notify: Any = self._context.notify
        self._run(notify, method, params)

    def call(self, method: str | Method[Any, Any], params: Any = None, **options: Any) -> Any:
        """Calls the caller back, as part of this request."""
        call: Any = self._context.call
        return self._run(call, method, params, **options)


# -- the two event loops


class AsyncioWorkers:
    """Worker threads beside asyncio or uvloop: one for every concurrent request, since all may wait for each other."""

    def __init__(self, limits: Limits) -> None:
        import asyncio

        self._asyncio = asyncio
        self._loop = asyncio.get_running_loop()
        self._max_workers = limits.workers
        self._pool: Any = None
        self._tasks: set[asyncio.Future[Any]] = set()
        self.call_soon = self._loop.call_soon_threadsafe

    async def run_in_worker(self, function: Callable[[], Any]) -> Any:
        """Runs a function to its end, although cancelled: a thread cannot be stopped."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._max_workers, "becket worker")
        future = self._loop.run_in_executor(self._pool, copy_context().run, function)
        with shield_from_anyio():
            while not future.done():
                try:
                    await self._asyncio.shield(future)
                except self._asyncio.CancelledError:
                    continue
                except BaseException:
                    break  # the function's own; raised below
        return future.result()

    def run_in_loop(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._asyncio.run_coroutine_threadsafe(function(), self._loop).result()

    async def run_to_end(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs a coroutine that goes on when its caller is cancelled."""
        await self._asyncio.shield(self.spawn(function))

    def spawn(self, function: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Future[None]:
        task = self._asyncio.ensure_future(function())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def create_event(self) -> asyncio.Event:
        return self._asyncio.Event()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False)


def shield_from_anyio() -> AbstractContextManager[object]:
    """Returns a context that anyio's scopes do not cancel: they would cancel again in every loop iteration."""
    if "anyio" in sys.modules:
        import anyio

        return anyio.CancelScope(shield=True)
    from contextlib import nullcontext

    return nullcontext()


class TrioWorkers:
    """Worker threads beside trio."""

    def __init__(self, limits: Limits) -> None:
        import trio

        self._trio = trio
        self._token = trio.lowlevel.current_trio_token()
        self._limiter = trio.CapacityLimiter(limits.workers)

    def call_soon(self, function: Callable[[], object]) -> None:
        self._token.run_sync_soon(function)

    async def run_in_worker(self, function: Callable[[], Any]) -> Any:
        return await self._trio.to_thread.run_sync(function, limiter=self._limiter)

    def run_in_loop(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._trio.from_thread.run(function, trio_token=self._token)

    async def run_to_end(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with self._trio.CancelScope(shield=True):
            await function()

    def spawn(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._trio.lowlevel.spawn_system_task(function)

    def create_event(self) -> trio.Event:
        return self._trio.Event()

    def close(self) -> None:
        """Does nothing: idle threads of trio end by themselves."""


def create_workers(limits: Limits) -> AsyncioWorkers | TrioWorkers:
    if "trio" in sys.modules:
        import trio

        if trio.lowlevel.in_trio_run():
            return TrioWorkers(limits)
    return AsyncioWorkers(limits)
