"""Extension states, transitions and health as tables. Pure; processes are the supervisor's.

The tables are the specification; code, documentation and tests read them. Pure: whoever owns an extension makes its
moves, one after the other. Starting, waiting and stopping processes are the supervisor's.
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
    "ON_EXIT",
    "ON_START",
    "ON_STOP",
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
    """Where an extension stands."""

    STOPPED = "stopped"  # known, and no process is wanted
    SPAWNING = "spawning"  # its first process starts and shakes hands
    READY = "ready"
    DEGRADED = "degraded"  # it runs, and something is wrong with it: slow, or too many of its calls fail
    RESTARTING = "restarting"  # its process has ended; the next one is waited for, or starts
    STOPPING = "stopping"
    FAILED = "failed"  # no process, until somebody starts it again
    DISABLED = "disabled"  # it must not start


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
            ExtensionState.STOPPING: "asked to stop",
        },
        ExtensionState.READY: {
            ExtensionState.DEGRADED: "slow, or calls fail",
            ExtensionState.RESTARTING: "process ended, or reload",
            ExtensionState.FAILED: "process ended, no restart",
            ExtensionState.STOPPING: "asked to stop",
        },
        ExtensionState.DEGRADED: {
            ExtensionState.READY: "well again",
            ExtensionState.RESTARTING: "process ended or killed, or reload",
            ExtensionState.FAILED: "process ended, no restart",
            ExtensionState.STOPPING: "asked to stop",
        },
        ExtensionState.RESTARTING: {
            ExtensionState.READY: "handshake ok again",
            ExtensionState.FAILED: "too many restarts",
            ExtensionState.STOPPING: "asked to stop",
        },
        ExtensionState.STOPPING: {ExtensionState.STOPPED: "process gone"},
        ExtensionState.FAILED: {
            ExtensionState.SPAWNING: "started by hand",
            ExtensionState.STOPPING: "asked to stop",
            ExtensionState.DISABLED: "disabled",
        },
    }
)
"""Every move that exists, and what makes it."""


def check_transition(extension: str, before: ExtensionState, after: ExtensionState) -> None:
    """Raises LocalProtocolError for a move that does not exist; its text names both states."""
    if after not in TRANSITIONS[before]:
        allowed = ", ".join(TRANSITIONS[before])
        raise LocalProtocolError(f"{extension} is {before} and cannot become {after}, only: {allowed}")


# -- what is asked of it, and what befalls it


class RequestAction(Enum):
    """What is to be done when an extension is asked to start or to stop. Asking twice never does it twice."""

    BEGIN = "begin"
    JOIN = "wait for what is under way"
    NOTHING = "it is so already"
    BEGIN_AFTER = "wait for the end of what is under way, then begin"
    REFUSE = "it must not"


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
    """What follows from the end of an extension's process."""

    FAIL = "it has failed: a first start is not repeated"
    DECIDE = "the restart policy decides"
    EXPECTED = "it was asked to end"
    NOTHING = "late news of a process that nobody waits for"


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
    """How an extension does, in the words of the contract; `disabled` is ours."""

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
    """Where one extension stands, since when, and where it came from."""

    extension: str
    state: ExtensionState = ExtensionState.STOPPED
    since: float = 0.0
    previous: ExtensionState | None = None

    def transition(self, to: ExtensionState, now: float) -> Lifecycle:
        """Returns where it stands after a move.

        Raises:
            LocalProtocolError: there is no such move.
        """
        check_transition(self.extension, self.state, to)
        return replace(self, state=to, since=now, previous=self.state)

    def health(self, restarts: int = 0) -> Health:
        """Returns how it does. One that was restarted and has not stayed up since is `degraded`, though it runs."""
        if self.state is ExtensionState.FAILED and self.previous is not None:
            return FAILURE_HEALTH.get(self.previous, Health.FAILED)
        if self.state is ExtensionState.READY and restarts > 0:
            return Health.DEGRADED
        return HEALTH[self.state]


# -- replacing a copy that runs


class Drain(Struct, frozen=True):
    """How long a running copy is given for the calls that it has, before it ends and another takes its place.

    New calls wait for the other one. Those that are not answered in time fail, and their error says `reload`."""

    started_at: float
    timeout: float = 10.0  # most calls take less; a longer one is not worth an old copy that lives on

    def is_over(self, in_flight: int, now: float) -> bool:
        """Returns whether the old copy may end now."""
        return in_flight == 0 or self.remaining(now) == 0.0

    def remaining(self, now: float) -> float:
        """Returns the seconds that are left for the calls in flight."""
        return max(0.0, self.started_at + self.timeout - now)


# -- for the documentation


def build_diagram() -> str:
    """Returns the moves as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {ExtensionState.STOPPED}"]
    lines += [
        f"    {before} --> {after}: {why}" for before, moves in TRANSITIONS.items() for after, why in moves.items()
    ]
    return "\n".join([*lines, f"    {ExtensionState.STOPPED} --> [*]", ""])
