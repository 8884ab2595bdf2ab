"""Hook subscriptions of extensions, and running the subscribers of an event in order.

Every extension with a hook for the event is consulted about the final input or output. If one modifies an input or
replaces an output, the others are consulted about that too, those before it once more, until all have seen the same;
`block` wins over everything. Hooks fail open: one that does not respond in time, fails, or responds with something that
its kind does not allow, is skipped, and the verdict lists it. A required one blocks instead.

`hook_plan` decides who is consulted, and in which order; the contract decodes responses.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from becket._text import escape, truncate
from becket.contract.hooks import (
    HOOK_HANDLE,
    Block,
    Confirm,
    Continue,
    EncodedInput,
    HookEvent,
    HookKind,
    HookOutcome,
    Inject,
    Modify,
    Replace,
    find_result_problem,
    truncate_output,
)
from becket.errors import CallTimeout
from becket.host.breaker import CallOutcome
from becket.host.diagnostics import Diagnostic
from becket.host.hook_plan import Hooks
from becket.limits import DEFAULT_LIMITS, MIB, Limits

__all__ = [
    "CallHook",
    "ConfirmHook",
    "HookProblem",
    "HookVerdict",
    "RunHooks",
    "is_yes",
    "run_hooks",
    "wrap_context",
]

CALL_TIMEOUT: Final = HOOK_HANDLE.timeout or 5.0
CONFIRM_TIMEOUT: Final = 60.0  # as for a permission prompt: no response denies
MAX_PROMPT_CHARS: Final = 2_000  # characters that a person reads before they confirm
MAX_ROUNDS: Final = 8  # extensions that only add their own part agree in the second round
SEARCHED_INLINE: Final = MIB  # bytes searched for texts of filters without a thread: about a millisecond
YES_ANSWERS: Final = ("yes", "y")
CONTEXT_TAG: Final = "extension-context"
SENT_ONCE_MORE: Final = "the verdict is that of its next copy"
NO_RESPONSE: Final = "it has not responded lately, and is not consulted for a while"

CallHook: TypeAlias = Callable[[str, HookEvent], Awaitable[HookOutcome]]
"""Consults one extension about an event."""

ConfirmHook: TypeAlias = Callable[[str, str], Awaitable[str | None]]
"""Shows a person an extension's question, and returns the response; None if there is none."""

Complain: TypeAlias = Callable[[Diagnostic], object]
"""Reports a diagnostic to the operator."""


class HookProblem(Struct, frozen=True):
    """An extension that was skipped, or has blocked a call, and why."""

    extension: str
    problem: str


class HookVerdict(Struct, frozen=True):
    """The combined result, and the extension that caused it. Confirmations have been requested already.

    `problems` has every hook that crashed, failed, did not respond, or gave a malformed or forbidden response."""

    result: Continue | Block | Inject | Modify | Replace
    by: str | None = None
    problems: tuple[HookProblem, ...] = ()


RunHooks: TypeAlias = Callable[[HookEvent], Awaitable[HookVerdict]]
"""Consults all extensions with a hook for an event."""


# -- the chain


async def run_hooks(
    hooks: Hooks,
    event: HookEvent,
    call: CallHook,
    *,
    confirm: ConfirmHook | None = None,
    timeout: float = CALL_TIMEOUT,
    confirm_timeout: float = CONFIRM_TIMEOUT,
    limits: Limits = DEFAULT_LIMITS,
    complain: Complain | None = None,
) -> HookVerdict:
    """Consults extensions about an event until all have seen its final form, and returns the combined result.

    The first that blocks ends it. Injected texts are joined with a blank line. The user is prompted for confirmations
    at the end, when no extension objects; without `confirm` a confirmation is a block. Extensions that keep changing an
    input without agreement block it after a few rounds. `complain` gets a diagnostic when a hook is suspended because
    it does not respond."""
    chain = Chain(hooks, event, Consultation(hooks, call, timeout, limits, complain), limits)
    blocked = await chain.settle(can_confirm=confirm is not None)
    return blocked or await chain.conclude(confirm, confirm_timeout)


