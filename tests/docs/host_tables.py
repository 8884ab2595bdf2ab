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
from becket.host.lifecycle import HEALTH, TRANSITIONS, ExtensionState, build_diagram
from becket.host.restart import RestartPolicy

__all__ = ["PARTS", "render_events", "render_options", "render_policy", "render_states"]

STATES = {
    ExtensionState.DISABLED: "it must not start",
    ExtensionState.STOPPED: "it is known, and no process is wanted",
    ExtensionState.SPAWNING: "its first process starts and shakes hands",
    ExtensionState.READY: "it takes calls",
    ExtensionState.DEGRADED: "it takes calls, and something is wrong: it is slow, or its circuit is open",
    ExtensionState.RESTARTING: "its process has ended, and the next one is waited for or starts; calls wait too",
    ExtensionState.STOPPING: "its process is asked to end, and made to if it does not",
    ExtensionState.FAILED: "it has no process, until somebody starts it again",
}

OPTIONS = {
    "roots": "the folders to look into; a later one goes before an earlier one",
    "grants": "permissions by extension, which need no consent; above those of `grants.toml`",
    "name": "what the folder of the host is called",
    "data": "the folder for all that it keeps; None keeps all in memory",
    "store": "a store of your own, which you close yourself",
    "config": "values by extension and key, below those that were set",
    "ask": "asks a person for consent, and for permissions",
    "confirm": "asks a person about what a hook wants confirmed",
    "policy": "has a say about every call that would be allowed; plain or `async def`",
    "methods": "methods of your own that extensions may call",
    "only": "the ids that may start; all others are left out",
    "disabled": "the ids that must not start",
    "watch": '`"report"` tells of changed files, `"reload"` puts a new copy in place',
    "development": "changed files need no new consent",
    "audit": '`"usual"` counts allowed calls, `"full"` writes each of them down',
    "care": "how extensions are looked after: restarts, breaker, heartbeat, drain",
    "limits": "limits for all links",
    "timeouts": "how long calls wait, by kind",
    "discovery": "how deep is looked, what is passed over, whether links are followed",
    "variables": "the environment to choose from; that of the host unless given",
    "environment": "variables for all extensions, which need no consent",
    "inherit_environment": "dialects whose extensions see the variables that their own hosts would pass on",
    "most_limits": "the most that a manifest can ask for",
    "schemas": "what to do with inputs that do not fit a tool",
    "audit_bytes": "the size at which a file of the audit is rotated",
    "require_parent": "refuse calls that name no request while another extension's is handled; "
    "see [Permissions](permissions.md#acting-for-others)",
    "extensions": "what holds for one extension above its manifest",
    "dialects": 'settings of an adapter by its dialect: `{"mcp": McpSettings(...)}`; see [MCP](mcp.md)',
    "wrap": "gets the id and the command of each start, and returns what to start in its place: a tracer, a sandbox",
    "hooks": "in which order extensions are consulted at hooks, and which must not be skipped",
    "live_trace": "let programs of the same user follow its traffic: [Tracing](tracing.md#follow-a-running-host)",
    "command_lines": "the commands of `becket` that hints name; by default with its roots and its data folder",
}

# For subscribing to whatever is below them.
NOT_TOLD = (HostEvent, ExtensionEvent)

RESTART = {
    "strategy": "`never`, `immediate` (without a delay) or `exponential`",
    "most": "restarts within `window`; one more, and the extension has failed",
    "window": "seconds",
    "delay": "seconds before the second restart in a row; doubled for each further one",
    "longest_delay": "seconds",
    "healthy_after": "seconds that a process must have been ready for all before it to be forgotten",
    "jitter": "the part of a delay that chance may take away",
    "first_is_immediate": "whether the first restart waits for nothing",
}

BREAKER = {
    "failures": "in a row open the circuit",
    "open_for": "seconds until a call is tried again",
    "longest_open": "seconds; each trial that fails doubles the time, up to this",
    "successes": "of trials close the circuit",
    "trials": "that run at once",
    "trips_on_application_errors": "whether an error that the extension answers is a failure",
}

HEARTBEAT = {
    "every": "seconds of silence before a ping",
    "slow_after": "seconds without an answer: it is degraded",
    "dead_after": "seconds without an answer: it is ended and started again",
    "stalled_after": "seconds by which the host itself may be late before it blames nobody else",
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
        if kind not in NOT_TOLD
    ]
    return render(["event", "fields", "meaning"], rows)


def walk(kind: type[HostEvent]) -> Iterator[type[HostEvent]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == events.__name__:
            yield from walk(below)


def own_fields(kind: type[HostEvent]) -> list[str]:
    return [f"`{field.name}`" for field in fields(kind) if field.name != "extension"]


def render_options() -> str:
    """Returns a row for each option of `Host`."""
    parameters = [*inspect.signature(Host).parameters]
    assert parameters == [*OPTIONS], "an option of `Host` lacks a row"
    return render(["option", "meaning"], [[f"`{name}`", meaning] for name, meaning in OPTIONS.items()])


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
    "options of a host": render_options,
    "restart defaults": partial(render_policy, RestartPolicy, RESTART),
    "breaker defaults": partial(render_policy, BreakerPolicy, BREAKER),
    "heartbeat defaults": partial(render_policy, HeartbeatPolicy, HEARTBEAT),
}
