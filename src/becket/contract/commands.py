"""Commands: how the host invokes one, what the extension puts out meanwhile, and how that is read.

`done` says that no more output will come; it is the response that ends the call.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct, ValidationError

from becket.contract.shapes import REFUSED, as_array, as_object, cut, read_object, take_text
from becket.contract.tasks import TASK_READERS, TaskEvent
from becket.methods.descriptors import Notification
from becket.methods.streams import EventReader, Stream

__all__ = [
    "COMMAND_INVOKE",
    "COMMAND_OUTPUT",
    "CommandDone",
    "CommandEvent",
    "ErrorText",
    "Invoke",
    "Output",
    "OutputFrame",
    "PlainText",
    "SystemText",
    "Table",
    "Text",
    "is_for_command",
    "read_command_output",
    "read_output_frame",
]

RequestId = Annotated[str, Meta(min_length=1)]


class Invoke(Struct, frozen=True):
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


Output: TypeAlias = Text | SystemText | ErrorText | Table | CommandDone
CommandEvent: TypeAlias = Output | TaskEvent


class OutputFrame(Struct, frozen=True):
    """One piece of output, and of which run it is: what travels."""

    request_id: RequestId
    event: Output


COMMAND_OUTPUT: Final = Notification(
    "command.output", OutputFrame, summary="One piece of the output of a running command."
)


# -- reading


class Addressed(Struct, gc=False):
    request_id: RequestId


decode = msgspec.json.decode  # as for tasks: decoders would be made at import


def read_command_output(raw: Raw) -> Output:
    """Returns what was put out, nested under `event` or flat beside the request id.

    Raises:
        msgspec.ValidationError: it is malformed.
    """
    try:
        return decode(raw, type=OutputFrame).event
    except REFUSED:
        return read_flat_frame(raw).event


def read_output_frame(raw: Raw) -> OutputFrame:
    """Returns the output with the id of its run; as `read_command_output` otherwise."""
    try:
        return decode(raw, type=OutputFrame)
    except REFUSED:
        return read_flat_frame(raw)


def is_for_command(raw: Raw, call: Invoke) -> bool:
    """Returns whether the output is of this run. What names no run is everybody's, to be counted as malformed."""
    try:
        return decode(raw, type=Addressed).request_id == call.request_id
    except REFUSED:
        return True


def read_flat_frame(raw: Raw) -> OutputFrame:
    """Returns what is not nested as it should be; what is malformed raises with the reason."""
    members = read_object(raw, "command.output params")
    request_id = take_text(members, "request_id", "command.output missing request_id")
    if not request_id:
        raise ValidationError("command.output request_id must be non-empty")
    event = as_object(members.get("event", members), "command.output event must be a JSON object")
    kind = take_text(event, "kind", "command.output event missing 'kind'")
    match kind:
        case "text":
            return OutputFrame(request_id, Text(take_content(event, kind)))
        case "system":
            return OutputFrame(request_id, SystemText(take_content(event, kind)))
        case "error":
            content = take_content(event, kind)
            if not content:
                raise ValidationError("command.output error content must be non-empty")
            return OutputFrame(request_id, ErrorText(content))
        case "table":
            return OutputFrame(request_id, read_table(event))
        case "done":
            return OutputFrame(request_id, CommandDone())
        case _:
            raise ValidationError(f"unknown command.output event kind: {cut(kind)}")


def take_content(event: dict[str, Any], kind: str) -> str:
    return take_text(event, "content", f"command.output {kind} event missing 'content'")


def read_table(event: dict[str, Any]) -> Table:
    headers = as_array(event.get("headers"), "command.output table missing 'headers' array")
    texts = take_strings(headers, "command.output table header must be string")
    rows = as_array(event.get("rows"), "command.output table missing 'rows' array")
    cells = (as_array(row, "command.output table row must be array") for row in rows)
    return Table(texts, tuple(take_strings(row, "command.output table cell must be string") for row in cells))


def take_strings(values: list[Any], problem: str) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in values):
        raise ValidationError(problem)
    return tuple(values)


COMMAND_INVOKE: Final[Stream[Invoke, Any, CommandEvent]] = Stream(
    "command.invoke",
    Invoke,
    Any,
    events={
        COMMAND_OUTPUT.name: EventReader(
            read_command_output, (Text, SystemText, ErrorText, Table, CommandDone), belongs=is_for_command
        ),
        **TASK_READERS,
    },
    idle_timeout=60.0,
    direction="to-extension",
    summary="Runs a command of the extension; its output and its tasks come meanwhile.",
)
