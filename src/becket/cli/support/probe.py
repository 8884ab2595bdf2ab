"""`Probe`: starts a program, exchanges raw frames with it and records protocol violations.

Unlike a link this goes on after a mistake as long as it can, so that one run tells as much as possible. It plays the
host: what the program asks for is answered as an empty store would.
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
RESPONSE_GRACE: Final = 0.2  # seconds in which what a process wrote at its end arrives
EXIT_GRACE: Final = 2.0  # and in which one has ended that has closed all that it can write to
POLL_INTERVAL: Final = 0.05  # seconds between two looks whether a process has ended, of which its pipes need not tell
MOST_OUTPUTS: Final = 1_000
MAX_VIOLATIONS: Final = 20  # of one kind; a program that does something wrong does it again and again
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
    """What came back for one request. `result` is as it was sent, None where there is none."""

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
        self.strange: list[str] = []  # frames that are no messages, and answers that nobody asked for
        self.unknown: list[str] = []  # methods that the program called and that no host has
        self.outputs: list[Raw] = []  # what a command has put out
        self.stdout = b""  # the beginning of all that it wrote
        self.stderr = b""  # the end of what it wrote there
        self._framing = open_framing(dialect)
        self._waiting: dict[int, float] = {}
        self._responses: dict[int, ProbeResponse] = {}
        self._last_id = 0
        self._sent_methods: set[str] = set()
        self._outgoing = bytearray()  # what the program has not read yet
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            bufsize=0,
            start_new_session=True,  # so that all that it starts can be ended with it
        )
        self.pid = self._process.pid
        self._selector = selectors.DefaultSelector()
        for stream, take in ((self._process.stdout, self._on_stdout), (self._process.stderr, self._on_stderr)):
            assert stream is not None
            self._selector.register(stream, selectors.EVENT_READ, take)
        assert self._process.stdin is not None
        self._stdin = self._process.stdin.fileno()
        os.set_blocking(self._stdin, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    # -- speaking

    def request(self, method: str, params: object) -> int:
        """Sends a request and returns its id; without params where these are None."""
        self._last_id += 1
        id = self._last_id
        self._waiting[id] = monotonic()
        self._sent_methods.add(method)
        self._send({"jsonrpc": "2.0", "id": id, "method": method, **build_params_member(params)})
        return id

    def response(self, id: int, timeout: float) -> ProbeResponse | None:
        """Returns the response to a request, None where none comes within so many seconds, or never can."""
        self.pump(timeout, until=lambda: id in self._responses or self.frame_error is not None)
        return self._responses.get(id)

    def notify(self, method: str, params: object) -> None:
        """Sends a notification."""
        self._send({"jsonrpc": "2.0", "method": method, **build_params_member(params)})

    def _send(self, message: object) -> None:
        """Sends a message as soon as the program reads; one that asks much and reads nothing is not answered."""
        if len(self._outgoing) < MAX_SEND_QUEUE:
            self._outgoing += self._framing.encode(msgspec.json.encode(message))
            self._write()

    def _write(self) -> None:
        try:
            del self._outgoing[: os.write(self._stdin, self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:  # it has gone, or its stdin was closed
            self._outgoing.clear()

    def close_stdin(self) -> None:
        """Tells the program that nothing more will come."""
        assert self._process.stdin is not None
        self._outgoing.clear()
        self._stdin = -1
        self._process.stdin.close()

    # -- listening

    def pump(self, timeout: float, *, until: Callable[[], bool]) -> None:
        """Takes what the program writes, until something is so, the program is silent for good, or the time is over."""
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
        except JSON_ERRORS as error:
            self._add_violation(f"a frame that is no message: {quote(frame)} ({error})")
            return
        if "jsonrpc" not in message or bytes(message["jsonrpc"]) != b'"2.0"':
            self._add_violation(f'a message without `"jsonrpc": "2.0"`: {quote(frame)}')
        if isinstance(method, str):
            self._on_request(method, message.get("id"), message.get("params"))
        elif "id" in message:
            self._on_response(id, message, frame)
        else:
            self._add_violation(f"a message without a method and without an id: {quote(frame)}")

    def _on_request(self, method: str, id: Raw | None, params: Raw | None) -> None:
        if id is None:
            if method == COMMAND_OUTPUT.name and len(self.outputs) < MOST_OUTPUTS:
                self.outputs.append(params or Raw(b"null"))
            return
        if method in self._sent_methods:
            self._add_violation(f"it asks for `{method}`, as it was asked: does it send back what it reads?")
        elif method in CANNED_RESULTS:
            self._send({"jsonrpc": "2.0", "id": id, "result": CANNED_RESULTS[method]})
        else:
            if method not in self.unknown and len(self.unknown) < MAX_VIOLATIONS:
                self.unknown.append(method)
            error = {"code": UNKNOWN_METHOD, "message": f"unknown method: {method}"}
            self._send({"jsonrpc": "2.0", "id": id, "error": error})

    def _on_response(self, id: Any, message: dict[str, Raw], frame: bytes) -> None:
        if type(id) is not int or (id not in self._waiting and id not in self._responses):
            self._add_violation(f"an answer that nobody has asked for, with the id {truncate_repr(id, 64)}")
            return
        if id in self._responses:
            self._add_violation(f"a second answer with the id {id}")
            return
        if ("result" in message) == ("error" in message):
            self._add_violation(f"an answer must have either a result or an error: {quote(frame)}")
        error = msgspec.json.decode(message["error"]) if "error" in message else None
        if error is not None and not is_error(error):
            self._add_violation(f"an error must have a whole `code` and a `message`: {quote(frame)}")
        self._responses[id] = ProbeResponse(message.get("result"), error, monotonic() - self._waiting.pop(id))

    def _add_violation(self, text: str) -> None:
        if len(self.strange) < MAX_VIOLATIONS:
            self.strange.append(text)

    @property
    def stray(self) -> bytes:
        """The first line on stdout that is no frame."""
        framing = self._framing
        return framing.first_noise if isinstance(framing, ContentLength | JsonLines) else b""

    # -- the end

    def has_ended(self) -> bool:
        """Returns whether the process is no more, or is about to be."""
        return self.wait_exit(0.0 if self._selector.get_map() else EXIT_GRACE) is not None

    @property
    def exit_code(self) -> int | None:
        """How the process has ended, negative for a signal; None where it has not."""
        return self._process.poll()

    def wait_exit(self, timeout: float) -> int | None:
        """Returns the exit code, negative for a signal; None where the process goes on after so many seconds."""
        end = monotonic() + timeout
        self.pump(timeout, until=lambda: self._process.poll() is not None)
        try:
            code = self._process.wait(max(0.0, end - monotonic()))
        except subprocess.TimeoutExpired:
            return None
        self.pump(RESPONSE_GRACE, until=lambda: False)  # its last words
        return code

    def kill(self) -> None:
        """Ends the process and all that it has started."""
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
    """Returns the framing of a dialect, one that passes over text where there is such."""
    factory = dialect.framing
    if factory in (ContentLength, JsonLines):
        factory = partial(factory, skip_stray=True)
    return factory(DEFAULT_LIMITS)


def build_params_member(params: object) -> dict[str, object]:
    return {} if params is None else {"params": params}


def is_error(error: Any) -> bool:
    return is_object(error) and type(error.get("code")) is int and isinstance(error.get("message"), str)
