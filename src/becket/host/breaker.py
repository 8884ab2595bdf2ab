"""Circuit breaker of one extension: decides which calls go through after repeated failures. Pure.

Pure: time comes in with each question. Making the calls is whoever asks. Whether an error tells of a sick extension is
decided here too: an answer, though it be an error, is a sign of life.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from becket.errors import BadReply, CallTimeout, CircuitOpen, ConnectionLost, RemoteError

__all__ = ["Breaker", "BreakerPolicy", "BreakerState", "CallOutcome", "Ticket", "classify_error"]


class BreakerState(Enum):
    """Whether calls go through."""

    CLOSED = "closed"  # they do
    OPEN = "open"  # none does
    HALF_OPEN = "half-open"  # a few do, to see whether it is well again


class CallOutcome(Enum):
    """What a call tells about the extension."""

    SUCCESS = "it answered"
    APPLICATION_ERROR = "it answered with an error"
    FAILURE = "it did not answer, or with nonsense"
    UNKNOWN = "the call says nothing: it was given up, or never left"


def classify_error(error: BaseException | None) -> CallOutcome:
    """Returns what a call that ended so tells about the extension."""
    match error:
        case None:
            return CallOutcome.SUCCESS
        case RemoteError():
            return CallOutcome.APPLICATION_ERROR
        case CallTimeout() | ConnectionLost() | BadReply():
            return CallOutcome.FAILURE
        case _:
            return CallOutcome.UNKNOWN


class BreakerPolicy(Struct, frozen=True, kw_only=True):
    """After `failures` in a row the circuit is open for `open_for` seconds; then calls are tried, `trials` at a time.

    `successes` of them close it; one failure opens it again, for twice as long, up to `longest_open`. With
    `trips_on_application_errors` an error that the extension answers counts as a failure."""

    failures: int = 5
    open_for: float = 10.0
    longest_open: float = 120.0
    successes: int = 2
    trials: int = 1
    trips_on_application_errors: bool = False


class Ticket(Struct, frozen=True):
    """Lets one call through. Hand it back when the call has ended."""

    period: int


class Breaker:
    """The circuit of one extension. For each call: `admit`, then `record` with what came of it, whatever it was."""

    def __init__(self, extension: str, policy: BreakerPolicy | None = None) -> None:
        self.extension = extension
        self._policy = policy or BreakerPolicy()
        self._period = 0  # counts the changes of the circuit
        self._is_open = False
        self._until = 0.0
        self._open_for = 0.0
        self._failures = 0
        self._successes = 0
        self._trials = 0

    def reset(self) -> None:
        """Closes the circuit, as for a process that has just started. Calls of before count no more."""
        self._period += 1
        self._is_open = False
        self._failures = 0

    def state(self, now: float) -> BreakerState:
        """Returns whether calls go through now."""
        if not self._is_open:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now < self._until else BreakerState.HALF_OPEN

    def admit(self, now: float) -> Ticket:
        """Lets a call through.

        Raises:
            CircuitOpen: it must not be made, and how long that lasts: 0 seconds where other calls are just being tried.
        """
        if self._is_open:
            if now < self._until or self._trials >= self._policy.trials:
                raise CircuitOpen(self.extension, self._until, seconds=max(0.0, self._until - now))
            self._trials += 1
        return Ticket(self._period)

    def record(self, ticket: Ticket, outcome: CallOutcome, now: float) -> bool:
        """Counts what came of a call, and returns whether that has opened or closed the circuit.

        One that was let through before the circuit last changed tells nothing new."""
        if ticket.period != self._period:
            return False
        if self._is_open:
            self._trials -= 1
        if outcome is CallOutcome.APPLICATION_ERROR and self._policy.trips_on_application_errors:
            outcome = CallOutcome.FAILURE
        if outcome is CallOutcome.FAILURE:
            self._fail(now)
        elif outcome is not CallOutcome.UNKNOWN:
            self._succeed()
        return ticket.period != self._period

    def _fail(self, now: float) -> None:
        self._failures += 1
        if self._is_open:
            self._open(now, min(self._open_for * 2, self._policy.longest_open))
        elif self._failures >= self._policy.failures:
            self._open(now, self._policy.open_for)

    def _open(self, now: float, seconds: float) -> None:
        self._period += 1
        self._is_open = True
        self._until = now + seconds
        self._open_for = seconds
        self._successes = 0
        self._trials = 0

    def _succeed(self) -> None:
        self._failures = 0
        if self._is_open:
            self._successes += 1
            if self._successes >= self._policy.successes:
                self.reset()
