"""The extension contract in the words of MCP, for both sides: tools, commands as prompts, the log, progress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast, get_args

import msgspec
from msgspec import Struct, field

from becket.contract.commands import COMMAND_INVOKE, ErrorText, Invoke, SystemText, Table, Text
from becket.contract.log import LOG, LogLevel, LogRecord
from becket.contract.shapes import is_object
from becket.contract.tasks import TaskUpdated
from becket.contract.tools import TOOL_CALL, ToolCall, tool_text
from becket.dialects.mcp.contents import Content, TextContent, text_of
from becket.dialects.mcp.greeting import Server, greet
from becket.dialects.mcp.notices import (
    LOG_MESSAGE,
    PROGRESS,
    LoggingLevel,
    LogMessage,
    log_level,
    logging_level,
    progress_of,
)
from becket.dialects.mcp.prompts import PROMPTS_GET, GetPrompt, PromptMessage, PromptText
from becket.dialects.mcp.serving import ARGUMENTS, WELCOME, Client, check_call
from becket.dialects.mcp.tools import TOOLS_CALL, CallTool, ToolResult, structure
from becket.dialects.mcp.words import progress_token
from becket.dialects.phrases import Phrase, Saying, Scene, Tale
from becket.dialects.speech import Speech, TalePhrase
from becket.errors import InvalidParams, Meaning, RpcError, ToolFailed
from becket.methods.descriptors import Method
from becket.methods.streams import Stream
from becket.rpc.json_values import decode_json, encode_json

__all__ = ["SPEECH", "read_given"]

# -- tools, as a client calls them


def say_tool_call(call: ToolCall, scene: Scene) -> Saying:
    server: Server = scene.particulars
    return Saying(TOOLS_CALL, CallTool(server.names.get(call.name, call.name), call.input))


def read_tool_result(result: ToolResult, saying: Saying, scene: Scene) -> Any:
    """Returns the text where that is all, or else an object whose `content` is the text, with the pieces beside it."""
    if result.is_error:
        text = result.text or "the tool has failed, and does not say how"
        raise ToolFailed(saying.params.name, text, result.structured_content, method=TOOLS_CALL.name)
    if result.structured_content is None and all(isinstance(piece, TextContent) for piece in result.content):
        return result.text
    return {
        "content": result.text,
        "pieces": decode_json(encode_json(result.content)),
        "structured_content": result.structured_content,
    }


class Given(Struct):
    """What `read_tool_result` makes of more than text."""

    pieces: tuple[Content, ...]
    structured_content: Any = None


def read_given(given: Any) -> ToolResult:
    """Returns what any extension has given for a tool in the words of MCP: pieces of content are such again."""
    for kind in (Given, Content, tuple[Content, ...]):
        try:
            revived: Any = msgspec.convert(given, kind)
        except msgspec.ValidationError:
            continue
        return ToolResult(revived.pieces, revived.structured_content) if kind is Given else result_of(revived)
    return result_of(given)


# -- tools, as a server is called


def hear_tool_call(saying: Saying, scene: Scene) -> ToolCall:
    call: CallTool = saying.params
    if not any(tool.name == call.name for tool in scene.declared.tools):
        raise InvalidParams([("/name", f"there is no tool {call.name[:80]!r} here")])
    return ToolCall(call.name, call.arguments or {})


def answer_tool_call(result: Any, saying: Saying, scene: Scene) -> ToolResult:
    call: CallTool = saying.params
    tool = next((tool for tool in scene.declared.tools if tool.name == call.name), None)
    found = result_of(result)
    if tool is None or tool.output_schema is None or isinstance(result, ToolResult):
        return found
    return structure(found, tool, decode_json(encode_json(result)))


def result_of(result: Any) -> ToolResult:
    """Returns the result of a tool: one in the words of MCP as it is, any other as text, and as an object if it is."""
    if isinstance(result, ToolResult):
        return result
    if (pieces := pieces_of(result)) is not None:
        return ToolResult(pieces)
    if result is None:
        return ToolResult()
    if isinstance(result, str):
        return ToolResult((TextContent(result),))
    plain = decode_json(encode_json(result))
    text = TextContent(tool_text(plain))
    return ToolResult((text,), plain) if is_object(plain) else ToolResult((text,))


def pieces_of(result: Any) -> tuple[Content, ...] | None:
    """Returns what a tool gives in pieces of content; None where it gives something else."""
    if isinstance(result, PIECES):
        return (result,)
    if isinstance(result, list | tuple):
        pieces = tuple(cast("Sequence[Any]", result))
        return pieces if pieces and all(isinstance(piece, PIECES) for piece in pieces) else None
    return None


PIECES: Final = get_args(Content)


def fail_tool_call(error: RpcError, saying: Saying, scene: Scene) -> ToolResult:
    """Returns what a model reads of a failure, so that it can try again. What is no fault of the tool's is an error."""
    if error.meaning in (Meaning.NOT_READY, Meaning.BUSY, Meaning.UNKNOWN_METHOD):
        raise error
    if isinstance(error, InvalidParams):
        error = InvalidParams([(f"/arguments{at.removeprefix('/input')}", text) for at, text in error.problems])
    meaning = None if error.meaning is None else error.meaning.value
    told = {"message": error.message, "code": error.code, "meaning": meaning, "data": error.data}
    known = {name: value for name, value in told.items() if value is not None}
    return ToolResult((TextContent(error.message),), {"error": known}, is_error=True)


