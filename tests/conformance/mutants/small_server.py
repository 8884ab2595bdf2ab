"""A small JSON server in the standard library, with the defects that it is given: the base of the dialects' programs.

A program subclasses `SmallServer` and responds to requests; each request runs in a thread of its own.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from defects import load_defects  # type: ignore[import-not-found]  # it stands beside this program

Message = dict[str, Any]
DEFECTS = load_defects()
TOOLS = ("echo", "add", "sleep", "block", "fail", "log", "progress", "print", "stderr", "text", "call")
SCHEMA = {"type": "object"}
LARGE = 500_000  # bytes


class Rejected(Exception):
    """A request is rejected with this code and text."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Cancelled(Exception):
    """The caller has cancelled the request."""


class Call:
    """One request that is served."""

    def __init__(self, id: Any, params: Any) -> None:
        self.id, self.params = id, params
        self.cancelled = threading.Event()

    def sleep(self, ms: float) -> None:
        if self.cancelled.wait(ms / 1000):
            raise Cancelled


class SmallServer:
    """Serves one connection on stdin and stdout."""

    is_lines = True
    has_version = True
    null_id_errors = True
    """Whether a frame that is no message gets an error with the id null."""

    def __init__(self) -> None:
        self._wire = os.dup(1)
        if not DEFECTS.has("prints to the wire"):
            os.dup2(2, 1)
        self._sending = threading.Lock()
        self.calls: dict[tuple[type, Any], Call] = {}
        self._own: dict[Any, list[Any]] = {}
        self._last_id = 0

    # -- what a dialect defines

    def serve(self, method: str, params: Any, call: Call) -> Any:
        """Returns the result of a request."""
        raise NotImplementedError

    def on_notification(self, method: str, params: Any) -> None:
        """Handles a notification; unknown ones are ignored."""

    def to_error(self, code: int, message: str) -> Any:
        return {"code": code, "message": message}

    # -- frames

    def run(self) -> None:
        if DEFECTS.has("ignores SIGTERM"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for body in self._read_lines() if self.is_lines else self._read_frames():
            if DEFECTS.has("exits on a large message") and len(body) > LARGE:
                os._exit(3)
            self._on_body(body)
        if DEFECTS.has("ignores the end"):
            time.sleep(120)
        if DEFECTS.has("waits for its calls") and self.calls:
            time.sleep(120)
        os._exit(0)

    def _chunks(self) -> Iterator[bytes]:
        while chunk := os.read(0, 1 << 16):
            yield chunk

    def _read_lines(self) -> Iterator[bytes]:
        ends = [b"\n"]
        ends += [b"\xe2\x80\xa8"] if DEFECTS.has("splits at U+2028") else []
        ends += [b"\xc2\x85"] if DEFECTS.has("splits at U+0085") else []
        split = re.compile(b"|".join(ends)).split
        buffer = b""
        for chunk in self._chunks():
            *lines, buffer = split(buffer + chunk)
            if DEFECTS.has("one frame for each read"):
                lines = lines[:1]
            if DEFECTS.has("one read for each frame"):
                buffer = b""
            for line in lines:
                if line.strip():
                    if DEFECTS.has("no carriage return") and line.endswith(b"\r"):
                        continue
                    yield line
                elif DEFECTS.has("exits on an empty line"):
                    os._exit(3)

    def _read_frames(self) -> Iterator[bytes]:
        buffer = b""
        for chunk in self._chunks():
            buffer += chunk
            while b"\r\n\r\n" in buffer:
                block, _, rest = buffer.partition(b"\r\n\r\n")
                lines = [line.split(b":") for line in block.split(b"\r\n")]
                if DEFECTS.has("knows one header") and len(lines) > 1:
                    os._exit(3)
                if DEFECTS.has("needs the length first") and lines[0][0] != b"Content-Length":
                    os._exit(3)
                (length,) = (int(line[1]) for line in lines if line[0] == b"Content-Length")
                need = length
                if DEFECTS.has("counts characters"):
                    need += sum(byte & 0xC0 == 0x80 for byte in rest[:length])
                if len(rest) < need:
                    break
                body, buffer = rest[:need], rest[need:]
                yield body
                if DEFECTS.has("one frame for each read"):
                    buffer = b""
            if DEFECTS.has("one read for each frame"):
                buffer = b""

    def write(self, message: Any) -> None:
        """Sends a message."""
        for one in DEFECTS.outgoing(message):
            if self.has_version and isinstance(one, dict):
                one.setdefault("jsonrpc", "2.0")
            body = json.dumps(one, ensure_ascii=DEFECTS.has("replaces characters")).encode()
            if DEFECTS.has("replaces characters"):
                body = re.sub(rb"\\u[0-9a-f]{4}", b"?", body)
            if DEFECTS.has("writes line feeds"):
                body = body.replace(b"\\n", b"\n")
            data = body + b"\n" if self.is_lines else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            with self._sending:
                while data:
                    data = data[os.write(self._wire, data) :]

    # -- messages

    def _on_body(self, body: bytes) -> None:
        try:
            message = json.loads(body.decode())
        except UnicodeDecodeError:
            self._on_bad("invalid UTF-8", -32700)
        except (ValueError, RecursionError) as error:
            self._on_bad("deep nesting" if isinstance(error, RecursionError) else "no JSON", -32700)
        else:
            if isinstance(message, list):
                self.on_batch(message)
            elif not isinstance(message, dict):
                self._on_bad("no message", -32600)
            elif self.has_version and message.get("jsonrpc") != "2.0":
                self._on_bad("no version", -32600, message.get("id"))
            elif isinstance(message.get("id"), dict | list):
                self._on_bad("an array as id", -32600)
            elif DEFECTS.has("no white space") and body[:1] != b"{":
                return
            else:
                self._on_message(message)

    def _on_bad(self, reason: str, code: int, id: Any = None) -> None:
        if DEFECTS.has(f"exits on {reason}"):
            os._exit(3)
        if self.null_id_errors:
            self.write({"id": id, "error": self.to_error(code, reason)})

    def on_batch(self, batch: list[Any]) -> None:
        self._on_bad("a batch", -32600)

    def _on_message(self, message: Any) -> None:
        message = DEFECTS.incoming(message)
        if message is None:
            return
        if DEFECTS.exits_on(message):
            os._exit(3)
        for sent in DEFECTS.extra(message):
            self.write(sent)
        id, params = message.get("id"), message.get("params")
        if "method" not in message:
            if id in self._own:
                self._own[id].append(message)
            elif DEFECTS.has("exits on an unknown response"):
                os._exit(3)
        elif "id" not in message:
            self.on_notification(message["method"], params)
        elif (code := DEFECTS.rejection(message)) is not None:
            self.write({"id": id, "error": self.to_error(code, "rejected")})
        elif DEFECTS.has("one thread"):
            self._respond(message["method"], Call(id, params))
        else:
            call = self.calls[type(id), id] = Call(id, params)
            threading.Thread(target=self._respond, args=(message["method"], call), daemon=True).start()

    def _respond(self, method: str, call: Call) -> None:
        try:
            response = {"id": call.id, "result": self.serve(method, call.params, call)}
        except Rejected as error:
            response = {"id": call.id, "error": self.to_error(error.code, str(error))}
        except Cancelled:
            response = {}
        self.calls.pop((type(call.id), call.id), None)
        if response:
            self.write(response)

    def request(self, method: str, params: Any) -> Any:
        """Calls the other peer and returns its response."""
        self._last_id += 1
        id = self._last_id
        received = self._own[id] = []
        self.write({"id": id, "method": method, "params": params})
        while not received:
            time.sleep(0.005)
        return received[0]

    # -- the tools of all dialects

    def run_tool(self, name: str, input: Any, call: Call) -> Any:
        """Returns the result of a tool of docs/conformance.md."""
        if name not in [f"conform_{tool}" for tool in TOOLS]:
            raise Rejected(-32602, f"unknown tool: {name}")
        if not isinstance(input, dict):
            raise Rejected(-32602, "the input must be an object")
        match name.removeprefix("conform_"):
            case "echo":
                return input.get("value")
            case "add":
                if type(input.get("a")) is not int or type(input.get("b")) is not int:
                    raise Rejected(-32602, "a and b must be integers")
                return input["a"] + input["b"]
            case "sleep":
                call.sleep(input["ms"])
                return "slept"
            case "block":
                time.sleep(input["ms"] / 1000)
                return "blocked"
            case "fail":
                raise Rejected(-32603, "the tool failed")
            case "log":
                self.log(input["message"])
                return "logged"
            case "progress":
                for number in range(1, input["count"] + 1):
                    self.progress(call, number)
                return input["count"]
            case "print":
                print(input["text"], flush=True)
                return "printed"
            case "stderr":
                sys.stderr.write("x" * input["size"])
                return "written"
            case "call":
                return self.request(input["method"], input["params"])
            case _:
                return "x" * input["size"]

    def log(self, message: str) -> None:
        """Sends a log message."""

    def progress(self, call: Call, number: int) -> None:
        """Reports progress."""


def unknown(method: str) -> NoReturn:
    raise Rejected(-32601, f"unknown method: {method}")


def list_tools(schema: str) -> list[Message]:
    """Returns the tools with their schema under this name."""
    return [{"name": f"conform_{name}", "description": f"The tool {name}.", schema: SCHEMA} for name in TOOLS]
