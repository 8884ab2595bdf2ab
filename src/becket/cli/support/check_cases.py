"""The cases of `becket check` as data: what is sent to a program, and which verdict follows from what is observed.

Nothing is run here. `checks` sends the steps frame by frame to programs that speak becket's own dialects, and
`spoken_checks` sends them as a host of another system. Strings that begin with `$` stand for what is known at run time.
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
    "NATIVE_CASES",
    "PINGS",
    "PLAIN_CASES",
    "RUN_ID",
    "Case",
    "CloseStdin",
    "Observation",
    "Observed",
    "SendCancel",
    "SendNotification",
    "SendRequest",
    "Step",
    "Verdict",
    "cases_of",
    "judge",
]

NO_SUCH_METHOD: Final = "becket.check/no_such_method"
RUN_ID: Final = "check-1"  # of the command that is run
PINGS: Final = {NATIVE.name: NATIVE.ping or "", "mcp": "ping"}  # by dialect; the others have none


# -- what is sent


class SendRequest(Struct, frozen=True, omit_defaults=True, tag_field="send", tag="request"):
    """A request; the last one of a case is the one whose response is observed."""

    method: str
    params: Any = None


class SendNotification(Struct, frozen=True, omit_defaults=True, tag_field="send", tag="notification"):
    """A notification."""

    method: str
    params: Any = None


class SendCancel(Struct, frozen=True, tag_field="send", tag="cancel"):
    """The cancellation of the request before it, as the dialect says it."""


class CloseStdin(Struct, frozen=True, tag_field="send", tag="close_stdin"):
    """The end of the program's stdin; then its exit is observed."""


Step = SendRequest | SendNotification | SendCancel | CloseStdin


# -- what is observed, and what follows from it


class Observed(StrEnum):
    """What a program has done."""

    RESULT = "result"
    ERROR = "error"
    SILENCE = "silence"
    """It did not respond in time."""
    WRONG_FRAMING = "wrong framing"
    """It did not respond in time, and wrote frames of another kind."""
    WRONG_BYTES = "wrong bytes"
    """It did not respond in time, and wrote something that is no frame."""
    CRASH = "crash"
    """It ended instead of a response."""
    EXIT = "exit"
    """It ended as it should."""
    BAD_EXIT = "bad exit"
    """It ended with another exit code than it should."""
    RUNNING = "running"
    """It did not end in time."""
    NOT_STARTED = "not started"
    INVALID = "invalid"
    """What it sent breaks a rule of the contract."""
    ODDITY = "oddity"
    """What it sent breaks a rule that hosts do not insist on."""
    CLEAN = "clean"
    """All that it wrote is well-formed."""
    STRAY = "stray"
    """It wrote text to stdout that is no message."""
    SKIPPED_STRAY = "skipped stray"
    """The same, where hosts of the dialect skip such text."""
    BAD_FRAME = "bad frame"
    BAD_MESSAGE = "bad message"
    UNKNOWN_CALL = "unknown call"
    """It called a method that no host has."""
    UNMARKED = "unmarked"
    """Nothing was sent: what there is may have effects."""


class Observation(Struct, frozen=True):
    """What was observed in one case, with the facts that its verdict names."""

    observed: Observed
    facts: Mapping[str, object] = {}
    meaning: Meaning | None = None


class Verdict(Struct, frozen=True, omit_defaults=True):
    """What follows from an observation; for errors only where the error has this `meaning`, if there is one here."""

    observed: Observed
    level: FindingLevel
    text: str
    hint: str = ""
    meaning: Meaning | None = None


