"""What `becket check` looks at where a program speaks the words of another system: it is started as a host would.

The host's own way is taken, from the first byte to the end of the process, and watched: so what passes here runs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from functools import partial
from time import monotonic
from typing import Any

import anyio
import msgspec
from msgspec import Raw
from msgspec.structs import replace

from becket.cli.findings import NOTHING_DECLARED, Finding, Level, Subject, how_it_ended
from becket.contract.handshake import Capabilities
from becket.contract.shapes import is_object
from becket.dialects import Dialect
from becket.dialects.handshakes import Greeted, Greeting, Introduction
from becket.dialects.phrases import Saying
from becket.dialects.speech import Speech
from becket.errors import BadCapabilities, BecketError, CallTimeout, HandshakeFailed, StartFailed, quote
from becket.host.connecting import connect_extension
from becket.host.extension import Extension
from becket.limits import Limits
from becket.methods.permissions import PERMISSIONS
from becket.wire.framing import Frame, Framing, Skipped

__all__ = ["check_spoken"]

SHOWN = 64 * 1024  # bytes of what it wrote that are looked at
logging.getLogger("becket").addHandler(logging.NullHandler())  # all that it would say is found here, and told better


def check_spoken(dialect: Dialect, subject: Subject) -> Iterator[Finding]:
    """Drives a program through the first exchange of its dialect, and to its end: both ways, where there are two."""
    watch = Watch(dialect)
    greeted = anyio.run(meet, watch, subject, partial(end_stdin, watch))
    yield from greeted
    yield from watch.judge_output()
    if watch.is_ready and watch.speech.goodbye is not None:
        second = Watch(dialect)
        findings = anyio.run(meet, second, subject, partial(say_goodbye, second))
        yield from (finding for finding in findings if finding.check == "goodbye")


async def meet(watch: Watch, subject: Subject, ending: Any) -> list[Finding]:
    """Starts the program and shakes hands; returns what was found on the way there and back."""
    dialect = watch.dialect
    try:
        extension = await connect_extension(
            subject.command,
            id=subject.id,
            env=subject.env,
            inherit_env=None,
            root=subject.cwd or os.getcwd(),
            cwd=subject.cwd,
            grants=[*PERMISSIONS],
            dialect=dialect,
            limits=watch.limits_for(subject.timeout),
            config=subject.config,
            particulars=subject.particulars,
            on_stderr=watch.take_stderr,
        )
    except BecketError as error:
        return [*watch.explain(subject, error)]
    findings = [watch.answer(), Finding("handshake", Level.OK, watch.describe(extension))]
    findings += [Finding("handshake", Level.WARNING, note) for note in watch.notes]
    findings.append(await ending(extension))
    return findings


async def end_stdin(watch: Watch, extension: Extension) -> Finding:
    """Closes the program's stdin, which is all that a host that dies leaves it."""
    await extension.aclose()
    code = exit_code_of(extension)
    if code is None or code < 0:
        hint = "end the program when reading stdin gives nothing more: else it outlives a host that has died"
        return Finding("stdin", Level.WARNING, "it goes on after its stdin has ended", hint)
    if code not in watch.dialect.habits.eof_exit_codes:
        text = f"it {how_it_ended(code)} when its stdin has ended"
        return Finding("stdin", Level.WARNING, text, "exit with 0: it is a good end")
    return Finding("stdin", Level.OK, "it ends when its stdin ends")


async def say_goodbye(watch: Watch, extension: Extension) -> Finding:
    """Asks the program to end. Many end without an answer, which is as good."""
    await extension.shutdown()
    code = exit_code_of(extension)
    if code is None or code < 0:
        return Finding("goodbye", Level.WARNING, "it does not end when it is asked to", "end the program then")
    return Finding("goodbye", Level.OK, "it ends when it is asked to")


def exit_code_of(extension: Extension) -> int | None:
    process = extension.peer.process
    return None if process is None else process.exit_code


