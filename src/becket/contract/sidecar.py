"""The line protocol of sidecars: long-running programs beside an extension, with a channel of their own.

It is no JSON-RPC: each line is one JSON object with a `type`, and nothing is answered. A sidecar says hello, gets
`init`, and from then on both sides write when they have something to say. Starting it is the host's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from becket.errors import BadMessage, RemoteProtocolError

__all__ = [
    "HELLO_TIMEOUT",
    "SIDECAR_VERSION",
    "Custom",
    "Failed",
    "Hello",
    "Init",
    "InsertMode",
    "InsertText",
    "Shutdown",
    "SidecarCommand",
    "SidecarConfig",
    "SidecarEvent",
    "Status",
    "Trigger",
    "check_hello",
    "encode_line",
    "parse_command",
    "parse_event",
]

SIDECAR_VERSION: Final = 2
HELLO_TIMEOUT: Final = 10.0  # seconds that a host waits for the first line; a model may have to be loaded before it

IDLE_STATES: Final = frozenset({"idle", "ready", "stopped"})


# -- from the host


class SidecarConfig(Struct, frozen=True):
    """What the sidecar is told at the start. Other members are its own business."""

    protocol_version: int = SIDECAR_VERSION


class Init(Struct, frozen=True, tag_field="type", tag="init"):
    """Begin."""

    config: SidecarConfig


class Trigger(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="trigger"):
    """Something happened, such as `press` and `release` of the sidecar's key."""

    name: str
    payload: Any = None


class Shutdown(Struct, frozen=True, tag_field="type", tag="shutdown"):
    """End."""


SidecarCommand: TypeAlias = Init | Trigger | Shutdown


# -- from the sidecar


class Hello(Struct, frozen=True, tag_field="type", tag="hello"):
    """The first line."""

    protocol_version: int
    extension: str
    capabilities: tuple[str, ...] = ()


class Status(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="status"):
    """What the sidecar is doing, in a word of its own, and what to show for it."""

    state: str
    label: str | None = None

    @property
    def is_active(self) -> bool:
        """Whether it is shown as busy: any state but `idle`, `ready` and `stopped`."""
        return self.state not in IDLE_STATES


class InsertMode(StrEnum):
    """How inserted text is meant: a preview, the final text, or in place of what was inserted before."""

    APPEND = "append"
    FINAL = "final"
    REPLACE = "replace"


class InsertText(Struct, frozen=True, tag_field="type", tag="insert_text"):
    """Text for the user's line of input."""

    text: str
    mode: InsertMode


class Failed(Struct, frozen=True, tag_field="type", tag="error"):
    """Something went wrong that the user should know of."""

    message: Annotated[str, Meta(min_length=1)]


class Custom(Struct, frozen=True):
    """A line of a type that only the sidecar knows; hosts pass over it."""

    type: str
    members: dict[str, Any]


KnownEvent: TypeAlias = Hello | Status | InsertText | Failed
SidecarEvent: TypeAlias = KnownEvent | Custom


# -- lines


def encode_line(message: SidecarCommand | KnownEvent) -> bytes:
    """Returns one line, with its end."""
    return msgspec.json.encode(message) + b"\n"


def parse_command(line: bytes) -> SidecarCommand:
    """Returns what the host said.

    Raises:
        BadMessage: it is no command.
    """
    return parse(line, COMMANDS)


def parse_event(line: bytes) -> SidecarEvent:
    """Returns what the sidecar said; a type that is not known becomes a `Custom`.

    Raises:
        BadMessage: it is no event.
    """
    try:
        kind = TYPE_OF.decode(line).type
    except UNDECODABLE as error:
        raise bad_line(error) from error
    if kind in KNOWN_TYPES:
        return parse(line, EVENTS)
    members = parse(line, OBJECTS)
    return Custom(kind, {name: value for name, value in members.items() if name != "type"})


def check_hello(hello: Hello) -> None:
    """Raises RemoteProtocolError for a sidecar that is too old."""
    if hello.protocol_version < SIDECAR_VERSION:
        raise RemoteProtocolError(
            f"sidecar of {hello.extension} speaks version {hello.protocol_version}, version {SIDECAR_VERSION} is needed"
        )


class Typed(Struct):
    type: str


T = TypeVar("T")


UNDECODABLE = (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)
TYPE_OF = msgspec.json.Decoder(Typed)
COMMANDS: msgspec.json.Decoder[SidecarCommand] = msgspec.json.Decoder(SidecarCommand)
EVENTS: msgspec.json.Decoder[KnownEvent] = msgspec.json.Decoder(KnownEvent)
OBJECTS = msgspec.json.Decoder(dict[str, Any])
KNOWN_TYPES: Final = frozenset({"hello", "status", "insert_text", "error"})


def parse(line: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(line)
    except UNDECODABLE as error:
        raise bad_line(error) from error


def bad_line(error: Exception) -> BadMessage:
    from becket.typed.problems import problem_of

    pointer, problem = problem_of(error)
    return BadMessage(problem, pointer=pointer)
