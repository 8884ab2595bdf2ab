"""Which extensions are consulted about an event, in which order, and which of their hooks are suspended.

Pure: permissions, times and outcomes are arguments. `hooks` consults the extensions one after the other.

The order never depends on which extension starts first: those that the operator names come first, in that order; the
others follow by the priority of their manifests, the lowest first, and then in discovery order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from becket.contract.argument_checks import check_list
from becket.contract.hooks import (
    HOOKS,
    EncodedInput,
    HookEvent,
    HookKind,
    HookMatch,
    HookSubscription,
    find_hook_problem,
)
from becket.errors import CircuitOpen
from becket.host.breaker import Breaker, BreakerPolicy, BreakerState, CallOutcome, Ticket
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity

__all__ = ["HookDeclaration", "HookSettings", "HookStatus", "Hooks", "describe_order", "narrow_hooks", "order_hooks"]

MAX_CONSULTED: Final = 128  # extensions at one hook: they are consulted one after the other
BREAKER: Final = BreakerPolicy(failures=3, open_for=60.0, longest_open=600.0, successes=1)
"""Three times without a response are no accident; then an event costs nothing more, except for one trial a minute."""


class HookSettings(Struct, frozen=True, kw_only=True):
    """The operator's settings for hooks: the extensions consulted first, in this `order`, and those that are
    `required`.

    If a required one cannot be consulted about a tool call or a message, it is blocked, whatever its manifest says."""

    order: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_list(self.order, "order", "ids")
        check_list(self.required, "required", "ids")


class HookDeclaration(Struct, frozen=True):
    """A hook of an extension: the kind of event, and optionally a match.

    If a `required` one cannot be consulted, the tool call is blocked, or its output withheld. If there are conditions
    in `announced`, one of them must hold as well."""

    hook: str
    match: HookMatch | None = None
    required: bool = False
    announced: tuple[HookMatch, ...] = ()

    def wants(self, event: HookEvent, encoded: EncodedInput) -> bool:
        """Returns whether it is about this event."""
        if self.hook != event.kind or not (self.match is None or self.match.matches(event, encoded)):
            return False
        return not self.announced or any(match.matches(event, encoded) for match in self.announced)

    @property
    def texts(self) -> Iterator[str]:
        """The texts that inputs are searched for."""
        for match in (self.match, *self.announced):
            if match is not None and match.input_contains:
                yield match.input_contains


def narrow_hooks(
    announced: Sequence[HookSubscription], declarations: Sequence[HookDeclaration]
) -> list[HookDeclaration]:
    """Returns what an extension is consulted about: the hooks that it has announced, limited to the events of its
    manifest for kinds named there. Without announced hooks those of the manifest apply."""
    named = {declaration.hook for declaration in declarations}
    narrowed = [replace(declaration, announced=matches_of(announced, declaration.hook)) for declaration in declarations]
    return [*narrowed, *(HookDeclaration(one.hook, one.match) for one in announced if one.hook not in named)]


def matches_of(announced: Sequence[HookSubscription], hook: str) -> tuple[HookMatch, ...]:
    """Returns the matches that an extension announced for a kind of event; none if it matches all."""
    matches = [one.match for one in announced if one.hook == hook]
    return tuple(match for match in matches if match is not None) if None not in matches else ()


class HookStatus(Struct, frozen=True):
    """One kind of hook of an extension: its position among all consulted at it, from 1, whether it is required, and
    whether it is suspended since it has not responded lately."""

    hook: str
    position: int
    required: bool = False
    is_out: bool = False


def order_hooks(settings: HookSettings, priorities: Mapping[str, int]) -> tuple[str, ...]:
    """Returns the ids in the order in which extensions are consulted; `priorities` has them in discovery order."""
    named = {id: place for place, id in enumerate(settings.order)}
    return tuple(sorted(priorities, key=lambda id: (named.get(id, len(named)), 0 if id in named else priorities[id])))


class Hooks:
    """The hooks of all extensions, their order, and which of them have not responded lately."""

    def __init__(self, settings: HookSettings | None = None, *, breaker: BreakerPolicy = BREAKER) -> None:
        self.settings = settings or HookSettings()
        self._policy = breaker
        self._declarations: dict[str, tuple[HookDeclaration, ...]] = {}
        self._allows: dict[str, Callable[[str], bool]] = {}
        self._priorities: dict[str, int] = {}
        self._breakers: dict[tuple[str, HookKind], Breaker] = {}
        for extension in self.settings.required:
            self.remove(extension)

    # -- order

    def expect(self, priorities: Mapping[str, int]) -> list[Diagnostic]:
        """Sets the discovered extensions, in discovery order, each with its priority.

        Returns which of those that the operator names are not among them."""
        self._priorities = dict(priorities)
        named = dict.fromkeys((*self.settings.order, *self.settings.required))
        return [unknown(id, is_required=id in self.settings.required) for id in named if id not in priorities]

    def add(
        self,
        extension: str,
        declarations: Iterable[HookDeclaration],
        allows: Callable[[str], bool],
        *,
        priority: int | None = None,
    ) -> list[Diagnostic]:
        """Replaces the declarations of an extension.

        Returns the problems of those that were left out; `allows` returns whether it holds a permission, now and at
        each event."""
        accepted: list[HookDeclaration] = []
        diagnostics: list[Diagnostic] = []
        for declaration in declarations:
            problem = find_hook_problem(declaration.hook, declaration.match, required=declaration.required)
            if problem is not None:
                hint = "correct the hook in its manifest or in its code: it is not consulted"
                diagnostics.append(warning(ProblemCode.HOOK_LEFT_OUT, extension, problem, hint))
                continue
            rule = HOOKS[HookKind(declaration.hook)]
            must = declaration.required or (extension in self.settings.required and rule.can_hold_back)
            if not allows(rule.permission):
                diagnostics.append(lacking(extension, rule.permission, declaration.hook))
            elif self._is_full(declaration.hook, extension) and not must:
                problem = f"{MAX_CONSULTED} extensions are consulted at `{declaration.hook}` already: this one is not"
                hint = "disable extensions with this hook that are not needed"
                diagnostics.append(warning(ProblemCode.HOOK_LEFT_OUT, extension, problem, hint))
            else:
                accepted.append(replace(declaration, required=must))
        self._declarations[extension] = tuple(accepted)
        self._allows[extension] = allows
        if priority is not None or extension not in self._priorities:
            self._priorities[extension] = priority or 0
        self._forget_breakers(extension)
        return diagnostics

    def _is_full(self, hook: str, extension: str) -> bool:
        others = [declarations for other, declarations in self._declarations.items() if other != extension]
        return (
            sum(any(declaration.hook == hook for declaration in declarations) for declarations in others)
            >= MAX_CONSULTED
        )

    def _forget_breakers(self, extension: str) -> None:
        for key in [key for key in self._breakers if key[0] == extension]:
            del self._breakers[key]

    def suspend(self, extension: str) -> None:
        """Consults an extension that cannot run only where it is required: there it blocks everything."""
        self._declarations[extension] = tuple(
            declaration for declaration in self.declarations(extension) if declaration.required
        )

    def remove(self, extension: str) -> None:
        """Stops consulting an extension, unless the operator requires it."""
        if extension in self.settings.required:
            self._declarations[extension] = (HookDeclaration(HookKind.BEFORE_TOOL_CALL, None, True),)
            self._allows[extension] = lambda permission: True
        else:
            self._declarations.pop(extension, None)
        self._forget_breakers(extension)

    def plan(self, event: HookEvent, encoded: EncodedInput | None = None) -> tuple[str, ...]:
        """Returns which extensions are consulted about an event, in order, each once. Later changes do not affect
        it."""
        encoded = EncodedInput(event.tool_input) if encoded is None else encoded
        permission = HOOKS[event.kind].permission
        wanting = {
            extension
            for extension, declarations in [*self._declarations.items()]  # the loop may add some while a thread reads
            if any(declaration.wants(event, encoded) for declaration in declarations)
            and self._allows[extension](permission)
        }
        return tuple(extension for extension in self.order() if extension in wanting) if wanting else ()

    def order(self) -> tuple[str, ...]:
        """Returns all known extensions in the order in which they are consulted."""
        others = dict.fromkeys((id for id in [*self._declarations] if id not in self._priorities), 0)
        return order_hooks(self.settings, {**self._priorities, **others})

    def declarations(self, extension: str) -> tuple[HookDeclaration, ...]:
        """Returns what an extension is consulted about."""
        return self._declarations.get(extension, ())

    @property
    def has_tool_hooks(self) -> bool:
        """Whether any extension is consulted about tool calls."""
        return any(
            HOOKS[HookKind(declaration.hook)].takes_tool_filter
            for declarations in self._declarations.values()
            for declaration in declarations
        )

    def texts(self, kind: HookKind) -> frozenset[str]:
        """Returns the texts that the inputs of such events are searched for."""
        declarations = [
            declaration
            for declarations in self._declarations.values()
            for declaration in declarations
            if declaration.hook == kind
        ]
        return frozenset(text for declaration in declarations for text in declaration.texts)

    def is_required(self, extension: str, event: HookEvent, encoded: EncodedInput | None = None) -> bool:
        """Returns whether an extension must not be skipped at this event."""
        encoded = EncodedInput(event.tool_input) if encoded is None else encoded
        return any(
            declaration.required and declaration.wants(event, encoded) for declaration in self.declarations(extension)
        )

    # -- hooks that do not respond

    def admit(self, extension: str, kind: HookKind, now: float) -> Ticket | None:
        """Admits a consultation; None if the hook has not responded lately and is suspended."""
        breaker = self._breakers.setdefault((extension, kind), Breaker(extension, self._policy))
        try:
            return breaker.admit(now)
        except CircuitOpen:
            return None

    def settle(
        self, extension: str, kind: HookKind, ticket: Ticket, outcome: CallOutcome, now: float
    ) -> Diagnostic | None:
        """Records the outcome of a consultation. Returns a diagnostic if it suspends the hook."""
        breaker = self._breakers.get((extension, kind))
        if breaker is None:  # another process of the extension has started meanwhile
            return None
        was_closed = breaker.state(now) is BreakerState.CLOSED
        breaker.record(ticket, outcome, now)
        if not was_closed or breaker.state(now) is BreakerState.CLOSED:
            return None
        is_required = any(
            declaration.required and declaration.hook == kind for declaration in self.declarations(extension)
        )
        until_then = "tool calls that need it are blocked" if is_required else "it is skipped"
        problem = f"its hook `{kind}` has not responded {self._policy.failures} times in a row: {until_then}"
        hint = "it is tried again now and then; find out what its handler waits for, or disable the extension"
        return warning(ProblemCode.HOOK_UNRESPONSIVE, extension, problem, hint)

    def status(self, extension: str, now: float) -> tuple[HookStatus, ...]:
        """Returns the state of an extension's hooks, each kind once. Thread-safe."""
        declarations = {**self._declarations}
        order, own = self.order(), declarations.get(extension, ())
        found: list[HookStatus] = []
        for kind in dict.fromkeys(declaration.hook for declaration in own):
            consulted = [
                id for id in order if any(declaration.hook == kind for declaration in declarations.get(id, ()))
            ]
            required = any(declaration.required for declaration in own if declaration.hook == kind)
            breaker = self._breakers.get((extension, HookKind(kind)))
            is_out = breaker is not None and breaker.state(now) is not BreakerState.CLOSED
            found.append(HookStatus(str(kind), consulted.index(extension) + 1, required, is_out))
        return tuple(found)


# -- diagnostics


def warning(code: ProblemCode, extension: str, problem: str, hint: str) -> Diagnostic:
    return Diagnostic(code=code, extension=extension, problem=problem, hint=hint, severity=Severity.WARNING)


def lacking(extension: str, permission: str, hook: str) -> Diagnostic:
    problem = f"lacks the permission `{permission}`, which its hook `{hook}` needs"
    return warning(
        ProblemCode.PERMISSION_NOT_GRANTED,
        extension,
        problem,
        f"grant it {permission}, which its manifest must request",
    )


def unknown(extension: str, *, is_required: bool) -> Diagnostic:
    problem = "is named in `[hooks]` of the host's configuration, and was not found"
    if not is_required:
        return warning(ProblemCode.NOT_FOUND, extension, problem, "check its spelling, and `roots`")
    hint = "all tool calls are blocked until it runs, or until it is taken out of `required`"
    return Diagnostic(code=ProblemCode.NOT_FOUND, extension=extension, problem=problem, hint=hint)


def describe_order(extensions: Sequence[str]) -> str:
    """Returns in which order extensions are consulted, in a sentence."""
    return f"hooks are consulted in this order: {', '.join(extensions)}"
