"""An extension on the standard library alone: a tool, a command with output, and calls to the host.

It handles one message at a time. Messages that arrive while it waits for the host are handled afterwards.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from itertools import count as numbers_from
from typing import Any, NoReturn, TypeGuard

Json = dict[str, Any]

TOOL = {
    "name": "count",
    "description": "Counts the words of a text, and keeps the count.",
    "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
LARGEST_FRAME = 4 * 1024 * 1024
LARGEST_BATCH = 50

wire = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # what is printed from now on goes to stderr, and not between the frames
ids = numbers_from(1)
deferred: deque[Any] = deque()


class Rejected(Exception):
    """The error that a message gets, or that the host has responded with."""

    def __init__(self, code: int, message: str, id: object = None, **data: object) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message[:200], **({"data": data} if data else {})}
        self.id = id

    def to_response(self) -> Json:
        return {"jsonrpc": "2.0", "id": self.id, "error": self.error}


# -- frames


def send(message: Json | list[Json]) -> None:
    body = json.dumps(message).encode()
    wire.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    wire.flush()


def receive() -> Any:
    """Returns the next message that is JSON. Others are rejected, and a broken frame ends the program."""
    while True:
        try:
            return parse(read_frame())
        except Rejected as error:
            send(error.to_response())


def read_frame() -> bytes:
    length = None
    while (line := sys.stdin.buffer.readline(4096)) != b"\r\n":
        name, separator, value = line.partition(b":")
        if not line:
            sys.exit(0)  # stdin has ended: the host is gone
        if not separator or not line.endswith(b"\r\n"):
            sys.exit("ERROR:pages:a line of a header has no colon, or no end")
        if name.lower() == b"content-length":
            if length is not None or not value.strip().isdigit():
                sys.exit("ERROR:pages:there must be one Content-Length, a number")
            length = int(value)
    if length is None or length > LARGEST_FRAME:
        sys.exit("ERROR:pages:a frame has no Content-Length, or is too large")
    body = sys.stdin.buffer.read(length)
    return body if len(body) == length else sys.exit(0)


def parse(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_constant=refuse_constant, object_pairs_hook=build_object)
    except (ValueError, RecursionError):
        raise Rejected(-32700, "parse error") from None


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def build_object(pairs: list[tuple[str, Any]]) -> Json:
    """Builds an object. Of a member that occurs twice no value can be trusted, so that it gets none that is valid."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        members |= {name: ... for name in ("id", "method") if names.count(name) > 1}
    return members


# -- messages


def is_object(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)


def is_batch(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def respond(message: Any) -> Json | None:
    """Returns the response to a message; a notification, and a response that nothing waits for, have none."""
    if is_object(message) and "method" not in message and ("result" in message or "error" in message):
        return None
    try:
        id, method, params = check_request(message)
    except Rejected as error:
        return error.to_response()
    try:
        result = pages.handle(method, params)
    except Rejected as error:
        error.id = id
        return error.to_response() if "id" in message else None
    return {"jsonrpc": "2.0", "id": id, "result": result} if "id" in message else None


def check_request(message: Any) -> tuple[Any, str, Any]:
    if not is_object(message):
        raise Rejected(-32600, "a message must be an object")
    id = message.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int | float | None) or len(str(id)) > 256:
        raise Rejected(-32600, "an id must be a short text, a number or null")
    if message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        raise Rejected(-32600, "a request needs a method, and the version 2.0", id)
    return id, message["method"], message.get("params")


def call(method: str, params: Json) -> Any:
    """Sends a request to the host and returns its result."""
    id = next(ids)
    send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    while True:
        message = receive()
        if is_object(message) and "method" not in message and message.get("id") == id:
            break
        deferred.append(message)
    if "error" in message:
        raise Rejected(message["error"]["code"], message["error"]["message"])
    return message["result"]


# -- the extension


class Pages:
    id = ""
    is_ending = False

    def handle(self, method: str, params: Any) -> Any:
        if method == "shutdown":
            self.is_ending = True
            return None
        if method not in ("initialize", "tool.call", "command.invoke"):
            raise Rejected(-32601, f"unknown method: {method}")
        try:
            if method == "initialize":
                return self.initialize(params)
            return self.call_tool(params) if method == "tool.call" else self.run_command(params)
        except (KeyError, TypeError) as problem:
            raise Rejected(-32602, f"invalid params: {problem}") from problem

    def initialize(self, params: Json) -> Json:
        if params["extension_protocol_version"] != 1:
            raise Rejected(1008, "only version 1 is supported", supported=[1])
        self.id = params["plugin_id"]
        return {"protocol_version": 1, "capabilities": {"tools": [TOOL]}}

    def call_tool(self, params: Json) -> int:
        if params["name"] != "count":
            raise Rejected(-32602, "invalid params: /name: there is no such tool")
        words = len(params["input"]["text"].split())
        call("memory.append", {"namespace": self.id, "content": f"{words} words"})
        return words

    def run_command(self, params: Json) -> None:
        if params["command"] != "counts":
            raise Rejected(-32602, "invalid params: /command: there is no such command")
        for record in call("memory.query", {"namespace": self.id, "limit": 10})["records"]:
            event = {"kind": "text", "content": record["content"]}
            params_of_event = {"request_id": params["request_id"], "event": event}
            send({"jsonrpc": "2.0", "method": "command.output", "params": params_of_event})


def respond_to_batch(batch: list[Any]) -> Json | list[Json] | None:
    if not 1 <= len(batch) <= LARGEST_BATCH:
        return Rejected(1004 if batch else -32600, "a batch has 1 to 50 messages").to_response()
    return [response for message in batch if (response := respond(message)) is not None] or None


pages = Pages()
while not pages.is_ending:
    received = deferred.popleft() if deferred else receive()
    response = respond_to_batch(received) if is_batch(received) else respond(received)
    if response is not None:
        send(response)
