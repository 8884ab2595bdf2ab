"""The step language of cases: parses a script into steps. Pure.

A script is a conversation as in docs/contract.md: `>` is sent by the host, `<` by the extension. What the suite's own
role sends is a message to send, what the other role sends is an expectation. README.md describes every step.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

__all__ = [
    "CheckAlive",
    "CloseOutput",
    "ExpectEnd",
    "ExpectExit",
    "ExpectGone",
    "ExpectMessage",
    "ExpectSilence",
    "Forbid",
    "LeaveHost",
    "Pause",
    "Role",
    "ScriptError",
    "ScriptStep",
    "SendBody",
    "SendBytes",
    "SendMessage",
    "SendSignal",
    "SetTimeout",
    "StayAlive",
    "WriteStderr",
    "parse_script",
    "unescape",
]

ARROWS: Final = {">": "host", "<": "extension"}
DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")
LINE: Final = re.compile(r"([<>])([?~<]?)\s*(?:\*(\d+)\s+)?(.*)", re.DOTALL)
ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|[rnt0\\])")
ESCAPES: Final = {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}


class Role(StrEnum):
    """The role of the program under test."""

    EXTENSION = "extension"
    HOST = "host"


class ScriptError(ValueError):
    """A script or a case is malformed; the text has its line."""


class SendMessage(Struct, frozen=True):
    """Sends a message in one frame: `> {...}`; `count` copies, in which `$n` counts from 1."""

    message: Any
    count: int = 1
    chunk: int = 0
    """Size of separate writes; 0 writes the frame at once."""


class SendBody(Struct, frozen=True):
    """Sends a frame with this body, which need not be JSON: `> body ...`."""

    text: str


class SendBytes(Struct, frozen=True):
    """Sends bytes without a frame: `> bytes ...`."""

    text: str


class ExpectMessage(Struct, frozen=True):
    """Expects a message that matches: `< {...}`; `tolerated` are patterns that are accepted with that verdict."""

    pattern: Any
    count: int = 1
    skips_others: bool = False
    """Whether messages of the same method that do not match are passed over: `<? {...}`."""
    is_after: bool = False
    """Whether it must arrive after the message of the previous expectation: `<< {...}`."""
    tolerated: tuple[ScriptStep, ...] = ()


class ExpectSilence(Struct, frozen=True):
    """Expects that no response and no error arrives for some time: `< nothing 300ms`."""

    seconds: float
    tolerated: tuple[ScriptStep, ...] = ()


class ExpectEnd(Struct, frozen=True):
    """Expects that the program ends the link: `< closed`."""

    tolerated: tuple[ScriptStep, ...] = ()


class Forbid(Struct, frozen=True):
    """Fails at the end of the script if such a message was received: `never < {...}`."""

    pattern: Any


class CloseOutput(Struct, frozen=True):
    """Closes the suite's end of the link: for an extension the end of its stdin."""


class ExpectExit(Struct, frozen=True):
    """Expects the exit of the program with one of these codes, or with any: `exit 0 within 2s`."""

    codes: tuple[int, ...]
    seconds: float
    tolerated: tuple[ScriptStep, ...] = ()


class SendSignal(Struct, frozen=True):
    """Sends a signal to the program: `signal TERM`."""

    name: str


class Pause(Struct, frozen=True):
    """Waits, and reads meanwhile: `wait 100ms`."""

    seconds: float


class SetTimeout(Struct, frozen=True):
    """Changes how long the following expectations wait: `timeout 10s`."""

    seconds: float


class LeaveHost(Struct, frozen=True):
    """Lets the suite's extension exit with a code: `leave 3`."""

    code: int


class StayAlive(Struct, frozen=True):
    """Lets the suite's extension ignore the end of its stdin and SIGTERM: `stay`."""


class WriteStderr(Struct, frozen=True):
    """Lets the suite's extension write to its stderr: `stderr hello`."""

    text: str


class ExpectGone(Struct, frozen=True):
    """Expects that the host ends the suite's extension: `gone within 5s`."""

    seconds: float


class CheckAlive(Struct, frozen=True):
    """Expects that the link still works, by the dialect's own exchange: `alive`."""


ScriptStep = (
    SendMessage
    | SendBody
    | SendBytes
    | ExpectMessage
    | ExpectSilence
    | ExpectEnd
    | Forbid
    | CloseOutput
    | ExpectExit
    | SendSignal
    | Pause
    | SetTimeout
    | LeaveHost
    | StayAlive
    | WriteStderr
    | ExpectGone
    | CheckAlive
)
Expectation = ExpectMessage | ExpectSilence | ExpectEnd | ExpectExit


