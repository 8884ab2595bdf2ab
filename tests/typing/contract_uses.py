"""What a type checker must accept of the contract: events are closed unions, models are made from flat arguments."""

from __future__ import annotations

from typing import Any, assert_never, assert_type

from msgspec import Raw

from becket.contract.commands import (
    COMMAND_INVOKE,
    CommandDone,
    CommandEvent,
    CommandInvoke,
    ErrorText,
    SystemText,
    Table,
    Text,
    decode_command_output,
)
from becket.contract.handshake import INITIALIZE, Capabilities, Initialize, Initialized
from becket.contract.providers import (
    PROVIDER_STREAM,
    Model,
    ProviderDone,
    ProviderEvent,
    ProviderFailed,
    ProviderRequest,
    ProviderResult,
    TextDelta,
    ThinkingDelta,
    ToolUse,
    Usage,
    decode_provider_event,
)
from becket.contract.tasks import TaskEnded, TaskLogged, TaskStarted, TaskUpdated
from becket.host import ExtensionStream
from becket.methods.descriptors import Method
from becket.methods.streams import Stream


def show_provider_event(event: ProviderEvent) -> str:
    match event:
        case TextDelta(text) | ThinkingDelta(text):
            return text
        case ToolUse(id, name, input):
            return f"{id} {name} {sorted(input)}"
        case Usage(values):
            return str(values)
        case ProviderFailed(message, code):
            return f"{message} {code}"
        case ProviderDone():
            return "done"
        case _:
            assert_never(event)


def show_command_event(event: CommandEvent) -> str:
    match event:
        case Text(content) | SystemText(content) | ErrorText(content):
            return content
        case Table(headers, rows):
            return f"{headers} {rows}"
        case CommandDone():
            return "done"
        case TaskStarted(id) | TaskUpdated(id) | TaskLogged(id) | TaskEnded(id):
            return id
        case _:
            assert_never(event)


def read(raw: Raw) -> None:
    assert_type(decode_provider_event(raw), ProviderEvent)
    show_command_event(decode_command_output(raw))


def use_descriptors() -> None:
    assert_type(INITIALIZE, Method[Initialize, Initialized])
    assert_type(PROVIDER_STREAM, Stream[ProviderRequest, ProviderResult, ProviderEvent])
    assert_type(COMMAND_INVOKE, Stream[CommandInvoke, Any, CommandEvent])


model = Model("small", context_window=4096, streaming=True)
assert_type(model.streaming, bool)
assert_type(Initialized(1).capabilities, Capabilities)
assert_type(Initialized(1).features, tuple[str, ...])


async def receiving(run: ExtensionStream[CommandEvent, object]) -> None:
    @run.on(Text)
    def take_text(event: Text) -> None:
        assert_type(event.content, str)

    @run.on(TaskStarted, Text)
    def take_either(event: TaskStarted | Text) -> None: ...

    assert [take_text, take_either]
