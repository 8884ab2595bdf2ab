"""The MCP messages: their wire form, and which deviations are accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Raw, Struct

from becket.adapters.mcp.dialect import (
    MCP,
    encode_progress_params,
    extract_progress_token,
    insert_progress_token,
    matches_first_frame,
)
from becket.adapters.mcp.messages import (
    base,
    client_features,
    content,
    lifecycle,
    notifications,
    prompts,
    resources,
    tools,
)
from becket.adapters.mcp.messages.base import build_progress_meta, find_progress_token
from becket.adapters.mcp.messages.client_features import (
    CreateMessageParams,
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    SamplingMessage,
)
from becket.adapters.mcp.messages.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    ToolUseContent,
    join_text,
)
from becket.adapters.mcp.messages.lifecycle import (
    LATEST_VERSION,
    PROTOCOL_VERSIONS,
    ClientCapabilities,
    Implementation,
    ListCapability,
    McpInitializeParams,
    McpInitializeResult,
    choose_version,
)
from becket.adapters.mcp.messages.notifications import (
    LoggingLevel,
    LogMessage,
    Progress,
    build_progress,
    to_log_level,
    to_logging_level,
    with_progress,
)
from becket.adapters.mcp.messages.prompts import CompleteResult, GetPromptResult
from becket.adapters.mcp.messages.resources import ReadResourceResult
from becket.adapters.mcp.messages.tools import TOOLS_CALL, CallToolParams, ListToolsResult, ToolResult
from becket.contract.log import LogLevel
from becket.errors import RpcError
from becket.framing.content_length import ContentLength
from becket.framing.json_lines import JsonLines
from becket.jsonrpc.calls import InboundRequest, OutboundCall
from becket.limits import DEFAULT_LIMITS
from becket.methods.descriptors import Method, Notification
from becket.peer.streams import NULL_FUTURE

FILES = (client_features, content, lifecycle, notifications, prompts, resources, tools, base)


def encoded(value: Struct) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


# -- what is sent


def test_members_have_the_names_of_the_protocol_and_are_omitted_where_empty() -> None:
    params = McpInitializeParams(
        LATEST_VERSION, ClientCapabilities(roots=ListCapability(list_changed=True)), Implementation("a", "1")
    )

    assert encoded(params) == {
        "protocolVersion": LATEST_VERSION,
        "capabilities": {"roots": {"listChanged": True}},
        "clientInfo": {"name": "a", "version": "1"},
    }


@pytest.mark.parametrize(
    ("value", "member"),
    [
        (ToolResult(), "content"),
        (ListRootsResult(), "roots"),
        (GetPromptResult(), "messages"),
        (ReadResourceResult(), "contents"),
        (ListToolsResult(()), "tools"),
    ],
)
def test_a_required_list_is_written_also_where_it_is_empty(value: Struct, member: str) -> None:
    assert encoded(value) == {member: []}


def test_a_response_to_completion_always_has_its_values() -> None:
    assert encoded(CompleteResult()) == {"completion": {"values": []}}


def test_a_message_of_a_model_has_its_role() -> None:
    response = CreateMessageResult.from_text("hello", "small")

    assert encoded(response) == {
        "role": "assistant",
        "content": {"type": "text", "text": "hello"},
        "model": "small",
        "stopReason": "endTurn",
    }


# -- what is accepted


def all_structs() -> Iterable[type[Struct]]:
    for file in FILES:
        for name in file.__all__:
            value = getattr(file, name)
            if isinstance(value, type) and issubclass(value, Struct):
                yield value


@pytest.mark.parametrize("kind", list(all_structs()), ids=lambda kind: kind.__name__)
def test_a_member_that_may_be_absent_may_be_null(kind: type[Struct]) -> None:
    for field in msgspec.structs.fields(kind):
        is_optional = not field.required and field.default is None
        assert not is_optional or field.type is Any or type(None) in get_args(field.type), field.name


def test_a_result_without_content_and_with_unknown_members_is_decoded() -> None:
    result = msgspec.json.decode(b'{"isError":null,"_meta":{"a":1},"new":2}', type=ToolResult)

    assert result == ToolResult(meta={"a": 1})


def test_a_response_to_initialize_needs_no_more_than_its_version() -> None:
    response = msgspec.json.decode(b'{"protocolVersion":"2025-06-18"}', type=McpInitializeResult)

    assert (response.capabilities.tools, response.server_info.name) == (None, "")


def test_a_message_for_a_model_has_one_chunk_or_several() -> None:
    one = msgspec.json.decode(b'{"role":"user","content":{"type":"text","text":"a"}}', type=SamplingMessage)
    many = msgspec.json.decode(
        b'{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"t","input":{}}]}', type=SamplingMessage
    )

    assert one.blocks == (TextContent("a"),)
    assert many.blocks == (ToolUseContent("1", "t", {}),)


def test_the_text_of_a_response_is_that_of_its_texts() -> None:
    parts = (TextContent("a"), ToolUseContent("1", "t", {}), TextContent("b"))

    assert CreateMessageResult("assistant", parts, "m").text == "ab"
    assert CreateMessageResult("assistant", ImageContent("", "image/png"), "m").text == ""


def test_a_request_for_a_model_may_have_every_member_of_the_protocol() -> None:
    raw = (
        b'{"messages":[],"maxTokens":5,"modelPreferences":{"hints":[{"name":"a"}],"costPriority":0.5},'
        b'"tools":[{"name":"t","inputSchema":{}}],"toolChoice":{"mode":"auto"},"temperature":1}'
    )
    requested = msgspec.json.decode(raw, type=CreateMessageParams)

    assert requested.model_preferences is not None
    assert requested.model_preferences.hints is not None
    assert (requested.max_tokens, requested.model_preferences.hints[0].name, requested.temperature) == (5, "a", 1.0)


def test_elicitation_has_three_actions_and_no_other() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"action":"maybe"}', type=ElicitResult)


def test_a_text_model_gets_a_description_of_other_content() -> None:
    parts = (
        TextContent("text"),
        ImageContent("", "image/png"),
        AudioContent("", "audio/wav"),
        ResourceLink("file:///a", "a"),
        EmbeddedResource(ResourceContents("file:///b", text="held")),
        EmbeddedResource(ResourceContents("file:///c", blob="aGk=")),
    )

    assert join_text(parts).splitlines() == [
        "text",
        "[image/png]",
        "[audio/wav]",
        "[file:///a]",
        "held",
        "[file:///c]",
    ]


def test_an_embedded_resource_with_an_empty_text_reads_as_empty() -> None:
    assert join_text([EmbeddedResource(ResourceContents("file:///a", text=""))]) == ""


# -- descriptors


def all_descriptors() -> Iterable[Any]:
    return [value for file in FILES for name in file.__all__ if name.isupper() for value in [getattr(file, name)]]


def test_every_descriptor_has_a_summary_and_a_name_of_its_own() -> None:
    found = [one for one in all_descriptors() if isinstance(one, Method | Notification)]

    assert len({one.name for one in found}) == len(found) == 25
    assert all(one.summary.endswith(".") for one in found)


# -- versions


@pytest.mark.parametrize("version", PROTOCOL_VERSIONS)
def test_a_known_version_is_confirmed(version: str) -> None:
    assert choose_version(version) == version


def test_an_unknown_version_gets_a_response_with_the_newest_one() -> None:
    assert choose_version("1999-01-01") == LATEST_VERSION


# -- progress


def test_only_texts_and_whole_numbers_are_tokens() -> None:
    given = [None, {}, {"progressToken": None}, {"progressToken": True}, {"progressToken": 1.5}]

    assert [find_progress_token(meta) for meta in given] == [None] * 5
    assert find_progress_token({"progressToken": 7}) == 7
    assert find_progress_token({"progressToken": "a"}) == "a"


def belongs(raw: bytes, token: Any) -> bool:
    reader = with_progress(TOOLS_CALL).events["notifications/progress"]
    assert reader.belongs is not None
    return reader.belongs(Raw(raw), CallToolParams("t", meta=build_progress_meta(token)))


@pytest.mark.parametrize(
    ("raw", "token", "is_own"),
    [
        (b'{"progressToken":1,"progress":1}', 1, True),
        (b'{"progressToken":"1","progress":1}', 1, False),
        (b'{"progressToken":1,"progress":1}', "1", False),
        (b'{"progressToken":2,"progress":1}', 1, False),
        (b'{"progress":1}', None, False),
        (b"[]", 1, False),
        (b'"\xff"', 1, False),
    ],
)
def test_progress_belongs_to_the_request_with_its_token_and_type(raw: bytes, token: object, is_own: bool) -> None:
    assert belongs(raw, token) is is_own


@pytest.mark.parametrize(
    ("value", "received"),
    [
        (3, Progress("t", 3)),
        (0.5, Progress("t", 0.5)),
        (True, Progress("t", 1)),
        ("half way", Progress("t", 1, message="half way")),
        (Progress("other", 1, 2, "a"), Progress("t", 1, 2, "a")),
        ({"progress": 2, "total": 4, "message": "m"}, Progress("t", 2, 4, "m")),
        ({"progress": "2", "total": True, "message": 1}, Progress("t", 1)),
        (object(), Progress("t", 1)),
    ],
)
def test_reported_progress_is_sent_with_growing_numbers(value: object, received: Progress) -> None:
    assert build_progress("t", value, count(1)) == received


# -- the log


def test_log_levels_are_mapped_to_the_nearest_level() -> None:
    assert [to_log_level(level) for level in LoggingLevel] == [
        LogLevel.DEBUG,
        LogLevel.INFO,
        LogLevel.INFO,
        LogLevel.WARNING,
        LogLevel.ERROR,
        LogLevel.CRITICAL,
        LogLevel.CRITICAL,
        LogLevel.CRITICAL,
    ]
    assert [to_logging_level(level) for level in LogLevel] == ["debug", "info", "warning", "error", "critical"]


def test_a_log_message_is_shown_as_text_whatever_its_type() -> None:
    assert LogMessage(LoggingLevel.INFO, "plain").text == "plain"
    assert LogMessage(LoggingLevel.INFO, {"a": [1]}).text == '{"a":[1]}'


# -- the link


def test_a_banner_on_stdout_is_skipped() -> None:
    framing = MCP.framing(DEFAULT_LIMITS)
    frames = framing.feed(b'starting up...\n{"jsonrpc":"2.0","id":1,"result":{}}\n')

    assert frames[-1] == b'{"jsonrpc":"2.0","id":1,"result":{}}'


@pytest.mark.parametrize(
    ("frame", "framing", "is_mcp"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"x"}}', JsonLines, True),
        (b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}', JsonLines, True),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', JsonLines, True),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', ContentLength, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}', JsonLines, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}', JsonLines, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize"}', JsonLines, False),
        (b"nonsense", JsonLines, False),
    ],
)
def test_a_client_of_mcp_is_detected_by_its_first_message(frame: bytes, framing: type, is_mcp: bool) -> None:
    assert matches_first_frame(frame, framing) is is_mcp


def test_the_dialect_loads_its_mapping() -> None:
    assert MCP.load_mapping is not None
    assert MCP.load_mapping().dialect == "mcp"


CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"too slow"}}\n'


@pytest.mark.parametrize(
    "finish",
    [
        lambda connection, request: connection.respond(request, b"{}"),
        lambda connection, request: connection.reject(request, RpcError(1, "no")),
        lambda connection, request: connection.drop_request(request),
    ],
    ids=["answered", "refused", "forgotten"],
)
def test_a_cancelled_request_never_gets_a_response_whatever_its_outcome(finish: Callable[..., bytes]) -> None:
    connection = MCP.build_connection(DEFAULT_LIMITS)
    (request,) = connection.receive(b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}\n')
    connection.receive(CANCEL)

    assert finish(connection, request) == b""
    assert connection.requests == {}


def test_a_request_that_was_not_cancelled_gets_a_response() -> None:
    connection = MCP.build_connection(DEFAULT_LIMITS)
    (request,) = connection.receive(b'{"jsonrpc":"2.0","id":2,"method":"tools/call"}\n')
    assert isinstance(request, InboundRequest)
    connection.receive(CANCEL)

    assert connection.respond(request, b"{}") == b'{"jsonrpc":"2.0","id":2,"result":{}}\n'


def test_all_calls_are_cancelled_but_the_first() -> None:
    connection = MCP.build_connection(DEFAULT_LIMITS)
    first, second = OutboundCall("initialize", NULL_FUTURE), OutboundCall("tools/call", NULL_FUTURE)
    connection.open_call(first, None)
    connection.open_call(second, None)

    assert connection.cancel_call(first) == b""
    assert connection.cancel_call(second) == (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}\n'
    )


# -- progress of any request


@pytest.mark.parametrize(
    ("params", "requested"),
    [
        (None, {"_meta": {"progressToken": 7}}),
        (b'{"a":1}', {"a": 1, "_meta": {"progressToken": 7}}),
        (b'{"_meta":{"b":2,"progressToken":1}}', {"_meta": {"b": 2, "progressToken": 7}}),
    ],
)
def test_a_token_is_added_to_the_other_members_of_the_params(params: bytes | None, requested: Any) -> None:
    assert msgspec.json.decode(insert_progress_token(params, b"7")) == requested


@pytest.mark.parametrize(
    ("params", "token"),
    [
        (None, None),
        (b"{}", None),
        (b'{"_meta":{"progressToken":7}}', b"7"),
        (b'{"_meta":{"progressToken":"a"}}', b'"a"'),
        (b'{"_meta":{"progressToken":null}}', None),
        (b'{"_meta":null,"progressToken":1}', None),
        (b'{"_meta":{"progressToken":[]}}', None),
    ],
)
def test_the_progress_token_is_read_from_the_meta_of_the_params(params: bytes | None, token: bytes | None) -> None:
    assert extract_progress_token(None if params is None else Raw(params)) == token


def test_progress_is_sent_in_full() -> None:
    received = encode_progress_params(b'"t"', {"progress": 1, "total": 2, "message": "m"})

    assert msgspec.json.decode(received) == {"progressToken": "t", "progress": 1, "total": 2, "message": "m"}
