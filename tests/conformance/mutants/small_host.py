"""A small host in the standard library, with the defects that it is given: the base of the dialects' hosts.

It starts the command line in its second argument and those after it, and carries out the orders of the suite. A program
subclasses `SmallHost` and defines the handshake and the calls of its system.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from small_server import DEFECTS, Call, Message, SmallServer, unknown  # type: ignore[import-not-found]

FOREVER = 600.0  # seconds
SHUTDOWN_TIMEOUT = 2.0  # seconds
LARGEST = 4 * 1024 * 1024  # bytes of a frame
HEADER_END = re.compile(rb"\r\n\r\n" if DEFECTS.has("needs carriage returns") else rb"\r?\n\r?\n")
HEADER_LINE = re.compile(rb"\r?\n")


class CallFailed(Exception):
    """A call of the extension failed; the text says why."""


class LinkEnded(Exception):
    """The extension violated the framing."""


class SmallHost(SmallServer):
    """Hosts one extension: serves its requests in threads, and calls it from the main thread."""

    null_id_errors = False
    first_id = 1
    has_null_params = False
    is_bad_json_fatal = False
    next_call = ("", None)
    """The method and the params of an early call, for a defect."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._wire = self._child.stdin.fileno()
        self._input = self._child.stdout.fileno()
        self._errors = self._child.stderr.fileno()
        self._sending = threading.Lock()
        self._has_ended = threading.Event()
        self.calls: dict[tuple[type, Any], Call] = {}
        self._own: dict[Any, list[Any]] = {}
        self._last_id = self.first_id - 1

    # -- what a dialect defines

    def shake_hands(self) -> None:
        """Initializes the extension; raises CallFailed if it is refused."""
        raise NotImplementedError

    def call_tool(self, name: str, input: Any, timeout: float) -> Any:
        """Returns the result of a tool."""
        raise NotImplementedError

    def read_order(self, result: Any) -> Message:
        """Returns the order in the result of `conform_next`."""
        return result

    def request_shutdown(self) -> None:
        """Sends the last request, if the system has one."""

    def on_timeout(self, id: int, method: str) -> None:
        """Cancels a call, if the system can."""

    def serve(self, method: str, params: Any, call: Call) -> Any:
        unknown(method)

    def read_result(self, response: Message) -> Any:
        """Returns the result of a response; raises CallFailed if it is an error."""
        if response.get("error") is not None:
            raise CallFailed(response["error"].get("message"))
        return response.get("result")

    def carry_out(self, order: Message) -> Message:
        """Returns the outcome of an order."""
        timeout = order.get("timeout_ms", FOREVER * 1000) / 1000
        return {"result": self.call_tool(order["name"], order["input"], timeout)}

    # -- the link

    def _chunks(self) -> Iterator[bytes]:
        while chunk := os.read(self._input, 1 << 16):
            yield chunk

    def _read_frames(self) -> Iterator[bytes]:
        """Reads frames; lines of a header may end with a line feed alone."""
        buffer = b""
        for chunk in self._chunks():
            buffer += chunk
            while found := HEADER_END.search(buffer):
                length = find_length(HEADER_LINE.split(buffer[: found.start()]))
                if DEFECTS.has("counts characters"):
                    length += sum(byte & 0xC0 == 0x80 for byte in buffer[found.end() : found.end() + length])
                if len(buffer) < found.end() + length:
                    break
                body, buffer = buffer[found.end() : found.end() + length], buffer[found.end() + length :]
                yield body
                if DEFECTS.has("one frame for each read"):
                    buffer = b""
            if DEFECTS.has("one read for each frame"):
                buffer = b""

    def write(self, message: Any) -> None:
        try:
            super().write(message)
        except OSError:  # the extension is gone
            pass

    def _read(self) -> None:
        try:
            for body in self._read_lines() if self.is_lines else self._read_frames():
                if DEFECTS.has("exits on a large message") and len(body) > 500_000:
                    os._exit(9)
                self._on_body(body)
        except LinkEnded:
            if DEFECTS.has("responds to a bad header"):
                self.write({"id": None, "error": {"code": -32700, "message": "a bad header"}})
                return
            self._kill()
        if not DEFECTS.has("ignores the end of the output"):
            self._has_ended.set()

    def _on_bad(self, reason: str, code: int, id: Any = None) -> None:
        if self.is_bad_json_fatal and code == -32700 and not DEFECTS.has("forgives bad JSON"):
            raise LinkEnded
        super()._on_bad(reason, code, id)

    def _drain(self) -> None:
        while os.read(self._errors, 1 << 16) and not DEFECTS.has("never reads stderr"):
            pass

    def _kill(self) -> None:
        if not DEFECTS.has("never kills"):
            self._child.kill()

    # -- calls

    def call(self, method: str, params: Any, timeout: float = FOREVER, *, id: int | None = None) -> Any:
        """Returns the result of a call.

        Raises:
            CallFailed: there is no response in time, or an error, or the extension is gone.
        """
        if id is None:
            self._last_id += 0 if DEFECTS.has("reuses its ids") and self._last_id > self.first_id else 1
            id = self._last_id
        received = self._own[id] = []
        has_params = params is not None or self.has_null_params
        self.write({"id": id, "method": method, **({"params": params} if has_params else {})})
        end = time.monotonic() + timeout
        while not received and not self._has_ended.is_set() and time.monotonic() < end:
            time.sleep(0.002)
        self._own.pop(id, None)
        if received:
            return self.read_result(received[0])
        if not self._has_ended.is_set():
            self.on_timeout(id, method)
        raise CallFailed(f"{method}: no response")

    def run_orders(self) -> None:
        outcome: Message = {}
        while True:
            order = self.read_order(self.call_tool("conform_next", {"outcome": outcome}, FOREVER))
            if order["do"] == "stop":
                return
            try:
                outcome = self.carry_out(order)
            except CallFailed as error:
                outcome = {"error": str(error)}

    # -- the end

    def stop(self) -> None:
        """Ends the extension: the last request, the end of its stdin, SIGTERM, SIGKILL."""
        self.request_shutdown()
        if DEFECTS.has("never closes stdin"):
            time.sleep(60)
        os.close(self._wire)
        for end in (self._child.terminate, self._child.kill):
            try:
                self._child.wait(0.5)
            except subprocess.TimeoutExpired:
                if not DEFECTS.has("never kills"):
                    end()
        if DEFECTS.has("never kills"):
            time.sleep(60)
        self._child.wait()

    def main(self) -> None:
        for work in (self._read, self._drain):
            threading.Thread(target=work, daemon=True).start()
        try:
            if DEFECTS.has("calls before the handshake"):
                self.write({"id": 99, "method": self.next_call[0], "params": self.next_call[1]})
            self.shake_hands()
            self.run_orders()
        except CallFailed as error:
            print(error, file=sys.stderr)
            if DEFECTS.has("leaves the extension"):
                time.sleep(60)
            if not self._has_ended.is_set():
                self.stop()
            self._kill()
            if DEFECTS.has("hangs without its extension"):
                time.sleep(60)
            os._exit(1)
        self.stop()
        os._exit(4 if DEFECTS.has("ends with an error") else 0)


def find_length(lines: list[bytes]) -> int:
    """Returns the length in a header.

    Raises:
        LinkEnded: there is none, or it is too large.
    """
    if DEFECTS.has("needs the length first") and not lines[0].lower().startswith(b"content-length"):
        os._exit(9)
    lengths = [line.split(b":")[1] for line in lines if line.lower().startswith(b"content-length:")]
    if not lengths and DEFECTS.has("forgives no length"):
        return 2
    if not lengths or (int(lengths[-1]) > LARGEST and not DEFECTS.has("has no limit")):
        raise LinkEnded
    return int(lengths[-1])