class Chain:
    """One event on its way through the extensions: its current form, and which of them have seen it."""

    def __init__(self, hooks: Hooks, event: HookEvent, consultation: Consultation, limits: Limits) -> None:
        self._hooks = hooks
        self._event = event
        self._encoded = EncodedInput(event.tool_input)
        self._planned: tuple[str, ...] | None = None
        self._consultation = consultation
        self._limits = limits
        self._seen: set[str] = set()  # extensions that were consulted about the current form
        self._questions: dict[str, str] = {}
        self._injected: list[str] = []
        self._problems: list[HookProblem] = []
        self._change: Modify | Replace | None = None
        self._by: str | None = None

    async def settle(self, *, can_confirm: bool) -> HookVerdict | None:
        """Consults extensions until all have seen the current form; returns a result that ends it before."""
        for _ in range(MAX_ROUNDS + 1):
            waiting = [extension for extension in await self._plan() if extension not in self._seen]
            if not waiting:
                return None
            for extension in waiting:
                verdict = await self._consult(extension, can_confirm=can_confirm)
                if verdict is not None:
                    return verdict
        reason = f"extensions still changed it after {MAX_ROUNDS} rounds and do not agree; the last was {self._by}"
        return self._verdict(withhold(self._event.kind, reason), self._by)

    async def _plan(self) -> tuple[str, ...]:
        """Returns the extensions whose hooks match the event in its current form."""
        if self._planned is None:
            texts = self._hooks.texts(self._event.kind)
            if not texts or len(texts) * len(self._encoded.text) <= SEARCHED_INLINE:
                self._planned = self._hooks.plan(self._event, self._encoded)
            else:
                self._planned = await anyio.to_thread.run_sync(self._hooks.plan, self._event, self._encoded)
        return self._planned

    async def _consult(self, extension: str, *, can_confirm: bool) -> HookVerdict | None:
        if extension not in await self._plan():
            return None  # an earlier extension has changed the event, and the hook no longer matches
        reading = await self._consultation.consult(extension, self._event)
        self._seen.add(extension)
        if reading.crash is not None and reading.problem is None:
            self._problems.append(HookProblem(extension, f"{reading.crash}; {SENT_ONCE_MORE}"))
        if reading.problem is not None:
            self._problems.append(HookProblem(extension, reading.problem))
            if self._hooks.is_required(extension, self._event, self._encoded):
                reason = f"{extension} must be consulted, and cannot be: {reading.problem}"
                return self._verdict(withhold(self._event.kind, escape(reason)), extension)
        match reading.result:
            case Continue():
                pass
            case Inject(content):
                self._injected.append(content)
            case Confirm(message):
                if not can_confirm:
                    reason = f"it needs a confirmation, and there is no prompt: {shown(message)}"
                    return self._verdict(Block(reason), extension)
                self._questions[extension] = message
            case Block():
                return self._verdict(reading.result, extension)
            case Modify(input):
                if EncodedInput(input).canonical != self._encoded.canonical:
                    self._alter(replace(self._event, tool_input=input), reading.result, extension)
            case Replace(output):
                if reading.result != self._change:
                    seen = truncate_output(output, self._limits.hook_output)
                    self._alter(replace(self._event, tool_output=seen), reading.result, extension)
        return None

    def _alter(self, event: HookEvent, change: Modify | Replace, extension: str) -> None:
        self._event, self._change, self._by = event, change, extension
        self._encoded = EncodedInput(event.tool_input)
        self._planned = None
        self._seen = {extension}
        self._questions.clear()  # they were about something else

    async def conclude(self, confirm: ConfirmHook | None, timeout: float) -> HookVerdict:
        """Prompts for the confirmations that extensions require, and returns the combined result."""
        by = self._by
        for extension, message in self._questions.items():
            response = await prompt_user(extension, message, confirm, timeout)
            if isinstance(response, Block):
                return self._verdict(response, extension)
            by = by or extension
        result = self._change or (Inject("\n\n".join(self._injected)) if self._injected else Continue())
        return self._verdict(result, by)

    def _verdict(self, result: Continue | Block | Inject | Modify | Replace, by: str | None) -> HookVerdict:
        return HookVerdict(result, by, tuple(self._problems))


def withhold(kind: HookKind, reason: str) -> Block | Replace:
    """Returns what blocks a tool call, or the output of one that has run already."""
    return Replace(f"[the output is withheld: {reason}]") if kind is HookKind.AFTER_TOOL_CALL else Block(reason)


class Consultation:
    """Consults one extension at a time, within its time limit."""

    def __init__(
        self, hooks: Hooks, call: CallHook, timeout: float, limits: Limits, complain: Complain | None = None
    ) -> None:
        self._hooks = hooks
        self._call = call
        self._timeout = timeout
        self._limits = limits
        self._complain = complain

    async def consult(self, extension: str, event: HookEvent) -> HookOutcome:
        """Returns an extension's response, or why there is none."""
        ticket = self._hooks.admit(extension, event.kind, anyio.current_time())
        if ticket is None:
            return HookOutcome(Continue(), NO_RESPONSE)
        outcome = CallOutcome.UNKNOWN  # the caller has left
        try:
            reading = await self._wait(extension, event)
            outcome = CallOutcome.FAILURE if reading.timed_out else CallOutcome.SUCCESS
        finally:
            found = self._hooks.settle(extension, event.kind, ticket, outcome, anyio.current_time())
            if found is not None and self._complain is not None:
                self._complain(found)
        return reading

    async def _wait(self, extension: str, event: HookEvent) -> HookOutcome:
        reading: HookOutcome | None = None
        try:
            with anyio.move_on_after(self._timeout):
                reading = await self._call(extension, event)
        except Exception as error:
            return HookOutcome(Continue(), f"{type(error).__name__}: {error}", isinstance(error, CallTimeout))
        if reading is None:
            return HookOutcome(Continue(), f"no response within {self._timeout:g} s", timed_out=True)
        # Whether it may replace an output was decided where the response was decoded: by its permissions then.
        problem = find_result_problem(reading.result, event.kind, True, self._limits)
        return reading if problem is None else replace(reading, result=Continue(), problem=problem)


# -- prompting the user


async def prompt_user(extension: str, message: str, confirm: ConfirmHook | None, timeout: float) -> Continue | Block:
    assert confirm is not None  # else the first confirmation has blocked
    response: str | None = None
    try:
        with anyio.move_on_after(timeout):
            response = await confirm(extension, shown(message))
    except Exception as error:
        return Block(f"it needs a confirmation, and the prompt failed ({type(error).__name__}): {shown(message)}")
    return Continue() if is_yes(response) else Block(f"it was not confirmed: {shown(message)}")


def shown(message: str) -> str:
    return escape(truncate(message, MAX_PROMPT_CHARS))


def is_yes(response: str | None) -> bool:
    """Returns whether a person has confirmed. Everything but `yes` and `y` denies."""
    return response is not None and response.strip().lower() in YES_ANSWERS


# -- injected text


def wrap_context(content: str) -> str:
    """Returns text of extensions as a model should see it: marked as theirs, so that it never passes for the user's.

    A closing tag inside the text is escaped."""
    inner = re.sub(rf"<(\s*/\s*{CONTEXT_TAG})", r"<\\\1", content, flags=re.IGNORECASE)
    return f"<{CONTEXT_TAG}>\nExtensions have added this; the user has not written it.\n\n{inner}\n</{CONTEXT_TAG}>"
