"""`ScriptedExtension`: an extension server whose calls follow a script set while they run.

It is an ordinary `ExtensionServer`, with tools, providers, commands and hooks that are built at run time.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from msgspec import Struct

from becket.contract.commands import COMMAND_INVOKE, ErrorText, SystemText, Table, Text
from becket.contract.handshake import Capabilities
from becket.contract.hooks import HOOK_HANDLE, HookEvent, HookKind
from becket.contract.info import INFO_GET, SIDECAR_SPAWN_ARGS
from becket.contract.providers import (
    PROVIDER_COMPLETE,
    PROVIDER_STREAM,
    Provider,
    ProviderFailed,
    ProviderRequest,
    TextDelta,
    ThinkingDelta,
    ToolUse,
    Usage,
)
from becket.contract.settings import (
    SETTINGS_EDITOR_COMMIT,
    SETTINGS_EDITOR_KEY,
    SETTINGS_EDITOR_OPEN,
    EditorCommit,
    EditorKey,
    EditorOpen,
)
from becket.contract.tasks import TaskEnded, TaskLogged, TaskStarted, TaskUpdated
from becket.contract.tools import TOOL_CALL
from becket.errors import RpcError
from becket.extension.decorators import command, handles, hook, provider, tool
from becket.extension.outputs import CommandOutput, ProviderStream, Task
from becket.extension.server import ExtensionServer
from becket.methods.descriptors import Notification
from becket.peer.context import Context

__all__ = ["CallScript", "CallScripts", "ScriptNotification", "build_scripted_extension"]


class ScriptEnd(Struct, frozen=True):
    """The last step of a script: what the call returns or raises."""

    result: Any = None
    error: RpcError | None = None


class ScriptNotification(Struct, frozen=True):
    """A notification of a call, sent unchanged."""

    method: str
    params: Any


class CallScript:
    """The script of one call, extended while it runs."""

    def __init__(self) -> None:
        self._send_stream: MemoryObjectSendStream[Any]
        self._receive_stream: MemoryObjectReceiveStream[Any]
        self._send_stream, self._receive_stream = anyio.create_memory_object_stream[Any](float("inf"))
        self.has_ended = False

    def emit(self, event: Any) -> None:
        """Makes the call emit this event of the contract, or this notification."""
        self._send_stream.send_nowait(event)

    def end(self, result: Any = None, error: RpcError | None = None) -> None:
        """Makes the call return or raise this."""
        if not self.has_ended:
            self.has_ended = True
            self._send_stream.send_nowait(ScriptEnd(result, error))

    async def run(self, out: Any = None) -> Any:
        """Runs the script to its end, and returns the result."""
        tasks: dict[str, Task] = {}
        while not isinstance(event := await self._receive_stream.receive(), ScriptEnd):
            await emit_event(out, event, tasks)
        if event.error is not None:
            raise event.error
        return event.result

    def close(self) -> None:
        """Closes the script."""
        self._send_stream.close()
        self._receive_stream.close()


class CallScripts:
    """The scripts of all calls, by method, in the order of the calls."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, deque[CallScript]] = defaultdict(deque)
        self._all: list[CallScript] = []

    def add(self, method: str) -> CallScript:
        """Returns the script of the next call of a method."""
        script = CallScript()
        self._waiting[method].append(script)
        self._all.append(script)
        return script

    async def run(self, method: str, out: Any = None) -> Any:
        """Runs the script of the next call of this method."""
        if not self._waiting[method]:
            raise RpcError(0, f"there is no script for `{method}`")
        return await self._waiting[method].popleft().run(out)

    def close(self) -> None:
        """Closes all scripts."""
        for script in self._all:
            script.close()


async def emit_event(out: Any, event: Any, tasks: dict[str, Task]) -> None:
    """Emits an event in the way that authors do."""
    match event:
        case TextDelta(text):
            await out.text(text)
        case ThinkingDelta(text):
            await out.thinking(text)
        case ToolUse(id, name, input):
            await out.tool_use(id, name, input)
        case Usage(values):
            await out.usage(values)
        case ProviderFailed(message, code):
            await out.error(message, code=code)
        case Text(content):
            await out.text(content)
        case SystemText(content):
            await out.system(content)
        case ErrorText(content):
            await out.error(content)
        case Table(headers, rows):
            await out.table(headers, rows)
        case TaskStarted(id, label, kind):
            tasks[id] = await out.task(label, kind=kind).__aenter__()
        case TaskUpdated(id, current, total, message):
            await tasks[id].update(current=current, total=total, message=message)
        case TaskLogged(id, line):
            await tasks[id].log(line)
        case TaskEnded(id, error):
            failure = None if error is None else RpcError(0, error)
            await tasks.pop(id).__aexit__(None if failure is None else RpcError, failure, None)
        case ScriptNotification(method, params):
            await out.notify(method, params)
        case _:
            raise AssertionError(f"an extension cannot emit this: {event!r}")


