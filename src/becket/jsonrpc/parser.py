"""Parses any frame into a message, or rejects it with a reason and the id if readable.

The top level of a frame is walked pair by pair, each member is checked by itself, and a rejection carries the id of its
message if one can be read.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from becket.errors import JSON_ERRORS, Meaning
from becket.framing.framing import Frame
from becket.jsonrpc.json_values import decode_json, decode_string
from becket.jsonrpc.limit_checks import LimitChecker, find_duplicate
from becket.jsonrpc.messages import (
    NULL_ID,
    Failure,
    Invalid,
    Malformed,
    NotificationMessage,
    Request,
    SingleMessage,
    Success,
)
from becket.limits import Limits

__all__ = ["BatchMembers", "MessageParser", "null_to_none", "parse_id", "parse_string"]

BatchMembers = list[bytes | Invalid]
"""The members of a batch, each as a frame, or rejected if it is not an object."""

VERSION = "2.0"
ABSENT = Raw(b"")

# Parsing fails in three ways: malformed text, a value of another type, and text that is not UTF-8.

decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
decode_elements = msgspec.json.Decoder(list[Raw]).decode


class MessageOutline(Struct, gc=False):
    """The members of any message, for one that is not parsed further."""

    jsonrpc: Literal["2.0"]
    id: Raw = ABSENT
    method: str = ""
    result: Raw = ABSENT
    error: Raw = ABSENT


class ErrorObject(Struct):
    code: int
    message: Any = ""
    data: Raw | UnsetType = UNSET


class MessageParser:
    """Parses the frames that do not fit the fast path."""

    __slots__ = ("_guard", "_limits")

    def __init__(self, limits: Limits, guard: LimitChecker) -> None:
        self._limits = limits
        self._guard = guard

    def parse(self, frame: Frame) -> SingleMessage | BatchMembers:
        """Returns the message in `frame`, or the members of a batch; bytes that are no message are returned as
        `Invalid`."""
        if len(frame) > self._guard.safe_bytes and (excess := self._guard.find_problem(frame)):
            return self.reject(frame, excess)
        try:
            members = decode_members(frame)
        except msgspec.ValidationError:
            return self._split_batch(frame)
        except JSON_ERRORS as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
        if len(members) > MAX_MEMBERS:
            return Invalid(NULL_ID, Meaning.TOO_LARGE, f"{len(members)} members, the limit is {MAX_MEMBERS}")
        twice = find_duplicate(bytes(frame), members)
        if twice is not None:
            id = NULL_ID if twice == "id" else parse_id(members.get("id"), self._limits)
            return Invalid(id or NULL_ID, Meaning.INVALID_REQUEST, f"duplicate member: {twice[:MAX_NAME_SHOWN]}")
        params = members.get("params")
        if params is not None and len(frame) - len(params) > MAX_BESIDE:
            members["params"] = params.copy()  # else it would keep the whole frame in memory, uncounted
        return self._classify(members)

    def _classify(self, members: dict[str, Raw]) -> SingleMessage:
        if "method" not in members:
            return self._classify_response(members)
        id = parse_id(members.get("id"), self._limits)
        if id is None and "id" in members:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, BAD_ID)
        problem = ""
        method = parse_string(members["method"], self._limits.method_bytes)
        if not is_version(members.get("jsonrpc")):
            problem = BAD_VERSION
        elif "result" in members or "error" in members:
            problem = "both a request and a response"
        elif not method:
            problem = "the method is not a valid name"
        if problem or method is None:
            return Invalid(id or NULL_ID, Meaning.INVALID_REQUEST, problem)
        params = null_to_none(members.get("params"))
        return NotificationMessage(method, params) if id is None else Request(id, method, params)

    def _classify_response(self, members: dict[str, Raw]) -> Success | Failure | Malformed | Invalid:
        has_result = "result" in members
        error = null_to_none(members.get("error"))  # `error: null` beside a result is JSON-RPC 1.0
        is_response = has_result or "error" in members
        id = parse_id(members.get("id"), self._limits)
        if id is None:
            if not is_response:
                return Invalid(NULL_ID, Meaning.INVALID_REQUEST, BAD_ID if "id" in members else NO_MESSAGE)
            if error is None or has_result or "id" in members:
                return Malformed(NULL_ID, "a response without a readable id")
            id = NULL_ID  # the other peer could not read the request's id
        if not is_version(members.get("jsonrpc")):
            return Malformed(id, BAD_VERSION, is_response=is_response)
        if has_result and error is None:
            return Success(id, members["result"])
        if error is not None and not has_result:
            return self._parse_error(id, error)
        problem = "both result and error" if has_result else "neither method, result nor error"
        return Malformed(id, problem, is_response=is_response)

    def _parse_error(self, id: bytes, raw: Raw) -> Failure | Malformed:
        try:
            error = msgspec.json.decode(raw, type=ErrorObject)
            data: object = None
            if error.data is not UNSET:
                data = (
                    self._truncate(error.data) if len(error.data) > self._limits.error_data else decode_json(error.data)
                )
        except JSON_ERRORS as problem:
            return Malformed(id, f"the error is not an error object: {problem}")
        message = error.message if isinstance(error.message, str) else ""
        return Failure(id, error.code, message[: self._limits.error_data], data)

    def _truncate(self, data: Raw) -> str:
        return f"{bytes(data)[: self._limits.error_data].decode(errors='replace')}..."

    def _split_batch(self, frame: Frame) -> BatchMembers | Invalid:
        try:
            elements = decode_elements(frame)
        except msgspec.ValidationError:
            return reject_scalar(frame)
        except JSON_ERRORS as error:
            return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
        if not elements:
            return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "an empty batch")
        if len(elements) > self._limits.batch:
            problem = f"a batch of {len(elements)}, the limit is {self._limits.batch}"
            return Invalid(NULL_ID, Meaning.TOO_LARGE, problem)
        # Copies, since the params of one pending request would keep the whole frame in memory.
        texts = [bytes(element) for element in elements]
        return [text if text.startswith(b"{") else NOT_AN_OBJECT for text in texts]

    def reject(self, frame: Frame, problem: str) -> Malformed | Invalid:
        """Returns the rejection of a message that is too large to parse, under its id if that can be read."""
        try:
            outline = msgspec.json.decode(frame, type=MessageOutline)
        except JSON_ERRORS:
            return Invalid(NULL_ID, Meaning.TOO_LARGE, problem)
        id = parse_id(outline.id, self._limits)
        if not outline.method and (outline.result or outline.error):
            return Malformed(id or NULL_ID, problem)
        return Invalid(id or NULL_ID, Meaning.TOO_LARGE, problem)


# -- ids, names, null

VERSION_JSON = Raw(b'"2.0"')
BAD_VERSION = 'the member "jsonrpc" is not "2.0"'
NOT_AN_OBJECT = Invalid(NULL_ID, Meaning.INVALID_REQUEST, "a member of a batch is not an object")
BAD_ID = "the id is not a string, number or null, or is too long"
NO_MESSAGE = "neither a request nor a response"
MAX_MEMBERS = 64  # of one message; unknown ones are skipped, but each costs time
MAX_BESIDE = 4_096  # bytes of a frame that may be kept beside its params
MAX_NAME_SHOWN = 64  # characters of an untrusted name


def is_version(raw: Raw | None) -> bool:
    return raw is not None and (raw == VERSION_JSON or parse_string(raw, MAX_NAME_SHOWN) == VERSION)


def parse_id(raw: Raw | None, limits: Limits) -> bytes | None:
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
        decode_json(text)  # a number may exceed Python's range, a string may be no UTF-8
    except JSON_ERRORS:
        return None
    return text


def parse_string(raw: Raw, most: int) -> str | None:
    """Returns a string of at most so many bytes, None for any other value."""
    if len(raw) > most + 2:  # its quotes
        return None
    try:
        return decode_string(raw)
    except JSON_ERRORS:
        return None


def null_to_none(raw: Raw | None) -> Raw | None:
    """Returns None for null: some programs send `params: null` for none."""
    return None if raw is not None and len(raw) == 4 and bytes(raw) == b"null" else raw


def reject_scalar(frame: Frame) -> Invalid:
    """Returns the rejection of a frame that is neither an object nor an array. msgspec saw that before it saw the
    rest."""
    try:
        msgspec.json.decode(frame, type=Raw)  # to the last byte
        decode_json(frame)
    except msgspec.ValidationError:  # a number beyond Python's range is JSON all the same
        pass
    except JSON_ERRORS as error:
        return Invalid(NULL_ID, Meaning.PARSE_ERROR, f"not JSON: {error}")
    return Invalid(NULL_ID, Meaning.INVALID_REQUEST, "neither an object nor a batch")
