"""Decodes a transcript into steps: calls, responses, notifications and other events. Pure.

Responses are paired with their calls. What cannot be decoded becomes a step of its own kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import TypeAlias, assert_never

from msgspec import Raw, Struct
from msgspec.structs import replace

from becket.jsonrpc.codec import JsonCodec, normalize_id
from becket.jsonrpc.json_values import encode_json
from becket.jsonrpc.messages import Batch, Failure, Invalid, Malformed, Message, NotificationMessage, Request, Success
from becket.testing.transcripts.file_format import (
    ChildExited,
    EndClosed,
    FrameSent,
    LinkEnd,
    StrayBytes,
    TranscriptEntry,
)

__all__ = ["Decode", "StepKind", "StepReader", "TranscriptStep", "read_steps"]

Decode: TypeAlias = Callable[[LinkEnd, bytes], Message]
"""Returns the message in the body of a frame to one end; called for each frame in order, and never raises."""

Member: TypeAlias = Request | NotificationMessage | Success | Failure | Malformed | Invalid
PendingCalls: TypeAlias = dict[
    tuple[LinkEnd, bytes], tuple[str, float]
]  # receiver and id of the response: method and time of the call


class StepKind(StrEnum):
    """The kind of a step."""

    CALL = "call"
    RESPONSE = "response"
    ERROR = "error"
    NOTIFICATION = "notification"
    INVALID = "invalid"
    STRAY = "stray"
    CLOSED = "closed"
    EXIT = "exit"


class TranscriptStep(Struct, frozen=True, omit_defaults=True):
    """One message or event. `number` counts the entries of the transcript, from 1.

    A response has the method of its call, and the `seconds` that it took. `id` and `content` are JSON as it was
    sent: the params, the result or the error; a text for what is not a message. `to` is None for events without a
    receiver."""

    number: int
    at: float
    kind: StepKind
    to: LinkEnd | None = None
    method: str = ""
    id: str = ""
    seconds: float | None = None
    size: int = 0
    content: str = ""


def read_steps(entries: Iterable[TranscriptEntry], decode: Decode | None = None) -> Iterator[TranscriptStep]:
    """Yields the steps, in order; a batch is several steps with the same number.

    `decode` is `TranscriptDecoder(dialect).decode` for a dialect with another wire format than plain JSON-RPC."""
    reader = StepReader(decode)
    for entry in entries:
        yield from reader.read(entry)


class StepReader:
    """Decodes a session entry by entry, as it goes on; `decode` is that of `read_steps`."""

    def __init__(self, decode: Decode | None = None) -> None:
        self._decode = decode or decode_json_rpc()
        self._calls: PendingCalls = {}
        self._number = 0

    def read(self, entry: TranscriptEntry) -> Iterator[TranscriptStep]:
        """Yields the steps of an entry: several for a batch."""
        self._number += 1
        match entry:
            case FrameSent(at, to, body):
                message = self._decode(to, body)
                for member in message.members if isinstance(message, Batch) else [message]:
                    step = TranscriptStep(self._number, at, StepKind.INVALID, to, size=len(body))
                    yield pair_response(fill_step(step, member), to, self._calls)
            case StrayBytes(at, to, data):
                yield TranscriptStep(
                    self._number, at, StepKind.STRAY, to, size=len(data), content=data.decode(errors="replace")
                )
            case EndClosed(at, to):
                yield TranscriptStep(self._number, at, StepKind.CLOSED, to)
            case ChildExited(at, exit_code):
                yield TranscriptStep(self._number, at, StepKind.EXIT, content=str(exit_code))
            case _:
                assert_never(entry)


def decode_json_rpc() -> Decode:
    codec = JsonCodec()
    return lambda _, body: codec.decode(body)


def fill_step(step: TranscriptStep, message: Member) -> TranscriptStep:
    """Returns the step with the content of the message."""
    match message:
        case Request(id, method, params):
            return replace(step, kind=StepKind.CALL, id=text_of(id), method=method, content=text_of(params))
        case NotificationMessage(method, params):
            return replace(step, kind=StepKind.NOTIFICATION, method=method, content=text_of(params))
        case Success(id, result):
            return replace(step, kind=StepKind.RESPONSE, id=text_of(id), content=text_of(result))
        case Failure(id, code, text, data):
            error = {"code": code, "message": text} | ({} if data is None else {"data": data})
            return replace(step, kind=StepKind.ERROR, id=text_of(id), content=text_of(encode_json(error)))
        case Malformed(id, problem) | Invalid(id, _, problem):
            return replace(step, id=text_of(id), content=problem)
        case _:
            assert_never(message)


def pair_response(step: TranscriptStep, to: LinkEnd, calls: PendingCalls) -> TranscriptStep:
    """Remembers a call, and returns a response with its call's method and duration."""
    if step.kind is StepKind.CALL:
        calls[to.other, normalize_id(step.id.encode())] = step.method, step.at
    elif step.kind in (StepKind.RESPONSE, StepKind.ERROR):
        called = calls.pop((to, normalize_id(step.id.encode())), None)
        if called is not None:
            method, since = called
            return replace(step, method=method, seconds=round(step.at - since, 6))
    return step


def text_of(data: Raw | bytes | None) -> str:
    return "" if data is None else bytes(data).decode(errors="replace")
