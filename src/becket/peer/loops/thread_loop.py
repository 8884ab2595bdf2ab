"""Runs a link without an event loop: whichever thread waits polls, under one lock.

A thread that waits becomes the *pump*: it polls, and releases the lock only while it does. Other waiting threads are
woken when their future is set, or when the pump leaves and one of them must take over. A background thread pumps
while no thread waits; it steps back for a caller, and takes over again when there was no caller for a moment, so that
a series of calls costs no thread switch. A function that runs within the pump may wait as well: it pumps on.
"""

from __future__ import annotations

import os
import select
import time
from _thread import LockType, RLock, allocate_lock, get_ident
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from becket.methods.error_mapping import log_internal_error
from becket.peer.transport.fair_share import Account, Charge, Ledger, charge_nothing

if TYPE_CHECKING:
    from threading import Thread

    from becket.jsonrpc.call_protocols import FutureLike
    from becket.peer.loops.worker_threads import WorkerThreads
    from becket.peer.protocols import LoopFuture, TaskHandle

__all__ = ["ThreadLoop"]

T = TypeVar("T")

BACKGROUND_DELAY = 0.005  # seconds without a caller, after which the background thread pumps again
MAX_NESTED_WAITS = 16  # functions that wait within each other; a thousand frames of Python hold five times as many
WRITE_EVENTS, READ_EVENTS = ~select.POLLIN, ~select.POLLOUT  # poll reports errors and hang-ups as both
MAX_POLL_SECONDS = 3600.0  # poll takes no infinity; it polls again an hour later


class ThreadTaskCancelled(BaseException):
    """Ends a coroutine that waits."""


class ThreadFuture(Struct, eq=False):
    """A future for one thread, or one coroutine of this loop, set by the pump."""

    is_done: bool = False
    parked: list[LockType] | None = None
    resume: Callable[[], None] | None = None
    is_worker: bool = False  # set by a worker, which goes on with what waits for it

    def done(self) -> bool:
        return self.is_done

    def set_result(self, result: None, /) -> None:
        if self.is_done:
            return
        self.is_done = True
        if self.parked is not None:
            for lock in self.parked:
                unpark(lock)
        if self.resume is not None:
            self.resume()

    def __await__(self) -> Generator[Any, None, None]:
        if not self.is_done:
            yield self


class ThreadTimer:
    """A callback in the heap; a cancelled one is skipped when its time comes."""

    __slots__ = ("function", "time")

    def __init__(self, time: float, function: Callable[[], object]) -> None:
        self.time = time
        self.function: Callable[[], object] | None = function

    def __lt__(self, other: ThreadTimer) -> bool:
        return self.time < other.time

    def cancel(self) -> None:
        self.function = None


class ThreadTask:
    """A coroutine that the pump steps whenever its future is set."""

    __slots__ = ("_context", "_coroutine", "_is_done", "_is_request", "_loop", "_waiter")

    def __init__(self, loop: ThreadLoop, coroutine: Coroutine[Any, Any, None], *, is_request: bool = False) -> None:
        self._loop = loop
        self._is_request = is_request  # it only responds after its worker
        self._coroutine = coroutine
        self._context = copy_context()  # its context variables must not leak into the thread that steps it
        self._waiter: ThreadFuture | None = None
        self._is_done = False
        self._step()

    def _step(self) -> None:
        # It may have been woken, then cancelled before its turn: it is over then, or waits for another future.
        if not self._is_done and (self._waiter is None or self._waiter.is_done):
            self._run(self._coroutine.send, None)

    def _run(self, go_on: Callable[[Any], Any], value: object) -> None:
        self._waiter = None
        try:
            waiter = self._waiter = self._context.run(go_on, value)
            waiter.resume = self._step if waiter.is_worker and self._is_request else self._resume
        except (StopIteration, ThreadTaskCancelled):
            self._is_done = True
        except Exception as error:
            self._is_done = True
            log_internal_error(error)

    def _resume(self) -> None:
        self._loop.call_soon(self._step)

    def cancel(self) -> None:
        if self._waiter is not None:
            self._waiter.resume = None
            self._run(self._coroutine.throw, ThreadTaskCancelled())  # it may have cleanup to finish, and wait again


