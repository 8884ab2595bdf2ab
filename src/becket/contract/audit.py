"""Audit records: one JSON line per event, hash-chained to the line before.

`prev` is the SHA-256 of the whole preceding line, so that changing, removing or moving a line breaks the chain.
Deciding what to record, writing the file and rotating it are the host's. No record ever holds a prompt, the input or
output of a tool, or a secret.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from becket._deprecated import keep_renamed
from becket.errors import JSON_ERRORS, BadMessage

__all__ = [
    "CHAIN_START",
    "AuditEvent",
    "AuditLink",
    "AuditRecord",
    "CallDecided",
    "CallsCounted",
    "ConsentRefused",
    "FileRotated",
    "FilesChanged",
    "GrantChanged",
    "ProcessStarted",
    "ProviderCalled",
    "ProviderOutcome",
    "encode_record",
    "parse_record",
]

Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# `$` alone would let a newline follow.
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]


class CallDecided(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="call"):
    """A call was denied, or, where all calls are recorded, allowed. `on_behalf_of` lists the callers from the
    nearest to the first; if it is empty, the extension acted on its own authority. `handling` are the other
    extensions whose requests it was handling, where the call did not name its request."""

    extension: str
    method: str
    permission: str | None
    allowed: bool
    because: str
    on_behalf_of: tuple[str, ...] = ()
    handling: tuple[str, ...] = ()


class CallsCounted(Struct, frozen=True, tag_field="kind", tag="calls"):
    """The number of allowed calls of one method from `since_ms` on, for at most a minute."""

    extension: str
    method: str
    permission: str | None
    count: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    since_ms: Natural


class GrantChanged(Struct, frozen=True, tag_field="kind", tag="grant"):
    """A permission was granted or revoked, and by whom: `operator`, `answer` to a prompt, `host` in its code, or
    `grants.toml`, when a running host has loaded a change of that file."""

    extension: str
    permission: str
    given: bool
    by: str


class ProcessStarted(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="start"):
    """A process was started for an extension: its command, permissions, containment, and the number of restarts
    after a crash, this one included. `variables` are the names of variables outside the base list that it received,
    never their values."""

    extension: str
    command: tuple[str, ...]
    dialect: str
    permissions: tuple[str, ...]
    containment: str
    version: str | None = None
    digest: Digest | None = None
    restarts: Natural = 0
    variables: tuple[str, ...] = ()


class FilesChanged(Struct, frozen=True, tag_field="kind", tag="change"):
    """The files of an extension differ from the approved ones, and it was started all the same, in development mode."""

    extension: str
    agreed: Digest
    found: Digest


class ConsentRefused(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="refusal"):
    """A person refused consent to start an extension with these files, permissions and variables, or the refusal was
    `withdrawn`, and by whom: `answer` to a prompt, `operator`, or `host` in its code."""

    extension: str
    by: str
    digest: Digest | None = None
    permissions: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    withdrawn: bool = False


class ProviderOutcome(StrEnum):
    """The outcome of a call to a provider."""

    OK = "ok"
    ERROR = "error"
    BLOCKED = "blocked"


class ProviderCalled(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="provider"):
    """A model was called. `error_class` is one word such as `timeout`."""

    extension: str
    provider_id: str
    model_id: str
    tools_exposed: bool
    outcome: ProviderOutcome
    tools_requested: Natural = 0
    streamed: bool = False
    error_class: str | None = None


class FileRotated(Struct, frozen=True, tag_field="kind", tag="rotate"):
    """The first record of a new file; the chain continues from the last line of the named file."""

    previous: str


AuditEvent: TypeAlias = (
    CallDecided
    | CallsCounted
    | GrantChanged
    | ProcessStarted
    | FilesChanged
    | ConsentRefused
    | ProviderCalled
    | FileRotated
)


class AuditRecord(Struct, frozen=True):
    """One line: its number, its time, the digest of the preceding line, and the event."""

    seq: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    time_ms: Natural
    prev: Digest
    event: AuditEvent


# -- the chain


class AuditLink(Struct, frozen=True):
    """The end of a chain: number and digest of its last line."""

    seq: int
    digest: str


CHAIN_START: Final = AuditLink(0, "0" * 64)
RECORD_DECODER = msgspec.json.Decoder(AuditRecord)


def encode_record(event: AuditEvent, after: AuditLink, time_ms: int) -> tuple[bytes, AuditLink]:
    """Returns the line for an event, with its newline, and the link for the next one."""
    line = msgspec.json.encode(AuditRecord(after.seq + 1, time_ms, after.digest, event))
    return line + b"\n", AuditLink(after.seq + 1, hash_line(line))


def parse_record(line: bytes, after: AuditLink) -> tuple[AuditRecord, AuditLink]:
    """Decodes a line; returns the record and the link for the next one.

    Raises:
        BadMessage: it is not a record, or does not follow the preceding line.
    """
    line = line.removesuffix(b"\n")
    try:
        record = RECORD_DECODER.decode(line)
    except JSON_ERRORS as error:
        from becket.conversion.problems import to_problem

        pointer, problem = to_problem(error)
        raise BadMessage(problem, pointer=pointer) from error
    if record.seq != after.seq + 1:
        raise BadMessage(f"record {record.seq} found where record {after.seq + 1} was expected", pointer="/seq")
    if record.prev != after.digest:
        raise BadMessage(f"the line before record {record.seq} is not the one that was written", pointer="/prev")
    return record, AuditLink(record.seq, hash_line(line))


def hash_line(line: bytes) -> str:
    from hashlib import sha256

    return sha256(line).hexdigest()


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(
        __name__,
        {
            "AUDIT_START": "CHAIN_START",
            "ExtensionChanged": "FilesChanged",
            "ExtensionStarted": "ProcessStarted",
        },
    )
