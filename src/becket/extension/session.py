"""One link between an extension and its host, from the handshake to the end: what may be asked when.

Before the host has said `initialize`, and once the end has begun, requests are answered with "not ready"; the functions
of the author that go with the start and the end run once each. Reading, writing and processes are others'.
"""

from __future__ import annotations

from _thread import LockType, allocate_lock, start_new_thread
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from becket.contract.handshake import (
    FEATURES,
    INITIALIZE,
    PROTOCOL_VERSION,
    SHUTDOWN,
    DeclaredCapability,
    Initialize,
    Initialized,
)
from becket.errors import Meaning, RpcError
from becket.extension.declarations import Declared, is_async
from becket.extension.faces import AsyncFace, BlockingFace, Face, Routine
from becket.extension.handlers import Handlers
from becket.extension.host_services import Host
from becket.methods.descriptors import Method
from becket.typed.decoding import decoder_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from becket.methods.registry import Registry

__all__ = ["Outline", "Session"]


class Outline(Struct, frozen=True, eq=False):
    """What is known of a class of extensions when it is made."""

    declared: tuple[Declared, ...]
    overridden: frozenset[str]
    is_plain: bool
    """Whether it has no `async def`, and so needs no event loop."""


class State(Enum):
    NEW = "the host has not said initialize yet"
    STARTING = "it is starting"
    READY = "it has been initialized already"
    ENDING = "it is ending"


class Spoken(Struct):
    """The one thing that every version of the protocol has in common."""

    extension_protocol_version: int


class Session:
    """The life of one link. The face has its peer from before the first byte is read."""

    def __init__(self, extension: Any, outline: Outline, face: Face, when_ending: Callable[[], None]) -> None:
        self.face = face
        self.host = Host(face, extension.id)
        self.params: Initialize | None = None
        self._extension = extension
        self._outline = outline
        self._when_ending = when_ending
        self._state = State.NEW
        self._has_started = False
        self._decode = decoder_for(INITIALIZE.params)
        self._handlers = Handlers(extension, outline.declared, outline.overridden, face, self.check_ready)
        # The version is looked at before the rest, of which another version may think differently.
        unread: Method[Any, Any] = Method(INITIALIZE.name, Raw, Any)
        self._handlers.add(unread, self._initialize, thread="on_start" in outline.overridden)
        if isinstance(face, AsyncFace):
            self._ending: AsyncEnding | BlockingEnding = AsyncEnding(face, self._run_on_stop)
        else:
            self._ending = BlockingEnding(face, self._run_on_stop)
        self._handlers.add(SHUTDOWN, self._shut_down, thread=False)

    @property
    def registry(self) -> Registry:
        """All that the host may call."""
        return self._handlers.registry

    @property
    def extension_id(self) -> str:
        extension_id: str = self._extension.id
        return extension_id

    def check_ready(self) -> None:
        """Raises the answer to a request that comes too early or too late."""
        if self._state is not State.READY:
            raise self._not_ready()

    def _not_ready(self) -> RpcError:
        return RpcError(Meaning.NOT_READY, f"{self.extension_id} is not ready: {self._state.value}")

    # -- the start

    async def _initialize(self, raw: Any, ctx: Any) -> Initialized:
        if self._state is not State.NEW:
            raise self._not_ready()
        self._check_version(raw)
        params: Initialize = self._decode(raw)
        self._state = State.STARTING
        self.params = params
        self.host.introduce(params)
        self.face.peer.agree(params.features)
        try:
            await self._run_on_start()
        except BaseException:
            if self._state is State.STARTING:
                self._state = State.NEW  # the host may try again
            raise
        if self._state is not State.STARTING:
            raise self._not_ready()
        self._state = State.READY
        capabilities = self._handlers.capabilities(tuple[DeclaredCapability, ...](self._extension.capabilities))
        return Initialized(PROTOCOL_VERSION, capabilities, FEATURES if params.features else ())

    def _check_version(self, raw: Raw) -> None:
        try:
            version = msgspec.json.decode(raw, type=Spoken).extension_protocol_version
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # the whole is decoded next, and all that is wrong with it is told then
        if version != PROTOCOL_VERSION:
            text = f"{self.extension_id} speaks version {PROTOCOL_VERSION} of the extension protocol, not {version}"
            raise RpcError(Meaning.INCOMPATIBLE, text, {"supported": [PROTOCOL_VERSION]})

    async def _run_on_start(self) -> None:
        if "on_start" in self._outline.overridden:
            function = self._extension.on_start
            await self.face.perform(Routine(function, is_async(function)))
        self._has_started = True

    # -- the end

    async def _shut_down(self, params: None, ctx: Any) -> None:
        await self._ending.come_within_call(self._begin_to_end())
        self.face.close_soon()

    async def end(self) -> None:
        """Lets the extension finish; whoever comes second waits for the first."""
        await self._ending.come(self._begin_to_end())

    def _begin_to_end(self) -> bool:
        """Returns whether there is anything to be run for the end."""
        if self._state is not State.ENDING:
            self._state = State.ENDING
            self._when_ending()
        return self._has_started and "on_stop" in self._outline.overridden

    async def _run_on_stop(self) -> None:
        function = self._extension.on_stop
        try:
            await self.face.perform(Routine(function, is_async(function)))
        except Exception as error:
            import logging

            logging.getLogger(f"becket.ext.{self.extension_id}").error("on_stop failed", exc_info=error)


class AsyncEnding:
    """What runs once at the end, on an event loop: to its end, whoever is cancelled meanwhile."""

    def __init__(self, face: AsyncFace, work: Any) -> None:
        self._face = face
        self._work = work
        self._is_over: Any = None

    async def come(self, has_work: bool) -> None:
        if self._is_over is not None:
            await self._is_over.wait()
        elif has_work:
            self._is_over = self._face.workers.create_event()
            await self._face.workers.run_to_end(self._run)

    come_within_call = come

    async def _run(self) -> None:
        try:
            await self._work()
        finally:
            self._is_over.set()


class BlockingEnding:
    """The same without an event loop: it runs in a thread, so that whoever reads goes on reading."""

    def __init__(self, face: BlockingFace, work: Any) -> None:
        self._face = face
        self._work = work
        self._lock = allocate_lock()
        self._is_over: LockType | None = None
        self._readers: list[Callable[[], None]] = []

    async def come(self, has_work: bool) -> None:
        if has_work:
            with self._begun():
                pass

    async def come_within_call(self, has_work: bool) -> None:
        """Waits in the thread that reads, and reads meanwhile: what runs may need answers of the host."""
        if has_work:
            wake, wait = self._face.create_pause()
            self._readers.append(wake)
            if self._begun().locked():
                wait()

    def _begun(self) -> LockType:
        with self._lock:
            if self._is_over is None:
                self._is_over = allocate_lock()
                self._is_over.acquire()
                start_new_thread(self._run, (self._is_over,))
            return self._is_over

    def _run(self, is_over: LockType) -> None:
        try:
            self._face.run(self._work)
        finally:
            is_over.release()
            for wake in self._readers:
                wake()
