"""Turns messages into the bytes of a dialect and back, and reports every violation of its wire format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from becket.contract.json_narrowing import is_array, is_object
from becket.framing import ContentLength, Framing, FramingFactory, JsonLines, LengthPrefixed, SkippedFrame
from becket.limits import DEFAULT_LIMITS

__all__ = ["JsonWire", "Received", "WireCodec"]

LIMITS: Final = DEFAULT_LIMITS.but(frame=64 * 1024 * 1024)
FRAMINGS: Final[dict[str, FramingFactory]] = {
    "content-length": ContentLength,
    "json-lines": JsonLines,
    "lenient-content-length": partial(ContentLength, strict=False),
    "length-prefixed": LengthPrefixed,
}


class Received(Struct, frozen=True):
    """One frame of the program: the message, its text, and what is wrong with it."""

    text: str
    message: Any = None
    problem: str = ""
    is_tolerated: bool = False
    """Whether peers cope with the problem."""


class JsonWire:
    """Framed JSON, with the same rules in both directions."""

    def __init__(self, framing: str, *, has_version: bool = True, skips_text: bool = False) -> None:
        self._framing: Framing = FRAMINGS[framing](LIMITS)
        self._has_version = has_version
        self._skips_text = skips_text
        self._has_failed = False

    def encode(self, message: Any) -> bytes:
        """Returns the frame of a message; `jsonrpc` is added where the dialect has it."""
        return self.frame(self.write(message).encode())

    def write(self, message: Any) -> str:
        """Returns the JSON of a message."""
        if self._has_version:
            message = add_version(message)
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"))

    def frame(self, body: bytes) -> bytes:
        """Returns a frame with this body."""
        return self._framing.encode(body)

    def feed(self, data: bytes) -> Iterator[Received]:
        """Yields the messages that these bytes complete, and the violations in them."""
        for frame in self._framing.feed(data):
            if isinstance(frame, SkippedFrame):
                yield Received("", problem=str(frame.error))
            else:
                received = parse_frame(bytes(frame), has_version=self._has_version)
                is_skipped = self._skips_text and received.message is None
                yield replace(received, is_tolerated=True) if is_skipped else received
        if self._framing.error is not None and not self._has_failed:
            self._has_failed = True
            yield Received("", problem=f"stdout is not framed: {self._framing.error}")

    def end(self) -> str:
        """Returns what is wrong if the output ends here."""
        error = None if self._has_failed else self._framing.end()
        return f"the output ends inside a frame: {error}" if error else ""


class WireCodec(Protocol):
    """The messages of scripts as bytes, and back, for one connection."""

    def encode(self, message: Any) -> bytes:
        """Returns the frame of a message."""
        ...

    def write(self, message: Any) -> str:
        """Returns the text of a message, for conversations."""
        ...

    def frame(self, body: bytes) -> bytes:
        """Returns a frame with this body."""
        ...

    def feed(self, data: bytes) -> Iterator[Received]:
        """Yields the messages that these bytes complete, and the violations in them."""
        ...

    def end(self) -> str:
        """Returns what is wrong if the output ends here."""
        ...


def add_version(message: Any) -> Any:
    if is_array(message):
        return [add_version(part) for part in message]
    if is_object(message) and "jsonrpc" not in message:
        return {"jsonrpc": "2.0", **message}
    return message


def parse_frame(body: bytes, *, has_version: bool) -> Received:
    """Decodes a message strictly: UTF-8, JSON without duplicates, NaN and infinities, and the rules of JSON-RPC."""
    text = body.decode(errors="replace")
    try:
        message = json.loads(
            body.decode(), object_pairs_hook=unique_members, parse_constant=partial(reject_constant, "not JSON")
        )
    except (ValueError, RecursionError) as error:
        return Received(text, problem=f"not a JSON text in UTF-8: {error}")
    return Received(text, message, find_problem(message, has_version=has_version))


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object has a member twice")
    return members


def reject_constant(reason: str, constant: str) -> Any:
    raise ValueError(f"{constant} is {reason}")


def find_problem(message: Any, *, has_version: bool) -> str:
    """Returns the first rule of JSON-RPC that a message violates, or an empty text."""
    if is_array(message):
        if not message:
            return "an empty batch"
        return next(filter(None, (find_problem(part, has_version=has_version) for part in message)), "")
    if not is_object(message):
        return "a message must be an object"
    if has_version and message.get("jsonrpc") != "2.0":
        return 'a message must have `"jsonrpc": "2.0"`'
    if "method" in message:
        return find_request_problem(message)
    return find_response_problem(message, has_version=has_version)


def find_request_problem(message: dict[str, Any]) -> str:
    if not isinstance(message["method"], str):
        return "`method` must be a text"
    if "id" in message and not is_id(message["id"]):
        return "`id` must be a text, a number or null"
    if message.get("params", {}) is not None and not isinstance(message.get("params", {}), dict | list):
        return "`params` must be an object or an array"
    return ""


def find_response_problem(message: dict[str, Any], *, has_version: bool) -> str:
    if "id" not in message or not is_id(message["id"]):
        return "a response must have an id that is a text, a number or null"
    error = message.get("error")
    if ("result" in message) == (error is not None):
        return "a response must have either a result or an error"
    is_error = is_object(error) and type(error.get("code")) is int and isinstance(error.get("message"), str)
    if has_version and error is not None and not is_error:
        return "an error must have an integer `code` and a text `message`"
    return ""


def is_id(id: Any) -> bool:
    return id is None or (isinstance(id, str | int | float) and not isinstance(id, bool))
