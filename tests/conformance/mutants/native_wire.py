"""Frames and messages of the native dialect, read as strictly as the specification says, but for the defects.

Standard library only. `native_child.py` and `native_host.py` share it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from defects import load_defects  # type: ignore[import-not-found]  # it stands beside this program

DEFECTS = load_defects()
HEADER_LIMIT, FRAME_LIMIT, ID_LIMIT, METHOD_LIMIT, BATCH_LIMIT = 4096, 4 << 20, 256, 1024, 50


class LinkEnded(Exception):
    """The bytes of the other peer cannot be read any further."""


class Rejected(Exception):
    """A request is rejected with this error."""

    def __init__(self, code: int, message: str, data: Any = None, id: Any = ...) -> None:
        super().__init__(message)
        self.code, self.data, self.id = code, data, id


# -- frames


def add_version(message: Any) -> None:
    for part in message if isinstance(message, list) else [message]:
        if isinstance(part, dict):
            part.setdefault("jsonrpc", "2.0")


def encode_frame(message: Any) -> bytes:
    """Returns the bytes of a message."""
    add_version(message)
    text = json.dumps(message, ensure_ascii=False)
    body = text.encode("utf-8", "surrogatepass")
    size = len(text) if DEFECTS.has("counts characters when writing") else len(body)
    return b"Content-Length: %d\r\n\r\n%b" % (size, body)


def leave(reason: str) -> bool:
    """Ends the link because of a bad header, unless the program has that defect: then the header is dropped."""
    if DEFECTS.has(f"forgives {reason}"):
        return False
    raise LinkEnded(reason)


def parse_header(block: bytes) -> int | None:
    """Returns the length; None if the block is to be dropped."""
    lines = block.split(b"\r\n")
    lengths: list[bytes] = []
    if DEFECTS.has("knows one header") and len(lines) > 1:
        return None
    if len(block) > HEADER_LIMIT:
        return None if not leave("a long header") else 0
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or b"\n" in line:
            return None if not leave("line feeds" if b"\n" in line else "stray text") else 0
        if name.lower() == b"content-length":
            is_known = not (
                (DEFECTS.has("no lower case") and name.islower()) or (DEFECTS.has("no upper case") and name.isupper())
            )
            if not is_known or (DEFECTS.has("no tabs") and b"\t" in value):
                return None
            if DEFECTS.has("needs a space") and not value.startswith(b" "):
                return None
            lengths.append(value.strip())
        elif name.lower() == b"content-type" and b"charset=" in value and b"utf-8" not in value:
            return None if not leave("a charset") else 0
    if not lengths:
        return None if not leave("no length") else 0
    if len(lengths) > 1:
        return None if not leave("equal lengths" if len(set(lengths)) == 1 else "different lengths") else 0
    if not lengths[0].isdigit():
        kind = (
            "a negative length" if lengths[0][:1] == b"-" else "a hex length" if lengths[0][:2] == b"0x" else "a word"
        )
        return None if not leave(kind) else 0
    if int(lengths[0]) > FRAME_LIMIT * 4:
        kind = "a terabyte" if len(lengths[0]) > 10 else "a gigabyte"
        if not DEFECTS.has("forgives " + kind):
            raise LinkEnded(kind)
    return int(lengths[0])


def read_frames(descriptor: int) -> Iterator[bytes]:
    """Yields the bodies of all frames until the pipe ends.

    Raises:
        LinkEnded: a header is invalid.
    """
    buffer = b""
    length: int | None = None
    while True:
        if length is None and b"\n\n" in buffer and b"\r\n\r\n" not in buffer[: buffer.index(b"\n\n")]:
            leave("line feeds")
            buffer = buffer.partition(b"\n\n")[2]
        if length is None and b"\r\n\r\n" in buffer:
            block, _, buffer = buffer.partition(b"\r\n\r\n")
            length = parse_header(block)
            continue
        if length is None and len(buffer) > HEADER_LIMIT * 2 and not DEFECTS.has("forgives a long header"):
            raise LinkEnded("too large")
        if length is not None and length > 500_000 and DEFECTS.has("has small frames"):
            raise LinkEnded("too large")
        need = length
        if length is not None and DEFECTS.has("counts characters when reading"):
            need = length + sum(byte & 0xC0 == 0x80 for byte in buffer[:length])
        if need is not None and len(buffer) >= need:
            body, buffer, length = buffer[:need], buffer[need:], None
            yield body
            if DEFECTS.has("one frame for each read"):
                buffer = b""
            continue
        if buffer and DEFECTS.has("one read for each frame"):
            buffer, length = b"", None
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            if buffer and DEFECTS.has("ignores the end inside a frame"):
                time.sleep(60)
            return
        buffer += chunk


# -- messages


def wrong(reason: str) -> int | None:
    return -32000 if DEFECTS.has(f"wrong code for {reason}") else None


def refuse(reason: str, code: int, id: Any = None) -> NoReturn:
    raise Rejected(wrong(reason) or code, reason, id=id)


def pairs_to_object(pairs: list[tuple[str, Any]]) -> Any:
    return Members(pairs)


class Members(dict[str, Any]):
    """An object that knows its members in order, also those that occur twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.names = [name for name, _ in pairs]


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def decode(body: bytes) -> Any:
    if not body:
        refuse("an empty body", -32700)
    if DEFECTS.has("no white space") and body[:1] not in b"{[":
        refuse("white space", -32700)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        refuse("overlong UTF-8" if b"\xc0" in body else "invalid UTF-8", -32700)
    try:
        decoder = json.JSONDecoder(object_pairs_hook=pairs_to_object, parse_constant=refuse_constant)
        message = decoder.decode(text)
        if "\\ud" in text and has_lone_surrogate(message) and not DEFECTS.has("writes lone surrogates"):
            raise ValueError("a lone surrogate")
        return message
    except (ValueError, RecursionError) as error:
        refuse(describe(text, error), 1004 if isinstance(error, RecursionError) else -32700)


