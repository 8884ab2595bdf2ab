"""Task notifications: start, update, log and done, and their decoders.

They belong to no call: each call that subscribes to them receives them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct, ValidationError

from becket._deprecated import keep_renamed
from becket._text import truncate
from becket.contract.json_narrowing import decode_object, require_text
from becket.errors import JSON_ERRORS
from becket.methods.descriptors import Notification
from becket.methods.streams import EventReader

__all__ = [
    "TASK_DONE",
    "TASK_LOG",
    "TASK_READERS",
    "TASK_START",
    "TASK_UPDATE",
    "TaskEnded",
    "TaskEvent",
    "TaskKind",
    "TaskLogged",
    "TaskStarted",
    "TaskUpdated",
    "decode_task_ended",
    "decode_task_logged",
    "decode_task_started",
    "decode_task_updated",
]

MAX_UINT64: Final = 2**64 - 1
Id = Annotated[str, Meta(min_length=1)]
Count = Annotated[
    int, Meta(ge=0, le=2**63 - 1)
]  # as far as msgspec checks; larger values are checked in `optional_count`


class TaskKind(StrEnum):
    """The kind of work; a user interface may choose an icon by it."""

    DOWNLOAD = "download"
    REBUILD = "rebuild"
    GENERIC = "generic"

    @classmethod
    def _missing_(cls, value: object) -> TaskKind | None:
        return cls.GENERIC if value == "other" else None


class TaskStarted(Struct, frozen=True, gc=False):
    """A task has started. A second start with the same id restarts it."""

    id: Id
    label: str
    kind: TaskKind = TaskKind.GENERIC


class TaskUpdated(Struct, frozen=True, gc=False, omit_defaults=True):
    """The progress of a task; None is unchanged or unknown."""

    id: Id
    current: Count | None = None
    total: Count | None = None
    message: str | None = None


class TaskLogged(Struct, frozen=True, gc=False):
    """A log line of a task."""

    id: Id
    line: str


class TaskEnded(Struct, frozen=True, gc=False, omit_defaults=True):
    """A task has ended, successfully if `error` is None."""

    id: Id
    error: Annotated[str, Meta(min_length=1)] | None = None


TaskEvent: TypeAlias = TaskStarted | TaskUpdated | TaskLogged | TaskEnded

TASK_START: Final = Notification("task.start", TaskStarted, summary="A task has started.")
TASK_UPDATE: Final = Notification("task.update", TaskUpdated, summary="The progress of a task.")
TASK_LOG: Final = Notification("task.log", TaskLogged, summary="A log line of a task.")
TASK_DONE: Final = Notification("task.done", TaskEnded, summary="A task has ended.")


# -- decoding

# No `Decoder` objects: they would be built at import, even in extensions that only send these events.
decode = msgspec.json.decode


def decode_task_started(raw: Raw) -> TaskStarted:
    """Decodes the event; a kind that is not a string counts as absent.

    Raises:
        msgspec.ValidationError: it has no id or label, or an unknown kind.
    """
    try:
        return decode(raw, type=TaskStarted)
    except JSON_ERRORS:
        id, members = decode_task(raw, TASK_START)
        label = require_text(members, "label", "task.start missing 'label'")
        kind = members.get("kind")
        if not isinstance(kind, str):
            return TaskStarted(id, label)
        raise ValidationError(f"task.start unknown kind '{truncate(kind)}'") from None


def decode_task_updated(raw: Raw) -> TaskUpdated:
    """Decodes the event; members of a wrong type count as absent.

    Raises:
        msgspec.ValidationError: it has no id.
    """
    try:
        return decode(raw, type=TaskUpdated)
    except JSON_ERRORS:
        id, members = decode_task(raw, TASK_UPDATE)
        current, total = optional_count(members.get("current")), optional_count(members.get("total"))
        message = members.get("message")
        return TaskUpdated(id, current, total, message if isinstance(message, str) else None)


def decode_task_logged(raw: Raw) -> TaskLogged:
    """Decodes the event.

    Raises:
        msgspec.ValidationError: it has no id or line.
    """
    try:
        return decode(raw, type=TaskLogged)
    except JSON_ERRORS:
        id, members = decode_task(raw, TASK_LOG)
        return TaskLogged(id, require_text(members, "line", "task.log missing 'line'"))


def decode_task_ended(raw: Raw) -> TaskEnded:
    """Decodes the event; an empty error counts as none.

    Raises:
        msgspec.ValidationError: it has no id, or an error that is neither a string nor null.
    """
    try:
        return decode(raw, type=TaskEnded)
    except JSON_ERRORS:
        id, members = decode_task(raw, TASK_DONE)
        error = members.get("error")
        if error == "":
            return TaskEnded(id)
        shown = truncate(msgspec.json.encode(error).decode())
        raise ValidationError(f"task.done 'error' must be string or null, got {shown}") from None


def decode_task(raw: Raw, event: Notification[Any]) -> tuple[str, dict[str, Any]]:
    members = decode_object(raw, f"{event.name} params")
    id = require_text(members, "id", f"{event.name} missing 'id'")
    if not id:
        raise ValidationError(f"{event.name} 'id' must be non-empty")
    return id, members


def optional_count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_UINT64 else None


TASK_READERS: Final[Mapping[str, EventReader[TaskEvent]]] = MappingProxyType(
    {
        TASK_START.name: EventReader(decode_task_started, (TaskStarted,)),
        TASK_UPDATE.name: EventReader(decode_task_updated, (TaskUpdated,)),
        TASK_LOG.name: EventReader(decode_task_logged, (TaskLogged,)),
        TASK_DONE.name: EventReader(decode_task_ended, (TaskEnded,)),
    }
)


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(
        __name__,
        {
            "read_task_ended": "decode_task_ended",
            "read_task_logged": "decode_task_logged",
            "read_task_started": "decode_task_started",
            "read_task_updated": "decode_task_updated",
        },
    )
