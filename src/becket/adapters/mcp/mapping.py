"""Maps the contract to MCP: tools, commands as prompts, logs and progress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast, get_args

import msgspec
from msgspec import Struct, field

from becket._text import truncate
from becket.adapters.mcp.client_handshake import McpServerInfo, client_handshake
from becket.adapters.mcp.messages.base import EmptyMessage, find_progress_token
from becket.adapters.mcp.messages.content import Content, TextContent, join_text
from becket.adapters.mcp.messages.lifecycle import PING
from becket.adapters.mcp.messages.notifications import (
    LOG_MESSAGE,
    PROGRESS,
    LoggingLevel,
    LogMessage,
    build_progress,
    to_log_level,
    to_logging_level,
)
from becket.adapters.mcp.messages.prompts import PROMPTS_GET, GetPromptParams, GetPromptResult, PromptMessage
from becket.adapters.mcp.messages.tools import TOOLS_CALL, CallToolParams, ToolResult, structure
from becket.adapters.mcp.server_handshake import ARGS_ARGUMENT, SERVER_HANDSHAKE, McpClientInfo, check_call
from becket.contract.commands import COMMAND_INVOKE, CommandInvoke, ErrorText, SystemText, Table, Text
from becket.contract.json_narrowing import is_object
from becket.contract.log import LOG, LogLevel, LogRecord
from becket.contract.tasks import TaskUpdated
from becket.contract.tools import TOOL_CALL, ToolCall, format_tool_result
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import ContractMapping, MethodMapping, NotificationMapping
from becket.errors import InvalidParams, Meaning, RpcError, ToolFailed
from becket.jsonrpc.json_values import decode_json, encode_json
from becket.methods.descriptors import Method
from becket.methods.registry import Registry
from becket.methods.streams import Stream

__all__ = ["MAPPING", "parse_tool_result"]

ERROR_META: Final = "becket/error"  # not in the structured content: clients compare that with the output schema


# -- tools, for clients


def encode_tool_call(call: ToolCall, state: LinkState) -> WireRequest:
    server: McpServerInfo = state.extra
    return WireRequest(TOOLS_CALL, CallToolParams(server.names.get(call.name, call.name), call.input))


def decode_tool_result(result: ToolResult, wire_request: WireRequest, state: LinkState) -> Any:
    """Returns the text of a text-only result; otherwise an object with the text as `content`, and all pieces."""
    if result.is_error:
        text = result.text or "the tool failed without a message"
        own_error = (result.meta or {}).get(ERROR_META)
        data = result.structured_content if own_error is None else {"error": own_error}
        raise ToolFailed(wire_request.params.name, text, data, method=TOOLS_CALL.name)
    if result.structured_content is None and all(isinstance(block, TextContent) for block in result.content):
        return result.text
    return {
        "content": result.text,
        "pieces": decode_json(encode_json(result.content)),
        "structured_content": result.structured_content,
    }


class StructuredToolResult(Struct):
    """The object that `decode_tool_result` returns for a result that is not only text."""

    pieces: tuple[Content, ...]
    structured_content: Any = None


def parse_tool_result(result: Any) -> ToolResult:
    """Returns the tool result of any extension as one of MCP; decodes pieces of MCP content."""
    for kind in (StructuredToolResult, Content, tuple[Content, ...]):
        try:
            content: Any = msgspec.convert(result, kind)
        except msgspec.ValidationError:
            continue
        return (
            ToolResult(content.pieces, content.structured_content)
            if kind is StructuredToolResult
            else build_tool_result(content)
        )
    return build_tool_result(result)


# -- tools, for servers


def decode_tool_call(wire_request: WireRequest, state: LinkState) -> ToolCall:
    call: CallToolParams = wire_request.params
    if not any(tool.name == call.name for tool in state.capabilities.tools):
        raise InvalidParams([("/name", f"there is no tool {truncate(call.name)!r} here")])
    return ToolCall(call.name, call.arguments or {})


def encode_tool_result(result: Any, wire_request: WireRequest, state: LinkState) -> ToolResult:
    call: CallToolParams = wire_request.params
    tool = next((tool for tool in state.capabilities.tools if tool.name == call.name), None)
    found = build_tool_result(result)
    if tool is None or tool.output_schema is None or isinstance(result, ToolResult):
        return found
    return structure(found, tool, decode_json(encode_json(result)))


def build_tool_result(result: Any) -> ToolResult:
    """Returns the result of a tool for MCP: as text, and also as structured content if it is an object."""
    if isinstance(result, ToolResult):
        return result
    if (blocks := find_content_blocks(result)) is not None:
        return ToolResult(blocks)
    if result is None:
        return ToolResult()
    if isinstance(result, str):
        return ToolResult((TextContent(result),))
    plain = decode_json(encode_json(result))
    text = TextContent(format_tool_result(plain))
    return ToolResult((text,), plain) if is_object(plain) else ToolResult((text,))


def find_content_blocks(result: Any) -> tuple[Content, ...] | None:
    """Returns the MCP content that a tool has returned; None for any other result."""
    if isinstance(result, CONTENT_TYPES):
        return (result,)
    if isinstance(result, list | tuple):
        blocks = tuple(cast("Sequence[Any]", result))
        return blocks if blocks and all(isinstance(block, CONTENT_TYPES) for block in blocks) else None
    return None


CONTENT_TYPES: Final = get_args(Content)


def encode_tool_error(error: RpcError, wire_request: WireRequest, state: LinkState) -> ToolResult:
    """Returns a failure as a tool result, so that the model can read it and retry; raises errors not of the tool."""
    if error.meaning in (Meaning.NOT_READY, Meaning.BUSY, Meaning.UNKNOWN_METHOD):
        raise error
    if isinstance(error, InvalidParams):
        error = InvalidParams([(f"/arguments{at.removeprefix('/input')}", text) for at, text in error.problems])
    meaning = None if error.meaning is None else error.meaning.value
    members = {"message": error.message, "code": error.code, "meaning": meaning, "data": error.data}
    known = {name: value for name, value in members.items() if value is not None}
    return ToolResult((TextContent(error.message),), is_error=True, meta={ERROR_META: known})


def encode_progress(value: object, wire_request: WireRequest, state: LinkState) -> WireNotification | None:
    """Returns a progress notification, or None if the client has not requested progress."""
    token = find_progress_token(wire_request.params.meta)
    if token is None:
        return None
    return WireNotification(PROGRESS.name, build_progress(token, value, state.sequence))


TOOL_CALL_MAPPING: Final = MethodMapping(
    encode_request=encode_tool_call,
    decode_result=decode_tool_result,
    wire_methods=lambda state: [TOOLS_CALL],
    decode_request=decode_tool_call,
    encode_result=encode_tool_result,
    encode_failure=encode_tool_error,
    encode_progress=encode_progress,
)


# -- commands as prompts


def encode_get_prompt(invoke: CommandInvoke, state: LinkState) -> WireRequest:
    """Returns the request for a prompt. Words are its arguments in order; `name=value` sets one by name."""
    server: McpServerInfo = state.extra
    prompt = server.prompts.get(invoke.command)
    known = [] if prompt is None else [argument.name for argument in prompt.arguments or ()]
    return WireRequest(PROMPT_STREAM, GetPromptParams(invoke.command, assign_arguments(known, invoke.args) or None))


PROMPT_STREAM: Final = Stream[GetPromptParams, GetPromptResult, Any](
    PROMPTS_GET.name, GetPromptParams, GetPromptResult, events={}
)


def assign_arguments(known: Sequence[str], words: Iterable[str]) -> dict[str, str]:
    arguments: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition("=")
        if separator and name in known:
            arguments[name] = value
        elif (free := next((name for name in known if name not in arguments), None)) is not None:
            arguments[free] = word
        else:
            problem = f"the prompt takes {len(known)} arguments, this one is too many: {truncate(word)!r}"
            raise InvalidParams([("/args", problem)])
    return arguments


def decode_prompt(text: GetPromptResult, wire_request: WireRequest, state: LinkState) -> dict[str, Any]:
    messages = [{"role": message.role, "content": join_text([message.content])} for message in text.messages]
    return {"content": "\n\n".join(message["content"] for message in messages), "messages": messages}


class PromptCommandParams(Struct):
    """A request for a prompt, with the output of its command so far, which is not sent."""

    name: str
    arguments: dict[str, str] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    output: list[str] = field(default_factory=list[str], name="")


PROMPT_COMMAND: Final[Method[PromptCommandParams, GetPromptResult]] = Method(
    PROMPTS_GET.name, PromptCommandParams, GetPromptResult
)


def decode_get_prompt(wire_request: WireRequest, state: LinkState) -> CommandInvoke:
    run: PromptCommandParams = wire_request.params
    run.output.clear()
    if not any(name == run.name for name, _ in state.commands):
        raise InvalidParams([("/name", f"there is no prompt {truncate(run.name)!r} here")])
    from shlex import split

    try:
        words = split((run.arguments or {}).get(ARGS_ARGUMENT, ""))
    except ValueError as error:  # unbalanced quotes
        raise InvalidParams([(f"/arguments/{ARGS_ARGUMENT}", str(error))]) from error
    return CommandInvoke(run.name, tuple(words), f"prompt-{next(state.sequence)}")


def encode_command_event(event: Any, wire_request: WireRequest, state: LinkState) -> WireNotification | None:
    """Collects output for the result; sends task progress at once."""
    run: PromptCommandParams = wire_request.params
    match event:
        case Text(content=content) | SystemText(content=content) | ErrorText(content=content):
            run.output.append(content)
        case Table(headers=headers, rows=rows):
            run.output += [" | ".join(cells) for cells in (headers, *rows)]
        case TaskUpdated(current=current, total=total, message=message) if current is not None:
            return encode_progress({"progress": current, "total": total, "message": message}, wire_request, state)
        case _:
            pass
    return None


def encode_prompt(result: Any, wire_request: WireRequest, state: LinkState) -> GetPromptResult:
    run: PromptCommandParams = wire_request.params
    text = "\n".join(run.output) or ("" if result is None else format_tool_result(decode_json(encode_json(result))))
    return GetPromptResult((PromptMessage("user", TextContent(text)),) if text else ())


COMMAND_MAPPING: Final = MethodMapping(
    encode_request=encode_get_prompt,
    decode_result=decode_prompt,
    wire_methods=lambda state: [PROMPT_COMMAND],
    decode_request=decode_get_prompt,
    encode_result=encode_prompt,
    encode_event=encode_command_event,
    encode_progress=encode_progress,
)


# -- the log


def encode_log(record: LogRecord, state: LinkState) -> WireNotification | None:
    client = state.extra
    level = to_logging_level(record.level)
    if isinstance(client, McpClientInfo) and LEVEL_ORDER[level] < LEVEL_ORDER[client.log_level]:
        return None
    return WireNotification(LOG_MESSAGE.name, LogMessage(level, record.message, record.logger))


LEVEL_ORDER: Final = {level: rank for rank, level in enumerate(LoggingLevel)}


def decode_log(params: Any, state: LinkState) -> LogRecord:
    try:
        message = msgspec.convert(params, LogMessage)
    except msgspec.ValidationError:  # logs are for people, who can read raw JSON
        return LogRecord(LogLevel.INFO, state.extension, encode_json(params).decode())
    return LogRecord(to_log_level(message.level), message.logger or state.extension, message.text)


def build_ping_handler() -> Registry:
    """Returns the handler of `ping`, to which every client must respond."""
    methods = Registry()

    @methods.handle(PING)
    def respond(params: EmptyMessage | None) -> EmptyMessage:
        return EmptyMessage()

    return methods


MAPPING: Final = ContractMapping(
    dialect="mcp",
    client_handshake=client_handshake,
    server_handshake=SERVER_HANDSHAKE,
    methods={TOOL_CALL.name: TOOL_CALL_MAPPING, COMMAND_INVOKE.name: COMMAND_MAPPING},
    notifications={LOG.name: NotificationMapping(wire_name=LOG_MESSAGE.name, encode=encode_log, decode=decode_log)},
    check_call=check_call,
    build_host_methods=build_ping_handler,
)
