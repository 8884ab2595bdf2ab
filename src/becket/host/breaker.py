"""Circuit breaker of one extension: decides which calls go through after repeated failures.

Pure: time is an argument. Also classifies errors: a response, even an error, is a sign of life.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from becket.errors import BadReply, CallTimeout, CircuitOpen, ConnectionLost, RemoteError

__all__ = ["Breaker", "BreakerPolicy", "BreakerState", "CallOutcome", "Ticket", "classify_error"]


class BreakerState(Enum):
    """Whether calls go through."""

    CLOSED = "closed"  # all do
    OPEN = "open"  # none does
    HALF_OPEN = "half-open"  # a few trials do


class CallOutcome(Enum):
    """What the end of a call means for the circuit."""

    SUCCESS = "a result"
    APPLICATION_ERROR = "an error response"
    FAILURE = "no response, or an invalid one"
    UNKNOWN = "cancelled, or not sent"


def classify_error(error: BaseException | None) -> CallOutcome:
    """Returns the outcome of a call that ended with this error."""
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
    """After `failures` in a row the circuit is open for `open_for` seconds; then `trials` calls at a time go through.

    `successes` of them close it; one failure opens it again, for twice as long, up to `longest_open`. With
    `trips_on_application_errors` an error response counts as a failure."""

    failures: int = 5
    open_for: float = 10.0
    longest_open: float = 120.0
    successes: int = 2
    trials: int = 1
    trips_on_application_errors: bool = False


class Ticket(Struct, frozen=True):
    """Admits one call. Pass it to `record` when the call has ended."""

    period: int


class Breaker:
    """The circuit of one extension. For each call: `admit`, then `record` with its outcome, whatever that is."""

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
        """Closes the circuit, as for a process that has just started. Earlier calls count no more."""
        self._period += 1
        self._is_open = False
        self._failures = 0

    def state(self, now: float) -> BreakerState:
        """Returns whether calls go through now."""
        if not self._is_open:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now < self._until else BreakerState.HALF_OPEN

    def admit(self, now: float) -> Ticket:
        """Admits a call.

        Raises:
            CircuitOpen: it must not be made, and for how long: 0 seconds while trial calls are pending.
        """
        if self._is_open:
            if now < self._until or self._trials >= self._policy.trials:
                raise CircuitOpen(self.extension, self._until, seconds=max(0.0, self._until - now))
            self._trials += 1
        return Ticket(self._period)

    def record(self, ticket: Ticket, outcome: CallOutcome, now: float) -> bool:
        """Counts the outcome of a call, and returns whether that has opened or closed the circuit.

        A call that was admitted before the last change of the circuit does not count."""
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
