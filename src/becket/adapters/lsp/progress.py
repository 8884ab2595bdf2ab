"""Decodes $/progress: work-done reports and partial results, matched to calls by token.

A request enables both with tokens in its params. The readers match notifications to calls by these tokens and convert
them to events; a notification with another token belongs to work that the server has started itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Generic, TypeAlias, TypeVar

import attrs
import msgspec
from lsprotocol.types import WorkDoneProgressBegin, WorkDoneProgressEnd, WorkDoneProgressReport
from msgspec import Raw, Struct

from becket.adapters.lsp.conversion import convert
from becket.conversion.problems import is_object
from becket.errors import BadValue
from becket.methods.streams import EventReader

__all__ = ["PartialResult", "Progress", "WorkDone", "WorkProgress", "add_tokens", "decode_work_done", "progress_reader"]

T = TypeVar("T")
P = TypeVar("P")

WorkDone: TypeAlias = WorkDoneProgressBegin | WorkDoneProgressReport | WorkDoneProgressEnd
"""A report of progress."""

WORK_DONE_TYPES: dict[str, Any] = {
    "begin": WorkDoneProgressBegin,
    "report": WorkDoneProgressReport,
    "end": WorkDoneProgressEnd,
}


class PartialResult(Struct, Generic[T], frozen=True):
    """A part of a result. The final result does not repeat its parts."""

    value: T


Progress: TypeAlias = WorkDoneProgressBegin | WorkDoneProgressReport | WorkDoneProgressEnd | PartialResult[T]
"""The events of a call."""


class WorkProgress(Struct, frozen=True):
    """Progress of work that the server has started itself. All reports of one work have the same token."""

    token: int | str
    value: WorkDone


# -- tokens


def add_tokens(params: P, tokens: Iterator[int]) -> P:
    """Returns params with missing tokens for progress and partial results added, if their class has these members."""
    fields = attrs.fields_dict(params.__class__) if attrs.has(params.__class__) else {}
    names = [name for name in ("work_done_token", "partial_result_token") if name in fields]
    missing = [name for name in names if getattr(params, name) is None]
    return attrs.evolve(params, **{name: f"becket-{next(tokens)}" for name in missing}) if missing else params  # type: ignore[misc]


def create_token_counter() -> Iterator[int]:
    """Returns a counter for the tokens of one connection."""
    return count(1)


# -- readers


class ProgressToken(Struct):
    token: int | str


decode_token = msgspec.json.Decoder(ProgressToken).decode


class ProgressValue(Struct):
    token: int | str
    value: Any


decode_progress = msgspec.json.Decoder(ProgressValue).decode


def progress_reader(partial_type: Any = None) -> EventReader[Any]:
    """Returns a reader for the events of a call with partial results of this type; None for no partial results."""

    def decode(raw: Raw) -> Any:
        return decode_event(decode_progress(raw).value, partial_type)

    classes: tuple[type, ...] = (*WORK_DONE_TYPES.values(), *(() if partial_type is None else (PartialResult,)))
    return EventReader(decode, classes, matches_token)


def matches_token(raw: Raw, params: Any) -> bool:
    """Returns whether a notification has a token of the call with these wire params."""
    token = decode_token(raw).token
    own = (params.get("workDoneToken"), params.get("partialResultToken"))
    return any(token == one and token.__class__ is one.__class__ for one in own)


def decode_event(value: Any, partial_type: Any) -> Any:
    try:
        work = decode_work_done(value)
        if work is not None:
            return work
        if partial_type is None:
            raise msgspec.ValidationError("not a progress report")
        return PartialResult(convert(value, partial_type))
    except BadValue as error:
        raise msgspec.ValidationError(str(error)) from error


def decode_work_done(value: Any) -> WorkDone | None:
    """Returns a progress report, or None for any other value.

    Raises:
        BadValue: it has the `kind` of a report but another shape.
    """
    kind = value.get("kind") if is_object(value) else None
    return convert(value, WORK_DONE_TYPES[kind]) if isinstance(kind, str) and kind in WORK_DONE_TYPES else None
