"""Commands: the invoke request, its output events and their decoders.

`done` is the last event; the response ends the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct, ValidationError

from becket._deprecated import keep_renamed
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
    """Runs a command once. `request_id` is chosen by the host; the output of this run carries it."""

    command: str
    args: tuple[str, ...]
    request_id: RequestId


# -- output


class Text(Struct, frozen=True, gc=False, tag_field="kind", tag="text"):
    """Markdown text for the person who ran the command."""

    content: str


class PlainText(Text, frozen=True, gc=False, tag_field="kind", tag="text"):
    """Text that is not Markdown: the output of a program that the host ran for a command. Never sent."""


class SystemText(Struct, frozen=True, gc=False, tag_field="kind", tag="system"):
    """A remark beside the output proper."""

    content: str


class ErrorText(Struct, frozen=True, gc=False, tag_field="kind", tag="error"):
    """Something went wrong; the command may go on."""

    content: Annotated[str, Meta(min_length=1)]


class Table(Struct, frozen=True, tag_field="kind", tag="table"):
    """Rows of cells under their headers; rows may be of any length."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class CommandDone(Struct, frozen=True, gc=False, tag_field="kind", tag="done"):
    """The last event."""


CommandOutputEvent: TypeAlias = Text | SystemText | ErrorText | Table | CommandDone
CommandEvent: TypeAlias = CommandOutputEvent | TaskEvent


class CommandOutputParams(Struct, frozen=True):
    """The params of one output event, with the id of its run."""

    request_id: RequestId
    event: CommandOutputEvent


COMMAND_OUTPUT: Final = Notification(
    "command.output", CommandOutputParams, summary="One output event of a running command."
)


# -- decoding


class CommandOutputAddress(Struct, gc=False):
    request_id: RequestId


decode = msgspec.json.decode  # not a `Decoder`, which would be built at import; see `tasks`


def decode_command_output(raw: Raw) -> CommandOutputEvent:
    """Decodes an output event, nested under `event` or flat beside the request id.

    Raises:
        msgspec.ValidationError: it is malformed.
    """
    try:
        return decode(raw, type=CommandOutputParams).event
    except JSON_ERRORS:
        return decode_flat_output(raw).event


def decode_command_output_params(raw: Raw) -> CommandOutputParams:
    """Decodes an output event with the id of its run; otherwise as `decode_command_output`."""
    try:
        return decode(raw, type=CommandOutputParams)
    except JSON_ERRORS:
        return decode_flat_output(raw)


def is_for_command(raw: Raw, call: CommandInvoke) -> bool:
    """Returns whether the output belongs to this run. Output without an id belongs to all, to be counted as
    malformed."""
    try:
        return decode(raw, type=CommandOutputAddress).request_id == call.request_id
    except JSON_ERRORS:
        return True


def decode_flat_output(raw: Raw) -> CommandOutputParams:
    """Decodes flat output; raises with the reason if it is malformed."""
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
    summary="Runs a command of the extension; its output and tasks arrive as events.",
)


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(
        __name__,
        {
            "Invoke": "CommandInvoke",
            "Output": "CommandOutputEvent",
            "OutputFrame": "CommandOutputParams",
            "read_command_output": "decode_command_output",
            "read_output_frame": "decode_command_output_params",
        },
    )