class Watch:
    """A dialect that is used and looked at: what was answered, when, and all that the program wrote."""

    def __init__(self, dialect: Dialect) -> None:
        assert dialect.contract is not None
        self.speech: Speech = dialect.contract()
        self.notes: tuple[str, ...] = ()
        self.is_ready = False
        self.output = b""
        self.odd: list[bytes] = []  # frames that are no messages
        self._reads_json = dialect.spelling is not None
        self._is_strict = dialect.bad_json_is_fatal
        self._began = monotonic()
        self._asked = ""
        self._answered_after: float | None = None
        self._stderr = ""
        speech = replace(self.speech, greet=self._greet)
        self.dialect = replace(dialect, contract=lambda: speech, framing=partial(Watching, self, dialect))

    def limits_for(self, timeout: float) -> Limits:
        """Returns the limits of the dialect, with so many seconds for the first exchange, and for the end."""
        usual = self.dialect.host_limits
        return usual.but(handshake=timeout, stdin_grace=min(timeout, usual.stdin_grace), term_grace=0.5)

    def take_stderr(self, line: str) -> None:
        """Keeps the last line."""
        self._stderr = line.strip() or self._stderr

    def take_output(self, chunk: bytes, frames: list[Frame | Skipped]) -> None:
        """Looks at what the program writes."""
        self.output = (self.output + chunk)[:SHOWN] if len(self.output) < SHOWN else self.output
        for frame in frames:
            if self._reads_json and not isinstance(frame, Skipped) and not is_message(bytes(frame)):
                self.odd.append(bytes(frame))

    def _greet(self, introduction: Introduction) -> Greeting:
        """The greeting of the dialect, with a look at each answer."""
        steps = self.speech.greet(introduction)
        step = next(steps)
        try:
            while True:
                if isinstance(step, Saying) and not self._asked:
                    self._asked = step.method.name
                try:
                    answer: Raw = yield step
                except BecketError as error:
                    step = steps.throw(error)
                    continue
                if self._answered_after is None and isinstance(step, Saying):
                    self._answered_after = monotonic() - self._began
                step = steps.send(answer)
        except StopIteration as stop:
            greeted: Greeted = stop.value
            self.notes = greeted.notes
            self.is_ready = True
            return greeted

    # -- what was found

    def answer(self) -> Finding:
        """Returns that the program speaks this dialect."""
        milliseconds = (self._answered_after or 0.0) * 1000
        return Finding("answer", Level.OK, f"`{self._asked}` was answered in {milliseconds:.0f} ms")

    def describe(self, extension: Extension) -> str:
        """Returns what the program declares."""
        declared = Capabilities(extension.tools, extension.providers, extension.capabilities)
        offers = {
            "tools": [tool.name for tool in declared.tools],
            "providers": [provider.id for provider in declared.providers],
            "capabilities": [capability.name for capability in declared.capabilities],
            "hooks": [str(kind) for kind in extension.hooks],
        }
        said = "; ".join(f"{what} {', '.join(names)}" for what, names in offers.items() if names)
        return said or NOTHING_DECLARED

    def explain(self, subject: Subject, error: BecketError) -> Iterator[Finding]:
        """Yields why the program could not be met."""
        if isinstance(error, StartFailed) and error.exit_code is None:
            hint = "look at its path, and whether it is executable"
            yield Finding("start", Level.ERROR, f"`{subject.command[0]}` cannot be started: {error.because}", hint)
            return
        if self._answered_after is not None:
            yield self.answer()
            problems = error.problems if isinstance(error, BadCapabilities) else [("", because_of(error))]
            for pointer, text in problems:
                yield Finding("handshake", Level.ERROR, f"{pointer}: {text}" if pointer else text)
            return
        yield Finding("answer", Level.ERROR, self._why_silent(subject, error))

    def _why_silent(self, subject: Subject, error: BecketError) -> str:
        said = f", its last words: {self._stderr}" if self._stderr else ""
        if isinstance(error, StartFailed):
            return f"it {how_it_ended(error.exit_code)} before it answered `{self._asked}`{said}"
        if isinstance(error.__cause__, CallTimeout):
            wrote = f"; it wrote: {quote(self.output)}" if self.output else ""
            return f"`{self._asked}` was not answered within {subject.timeout:g} s{wrote}"
        return because_of(error)

    def judge_output(self) -> Iterator[Finding]:
        """Yields what is wrong with the bytes that the program wrote."""
        if self.odd:
            hint = "stdout belongs to the protocol: print to stderr"
            level = Level.ERROR if self._is_strict else Level.WARNING  # the hosts of some systems pass over it
            yield Finding("stdout", level, f"something wrote to stdout: {quote(self.odd[0])}", hint)
        elif self.is_ready:
            yield Finding("framing", Level.OK, "stdout has well-formed messages and nothing else")


def because_of(error: BecketError) -> str:
    return error.because if isinstance(error, HandshakeFailed | StartFailed) else str(error)


def is_message(frame: bytes) -> bool:
    try:
        return is_object(msgspec.json.decode(frame))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


class Watching:
    """A framing that tells what it is fed; all else is the framing's own."""

    def __init__(self, watch: Watch, dialect: Dialect, limits: Limits) -> None:
        self._watch = watch
        self._framing: Framing = dialect.framing(limits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._framing, name)

    def feed(self, chunk: bytes) -> list[Frame | Skipped]:
        """Returns the frames that this chunk completes."""
        frames = self._framing.feed(chunk)
        self._watch.take_output(chunk, frames)
        return frames