def parse_script(text: str, role: Role) -> tuple[ScriptStep, ...]:
    """Returns the steps of a script for a program of this role.

    Raises:
        ScriptError: a line cannot be parsed.
    """
    steps: list[ScriptStep] = []
    for line in join_lines(text):
        try:
            step, is_tolerated = parse_line(line, role)
        except (ValueError, LookupError) as error:
            raise ScriptError(f"{error}: {line}") from error
        if not is_tolerated:
            steps.append(step)
        elif steps and isinstance(before := steps[-1], Expectation):
            steps[-1] = add_tolerated(before, step)
        else:
            raise ScriptError(f"`~` must follow an expectation: {line}")
    return tuple(steps)


def join_lines(text: str) -> list[str]:
    """Returns the lines without comments; an indented line continues the one before it."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0].isspace() and lines:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
    return lines


def parse_line(line: str, role: Role) -> tuple[ScriptStep, bool]:
    """Returns the step, and whether it is an alternative to the step before it."""
    found = LINE.fullmatch(line)
    if found is None:
        return parse_directive(line, role), False
    arrow, mark, count, rest = found.groups()
    if ARROWS[arrow] == role:
        step = parse_expectation(rest, int(count or 1), skips_others=mark == "?", is_after=mark == "<")
        return step, mark == "~"
    if mark:
        raise ValueError(f"`{arrow}{mark}` is for expectations")
    return parse_sending(rest, int(count or 1)), False


def parse_sending(rest: str, count: int) -> ScriptStep:
    word, _, text = rest.partition(" ")
    match word:
        case "body":
            return SendBody(text)
        case "bytes":
            return SendBytes(text)
        case "split":
            size, _, text = text.partition(" ")
            return SendMessage(json.loads(text), count, int(size))
        case _:
            return SendMessage(json.loads(rest), count)


def parse_expectation(rest: str, count: int, *, skips_others: bool, is_after: bool) -> ScriptStep:
    word, _, text = rest.partition(" ")
    match word:
        case "nothing":
            return ExpectSilence(parse_duration(text))
        case "closed":
            return ExpectEnd()
        case "exit":
            return parse_exit(text)
        case _:
            return ExpectMessage(json.loads(rest), count, skips_others, is_after)


def parse_directive(line: str, role: Role) -> ScriptStep:
    word, _, rest = line.partition(" ")
    match word:
        case "never":
            arrow, _, pattern = rest.partition(" ")
            if ARROWS.get(arrow) != role:
                raise ValueError(f"the program under test does not send `{arrow}`")
            return Forbid(json.loads(pattern))
        case "close":
            return CloseOutput()
        case "exit":
            return parse_exit(rest)
        case "signal":
            return SendSignal(rest)
        case "wait":
            return Pause(parse_duration(rest))
        case "timeout":
            return SetTimeout(parse_duration(rest))
        case "leave":
            return LeaveHost(int(rest))
        case "stay":
            return StayAlive()
        case "stderr":
            return WriteStderr(rest)
        case "gone":
            return ExpectGone(parse_duration(rest.removeprefix("within ")))
        case "alive":
            return CheckAlive()
        case _:
            raise ValueError("unknown step")


def parse_exit(rest: str) -> ExpectExit:
    codes, _, limit = rest.partition(" within ")
    numbers = () if codes == "any" else tuple(int(code) for code in codes.split(","))
    return ExpectExit(numbers, parse_duration(limit))


def parse_duration(text: str) -> float:
    if (found := DURATION.fullmatch(text.strip())) is None:
        raise ValueError(f"not a duration such as 200ms or 2s: {text!r}")
    return float(found[1]) / (1000 if found[2] == "ms" else 1)


def add_tolerated(step: Expectation, other: ScriptStep) -> ScriptStep:
    return replace(step, tolerated=(*step.tolerated, other))


def unescape(text: str) -> bytes:
    r"""Returns the bytes with `\r`, `\n`, `\t`, `\0`, `\\` and `\xNN` replaced; other escapes belong to the JSON."""
    return ESCAPE.sub(lambda found: ESCAPES.get(found[1]) or bytes([int(found[1][1:], 16)]), text.encode())