class Case(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One case: the first verdict that fits what is observed counts.

    `needs` is another case that must have had a response, `feature` what both sides must have announced. A case with
    `own_process` has a process of its own, which has done the handshake and nothing else."""

    id: str
    title: str
    sends: tuple[Step, ...] = ()
    verdicts: tuple[Verdict, ...]
    needs: str = ""
    feature: str = ""
    own_process: bool = False

    @property
    def has_only_faults(self) -> bool:
        """Whether nothing is reported in this case where nothing is wrong."""
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
HEADERS: Final = "behind `Content-Length: N` and a blank line, a JSON-RPC message of N bytes"
STDERR: Final = "stdout belongs to the protocol: print to stderr"
OUTLIVES: Final = "end the program when reading stdin gives nothing more: else it outlives a host that has died"
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
            "look at its path, and whether it is executable",
        ),
    ),
)


def build_first_case(method: str, title: str, *, params: Any) -> Case:
    """Returns the case of the first request."""
    return Case(
        id="answer",
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
                "it seems to write {found}; this dialect has {expected}",
            ),
            Verdict(Observed.WRONG_BYTES, ERROR, "it did not respond to `{method}`; it wrote: {wrote}", HEADERS),
            Verdict(Observed.SILENCE, ERROR, "it did not respond to `{method}` within {seconds} s{wrote}", FLUSH),
            Verdict(Observed.INVALID, ERROR, "{problem}"),
        ),
    )


HANDSHAKE: Final = Case(
    id="handshake",
    title="What it declares keeps the rules of the contract.",
    needs="answer",
    verdicts=(
        Verdict(Observed.RESULT, OK, "{declared}"),
        Verdict(Observed.ERROR, ERROR, "it refused: {message}", f"respond to `{INITIALIZE.name}` with a result"),
        Verdict(Observed.INVALID, ERROR, "{problem}", "{hint}"),
        Verdict(Observed.ODDITY, WARNING, "{problem}", "{hint}"),
    ),
)
METHODS: Final = Case(
    id="methods",
    title="It rejects a request of a method that it does not have.",
    needs="answer",
    sends=(SendRequest(NO_SUCH_METHOD, {}),),
    verdicts=(
        Verdict(Observed.ERROR, OK, "it rejects a method that it does not have", meaning=Meaning.UNKNOWN_METHOD),
        Verdict(Observed.ERROR, WARNING, "it rejects a method that it does not have with the error {code}", REJECT),
        Verdict(Observed.RESULT, ERROR, "it responds to a method that it does not have with a result", REJECT),
        Verdict(Observed.CRASH, ERROR, "it {ended} when a method was called that it does not have", REJECT),
        Verdict(Observed.SILENCE, ERROR, "it does not respond to a method that it does not have", REJECT),
    ),
)
NOTIFICATIONS: Final = Case(
    id="notifications",
    title="It ignores a notification that it does not know.",
    needs="methods",
    sends=(SendNotification(NO_SUCH_METHOD, {}), SendRequest(NO_SUCH_METHOD, {})),
    verdicts=(
        Verdict(Observed.ERROR, OK, "it ignores notifications that it does not know"),
        Verdict(Observed.RESULT, OK, "it ignores notifications that it does not know"),
        *(
            Verdict(
                observed,
                ERROR,
                "it does not respond any more after an unknown notification",
                "ignore notifications that are not known",
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
        Verdict(
            Observed.ERROR, ERROR, "it rejects the ping that it has announced: {message}", "respond with any result"
        ),
        Verdict(Observed.CRASH, ERROR, "it {ended} when it was pinged{last_output}"),
        Verdict(
            Observed.SILENCE,
            ERROR,
            "it did not respond to a ping within {seconds} s",
            "a host ends an extension that does not respond to pings: does it block its event loop?",
        ),
    ),
)


def calls(what: str, named: str, *, unknown: FindingLevel = FindingLevel.ERROR) -> tuple[Verdict, ...]:
    """Returns the verdicts on a call of a tool or of a command, which may fail: by its own reasons, not by these."""
    return (
        Verdict(Observed.RESULT, OK, f"{named} responded in {{ms}} ms"),
        Verdict(
            Observed.ERROR,
            unknown,
            f"{named} is declared, and is rejected as unknown: {{message}}",
            f"serve every {what} that is declared",
            meaning=Meaning.UNKNOWN_METHOD,
        ),
        Verdict(
            Observed.ERROR,
            WARNING,
            f"{named} failed: {{message}} (its input was {{input}})",
            "its log has the reason; a tool that cannot do what is asked for responds with an error of its own",
            meaning=Meaning.INTERNAL,
        ),
        Verdict(
            Observed.ERROR,
            WARNING,
            f"{named} rejects an input that fits what it declares: {{message}} (the input was {{input}})",
            "let its schema say what it needs, with `examples` where a value must be a special one",
            meaning=Meaning.INVALID_PARAMS,
        ),
        Verdict(Observed.ERROR, OK, f"{named} responded with an error: {{message}}"),
        Verdict(Observed.INVALID, ERROR, f"{named}: {{problem}}", "`becket schema` says what is expected"),
        Verdict(Observed.CRASH, ERROR, f"it {{ended}} when {named} was called{{last_output}}"),
        Verdict(Observed.SILENCE, ERROR, f"{named} did not respond within {{seconds}} s (its input was {{input}})"),
    )


def tools(unknown: FindingLevel) -> Case:
    """Returns the case of calls of tools. In other systems a tool may pass on that its host has no such method."""
    return Case(
        id="tools",
        title="Its tools respond to an input that fits their schemas.",
        needs="handshake",
        sends=TOOL_CALLS,
        verdicts=(
            *calls("tool", "the tool `{tool}`", unknown=unknown),
            Verdict(
                Observed.UNMARKED,
                SKIPPED,
                "no tool is marked as read-only, so none was called",
                "--call-tools calls all of them; `@tool(..., read_only=True)` marks one",
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
    title="It responds to a call that was cancelled.",
    needs="tools",
    feature="cancel",
    sends=(*TOOL_CALLS, SendCancel()),
    verdicts=(
        Verdict(Observed.RESULT, OK, "a cancelled call of `{tool}` was responded to"),
        Verdict(Observed.ERROR, OK, "a cancelled call of `{tool}` was responded to"),
        Verdict(Observed.CRASH, ERROR, "it {ended} when a call of `{tool}` was cancelled{last_output}"),
        Verdict(
            Observed.SILENCE,
            ERROR,
            "a cancelled call of `{tool}` was not responded to within {seconds} s",
            f"respond with the result, or with the error {ERROR_CODES[Meaning.CANCELLED]}",
        ),
    ),
)
CANCEL_OF_OTHERS: Final = Case(
    id="cancel",
    title="It responds to a call after another one was cancelled.",
    needs="tools",
    sends=(*CANCEL.sends, *TOOL_CALLS),
    verdicts=(
        Verdict(Observed.RESULT, OK, "`{tool}` responds after a call of it was cancelled"),
        Verdict(Observed.ERROR, OK, "`{tool}` responds after a call of it was cancelled"),
        Verdict(Observed.INVALID, OK, "`{tool}` responds after a call of it was cancelled"),
        Verdict(Observed.CRASH, ERROR, "it {ended} when a call of `{tool}` was cancelled{last_output}"),
        Verdict(Observed.SILENCE, ERROR, "`{tool}` does not respond any more after a call of it was cancelled"),
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
    """Returns the case of a host that has died: its children see nothing but the end of their stdin."""
    return Case(
        id="stdin",
        title="It ends when its stdin ends.",
        needs="answer",
        sends=(CloseStdin(),),
        verdicts=(
            Verdict(Observed.EXIT, OK, "it ends when its stdin ends"),
            Verdict(Observed.BAD_EXIT, WARNING, "it {ended} when its stdin has ended", "exit with 0: it is a good end"),
            Verdict(Observed.RUNNING, lasting, "it goes on {seconds} s after its stdin has ended", OUTLIVES),
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
    title="It prints nothing to stdout beside messages.",
    verdicts=(
        Verdict(Observed.STRAY, ERROR, "something wrote to stdout: {wrote}", STDERR),
        Verdict(Observed.SKIPPED_STRAY, WARNING, "something wrote to stdout: {wrote}", STDERR),
    ),
)
MESSAGES: Final = Case(
    id="messages",
    title="Its messages are those of JSON-RPC 2.0.",
    verdicts=(Verdict(Observed.BAD_MESSAGE, ERROR, "{problem}", "`becket schema envelope` says what a message is"),),
)
CALLS: Final = Case(
    id="calls",
    title="It calls nothing that a host does not have.",
    verdicts=(
        Verdict(
            Observed.UNKNOWN_CALL,
            WARNING,
            "it calls methods that the contract does not have: {methods}",
            "only a host with methods of its own serves them",
        ),
    ),
)
SHUTDOWN_CASE: Final = Case(
    id="shutdown",
    title="It ends on request.",
    needs="answer",
    own_process=True,
    sends=(SendRequest(SHUTDOWN.name), CloseStdin()),
    verdicts=(
        # Many end without a response, which is as good.
        *(Verdict(observed, OK, "it ends on request") for observed in (Observed.RESULT, Observed.EXIT)),
        Verdict(Observed.BAD_EXIT, WARNING, "it {ended} instead of a response", "exit with 0"),
        Verdict(
            Observed.ERROR,
            WARNING,
            f"it rejects `{SHUTDOWN.name}`",
            f"respond to `{SHUTDOWN.name}` with any result; until then it is ended by closing its stdin",
        ),
        Verdict(
            Observed.RUNNING,
            ERROR,
            "it does not end on request",
            f"end the program after `{SHUTDOWN.name}`, and when its stdin ends",
        ),
    ),
)
GOODBYE: Final = Case(
    id="goodbye",
    title="It ends on request.",
    needs="handshake",
    own_process=True,
    sends=(SendRequest(SHUTDOWN.name), CloseStdin()),
    verdicts=(
        Verdict(Observed.EXIT, OK, "it ends on request"),
        Verdict(Observed.RUNNING, WARNING, "it does not end on request", "end the program then"),
    ),
)

WIRE: Final = (FRAMING, STDOUT, MESSAGES)
NATIVE_CASES: Final = (
    START,
    build_first_case(INITIALIZE.name, f"It responds to `{INITIALIZE.name}`.", params="$introduction"),
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
)
"""Programs that speak the contract in its own dialect."""
PLAIN_CASES: Final = (
    START,
    build_first_case(NO_SUCH_METHOD, "It responds to a request.", params={}),
    METHODS,
    NOTIFICATIONS,
    end_of_stdin(ERROR),
    *WIRE,
)
"""Programs that speak JSON-RPC without a handshake."""
ADAPTER_CASES: Final = (
    START,
    build_first_case("$opening", "It responds to the handshake of its dialect.", params="$introduction"),
    HANDSHAKE,
    PING,
    tools(WARNING),
    CANCEL_OF_OTHERS,
    COMMANDS,
    end_of_stdin(WARNING),
    STDOUT,
    FRAMING,
    GOODBYE,
)
"""Programs of other systems: the requests are those of the contract, which an adapter maps to their protocol."""


def cases_of(dialect: str) -> tuple[Case, ...]:
    """Returns the cases for programs of a dialect."""
    return {"native": NATIVE_CASES, "plain": PLAIN_CASES}.get(dialect, ADAPTER_CASES)
