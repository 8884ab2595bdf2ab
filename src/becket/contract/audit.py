"""Audit records: one JSON line an event, hash-chained to the line before.

Every record is one line of JSON. Its `prev` is the SHA-256 of the whole line before it, so that no line can be changed,
left out or moved without all later ones telling. Deciding what to record, writing the file and rotating it are the
host's. No record ever holds a prompt, the input or output of a tool, or a secret.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

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
    """A call was denied, or, where all is recorded, allowed. `on_behalf_of` goes from the nearest caller to the first;
    where it is empty the extension acted on its own authority. `handling` are the other extensions whose requests it
    handled meanwhile, where the call did not say to which request it belongs."""

    extension: str
    method: str
    permission: str | None
    allowed: bool
    because: str
    on_behalf_of: tuple[str, ...] = ()
    handling: tuple[str, ...] = ()


class CallsCounted(Struct, frozen=True, tag_field="kind", tag="calls"):
    """So many calls of one method were allowed from `since_ms` on, for a minute at most."""

    extension: str
    method: str
    permission: str | None
    count: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    since_ms: Natural


class GrantChanged(Struct, frozen=True, tag_field="kind", tag="grant"):
    """A permission was given or taken away, and by whom: `operator`, `answer` to a question, `host` in its code; or
    `grants.toml`, where a host that runs has taken over what somebody wrote there."""

    extension: str
    permission: str
    given: bool
    by: str


class ProcessStarted(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="start"):
    """A process was started for an extension: what it ran, what it holds, what contains it, and how often the
    extension was started again after a crash, this time included. `variables` are the names of those outside the base
    list that it got, never their values."""

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
    """The files of an extension are not those that were agreed to, and it was started all the same, in development."""

    extension: str
    agreed: Digest
    found: Digest


class ConsentRefused(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="refusal"):
    """A person has refused consent to the start of an extension with these files, permissions and variables, or the
    refusal was `withdrawn`, and by whom: `answer` to a question, `operator`, or `host` in its code."""

    extension: str
    by: str
    digest: Digest | None = None
    permissions: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    withdrawn: bool = False


class ProviderOutcome(StrEnum):
    """How a call of a provider ended."""

    OK = "ok"
    ERROR = "error"
    BLOCKED = "blocked"


class ProviderCalled(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="provider"):
    """A model was asked. `error_class` is one word such as `timeout`."""

    extension: str
    provider_id: str
    model_id: str
    tools_exposed: bool
    outcome: ProviderOutcome
    tools_requested: Natural = 0
    streamed: bool = False
    error_class: str | None = None


class FileRotated(Struct, frozen=True, tag_field="kind", tag="rotate"):
    """The first record of a new file; the chain goes on from the last line of the one that it names."""

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
    """One line: its number, its time, the digest of the line before it, and what happened."""

    seq: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    time_ms: Natural
    prev: Digest
    event: AuditEvent


# -- the chain


class AuditLink(Struct, frozen=True):
    """Where a chain has got to: the number and the digest of its last line."""

    seq: int
    digest: str


CHAIN_START: Final = AuditLink(0, "0" * 64)
RECORD_DECODER = msgspec.json.Decoder(AuditRecord)


def encode_record(event: AuditEvent, after: AuditLink, time_ms: int) -> tuple[bytes, AuditLink]:
    """Returns the line for an event, with its end, and the link for the next one."""
    line = msgspec.json.encode(AuditRecord(after.seq + 1, time_ms, after.digest, event))
    return line + b"\n", AuditLink(after.seq + 1, hash_line(line))


def parse_record(line: bytes, after: AuditLink) -> tuple[AuditRecord, AuditLink]:
    """Returns the record of a line and the link for the next one.

    Raises:
        BadMessage: it is no record, or it does not follow the line that it should.
    """
    line = line.removesuffix(b"\n")
    try:
        record = RECORD_DECODER.decode(line)
    except JSON_ERRORS as error:
        from becket.conversion.problems import to_problem

        pointer, problem = to_problem(error)
        raise BadMessage(problem, pointer=pointer) from error
    if record.seq != after.seq + 1:
        raise BadMessage(f"record {record.seq} stands where record {after.seq + 1} belongs", pointer="/seq")
    if record.prev != after.digest:
        raise BadMessage(f"the line before record {record.seq} is not the one that was written", pointer="/prev")
    return record, AuditLink(record.seq, hash_line(line))


def hash_line(line: bytes) -> str:
    from hashlib import sha256

    return sha256(line).hexdigest()