class ThreadLoop:
    """A link's loop for programs without one. All state of the link is touched under its lock alone."""

    is_reentrant = True

    def __init__(self) -> None:
        self.time = time.monotonic
        self.charge: Charge = charge_nothing
        self.ledger = Ledger()  # of this link alone: no other shares its turns
        self.create_future: Callable[[], LoopFuture] = ThreadFuture
        self.wake: Callable[[FutureLike], None] = methodcaller("set_result", None)
        self.before_wait: Callable[[], None] = no_op
        self.flush: Callable[[], None] = no_op
        lock: Any = RLock()
        self._lock = lock
        # As the conditions of the standard library use it: each is one step that no signal handler can interrupt.
        self.owns_lock: Callable[[], bool] = lock._is_owned
        self._release_lock: Callable[[], None] = lock.release
        self._reacquire_lock: Callable[[tuple[int, int]], None] = lock._acquire_restore
        self._pump = 0  # the thread that polls
        self._pump_generation = 0  # counts pump turns: an unchanged number means that nothing has happened
        self._depth = 0  # waits of the pump within each other
        self._parked: deque[tuple[ThreadFuture, LockType]] = deque()
        self._is_pump_requested = False
        self._background_thread_id = 0
        self._is_background_asleep = False  # the background thread, parked until a pump leaves
        self._is_released = False
        self._thread: Thread | None = None
        self._background_wakeup = allocate_lock()
        self._background_wakeup.acquire()
        self._is_closed = False
        self._is_polling = False
        self.workers = 0  # a thread for each request
        self._workers: WorkerThreads | None = None
        self._poll = select.poll()
        self._readers: dict[int, Callable[[], object]] = {}
        self._writers: dict[int, Callable[[], object]] = {}
        self._ready: deque[Callable[[], object]] = deque()
        self._timers: list[ThreadTimer] = []
        self._wake_read_fd, self._wake_write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll.register(self._wake_read_fd, select.POLLIN)

    # -- the Loop protocol

    def call_soon(self, function: Callable[[], object], /) -> object:
        self._ready.append(function)
        self._interrupt()
        return None

    call_after_wakeups = call_soon

    def run_turn(self, function: Callable[[], object], /) -> None:
        function()

    def charge_to(self, account: Account, charge: Charge) -> None:
        self.charge = charge

    def call_from_thread(self, function: Callable[[], object], /) -> object:
        return self.call_soon(function)

    def call_later(self, delay: float, function: Callable[[], object], /) -> ThreadTimer:
        timer = ThreadTimer(self.time() + delay, function)
        from heapq import heappush  # programs without timers start without it

        heappush(self._timers, timer)
        self._interrupt()
        return timer

    def add_reader(self, fd: int, function: Callable[[], object], /) -> None:
        self._readers[fd] = function
        self._register(fd)

    def remove_reader(self, fd: int, /) -> None:
        if self._readers.pop(fd, None) is not None:
            self._register(fd)

    def add_writer(self, fd: int, function: Callable[[], object], /) -> None:
        self._writers[fd] = function
        self._register(fd)

    def remove_writer(self, fd: int, /) -> None:
        if self._writers.pop(fd, None) is not None:
            self._register(fd)

    def notify_closing(self, fd: int) -> None:
        """Nothing to do: removing a reader or writer is final here."""

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> TaskHandle:
        return ThreadTask(self, coroutine)

    def spawn_owned(self, coroutine: Coroutine[Any, Any, None]) -> TaskHandle:
        return ThreadTask(self, coroutine, is_request=True)

    def cancel(self, running: Any, /) -> None:
        running.cancel()

    async def run_in_thread(self, function: Callable[..., Any], *arguments: object) -> Any:
        outcome: list[Any] = []
        waiter = ThreadFuture(is_worker=True)

        def work() -> None:
            try:
                outcome.append((True, function(*arguments)))
            except BaseException as error:
                outcome.append((False, error))
            with self._lock:
                waiter.set_result(None)

        if self._workers is None:
            from becket.peer.loops.worker_threads import WorkerThreads  # most programs have no worker at their start

            self._workers = WorkerThreads()
        self._workers.run(partial(copy_context().run, work))
        while not waiter.is_done:
            try:
                await waiter
            except ThreadTaskCancelled:
                continue  # a thread cannot be stopped, and its caller waits for it
        succeeded, value = outcome[0]
        if not succeeded:
            raise value
        return value

    @property
    def is_at_nesting_limit(self) -> bool:
        return self._depth >= MAX_NESTED_WAITS

    @property
    def is_in_handler(self) -> bool:
        return bool(self._pump) and not self._is_polling

    def wrap_locked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: object) -> Any:
            with self._lock:
                return function(*arguments)

        return run

    def is_foreign_cancellation(self, error: BaseException) -> bool:
        return False  # there is one cancellation here, and it is the link's own

    async def wait_shielded(self, waiter: LoopFuture) -> None:
        await waiter

    def close(self) -> None:
        self._is_closed = True
        while self._parked:
            _, lock = self._parked.popleft()
            unpark(lock)
        unpark(self._background_wakeup)
        self._interrupt()
        if self._workers is not None:
            self._workers.close()

    # -- the lock

    @contextmanager
    def locked(self) -> Generator[None]:
        """Holds the lock, whether or not this thread holds it already."""
        if self.owns_lock():
            yield
        else:
            with self._lock:
                try:
                    yield
                finally:
                    self._before_unlock()

    def call_locked(self, function: Callable[..., T], *arguments: object) -> T:
        """Calls a function of the link with the lock held."""
        if self.owns_lock():
            return function(*arguments)
        with self._lock:
            try:
                return function(*arguments)
            finally:
                self._before_unlock()

    def _before_unlock(self) -> None:
        """Flushes writes and wakes a pump before the lock is released: neither must wait for the next caller."""
        if not self._pump:
            self.flush()
            if self._parked:
                self._hand_over_pump()

    # -- waiting

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine of the link in this thread, pumping or parked while it waits."""
        is_mine = self.owns_lock
        if is_mine():
            return self._drive(coroutine)
        with self._lock:
            try:
                return self._drive(coroutine)
            finally:
                self._before_unlock()

    def _drive(self, coroutine: Coroutine[Any, Any, T]) -> T:
        try:
            waiter: ThreadFuture = coroutine.send(None)
            while True:
                try:
                    self.wait(waiter)
                except BaseException as error:  # a KeyboardInterrupt, for example: the call is abandoned
                    waiter = coroutine.throw(error)
                else:
                    waiter = coroutine.send(None)
        except StopIteration as stop:
            result: T = stop.value
            return result
        except BaseException:
            coroutine.close()  # one that was interrupted between two steps releases what it holds, here and now
            raise

    def wait(self, waiter: ThreadFuture) -> None:
        """Waits with the lock held, which is released meanwhile."""
        me = get_ident()
        try:
            while not waiter.is_done and not self._is_closed:
                if self._pump and self._pump != me:
                    self._park(waiter)
                else:
                    self._pump_for(waiter, me)
        finally:
            if not self._pump:  # also when it was to pump next, and has no reason to any more
                self._hand_over_pump()
        if not waiter.is_done:
            raise RuntimeError("this link has been closed and its loop has ended")

    def _pump_for(self, waiter: ThreadFuture, me: int) -> None:
        outer, depth = self._pump, self._depth
        try:
            self._pump = me
            self._depth = depth + 1
            waiter.resume = self._interrupt  # another thread may settle it while this one polls
            if not outer:
                self._pump_generation += 1
            while not waiter.is_done and not self._is_closed:
                self.run_once(waiter)
        finally:
            self._depth = depth
            waiter.resume = None
            self._pump = outer

    def _park(self, waiter: ThreadFuture) -> None:
        """Waits beside the pump until the future is set, or until the pump has left."""
        lock = allocate_lock()
        lock.acquire()
        place = (waiter, lock)
        mine = (1, get_ident())
        if waiter.parked is None:
            waiter.parked = []
        try:
            self._parked.append(place)
            waiter.parked.append(lock)
            if self._pump == self._background_thread_id:
                self._is_pump_requested = True  # if a caller pumps, each of its calls costs one thread switch less
                self._interrupt()
            try:
                self._release_lock()
                lock.acquire()
            finally:
                self._reacquire_lock(mine)
        finally:
            if lock in waiter.parked:
                waiter.parked.remove(lock)
            if place in self._parked:
                self._parked.remove(place)

    def _hand_over_pump(self) -> None:
        """Hands the pump over: to a waiting thread, else to the background thread after a quiet moment."""
        self._pump_generation += 1
        while self._parked:
            waiter, lock = self._parked.popleft()
            if not waiter.is_done:
                unpark(lock)
                return
        if self._is_background_asleep:
            self._is_background_asleep = False
            unpark(self._background_wakeup)
        if self._is_released:
            self._close_pipe()

    def _interrupt(self) -> None:
        """Interrupts the pump's poll, if it is another thread and polls."""
        if self._is_polling and self._pump != get_ident() and self._wake_write_fd >= 0:
            try:
                os.write(self._wake_write_fd, b"w")
            except (BlockingIOError, OSError):
                pass  # it has been woken already, or is gone

    # -- pumping

    def run_once(self, until: ThreadFuture | None = None) -> None:
        """Runs what is due, polls once, and runs what is ready. The lock is released only while polling."""
        before_wait = self.before_wait  # functions in attributes are called through a name: as methods they cost more
        before_wait()
        ready = self._ready
        for _ in range(len(ready)):  # what these add waits for the next turn: a chain must not starve others
            if ready:  # one that pumps within itself has run the others
                ready.popleft()()
        timers = self._timers
        timeout = MAX_POLL_SECONDS
        if timers:
            time = self.time
            now = time()
            if timers[0].time <= now:
                self._run_timers(now)
            if timers and timers[0].time - now < MAX_POLL_SECONDS:
                timeout = timers[0].time - now
        if self._is_closed or (until is not None and until.is_done):  # a nested wait may have settled it
            return
        self._is_polling = True  # before the last check: what another thread adds after it interrupts the poll
        if ready:
            timeout = 0.0
        let_go, poll, retake = self._release_lock, self._poll.poll, self._reacquire_lock
        mine = (1, get_ident())
        try:
            let_go()
            events = poll(timeout * 1000)
        finally:
            retake(mine)
            self._is_polling = False
        for fd, flags in events:
            if fd == self._wake_read_fd:
                os.read(fd, 4096)
                continue
            if flags & READ_EVENTS and (reader := self._readers.get(fd)) is not None:
                reader()
            if flags & WRITE_EVENTS and (writer := self._writers.get(fd)) is not None:
                writer()

    def _run_timers(self, now: float) -> None:
        from heapq import heappop

        timers = self._timers
        while timers and timers[0].time <= now:
            function = heappop(timers).function
            if function is not None:
                function()

    def start_background(self) -> None:
        """Starts the thread that pumps while no other thread waits."""
        if self._thread is None:
            from threading import Thread

            self._thread = Thread(target=self._run_background, name="becket link", daemon=True)
            self._thread.start()

    def _run_background(self) -> None:
        me = get_ident()
        with self._lock:
            self._background_thread_id = me
        seen = 0  # at once before the first call, and else when it was quiet since the last check
        while not self._is_closed:
            with self._lock:
                is_quiet = self._pump_generation == seen
                if is_quiet and not self._pump:
                    self._pump_in_background(me)
                    is_quiet = False
                # While one caller pumps for long there is nothing to do: it wakes this thread when it leaves.
                self._is_background_asleep = is_quiet and not self._is_closed
                pause = -1 if self._is_background_asleep else BACKGROUND_DELAY
                seen = self._pump_generation
            self._background_wakeup.acquire(timeout=pause)

    def _pump_in_background(self, me: int) -> None:
        self._pump = me
        try:
            while not self._is_closed and not self._is_pump_requested:
                self.run_once()
        except BaseException as error:
            log_internal_error(error)
        finally:
            self._is_pump_requested = False
            self._pump = 0
            self._hand_over_pump()

    def _register(self, fd: int) -> None:
        flags = (select.POLLIN if fd in self._readers else 0) | (select.POLLOUT if fd in self._writers else 0)
        if flags:
            self._poll.register(fd, flags)
        else:
            self._poll.unregister(fd)
        self._interrupt()

    def join(self) -> None:
        """Waits for the background thread and closes the loop's own resources. After `close`; may be called twice.

        Within the pump it cannot wait, as the pump holds the lock: the thread then closes the rest itself."""
        is_inside = self.owns_lock()
        with self.locked():
            self._is_released = True
            if not self._pump:
                self._close_pipe()
        if self._thread is not None and self._thread.ident != get_ident() and not is_inside:
            self._thread.join()

    def _close_pipe(self) -> None:
        for fd in (self._wake_read_fd, self._wake_write_fd):
            if fd >= 0:
                os.close(fd)
        self._wake_read_fd = self._wake_write_fd = -1


def unpark(lock: LockType) -> None:
    if lock.locked():
        try:
            lock.release()
        except RuntimeError:
            pass  # another thread was faster


def no_op() -> None:
    """Does nothing: the default of a link's callbacks."""
