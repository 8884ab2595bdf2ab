"""The tables of the page about hosting, made from the code: states, events, options, restarts, breaker, heartbeat."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import fields

from becket.host import events
from becket.host.breaker import BreakerPolicy
from becket.host.events import ExtensionEvent, HostEvent
from becket.host.heartbeat import HeartbeatPolicy
from becket.host.host import Host
from becket.host.host_settings import HostSettings
from becket.host.lifecycle import HEALTH, TRANSITIONS, ExtensionState, build_diagram
from becket.host.restart import RestartPolicy

__all__ = ["PARTS", "render_arguments", "render_events", "render_policy", "render_settings", "render_states"]

STATES = {
    ExtensionState.DISABLED: "it must not start",
    ExtensionState.STOPPED: "it has no process",
    ExtensionState.SPAWNING: "its first process starts and runs the handshake",
    ExtensionState.READY: "it accepts calls",
    ExtensionState.DEGRADED: "it accepts calls, but is slow, or its circuit is open",
    ExtensionState.RESTARTING: "its process has ended, and the next one is delayed or starts; calls wait",
    ExtensionState.STOPPING: "its process gets a request to end, and is killed if it does not",
    ExtensionState.FAILED: "it has no process, until it is started by hand",
}

ARGUMENTS = {
    "roots": "the folders to search, of which a later one takes precedence; or a `HostConfig`",
    "grants": "permissions by extension, which need no consent; they override `grants.toml`",
    "data": "the data folder; None keeps all data in memory",
    "store": "a store of your own, which you close yourself",
    "ask": "prompts a person for consent, and for permissions",
    "methods": "methods of your own that extensions may call",
    "settings": "everything else, as `HostSettings`; see below",
}

SETTINGS = {
    "name": "the name of the host and of its data folder",
    "config": "values by extension and key; stored values override them",
    "confirm": "prompts a person for confirmations that hooks request",
    "policy": "can deny every call that would be allowed; plain or `async def`",
    "only": "the ids that may start; all others are left out",
    "disabled": "the ids that must not start",
    "watch": '`"report"` reports changed files, `"reload"` restarts the extension with them',
    "development": "changed files need no new consent",
    "audit": '`"usual"` counts allowed calls, `"full"` records each of them',
    "supervision": "the supervision policy: restarts, breaker, heartbeat, drain",
    "limits": "limits for all links",
    "timeouts": "timeouts of calls, by kind",
    "discovery": "depth of the search, ignored folders, whether symbolic links are followed",
    "variables": "the variables that can be passed on; by default those of the host",
    "environment": "variables for all extensions, which need no consent",
    "inherit_environment": "dialects whose extensions get the variables that hosts of their system pass on",
    "most_limits": "upper bounds for the limits that manifests request",
    "schemas": "what to do with invalid inputs of tools",
    "audit_bytes": "the size at which a file of the audit is rotated",
    "require_parent": "reject calls without a parent while a request of another extension is handled; "
    "see [Permissions](permissions.md#acting-for-others)",
    "extensions": "settings of single extensions, which override their manifests",
    "dialects": 'settings of an adapter by its dialect: `{"mcp": McpSettings(...)}`; see [MCP](mcp.md)',
    "wrap": "gets the id and the command of each start, and returns the command to run: with a tracer, or a sandbox",
    "hooks": "the order in which hooks are consulted, and which are required",
    "live_trace": "allow programs of the same user to follow its traffic: [Tracing](tracing.md#follow-a-running-host)",
    "command_lines": "the commands of `becket` that hints name; by default with its roots and its data folder",
}

# For subscribing to whatever is below them.
ABSTRACT = (HostEvent, ExtensionEvent)

RESTART = {
    "strategy": "`never`, `immediate` (without a delay) or `exponential`",
    "most": "restarts within `window`; one more, and the extension has failed",
    "window": "seconds",
    "delay": "seconds before the second restart in a row; doubled for each further one",
    "longest_delay": "seconds",
    "healthy_after": "seconds that a process must have been ready before its history is cleared",
    "jitter": "the random part of a delay",
    "first_is_immediate": "whether the first restart has no delay",
}

BREAKER = {
    "failures": "failures in a row that open the circuit",
    "open_for": "seconds until a call is tried again",
    "longest_open": "seconds; each trial that fails doubles the time, up to this",
    "successes": "successful trials that close the circuit",
    "trials": "trials that run at once",
    "trips_on_application_errors": "whether an error response counts as a failure",
}

HEARTBEAT = {
    "every": "seconds of silence before a ping",
    "slow_after": "seconds without a response: it is degraded",
    "dead_after": "seconds without a response: it is killed and restarted",
    "stalled_after": "seconds of delay of the host itself, above which no extension is killed",
}


def render(headers: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in [headers, *rows]]
    lines.insert(1, "|" + "---|" * len(headers))
    return "\n".join([*lines, ""])


def render_diagram() -> str:
    return f"```mermaid\n{build_diagram()}```\n"


def render_states() -> str:
    """Returns a row for each state: what it means, how health calls it, and where it leads."""
    assert set(STATES) == set(ExtensionState) == set(TRANSITIONS)
    rows = [
        [f"`{state}`", meaning, f"`{HEALTH[state]}`", ", ".join(f"`{after}`" for after in TRANSITIONS[state])]
        for state, meaning in STATES.items()
    ]
    return render(["state", "meaning", "health", "leads to"], rows)


def render_events() -> str:
    """Returns a row for each class of events, with its fields besides `extension`."""
    rows = [
        [f"`{kind.__name__}`", ", ".join(own_fields(kind)), " ".join((kind.__doc__ or "").split())]
        for kind in walk(HostEvent)
        if kind not in ABSTRACT
    ]
    return render(["event", "fields", "meaning"], rows)


def walk(kind: type[HostEvent]) -> Iterator[type[HostEvent]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == events.__name__:
            yield from walk(below)


def own_fields(kind: type[HostEvent]) -> list[str]:
    return [f"`{field.name}`" for field in fields(kind) if field.name != "extension"]


def render_arguments() -> str:
    """Returns a row for each argument of `Host`."""
    arguments = [name for name in inspect.signature(Host).parameters if name != "keywords"]
    assert arguments == [*ARGUMENTS], "an argument of `Host` lacks a row"
    return render(["argument", "meaning"], [[f"`{name}`", meaning] for name, meaning in ARGUMENTS.items()])


def render_settings() -> str:
    """Returns a row for each setting of a host."""
    assert [*HostSettings.__struct_fields__] == [*SETTINGS], "a setting of a host lacks a row"
    return render(["setting", "meaning"], [[f"`{name}`", meaning] for name, meaning in SETTINGS.items()])


def render_policy(policy: type[Struct], meanings: dict[str, str]) -> str:
    """Returns a row for each field of a policy: its default and what it does."""
    found = fields(policy)
    assert [field.name for field in found] == [*meanings], f"a field of `{policy.__name__}` lacks a row"
    rows = [[f"`{field.name}`", show(field.default), meanings[field.name]] for field in found]
    return render(["field", "default", "meaning"], rows)


def show(default: Any) -> str:
    assert default is not UNSET
    return f'`"{default}"`' if isinstance(default, str) else f"`{default}`"


PARTS: dict[str, Callable[[], str]] = {
    "life of an extension": render_diagram,
    "states": render_states,
    "events": render_events,
    "arguments of a host": render_arguments,
    "settings of a host": render_settings,
    "restart defaults": partial(render_policy, RestartPolicy, RESTART),
    "breaker defaults": partial(render_policy, BreakerPolicy, BREAKER),
    "heartbeat defaults": partial(render_policy, HeartbeatPolicy, HEARTBEAT),
}
