"""Extension states, transitions and health as tables. Pure.

The tables are the specification; code, documentation and tests read them. The supervisor makes the transitions, and
starts, awaits and stops processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from becket.errors import LocalProtocolError

__all__ = [
    "INACTIVE_STATES",
    "ON_EXIT",
    "ON_START",
    "ON_STOP",
    "RUNNING_STATES",
    "STARTING_STATES",
    "TRANSITIONS",
    "Drain",
    "ExitAction",
    "ExtensionState",
    "Health",
    "Lifecycle",
    "RequestAction",
    "build_diagram",
    "check_transition",
]


class ExtensionState(StrEnum):
    """The state of an extension."""

    STOPPED = "stopped"  # known, without a process
    SPAWNING = "spawning"  # its first process starts and performs the handshake
    READY = "ready"
    DEGRADED = "degraded"  # it runs, but is slow, or too many of its calls fail
    RESTARTING = "restarting"  # its process has ended; the next one is scheduled, or starts
    STOPPING = "stopping"
    FAILED = "failed"  # no process, until it is started again
    DISABLED = "disabled"  # it must not start


RUNNING_STATES: Final = (ExtensionState.READY, ExtensionState.DEGRADED)
STARTING_STATES: Final = (ExtensionState.SPAWNING, ExtensionState.RESTARTING)
INACTIVE_STATES: Final = (ExtensionState.STOPPED, ExtensionState.FAILED, ExtensionState.DISABLED)

TRANSITIONS: Final[Mapping[ExtensionState, Mapping[ExtensionState, str]]] = MappingProxyType(
    {
        ExtensionState.DISABLED: {ExtensionState.STOPPED: "enabled"},
        ExtensionState.STOPPED: {
            ExtensionState.SPAWNING: "started",
            ExtensionState.FAILED: "refused before its start",
            ExtensionState.DISABLED: "disabled",
        },
        ExtensionState.SPAWNING: {
            ExtensionState.READY: "handshake ok",
            ExtensionState.FAILED: "start or handshake failed",
            ExtensionState.STOPPING: "stop requested",
        },
        ExtensionState.READY: {
            ExtensionState.DEGRADED: "slow, or calls fail",
            ExtensionState.RESTARTING: "process ended, or reload",
            ExtensionState.FAILED: "process ended, no restart",
            ExtensionState.STOPPING: "stop requested",
        },
        ExtensionState.DEGRADED: {
            ExtensionState.READY: "recovered",
            ExtensionState.RESTARTING: "process ended or killed, or reload",
            ExtensionState.FAILED: "process ended, no restart",
            ExtensionState.STOPPING: "stop requested",
        },
        ExtensionState.RESTARTING: {
            ExtensionState.READY: "handshake ok again",
            ExtensionState.FAILED: "too many restarts",
            ExtensionState.STOPPING: "stop requested",
        },
        ExtensionState.STOPPING: {ExtensionState.STOPPED: "process gone"},
        ExtensionState.FAILED: {
            ExtensionState.SPAWNING: "started by hand",
            ExtensionState.STOPPING: "stop requested",
            ExtensionState.DISABLED: "disabled",
        },
    }
)
"""Every transition, and its cause."""


def check_transition(extension: str, before: ExtensionState, after: ExtensionState) -> None:
    """Raises LocalProtocolError for a transition that does not exist; its text names both states."""
    if after not in TRANSITIONS[before]:
        allowed = ", ".join(TRANSITIONS[before])
        raise LocalProtocolError(f"{extension} is {before} and cannot become {after}, only: {allowed}")


# -- requests and exits


class RequestAction(Enum):
    """What to do when an extension is requested to start or to stop. A repeated request has no further effect."""

    BEGIN = "begin"
    JOIN = "wait for the operation in progress"
    NOTHING = "nothing: the state is reached"
    BEGIN_AFTER = "wait for the end of the operation in progress, then begin"
    REFUSE = "refuse"


ON_START: Final[Mapping[ExtensionState, RequestAction]] = MappingProxyType(
    {
        ExtensionState.STOPPED: RequestAction.BEGIN,
        ExtensionState.SPAWNING: RequestAction.JOIN,
        ExtensionState.READY: RequestAction.NOTHING,
        ExtensionState.DEGRADED: RequestAction.NOTHING,
        ExtensionState.RESTARTING: RequestAction.JOIN,
        ExtensionState.STOPPING: RequestAction.BEGIN_AFTER,
        ExtensionState.FAILED: RequestAction.BEGIN,
        ExtensionState.DISABLED: RequestAction.REFUSE,
    }
)
ON_STOP: Final[Mapping[ExtensionState, RequestAction]] = MappingProxyType(
    {
        ExtensionState.STOPPED: RequestAction.NOTHING,
        ExtensionState.SPAWNING: RequestAction.BEGIN,
        ExtensionState.READY: RequestAction.BEGIN,
        ExtensionState.DEGRADED: RequestAction.BEGIN,
        ExtensionState.RESTARTING: RequestAction.BEGIN,
        ExtensionState.STOPPING: RequestAction.JOIN,
        ExtensionState.FAILED: RequestAction.BEGIN,
        ExtensionState.DISABLED: RequestAction.NOTHING,
    }
)


class ExitAction(Enum):
    """What follows from the exit of an extension's process."""

    FAIL = "fail: a first start is not repeated"
    DECIDE = "apply the restart policy"
    EXPECTED = "complete the requested stop"
    NOTHING = "nothing: the exit was handled already"


