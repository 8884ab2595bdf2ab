"""The MCP mapping of the contract in both directions, without a link."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from becket.adapters.mcp.client_handshake import McpServerInfo
from becket.adapters.mcp.mapping import MAPPING, parse_tool_result
from becket.adapters.mcp.messages.content import ImageContent, TextContent
from becket.adapters.mcp.messages.lifecycle import Implementation, ServerCapabilities
from becket.adapters.mcp.messages.notifications import Progress
from becket.adapters.mcp.messages.prompts import GetPromptResult, Prompt, PromptArgument, PromptMessage
from becket.adapters.mcp.messages.tools import TOOLS_CALL, CallToolParams, ToolResult
from becket.contract.commands import CommandDone, CommandInvoke, ErrorText, SystemText, Table, Text
from becket.contract.handshake import Capabilities, Initialized as ContractInitialized
from becket.contract.log import LOG, LogLevel, LogRecord
from becket.contract.tasks import TaskEnded, TaskUpdated
from becket.contract.tools import Tool, ToolCall
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import MethodMapping
from becket.errors import Busy, InvalidParams, Meaning, RpcError, ToolFailed

TOOLS = MAPPING.methods["tool.call"]
COMMANDS = MAPPING.methods["command.invoke"]
HANDSHAKE = MAPPING.server_handshake
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "client", "version": "9"}}


def on_host(names: dict[str, str] | None = None, *prompts: Prompt) -> LinkState:
    server = McpServerInfo(
        "2025-11-25", Implementation("s"), ServerCapabilities(), None, names or {}, {one.name: one for one in prompts}
    )
    return LinkState("files", extra=server)


def on_extension(**members: Any) -> LinkState:
    state = LinkState(
        "notes",
        Capabilities((Tool("count", "Counts.", {"type": "object"}),)),
        version="1.2",
        commands=(("reindex", "Indexes anew."),),
        **members,
    )
    HANDSHAKE.decode_params(CLIENT, state)
    return state


def build_request(method_mapping: MethodMapping, state: LinkState, **params: Any) -> WireRequest:
    (method,) = method_mapping.wire_methods(state)
    return WireRequest(method, msgspec.convert(params, method.params))


# -- tools, as a client calls them


def test_the_result_of_another_server_is_passed_on_unchanged() -> None:
    result = ToolResult((TextContent("a"), ImageContent("AA==", "image/png")), {"n": 1})
    read = TOOLS.decode_result(result, WireRequest(TOOLS_CALL, CallToolParams("draw")), on_host())

    assert parse_tool_result(read) == result
    assert parse_tool_result(msgspec.to_builtins(result.content)) == ToolResult(result.content)
    assert parse_tool_result(msgspec.to_builtins(result.content[1])) == ToolResult(result.content[1:])
    assert parse_tool_result({"type": "house"}) == ToolResult((TextContent('{"type":"house"}'),), {"type": "house"})
    assert parse_tool_result([]) == ToolResult((TextContent("[]"),))


def test_a_tool_is_called_by_the_name_that_its_server_knows() -> None:
    request = TOOLS.encode_request(ToolCall("a_b", {"x": 1}), on_host({"a_b": "a:b"}))

    assert (request.method, request.params) == (TOOLS_CALL, CallToolParams("a:b", {"x": 1}))


def read(result: ToolResult) -> Any:
    return TOOLS.decode_result(result, WireRequest(TOOLS_CALL, CallToolParams("read")), on_host())


def test_a_result_of_texts_is_returned_as_one_text() -> None:
    assert read(ToolResult((TextContent("a"), TextContent("b")))) == "a\nb"


def test_a_result_with_more_than_text_has_its_content_beside_the_text() -> None:
    image = ImageContent("aGk=", "image/png")

    assert read(ToolResult((TextContent("a"), image), {"n": 1})) == {
        "content": "a\n[image/png]",
        "pieces": [{"type": "text", "text": "a"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}],
        "structured_content": {"n": 1},
    }


def test_a_tool_that_has_failed_fails_the_call_with_its_text() -> None:
    with pytest.raises(ToolFailed) as caught:
        read(ToolResult((TextContent("no such file"),), {"why": 1}, is_error=True))

    assert (caught.value.tool, caught.value.message, caught.value.data) == ("read", "no such file", {"why": 1})


def test_a_tool_error_without_text_fails_the_call_all_the_same() -> None:
    with pytest.raises(ToolFailed):
        read(ToolResult(is_error=True))


# -- tools, as a server is called


def test_a_call_is_decoded_with_or_without_arguments() -> None:
    state = on_extension()

    assert TOOLS.decode_request(build_request(TOOLS, state, name="count", arguments={"a": 1}), state) == ToolCall(
        "count", {"a": 1}
    )
    assert TOOLS.decode_request(build_request(TOOLS, state, name="count"), state) == ToolCall("count", {})


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol() -> None:
    state = on_extension()

    with pytest.raises(InvalidParams):
        TOOLS.decode_request(build_request(TOOLS, state, name="nope"), state)


IMAGE = ImageContent("aGk=", "image/png")


@pytest.mark.parametrize(
    ("result", "response"),
    [
        ("text", ToolResult((TextContent("text"),))),
        (None, ToolResult()),
        (5, ToolResult((TextContent("5"),))),
        ([], ToolResult((TextContent("[]"),))),
        ([IMAGE, 1], ToolResult((TextContent('[{"type":"image","data":"aGk=","mimeType":"image/png"},1]'),))),
        ({"n": 1}, ToolResult((TextContent('{"n":1}'),), {"n": 1})),
        ({"content": "said", "n": 1}, ToolResult((TextContent("said"),), {"content": "said", "n": 1})),
        (ToolCall("a", {}), ToolResult((TextContent('{"name":"a","input":{}}'),), {"name": "a", "input": {}})),
        (IMAGE, ToolResult((IMAGE,))),
        ((IMAGE, TextContent("a")), ToolResult((IMAGE, TextContent("a")))),
        (ToolResult(is_error=True), ToolResult(is_error=True)),
    ],
)
def test_the_result_of_a_tool_becomes_content(result: Any, response: ToolResult) -> None:
    state = on_extension()

    assert TOOLS.encode_result(result, build_request(TOOLS, state, name="count"), state) == response


def fail(error: RpcError) -> Any:
    state = on_extension()
    assert TOOLS.encode_failure is not None
    return TOOLS.encode_failure(error, build_request(TOOLS, state, name="count"), state)


def test_a_tool_that_fails_responds_with_text_for_a_model_and_data_for_a_program() -> None:
    received = {"message": "no milk", "code": 7, "data": {"left": 0}}

    failed = fail(RpcError(7, "no milk", {"left": 0}))

    assert failed == ToolResult((TextContent("no milk"),), is_error=True, meta={"becket/error": received})
    with pytest.raises(ToolFailed) as caught:
        read(failed)
    assert caught.value.data == {"error": received}


def test_invalid_arguments_are_reported_as_a_tool_error_that_a_model_can_correct() -> None:
    result = fail(InvalidParams([("/input/a", "is no number")]))

    assert (result.is_error, result.text) == (True, "invalid params: /arguments/a: is no number")
    assert result.meta["becket/error"]["meaning"] == "invalid params"


@pytest.mark.parametrize("error", [Busy("calls", 1), RpcError(Meaning.NOT_READY)])
def test_an_error_other_than_of_the_tool_is_an_error_of_the_protocol(error: RpcError) -> None:
    with pytest.raises(RpcError) as caught:
        fail(error)
    assert caught.value is error


def test_progress_is_sent_under_the_token_of_the_request() -> None:
    state = on_extension()
    assert TOOLS.encode_progress is not None
    request = build_request(TOOLS, state, name="count", _meta={"progressToken": "t"})

    assert TOOLS.encode_progress(0.5, request, state) == WireNotification("notifications/progress", Progress("t", 0.5))
    assert TOOLS.encode_progress("on", request, state) == WireNotification(
        "notifications/progress", Progress("t", 1, message="on")
    )


def test_no_progress_is_sent_without_a_token() -> None:
    state = on_extension()
    assert TOOLS.encode_progress is not None

    assert TOOLS.encode_progress(0.5, build_request(TOOLS, state, name="count"), state) is None


# -- commands as prompts


REVIEW = Prompt("review", arguments=(PromptArgument("file"), PromptArgument("style")))


@pytest.mark.parametrize(
    ("args", "given"),
    [
        ((), None),
        (("a.py",), {"file": "a.py"}),
        (("a.py", "short"), {"file": "a.py", "style": "short"}),
        (("style=short", "a.py"), {"style": "short", "file": "a.py"}),
        (("x=1",), {"file": "x=1"}),
    ],
)
def test_arguments_are_assigned_to_the_arguments_of_a_prompt(
    args: tuple[str, ...], given: dict[str, str] | None
) -> None:
    request = COMMANDS.encode_request(CommandInvoke("review", args, "run-1"), on_host(None, REVIEW))

    assert (request.params.name, request.params.arguments) == ("review", given)


def test_too_many_arguments_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(InvalidParams):
        COMMANDS.encode_request(CommandInvoke("unknown", ("a",), "run-1"), on_host(None, REVIEW))


def test_a_prompt_is_read_as_its_text_and_its_messages() -> None:
    text = GetPromptResult((PromptMessage("user", TextContent("a")), PromptMessage("assistant", TextContent("b"))))

    assert COMMANDS.decode_result(text, WireRequest(TOOLS_CALL), on_host()) == {
        "content": "a\n\nb",
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    }


def test_a_prompt_is_handled_as_a_command_with_the_typed_arguments() -> None:
    state = on_extension()
    invoke = COMMANDS.decode_request(
        build_request(COMMANDS, state, name="reindex", arguments={"args": "fast 'all of it'"}), state
    )

    assert (invoke.command, invoke.args) == ("reindex", ("fast", "all of it"))


@pytest.mark.parametrize("params", [{"name": "nope"}, {"name": "reindex", "arguments": {"args": "'open"}}])
def test_a_prompt_that_cannot_be_run_is_refused(params: dict[str, Any]) -> None:
    state = on_extension()

    with pytest.raises(InvalidParams):
        COMMANDS.decode_request(build_request(COMMANDS, state, **params), state)


def test_the_output_of_a_command_is_the_text_of_its_prompt() -> None:
    state = on_extension()
    request = build_request(COMMANDS, state, **{"name": "reindex", "": ["injected"]})
    COMMANDS.decode_request(request, state)
    events = [
        Text("a"),
        SystemText("b"),
        ErrorText("c"),
        Table(("x", "y"), (("1", "2"),)),
        TaskUpdated("t"),
        TaskEnded("t"),
        CommandDone(),
    ]
    assert COMMANDS.encode_event is not None

    assert [COMMANDS.encode_event(event, request, state) for event in events] == [None] * 7
    assert COMMANDS.encode_result(None, request, state) == GetPromptResult(
        (PromptMessage("user", TextContent("a\nb\nc\nx | y\n1 | 2")),)
    )


@pytest.mark.parametrize(("result", "text"), [("done", "done"), ({"n": 1}, '{"n":1}'), (None, "")])
def test_the_text_of_a_command_without_output_is_its_result(result: Any, text: str) -> None:
    state = on_extension()
    prompt = COMMANDS.encode_result(result, build_request(COMMANDS, state, name="reindex"), state)

    assert prompt.messages == ((PromptMessage("user", TextContent(text)),) if text else ())


def test_the_progress_of_a_task_is_sent() -> None:
    state = on_extension()
    request = build_request(COMMANDS, state, name="reindex", _meta={"progressToken": 5})
    assert COMMANDS.encode_event is not None

    notification = COMMANDS.encode_event(TaskUpdated("t", 3, 10, "files"), request, state)
    assert notification == WireNotification("notifications/progress", Progress(5, 3, 10, "files"))


# -- the handshake of a server


def test_a_client_becomes_the_host_of_the_extension() -> None:
    state = on_extension()
    words = HANDSHAKE.decode_params(CLIENT, state)

    assert words.host is not None
    assert (words.plugin_id, words.host.name, words.config) == ("notes", "client", {})


def test_the_response_has_the_requested_version_and_the_capabilities() -> None:
    response = HANDSHAKE.encode_result(ContractInitialized(1), on_extension())

    assert msgspec.to_builtins(response) == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "prompts": {}, "logging": {}},
        "serverInfo": {"name": "notes", "version": "1.2"},
    }


def test_an_extension_with_only_its_own_methods_announces_the_capabilities_of_these_methods() -> None:
    own = {"resources/read", "resources/subscribe", "prompts/get", "completion/complete"}
    state = LinkState("notes", own_methods=frozenset(own))
    HANDSHAKE.decode_params(CLIENT, state)
    response = HANDSHAKE.encode_result(ContractInitialized(1), state)

    assert msgspec.to_builtins(response.capabilities) == {
        "resources": {"subscribe": True},
        "prompts": {},
        "completions": {},
        "logging": {},
    }


def test_a_client_that_omits_required_members_is_served() -> None:
    state = LinkState("notes")
    words = HANDSHAKE.decode_params({"protocolVersion": "x"}, state)

    assert words.host is not None
    assert (words.host.name, state.extra.version) == ("", "2025-11-25")


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": 1}])
def test_a_client_that_names_no_version_is_refused(params: Any) -> None:
    with pytest.raises(InvalidParams):
        HANDSHAKE.decode_params(params, LinkState("notes"))


def ask(name: str, state: LinkState, params: Any = None) -> Any:
    return msgspec.json.decode(msgspec.json.encode(HANDSHAKE.handlers[name](params, state)))


def test_a_server_lists_its_tools_and_its_commands() -> None:
    state = on_extension()

    assert ask("tools/list", state) == {
        "tools": [{"name": "count", "inputSchema": {"type": "object"}, "description": "Counts."}]
    }
    (prompt,) = ask("prompts/list", state)["prompts"]
    assert (prompt["name"], prompt["description"], prompt["arguments"][0]["name"]) == (
        "reindex",
        "Indexes anew.",
        "args",
    )


def test_a_ping_gets_a_response_with_an_object() -> None:
    assert ask("ping", on_extension()) == {}


# -- the log

LOG_MAPPING = MAPPING.notifications[LOG.name]


def test_log_messages_are_sent_from_the_level_on_that_the_client_has_set() -> None:
    state = on_extension()
    assert ask("logging/setLevel", state, {"level": "warning"}) == {}

    assert LOG_MAPPING.encode(LogRecord(LogLevel.INFO, "notes", "a"), state) is None
    notification = LOG_MAPPING.encode(LogRecord(LogLevel.ERROR, "notes", "b"), state)
    assert notification is not None
    assert (notification.method, msgspec.to_builtins(notification.params)) == (
        "notifications/message",
        {"level": "error", "data": "b", "logger": "notes"},
    )


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(InvalidParams):
        ask("logging/setLevel", on_extension(), {"level": "loud"})


@pytest.mark.parametrize(
    ("params", "record"),
    [
        ({"level": "notice", "data": "a", "logger": "disk"}, LogRecord(LogLevel.INFO, "disk", "a")),
        ({"level": "error", "data": {"n": 1}}, LogRecord(LogLevel.ERROR, "files", '{"n":1}')),
        ({"level": "loud"}, LogRecord(LogLevel.INFO, "files", '{"level":"loud"}')),
    ],
)
def test_every_log_message_of_a_server_is_accepted(params: Any, record: LogRecord) -> None:
    assert LOG_MAPPING.decode(params, on_host()) == record
