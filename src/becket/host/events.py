"""Typed events of a host and the `EventBus` that delivers them to subscribers.

Events are past tense and frozen. A subscriber is a plain function that is called where the event is published; its
errors are logged and stop neither the host nor other subscribers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from inspect import iscoroutinefunction
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, overload

import msgspec
from msgspec import Struct

from becket._deprecated import keep_renamed
from becket._loggers import host_logger
from becket.contract.names import snake_case
from becket.errors import LocalProtocolError
from becket.host.diagnostics import Diagnostic
from becket.host.lifecycle import ExtensionState

__all__ = [
    "EventBus",
    "ExtensionChanged",
    "ExtensionDegraded",
    "ExtensionDisabled",
    "ExtensionDiscovered",
    "ExtensionEnabled",
    "ExtensionEvent",
    "ExtensionExited",
    "ExtensionFailed",
    "ExtensionLogged",
    "ExtensionRecovered",
    "ExtensionReloaded",
    "ExtensionRestarted",
    "ExtensionRestarting",
    "ExtensionStartRefused",
    "ExtensionStarted",
    "ExtensionStarting",
    "ExtensionStateChanged",
    "ExtensionStopped",
    "ExtensionToolsChanged",
    "HostEvent",
    "HostStalled",
    "PermissionGranted",
    "PermissionRevoked",
    "ProblemFound",
]

MAX_QUEUED_EVENTS: Final = 10_000  # events that subscribers may publish because of one: more are a loop


class HostEvent(Struct, frozen=True):
    """Something that happened in a host."""

    def to_dict(self) -> dict[str, Any]:
        """Returns its class as a name such as `extension_started` under `event`, and its members, as JSON values."""
        return {"event": snake_case(type(self).__name__), **msgspec.to_builtins(self)}


class HostStalled(HostEvent, frozen=True):
    """The host itself was busy for so long that it could not read from its extensions."""

    seconds: float


class ProblemFound(HostEvent, frozen=True):
    """A problem was found that an operator can fix."""

    diagnostic: Diagnostic

    def to_dict(self) -> dict[str, Any]:
        """Returns the problem under `diagnostic`, with all of its members."""
        return {"event": snake_case(type(self).__name__), "diagnostic": self.diagnostic.to_dict()}


class ExtensionEvent(HostEvent, frozen=True):
    """Something that happened to one extension."""

    extension: str


class ExtensionDiscovered(ExtensionEvent, frozen=True):
    """A folder holds an extension."""

    path: str
    version: str | None = None
    dialect: str = "native"


class ExtensionStartRefused(ExtensionEvent, frozen=True):
    """It is not started, and registers nothing."""

    because: str
    hint: str = ""


class ExtensionStateChanged(ExtensionEvent, frozen=True):
    """It went from one state to another; most changes have an event of their own besides."""

    before: ExtensionState
    after: ExtensionState


class ExtensionStarting(ExtensionEvent, frozen=True):
    """Its process is being started."""

    command: tuple[str, ...]


class ExtensionStarted(ExtensionEvent, frozen=True):
    """It is ready, so many seconds after its process was started."""

    pid: int | None
    seconds: float
    version: str | None = None


class ExtensionFailed(ExtensionEvent, frozen=True):
    """It does not run, and is not restarted automatically."""

    because: str
    hint: str = ""
    stderr_tail: str = ""


class ExtensionExited(ExtensionEvent, frozen=True):
    """Its process has ended; `expected` if the host requested it."""

    exit_code: int | None
    signal: str | None = None
    stderr_tail: str = ""
    expected: bool = False


class ExtensionRestarting(ExtensionEvent, frozen=True):
    """It is restarted after `delay` seconds; `attempt` counts since it was last healthy."""

    attempt: int
    delay: float
    because: str


class ExtensionRestarted(ExtensionEvent, frozen=True):
    """It is ready again, so many seconds after its last process had ended; `restarts` counts all restarts."""

    pid: int | None
    restarts: int
    seconds: float


class ExtensionDegraded(ExtensionEvent, frozen=True):
    """It runs, but has a problem."""

    because: str


class ExtensionRecovered(ExtensionEvent, frozen=True):
    """Its problem is over."""


class ExtensionStopped(ExtensionEvent, frozen=True):
    """It was stopped, and its process is gone; `abandoned` if the kernel still holds it."""

    abandoned: bool = False


class ExtensionDisabled(ExtensionEvent, frozen=True):
    """It must not start any more."""

    because: str = ""


class ExtensionEnabled(ExtensionEvent, frozen=True):
    """It may start again."""


class ExtensionChanged(ExtensionEvent, frozen=True):
    """Its files have changed."""

    paths: tuple[str, ...]


class ExtensionReloaded(ExtensionEvent, frozen=True):
    """A new process with the changed files has replaced the old one; `cut_off` calls got no response."""

    seconds: float
    cut_off: int = 0


class ExtensionToolsChanged(ExtensionEvent, frozen=True):
    """Its tools have changed while it runs; `tools` is their number."""

    tools: int


class ExtensionLogged(ExtensionEvent, frozen=True):
    """It has logged a line, escaped for a terminal; of a flood, some. Published only if there is a subscriber."""

    level: str
    message: str


class PermissionGranted(ExtensionEvent, frozen=True):
    """It holds a permission from now on."""

    permission: str
    by: str


class PermissionRevoked(ExtensionEvent, frozen=True):
    """It does not hold a permission any more."""

    permission: str
    by: str


# -- delivery


E = TypeVar("E", bound=HostEvent)
Subscriber = Callable[[Any], object]


class EventBus:
    """Delivers events to subscribers. Used from one thread, that of the host's loop.

    All subscribers get all events in the same order. An event that a subscriber publishes is delivered after the
    current one."""

    def __init__(self) -> None:
        self._subscribers: dict[object, tuple[tuple[type[HostEvent], ...], Subscriber]] = {}
        self._wanted: dict[type[HostEvent], bool] = {}  # results of `has_subscribers`
        self._waiting: deque[HostEvent] = deque()
        self._followed = 0
        self._is_publishing = False

    @overload
    def subscribe(self, kind: type[E], subscriber: Callable[[E], object]) -> Callable[[], None]: ...

    @overload
    def subscribe(self, kind: UnionType, subscriber: Callable[[Any], object]) -> Callable[[], None]: ...

    def subscribe(self, kind: type[HostEvent] | UnionType, subscriber: Subscriber) -> Callable[[], None]:
        """Calls a function with each event of a class, its subclasses, or any class in a union; returns a function that
        unsubscribes.

        Raises:
            TypeError: there are no such events, or the function is `async def`.
        """
        if iscoroutinefunction(subscriber):
            raise TypeError(f"{subscriber!r} is `async def`: a subscriber must be a plain function")
        kinds: tuple[Any, ...] = get_args(kind) if isinstance(kind, UnionType) else (kind,)
        for one in kinds:
            if not (isinstance(one, type) and issubclass(one, HostEvent)):
                raise TypeError(f"{one!r} is not a class of host events")
        key = object()
        self._subscribers[key] = (kinds, subscriber)
        self._wanted.clear()
        return lambda: self._unsubscribe(key)

    def has_subscribers(self, kind: type[HostEvent]) -> bool:
        """Returns whether events of a class have a subscriber."""
        is_wanted = self._wanted.get(kind)
        if is_wanted is None:
            is_wanted = any(issubclass(kind, kinds) for kinds, _ in self._subscribers.values())
            self._wanted[kind] = is_wanted
        return is_wanted

    def _unsubscribe(self, key: object) -> None:
        self._subscribers.pop(key, None)
        self._wanted.clear()

    def publish(self, event: HostEvent) -> None:
        """Calls all subscribers before it returns; within a subscriber, after the current event.

        Raises:
            LocalProtocolError: within a subscriber, when events cause events without end.
        """
        if self._is_publishing:
            self._followed += 1
            if self._followed > MAX_QUEUED_EVENTS:
                raise LocalProtocolError(f"one event has caused {MAX_QUEUED_EVENTS} others: is there a loop?")
            self._waiting.append(event)
            return
        self._is_publishing = True
        self._followed = 0
        try:
            self._dispatch(event)
            while self._waiting:
                self._dispatch(self._waiting.popleft())
        finally:
            self._is_publishing = False
            self._waiting.clear()

    def _dispatch(self, event: HostEvent) -> None:
        for key, (kinds, subscriber) in [*self._subscribers.items()]:
            if not isinstance(event, kinds) or key not in self._subscribers:  # an earlier one may have unsubscribed it
                continue
            try:
                subscriber(event)
            except Exception as error:
                log_failure(event, error)


def log_failure(event: HostEvent, error: Exception) -> None:
    host_logger().error("a subscriber of %s failed", type(event).__name__, exc_info=error)


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(
        __name__,
        {
            "Events": "EventBus",
            "ExtensionMoved": "ExtensionStateChanged",
            "ExtensionRedeclared": "ExtensionToolsChanged",
            "ExtensionRefused": "ExtensionStartRefused",
            "GrantGiven": "PermissionGranted",
            "GrantTaken": "PermissionRevoked",
        },
    )
