"""Commands that a manifest leaves to the host: a program in the extension's folder, or a tool with a given input.

Only those of an extension that may start are run. A program runs in the extension's folder, with its variables and
behind the host's `wrap`; `before_tool_call` and `after_tool_call` hooks are consulted as for a tool called
`extension:command`. Its output becomes events of the run. A skill is a prompt for an agent: it is not supported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from becket._text import quote_path
from becket.contract.audit import ProcessStarted
from becket.contract.commands import COMMAND_INVOKE, CommandEvent, CommandInvoke, PlainText, SystemText
from becket.contract.json_narrowing import is_array, is_object
from becket.contract.names import model_facing_name, tool_runtime_name
from becket.contract.tools import Tool
from becket.dialects.mapping import identity
from becket.errors import BadValue, CommandFailed, ExtensionRefused, NotSupported, StartFailed
from becket.host.hook_plan import Hooks
from becket.host.hooks import RunHooks
from becket.host.local_stream import Emit, LocalStream
from becket.host.program_output import ProgramOutput, run_program
from becket.host.redaction import redact_command
from becket.host.serving.audited_gate import record_event
from becket.host.serving.client import MappedStream
from becket.host.serving.revocation import RevocableCalls
from becket.host.serving.streams import ExtensionStream, ExtensionStreams
from becket.host.starting.candidate import Candidate
from becket.host.starting.connect import NO_CONTAINMENT
from becket.host.starting.launch import LaunchSettings
from becket.host.starting.programs import NoSuchProgram, list_program_folders, resolve_command
from becket.host.starting.start_check import find_setup
from becket.host.tool_calls import run_tool
from becket.host.tools import RegisteredTool

if TYPE_CHECKING:
    from becket.host.extension import Extension
    from becket.peer.protocols import Loop

__all__ = ["HostCommand", "HostCommands", "find_host_command"]

ARGS: Final = "${args}"  # placeholder of the user's arguments in the input of a tool
CallToolByName = Callable[[str, Mapping[str, Any]], Awaitable[str]]
T = TypeVar("T")


class HostCommand(Protocol):
    """A command of a foreign manifest: a program, a tool or a skill."""

    @property
    def name(self) -> str: ...
    @property
    def command(self) -> str | None: ...
    @property
    def args(self) -> tuple[str, ...]: ...
    @property
    def tool(self) -> str | None: ...
    @property
    def input(self) -> Any: ...
    def find_skill(self, folder: str, /) -> str | None:
        """Returns the file of its skill in the folder of the extension."""
        ...


def host_commands_of(candidate: Candidate) -> tuple[HostCommand, ...]:
    return getattr(candidate.extra, "host_commands", ())


def find_host_command(candidate: Candidate, name: str) -> HostCommand | None:
    """Returns the command of this name that the host runs itself; None if there is none."""
    return next((one for one in host_commands_of(candidate) if one.name == name), None)


class HostCommands:
    """Runs the commands of one host. `call_tool` runs a tool between its hooks, `consult` the hooks of a program.

    `hooks` returns whether there are any: without them a program's output is shown while it runs."""

    def __init__(
        self, loop: Loop, settings: LaunchSettings, hooks: Hooks, *, call_tool: CallToolByName, consult: RunHooks
    ) -> None:
        self._loop = loop
        self._settings = settings
        self._hooks = hooks
        self._call_tool = call_tool
        self._consult = consult
        self._streams: dict[str, ExtensionStreams] = {}

    def open(
        self,
        command: HostCommand,
        candidate: Candidate,
        extension: Extension,
        args: tuple[str, ...],
        options: Mapping[str, Any],
    ) -> ExtensionStream[CommandEvent, Any]:
        """Returns a run of a command, to be opened. The result of a tool is its text, that of a program its `status`.

        Of the options of a stream it has `timeout` and `idle_timeout`; by default neither is limited.

        Raises:
            NotSupported: it is a skill, or the input of its tool is not an object.
        """
        if command.command is not None:
            run = ProgramRun(self._settings, self._hooks, self._consult, command, candidate, extension)

            async def produce(emit: Emit[CommandEvent]) -> Any:
                return await run.produce(args, emit)

        elif command.tool is not None:
            name, input = tool_runtime_name(candidate.id, command.tool), fill_in(command.input or {}, " ".join(args))
            if not is_object(input):
                raise NotSupported(f"the command `{command.name}` of {candidate.id}", "its `input` is not an object")

            async def produce(emit: Emit[CommandEvent]) -> Any:
                text = await self._call_tool(name, input)
                await emit(PlainText(text))
                return text

        else:
            raise refuse_skill(command, candidate)
        stream = LocalStream[CommandEvent, Any](
            self._loop,
            tool_runtime_name(candidate.id, command.name),
            produce,
            timeout=options.get("timeout"),
            idle_timeout=options.get("idle_timeout"),
        )
        mapped = MappedStream[CommandEvent, Any](
            stream, COMMAND_INVOKE, CommandInvoke(command.name, args, "-"), identity
        )
        return ExtensionStream(self._streams_of(extension), mapped, is_marked=True)

    def _streams_of(self, extension: Extension) -> ExtensionStreams:
        if extension.id not in self._streams:
            self._streams[extension.id] = ExtensionStreams(
                RevocableCalls(extension.gate, self._loop), self._loop, turn_timeout=None
            )
        return self._streams[extension.id]


def refuse_skill(command: HostCommand, candidate: Candidate) -> NotSupported:
    path = command.find_skill(candidate.folder) or candidate.manifest_path
    because = f"it is a skill, which is for the agent of its own system: {quote_path(path)}"
    return NotSupported(f"the command `{command.name}` of {candidate.id}", because)


