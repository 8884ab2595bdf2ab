"""Checks of `becket check` for foreign dialects, through the host's own connection.

The checks observe the host's own code from process start to exit, so a program that passes them also works in a host.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from functools import partial
from time import monotonic
from typing import Any

import anyio
import msgspec
from msgspec import Raw
from msgspec.structs import replace

from becket._text import quote
from becket.cli.support.check_cases import PINGS, Case, Observation, Observed, cases_of, judge
from becket.cli.support.findings import NOTHING_DECLARED, CheckSubject, Finding, describe_exit
from becket.cli.support.sample_inputs import sample_input
from becket.contract.commands import COMMAND_INVOKE
from becket.contract.handshake import Capabilities
from becket.contract.json_narrowing import is_object
from becket.dialects import Dialect
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult
from becket.dialects.link_state import WireRequest
from becket.dialects.mapping import ContractMapping
from becket.errors import (
    JSON_ERRORS,
    BadCapabilities,
    BadReply,
    BecketError,
    CallTimeout,
    ConnectionLost,
    HandshakeFailed,
    MissingExtra,
    NotSupported,
    RemoteError,
    StartFailed,
)
from becket.framing.framing import Frame, Framing, SkippedFrame
from becket.host.extension import Extension
from becket.host.starting.connect import connect_extension
from becket.limits import DEFAULT_LIMITS, Limits
from becket.permissions.names import PERMISSIONS

__all__ = ["check_foreign_dialect"]

Seen = tuple[Case, Observation]
MAX_OUTPUT_BYTES = 64 * 1024  # kept of the program's output
logging.getLogger("becket").addHandler(logging.NullHandler())  # the findings report the same problems


def check_foreign_dialect(dialect: Dialect, subject: CheckSubject) -> Iterator[Finding]:
    """Runs the cases of a foreign dialect and yields the findings."""
    watch = DialectObserver(dialect)
    cases = cases_of(dialect.name)
    for case, observation in anyio.run(
        run_connection, watch, subject, [case for case in cases if not case.own_process]
    ):
        yield judge(case, observation)
    for case in cases:
        yield from (judge(case, seen) for seen in watch.observe_output(case))
    if watch.is_ready and watch.mapping.encode_shutdown is not None:
        alone = [case for case in cases if case.own_process or case.id in ("start", "response")]
        for case, observation in anyio.run(run_connection, DialectObserver(dialect), subject, alone):
            if case.own_process:
                yield judge(case, observation)


async def run_connection(watch: DialectObserver, subject: CheckSubject, cases: Sequence[Case]) -> list[Seen]:
    """Starts the program, performs the handshake and runs the cases; returns the observations."""
    dialect = watch.dialect
    try:
        extension = await connect_extension(
            subject.command,
            id=subject.id,
            env=subject.env,
            inherit_env=None,
            root=subject.root,
            cwd=subject.cwd,
            grants=[*PERMISSIONS],
            dialect=dialect,
            limits=watch.limits_for(subject.timeout),
            config=subject.config,
            extra=subject.extra,
            on_stderr=watch.on_stderr_line,
        )
    except MissingExtra:  # which says nothing about the program
        raise
    except BecketError as error:
        by_id = {case.id: case for case in cases}
        return [(by_id[id], observation) for id, observation in watch.explain_failure(subject, error)]
    found: list[Seen] = []
    calls = Calls(extension, subject, watch)
    try:
        for case in cases:
            found += [(case, observation) async for observation in calls.observe(case)]
    finally:
        await extension.aclose()
    return found


class Calls:
    """Runs cases with a program after the handshake."""

    def __init__(self, extension: Extension, subject: CheckSubject, watch: DialectObserver) -> None:
        self._extension = extension
        self._subject = subject
        self._watch = watch
        self._called: tuple[str, dict[str, Any]] | None = None  # the first tool that responded, with its input

    async def observe(self, case: Case) -> AsyncGenerator[Observation, None]:
        """Runs a case and yields observations."""
        extension, watch = self._extension, self._watch
        match case.id:
            case "response":
                yield watch.build_response_finding()
            case "handshake":
                yield Observation(Observed.RESULT, {"declared": watch.describe(extension)})
                for name, because in extension.disabled_tools.items():
                    problem = f"the tool `{name}` is disabled, because its schema is invalid: {because}"
                    yield Observation(Observed.INVALID, {"problem": problem, "hint": ""})
                for note in watch.notes:
                    yield Observation(Observed.ODDITY, {"problem": note, "hint": ""})
            case "ping" if watch.dialect.name in PINGS:
                ping = extension.peer.call(PINGS[watch.dialect.name], timeout=self._subject.call_timeout)
                yield await self._observe(ping, {})
            case "tools":
                async for observation in self._observe_tools():
                    yield observation
            case "cancel" if self._called is not None and not extension.is_closed:
                tool, input = self._called
                with anyio.move_on_after(0):  # cancels the call as soon as it waits for its response
                    await self._call_tool(tool, input)
                yield await self._call_tool(tool, input)
            case "commands" if not extension.is_closed:
                async for observation in self._observe_command():
                    yield observation
            case "stdin" if not extension.is_closed:
                await extension.aclose()
                yield self._observe_end(watch.dialect.host_defaults.eof_exit_codes)
            case "shutdown":
                await extension.shutdown()
                ended = self._observe_end(())
                yield Observation(Observed.EXIT) if ended.observed is Observed.BAD_EXIT else ended
            case _:
                return

    async def _observe_tools(self) -> AsyncGenerator[Observation, None]:
        declared = self._extension.tools
        callable_tools = self._subject.tools_to_call(declared)
        if declared and not callable_tools:
            yield Observation(Observed.UNMARKED)
        for tool in callable_tools:
            if self._extension.is_closed:
                return
            sample = sample_input(tool.input_schema)
            if sample is None:
                yield Observation(Observed.ODDITY, {"tool": tool.name})
                continue
            observation = await self._call_tool(tool.name, sample)
            if observation.observed in (Observed.RESULT, Observed.ERROR):
                self._called = self._called or (tool.name, sample)
            yield observation

    async def _call_tool(self, tool: str, input: dict[str, Any]) -> Observation:
        facts = {"tool": tool, "input": msgspec.json.encode(input).decode()}
        timeout = self._subject.call_timeout
        return await self._observe(self._extension.call_tool_json(tool, input, timeout=timeout), facts)

    async def _observe_command(self) -> AsyncGenerator[Observation, None]:
        line = self._subject.line
        if line is None:
            if self._subject.has_commands:
                yield Observation(Observed.UNMARKED)
            return
        facts = {"command": line[0], "input": msgspec.json.encode(line[1:]).decode()}
        try:
            yield await self._observe(self._run_command(line), facts)
        except NotSupported:
            return  # the dialect has no commands

    async def _run_command(self, line: tuple[str, ...]) -> None:
        seconds = self._subject.call_timeout
        async with self._extension.invoke_command(line[0], line[1:], timeout=seconds, idle_timeout=seconds) as run:
            await run.result()
            if run.skipped:
                raise BadReply(method=COMMAND_INVOKE.name, problem=f"{run.skipped} of its events are malformed")

    async def _observe(self, call: Awaitable[object], facts: dict[str, str]) -> Observation:
        """Returns the observation of a call."""
        began = monotonic()
        try:
            await call
        except NotSupported:
            raise
        except CallTimeout as error:
            return Observation(Observed.SILENCE, {**facts, "seconds": f"{error.seconds:g}"})
        except BadReply as error:
            return Observation(Observed.INVALID, {**facts, "problem": str(error)})
        except ConnectionLost:
            ended = describe_exit(exit_code_of(self._extension))
            return Observation(Observed.CRASH, {**facts, "ended": ended, "last_output": self._watch.last_output})
        except RemoteError as error:
            return Observation(Observed.ERROR, {**facts, "code": error.code, "message": error.message}, error.meaning)
        except BecketError as error:
            return Observation(Observed.ERROR, {**facts, "message": str(error)})
        return Observation(Observed.RESULT, {**facts, "ms": f"{(monotonic() - began) * 1000:.0f}"})

    def _observe_end(self, orderly: tuple[int, ...]) -> Observation:
        code = exit_code_of(self._extension)
        if code is None or code < 0:
            grace = self._watch.limits_for(self._subject.timeout).stdin_grace
            return Observation(Observed.RUNNING, {"seconds": f"{grace:g}"})
        return Observation(Observed.EXIT if code in orderly else Observed.BAD_EXIT, {"ended": describe_exit(code)})


def exit_code_of(extension: Extension) -> int | None:
    process = extension.peer.process
    return None if process is None else process.exit_code


class DialectObserver:
    """Wraps a dialect and records the program's responses, their times and its output."""

    def __init__(self, dialect: Dialect) -> None:
        assert dialect.load_mapping is not None
        self.mapping: ContractMapping = dialect.load_mapping()
        self.notes: tuple[str, ...] = ()
        self.is_ready = False
        self.output = b""
        self.odd: list[bytes] = []  # frames that are not messages
        self._reads_json = dialect.wire_format is not None
        self._is_strict = dialect.bad_json_is_fatal
        self._began = monotonic()
        self._first_method = ""
        self._response_seconds: float | None = None
        self._stderr = ""
        mapping = replace(self.mapping, client_handshake=self._client_handshake)
        self.dialect = replace(dialect, load_mapping=lambda: mapping, framing=partial(RecordedFraming, self, dialect))

    def limits_for(self, timeout: float) -> Limits:
        """Returns the limits of the dialect with this timeout for the handshake and for the shutdown."""
        usual = self.dialect.host_limits
        grace = max(usual.stdin_grace, DEFAULT_LIMITS.stdin_grace)  # a slow shutdown is not an error here
        return usual.but(handshake=timeout, stdin_grace=min(timeout, grace), term_grace=0.5)

    def on_stderr_line(self, line: str) -> None:
        """Keeps the last line."""
        self._stderr = line.strip() or self._stderr

    def on_output(self, chunk: bytes, frames: list[Frame | SkippedFrame]) -> None:
        """Records output of the program."""
        self.output = (self.output + chunk)[:MAX_OUTPUT_BYTES] if len(self.output) < MAX_OUTPUT_BYTES else self.output
        for frame in frames:
            if self._reads_json and not isinstance(frame, SkippedFrame) and not is_message(bytes(frame)):
                self.odd.append(bytes(frame))

    def _client_handshake(self, context: HandshakeContext) -> ClientHandshake:
        """Runs the client handshake of the dialect and records the time of the first response."""
        steps = self.mapping.client_handshake(context)
        step = next(steps)
        try:
            while True:
                if isinstance(step, WireRequest) and not self._first_method:
                    self._first_method = step.method.name
                try:
                    response: Raw = yield step
                except BecketError as error:
                    step = steps.throw(error)
                    continue
                if self._response_seconds is None and isinstance(step, WireRequest):
                    self._response_seconds = monotonic() - self._began
                step = steps.send(response)
        except StopIteration as stop:
            result: HandshakeResult = stop.value
            self.notes = result.warnings
            self.is_ready = True
            return result

    # -- findings

    def build_response_finding(self) -> Observation:
        """Returns the observation that the program responded in this dialect."""
        milliseconds = (self._response_seconds or 0.0) * 1000
        return Observation(Observed.RESULT, {"method": self._first_method, "ms": f"{milliseconds:.0f}"})

    @property
    def last_output(self) -> str:
        """The last line of stderr, as a suffix of a message about the exit."""
        return f", last line of stderr: {self._stderr}" if self._stderr else ""

    def describe(self, extension: Extension) -> str:
        """Returns what the program declares."""
        declared = Capabilities(extension.tools, extension.providers, extension.capabilities)
        offers = {
            "tools": [tool.name for tool in declared.tools],
            "providers": [provider.id for provider in declared.providers],
            "capabilities": [capability.name for capability in declared.capabilities],
            "hooks": [str(kind) for kind in extension.hooks],
        }
        text = "; ".join(f"{what} {', '.join(names)}" for what, names in offers.items() if names)
        return text or NOTHING_DECLARED

    def explain_failure(self, subject: CheckSubject, error: BecketError) -> Iterator[tuple[str, Observation]]:
        """Yields why connecting to the program failed, as case ids and observations."""
        if isinstance(error, StartFailed) and error.exit_code is None:
            yield "start", Observation(Observed.NOT_STARTED, {"program": subject.command[0], "problem": error.because})
        elif self._response_seconds is None:
            yield "response", self._explain_silence(subject, error)
        else:
            yield "response", self.build_response_finding()
            problems = error.problems if isinstance(error, BadCapabilities) else [("", describe_cause(error))]
            for pointer, text in problems:
                problem = f"{pointer}: {text}" if pointer else text
                yield "handshake", Observation(Observed.INVALID, {"problem": problem, "hint": ""})

    def _explain_silence(self, subject: CheckSubject, error: BecketError) -> Observation:
        facts = {"method": self._first_method}
        if isinstance(error, StartFailed):
            ended = describe_exit(error.exit_code)
            return Observation(Observed.CRASH, {**facts, "ended": ended, "last_output": self.last_output})
        if isinstance(error.__cause__, CallTimeout):
            wrote = f"; it wrote: {quote(self.output)}" if self.output else ""
            return Observation(Observed.SILENCE, {**facts, "seconds": f"{subject.timeout:g}", "wrote": wrote})
        return Observation(Observed.INVALID, {"problem": describe_cause(error)})

    def observe_output(self, case: Case) -> Iterator[Observation]:
        """Yields observations of the program's output."""
        if case.id == "stdout" and self.odd:
            # Hosts of some dialects skip such text.
            observed = Observed.STRAY if self._is_strict else Observed.SKIPPED_STRAY
            yield Observation(observed, {"wrote": quote(self.odd[0])})
        elif case.id == "framing" and not self.odd and self.is_ready:
            yield Observation(Observed.CLEAN)


def describe_cause(error: BecketError) -> str:
    return error.because if isinstance(error, HandshakeFailed | StartFailed) else str(error)


def is_message(frame: bytes) -> bool:
    try:
        return is_object(msgspec.json.decode(frame))
    except JSON_ERRORS:
        return False


class RecordedFraming:
    """Wraps a framing and reports every chunk and its frames to a `DialectObserver`."""

    def __init__(self, watch: DialectObserver, dialect: Dialect, limits: Limits) -> None:
        self._watch = watch
        self._framing: Framing = dialect.framing(limits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._framing, name)

    def feed(self, chunk: bytes) -> list[Frame | SkippedFrame]:
        """Returns the frames that this chunk completes."""
        frames = self._framing.feed(chunk)
        self._watch.on_output(chunk, frames)
        return frames