ON_EXIT: Final[Mapping[ExtensionState, ExitAction]] = MappingProxyType(
    {
        ExtensionState.STOPPED: ExitAction.NOTHING,
        ExtensionState.SPAWNING: ExitAction.FAIL,
        ExtensionState.READY: ExitAction.DECIDE,
        ExtensionState.DEGRADED: ExitAction.DECIDE,
        ExtensionState.RESTARTING: ExitAction.DECIDE,
        ExtensionState.STOPPING: ExitAction.EXPECTED,
        ExtensionState.FAILED: ExitAction.NOTHING,
        ExtensionState.DISABLED: ExitAction.NOTHING,
    }
)


# -- health


class Health(StrEnum):
    """The health of an extension in the contract's terms; `disabled` is the host's own."""

    LOADED = "loaded"
    FAILED_VALIDATION = "failed_validation"
    FAILED_INITIALIZE = "failed_initialize"
    RUNNING = "running"
    RESTARTING = "restarting"
    DEGRADED = "degraded"
    FAILED = "failed"
    DISABLED = "disabled"


HEALTH: Final[Mapping[ExtensionState, Health]] = MappingProxyType(
    {
        ExtensionState.STOPPED: Health.LOADED,
        ExtensionState.SPAWNING: Health.LOADED,
        ExtensionState.READY: Health.RUNNING,
        ExtensionState.DEGRADED: Health.DEGRADED,
        ExtensionState.RESTARTING: Health.RESTARTING,
        ExtensionState.STOPPING: Health.LOADED,
        ExtensionState.FAILED: Health.FAILED,
        ExtensionState.DISABLED: Health.DISABLED,
    }
)
FAILURE_HEALTH: Final = MappingProxyType(
    {ExtensionState.STOPPED: Health.FAILED_VALIDATION, ExtensionState.SPAWNING: Health.FAILED_INITIALIZE}
)


class Lifecycle(Struct, frozen=True):
    """The state of one extension, since when, and the one before."""

    extension: str
    state: ExtensionState = ExtensionState.STOPPED
    since: float = 0.0
    previous: ExtensionState | None = None

    def transition(self, to: ExtensionState, now: float) -> Lifecycle:
        """Returns the lifecycle after a transition.

        Raises:
            LocalProtocolError: there is no such transition.
        """
        check_transition(self.extension, self.state, to)
        return replace(self, state=to, since=now, previous=self.state)

    def health(self, restarts: int = 0) -> Health:
        """Returns the health. One that was restarted and has not stayed up since is `degraded`, though it runs."""
        if self.state is ExtensionState.FAILED and self.previous is not None:
            return FAILURE_HEALTH.get(self.previous, Health.FAILED)
        if self.state is ExtensionState.READY and restarts > 0:
            return Health.DEGRADED
        return HEALTH[self.state]


# -- replacing a running process


class Drain(Struct, frozen=True):
    """How long a running process may finish its calls, before it ends and another one replaces it.

    New calls wait for the other one. Calls without a response in time fail, and their error names `reload`."""

    started_at: float
    timeout: float = 10.0  # most calls take less; a longer one is not worth keeping the old process

    def is_over(self, in_flight: int, now: float) -> bool:
        """Returns whether the old process may end now."""
        return in_flight == 0 or self.remaining(now) == 0.0

    def remaining(self, now: float) -> float:
        """Returns the seconds left for the calls in flight."""
        return max(0.0, self.started_at + self.timeout - now)


# -- for the documentation


def build_diagram() -> str:
    """Returns the transitions as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {ExtensionState.STOPPED}"]
    lines += [
        f"    {before} --> {after}: {why}" for before, moves in TRANSITIONS.items() for after, why in moves.items()
    ]
    return "\n".join([*lines, f"    {ExtensionState.STOPPED} --> [*]", ""])
