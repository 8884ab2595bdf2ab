"""The long way from a frame to a message: whatever the bytes are, they are understood or refused with a reason.

The top level of a frame is looked at pair by pair, each member is judged by itself, and a refusal bears the id of its
message wherever one can be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from becket.errors import Meaning
from becket.limits import Limits
from becket.rpc.guards import Guard, find_duplicate
from becket.rpc.json_values import decode_json, decode_string
from becket.rpc.messages import NULL_ID, Batch, Failure, Invalid, Malformed, Message, Notification, Request, Success
from becket.wire.framing import Frame

__all__ = ["UNDECODABLE", "CarefulReader", "Decode", "readable_id", "readable_string", "without_null"]

Decode = Callable[[bytes], Message]

VERSION = "2.0"
ABSENT = Raw(b"")

# Parsing fails in three ways: malformed text, a value of another type, and text that is not UTF-8.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
decode_elements = msgspec.json.Decoder(list[Raw]).decode


class Outline(Struct, gc=False):
    """What any message has, for one that is not read further."""

    jsonrpc: Literal["2.0"]
    id: Raw = ABSENT
    method: str = ""
    result: Raw = ABSENT
    error: Raw = ABSENT


class ErrorObject(Struct):
    code: int
    message: Any = ""
    data: Raw | UnsetType = UNSET


class CarefulReader:
    """Reads the frames that are not as most are."""

    __slots__ = ("_guard", "_limits")

    def __init__(self, limits: Limits, guard: Guard) -> None:
        self._limits = limits
        self._guard = guard

    def read(self, frame: Frame, decode: Decode) -> Message:
        """Returns the message in `frame`; what is none comes back as `Invalid`. `decode` reads the members of a batch,
        most of which are as most messages are."""
        if len(frame) > self._guard.deep and (excess := self._guard.find_excess(frame)):
            return self.refuse(frame, excess)
        try:
            members = decode_members(frame)
        except msgspec.ValidationError:
            return self._decode_batch(frame, decode)
        except UNDECODABLE as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
        if len(members) > MEMBERS:
            return Invalid(NULL_ID, Meaning.TOO_LARGE, f"{len(members)} members, the limit is {MEMBERS}")
        twice = find_duplicate(bytes(frame), members)
        if twice is not None:
            id = NULL_ID if twice == "id" else readable_id(members.get("id"), self._limits)
            return Invalid(id or NULL_ID, Meaning.INVALID_REQUEST, f"duplicate member: {twice[:SHOWN]}")
        params = members.get("params")
        if params is not None and len(frame) - len(params) > MOST_BESIDE:
            members["params"] = params.copy()  # else it would keep the whole frame in memory, which nobody counts
        return self._classify(members)

    def _classify(self, members: dict[str, Raw]) -> Request | Notification | Success | Failure | Malformed | Invalid:
        if "method" not in members:
            return self._classify_answer(members)
        id = readable_id(members.get("id"), self._limits)
        if id is None and "id" in members:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, BAD_ID)
        problem = ""
        method = readable_string(members["method"], self._limits.method_bytes)
        if not is_version(members.get("jsonrpc")):
            problem = BAD_VERSION
        elif "result" in members or "error" in members:
            problem = "both a request and an answer"
        elif not method:
            problem = "the method is no name"
        if problem or method is None:
            return Invalid(id or NULL_ID, Meaning.INVALID_REQUEST, problem)
        params = without_null(members.get("params"))
        return Notification(method, params) if id is None else Request(id, method, params)

    def _classify_answer(self, members: dict[str, Raw]) -> Success | Failure | Malformed | Invalid:
        has_result = "result" in members
        error = without_null(members.get("error"))  # `error: null` beside a result is a habit of JSON-RPC 1.0
        is_answer = has_result or "error" in members
        id = readable_id(members.get("id"), self._limits)
        if id is None:
            if not is_answer:
                return Invalid(NULL_ID, Meaning.INVALID_REQUEST, BAD_ID if "id" in members else "no request, no answer")
            if error is None or has_result or "id" in members:
                return Malformed(NULL_ID, "an answer without an id that can be read")
            id = NULL_ID  # they could not tell what they are answering
        if not is_version(members.get("jsonrpc")):
            return Malformed(id, BAD_VERSION, is_answer=is_answer)
        if has_result and error is None:
            return Success(id, members["result"])
        if error is not None and not has_result:
            return self._failure(id, error)
        problem = "both result and error" if has_result else "neither method, result nor error"
        return Malformed(id, problem, is_answer=is_answer)

    def _failure(self, id: bytes, raw: Raw) -> Failure | Malformed:
        try:
            error = msgspec.json.decode(raw, type=ErrorObject)
            data: object = None
            if error.data is not UNSET:
                data = (
                    self._shorten(error.data) if len(error.data) > self._limits.error_data else decode_json(error.data)
                )
        except (*UNDECODABLE, msgspec.ValidationError) as problem:
            return Malformed(id, f"the error is no error object: {problem}")
        message = error.message if isinstance(error.message, str) else ""
        return Failure(id, error.code, message[: self._limits.error_data], data)

    def _shorten(self, data: Raw) -> str:
        return f"{bytes(data)[: self._limits.error_data].decode(errors='replace')}..."

    def _decode_batch(self, frame: Frame, decode: Decode) -> Message:
        try:
            elements = decode_elements(frame)
        except msgspec.ValidationError:
            return refuse_scalar(frame)
        except UNDECODABLE as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
        if not elements:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "an empty batch")
        if len(elements) > self._limits.batch:
            problem = f"a batch of {len(elements)}, the limit is {self._limits.batch}"
            return Invalid(NULL_ID, Meaning.TOO_LARGE, problem)
        members: list[Request | Notification | Success | Failure | Malformed | Invalid] = []
        for element in elements:
            if bytes(element)[:1] == b"{":
                member = decode(bytes(element))
                assert not isinstance(member, Batch)  # an object is never a batch
                members.append(member)
            else:
                members.append(Invalid(NULL_ID, Meaning.INVALID_REQUEST, "no object in a batch"))
        return Batch(members)

    def refuse(self, frame: Frame, problem: str) -> Malformed | Invalid:
        """Returns the refusal of a message that is too much to parse, under its id where that can be read."""
        try:
            outline = msgspec.json.decode(frame, type=Outline)
        except (*UNDECODABLE, msgspec.ValidationError):
            return Invalid(NULL_ID, Meaning.TOO_LARGE, problem)
        id = readable_id(outline.id, self._limits)
        if not outline.method and (outline.result or outline.error):
            return Malformed(id or NULL_ID, problem)
        return Invalid(id or NULL_ID, Meaning.TOO_LARGE, problem)


# -- ids, names, null

VERSION_TEXT = Raw(b'"2.0"')
BAD_VERSION = 'the member "jsonrpc" is not "2.0"'
BAD_ID = "the id is no string, number or null, or is too long"
MEMBERS = 64  # of one message; its unknown ones are passed over, but each costs a look
MOST_BESIDE = 4_096  # bytes of a frame that may be kept beside its params
SHOWN = 64  # characters of a name that somebody else chose


def is_version(raw: Raw | None) -> bool:
    return raw is not None and (raw == VERSION_TEXT or readable_string(raw, SHOWN) == VERSION)


def readable_id(raw: Raw | None, limits: Limits) -> bytes | None:
    """Returns the text of an id that JSON-RPC allows, None for any other value and for an absent one."""
    if raw is None:
        return None
    text = bytes(raw)
    is_string = text.startswith(b'"')
    if len(text) > limits.id_bytes + 2 * is_string:  # its quotes
        return None
    if text == NULL_ID or text.isdigit():
        return text
    if not is_string and not text[-1:].isdigit():  # an object, an array, a bool
        return None
    try:
        decode_json(text)  # a number may be beyond all that Python has, a string may be no UTF-8
    except UNDECODABLE:
        return None
    return text


def readable_string(raw: Raw, most: int) -> str | None:
    """Returns a string of at most so many bytes, None for any other value."""
    if len(raw) > most + 2:  # its quotes
        return None
    try:
        return decode_string(raw)
    except (*UNDECODABLE, msgspec.ValidationError):
        return None


def without_null(raw: Raw | None) -> Raw | None:
    """`params: null` comes from programs that mean none."""
    return None if raw is not None and len(raw) == 4 and bytes(raw) == b"null" else raw


def refuse_scalar(frame: Frame) -> Invalid:
    """Returns the refusal of what is neither an object nor an array. msgspec saw that before it saw the rest."""
    try:
        msgspec.json.decode(frame, type=Raw)  # to the last byte
        decode_json(frame)
    except msgspec.ValidationError:  # a number that Python has no room for is JSON all the same
        pass
    except UNDECODABLE as error:
        return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
    return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "neither an object nor a batch")
