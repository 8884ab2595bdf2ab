"""Maps the contract to LSP: handshake, commands with work-done progress, and log messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from becket.adapters.lsp.client_capabilities import build_client_capabilities
from becket.contract.commands import COMMAND_INVOKE, CommandInvoke, ErrorText, SystemText, Text
from becket.contract.handshake import PROTOCOL_VERSION, Capabilities, DeclaredCapability, Initialize, Initialized
from becket.contract.info import BuildInfo, CapabilityInfo, ExtensionInfo
from becket.contract.log import LOG, LogLevel, LogRecord
from becket.contract.tasks import TaskEnded, TaskEvent, TaskLogged, TaskStarted, TaskUpdated
from becket.conversion.problems import is_object
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult, ServerHandshake
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import ContractMapping, MethodMapping, NotificationMapping
from becket.errors import BadCapabilities
from becket.jsonrpc.json_values import decode_json
from becket.methods.descriptors import Method
from becket.methods.streams import EventReader, Stream

__all__ = ["MAPPING"]

PROGRESS: Final = "$/progress"
LOG_MESSAGE: Final = "window/logMessage"
FULL_PERCENT: Final = 100  # reports are in percent
LOG_LEVELS: Final = {1: LogLevel.ERROR, 2: LogLevel.WARNING, 3: LogLevel.INFO, 4: LogLevel.DEBUG, 5: LogLevel.DEBUG}
MESSAGE_TYPES: Final = {
    LogLevel.CRITICAL: 1,
    LogLevel.ERROR: 1,
    LogLevel.WARNING: 2,
    LogLevel.INFO: 3,
    LogLevel.DEBUG: 4,
}

INITIALIZE: Final[Method[Any, Any]] = Method("initialize", Any, Any)
SHUTDOWN: Final[Method[Any, Any]] = Method("shutdown", Any, Any)


# -- client handshake


def client_handshake(context: HandshakeContext) -> ClientHandshake:
    raw = yield WireRequest(INITIALIZE, build_initialize_params(context))
    result = as_object(decode_json(raw))
    if not is_object(result.get("capabilities")):
        raise BadCapabilities(context.extension, [("/capabilities", "is not an object")])
    yield WireNotification("initialized", {})
    offers = {name.removesuffix("Provider"): value for name, value in result["capabilities"].items() if value}
    info = as_object(result.get("serverInfo"))
    return HandshakeResult(
        capabilities=Capabilities(
            capabilities=tuple(DeclaredCapability("lsp", name, params=value) for name, value in offers.items())
        ),
        info=ExtensionInfo(
            build=BuildInfo(str(info.get("name", context.extension)), version=str(info.get("version") or "")),
            capabilities=tuple(CapabilityInfo("lsp", name) for name in offers),
        ),
        extra=result,
    )


def build_initialize_params(context: HandshakeContext) -> dict[str, Any]:
    """Returns the params of `initialize`. `processId` is null: the server exits at the end of stdin, or is killed."""
    folder = None if context.host_cwd is None else Path(context.host_cwd)
    uri = None if folder is None else folder.as_uri()
    return {
        "processId": None,
        "clientInfo": {"name": context.host.name, "version": context.host.version},
        "rootUri": uri,
        "capabilities": build_client_capabilities(context.host_methods),
        "initializationOptions": dict(context.config) or None,
        "workspaceFolders": None if folder is None else [{"uri": uri, "name": folder.name}],
    }


# -- commands, with progress as a task


class LspProgressParams(Struct):
    token: int | str
    value: Any


decode_progress = msgspec.json.Decoder(LspProgressParams).decode


def is_progress_for(raw: Raw, params: Any) -> bool:
    return bool(decode_progress(raw).token == params["workDoneToken"])


def decode_task_event(raw: Raw) -> TaskEvent:
    """Returns a progress report as an event of a task.

    Raises:
        msgspec.ValidationError: it is not a progress report.
    """
    reported = decode_progress(raw)
    id, value = str(reported.token), as_object(reported.value)
    message = value.get("message")
    text = message if isinstance(message, str) else None
    match value.get("kind"):
        case "begin":
            return TaskStarted(id, str(value.get("title", "")))
        case "report":
            percentage = value.get("percentage")
            is_known = isinstance(percentage, int) and percentage >= 0
            return TaskUpdated(id, percentage if is_known else None, FULL_PERCENT if is_known else None, text)
        case "end":
            return TaskEnded(id)
        case _:
            raise msgspec.ValidationError("not a progress report")


EXECUTE_COMMAND: Final[Stream[Any, Any, TaskEvent]] = Stream(
    "workspace/executeCommand",
    Any,
    Any,
    events={PROGRESS: EventReader(decode_task_event, (TaskStarted, TaskUpdated, TaskEnded), is_progress_for)},
)


def encode_command(invoke: CommandInvoke, state: LinkState) -> WireRequest:
    return WireRequest(
        EXECUTE_COMMAND,
        {"command": invoke.command, "arguments": list(invoke.args), "workDoneToken": invoke.request_id},
    )


def decode_command(request: WireRequest, state: LinkState) -> CommandInvoke:
    params = as_object(request.params)
    arguments: Any = params.get("arguments") or []
    return CommandInvoke(
        str(params.get("command", "")),
        tuple(one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in arguments),
        f"run-{next(state.sequence)}",
    )


def encode_command_event(event: Any, request: WireRequest, state: LinkState) -> WireNotification | None:
    """Returns the notification for an event of a command: task progress if requested, and output as log messages."""
    token = as_object(request.params).get("workDoneToken")
    match event:
        case Text(content) | SystemText(content):
            return build_log_message(LogLevel.INFO, content)
        case ErrorText(content):
            return build_log_message(LogLevel.ERROR, content)
        case TaskLogged(line=line):
            return build_log_message(LogLevel.INFO, line)
        case TaskStarted(label=label) if token is not None:
            return build_progress(token, kind="begin", title=label)
        case TaskUpdated() if token is not None:
            return build_progress(token, kind="report", **build_progress_report(event))
        case TaskEnded(error=error) if token is not None:
            return build_progress(token, kind="end", **({} if error is None else {"message": error}))
        case _:
            return None


def build_progress(token: Any, **value: Any) -> WireNotification:
    return WireNotification(PROGRESS, {"token": token, "value": value})


def build_progress_report(event: TaskUpdated) -> dict[str, Any]:
    report: dict[str, Any] = {} if event.message is None else {"message": event.message}
    if event.current is not None and event.total:
        report["percentage"] = min(FULL_PERCENT, FULL_PERCENT * event.current // event.total)
    return report


# -- the log


def build_log_message(level: LogLevel, message: str) -> WireNotification:
    return WireNotification(LOG_MESSAGE, {"type": MESSAGE_TYPES[level], "message": message})


def encode_log(record: LogRecord, state: LinkState) -> WireNotification:
    return build_log_message(record.level, record.message)


def decode_log(params: Any, state: LinkState) -> LogRecord:
    message = as_object(params)
    kind = message.get("type")
    level = LOG_LEVELS.get(kind, LogLevel.INFO) if isinstance(kind, int) else LogLevel.INFO
    return LogRecord(level, "lsp", str(message.get("message", "")))


# -- server handshake


def decode_initialize(params: Any, state: LinkState) -> Initialize:
    return Initialize(
        extension_protocol_version=PROTOCOL_VERSION,
        plugin_id=state.extension,
        plugin_root=None,
        config=as_object(as_object(params).get("initializationOptions")),
    )


def as_object(value: Any) -> dict[str, Any]:
    """Returns an object unchanged, and an empty one for any other value."""
    return value if is_object(value) else {}


def encode_initialize_result(initialized: Initialized, state: LinkState) -> dict[str, Any]:
    commands = [name for name, _ in state.commands]
    return {
        "capabilities": {"executeCommandProvider": {"commands": commands, "workDoneProgress": True}},
        "serverInfo": {"name": state.extension, "version": state.version},
    }


def encode_shutdown(state: LinkState) -> WireRequest:
    return WireRequest(SHUTDOWN)


def encode_exit(state: LinkState) -> WireNotification:
    return WireNotification("exit")


MAPPING: Final = ContractMapping(
    dialect="lsp",
    client_handshake=client_handshake,
    server_handshake=ServerHandshake(
        initialize_method=INITIALIZE, decode_params=decode_initialize, encode_result=encode_initialize_result
    ),
    methods={
        COMMAND_INVOKE.name: MethodMapping(
            encode_request=encode_command,
            wire_methods=lambda _: (EXECUTE_COMMAND,),
            decode_request=decode_command,
            encode_event=encode_command_event,
        ),
    },
    notifications={LOG.name: NotificationMapping(wire_name=LOG_MESSAGE, encode=encode_log, decode=decode_log)},
    encode_shutdown=encode_shutdown,
    encode_exit=encode_exit,
)
