"""The cases of `becket check` as data: which messages are sent, and the verdict for each possible observation.

Pure. `checks` runs the cases frame by frame for becket's own dialects; `dialect_checks` runs them through the host's
code for foreign dialects. Strings that begin with `$` are placeholders for values known at run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from becket.cli.support.findings import Finding, FindingLevel
from becket.contract.commands import COMMAND_INVOKE
from becket.contract.handshake import INITIALIZE, SHUTDOWN
from becket.contract.tools import TOOL_CALL
from becket.dialects import NATIVE
from becket.errors import ERROR_CODES, Meaning

__all__ = [
    "ADAPTER_CASES",
    "CONFORMANCE",
    "NATIVE_CASES",
    "PINGS",
    "PLAIN_CASES",
    "RUN_ID",
    "Case",
    "CaseStep",
    "CloseStdin",
    "Observation",
    "Observed",
    "SendCancel",
    "SendNotification",
    "SendRequest",
    "Verdict",
    "cases_of",
    "judge",
]

NO_SUCH_METHOD: Final = "becket.check/no_such_method"
RUN_ID: Final = "check-1"  # `request_id` of the command
PINGS: Final = {NATIVE.name: NATIVE.ping or "", "mcp": "ping"}  # ping methods by dialect; other dialects have none


# -- steps


class SendRequest(Struct, frozen=True, omit_defaults=True, tag_field="send", tag="request"):
    """A request; the response to the last one of a case is observed."""

    method: str
    params: Any = None


class SendNotification(Struct, frozen=True, omit_defaults=True, tag_field="send", tag="notification"):
    """A notification."""

    method: str
    params: Any = None


class SendCancel(Struct, frozen=True, tag_field="send", tag="cancel"):
    """Cancels the previous request, with the dialect's cancellation message."""


class CloseStdin(Struct, frozen=True, tag_field="send", tag="close_stdin"):
    """Closes the program's stdin; then its exit is observed."""


CaseStep = SendRequest | SendNotification | SendCancel | CloseStdin


# -- observations and verdicts


class Observed(StrEnum):
    """What a program has done."""

    RESULT = "result"
    ERROR = "error"
    SILENCE = "silence"
    """It did not respond in time."""
    WRONG_FRAMING = "wrong framing"
    """It did not respond in time, and wrote frames of another kind."""
    WRONG_BYTES = "wrong bytes"
    """It did not respond in time, and wrote bytes that are not a frame."""
    CRASH = "crash"
    """It exited before it responded."""
    EXIT = "exit"
    """It exited with an expected exit code."""
    BAD_EXIT = "bad exit"
    """It exited with an unexpected exit code."""
    RUNNING = "running"
    """It did not exit in time."""
    NOT_STARTED = "not started"
    INVALID = "invalid"
    """It sent data that violates the contract."""
    ODDITY = "oddity"
    """It sent data that violates a rule which hosts do not enforce."""
    CLEAN = "clean"
    """Everything it wrote is well-formed."""
    STRAY = "stray"
    """It wrote text to stdout that is not a message."""
    SKIPPED_STRAY = "skipped stray"
    """The same, in a dialect whose hosts skip such text."""
    BAD_FRAME = "bad frame"
    BAD_MESSAGE = "bad message"
    UNKNOWN_CALL = "unknown call"
    """It called a method that no host has."""
    UNMARKED = "unmarked"
    """Nothing was sent, because no tool or command is marked as read-only."""


class Observation(Struct, frozen=True):
    """What was observed in one case, with the values for the text of its verdict."""

    observed: Observed
    facts: Mapping[str, object] = {}
    meaning: Meaning | None = None


class Verdict(Struct, frozen=True, omit_defaults=True):
    """The finding for an observation; with a `meaning`, only for errors of this meaning."""

    observed: Observed
    level: FindingLevel
    text: str
    hint: str = ""
    meaning: Meaning | None = None


