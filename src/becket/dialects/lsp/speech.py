"""How the contract is said in LSP: the handshake, commands with their tasks, the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from becket.contract.commands import COMMAND_INVOKE, ErrorText, Invoke, SystemText, Text
from becket.contract.handshake import PROTOCOL_VERSION, Capabilities, DeclaredCapability, Initialize, Initialized
from becket.contract.info import BuildInfo, CapabilityInfo, ExtensionInfo
from becket.contract.log import LOG, LogLevel, LogRecord
from becket.contract.tasks import TaskEnded, TaskEvent, TaskLogged, TaskStarted, TaskUpdated
from becket.dialects.handshakes import Greeted, Greeting, Introduction, Welcome
from becket.dialects.lsp.capabilities import build_capabilities
from becket.dialects.phrases import Phrase, Saying, Scene, Tale
from becket.dialects.speech import Speech, TalePhrase
from becket.errors import BadCapabilities
from becket.methods.descriptors import Method
from becket.methods.streams import EventReader, Stream
from becket.rpc.json_values import decode_json
from becket.typed.problems import is_object

__all__ = ["SPEECH"]

PROGRESS: Final = "$/progress"
LOG_MESSAGE: Final = "window/logMessage"
WHOLE: Final = 100  # reports are in percent
LEVELS: Final = {1: LogLevel.ERROR, 2: LogLevel.WARNING, 3: LogLevel.INFO, 4: LogLevel.DEBUG, 5: LogLevel.DEBUG}
TYPES: Final = {
    LogLevel.CRITICAL: 1,
    LogLevel.ERROR: 1,
    LogLevel.WARNING: 2,
    LogLevel.INFO: 3,
    LogLevel.DEBUG: 4,
}

INITIALIZE: Final[Method[Any, Any]] = Method("initialize", Any, Any)
SHUTDOWN: Final[Method[Any, Any]] = Method("shutdown", Any, Any)


# -- the handshake, on the host's side


def greet(introduction: Introduction) -> Greeting:
    raw = yield Saying(INITIALIZE, build_initialize(introduction))
    result = members_of(decode_json(raw))
    if not is_object(result.get("capabilities")):
        raise BadCapabilities(introduction.extension, [("/capabilities", "is no object")])
    yield Tale("initialized", {})
    offers = {name.removesuffix("Provider"): value for name, value in result["capabilities"].items() if value}
    info = members_of(result.get("serverInfo"))
    return Greeted(
        declared=Capabilities(
            capabilities=tuple(DeclaredCapability("lsp", name, params=value) for name, value in offers.items())
        ),
        about=ExtensionInfo(
            build=BuildInfo(str(info.get("name", introduction.extension)), version=str(info.get("version") or "")),
            capabilities=tuple(CapabilityInfo("lsp", name) for name in offers),
        ),
        particulars=result,
    )


def build_initialize(introduction: Introduction) -> dict[str, Any]:
    """Returns the params of `initialize`. No process is named: the server ends with its input, or is killed."""
    folder = None if introduction.host_cwd is None else Path(introduction.host_cwd)
    uri = None if folder is None else folder.as_uri()
    return {
        "processId": None,
        "clientInfo": {"name": introduction.host.name, "version": introduction.host.version},
        "rootUri": uri,
        "capabilities": build_capabilities(introduction.serves),
        "initializationOptions": dict(introduction.config) or None,
        "workspaceFolders": None if folder is None else [{"uri": uri, "name": folder.name}],
    }


# -- commands, whose progress is a task


class Reported(Struct):
    token: int | str
    value: Any


read_reported = msgspec.json.Decoder(Reported).decode


def is_own(raw: Raw, params: Any) -> bool:
    return bool(read_reported(raw).token == params["workDoneToken"])


def read_task(raw: Raw) -> TaskEvent:
    """Returns a report of progress as an event of a task.

    Raises:
        msgspec.ValidationError: it is none.
    """
    reported = read_reported(raw)
    id, value = str(reported.token), members_of(reported.value)
    message = value.get("message")
    text = message if isinstance(message, str) else None
    match value.get("kind"):
        case "begin":
            return TaskStarted(id, str(value.get("title", "")))
        case "report":
            percentage = value.get("percentage")
            is_known = isinstance(percentage, int) and percentage >= 0
            return TaskUpdated(id, percentage if is_known else None, WHOLE if is_known else None, text)
        case "end":
            return TaskEnded(id)
        case _:
            raise msgspec.ValidationError("no report of progress")


EXECUTE_COMMAND: Final[Stream[Any, Any, TaskEvent]] = Stream(
    "workspace/executeCommand",
    Any,
    Any,
    events={PROGRESS: EventReader(read_task, (TaskStarted, TaskUpdated, TaskEnded), is_own)},
)


def say_command(invoke: Invoke, scene: Scene) -> Saying:
    return Saying(
        EXECUTE_COMMAND,
        {"command": invoke.command, "arguments": list(invoke.args), "workDoneToken": invoke.request_id},
    )


def hear_command(saying: Saying, scene: Scene) -> Invoke:
    params = members_of(saying.params)
    given: Any = params.get("arguments") or []
    return Invoke(
        str(params.get("command", "")),
        tuple(one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in given),
        f"run-{next(scene.numbers)}",
    )


def tell_command(event: Any, saying: Saying, scene: Scene) -> Tale | None:
    """Returns what a client is told of a running command: its tasks, if it asked for them, and its output as a log."""
    token = members_of(saying.params).get("workDoneToken")
    match event:
        case Text(content) | SystemText(content):
            return log_message(LogLevel.INFO, content)
        case ErrorText(content):
            return log_message(LogLevel.ERROR, content)
        case TaskLogged(line=line):
            return log_message(LogLevel.INFO, line)
        case TaskStarted(label=label) if token is not None:
            return report(token, kind="begin", title=label)
        case TaskUpdated() if token is not None:
            return report(token, kind="report", **progress_of(event))
        case TaskEnded(error=error) if token is not None:
            return report(token, kind="end", **({} if error is None else {"message": error}))
        case _:
            return None


def report(token: Any, **value: Any) -> Tale:
    return Tale(PROGRESS, {"token": token, "value": value})


def progress_of(event: TaskUpdated) -> dict[str, Any]:
    said: dict[str, Any] = {} if event.message is None else {"message": event.message}
    if event.current is not None and event.total:
        said["percentage"] = min(WHOLE, WHOLE * event.current // event.total)
    return said


# -- the log


def log_message(level: LogLevel, message: str) -> Tale:
    return Tale(LOG_MESSAGE, {"type": TYPES[level], "message": message})


def tell_log(record: LogRecord, scene: Scene) -> Tale:
    return log_message(record.level, record.message)


def hear_log(params: Any, scene: Scene) -> LogRecord:
    said = members_of(params)
    kind = said.get("type")
    level = LEVELS.get(kind, LogLevel.INFO) if isinstance(kind, int) else LogLevel.INFO
    return LogRecord(level, "lsp", str(said.get("message", "")))


# -- the handshake, on the extension's side


def read_initialize(params: Any, scene: Scene) -> Initialize:
    return Initialize(
        extension_protocol_version=PROTOCOL_VERSION,
        plugin_id=scene.extension,
        plugin_root=None,
        config=members_of(members_of(params).get("initializationOptions")),
    )


def members_of(value: Any) -> dict[str, Any]:
    """Returns an object as it is, and anything else as one without members."""
    return value if is_object(value) else {}


def reply(initialized: Initialized, scene: Scene) -> dict[str, Any]:
    commands = [name for name, _ in scene.commands]
    return {
        "capabilities": {"executeCommandProvider": {"commands": commands, "workDoneProgress": True}},
        "serverInfo": {"name": scene.extension, "version": scene.version},
    }


def say_goodbye(scene: Scene) -> Saying:
    return Saying(SHUTDOWN)


def tell_to_exit(scene: Scene) -> Tale:
    return Tale("exit")


SPEECH: Final = Speech(
    dialect="lsp",
    greet=greet,
    welcome=Welcome(opening=INITIALIZE, read=read_initialize, reply=reply),
    phrases={
        COMMAND_INVOKE.name: Phrase(
            say=say_command, heard_as=lambda _: (EXECUTE_COMMAND,), hear=hear_command, tell=tell_command
        ),
    },
    tales={LOG.name: TalePhrase(heard_as=LOG_MESSAGE, tell=tell_log, hear=hear_log)},
    goodbye=say_goodbye,
    last_word=tell_to_exit,
)