class ScriptedExtension(ExtensionServer):
    """The base class of scripted extensions."""

    scripts: CallScripts

    async def info(self) -> Any:
        return await self.scripts.run(INFO_GET.name)

    async def sidecar_args(self) -> Any:
        return await self.scripts.run(SIDECAR_SPAWN_ARGS.name)

    async def on_editor_open(self, opened: EditorOpen) -> Any:
        return await self.scripts.run(SETTINGS_EDITOR_OPEN.name)

    async def on_editor_key(self, pressed: EditorKey) -> Any:
        return await self.scripts.run(SETTINGS_EDITOR_KEY.name)

    async def on_editor_commit(self, taken: EditorCommit) -> Any:
        return await self.scripts.run(SETTINGS_EDITOR_COMMIT.name)


def build_scripted_extension(
    id: str,
    scripts: CallScripts,
    *,
    version: str = "",
    declared: Capabilities = Capabilities(),  # noqa: B008 (frozen)
    commands: Iterable[str] = (),
    hooks: Iterable[HookKind] = (),
    methods: Iterable[str] = (),
    notifications: Iterable[str] = (),
    requests_info: bool = True,
) -> ExtensionServer:
    """Returns an extension with these declarations, whose calls follow `scripts`.

    Without `requests_info` it sends its info with its handshake response.

    Raises:
        TypeError: an extension cannot declare this.
    """
    functions: list[Any] = [
        *(
            tool(one.description, name=one.name, input_schema=one.input_schema)(build_tool(scripts))
            for one in declared.tools
        ),
        *(declare_provider(one, scripts) for one in declared.providers),
        *(command(name)(build_command(scripts)) for name in commands),
        *(hook(kind)(build_hook(scripts)) for kind in hooks),
        *(handles(name)(build_method(name, scripts)) for name in methods),
        *(declare_notification_handler(name) for name in notifications),
    ]
    members: dict[str, Any] = {
        "id": id,
        "version": version,
        "capabilities": declared.capabilities,
        "scripts": scripts,
        **{f"function_{number}": function for number, function in enumerate(functions)},
    }
    if not requests_info:
        members["info"] = ExtensionServer.info
    stand_in: ExtensionServer = type("StandIn", (ScriptedExtension,), members)()
    return stand_in


def build_tool(scripts: CallScripts) -> Any:
    async def run_tool(self: Any, ctx: Context) -> Any:
        return await scripts.run(TOOL_CALL.name)

    return run_tool


def declare_provider(one: Provider, scripts: CallScripts) -> Any:
    async def respond(self: Any, request: ProviderRequest, out: ProviderStream) -> Any:
        method = PROVIDER_STREAM if out.is_wanted else PROVIDER_COMPLETE
        return await scripts.run(method.name, out)

    declare = provider(
        one.id,
        models=one.models,
        display_name=one.display_name,
        description=one.description,
        config_schema=one.config_schema,
    )
    return declare(respond)


def build_command(scripts: CallScripts) -> Any:
    async def run_command(self: Any, args: list[str], out: CommandOutput) -> Any:
        return await scripts.run(COMMAND_INVOKE.name, out)

    return run_command


def build_hook(scripts: CallScripts) -> Any:
    async def respond_to_hook(self: Any, event: HookEvent) -> Any:
        return await scripts.run(HOOK_HANDLE.name)

    return respond_to_hook


def build_method(name: str, scripts: CallScripts) -> Any:
    async def serve(self: Any, params: Any, ctx: Context) -> Any:
        return await scripts.run(name, ctx)

    return serve


def declare_notification_handler(name: str) -> Any:
    async def listen(self: Any, params: Any) -> None:
        pass

    notification: Notification[Any] = Notification(name, Any)
    return handles(notification)(listen)