def tell_progress(value: object, saying: Saying, scene: Scene) -> Tale | None:
    """Returns the progress of a request whose client wants to hear of it."""
    token = progress_token(saying.params.meta)
    if token is None:
        return None
    return Tale(PROGRESS.name, progress_of(token, value, scene.numbers))


TOOL_CALLS: Final = Phrase(
    say=say_tool_call,
    read=read_tool_result,
    heard_as=lambda scene: [TOOLS_CALL],
    hear=hear_tool_call,
    answer=answer_tool_call,
    fail=fail_tool_call,
    progress=tell_progress,
)


# -- commands, which are prompts here


def say_command(invoke: Invoke, scene: Scene) -> Saying:
    """Returns what asks for a prompt. Words fill its arguments in their order; `name=value` fills one by its name."""
    server: Server = scene.particulars
    prompt = server.prompts.get(invoke.command)
    known = [] if prompt is None else [argument.name for argument in prompt.arguments or ()]
    return Saying(PROMPT_STREAM, GetPrompt(invoke.command, fill_in(known, invoke.args) or None))


PROMPT_STREAM: Final = Stream[GetPrompt, PromptText, Any](PROMPTS_GET.name, GetPrompt, PromptText, events={})


def fill_in(known: Sequence[str], words: Iterable[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition("=")
        if separator and name in known:
            given[name] = value
        elif (free := next((name for name in known if name not in given), None)) is not None:
            given[free] = word
        else:
            problem = f"the prompt takes {len(known)} arguments, and this is one more: {word[:80]!r}"
            raise InvalidParams([("/args", problem)])
    return given


def read_prompt(text: PromptText, saying: Saying, scene: Scene) -> dict[str, Any]:
    messages = [{"role": message.role, "content": text_of([message.content])} for message in text.messages]
    return {"content": "\n\n".join(message["content"] for message in messages), "messages": messages}


class PromptRun(Struct):
    """A request for a prompt, and what its command has put out so far. The latter comes from nobody but us."""

    name: str
    arguments: dict[str, str] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    said: list[str] = field(default_factory=list[str], name="")


PROMPT_RUN: Final[Method[PromptRun, PromptText]] = Method(PROMPTS_GET.name, PromptRun, PromptText)


def hear_prompt(saying: Saying, scene: Scene) -> Invoke:
    run: PromptRun = saying.params
    run.said.clear()
    if not any(name == run.name for name, _ in scene.commands):
        raise InvalidParams([("/name", f"there is no prompt {run.name[:80]!r} here")])
    from shlex import split

    try:
        words = split((run.arguments or {}).get(ARGUMENTS, ""))
    except ValueError as error:  # a quotation without an end
        raise InvalidParams([(f"/arguments/{ARGUMENTS}", str(error))]) from error
    return Invoke(run.name, tuple(words), f"prompt-{next(scene.numbers)}")


def tell_output(event: Any, saying: Saying, scene: Scene) -> Tale | None:
    """Keeps what is put out for the answer; how far a task is, is told at once."""
    run: PromptRun = saying.params
    match event:
        case Text(content=content) | SystemText(content=content) | ErrorText(content=content):
            run.said.append(content)
        case Table(headers=headers, rows=rows):
            run.said += [" | ".join(cells) for cells in (headers, *rows)]
        case TaskUpdated(current=current, total=total, message=message) if current is not None:
            return tell_progress({"progress": current, "total": total, "message": message}, saying, scene)
        case _:
            pass
    return None


def answer_prompt(result: Any, saying: Saying, scene: Scene) -> PromptText:
    run: PromptRun = saying.params
    text = "\n".join(run.said) or ("" if result is None else tool_text(decode_json(encode_json(result))))
    return PromptText((PromptMessage("user", TextContent(text)),) if text else ())


COMMANDS: Final = Phrase(
    say=say_command,
    read=read_prompt,
    heard_as=lambda scene: [PROMPT_RUN],
    hear=hear_prompt,
    answer=answer_prompt,
    tell=tell_output,
    progress=tell_progress,
)


# -- the log


def tell_log(record: LogRecord, scene: Scene) -> Tale | None:
    client = scene.particulars
    level = logging_level(record.level)
    if isinstance(client, Client) and RANK[level] < RANK[client.level]:
        return None
    return Tale(LOG_MESSAGE.name, LogMessage(level, record.message, record.logger))


RANK: Final = {level: rank for rank, level in enumerate(LoggingLevel)}


def hear_log(params: Any, scene: Scene) -> LogRecord:
    try:
        message = msgspec.convert(params, LogMessage)
    except msgspec.ValidationError:  # it is for people, who can read it as it is
        return LogRecord(LogLevel.INFO, scene.extension, encode_json(params).decode())
    return LogRecord(log_level(message.level), message.logger or scene.extension, message.text)


SPEECH: Final = Speech(
    dialect="mcp",
    greet=greet,
    welcome=WELCOME,
    phrases={TOOL_CALL.name: TOOL_CALLS, COMMAND_INVOKE.name: COMMANDS},
    tales={LOG.name: TalePhrase(heard_as=LOG_MESSAGE.name, tell=tell_log, hear=hear_log)},
    check_call=check_call,
)
