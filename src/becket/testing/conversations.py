"""What was said in a conversation: each frame of a transcript as a call, an answer or a notification.

Answers are put beside the calls that they answer. Pure, and tolerant: what cannot be understood is said to be so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import TypeAlias, assert_never

from msgspec import Raw, Struct
from msgspec.structs import replace

from becket.rpc.codec import JsonCodec, key_of
from becket.rpc.json_values import encode_json
from becket.rpc.messages import Batch, Failure, Invalid, Malformed, Message, Notification, Request, Success
from becket.testing.transcripts import Closed, Ended, Entry, Frame, Side, Stray

__all__ = ["Decode", "Kind", "Step", "StepReader", "read_steps"]

Decode: TypeAlias = Callable[[Side, bytes], Message]
"""Returns the message in the body of a frame to one side; called for each of them in order, and never raises."""

Member: TypeAlias = Request | Notification | Success | Failure | Malformed | Invalid
Calls: TypeAlias = dict[tuple[Side, bytes], tuple[str, float]]  # whom the answer goes to, its id: the method, and when


class Kind(StrEnum):
    """What happened."""

    CALL = "call"
    ANSWER = "answer"
    ERROR = "error"
    NOTIFICATION = "notification"
    INVALID = "invalid"
    STRAY = "stray"
    CLOSED = "closed"
    EXIT = "exit"


class Step(Struct, frozen=True, omit_defaults=True):
    """One thing that was said or happened. `number` counts the entries of the transcript, from 1.

    An answer bears the method of its call, and how many `seconds` it took. `id` and `content` are JSON as it was sent:
    the params, the result or the error; of what is no message, a text. `to` is None where nobody said anything."""

    number: int
    at: float
    kind: Kind
    to: Side | None = None
    method: str = ""
    id: str = ""
    seconds: float | None = None
    size: int = 0
    content: str = ""


def read_steps(entries: Iterable[Entry], decode: Decode | None = None) -> Iterator[Step]:
    """Yields what was said, in order; a batch is several steps with the same number.

    `decode` is `Interpreter(dialect).read` where another dialect than JSON-RPC as it is written down was spoken."""
    reader = StepReader(decode)
    for entry in entries:
        yield from reader.read(entry)


class StepReader:
    """Reads a conversation entry by entry, as it goes on; `decode` is that of `read_steps`."""

    def __init__(self, decode: Decode | None = None) -> None:
        self._decode = decode or decode_json_rpc()
        self._calls: Calls = {}
        self._number = 0

    def read(self, entry: Entry) -> Iterator[Step]:
        """Yields what an entry says: several steps for a batch."""
        self._number += 1
        match entry:
            case Frame(at, to, body):
                message = self._decode(to, body)
                for member in message.members if isinstance(message, Batch) else [message]:
                    step = Step(self._number, at, Kind.INVALID, to, size=len(body))
                    yield pair(describe(step, member), to, self._calls)
            case Stray(at, to, data):
                yield Step(self._number, at, Kind.STRAY, to, size=len(data), content=data.decode(errors="replace"))
            case Closed(at, to):
                yield Step(self._number, at, Kind.CLOSED, to)
            case Ended(at, exit_code):
                yield Step(self._number, at, Kind.EXIT, content=str(exit_code))
            case _:
                assert_never(entry)


def decode_json_rpc() -> Decode:
    codec = JsonCodec()
    return lambda _, body: codec.decode(body)


def describe(step: Step, message: Member) -> Step:
    """Returns the step with what the message says."""
    match message:
        case Request(id, method, params):
            return replace(step, kind=Kind.CALL, id=text_of(id), method=method, content=text_of(params))
        case Notification(method, params):
            return replace(step, kind=Kind.NOTIFICATION, method=method, content=text_of(params))
        case Success(id, result):
            return replace(step, kind=Kind.ANSWER, id=text_of(id), content=text_of(result))
        case Failure(id, code, text, data):
            error = {"code": code, "message": text} | ({} if data is None else {"data": data})
            return replace(step, kind=Kind.ERROR, id=text_of(id), content=text_of(encode_json(error)))
        case Malformed(id, problem) | Invalid(id, _, problem):
            return replace(step, id=text_of(id), content=problem)
        case _:
            assert_never(message)


def pair(step: Step, to: Side, calls: Calls) -> Step:
    """Remembers a call, and returns an answer with what it answers."""
    if step.kind is Kind.CALL:
        calls[to.other, key_of(step.id.encode())] = step.method, step.at
    elif step.kind in (Kind.ANSWER, Kind.ERROR):
        called = calls.pop((to, key_of(step.id.encode())), None)
        if called is not None:
            method, since = called
            return replace(step, method=method, seconds=round(step.at - since, 6))
    return step


def text_of(data: Raw | bytes | None) -> str:
    return "" if data is None else bytes(data).decode(errors="replace")
