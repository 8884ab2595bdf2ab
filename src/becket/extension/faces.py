"""How the functions of an extension are run, and how they reach the host: on an event loop, or without one.

What an extension does for its host is written once, as coroutines that wait for nothing but a face. On an event loop an
`async def` is awaited and a plain `def` runs in a worker; without one every function is plain and is simply called, and
the coroutines run through without ever waiting. A plain function gets objects whose methods return values; how these
come about is a `Wait`: at once, or by way of the loop's own thread.
"""

from __future__ import annotations

from _thread import LockType, allocate_lock
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from msgspec import Struct

from becket.errors import BecketError, LocalProtocolError
from becket.methods.descriptors import Notification

if TYPE_CHECKING:
    from typing import Protocol, TypeAlias

    from becket.extension.loop_face import AsyncFace
    from becket.extension.words import Words
    from becket.peer.blocking import BlockingContext, BlockingPeer

    Face: TypeAlias = "AsyncFace | BlockingFace"

    class Wait(Protocol):
        """Calls a function that returns an awaitable, waits for that, and returns what it comes to."""

        def __call__(self, function: Callable[P, Awaitable[T]], /, *arguments: P.args, **keywords: P.kwargs) -> T: ...


__all__ = ["BlockingEnding", "BlockingFace", "PlainEvents", "Routine", "can_log", "check_result", "run_now"]

P = ParamSpec("P")
T = TypeVar("T")


class Routine(Struct, frozen=True, eq=False):
    """A function of the author's, bound to its object, and how it is run."""

    function: Any
    is_async: bool
    inline: bool = False


class PlainEvents:
    """What a call tells its caller before it is answered, without an event loop; `Events` of the other face."""

    __slots__ = ("_context",)

    def __init__(self, context: BlockingContext) -> None:
        self._context = context

    async def notify(self, notification: Notification[Any], params: object) -> None:
        self._context.notify(notification, params)

    def tell_anyway(self, notification: Notification[Any], params: object) -> None:
        try:
            self._context.peer.notify(notification, params)
        except BecketError:
            pass


def run_now(function: Callable[P, Awaitable[T]], /, *arguments: P.args, **keywords: P.kwargs) -> T:
    """Runs a coroutine that never waits."""
    steps = function(*arguments, **keywords).__await__()
    try:
        next(steps)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise LocalProtocolError("something waits here that only an event loop can wait for")


class BlockingFace:
    """Plain functions alone, over a `BlockingPeer`."""

    is_blocking = True
    peer: BlockingPeer
    words: Words | None = None

    def __init__(self) -> None:
        self.run: Wait = run_now

    def runs_plainly(self) -> bool:
        return True

    async def perform(self, routine: Routine, /, *arguments: Any, **keywords: Any) -> Any:
        return check_result(routine, routine.function(*arguments, **keywords))

    def context_for(self, routine: Routine, context: Any) -> Any:
        return context

    def events_of(self, context: Any) -> PlainEvents:
        return PlainEvents(context)

    async def call(self, method: Any, params: Any, options: dict[str, Any]) -> Any:
        if self.words is None:
            return self.peer.call(method, params, **options)
        asked = self.words.ask(method, params)
        return asked.read(self.peer.call(asked.method, asked.params, **options))

    async def notify(self, method: Any, params: Any) -> None:
        self._tell(method, params)

    def _tell(self, method: Any, params: Any) -> None:
        if self.words is None:
            self.peer.notify(method, params)
        elif tale := self.words.tell(method, params):
            self.peer.notify(tale.method, tale.params)

    def can_log(self) -> bool:
        return can_log(self)

    def tell(self, notification: Notification[Any], params: object, otherwise: Callable[[], None]) -> None:
        try:
            self._tell(notification, params)
        except BecketError:
            otherwise()

    def listen(self, notification: Notification[Any], function: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
        def take(params: Any) -> None:
            run_now(function, params)

        self.peer.on(notification, thread=True)(take)

    def close_soon(self) -> None:
        """Closes the link from a thread of its own: from within a handler that is still to be answered."""
        # The reader holds the link's lock until the answer has left.
        start_thread(self.peer.close)

    def create_pause(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """Returns what ends a pause, from any thread, and what waits for that and reads on meanwhile."""
        from becket.peer.blocking_loop import BlockingWaiter

        waiter = BlockingWaiter()

        async def end_pause() -> None:
            waiter.set_result(None)

        async def pause() -> None:
            await waiter

        def wait() -> None:
            try:
                self.peer.run(pause())
            except RuntimeError:
                pass  # the link has ended meanwhile, and nobody reads any more

        return lambda: self.peer.run(end_pause()), wait

    def create_ending(self, work: Callable[[], Coroutine[Any, Any, None]]) -> BlockingEnding:
        return BlockingEnding(self, work)


class BlockingEnding:
    """What runs once at the end, in a thread: whoever reads goes on reading meanwhile."""

    def __init__(self, face: BlockingFace, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._face = face
        self._work = work
        self._lock = allocate_lock()
        self._is_over: LockType | None = None
        self._readers: list[Callable[[], None]] = []

    async def come(self) -> None:
        """Waits until it has run; the first who comes has it run."""
        with self._begun():
            pass

    async def come_within_call(self) -> None:
        """Waits in the thread that reads, and reads meanwhile: what runs may need answers of the host."""
        wake, wait = self._face.create_pause()
        self._readers.append(wake)
        if self._begun().locked():
            wait()

    def _begun(self) -> LockType:
        with self._lock:
            if self._is_over is None:
                self._is_over = allocate_lock()
                self._is_over.acquire()
                start_thread(self._run, self._is_over)
            return self._is_over

    def _run(self, is_over: LockType) -> None:
        try:
            run_now(self._work)
        finally:
            is_over.release()
            for wake in self._readers:
                wake()


def can_log(face: Face) -> bool:
    """Returns whether the host takes messages for its log over the link."""
    if face.words is None:
        return "log" in face.peer.features
    from becket.contract.log import LOG

    return face.words.can_tell(LOG)


def start_thread(function: Callable[..., object], *arguments: object) -> None:
    """Runs a function in a thread that nobody waits for."""
    from threading import Thread  # at the end of a program, which has imported it by then if it ever does

    Thread(target=function, args=arguments, name="becket end", daemon=True).start()


def check_result(routine: Routine, result: Any) -> Any:
    """Returns the result of a plain function; a coroutine is none, and nobody would ever run it."""
    if hasattr(result, "__await__"):
        if hasattr(result, "close"):
            result.close()
        name = getattr(routine.function, "__qualname__", repr(routine.function))
        raise TypeError(f"{name} is a plain `def` and returned something to await: make it `async def`")
    return result
