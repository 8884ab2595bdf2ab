"""`Probe`: starts a program, exchanges raw frames with it and records protocol violations.

Unlike a connection it continues after a violation, so that one run finds as many problems as possible. It acts as the
host: calls of the program get responses as from an empty store.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from msgspec import Raw

from becket._text import quote, truncate_repr
from becket.contract.commands import COMMAND_OUTPUT
from becket.contract.config import CONFIG_GET, CONFIG_SET, CONFIG_SUBSCRIBE
from becket.contract.json_narrowing import is_object
from becket.contract.memory import MEMORY_APPEND, MEMORY_QUERY
from becket.dialects import Dialect
from becket.errors import ERROR_CODES, JSON_ERRORS, BadFrame, Meaning
from becket.framing import ContentLength, Framing, JsonLines, SkippedFrame
from becket.limits import DEFAULT_LIMITS

__all__ = ["Probe", "ProbeResponse"]

CHUNK: Final = 64 * 1024
RESPONSE_GRACE: Final = 0.2  # seconds to read the last output of an exited process
EXIT_GRACE: Final = 2.0  # seconds for a process to exit after it has closed stdout and stderr
POLL_INTERVAL: Final = 0.05  # seconds; polls for the exit, because pipes may stay open after it
MAX_OUTPUTS: Final = 1_000
MAX_VIOLATIONS: Final = 20  # of one kind; they tend to repeat
UNKNOWN_METHOD: Final = ERROR_CODES[Meaning.UNKNOWN_METHOD]
MAX_SEND_QUEUE: Final = 1 << 20  # bytes that a program may leave unread
CANNED_RESULTS: Final[dict[str, Any]] = {
    MEMORY_APPEND.name: {"ok": True, "timestamp_ms": 0},
    MEMORY_QUERY.name: {"records": []},
    CONFIG_GET.name: {"value": None},
    CONFIG_SET.name: {"ok": True},
    CONFIG_SUBSCRIBE.name: {"ok": True},
}


class ProbeResponse(msgspec.Struct, frozen=True):
    """The response to one request; `result` is the raw JSON, or None."""

    result: Raw | None
    error: Any
    seconds: float


class Probe:
    """One process, from its start to its end: `with Probe(command, dialect) as probe`.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(
        self, command: Sequence[str], dialect: Dialect, *, env: Mapping[str, str], cwd: str | None = None
    ) -> None:
        self.frame_error: BadFrame | None = None
        self.strange: list[str] = []  # invalid messages, and responses without a request
        self.unknown: list[str] = []  # methods that the program called and no host has
        self.outputs: list[Raw] = []  # output events of a command
        self.stdout = b""  # the first bytes
        self.stderr = b""  # the last bytes
        self._framing = open_framing(dialect)
        self._waiting: dict[int, float] = {}
        self._responses: dict[int, ProbeResponse] = {}
        self._last_id = 0
        self._sent_methods: set[str] = set()
        self._outgoing = bytearray()  # bytes that the program has not read yet
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            bufsize=0,
            start_new_session=True,  # so that its own children can be killed with it
        )
        self.pid = self._process.pid
        self._selector = selectors.DefaultSelector()
        for stream, handler in ((self._process.stdout, self._on_stdout), (self._process.stderr, self._on_stderr)):
            assert stream is not None
            self._selector.register(stream, selectors.EVENT_READ, handler)
        assert self._process.stdin is not None
        self._stdin = self._process.stdin.fileno()
        os.set_blocking(self._stdin, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    # -- sending

    def request(self, method: str, params: object) -> int:
        """Sends a request and returns its id; None sends no params."""
        self._last_id += 1
        id = self._last_id
        self._waiting[id] = monotonic()
        self._sent_methods.add(method)
        self._send({"jsonrpc": "2.0", "id": id, "method": method, **build_params_member(params)})
        return id

    def response(self, id: int, timeout: float) -> ProbeResponse | None:
        """Returns the response to a request, or None after a timeout, an exit or a framing error."""
        self.pump(timeout, until=lambda: id in self._responses or self.frame_error is not None)
        return self._responses.get(id)

    def notify(self, method: str, params: object) -> None:
        """Sends a notification."""
        self._send({"jsonrpc": "2.0", "method": method, **build_params_member(params)})

    def _send(self, message: object) -> None:
        """Queues a message; drops it if the program does not read and the queue is full."""
        if len(self._outgoing) < MAX_SEND_QUEUE:
            self._outgoing += self._framing.encode(msgspec.json.encode(message))
            self._write()

    def _write(self) -> None:
        try:
            del self._outgoing[: os.write(self._stdin, self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:  # the program has exited, or its stdin is closed
            self._outgoing.clear()

    def close_stdin(self) -> None:
        """Closes the program's stdin."""
        assert self._process.stdin is not None
        self._outgoing.clear()
        self._stdin = -1
        self._process.stdin.close()

    # -- receiving

    def pump(self, timeout: float, *, until: Callable[[], bool]) -> None:
        """Reads the program's output until `until()` is true, the output ends, or the timeout expires."""
        end = monotonic() + timeout
        while not until() and self._selector.get_map() and (left := end - monotonic()) > 0:
            for key, _ in self._selector.select(min(left, POLL_INTERVAL)):
                data = os.read(key.fd, CHUNK)
                if data:
                    key.data(data)
                else:
                    self._selector.unregister(key.fileobj)
            if self._outgoing:
                self._write()

    def _on_stderr(self, data: bytes) -> None:
        self.stderr = (self.stderr + data)[-DEFAULT_LIMITS.stderr_tail :]

    def _on_stdout(self, data: bytes) -> None:
        self.stdout = (self.stdout + data)[:CHUNK] if len(self.stdout) < CHUNK else self.stdout
        for frame in self._framing.feed(data):
            if not isinstance(frame, SkippedFrame):
                self._on_frame(bytes(frame))
        self.frame_error = self.frame_error or self._framing.error

    def _on_frame(self, frame: bytes) -> None:
        try:
            message = msgspec.json.decode(frame, type=dict[str, Raw])
            method = msgspec.json.decode(message.get("method", Raw(b"null")))
            id = msgspec.json.decode(message.get("id", Raw(b"null")))
            error = msgspec.json.decode(message["error"]) if "error" in message else None
        except JSON_ERRORS as problem:
            self._add_violation(f"a frame that is not a message: {quote(frame)} ({problem})")
            return
        if "jsonrpc" not in message or bytes(message["jsonrpc"]) != b'"2.0"':
            self._add_violation(f'a message without `"jsonrpc": "2.0"`: {quote(frame)}')
        if isinstance(method, str):
            self._on_request(method, message.get("id"), message.get("params"))
        elif "id" in message:
            self._on_response(id, message, error, frame)
        else:
            self._add_violation(f"a message without a method and without an id: {quote(frame)}")

    def _on_request(self, method: str, id: Raw | None, params: Raw | None) -> None:
        if id is None:
            if method == COMMAND_OUTPUT.name and len(self.outputs) < MAX_OUTPUTS:
                self.outputs.append(params or Raw(b"null"))
            return
        if method in self._sent_methods:
            self._add_violation(f"it calls `{method}`, a method that was called on it: does it echo its stdin?")
        elif method in CANNED_RESULTS:
            self._send({"jsonrpc": "2.0", "id": id, "result": CANNED_RESULTS[method]})
        else:
            if method not in self.unknown and len(self.unknown) < MAX_VIOLATIONS:
                self.unknown.append(method)
            error = {"code": UNKNOWN_METHOD, "message": f"unknown method: {method}"}
            self._send({"jsonrpc": "2.0", "id": id, "error": error})

    def _on_response(self, id: Any, message: dict[str, Raw], error: Any, frame: bytes) -> None:
        if type(id) is not int or (id not in self._waiting and id not in self._responses):
            self._add_violation(f"a response without a request, with the id {truncate_repr(id, 64)}")
            return
        if id in self._responses:
            self._add_violation(f"a second response with the id {id}")
            return
        if ("result" in message) == ("error" in message):
            self._add_violation(f"a response must have either a result or an error: {quote(frame)}")
        if error is not None and not is_error(error):
            self._add_violation(f"an error must have an integer `code` and a `message`: {quote(frame)}")
        self._responses[id] = ProbeResponse(message.get("result"), error, monotonic() - self._waiting.pop(id))

    def _add_violation(self, text: str) -> None:
        if len(self.strange) < MAX_VIOLATIONS:
            self.strange.append(text)

    @property
    def stray(self) -> bytes:
        """The first line on stdout that is not a frame."""
        framing = self._framing
        return framing.first_noise if isinstance(framing, ContentLength | JsonLines) else b""

    # -- exit

    def has_ended(self) -> bool:
        """Returns whether the process has exited; waits for it if its output has ended."""
        return self.wait_exit(0.0 if self._selector.get_map() else EXIT_GRACE) is not None

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._process.poll()

    def wait_exit(self, timeout: float) -> int | None:
        """Waits for the exit and returns the exit code, negative for a signal; None after a timeout."""
        end = monotonic() + timeout
        self.pump(timeout, until=lambda: self._process.poll() is not None)
        try:
            code = self._process.wait(max(0.0, end - monotonic()))
        except subprocess.TimeoutExpired:
            return None
        self.pump(RESPONSE_GRACE, until=lambda: False)  # its last output
        return code

    def kill(self) -> None:
        """Kills the process and its children."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        self.frame_error = self.frame_error or self._framing.end()

    @property
    def last_stderr_line(self) -> str:
        """The last line of its stderr."""
        return self.stderr.decode(errors="replace").strip().rpartition("\n")[2]


def open_framing(dialect: Dialect) -> Framing:
    """Returns the framing of a dialect, set to skip stray text if it can."""
    factory = dialect.framing
    if factory in (ContentLength, JsonLines):
        factory = partial(factory, skip_stray=True)
    return factory(DEFAULT_LIMITS)


def build_params_member(params: object) -> dict[str, object]:
    return {} if params is None else {"params": params}


def is_error(error: Any) -> bool:
    return is_object(error) and type(error.get("code")) is int and isinstance(error.get("message"), str)
