"""The life of an extension in a host: its states, the moves between them, and the health that a host tells of.

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
    "MOVES",
    "ON_EXIT",
    "ON_START",
    "ON_STOP",
    "Drain",
    "ExitMeans",
    "Health",
    "Lifecycle",
    "RequestMeans",
    "State",
    "build_diagram",
    "check_move",
]


class State(StrEnum):
    """Where an extension stands."""

    STOPPED = "stopped"  # known, and no process is wanted
    SPAWNING = "spawning"  # its first process starts and shakes hands
    READY = "ready"
    DEGRADED = "degraded"  # it runs, and something is wrong with it: slow, or too many of its calls fail
    RESTARTING = "restarting"  # its process has ended; the next one is waited for, or starts
    STOPPING = "stopping"
    FAILED = "failed"  # no process, until somebody starts it again
    DISABLED = "disabled"  # it must not start


MOVES: Final[Mapping[State, Mapping[State, str]]] = MappingProxyType(
    {
        State.DISABLED: {State.STOPPED: "enabled"},
        State.STOPPED: {
            State.SPAWNING: "started",
            State.FAILED: "refused before its start",
            State.DISABLED: "disabled",
        },
        State.SPAWNING: {
            State.READY: "handshake ok",
            State.FAILED: "start or handshake failed",
            State.STOPPING: "asked to stop",
        },
        State.READY: {
            State.DEGRADED: "slow, or calls fail",
            State.RESTARTING: "process ended, or reload",
            State.FAILED: "process ended, no restart",
            State.STOPPING: "asked to stop",
        },
        State.DEGRADED: {
            State.READY: "well again",
            State.RESTARTING: "process ended or killed, or reload",
            State.FAILED: "process ended, no restart",
            State.STOPPING: "asked to stop",
        },
        State.RESTARTING: {
            State.READY: "handshake ok again",
            State.FAILED: "too many restarts",
            State.STOPPING: "asked to stop",
        },
        State.STOPPING: {State.STOPPED: "process gone"},
        State.FAILED: {
            State.SPAWNING: "started by hand",
            State.STOPPING: "asked to stop",
            State.DISABLED: "disabled",
        },
    }
)
"""Every move that exists, and what makes it."""


def check_move(extension: str, before: State, after: State) -> None:
    """Raises LocalProtocolError for a move that does not exist; its text names both states."""
    if after not in MOVES[before]:
        allowed = ", ".join(MOVES[before])
        raise LocalProtocolError(f"{extension} is {before} and cannot become {after}, only: {allowed}")


# -- what is asked of it, and what befalls it


class RequestMeans(Enum):
    """What is to be done when an extension is asked to start or to stop. Asking twice never does it twice."""

    BEGIN = "begin"
    JOIN = "wait for what is under way"
    NOTHING = "it is so already"
    AFTERWARDS = "wait for the end of what is under way, then begin"
    REFUSE = "it must not"


ON_START: Final[Mapping[State, RequestMeans]] = MappingProxyType(
    {
        State.STOPPED: RequestMeans.BEGIN,
        State.SPAWNING: RequestMeans.JOIN,
        State.READY: RequestMeans.NOTHING,
        State.DEGRADED: RequestMeans.NOTHING,
        State.RESTARTING: RequestMeans.JOIN,
        State.STOPPING: RequestMeans.AFTERWARDS,
        State.FAILED: RequestMeans.BEGIN,
        State.DISABLED: RequestMeans.REFUSE,
    }
)
ON_STOP: Final[Mapping[State, RequestMeans]] = MappingProxyType(
    {
        State.STOPPED: RequestMeans.NOTHING,
        State.SPAWNING: RequestMeans.BEGIN,
        State.READY: RequestMeans.BEGIN,
        State.DEGRADED: RequestMeans.BEGIN,
        State.RESTARTING: RequestMeans.BEGIN,
        State.STOPPING: RequestMeans.JOIN,
        State.FAILED: RequestMeans.BEGIN,
        State.DISABLED: RequestMeans.NOTHING,
    }
)


class ExitMeans(Enum):
    """What follows from the end of an extension's process."""

    FAIL = "it has failed: a first start is not repeated"
    DECIDE = "the restart policy decides"
    EXPECTED = "it was asked to end"
    NOTHING = "late news of a process that nobody waits for"


ON_EXIT: Final[Mapping[State, ExitMeans]] = MappingProxyType(
    {
        State.STOPPED: ExitMeans.NOTHING,
        State.SPAWNING: ExitMeans.FAIL,
        State.READY: ExitMeans.DECIDE,
        State.DEGRADED: ExitMeans.DECIDE,
        State.RESTARTING: ExitMeans.DECIDE,
        State.STOPPING: ExitMeans.EXPECTED,
        State.FAILED: ExitMeans.NOTHING,
        State.DISABLED: ExitMeans.NOTHING,
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


HEALTH: Final[Mapping[State, Health]] = MappingProxyType(
    {
        State.STOPPED: Health.LOADED,
        State.SPAWNING: Health.LOADED,
        State.READY: Health.RUNNING,
        State.DEGRADED: Health.DEGRADED,
        State.RESTARTING: Health.RESTARTING,
        State.STOPPING: Health.LOADED,
        State.FAILED: Health.FAILED,
        State.DISABLED: Health.DISABLED,
    }
)
FAILED_FROM: Final = MappingProxyType(
    {State.STOPPED: Health.FAILED_VALIDATION, State.SPAWNING: Health.FAILED_INITIALIZE}
)


class Lifecycle(Struct, frozen=True):
    """Where one extension stands, since when, and where it came from."""

    extension: str
    state: State = State.STOPPED
    since: float = 0.0
    before: State | None = None

    def move(self, to: State, now: float) -> Lifecycle:
        """Returns where it stands after a move.

        Raises:
            LocalProtocolError: there is no such move.
        """
        check_move(self.extension, self.state, to)
        return replace(self, state=to, since=now, before=self.state)

    def health(self, restarts: int = 0) -> Health:
        """Returns how it does. One that was restarted and has not stayed up since is `degraded`, though it runs."""
        if self.state is State.FAILED and self.before is not None:
            return FAILED_FROM.get(self.before, Health.FAILED)
        if self.state is State.READY and restarts > 0:
            return Health.DEGRADED
        return HEALTH[self.state]


# -- replacing a copy that runs


class Drain(Struct, frozen=True):
    """How long a running copy is given for the calls that it has, before it ends and another takes its place.

    New calls wait for the other one. Those that are not answered in time fail, and their error says `reload`."""

    began: float
    patience: float = 10.0  # most calls take less; a longer one is not worth an old copy that lives on

    def is_over(self, in_flight: int, now: float) -> bool:
        """Returns whether the old copy may end now."""
        return in_flight == 0 or self.remaining(now) == 0.0

    def remaining(self, now: float) -> float:
        """Returns the seconds that are left for the calls in flight."""
        return max(0.0, self.began + self.patience - now)


# -- for the documentation


def build_diagram() -> str:
    """Returns the moves as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.STOPPED}"]
    lines += [f"    {before} --> {after}: {why}" for before, moves in MOVES.items() for after, why in moves.items()]
    return "\n".join([*lines, f"    {State.STOPPED} --> [*]", ""])
