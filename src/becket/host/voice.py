"""What a host says to one extension: the contract, in the words of the extension's dialect.

What a dialect has no word for is refused before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, Unpack

from msgspec import Struct

from becket.contract.tools import ToolCall
from becket.dialects.phrases import Saying, Scene, as_it_is
from becket.dialects.speech import Speech
from becket.errors import BecketError, NotSupported
from becket.methods.descriptors import Method
from becket.methods.streams import Stream
from becket.peer.outbound import DEFAULT, Unset
from becket.peer.peer import Peer
from becket.peer.streams import Gap

if TYPE_CHECKING:
    from becket.peer.options import StreamOptions

__all__ = ["EventStream", "SpokenStream", "Voice"]

E = TypeVar("E")
P = TypeVar("P")
R = TypeVar("R")


class EventStream(Protocol[E]):
    """Events that end with a result: those of a call (`CallStream`), or of a task of this program (`LocalStream`)."""

    @property
    def dropped(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    async def __aenter__(self) -> Any: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def __anext__(self) -> E | Gap: ...
    def take_ready(self) -> list[E | Gap]: ...
    def done(self) -> bool: ...
    async def result(self) -> Any: ...


class SpokenStream(Struct, Generic[E, R], frozen=True, eq=False):
    """A stream that is to be opened, its method and params as they travel, and how its result is read."""

    stream: EventStream[E]
    method: Stream[Any, Any, E]
    params: Any
    read: Callable[[Any], R]


class Voice:
    """The link to one extension, spoken to in the contract's methods. `speech` is None where those are its own.

    With `kills_at_once` nobody says goodbye."""

    def __init__(self, peer: Peer, speech: Speech | None, scene: Scene, *, kills_at_once: bool = False) -> None:
        self._kills_at_once = kills_at_once
        self.peer = peer
        self.speech = speech
        self.scene = scene

    def says(self, method: Method[Any, Any]) -> bool:
        """Returns whether the extension's dialect has a word for it."""
        return self.speech is None or method.name in self.speech.phrases

    def check(self, method: Method[Any, Any]) -> None:
        """Raises NotSupported for what cannot be said."""
        if self.speech is not None:
            self.speech.phrase_for(method.name)

    async def call(
        self, method: Method[P, R], params: P, *, returns: Any = None, timeout: float | Unset | None = DEFAULT
    ) -> R:
        """Makes a call and returns its result; `returns` is the type of the contract's own, where it is another.

        Raises:
            NotSupported: it cannot be said. Nothing was sent.
            RemoteError, CallTimeout, ConnectionLost, Busy, BadReply: as for any call.
        """
        if self.speech is None:
            wanted = method.result if returns is None else returns
            result: R = await self.peer.call(method.name, params, returns=wanted, timeout=timeout)
            return result
        phrase = self.speech.phrase_for(method.name)
        saying = phrase.say(params, self.scene)
        answer = await self.ask(saying, timeout)
        read: R = phrase.read(answer, saying, self.scene)
        return read

    def seal(self, call: ToolCall, meta: Mapping[str, Any] | None) -> ToolCall:
        """Returns the call of a tool with what the host says about it, where the dialect has a place for that.

        Raises:
            NotSupported: it has none, and something is to be said.
        """
        if self.speech is not None and self.speech.seal is not None:
            return self.speech.seal(call, meta, self.scene)
        if meta:
            name = "native" if self.speech is None else self.speech.dialect
            raise NotSupported("`meta` of a tool's call", f"the dialect `{name}` has no place for it")
        return call

    async def ask(self, saying: Saying, timeout: float | Unset | None = DEFAULT) -> Any:
        """Asks in the dialect's own words; of a stream, only what it comes to is of interest."""
        if isinstance(saying.method, Stream):
            return await self._run_through(saying, timeout)
        return await self.peer.call(saying.method, saying.params, timeout=timeout)

    async def _run_through(self, saying: Saying, timeout: float | Unset | None) -> Any:
        method: Any = saying.method
        options: StreamOptions = {} if isinstance(timeout, Unset) else {"timeout": timeout}
        async with self.peer.stream(method, saying.params, **options) as stream:
            return await stream.result()

    def stream(self, method: Stream[P, R, E], params: P, **options: Unpack[StreamOptions]) -> SpokenStream[E, R]:
        """Returns a call with events, to be opened.

        Raises:
            NotSupported: it cannot be said.
        """
        if self.speech is None:
            return SpokenStream(self.peer.stream(method, params, **options), method, params, as_it_is)
        phrase = self.speech.phrase_for(method.name)
        saying = phrase.say(params, self.scene)
        own: Any = saying.method
        return SpokenStream(
            self.peer.stream(own, saying.params, **options),
            own,
            saying.params,
            lambda answer: phrase.read(answer, saying, self.scene),
        )

    async def say_goodbye(self, timeout: float | None) -> None:
        """Asks the extension to end, and waits a moment for its answer; many end without one."""
        if self.peer.is_closed or self._kills_at_once:
            return
        saying = self._goodbye()
        if saying is None:
            return
        try:
            await self.peer.call(saying.method.name, saying.params, timeout=timeout)
            if self.speech is not None and self.speech.last_word is not None:
                word = self.speech.last_word(self.scene)
                await self.peer.notify(word.method, word.params)
        except BecketError:
            pass

    def _goodbye(self) -> Saying | None:
        if self.speech is None:
            from becket.contract.handshake import SHUTDOWN

            return Saying(SHUTDOWN)
        return None if self.speech.goodbye is None else self.speech.goodbye(self.scene)
