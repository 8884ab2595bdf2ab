"""Commands: the invoke request, its output events and their decoders.

`done` says that no more output will come; it is the response that ends the call.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct, ValidationError

from becket._text import truncate
from becket.contract.json_narrowing import decode_object, require_array, require_object, require_text
from becket.contract.tasks import TASK_READERS, TaskEvent
from becket.errors import JSON_ERRORS
from becket.methods.descriptors import Notification
from becket.methods.streams import EventReader, Stream

__all__ = [
    "COMMAND_INVOKE",
    "COMMAND_OUTPUT",
    "CommandDone",
    "CommandEvent",
    "CommandInvoke",
    "CommandOutputEvent",
    "CommandOutputParams",
    "ErrorText",
    "PlainText",
    "SystemText",
    "Table",
    "Text",
    "decode_command_output",
    "decode_command_output_params",
    "is_for_command",
]

RequestId = Annotated[str, Meta(min_length=1)]


class CommandInvoke(Struct, frozen=True):
    """Asks for one run of a command. `request_id` is chosen by the host; the output of this run bears it."""

    command: str
    args: tuple[str, ...]
    request_id: RequestId


# -- output


class Text(Struct, frozen=True, gc=False, tag_field="kind", tag="text"):
    """Text for the person who gave the command, in Markdown."""

    content: str


class PlainText(Text, frozen=True, gc=False, tag_field="kind", tag="text"):
    """Text that is no Markdown: what a program wrote that the host has run for a command. It is never sent."""


class SystemText(Struct, frozen=True, gc=False, tag_field="kind", tag="system"):
    """A remark beside the output proper."""

    content: str


class ErrorText(Struct, frozen=True, gc=False, tag_field="kind", tag="error"):
    """Something has gone wrong; the command may go on."""

    content: Annotated[str, Meta(min_length=1)]


class Table(Struct, frozen=True, tag_field="kind", tag="table"):
    """Rows of cells under their headers; rows may be of any length."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class CommandDone(Struct, frozen=True, gc=False, tag_field="kind", tag="done"):
    """No more output will come."""


CommandOutputEvent: TypeAlias = Text | SystemText | ErrorText | Table | CommandDone
CommandEvent: TypeAlias = CommandOutputEvent | TaskEvent


class CommandOutputParams(Struct, frozen=True):
    """One piece of output, and of which run it is: what travels."""

    request_id: RequestId
    event: CommandOutputEvent


COMMAND_OUTPUT: Final = Notification(
    "command.output", CommandOutputParams, summary="One piece of the output of a running command."
)


# -- reading


class CommandOutputAddress(Struct, gc=False):
    request_id: RequestId


decode = msgspec.json.decode  # as for tasks: decoders would be made at import


def decode_command_output(raw: Raw) -> CommandOutputEvent:
    """Returns what was put out, nested under `event` or flat beside the request id.

    Raises:
        msgspec.ValidationError: it is malformed.
    """
    try:
        return decode(raw, type=CommandOutputParams).event
    except JSON_ERRORS:
        return decode_flat_output(raw).event


def decode_command_output_params(raw: Raw) -> CommandOutputParams:
    """Returns the output with the id of its run; as `decode_command_output` otherwise."""
    try:
        return decode(raw, type=CommandOutputParams)
    except JSON_ERRORS:
        return decode_flat_output(raw)


def is_for_command(raw: Raw, call: CommandInvoke) -> bool:
    """Returns whether the output is of this run. What names no run is everybody's, to be counted as malformed."""
    try:
        return decode(raw, type=CommandOutputAddress).request_id == call.request_id
    except JSON_ERRORS:
        return True


def decode_flat_output(raw: Raw) -> CommandOutputParams:
    """Returns what is not nested as it should be; what is malformed raises with the reason."""
    members = decode_object(raw, "command.output params")
    request_id = require_text(members, "request_id", "command.output missing request_id")
    if not request_id:
        raise ValidationError("command.output request_id must be non-empty")
    event = require_object(members.get("event", members), "command.output event must be a JSON object")
    kind = require_text(event, "kind", "command.output event missing 'kind'")
    match kind:
        case "text":
            return CommandOutputParams(request_id, Text(require_content(event, kind)))
        case "system":
            return CommandOutputParams(request_id, SystemText(require_content(event, kind)))
        case "error":
            content = require_content(event, kind)
            if not content:
                raise ValidationError("command.output error content must be non-empty")
            return CommandOutputParams(request_id, ErrorText(content))
        case "table":
            return CommandOutputParams(request_id, parse_table(event))
        case "done":
            return CommandOutputParams(request_id, CommandDone())
        case _:
            raise ValidationError(f"unknown command.output event kind: {truncate(kind)}")


def require_content(event: dict[str, Any], kind: str) -> str:
    return require_text(event, "content", f"command.output {kind} event missing 'content'")


def parse_table(event: dict[str, Any]) -> Table:
    headers = require_array(event.get("headers"), "command.output table missing 'headers' array")
    texts = require_strings(headers, "command.output table header must be string")
    rows = require_array(event.get("rows"), "command.output table missing 'rows' array")
    cells = (require_array(row, "command.output table row must be array") for row in rows)
    return Table(texts, tuple(require_strings(row, "command.output table cell must be string") for row in cells))


def require_strings(values: list[Any], problem: str) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in values):
        raise ValidationError(problem)
    return tuple(values)


COMMAND_INVOKE: Final[Stream[CommandInvoke, Any, CommandEvent]] = Stream(
    "command.invoke",
    CommandInvoke,
    Any,
    events={
        COMMAND_OUTPUT.name: EventReader(
            decode_command_output, (Text, SystemText, ErrorText, Table, CommandDone), belongs=is_for_command
        ),
        **TASK_READERS,
    },
    idle_timeout=60.0,
    direction="to-extension",
    summary="Runs a command of the extension; its output and its tasks come meanwhile.",
)
