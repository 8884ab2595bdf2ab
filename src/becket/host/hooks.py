"""Hooks in a host: which extensions are asked about an event, in which order, and what their answers come to.

The plan is pure; `ask_hooks` asks, one extension after the other, through a callable. Hooks fail open: who does not
answer in time, fails, or answers what the kind does not allow, is passed over, and the verdict tells of it. Reading an
answer, with the one exception that blocks, is the contract's.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

import anyio
from msgspec import Struct

from becket.contract.hooks import (
    HOOK_HANDLE,
    HOOKS,
    Block,
    Confirm,
    Continue,
    HookEvent,
    HookKind,
    HookMatch,
    HookResult,
    Inject,
    Modify,
    Replace,
    find_hook_problem,
    find_refusal,
)
from becket.errors import harmless
from becket.host.diagnostics import Diagnostic, Severity
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = [
    "AskHooks",
    "CallHook",
    "ConfirmHook",
    "HookProblem",
    "HookVerdict",
    "HookWish",
    "Hooks",
    "ask_hooks",
    "frame_context",
    "is_yes",
]

CALL_TIMEOUT: Final = HOOK_HANDLE.timeout or 5.0
CONFIRM_TIMEOUT: Final = 60.0  # as for a permission that is asked for: no answer is no
LONGEST_QUESTION: Final = 2_000  # characters that a person reads before they say yes
MOST_ASKED: Final = 128  # extensions at one hook: they are asked one after the other
YES: Final = ("yes", "y")
FRAME: Final = "extension-context"

CallHook: TypeAlias = Callable[[str, HookEvent], Awaitable[HookResult]]
"""Asks one extension about an event."""

ConfirmHook: TypeAlias = Callable[[str, str], Awaitable[str | None]]
"""Shows a person which extension asks and what, and returns the answer; None where there is none."""


# -- who is asked


class HookWish(Struct, frozen=True):
    """An extension wants to be asked about a kind of event, or only about some of them."""

    hook: str
    match: HookMatch | None = None


class Hooks:
    """Who wants to be asked about what: by priority, the lowest first, and then in the order in which extensions were
    added."""

    def __init__(self) -> None:
        self._wishes: dict[str, tuple[HookWish, ...]] = {}
        self._priorities: dict[str, int] = {}

    def add(
        self, extension: str, wishes: Iterable[HookWish], allows: Callable[[str], bool], *, priority: int = 0
    ) -> list[Diagnostic]:
        """Takes the wishes of an extension; where it had some before, these replace them and keep their place.

        Returns what is wrong with those that were left out; `allows` tells whether it holds a permission."""
        taken: list[HookWish] = []
        diagnostics: list[Diagnostic] = []
        for wish in wishes:
            problem = find_hook_problem(wish.hook, wish.match)
            if problem is not None:
                diagnostics.append(Diagnostic(extension=extension, problem=problem, severity=Severity.WARNING))
                continue
            permission = HOOKS[HookKind(wish.hook)].permission
            if not allows(permission):
                diagnostics.append(lacking(extension, permission, wish.hook))
            elif self._is_full(wish.hook, extension):
                problem = f"{MOST_ASKED} extensions are asked at `{wish.hook}` already: this one is not"
                diagnostics.append(Diagnostic(extension=extension, problem=problem, severity=Severity.WARNING))
            else:
                taken.append(wish)
        self._wishes[extension] = tuple(taken)
        self._priorities[extension] = priority
        return diagnostics

    def _is_full(self, hook: str, extension: str) -> bool:
        others = [wishes for other, wishes in self._wishes.items() if other != extension]
        return sum(any(wish.hook == hook for wish in wishes) for wishes in others) >= MOST_ASKED

    def remove(self, extension: str) -> None:
        """Asks an extension no more."""
        self._wishes.pop(extension, None)
        self._priorities.pop(extension, None)

    def plan(self, event: HookEvent) -> tuple[str, ...]:
        """Returns which extensions are asked about an event, in order, each once. Later changes do not touch it."""
        asked = [extension for extension, wishes in self._wishes.items() if any_wants(wishes, event)]
        return tuple(sorted(asked, key=self._priorities.__getitem__))

    def wishes(self, extension: str) -> tuple[HookWish, ...]:
        """Returns what an extension is asked about."""
        return self._wishes.get(extension, ())


def any_wants(wishes: tuple[HookWish, ...], event: HookEvent) -> bool:
    return any(wish.hook == event.kind and (wish.match is None or wish.match.matches(event)) for wish in wishes)


def lacking(extension: str, permission: str, hook: str) -> Diagnostic:
    return Diagnostic(
        extension=extension,
        problem=f"Extension '{extension}' lacks permission '{permission}' required for hook '{hook}'",
        hint=f"grant it {permission}, for which its manifest must ask",
        severity=Severity.WARNING,
    )


# -- what they answer


class HookProblem(Struct, frozen=True):
    """An extension was passed over, and why."""

    extension: str
    problem: str


class HookVerdict(Struct, frozen=True):
    """What the answers come to, and which extension made it so. A confirmation has been asked for already."""

    result: Continue | Block | Inject | Modify | Replace
    by: str | None = None
    problems: tuple[HookProblem, ...] = ()


AskHooks: TypeAlias = Callable[[HookEvent], Awaitable[HookVerdict]]
"""Asks all extensions that want it about an event."""


async def ask_hooks(
    extensions: Sequence[str],
    event: HookEvent,
    call: CallHook,
    *,
    confirm: ConfirmHook | None = None,
    timeout: float = CALL_TIMEOUT,
    confirm_timeout: float = CONFIRM_TIMEOUT,
    limits: Limits = DEFAULT_LIMITS,
) -> HookVerdict:
    """Asks extensions about an event, one after the other, and returns what their answers come to.

    The first to block, confirm, modify or replace ends the chain; what is injected is joined with a blank line. Without
    `confirm` nobody can be asked, and a confirmation is a block."""
    injected: list[str] = []
    problems: list[HookProblem] = []
    for extension in extensions:
        result, problem = await ask_one(extension, event, call, timeout, limits)
        if problem is not None:
            problems.append(HookProblem(extension, problem))
        match result:
            case Continue():
                pass
            case Inject(content):
                injected.append(content)
            case Confirm(message):
                settled = await ask_person(extension, message, confirm, confirm_timeout)
                return HookVerdict(settled, extension, tuple(problems))
            case _:
                return HookVerdict(result, extension, tuple(problems))
    return HookVerdict(Inject("\n\n".join(injected)) if injected else Continue(), None, tuple(problems))


async def ask_one(
    extension: str, event: HookEvent, call: CallHook, timeout: float, limits: Limits
) -> tuple[HookResult, str | None]:
    result: HookResult | None = None
    try:
        with anyio.move_on_after(timeout):
            result = await call(extension, event)
    except Exception as error:
        return Continue(), f"{type(error).__name__}: {error}"
    if result is None:
        return Continue(), f"no answer within {timeout:g} s"
    # Whether it may replace an output was decided where the answer was read: by what it holds at that moment.
    problem = find_refusal(result, event.kind, True, limits)
    return (result, None) if problem is None else (Continue(), problem)


async def ask_person(extension: str, message: str, confirm: ConfirmHook | None, timeout: float) -> Continue | Block:
    shown = harmless(message[:LONGEST_QUESTION])
    if confirm is None:
        return Block(f"it needs a confirmation, and nobody can be asked: {shown}")
    answer: str | None = None
    try:
        with anyio.move_on_after(timeout):
            answer = await confirm(extension, shown)
    except Exception as error:
        return Block(f"it needs a confirmation, and asking for it failed ({type(error).__name__}): {shown}")
    return Continue() if is_yes(answer) else Block(f"it was not confirmed: {shown}")


def is_yes(answer: str | None) -> bool:
    """Returns whether a person has said yes. Everything but `yes` and `y` is a no."""
    return answer is not None and answer.strip().lower() in YES


# -- what is injected


def frame_context(content: str) -> str:
    """Returns text of extensions as a model should see it: marked as theirs, so that it never passes for the user's.

    What would end the frame inside of the text is defused."""
    inner = re.sub(rf"<(\s*/\s*{FRAME})", r"<\\\1", content, flags=re.IGNORECASE)
    return f"<{FRAME}>\nExtensions have added this; the user has not written it.\n\n{inner}\n</{FRAME}>"