def fill_in(value: Any, arguments: str) -> Any:
    """Returns the input of a tool with the user's arguments filled in."""
    if isinstance(value, str):
        return value.replace(ARGS, arguments)
    if is_array(value):
        return [fill_in(part, arguments) for part in value]
    if is_object(value):
        return {name: fill_in(part, arguments) for name, part in value.items()}
    return value


# -- programs


class ProgramRun:
    """One run of a program, between the hooks of tools."""

    def __init__(
        self,
        settings: LaunchSettings,
        hooks: Hooks,
        consult: RunHooks,
        command: HostCommand,
        candidate: Candidate,
        extension: Extension,
    ) -> None:
        self._settings = settings
        self._hooks = hooks
        self._consult = consult
        self._command = command
        self._candidate = candidate
        self._extension = extension
        self._runtime_name = tool_runtime_name(candidate.id, command.name)

    async def produce(self, args: tuple[str, ...], emit: Emit[CommandEvent]) -> dict[str, Any]:
        """Runs the program and emits its output; returns its exit status.

        Raises:
            ToolBlocked: a hook has blocked it. It has not run.
            StartFailed: there is no such program, or none that may be run.
            CommandFailed: it has ended with another status than 0.
        """
        tool_input = {"command": self._command.command, "args": [*self._command.args, *args]}
        if not self._hooks.has_tool_hooks:
            output = await self._run(tool_input, emit)
        else:
            output = await self._run_between_hooks(tool_input, emit)
        if output.exit_code != 0:
            raise CommandFailed(self._runtime_name, exit_code=output.exit_code, signal=output.signal)
        return {"status": 0}

    async def _run_between_hooks(self, tool_input: dict[str, Any], emit: Emit[CommandEvent]) -> ProgramOutput:
        """Runs it, and emits its stdout at the end: a hook may replace it."""
        collected = Collected(emit, self._settings.limits.hook_replacement)
        ended: list[ProgramOutput] = []

        async def call(tool: RegisteredTool, input: Any) -> str:
            ended.append(await self._run(input, collected.emit))
            return collected.text

        outcome = await run_tool(self._describe(), tool_input, call, self._consult, limits=self._settings.limits)
        text = outcome.unwrap()
        if text:
            await emit(PlainText(text))
        if collected.left_out:
            await emit(SystemText(f"({collected.left_out} more characters were left out)"))
        return ended[0]

    def _describe(self) -> RegisteredTool:
        """Returns the command as a tool, for hooks."""
        tool, name = Tool(self._command.name, "", {"type": "object"}), self._runtime_name
        return RegisteredTool(self._candidate.id, tool, name, model_facing_name(name), "", tool.input_schema)

    async def _run(self, tool_input: Any, emit: Emit[CommandEvent]) -> ProgramOutput:
        args: Any = tool_input.get("args") if is_object(tool_input) else None
        if not is_array(args) or not all(isinstance(word, str) for word in args):
            raise BadValue("a hook", [("/args", "must be a list of strings")])
        if tool_input.get("command") != self._command.command:
            raise BadValue("a hook", [("/command", "must not be changed: only `args` may")])
        settings, candidate = self._settings, self._candidate
        async with self._extension.supervisor.acquire() as copy:
            command = self._resolve([str(word) for word in args], copy.root or candidate.folder)
            if settings.wrap is not None:
                command = [*settings.wrap(candidate.id, command)]
            manifest = candidate.manifest
            record_event(
                settings.audit,
                ProcessStarted(
                    candidate.id,
                    redact_command(command),
                    manifest.dialect,
                    (),
                    NO_CONTAINMENT,
                    version=manifest.version,
                ),
            )
            async with run_program(
                command,
                cwd=copy.root or candidate.folder,
                env=copy.environment,
                limits=settings.limits,
                guard=settings.guard,
            ) as output:
                async for part in output:
                    await emit(part)
            if output.dropped:
                await emit(SystemText(f"({output.dropped} lines of stderr were dropped)"))
            return output

    def _resolve(self, args: list[str], folder: str) -> list[str]:
        """Returns the command with the absolute path of its program; its arguments are relative to its working
        directory.

        Those of the manifest must not lead out of the folder; those of the user may be anything."""
        arguments = (self._command.command or "", *self._command.args)
        folders = list_program_folders(self._settings.variables.get("PATH", ""))
        try:
            program, *_ = resolve_command(self._candidate.id, arguments, folder, folders)
        except ExtensionRefused as error:
            because = error.because
            if isinstance(error, NoSuchProgram) and (script := find_setup(self._candidate)):
                because = f"{because} (run its setup script: {quote_path(script)})"
            raise StartFailed(self._runtime_name, because) from error
        return [program, *args]


class Collected:
    """Holds a program's stdout, up to a limit; the rest is passed on at once."""

    def __init__(self, emit: Emit[CommandEvent], limit: int) -> None:
        self.left_out = 0
        self._emit = emit
        self._limit = limit
        self._parts: list[str] = []
        self._size = 0

    async def emit(self, event: CommandEvent) -> None:
        """Handles an event of the program."""
        if not isinstance(event, PlainText):
            await self._emit(event)
            return
        held = event.content[: max(0, self._limit - self._size)]
        self._parts.append(held)
        self._size += len(held)
        self.left_out += len(event.content) - len(held)

    @property
    def text(self) -> str:
        """The text held."""
        return "\n".join(self._parts)
