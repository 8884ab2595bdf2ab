"""The sidecar line protocol: JSON objects with a `type`, one a line, without responses.

It is not JSON-RPC. A sidecar sends `hello`, receives `init`, and from then on both peers write at any time. Starting
the sidecar is the host's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from becket._deprecated import keep_renamed
from becket.errors import JSON_ERRORS, BadMessage, RemoteProtocolError

__all__ = [
    "HELLO_TIMEOUT",
    "SIDECAR_VERSION",
    "CustomSidecarEvent",
    "InsertMode",
    "InsertText",
    "SidecarCommand",
    "SidecarConfig",
    "SidecarEvent",
    "SidecarFailed",
    "SidecarHello",
    "SidecarInit",
    "SidecarShutdown",
    "SidecarStatus",
    "SidecarTrigger",
    "check_hello",
    "decode_command",
    "decode_event",
    "encode_line",
]

SIDECAR_VERSION: Final = 2
HELLO_TIMEOUT: Final = 10.0  # seconds that a host waits for the first line; a model may have to be loaded first

IDLE_STATES: Final = frozenset({"idle", "ready", "stopped"})


# -- from the host


class SidecarConfig(Struct, frozen=True):
    """The sidecar's configuration. Further members are the sidecar's own."""

    protocol_version: int = SIDECAR_VERSION


class SidecarInit(Struct, frozen=True, tag_field="type", tag="init"):
    """The first line from the host."""

    config: SidecarConfig


class SidecarTrigger(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="trigger"):
    """An event such as `press` and `release` of the sidecar's key."""

    name: str
    payload: Any = None


class SidecarShutdown(Struct, frozen=True, tag_field="type", tag="shutdown"):
    """Requests the sidecar to exit."""


SidecarCommand: TypeAlias = SidecarInit | SidecarTrigger | SidecarShutdown


# -- from the sidecar


class SidecarHello(Struct, frozen=True, tag_field="type", tag="hello"):
    """The first line from the sidecar."""

    protocol_version: int
    extension: str
    capabilities: tuple[str, ...] = ()


class SidecarStatus(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="status"):
    """The sidecar's state, in its own terms, and what to show for it."""

    state: str
    label: str | None = None

    @property
    def is_active(self) -> bool:
        """Whether it is shown as busy: any state but `idle`, `ready` and `stopped`."""
        return self.state not in IDLE_STATES


class InsertMode(StrEnum):
    """How inserted text is used: as a preview, as the final text, or in place of the text inserted before."""

    APPEND = "append"
    FINAL = "final"
    REPLACE = "replace"


class InsertText(Struct, frozen=True, tag_field="type", tag="insert_text"):
    """Text for the user's input line."""

    text: str
    mode: InsertMode


class SidecarFailed(Struct, frozen=True, tag_field="type", tag="error"):
    """An error to show to the user."""

    message: Annotated[str, Meta(min_length=1)]


class CustomSidecarEvent(Struct, frozen=True):
    """A line of an unknown type; hosts ignore it."""

    type: str
    members: dict[str, Any]


KnownSidecarEvent: TypeAlias = SidecarHello | SidecarStatus | InsertText | SidecarFailed
SidecarEvent: TypeAlias = KnownSidecarEvent | CustomSidecarEvent


# -- lines


def encode_line(message: SidecarCommand | KnownSidecarEvent) -> bytes:
    """Returns one line, with its newline."""
    return msgspec.json.encode(message) + b"\n"


def decode_command(line: bytes) -> SidecarCommand:
    """Decodes a line from the host.

    Raises:
        BadMessage: it is not a command.
    """
    return decode_line(line, COMMAND_DECODER)


def decode_event(line: bytes) -> SidecarEvent:
    """Decodes a line from the sidecar; an unknown type becomes a `CustomSidecarEvent`.

    Raises:
        BadMessage: it is not an event.
    """
    try:
        kind = TYPE_DECODER.decode(line).type
    except JSON_ERRORS as error:
        raise build_line_error(error) from error
    if kind in KNOWN_TYPES:
        return decode_line(line, EVENT_DECODER)
    members = decode_line(line, OBJECT_DECODER)
    return CustomSidecarEvent(kind, {name: value for name, value in members.items() if name != "type"})


def check_hello(hello: SidecarHello) -> None:
    """Raises RemoteProtocolError for a sidecar that is too old."""
    if hello.protocol_version < SIDECAR_VERSION:
        raise RemoteProtocolError(
            f"sidecar of {hello.extension} uses version {hello.protocol_version}, version {SIDECAR_VERSION} is required"
        )


class SidecarLineType(Struct):
    type: str


T = TypeVar("T")


TYPE_DECODER = msgspec.json.Decoder(SidecarLineType)
COMMAND_DECODER: msgspec.json.Decoder[SidecarCommand] = msgspec.json.Decoder(SidecarCommand)
EVENT_DECODER: msgspec.json.Decoder[KnownSidecarEvent] = msgspec.json.Decoder(KnownSidecarEvent)
OBJECT_DECODER = msgspec.json.Decoder(dict[str, Any])
KNOWN_TYPES: Final = frozenset({"hello", "status", "insert_text", "error"})


def decode_line(line: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(line)
    except JSON_ERRORS as error:
        raise build_line_error(error) from error


def build_line_error(error: Exception) -> BadMessage:
    from becket.conversion.problems import to_problem

    pointer, problem = to_problem(error)
    return BadMessage(problem, pointer=pointer)


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(
        __name__,
        {
            "Custom": "CustomSidecarEvent",
            "Failed": "SidecarFailed",
            "Hello": "SidecarHello",
            "Init": "SidecarInit",
            "Shutdown": "SidecarShutdown",
            "Status": "SidecarStatus",
            "Trigger": "SidecarTrigger",
            "parse_command": "decode_command",
            "parse_event": "decode_event",
        },
    )
