"""What the frames of a recorded conversation mean: as messages, and in the words of the contract.

Pure. A dialect's phrases say how the contract is spoken; here they are used the other way round, so that what was
recorded tells what each side must have wanted.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.contract.handshake import INITIALIZE, SHUTDOWN, Initialize, Initialized
from becket.contract.shapes import is_array, is_object
from becket.dialects.dialect import Dialect
from becket.dialects.handshakes import Greeted, Greeting, Introduction
from becket.dialects.phrases import Phrase, Saying, Scene, Tale
from becket.errors import BecketError, RemoteError, RpcError
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import EventReader, Gathering, Stream
from becket.rpc.codec import JsonCodec
from becket.rpc.messages import Failure, Message, Request, Success
from becket.testing.transcripts import Side
from becket.typed.decoding import decode_json, decoder_for, result_decoder

if TYPE_CHECKING:
    from becket.rpc.roles import Codec

__all__ = ["Asked", "Interpreter", "Vocabulary"]

CONTRACT = {method.name: method for method in METHODS}
TOLD = {notification.name: notification for notification in NOTIFICATIONS}


class Interpreter:
    """Reads the frames of both directions, in order, as the two sides read them."""

    def __init__(self, dialect: Dialect) -> None:
        self._codecs = {Side.HOST: open_codec(dialect), Side.CHILD: open_codec(dialect.of_extension())}

    def codec_of(self, side: Side) -> Codec:
        """Returns what this side reads and writes with."""
        return self._codecs[side]

    def read(self, to: Side, body: bytes) -> Message:
        """Returns the message in a frame."""
        message: Message = decode(self._codecs[to], body)
        writer = self._codecs[to.other]
        if not isinstance(writer, JsonCodec):  # one that tells messages by their place must know what was written
            note(writer, message)
        return message


def open_codec(dialect: Dialect) -> Codec:
    limits = dialect.limits
    return dialect.connection(limits).codec


def decode(codec: Any, body: bytes) -> Message:
    message: Message = codec.decode(body)
    return message


def note(codec: Codec, message: Message) -> None:
    match message:
        case Request(id, method, params):
            codec.encode_request(id, method, None if params is None else bytes(params))
        case Success(id, result):
            codec.encode_success(id, bytes(result))
        case Failure(id, code, text, data):
            codec.encode_failure(id, code, text, data)
        case _:
            pass


class Asked(Struct, frozen=True, eq=False):
    """A request of the contract, or one that only the dialect has a phrase for: then `contract` is the dialect's own
    method. `said` is it in the words of the dialect as the side that asks has it, with the types of its answer;
    `gathering` is there where events make the result."""

    contract: Method[Any, Any]
    params: Any
    said: Saying
    phrase: Phrase | None
    gathering: Gathering[Any, Any] | None = None

    @property
    def is_own(self) -> bool:
        """Whether only the dialect has it."""
        return self.contract.name not in CONTRACT

    def read_result(self, raw: Raw, scene: Scene) -> Any:
        """Returns the contract's result that an answer bears."""
        method = self.contract if self.phrase is None else self.said.method
        return self.read_value(result_decoder(method.result)(raw), scene)

    def read_value(self, value: Any, scene: Scene) -> Any:
        """Returns the contract's result of the dialect's own."""
        return value if self.phrase is None else self.phrase.read(value, self.said, scene)

    def reader_of(self, notification: str, params: Raw) -> EventReader[Any] | None:
        """Returns what reads this notification as an event of this request; None if it is none."""
        readers: Mapping[str, EventReader[Any]] = getattr(self.said.method, "events", {})  # a stream has them
        reader = readers.get(notification)
        if reader is None or (reader.belongs is not None and not reader.belongs(params, self.said.params)):
            return None
        return reader

    def find_failure(self, params: Raw, scene: Scene) -> str | None:
        """Returns the text of the error whose end is told by these params; None where no error's is."""
        assert self.phrase is not None
        assert self.phrase.end is not None
        told = decode_json(params)
        for text in find_texts(told):
            *_, last = self.phrase.end(None, RpcError(0, text), self.said, scene)
            if msgspec.to_builtins(last.params) == told:
                return text
        return None


def find_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_object(value) or is_array(value):
        for part in value.values() if is_object(value) else value:
            yield from find_texts(part)


class Found(Struct, frozen=True, eq=False):
    """A phrase under one of its names."""

    contract: Method[Any, Any]
    phrase: Phrase
    own: Method[Any, Any]
    is_own: bool


