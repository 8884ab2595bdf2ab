"""An extension on the standard library alone: a tool, a command with output, and calls to the host.

It handles one request at a time. Requests that arrive while it waits for the host are handled afterwards.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from itertools import count as numbers_from
from typing import Any

Json = dict[str, Any]

TOOL = {
    "name": "count",
    "description": "Counts the words of a text, and keeps the count.",
    "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}

wire = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # what is printed from now on goes to stderr, and not between the frames
ids = numbers_from(1)
deferred: deque[Json] = deque()


class Rejected(Exception):
    """The error that a request gets, or that the host has responded with."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def send(message: Json) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    wire.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    wire.flush()


def receive() -> Json:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if not length:
        sys.exit(0)  # stdin has ended: the host is gone
    message: Json = json.loads(sys.stdin.buffer.read(length))
    return message


def call(method: str, params: Json) -> Any:
    id = next(ids)
    send({"id": id, "method": method, "params": params})
    while "method" in (message := receive()) or message["id"] != id:
        deferred.append(message)
    if "error" in message:
        raise Rejected(message["error"]["code"], message["error"]["message"])
    return message["result"]


class Pages:
    id = ""

    def handle(self, method: str, params: Json) -> Any:
        match method:
            case "initialize":
                if params["extension_protocol_version"] != 1:
                    raise Rejected(1008, "only version 1 is supported")
                self.id = params["plugin_id"]
                return {"protocol_version": 1, "capabilities": {"tools": [TOOL]}}
            case "tool.call" if params["name"] == "count":
                words = len(str(params["input"]["text"]).split())
                call("memory.append", {"namespace": self.id, "content": f"{words} words"})
                return words
            case "command.invoke" if params["command"] == "counts":
                found = call("memory.query", {"namespace": self.id, "limit": 10})
                for record in found["records"]:
                    self.put_out(params["request_id"], {"kind": "text", "content": record["content"]})
                return None
            case "tool.call" | "command.invoke":
                raise Rejected(-32602, "there is no such tool or command")
            case "shutdown":
                return None
            case _:
                raise Rejected(-32601, f"unknown method: {method}")

    def put_out(self, request_id: str, event: Json) -> None:
        send({"method": "command.output", "params": {"request_id": request_id, "event": event}})


pages = Pages()
while True:
    message = deferred.popleft() if deferred else receive()
    if "id" not in message or "method" not in message:
        continue  # a notification: unknown ones are ignored
    try:
        send({"id": message["id"], "result": pages.handle(message["method"], message.get("params") or {})})
    except Rejected as error:
        send({"id": message["id"], "error": {"code": error.code, "message": str(error)}})
    if message["method"] == "shutdown":
        break
