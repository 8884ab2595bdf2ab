"""`Session`: runs scripts over one link, step by step, and keeps what was received between the steps."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator, Sequence
from itertools import count
from time import monotonic, sleep
from typing import Any, Final, NamedTuple, cast

from becket.conformance.case import RoleSetup
from becket.conformance.conversation import CaseConversation, Sender
from becket.conformance.links import ExtensionLink, ProgramLink
from becket.conformance.matching import Variables, fill, find_mismatch, is_same
from becket.conformance.script import (
    CheckAlive,
    CloseOutput,
    ExpectEnd,
    ExpectExit,
    ExpectGone,
    ExpectMessage,
    ExpectSilence,
    Forbid,
    LeaveHost,
    Pause,
    ScriptStep,
    SendBody,
    SendBytes,
    SendMessage,
    SendSignal,
    SetTimeout,
    StayAlive,
    WriteStderr,
    unescape,
)
from becket.conformance.wire_codec import WireCodec
from becket.contract.json_narrowing import is_array, is_object
from becket.errors import ERROR_CODES, Meaning

__all__ = ["GRACE_SHARE", "CaseFailed", "Session"]

UNKNOWN_METHOD: Final = ERROR_CODES[Meaning.UNKNOWN_METHOD]
ORDERS: Final = "orders"  # the probe of a host that carries out orders: its next request for one
EXIT_POLL: Final = 0.02  # seconds
GRACE_SHARE: Final = 0.1  # of a timeout: how much longer something is expected after a sign that it will not come
CHUNK_PAUSE: Final = 0.005  # seconds between the chunks of a frame, so that a program reads each on its own
REPEAT: Final = re.compile(rb"%repeat\((\d+),(.*?)\)%", re.DOTALL)
LET: Final = re.compile(r'"\$let:[a-z_]+"')
FRAME: Final = re.compile(rb"%frame\((.*?)\)%", re.DOTALL)


class CaseFailed(Exception):
    """A step failed; the text says which, what was expected and what was received."""


class Arrived(NamedTuple):
    """A received message with its position in the order of arrival."""

    order: int
    message: Any


class Session:
    """One link, with the messages that no step has consumed yet."""

    def __init__(self, link: ProgramLink, wire: WireCodec, setup: RoleSetup, timeout: float) -> None:
        self.variables: Variables = {}
        self.conversation = CaseConversation()
        self.tolerated = ""
        """What the program did instead of what was expected, and is tolerated."""
        self._link = link
        self._wire = wire
        self._setup = setup
        self._default_timeout = self._timeout = timeout
        self._inbox: list[Arrived] = []
        self._arrived = count(1)
        self._last_matched = 0
        self._received: list[Any] = []  # of the current script, for `never`
        self._pending: list[Any] = []  # ids of requests without a response
        self._held: list[Arrived] = []  # requests of the program that wait for a step
        self._strays: list[Arrived] = []  # responses that belong to no request
        self._problem = ""  # the first violation of the wire format
        self._has_ended = False
        self._coming: Sequence[ScriptStep] = ()

    @property
    def is_reusable(self) -> bool:
        """Whether another case may use this link: nothing is wrong, and all requests but one for orders are over."""
        if self._pending or self._strays or self._problem or self._has_ended:
            return False
        orders = next(expectations(self._setup.probes.get(ORDERS, ())), None)
        return all(orders is not None and find_mismatch(orders.pattern, one.message, {}) is None for one in self._held)

    def begin(self, conversation: CaseConversation) -> None:
        """Begins a case on a link that may have been used before."""
        self.conversation = conversation
        self.tolerated = ""
        self._timeout = self._default_timeout
        self._inbox = [*self._held]
        self._received.clear()

    def run(self, steps: Sequence[ScriptStep], timeout: float | None = None) -> None:
        """Runs a script, with another timeout for its expectations if there is one.

        Raises:
            CaseFailed: a step failed, or the program violated the wire format.
        """
        before, self._timeout = self._timeout, timeout or self._timeout
        for at, step in enumerate(steps):
            self._coming = steps[at:]
            self._run_step(step)
        self._timeout = before
        self._coming = ()
        self._check_forbidden(steps)
        self._check_wire()

    def end(self) -> None:
        """Ends the link, kills the program and notes the end of its stderr."""
        self._link.kill()

    def kill(self) -> None:
        """Kills the program; what waits for it sees the end of the link."""
        self._link.send_signal(signal.SIGKILL)

    def note_stderr(self) -> None:
        """Adds the end of the program's stderr to the conversation."""
        if text := self._link.stderr.strip():
            self.conversation.note(f"stderr: {text[-600:]}")

    # -- steps

    def _run_step(self, step: ScriptStep) -> None:
        match step:
            case SendMessage():
                self._send_copies(step)
            case SendBody(text):
                body = expand(text)
                self._send(self._wire.frame(body), f"body: {format_bytes(body)}")
            case SendBytes(text):
                data = FRAME.sub(lambda found: self._wire.encode(json.loads(found[1])), expand(text))
                self._send(data, f"bytes: {format_bytes(data)}")
            case ExpectMessage():
                self._expect_copies(step)
            case ExpectSilence():
                self._expect_silence(step)
            case ExpectEnd(tolerated):
                self._expect_end(tolerated)
            case ExpectExit():
                self._expect_exit(step)
            case CloseOutput():
                self._link.close_output()
                self.conversation.note("the suite closes its end of the link")
            case SendSignal(name):
                self._link.send_signal(getattr(signal, f"SIG{name}"))
                self.conversation.note(f"the suite sends SIG{name}")
            case LeaveHost() | StayAlive() | WriteStderr() | ExpectGone():
                self._act_as_extension(step)
            case Pause(seconds):
                self._read_until(lambda: False, seconds)
            case SetTimeout(seconds):
                self._timeout = max(seconds, self._default_timeout)
            case CheckAlive():
                before = self._coming
                self.run(self._setup.alive)
                self._coming = before
            case Forbid():
                pass

    def _act_as_extension(self, step: LeaveHost | StayAlive | WriteStderr | ExpectGone) -> None:
        link = cast("ExtensionLink", self._link)
        match step:
            case LeaveHost(code):
                self.conversation.note(f"the extension exits with code {code}")
                link.leave(code)
            case StayAlive():
                link.stay()
            case WriteStderr(text):
                self.conversation.note(f"the extension writes to stderr: {text}")
                link.write_stderr(expand(text))
            case ExpectGone(seconds):
                if not link.wait_gone(seconds):
                    raise CaseFailed(f"the host has not ended the extension within {seconds:g} s")
                self.conversation.note("the extension was ended")

    def _send_copies(self, step: SendMessage) -> None:
        for number in range(1, step.count + 1):
            message = fill(step.message, {**self.variables, "n": number})
            self._note_sent(message)
            data = self._wire.encode(message)
            self.conversation.add(Sender.SUITE, self._wire.write(message))
            size = step.chunk or len(data)
            for at in range(0, len(data), size):
                self._link.write(data[at : at + size])
                if step.chunk:
                    sleep(CHUNK_PAUSE)  # without reading: a response of the suite must not get between two chunks

    def _note_sent(self, message: Any) -> None:
        for part in message if is_array(message) else [message]:
            if is_object(part) and "id" in part:
                if "method" in part:
                    self._pending.append(part["id"])
                else:
                    self._held = [held for held in self._held if not is_same(held.message["id"], part["id"])]

    def _send(self, data: bytes, text: str) -> None:
        self.conversation.add(Sender.SUITE, text)
        self._link.write(data)

    def _expect_copies(self, step: ExpectMessage) -> None:
        for number in range(1, step.count + 1):
            self.variables["n"] = number
            self._expect(step)

    def _expect(self, step: ExpectMessage) -> None:
        timeout = self._timeout if self._last_matched else max(self._timeout, self._setup.start_timeout)
        end = monotonic() + timeout
        while True:
            problem = self._take_match(step)
            if problem is None:
                return
            end = self._find_deadline(end, step.tolerated)
            left = end - monotonic()
            if problem or self._problem or self._has_ended or left <= 0:
                self._fail_unless_tolerated(self._explain(step, problem, timeout), step.tolerated)
                return
            self._read(left)

    def _find_deadline(self, end: float, tolerated: Sequence[ScriptStep]) -> float:
        """Returns when to stop waiting: soon, if a message has arrived that is tolerated instead."""
        for step in tolerated:
            if isinstance(step, ExpectMessage):
                for _, message in self._inbox:
                    if find_mismatch(step.pattern, message, dict(self.variables)) is None:
                        return min(end, monotonic() + self._timeout * GRACE_SHARE)
        return end

    def _take_match(self, step: ExpectMessage) -> str | None:
        """Consumes the message of a pattern. Returns None, the difference, or an empty text if none has arrived."""
        for at, arrived in enumerate(self._inbox):
            if not is_candidate(step.pattern, arrived.message, self.variables):
                continue
            problem = find_mismatch(step.pattern, arrived.message, self.variables)
            if problem is None and step.is_after and arrived.order < self._last_matched:
                problem = "it arrived before the message of the step above"
            if problem is None:
                del self._inbox[at]
                self._strays = [stray for stray in self._strays if stray.order != arrived.order]
                self._last_matched = arrived.order
                return None
            if not step.skips_others:
                return problem
        return ""

    def _fail_unless_tolerated(self, reason: str, tolerated: Sequence[ScriptStep]) -> None:
        """Raises CaseFailed, or records the reason if the program did something that is tolerated."""
        if not self._tolerates(tolerated):
            raise CaseFailed(reason)
        self.tolerated = self.tolerated or reason

    def _tolerates(self, steps: Sequence[ScriptStep]) -> bool:
        for step in steps:
            match step:
                case ExpectMessage():
                    is_met = self._take_match(step) is None
                case ExpectEnd():
                    self._read_until(lambda: self._has_ended, EXIT_POLL)
                    is_met = self._has_ended
                case ExpectSilence():
                    is_met = not self._has_ended and not any("method" not in one.message for one in self._inbox)
                case ExpectExit(codes, seconds):
                    code = self._wait_exit(seconds)
                    is_met = code is not None and (not codes or code in codes)
                case _:
                    is_met = False
            if is_met:
                return True
        return False

    def _explain(self, step: ExpectMessage, problem: str, timeout: float) -> str:
        expected = LET.sub('"$any"', json.dumps(step.pattern, ensure_ascii=False))
        if problem:
            return f"expected {expected}; {problem}"
        if self._problem:
            return f"expected {expected}; {self._problem}"
        if self._has_ended:
            return f"expected {expected}; the program ended the link"
        return f"expected {expected}; no such message within {timeout:g} s"

    def _expect_end(self, tolerated: Sequence[ScriptStep]) -> None:
        end = monotonic() + self._timeout
        while not self._has_ended and (left := end - monotonic()) > 0:
            self._read(left)
            end = self._find_deadline(end, tolerated)
        if not self._has_ended:
            self._fail_unless_tolerated(f"the link is still open after {self._timeout:g} s", tolerated)

    def _expect_silence(self, step: ExpectSilence) -> None:
        self._read_until(lambda: False, step.seconds)
        for _, message in [*self._inbox]:
            if "method" not in message:
                self._fail_unless_tolerated(f"expected no response; got {self._wire.write(message)}", step.tolerated)

    def _expect_exit(self, step: ExpectExit) -> None:
        code = self._wait_exit(step.seconds)
        if code is not None:
            self.conversation.note(f"the program exited with {describe_code(code)}")
        if code is None or (step.codes and code not in step.codes):
            expected = f"with code {' or '.join(map(str, step.codes))}" if step.codes else "with any code"
            actual = f"still runs after {step.seconds:g} s" if code is None else f"exited with {describe_code(code)}"
            self._fail_unless_tolerated(f"expected that the program exits {expected}; it {actual}", step.tolerated)

    def _wait_exit(self, seconds: float) -> int | None:
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            if self._has_ended:
                return self._link.wait_exit(left)
            self._read(min(left, EXIT_POLL))
            if (code := self._link.wait_exit(0)) is not None:
                self._read_until(lambda: self._has_ended, EXIT_POLL)  # its last output
                return code
        return self._link.wait_exit(0)

    # -- receiving

    def _read_until(self, is_met: Any, seconds: float) -> None:
        end = monotonic() + seconds
        while not is_met() and not self._has_ended and (left := end - monotonic()) > 0:
            self._read(left)

    def _read(self, seconds: float) -> None:
        data = self._link.read(seconds)
        if data is None:
            return
        if data == b"":
            self._has_ended = True
            self._problem = self._problem or self._wire.end()
            self.conversation.note("the program ended the link")
            return
        for received in self._wire.feed(data):
            if received.text:
                self.conversation.add(Sender.PROGRAM, received.text)
            if received.problem:
                self.conversation.note(received.problem)
                if received.is_tolerated:
                    self.tolerated = self.tolerated or received.problem
                else:
                    self._problem = self._problem or received.problem
            if is_object(received.message) or is_array(received.message):
                self._on_message(received.message)

    def _on_message(self, message: Any) -> None:
        self._received.append(message)
        arrived = Arrived(next(self._arrived), message)
        parts = message if is_array(message) else [message]
        for part in parts:
            if is_object(part) and "method" not in part:
                self._on_response(part.get("id"), arrived)
        if is_object(message) and "method" in message and "id" in message and not self._is_expected(message):
            self._respond(message)
            return
        self._inbox.append(arrived)
        if is_object(message) and "method" in message and "id" in message:
            self._held.append(arrived)

    def _on_response(self, id: Any, arrived: Arrived) -> None:
        at = next((at for at, pending in enumerate(self._pending) if is_same(pending, id)), None)
        if at is None:
            self._strays.append(arrived)
        else:
            del self._pending[at]

    def _is_expected(self, message: dict[str, Any]) -> bool:
        """Returns whether a request of the program waits for a step, because one expects it or the suite says so."""
        if message["method"] in self._setup.holds:
            return True
        for step in expectations(self._coming):
            if is_object(step.pattern) and step.pattern.get("method") == message["method"]:
                return True
        return False

    def _respond(self, request: dict[str, Any]) -> None:
        """Responds to a request that no step expects, as an empty host would."""
        method = request["method"]
        response: dict[str, Any] = {"id": request["id"]}
        if method in self._setup.responses:
            response["result"] = fill(self._setup.responses[method], self.variables)
        else:
            response["error"] = {"code": UNKNOWN_METHOD, "message": f"unknown method: {method}"}
        self._send(self._wire.encode(response), self._wire.write(response))

    # -- verdict

    def _check_forbidden(self, steps: Sequence[ScriptStep]) -> None:
        for step in steps:
            if isinstance(step, Forbid):
                for message in self._received:
                    if find_mismatch(step.pattern, message, dict(self.variables)) is None:
                        raise CaseFailed(f"must never be sent: {self._wire.write(message)}")

    def _check_wire(self) -> None:
        if self._problem:
            raise CaseFailed(self._problem)
        if self._strays:
            message = self._wire.write(self._strays[0].message)
            raise CaseFailed(f"a response that belongs to no request, or a second one: {message}")


def expectations(steps: Sequence[ScriptStep]) -> Iterator[ExpectMessage]:
    for step in steps:
        if isinstance(step, ExpectMessage):
            yield step
            yield from (other for other in step.tolerated if isinstance(other, ExpectMessage))


def is_candidate(pattern: Any, message: Any, variables: Variables) -> bool:
    """Returns whether a message is of the kind that a pattern expects: the response with its id, or its method."""
    if not is_object(pattern) or "$unordered" in pattern:
        return is_array(message)
    if not is_object(message):
        return False
    if "method" in pattern:
        return bool(message.get("method") == pattern["method"])
    if "method" in message:
        return False
    if "id" not in pattern:
        return True
    return find_mismatch(pattern["id"], message.get("id"), dict(variables)) is None


def expand(text: str) -> bytes:
    """Returns the bytes of a text with escapes and `%repeat(N,text)%`."""
    return REPEAT.sub(lambda found: found[2] * int(found[1]), unescape(text))


def format_bytes(data: bytes) -> str:
    return data.decode(errors="backslashreplace").replace("\r", "\\r").replace("\n", "\\n").replace("\0", "\\0")


def describe_code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"code {code}"
