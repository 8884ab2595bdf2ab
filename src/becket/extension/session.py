"""One link between an extension and its host, from the handshake to the end: what may be asked when.

Before the host has said `initialize`, and once the end has begun, requests are answered with "not ready"; the functions
of the author that go with the start and the end run once each. Reading, writing and processes are others'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from becket.contract.handshake import (
    FEATURES,
    INITIALIZE,
    PROTOCOL_VERSION,
    SHUTDOWN,
    DeclaredCapability,
    Initialize,
    Initialized,
)
from becket.contract.shapes import is_object
from becket.errors import InvalidParams, Meaning, RpcError
from becket.extension.declarations import Declared, is_async
from becket.extension.faces import Routine
from becket.extension.handlers import Handlers, register
from becket.methods.descriptors import Method
from becket.methods.dispatch import FAILURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from becket.contract.handshake import Capabilities, HostInfo
    from becket.dialects.dialect import Dialect
    from becket.dialects.speech import Speech
    from becket.extension.faces import Face
    from becket.extension.foreign import ForeignWords
    from becket.extension.handlers import Serve
    from becket.extension.host_services import HostServices

__all__ = ["Outline", "Session"]


class Outline(Struct, frozen=True, eq=False):
    """What is known of a class of extensions when it is made."""

    declared: tuple[Declared, ...]
    overridden: frozenset[str]
    is_plain: bool
    """Whether it has no `async def`, and so needs no event loop."""


class State:
    """What a host is told that comes at the wrong time. (An enum would take a fifth of a millisecond to make.)"""

    NEW = "the host has not said initialize yet"
    STARTING = "it is starting"
    READY = "it has been initialized already"
    ENDING = "it is ending"


class Session:
    """The life of one link. The face has its peer from before the first byte is read."""

    def __init__(
        self, extension: Any, outline: Outline, face: Face, dialect: Dialect, when_ending: Callable[[], None]
    ) -> None:
        self.face = face
        self.params: Initialize | None = None
        self.refusal: str | None = None  # why this host cannot be served
        self._host: HostServices | None = None
        self._extension = extension
        self._outline = outline
        self._when_ending = when_ending
        self._state = State.NEW
        self._has_started = False
        self._handlers = Handlers(extension, outline.declared, outline.overridden, face, self.check_ready)
        self._foreign = None if dialect.contract is None else self._translate(dialect.contract())
        self.registry = self._handlers.registry if self._foreign is None else self._foreign.registry
        """All that the host may call."""
        self._register_life("on_start" in outline.overridden)
        self._ending = face.create_ending(self._run_on_stop) if "on_stop" in outline.overridden else None

    def _translate(self, speech: Speech) -> ForeignWords:
        from becket.extension.foreign import ForeignWords

        foreign = ForeignWords(speech, self._handlers.scene(self._declared()), self._handlers.registry)
        self.face.words = foreign.words
        return foreign

    def _register_life(self, has_on_start: bool) -> None:
        """Registers what begins and ends a session."""
        foreign = self._foreign
        # The version is looked at before the rest, of which another version may think differently.
        unread: Method[Any, Any] = Method(INITIALIZE.name if foreign is None else foreign.opening, Any, Any)
        register(self.registry, self.face, unread, self._initialize, thread=has_on_start)
        goodbye = SHUTDOWN if foreign is None else foreign.goodbye
        if goodbye is not None:
            register(self.registry, self.face, goodbye, self._shut_down, thread=False)
        if foreign is None:
            return
        for name, answer in foreign.queries():
            if name in self.registry:  # the author answers it
                continue
            is_early = name in foreign.always
            register(self.registry, self.face, Method(name, Any, Any), self._query(answer, is_early), thread=False)

    def _query(self, answer: Callable[[Any], Any], is_early: bool) -> Serve:
        async def serve(params: Any, ctx: Any) -> Any:
            if not is_early:
                self.check_ready()
            return answer(params)

        return serve

    def _declared(self) -> Capabilities:
        return self._handlers.capabilities(tuple[DeclaredCapability, ...](self._extension.capabilities))

    @property
    def host(self) -> HostServices:
        """What the host offers, for coroutines."""
        if self._host is None:
            # At first need: many extensions ask their host for nothing.
            from becket.extension.host_services import HostServices

            self._host = HostServices(self.face, self)
        return self._host

    @property
    def extension_id(self) -> str:
        """The id by which the host knows this extension; until it has said that, the extension's own."""
        own: str = self._extension.id
        return own if self.params is None else self.params.plugin_id

    @property
    def host_info(self) -> HostInfo | None:
        """Which program the host is, where it has said so."""
        return None if self.params is None else self.params.host

    def check_ready(self) -> None:
        """Raises the answer to a request that comes too early or too late."""
        if self._state != State.READY:
            raise self._not_ready()

    def _not_ready(self) -> RpcError:
        return RpcError(Meaning.NOT_READY, f"{self.extension_id} is not ready: {self._state}")

    # -- the start

    async def _initialize(self, given: Any, ctx: Any) -> Any:
        if self._state != State.NEW:
            raise self._not_ready()
        params = self._read(given) if self._foreign is None else self._read_foreign(self._foreign, given)
        self._state = State.STARTING
        self.params = params
        self.face.peer.agree(params.features)
        try:
            await self._run_on_start()
        except BaseException:
            if self._state == State.STARTING:
                self._state = State.NEW  # the host may try again
            raise
        if self._state != State.STARTING:
            raise self._not_ready()
        self._state = State.READY
        initialized = self._answer(params)
        return initialized if self._foreign is None else self._foreign.reply(initialized)

    def _answer(self, params: Initialize) -> Initialized:
        if not params.features:
            return Initialized(PROTOCOL_VERSION, self._declared())
        # What an author tells of the extension may take long, or fail: the host asks for that in a call of its own.
        info = None if "info" in self._outline.overridden else self._extension.info()
        declared = replace(self._declared(), hooks=self._handlers.subscriptions())
        own_id = "" if self._extension.id == params.plugin_id else self._extension.id
        return Initialized(PROTOCOL_VERSION, declared, FEATURES, info, own_id)

    def _read(self, given: Any) -> Initialize:
        version = given.get("extension_protocol_version") if is_object(given) else None
        if isinstance(version, int) and version != PROTOCOL_VERSION:
            text = f"{self.extension_id} speaks version {PROTOCOL_VERSION} of the extension protocol, not {version}"
            raise RpcError(Meaning.INCOMPATIBLE, text, {"supported": [PROTOCOL_VERSION]})
        try:
            return msgspec.convert(given, Initialize)
        except msgspec.ValidationError as error:
            from becket.typed.problems import find_problems

            raise InvalidParams(find_problems(given, Initialize)) from error

    def _read_foreign(self, foreign: ForeignWords, given: Any) -> Initialize:
        """Reads the first words of a host of another dialect; one that cannot be served is answered, and left."""
        try:
            return foreign.read(given)
        except RpcError as error:
            if error.meaning is Meaning.INCOMPATIBLE:  # any other it may try again
                self.refusal = error.message
                self.face.close_soon()
            raise

    async def _run_on_start(self) -> None:
        if "on_start" in self._outline.overridden:
            function = self._extension.on_start
            await self.face.perform(Routine(function, is_async(function)))
        self._has_started = True

    # -- the end

    async def _shut_down(self, params: Any, ctx: Any) -> Any:
        if self._begin_to_end() and self._ending is not None:
            await self._ending.come_within_call()
        self.face.close_soon()
        return None if self._foreign is None else self._foreign.farewell

    async def end(self) -> None:
        """Lets the extension finish; whoever comes second waits for the first."""
        if self._begin_to_end() and self._ending is not None:
            await self._ending.come()

    def _begin_to_end(self) -> bool:
        """Lets no more requests in, and returns whether it has started at all."""
        if self._state != State.ENDING:
            self._state = State.ENDING
            self._when_ending()
        return self._has_started

    async def _run_on_stop(self) -> None:
        function = self._extension.on_stop
        try:
            await self.face.perform(Routine(function, is_async(function)))
        except FAILURES as error:
            import logging

            logging.getLogger(f"becket.ext.{self.extension_id}").error("on_stop failed", exc_info=error)
