"""`Replay`: plays one end of a transcript and reports where the other end differs. Pure.

The caller passes in received frames and sends what is returned. The recorded order is kept as far as it matters:
nothing is sent before all earlier frames have arrived. Concurrent messages of the other end may arrive in another
order, and its calls may have other ids.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from becket._text import join_pointer
from becket.contract.json_narrowing import is_array, is_object
from becket.dialects import PLAIN, Dialect
from becket.errors import JSON_ERRORS
from becket.jsonrpc.codec import normalize_id
from becket.jsonrpc.json_values import decode_json, encode_json
from becket.jsonrpc.messages import Batch, Failure, Message, NotificationMessage, Request, Success
from becket.testing.transcripts.decoder import TranscriptDecoder
from becket.testing.transcripts.file_format import EndClosed, FrameSent, LinkEnd, TranscriptEntry

__all__ = ["IGNORED_POINTERS", "Difference", "Replay", "find_differences"]

IGNORED_POINTERS: Final = ("/id", "/params/_meta")
"""What always differs between two runs: the ids of calls, and their remaining time."""

MAX_DIFFERENCES = 20  # of one message: more is noise
INTERNAL_PREFIX = "$/"  # notifications with this prefix belong to the implementation; their number does not matter
MatchKey: TypeAlias = tuple[str, str]


class Difference(Struct, frozen=True, omit_defaults=True):
    """A difference from the recording. `number` is that of the entry, None for what was not recorded at all.

    `message` names the message, `pointer` the location in it. `expected` and `found` are JSON; None if absent."""

    number: int | None
    message: str
    problem: str
    pointer: str = ""
    expected: str | None = None
    found: str | None = None


class ReceivedMessage(Struct, frozen=True):
    """A message, and the body of its frame."""

    message: Message
    body: bytes


class Replay:
    """Plays one end of a recording, by default the host.

    Pass received frames to `receive`, and send what `advance` returns. While `expected` is not None a message is
    missing; `skip_expected` goes on without it. `position` counts the entries that were played. `finish` reports
    what was received beyond the recording."""

    def __init__(
        self,
        entries: Sequence[TranscriptEntry],
        *,
        speaks_for: LinkEnd = LinkEnd.HOST,
        ignore: Iterable[str] = (),
        dialect: Dialect = PLAIN,
    ) -> None:
        self.differences: list[Difference] = []
        self.compared = 0
        self.is_closed = False
        self.position = 0
        self._entries = entries
        self._me = speaks_for
        self._ignore = [pointer.split("/")[1:] for pointer in (*IGNORED_POINTERS, *ignore)]
        recording = TranscriptDecoder(dialect)
        self._recorded = [
            recording.decode(each.to, each.body) if isinstance(each, FrameSent) else None for each in entries
        ]
        self._now = TranscriptDecoder(dialect)
        self._received: defaultdict[MatchKey, deque[ReceivedMessage]] = defaultdict(deque)
        self._ids: dict[bytes, bytes] = {}  # of their calls: recorded id to current id
        self._recorded_call_ids = {  # a response to any other call is sent unchanged
            normalize_id(message.id)
            for entry, message in zip(entries, self._recorded, strict=True)
            if isinstance(entry, FrameSent) and entry.to is speaks_for and isinstance(message, Request)
        }

    # -- progress

    @property
    def expected(self) -> str | None:
        """The message that must arrive before anything else is sent, or None."""
        return None if self._expected() is None else describe(self._message())

    @property
    def is_done(self) -> bool:
        """Whether the whole recording was played."""
        return self.position >= len(self._entries)

    def receive(self, body: bytes) -> None:
        """Records that the other end has sent this frame."""
        message = self._now.decode(self._me, body)
        if not is_internal_method(message):
            self._received[match_key(message)].append(ReceivedMessage(message, body))

    def advance(self) -> list[bytes]:
        """Advances as far as possible, and returns the frames to send. `is_closed`: nothing will follow."""
        sent: list[bytes] = []
        while not self.is_done:
            entry = self._entries[self.position]
            if isinstance(entry, FrameSent) and entry.to is self._me:
                if not self._match(entry):
                    break
            elif isinstance(entry, FrameSent):
                body = self._rewrite_id(self._message(), entry.body)
                if body is not None:
                    self._now.decode(self._me.other, body)
                    sent.append(body)
            elif isinstance(entry, EndClosed) and entry.to is not self._me:
                self.is_closed = True
            self.position += 1
        return sent

    def skip_expected(self, because: str) -> None:
        """Goes on without the expected message."""
        entry = self._expected()
        if entry is not None:
            self._report_missing(entry, because)
            self.position += 1

    def finish(self, because: str = "it was not sent") -> None:
        """Ends the replay: reports recorded messages that did not arrive, and extra ones."""
        while not self.is_done:
            self.advance()
            self.skip_expected(because)
        for waiting in self._received.values():
            for came in waiting:
                what, found = describe(came.message), text_of(came.body)
                self.differences.append(Difference(None, what, "it is not in the recording", found=found))
        self._received.clear()

    # -- one message

    def _message(self) -> Message:
        """Returns the recorded message at this position, or None."""
        message = self._recorded[self.position]
        assert message is not None
        return message

    def _expected(self) -> FrameSent | None:
        if self.is_done:
            return None
        entry = self._entries[self.position]
        return entry if isinstance(entry, FrameSent) and entry.to is self._me else None

    def _match(self, entry: FrameSent) -> bool:
        """Returns whether a recorded message need not be waited for any more."""
        recorded = self._message()
        if is_internal_method(recorded):
            return True
        waiting = self._received[match_key(recorded)]
        if not waiting:
            return False
        came = waiting.popleft()
        if isinstance(recorded, Request) and isinstance(came.message, Request):
            self._ids[normalize_id(recorded.id)] = came.message.id
        self._compare(ReceivedMessage(recorded, entry.body), came)
        return True

    def _compare(self, recorded: ReceivedMessage, came: ReceivedMessage) -> None:
        self.compared += 1
        number, what = self.position + 1, describe(recorded.message)
        values = [without(read(each), self._ignore) for each in (recorded, came)]
        for pointer, before, now in find_differences(*values):
            self.differences.append(Difference(number, what, "it is another", pointer, before, now))

    def _report_missing(self, entry: FrameSent, because: str) -> None:
        what = describe(self._message())
        self.differences.append(Difference(self.position + 1, what, because, expected=text_of(entry.body)))

    def _rewrite_id(self, message: Message, body: bytes) -> bytes | None:
        """Returns a recorded frame with the current id; None for the response to a call that was not made."""
        if not isinstance(message, Success | Failure):
            return body
        id = self._ids.pop(normalize_id(message.id), None)
        if id is None:
            return None if normalize_id(message.id) in self._recorded_call_ids else body
        if id == message.id:
            return body
        codec = self._now.codec_for(self._me)
        if isinstance(message, Success):
            return codec.encode_success(id, bytes(message.result))
        return codec.encode_failure(id, message.code, message.message, message.data)


def match_key(message: Message) -> MatchKey:
    """Returns the key by which two messages are the same: responses by id, all others by content."""
    match message:
        case Request(_, method):
            return "call", method
        case NotificationMessage(method):
            return "notification", method
        case Success(id) | Failure(id):
            return "response", normalize_id(id).decode(errors="replace")
        case Batch():
            return "batch", ""
        case _:
            return "invalid", ""


def describe(message: Message) -> str:
    """Returns a short description of a message."""
    match message:
        case Request(_, method):
            return f"the call {method}"
        case NotificationMessage(method):
            return f"the notification {method}"
        case Success(id) | Failure(id):
            return f"the response to {id.decode(errors='replace')}"
        case Batch(members):
            return f"a batch of {len(members)}"
        case _:
            return "something that is no message"


def is_internal_method(message: Message) -> bool:
    return isinstance(message, NotificationMessage) and message.method.startswith(INTERNAL_PREFIX)


# -- values


def read(came: ReceivedMessage) -> Any:
    """Returns the value of a body; if it is not JSON, its message, and if it is not a message, its text."""
    try:
        return decode_json(came.body)
    except JSON_ERRORS:
        pass
    match came.message:
        case Request(_, method, params):
            return {"method": method, "params": None if params is None else decode_json(params)}
        case Success(_, result):
            return {"result": decode_json(result)}
        case _:
            return came.body.decode(errors="replace")


def without(value: Any, pointers: Sequence[Sequence[str]]) -> Any:
    """Returns a value without the members at these pointers; `*` is any member or element."""
    for pointer in pointers:
        remove(value, pointer)
    return value


def remove(value: Any, pointer: Sequence[str]) -> None:
    first, *rest = pointer
    for name in [name for name in names_of(value) if first in ("*", str(name))]:
        if rest:
            remove(value[name], rest)
        elif is_object(value):
            del value[name]
        else:
            value[name] = None  # keeps the indexes of the others


def names_of(value: Any) -> list[Any]:
    if is_object(value):
        return [*value]
    return [*range(len(value))] if is_array(value) else []


def find_differences(expected: Any, found: Any, pointer: str = "") -> list[tuple[str, str | None, str | None]]:
    """Returns where two JSON values differ: a pointer and the two values as JSON, None for an absent one."""
    differences: list[tuple[str, str | None, str | None]] = []
    if is_object(expected) and is_object(found):
        for name in [*expected, *(name for name in found if name not in expected)]:
            at = join_pointer(pointer, name)
            if name in expected and name in found:
                differences += find_differences(expected[name], found[name], at)
            else:
                differences.append((at, encode_member(expected, name), encode_member(found, name)))
    elif is_array(expected) and is_array(found) and len(expected) == len(found):
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            differences += find_differences(one, other, f"{pointer}/{index}")
    elif expected != found or isinstance(expected, bool) != isinstance(found, bool):
        differences.append((pointer, text_of(encode_json(expected)), text_of(encode_json(found))))
    return differences[:MAX_DIFFERENCES]


def encode_member(members: dict[str, Any], name: str) -> str | None:
    return text_of(encode_json(members[name])) if name in members else None


def text_of(body: bytes) -> str:
    return body.decode(errors="replace")