def has_lone_surrogate(message: Any) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in json.dumps(message, ensure_ascii=False))


def describe(text: str, error: Exception) -> str:
    """Returns the reason for which a text is not JSON, by which a defect can be chosen."""
    if isinstance(error, RecursionError):
        return "very deep nesting"
    for sign, reason in (
        ("NaN", "NaN"),
        ("Infinity", "an infinity"),
        ("}\n{", "two lines"),
        ("}{", "two messages"),
        ("/*", "a comment"),
        (",}", "a trailing comma"),
        ("99999", "many digits"),
        ("{", "truncated JSON"),
    ):
        if sign in text:
            return reason
    return "no JSON"


def check_message(message: Any) -> None:
    if not isinstance(message, Members):
        refuse("a number", -32600)
    id = message.get("id")
    if message.names.count("id") > 1:
        refuse("two ids", -32600)
    if isinstance(id, bool):
        refuse("a boolean id", -32600)
    if isinstance(id, dict | list):
        refuse("an object as id", -32600)
    if isinstance(id, str) and len(id.encode("utf-8", "replace")) > ID_LIMIT:
        refuse("a long id", -32600)
    if message.names.count("method") > 1:
        refuse("two methods", -32600, id)
    if "jsonrpc" not in message:
        refuse("no version", -32600, id)
    if message["jsonrpc"] != "2.0":
        refuse("another version", -32600, id)
    if "method" not in message and "result" not in message and "error" not in message:
        refuse("no method", -32600, id)
    if "method" in message and not isinstance(message["method"], str):
        refuse("a number as method", -32600, id)
    if len(message.get("method", "")) > METHOD_LIMIT:
        if DEFECTS.has("exits at long names"):
            os._exit(6)
        refuse("a long method", -32600, id)
    if isinstance(message.get("params"), list) and len(message["params"]) > 50_000:
        refuse("many values", 1004, id)
    if depth_of(message) > 64:
        refuse("deep nesting", 1004, id)


def depth_of(value: Any) -> int:
    depth = 0
    level: list[Any] = [value]
    while level:
        depth += 1
        level = [
            part
            for one in level
            if isinstance(one, dict | list)
            for part in (one.values() if isinstance(one, dict) else one)
        ]
    return depth - 1


def read_batch(batch: list[Any], on_message: Callable[[Any, Any], None]) -> list[Any]:
    """Handles the messages of a batch and returns the responses.

    Raises:
        Rejected: the batch is empty or too large.
    """
    if not batch:
        refuse("an empty batch", -32600)
    if len(batch) > BATCH_LIMIT:
        refuse("a large batch", 1004)
    responses: list[Any] = []
    for part in batch:
        try:
            check_message(part)
        except Rejected as error:
            if not DEFECTS.has("skips invalid messages of a batch"):
                responses.append(to_error(None if error.id is ... else error.id, error))
            continue
        if "id" not in part and DEFECTS.has("responds to notifications in a batch"):
            responses.append({"id": None, "error": {"code": -32601, "message": "unknown"}})
        on_message(part, responses.append)
    add_version(responses)
    return responses


def to_error(id: Any, error: Rejected) -> dict[str, Any]:
    members: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        members["data"] = error.data
    return {"id": id, "error": members}