class Case(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One case; its first verdict that matches the observation applies.

    `needs` is another case that must have had a response, `feature` a feature that both peers must have announced. A
    case with `own_process` runs in a new process after the handshake."""

    id: str
    title: str
    sends: tuple[CaseStep, ...] = ()
    verdicts: tuple[Verdict, ...]
    needs: str = ""
    feature: str = ""
    own_process: bool = False

    @property
    def has_only_faults(self) -> bool:
        """Whether this case reports nothing if there is no fault."""
        return all(verdict.level is not FindingLevel.OK for verdict in self.verdicts)


def judge(case: Case, observation: Observation) -> Finding:
    """Returns the verdict on a case."""
    for verdict in case.verdicts:
        if verdict.observed is observation.observed and verdict.meaning in (None, observation.meaning):
            text, hint = (part.format_map(observation.facts) for part in (verdict.text, verdict.hint))
            return Finding(case.id, verdict.level, text, hint)
    raise LookupError(f"the case {case.id} has no verdict on: {observation.observed}")


# -- the cases

FLUSH: Final = "read stdin, respond on stdout, and flush after each message"
HEADERS: Final = "write `Content-Length: N`, a blank line, and a JSON-RPC message of N bytes"
STDERR: Final = "stdout belongs to the protocol: print to stderr"
OUTLIVES: Final = "exit at the end of stdin: otherwise the program outlives a host that has died"
REJECT: Final = f"respond with the error {ERROR_CODES[Meaning.UNKNOWN_METHOD]}"

OK, WARNING, ERROR, SKIPPED = FindingLevel.OK, FindingLevel.WARNING, FindingLevel.ERROR, FindingLevel.SKIPPED
START: Final = Case(
    id="start",
    title="The program can be started.",
    verdicts=(
        Verdict(
            Observed.NOT_STARTED,
            ERROR,
            "`{program}` cannot be started: {problem}",
            "check its path, and that it is executable",
        ),
    ),
)


def build_first_case(method: str, title: str, *, params: Any) -> Case:
    """Returns the case of the first request."""
    return Case(
        id="response",
        title=title,
        sends=(SendRequest(method, params),),
        verdicts=(
            Verdict(Observed.RESULT, OK, "it responded to `{method}` in {ms} ms"),
            Verdict(Observed.ERROR, OK, "it responded to `{method}` in {ms} ms"),
            Verdict(Observed.CRASH, ERROR, "it {ended} before it responded to `{method}`{last_output}"),
            Verdict(
                Observed.WRONG_FRAMING,
                ERROR,
                "it did not respond to `{method}`; it wrote: {wrote}",
                "it seems to write {found}; this dialect uses {expected}",
            ),
            Verdict(Observed.WRONG_BYTES, ERROR, "it did not respond to `{method}`; it wrote: {wrote}", HEADERS),
            Verdict(Observed.SILENCE, ERROR, "it did not respond to `{method}` within {seconds} s{wrote}", FLUSH),
            Verdict(Observed.INVALID, ERROR, "{problem}"),
        ),
    )


HANDSHAKE: Final = Case(
    id="handshake",
    title="Its declaration follows the contract.",
    needs="response",
    verdicts=(
        Verdict(Observed.RESULT, OK, "{declared}"),
        Verdict(Observed.ERROR, ERROR, "it refused: {message}", f"respond to `{INITIALIZE.name}` with a result"),
        Verdict(Observed.INVALID, ERROR, "{problem}", "{hint}"),
        Verdict(Observed.ODDITY, WARNING, "{problem}", "{hint}"),
    ),
)
METHODS: Final = Case(
    id="methods",
    title="It rejects a request for an unknown method.",
    needs="response",
    sends=(SendRequest(NO_SUCH_METHOD, {}),),
    verdicts=(
        Verdict(Observed.ERROR, OK, "it rejects unknown methods", meaning=Meaning.UNKNOWN_METHOD),
        Verdict(Observed.ERROR, WARNING, "it rejects unknown methods with the error {code}", REJECT),
        Verdict(Observed.RESULT, ERROR, "it responds to an unknown method with a result", REJECT),
        Verdict(Observed.CRASH, ERROR, "it {ended} when an unknown method was called", REJECT),
        Verdict(Observed.SILENCE, ERROR, "it does not respond to an unknown method", REJECT),
    ),
)
NOTIFICATIONS: Final = Case(
    id="notifications",
    title="It ignores an unknown notification.",
    needs="methods",
    sends=(SendNotification(NO_SUCH_METHOD, {}), SendRequest(NO_SUCH_METHOD, {})),
    verdicts=(
        Verdict(Observed.ERROR, OK, "it ignores unknown notifications"),
        Verdict(Observed.RESULT, OK, "it ignores unknown notifications"),
        *(
            Verdict(
                observed,
                ERROR,
                "it no longer responds after an unknown notification",
                "ignore unknown notifications",
            )
            for observed in (Observed.CRASH, Observed.SILENCE)
        ),
    ),
)
PING: Final = Case(
    id="ping",
    title="It responds to a ping.",
    needs="handshake",
    feature="ping",
    sends=(SendRequest(PINGS[NATIVE.name]),),
    verdicts=(
        Verdict(Observed.RESULT, OK, "it responded to a ping in {ms} ms"),
        Verdict(Observed.ERROR, ERROR, "it announces pings but rejects one: {message}", "respond with any result"),
        Verdict(Observed.CRASH, ERROR, "it {ended} when it was pinged{last_output}"),
        Verdict(
            Observed.SILENCE,
            ERROR,
            "it did not respond to a ping within {seconds} s",
            "a host kills an extension that does not respond to pings: check for code that blocks the event loop",
        ),
    ),
)


def calls(what: str, named: str, *, unknown: FindingLevel = FindingLevel.ERROR) -> tuple[Verdict, ...]:
    """Returns the verdicts on a call of a tool or command. An error of the tool's own is a valid response."""
    return (
        Verdict(Observed.RESULT, OK, f"{named} responded in {{ms}} ms"),
        Verdict(
            Observed.ERROR,
            unknown,
            f"{named} is declared but rejected as unknown: {{message}}",
            f"handle every declared {what}",
            meaning=Meaning.UNKNOWN_METHOD,
        ),
        Verdict(
            Observed.ERROR,
            WARNING,
            f"{named} failed: {{message}} (its input was {{input}})",
            "its log has the reason; a tool should report expected failures with errors of its own",
            meaning=Meaning.INTERNAL,
        ),
        Verdict(
            Observed.ERROR,
            WARNING,
            f"{named} rejects an input that matches its schema: {{message}} (the input was {{input}})",
            "describe the input fully in the schema, with `examples` for values that a schema cannot describe",
            meaning=Meaning.INVALID_PARAMS,
        ),
        Verdict(Observed.ERROR, OK, f"{named} responded with an error: {{message}}"),
        Verdict(Observed.INVALID, ERROR, f"{named}: {{problem}}", "`becket schema` shows what is expected"),
        Verdict(Observed.CRASH, ERROR, f"it {{ended}} when {named} was called{{last_output}}"),
        Verdict(Observed.SILENCE, ERROR, f"{named} did not respond within {{seconds}} s (its input was {{input}})"),
    )


def tools(unknown: FindingLevel) -> Case:
    """Returns the case that calls tools. In foreign dialects a tool may pass on `unknown method` from its host."""
    return Case(
        id="tools",
        title="Its tools respond to an input that matches their schemas.",
        needs="handshake",
        sends=TOOL_CALLS,
        verdicts=(
            *calls("tool", "the tool `{tool}`", unknown=unknown),
            Verdict(
                Observed.UNMARKED,
                SKIPPED,
                "no tool is marked as read-only, so none was called",
                "--call-tools calls all of them; `read_only` in its declaration marks one "
                "(Python: `@tool(read_only=True)`)",
            ),
            Verdict(
                Observed.ODDITY,
                SKIPPED,
                "no input for `{tool}` could be derived from its schema, so it was not called",
                "give the schema `examples`",
            ),
        ),
    )


TOOL_CALLS: Final = (SendRequest(TOOL_CALL.name, {"name": "$tool", "input": "$input"}),)
CANCEL: Final = Case(
    id="cancel",
    title="It responds to a cancelled call.",
    needs="tools",
    feature="cancel",
    sends=(*TOOL_CALLS, SendCancel()),
    verdicts=(
        Verdict(Observed.RESULT, OK, "it responded to a cancelled call of `{tool}`"),
        Verdict(Observed.ERROR, OK, "it responded to a cancelled call of `{tool}`"),
        Verdict(Observed.CRASH, ERROR, "it {ended} when a call of `{tool}` was cancelled{last_output}"),
        Verdict(
            Observed.SILENCE,
            ERROR,
            "it did not respond to a cancelled call of `{tool}` within {seconds} s",
            f"respond with the result, or with the error {ERROR_CODES[Meaning.CANCELLED]}",
        ),
    ),
)
CANCEL_OF_OTHERS: Final = Case(
    id="cancel",
    title="It responds to a call after a cancelled one.",
    needs="tools",
    sends=(*CANCEL.sends, *TOOL_CALLS),
    verdicts=(
        Verdict(Observed.RESULT, OK, "`{tool}` responds after a cancelled call"),
        Verdict(Observed.ERROR, OK, "`{tool}` responds after a cancelled call"),
        Verdict(Observed.INVALID, OK, "`{tool}` responds after a cancelled call"),
        Verdict(Observed.CRASH, ERROR, "it {ended} when a call of `{tool}` was cancelled{last_output}"),
        Verdict(Observed.SILENCE, ERROR, "`{tool}` no longer responds after a cancelled call"),
    ),
)
COMMANDS: Final = Case(
    id="commands",
    title="A command runs, and its output is well-formed.",
    needs="handshake",
    sends=(SendRequest(COMMAND_INVOKE.name, {"command": "$command", "args": "$args", "request_id": RUN_ID}),),
    verdicts=(
        *calls("command", "the command `{command}`"),
        Verdict(
            Observed.UNMARKED,
            SKIPPED,
            "no command is marked as read-only, so none was run",
            "--command NAME runs one; `read_only = true` in `[[commands]]` of the manifest marks one",
        ),
    ),
)


def end_of_stdin(lasting: FindingLevel) -> Case:
    """Returns the case of a host that has died: its children notice only the end of stdin."""
    return Case(
        id="stdin",
        title="It exits when its stdin ends.",
        needs="response",
        sends=(CloseStdin(),),
        verdicts=(
            Verdict(Observed.EXIT, OK, "it exits when its stdin ends"),
            Verdict(Observed.BAD_EXIT, WARNING, "it {ended} when its stdin ended", "exit with 0: this is no error"),
            Verdict(Observed.RUNNING, lasting, "it still runs {seconds} s after the end of its stdin", OUTLIVES),
        ),
    )


FRAMING: Final = Case(
    id="framing",
    title="Its stdout has well-formed frames and nothing else.",
    verdicts=(
        Verdict(Observed.CLEAN, OK, "stdout has well-formed messages and nothing else"),
        Verdict(Observed.BAD_FRAME, ERROR, "{problem}", "{hint}"),
    ),
)
STDOUT: Final = Case(
    id="stdout",
    title="It prints nothing but messages to stdout.",
    verdicts=(
        Verdict(Observed.STRAY, ERROR, "something wrote to stdout: {wrote}", STDERR),
        Verdict(Observed.SKIPPED_STRAY, WARNING, "something wrote to stdout: {wrote}", STDERR),
    ),
)
MESSAGES: Final = Case(
    id="messages",
    title="Its messages are valid JSON-RPC 2.0.",
    verdicts=(Verdict(Observed.BAD_MESSAGE, ERROR, "{problem}", "`becket schema envelope` shows what is expected"),),
)
CALLS: Final = Case(
    id="calls",
    title="It calls only methods that a host has.",
    verdicts=(
        Verdict(
            Observed.UNKNOWN_CALL,
            WARNING,
            "it calls methods that are not in the contract: {methods}",
            "only a host that defines these methods handles them",
        ),
    ),
)
CONFORMANCE: Final = Case(
    id="conformance",
    title="It passes the conformance cases that a valid host could send.",
    needs="handshake",
    verdicts=(
        Verdict(Observed.CLEAN, OK, "it passes {count} conformance cases{tolerated}"),
        Verdict(
            Observed.INVALID,
            ERROR,
            "{case}: {title}: {problem}",
            "`becket conform {option}--case {case} -v -- CMD` shows the conversation",
        ),
    ),
)
SHUTDOWN_CASE: Final = Case(
    id="shutdown",
    title="It exits on request.",
    needs="response",
    own_process=True,
    sends=(SendRequest(SHUTDOWN.name), CloseStdin()),
    verdicts=(
        # Many programs exit without a response, which is fine.
        *(Verdict(observed, OK, "it exits on request") for observed in (Observed.RESULT, Observed.EXIT)),
        Verdict(Observed.BAD_EXIT, WARNING, "it {ended} instead of a response", "exit with 0"),
        Verdict(
            Observed.ERROR,
            WARNING,
            f"it rejects `{SHUTDOWN.name}`",
            f"respond to `{SHUTDOWN.name}` with any result; without it, hosts close its stdin to stop it",
        ),
        Verdict(
            Observed.RUNNING,
            ERROR,
            "it does not exit on request",
            f"exit after `{SHUTDOWN.name}`, and when stdin ends",
        ),
    ),
)
ADAPTER_SHUTDOWN_CASE: Final = Case(
    id="shutdown",
    title="It exits on request.",
    needs="handshake",
    own_process=True,
    sends=(SendRequest(SHUTDOWN.name), CloseStdin()),
    verdicts=(
        Verdict(Observed.EXIT, OK, "it exits on request"),
        Verdict(Observed.RUNNING, WARNING, "it does not exit on request", "exit after the shutdown message"),
    ),
)

WIRE: Final = (FRAMING, STDOUT, MESSAGES)
NATIVE_CASES: Final = (
    START,
    build_first_case(INITIALIZE.name, f"It responds to `{INITIALIZE.name}`.", params="$initialize"),
    HANDSHAKE,
    METHODS,
    NOTIFICATIONS,
    PING,
    tools(ERROR),
    CANCEL,
    COMMANDS,
    end_of_stdin(ERROR),
    *WIRE,
    CALLS,
    SHUTDOWN_CASE,
    CONFORMANCE,
)
"""For programs that speak the native dialect."""
PLAIN_CASES: Final = (
    START,
    build_first_case(NO_SUCH_METHOD, "It responds to a request.", params={}),
    METHODS,
    NOTIFICATIONS,
    end_of_stdin(ERROR),
    *WIRE,
)
"""For programs that speak JSON-RPC without a handshake."""
ADAPTER_CASES: Final = (
    START,
    build_first_case("$opening", "It responds to the handshake of its dialect.", params="$initialize"),
    HANDSHAKE,
    PING,
    tools(WARNING),
    CANCEL_OF_OTHERS,
    COMMANDS,
    end_of_stdin(WARNING),
    STDOUT,
    FRAMING,
    ADAPTER_SHUTDOWN_CASE,
    CONFORMANCE,
)
"""For programs of foreign systems; an adapter maps the requests of the contract to their protocol."""


def cases_of(dialect: str) -> tuple[Case, ...]:
    """Returns the cases for programs of a dialect."""
    return {"native": NATIVE_CASES, "plain": PLAIN_CASES}.get(dialect, ADAPTER_CASES)
