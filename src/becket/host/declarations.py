"""Publishes what extensions declare: their tools, models and hooks, while they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from becket._text import escape, truncate
from becket.contract.handshake import Capabilities
from becket.contract.hooks import HOOKS
from becket.dialects import find_dialect
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.events import EventBus, ExtensionStateChanged, ExtensionToolsChanged
from becket.host.extension import Extension
from becket.host.extension_connection import ExtensionConnection
from becket.host.hook_plan import HookDeclaration, Hooks, narrow_hooks
from becket.host.lifecycle import INACTIVE_STATES, ExtensionState
from becket.host.providers import ProviderRegistry
from becket.host.starting.candidate import Candidate, build_diagnostic
from becket.host.tools import PLAIN_NAMING, PREFIXED_NAMING, ToolNaming, ToolRegistry

__all__ = ["Declarations", "has_hooks", "naming_of", "priorities_of"]

HOOK_PERMISSIONS: Final = frozenset(rule.permission for rule in HOOKS.values())
MAX_SHOWN: Final = 64  # characters of an id that an extension reports


class Declarations:
    """Keeps the registries of a host up to date. `problems` is the list of the host, and `report` adds to it."""

    def __init__(
        self,
        tools: ToolRegistry,
        providers: ProviderRegistry,
        hooks: Hooks,
        *,
        events: EventBus,
        problems: list[Diagnostic],
        report: Callable[[Diagnostic], None],
    ) -> None:
        self._tools = tools
        self._providers = providers
        self._hooks = hooks
        self._events = events
        self._problems = problems
        self._report = report

    def publish(self, candidate: Candidate, extension: Extension, copy: ExtensionConnection) -> None:
        """Publishes the declarations of a new process of an extension in place of those of its previous one."""
        declarations = narrow_hooks(copy.subscriptions, read_declared_hooks(candidate))
        found = [
            *self._tools.add(extension.id, copy.tools, naming=naming_of(candidate)),
            *self._providers.add(extension.id, copy.handshake.capabilities.providers),
            *self._hooks.add(extension.id, declarations, extension.gate.allows),
            *list_disabled(copy),
        ]
        is_named_by_operator = candidate.manifest_path == candidate.folder  # in the configuration, without a manifest
        own_id = copy.handshake.own_id
        if own_id and not is_named_by_operator:
            found.append(describe_mismatch(candidate, own_id))
        for problem in found:
            if problem not in self._problems:  # those of the previous process
                self._report(problem)

    def expect(self, candidate: Candidate, extension: Extension) -> None:
        """Registers the required hooks of an extension that may start, before it runs."""
        required = [declaration for declaration in read_declared_hooks(candidate) if declaration.required]
        if required:
            self._hooks.add(candidate.id, required, extension.gate.allows)

    def publish_unstarted(self, id: str, declared: Capabilities) -> None:
        """Publishes the tools of an extension that is started by the first call."""
        self._problems += self._tools.add(id, declared.tools)

    def update_tools(self, extension: ExtensionConnection) -> None:
        """Publishes the tools that a running extension has declared anew."""
        self._problems += self._tools.add(extension.id, extension.tools)
        self._events.publish(ExtensionToolsChanged(extension.id, len(extension.tools)))

    def on_state_changed(self, event: ExtensionStateChanged) -> None:
        """Withdraws the declarations of an extension that does not run any more."""
        if event.after in INACTIVE_STATES:
            self._tools.remove(event.extension)
            self._providers.remove(event.extension)
            if event.after is ExtensionState.FAILED:  # else it was stopped on purpose
                self._hooks.suspend(event.extension)
            else:
                self._hooks.remove(event.extension)


def naming_of(candidate: Candidate) -> ToolNaming:
    """Returns how the tools of an extension are named."""
    is_prefixed = find_dialect(candidate.manifest.dialect).host_defaults.has_prefixed_tools
    return PREFIXED_NAMING if is_prefixed else PLAIN_NAMING


def read_declared_hooks(candidate: Candidate) -> list[HookDeclaration]:
    """Returns the hooks that a manifest requests."""
    return [HookDeclaration(hook.hook, hook.matcher, hook.required) for hook in candidate.manifest.hooks]


def has_hooks(candidate: Candidate) -> bool:
    """Returns whether an extension may have hooks: its manifest names some, or requests a permission of hooks."""
    manifest = candidate.manifest
    requests_hooks = not HOOK_PERMISSIONS.isdisjoint(manifest.permissions)
    return bool(requests_hooks or manifest.hooks or getattr(candidate.extra, "hooks", ()))


def priorities_of(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Returns each extension's priority at hooks, if its system has one: the lowest is consulted first."""
    found: dict[str, int] = {}
    for candidate in candidates:
        priority: object = getattr(candidate.extra, "priority", 0)
        found[candidate.id] = priority if isinstance(priority, int) else 0
    return found


def list_disabled(copy: ExtensionConnection) -> list[Diagnostic]:
    """Returns a diagnostic for each disabled tool of a connection."""
    hint = "correct its `input_schema`; until then it is not offered"
    return [
        Diagnostic(
            extension=copy.id,
            problem=f"the tool `{name}` is disabled, its schema cannot be applied: {because}",
            code=ProblemCode.TOOL_LEFT_OUT,
            hint=hint,
            severity=Severity.WARNING,
        )
        for name, because in copy.tool_inputs.disabled.items()
    ]


def describe_mismatch(candidate: Candidate, own_id: str) -> Diagnostic:
    """Returns the warning that the code of an extension has another id than its manifest."""
    problem = f"its manifest has the id `{candidate.id}`, and its code `{escape(truncate(own_id, MAX_SHOWN))}`"
    hint = "give both the same id; until then the manifest's is used"
    return build_diagnostic(candidate, ProblemCode.ID_MISMATCH, problem, hint, Severity.WARNING)