class Vocabulary:
    """The words of a dialect, looked up from what stands on the wire."""

    def __init__(self, dialect: Dialect) -> None:
        self.speech = None if dialect.contract is None else dialect.contract()

    @property
    def opening(self) -> str:
        """The first request of a host."""
        return INITIALIZE.name if self.speech is None else self.speech.welcome.opening.name

    def goodbye(self, scene: Scene) -> str | None:
        """The request that ends an extension; None where there is none."""
        if self.speech is None:
            return SHUTDOWN.name
        return None if self.speech.goodbye is None else self.speech.goodbye(scene).method.name

    @property
    def queries(self) -> frozenset[str]:
        """What an extension answers by itself."""
        return frozenset() if self.speech is None else frozenset(self.speech.welcome.queries)

    def read_opening(self, params: Raw | None, scene: Scene) -> Initialize | None:
        """Returns what a host says of itself and of the extension; None where no extension would take it."""
        try:
            if self.speech is None:
                opened: Initialize = decoder_for(Initialize)(params)
                return opened
            return self.speech.welcome.read(None if params is None else decode_json(params), scene)
        except (BecketError, TypeError, ValueError):
            return None

    @property
    def cancels(self) -> frozenset[str]:
        """The requests that end others."""
        phrases = () if self.speech is None else self.speech.phrases.values()
        return frozenset(phrase.cancelled_as.name for phrase in phrases if phrase.cancelled_as is not None)

    def greet(self, introduction: Introduction, answers: Iterator[Success | Failure]) -> Greeted | None:
        """Returns what an extension has declared by these answers; None where a host would not take them."""
        try:
            if self.speech is None:
                return greet_plainly(next(answers))
            steps = self.speech.greet(introduction)
            step = next(steps)
            while True:
                step = go_on(steps, step, next(answers)) if isinstance(step, Saying) else steps.send(NOTHING)
        except StopIteration as stop:  # of the greeting; or the recording ends before it
            return stop.value if isinstance(stop.value, Greeted) else None
        except (BecketError, ValueError):
            return None

    def ask(self, method: str, params: Raw | None, scene: Scene, handled: Container[str] = ()) -> Asked | None:
        """Returns what a request means; None where there is no phrase for it. `scene` is that of whoever asks.

        What both the contract and the dialect have is the contract's, unless it is `handled` as the dialect has it.

        Raises:
            BecketError, ValueError: its params cannot be read."""
        if self.speech is None:
            contract = CONTRACT.get(method)
            if contract is None:
                return None
            value = decode_params(contract, params)
            return Asked(contract, value, Saying(contract, value), None)
        found = sorted(
            self._find(method, scene),
            key=lambda one: (one.is_own is not (method in handled), not isinstance(one.contract, Stream)),
        )
        if not found:
            return None
        phrase, own = found[0].phrase, found[0].own
        meant = phrase.hear(Saying(own, decode_params(own, params)), scene)
        said = Saying(phrase.say(meant, scene).method, decode_params(own, params))
        stream: Any = said.method
        gather = stream.gather if isinstance(stream, Stream) else None
        return Asked(found[0].contract, meant, said, phrase, None if gather is None else gather(said.params))

    def knows(self, method: str, scene: Scene) -> bool:
        """Returns whether there is a phrase for a request of this name, whatever its params."""
        return method in CONTRACT if self.speech is None else any(self._find(method, scene))

    def meanings(self, method: str, scene: Scene) -> frozenset[str]:
        """Returns the contract's methods that are asked for under this name."""
        if self.speech is None:
            return frozenset()
        return frozenset(found.contract.name for found in self._find(method, scene) if not found.is_own)

    def _find(self, method: str, scene: Scene) -> Iterator[Found]:
        assert self.speech is not None
        for name, phrase in self.speech.phrases.items():
            for own in phrase.heard_as(scene):
                if own.name == method and (name in CONTRACT or name == method):
                    yield Found(CONTRACT.get(name, own), phrase, own, name not in CONTRACT)

    def tell(self, method: str, params: Raw | None, scene: Scene) -> tuple[Notification[Any], Any] | None:
        """Returns the contract's notification, and its params, for one that belongs to no request; None if it has
        none."""
        if self.speech is None:
            told = TOLD.get(method)
            return None if told is None else (told, decode_params(told, params))
        for name, tale in self.speech.tales.items():
            if tale.heard_as == method and name in TOLD:
                value = None if params is None else decode_json(params)
                return TOLD[name], tale.hear(value, scene)
        return None


NOTHING = Raw(b"null")


def greet_plainly(answer: Success | Failure) -> Greeted | None:
    if isinstance(answer, Failure):
        return None
    initialized: Initialized = result_decoder(Initialized)(answer.result)
    return Greeted(declared=initialized.capabilities, about=initialized.info)


def go_on(steps: Greeting, step: Saying, answer: Success | Failure) -> Saying | Tale:
    if isinstance(answer, Success):
        return steps.send(answer.result)
    error = RemoteError(method=step.method.name, code=answer.code, message=answer.message, data=answer.data)
    return steps.throw(error)


def decode_params(method: Method[Any, Any] | Notification[Any], params: Raw | None) -> Any:
    return None if method.params is None else decoder_for(method.params)(params)
