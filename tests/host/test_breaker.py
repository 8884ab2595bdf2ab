"""A circuit breaker: opens after consecutive failures, retries later, and ignores old responses."""

from __future__ import annotations

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from becket.errors import (
    BadReply,
    Busy,
    CallCancelled,
    CallTimeout,
    CircuitOpen,
    ConnectionLost,
    DisconnectReason,
    Meaning,
    PeerCrashed,
    RemoteError,
    StreamOverrun,
)
from becket.host.breaker import Breaker, BreakerPolicy, BreakerState, CallOutcome, Ticket, classify_error

FAILURE, SUCCESS = CallOutcome.FAILURE, CallOutcome.SUCCESS
APPLICATION_ERROR, UNKNOWN = CallOutcome.APPLICATION_ERROR, CallOutcome.UNKNOWN
CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


def settle(breaker: Breaker, now: float, *outcomes: CallOutcome) -> None:
    for outcome in outcomes:
        breaker.record(breaker.admit(now), outcome, now)


def opened(policy: BreakerPolicy | None = None, *, at: float = 0.0) -> Breaker:
    breaker = Breaker("notes", policy)
    settle(breaker, at, *[FAILURE] * (policy or BreakerPolicy()).failures)
    return breaker


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        pytest.param([], CLOSED, id="nothing-yet"),
        pytest.param([FAILURE] * 4, CLOSED, id="not-enough"),
        pytest.param([FAILURE] * 5, OPEN, id="enough"),
        pytest.param([FAILURE] * 4 + [SUCCESS] + [FAILURE] * 4, CLOSED, id="not-in-a-row"),
        pytest.param([FAILURE] * 4 + [APPLICATION_ERROR] + [FAILURE] * 4, CLOSED, id="an-error-is-an-answer"),
        pytest.param([FAILURE] * 4 + [UNKNOWN] + [FAILURE], OPEN, id="a-cancelled-call-says-nothing"),
        pytest.param([APPLICATION_ERROR] * 50, CLOSED, id="application-errors-do-not-trip-it"),
        pytest.param([UNKNOWN] * 50, CLOSED, id="nor-do-cancelled-calls"),
    ],
)
def test_the_circuit_opens_after_failures_in_a_row(outcomes: list[CallOutcome], state: BreakerState) -> None:
    breaker = Breaker("notes")

    settle(breaker, 1.0, *outcomes)

    assert breaker.state(1.0) is state


def test_application_errors_open_the_circuit_if_configured() -> None:
    breaker = Breaker("notes", BreakerPolicy(trips_on_application_errors=True))

    settle(breaker, 1.0, *[APPLICATION_ERROR] * 5)

    assert breaker.state(1.0) is OPEN


def test_an_open_circuit_refuses_every_call_with_the_time_of_the_next_trial() -> None:
    breaker = opened(at=100.0)

    with pytest.raises(CircuitOpen) as caught:
        breaker.admit(104.0)

    assert (caught.value.id, caught.value.until, caught.value.seconds) == ("notes", 110.0, 6.0)


@pytest.mark.parametrize(("now", "state"), [(9.99, OPEN), (10.0, HALF_OPEN), (1e6, HALF_OPEN)])
def test_the_circuit_is_half_open_when_its_time_is_over(now: float, state: BreakerState) -> None:
    assert opened().state(now) is state


def test_a_half_open_circuit_allows_one_call_at_a_time() -> None:
    breaker = opened()
    first = breaker.admit(10.0)

    with pytest.raises(CircuitOpen) as caught:
        breaker.admit(10.5)
    assert caught.value.seconds == 0.0

    breaker.record(first, SUCCESS, 11.0)
    breaker.admit(11.0)
    with pytest.raises(CircuitOpen):
        breaker.admit(11.0)


def test_successes_close_the_circuit() -> None:
    breaker = opened()

    settle(breaker, 10.0, SUCCESS)
    assert breaker.state(10.0) is HALF_OPEN
    settle(breaker, 10.0, APPLICATION_ERROR)

    assert breaker.state(10.0) is CLOSED
    settle(breaker, 10.0, *[FAILURE] * 4)
    assert breaker.state(10.0) is CLOSED


def test_each_failed_trial_doubles_the_time_up_to_the_longest_and_closing_forgets_it() -> None:
    breaker = opened()
    now, waited = 0.0, []
    for _ in range(6):
        try:
            breaker.admit(now)
        except CircuitOpen as error:
            waited.append(error.seconds)
            now = error.until
        settle(breaker, now, FAILURE)
    assert waited == [10, 20, 40, 80, 120, 120]

    settle(breaker, now + 120, SUCCESS, SUCCESS)
    settle(breaker, 1000.0, *[FAILURE] * 5)
    with pytest.raises(CircuitOpen) as caught:
        breaker.admit(1000.0)
    assert caught.value.seconds == 10.0


def test_an_abandoned_trial_makes_room_for_the_next() -> None:
    breaker = opened()

    settle(breaker, 10.0, UNKNOWN)

    assert breaker.state(10.0) is HALF_OPEN
    breaker.admit(10.0)


def test_calls_from_before_the_circuit_opened_are_ignored() -> None:
    breaker = Breaker("notes")
    old = [breaker.admit(0.0) for _ in range(20)]
    for ticket in old[:5]:
        breaker.record(ticket, FAILURE, 1.0)

    for ticket in old[5:]:
        breaker.record(ticket, FAILURE, 5.0)
        breaker.record(ticket, SUCCESS, 11.5)

    assert breaker.state(10.9) is OPEN
    assert breaker.state(11.0) is HALF_OPEN


def test_a_new_process_starts_with_a_closed_circuit() -> None:
    breaker = opened()
    trial = breaker.admit(10.0)

    breaker.reset()

    breaker.record(trial, FAILURE, 10.0)
    settle(breaker, 10.0, *[FAILURE] * 4)
    assert breaker.state(10.0) is CLOSED


def test_calls_from_before_the_circuit_opened_do_not_count_for_a_new_process() -> None:
    breaker = Breaker("notes")
    old = [breaker.admit(0.0) for _ in range(10)]
    for ticket in old[:5]:
        breaker.record(ticket, FAILURE, 0.0)
    breaker.reset()

    for ticket in old[5:]:
        breaker.record(ticket, FAILURE, 1.0)

    assert breaker.state(1.0) is CLOSED


def test_a_trial_from_before_the_circuit_opened_again_is_ignored() -> None:
    breaker = opened(BreakerPolicy(trials=2, successes=1))
    first, second = breaker.admit(10.0), breaker.admit(10.0)
    breaker.record(first, FAILURE, 10.0)

    breaker.record(second, SUCCESS, 30.0)

    assert breaker.state(30.0) is HALF_OPEN


def test_the_breaker_of_nexo_can_be_configured() -> None:
    """Five failures, error responses included; all calls are allowed when the time is over; two successes close."""
    breaker = opened(BreakerPolicy(trials=1_000_000, trips_on_application_errors=True))
    tickets = [breaker.admit(10.0) for _ in range(100)]

    breaker.record(tickets[0], SUCCESS, 10.0)
    breaker.record(tickets[1], SUCCESS, 10.0)

    assert breaker.state(10.0) is CLOSED


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, SUCCESS),
        (RemoteError(method="a", code=1, message="no"), APPLICATION_ERROR),
        (RemoteError(method="a", code=1002, message="busy", meaning=Meaning.BUSY), APPLICATION_ERROR),
        (CallTimeout("a", 1.0), FAILURE),
        (ConnectionLost(DisconnectReason.REMOTE_CLOSE), FAILURE),
        (PeerCrashed(exit_code=1), FAILURE),
        (BadReply(method="a", problem="nonsense"), FAILURE),
        (CallCancelled("a"), UNKNOWN),
        (Busy("calls", 1), UNKNOWN),
        (StreamOverrun("a", 1), UNKNOWN),
        (KeyboardInterrupt(), UNKNOWN),
        (ValueError(), UNKNOWN),
    ],
)
def test_errors_are_classified_as_call_outcomes(error: BaseException | None, outcome: CallOutcome) -> None:
    assert classify_error(error) is outcome


class Circuit(RuleBasedStateMachine):
    """Any order of calls, outcomes and time, beside a model that remembers everything."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = BreakerPolicy(failures=3, open_for=2.0, longest_open=8.0, successes=2, trials=2)
        self.breaker = Breaker("notes", self.policy)
        self.now = 0.0
        self.calls: list[Ticket] = []
        self.trials: list[Ticket] = []  # trial calls, which decide whether an open circuit may close

    @rule(seconds=st.floats(0, 5.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def call(self) -> None:
        before = self.breaker.state(self.now)
        if before is OPEN or (before is HALF_OPEN and len(self.trials) == self.policy.trials):
            with pytest.raises(CircuitOpen) as caught:
                self.breaker.admit(self.now)
            assert caught.value.until - self.now <= self.policy.longest_open
            assert (caught.value.seconds == 0.0) is (before is HALF_OPEN)
            return
        self.calls.append(self.breaker.admit(self.now))
        if before is HALF_OPEN:
            self.trials.append(self.calls[-1])

    @precondition(lambda self: self.calls)
    @rule(outcome=st.sampled_from(CallOutcome), which=st.integers(0))
    def answer(self, outcome: CallOutcome, which: int) -> None:
        before = self.breaker.state(self.now)
        ticket = self.calls.pop(which % len(self.calls))
        if ticket in self.trials:
            self.trials.remove(ticket)
        self.breaker.record(ticket, outcome, self.now)
        after = self.breaker.state(self.now)
        if after is not before:
            self.trials.clear()
        if before is not after and after is OPEN:
            assert outcome is FAILURE
        if before is not after and after is CLOSED:
            assert before is HALF_OPEN
            assert outcome in (SUCCESS, APPLICATION_ERROR)
        if before is OPEN:
            assert after is OPEN

    @rule()
    def start_anew(self) -> None:
        self.breaker.reset()
        self.trials.clear()
        assert self.breaker.state(self.now) is CLOSED

    @invariant()
    def it_allows_a_trial_eventually(self) -> None:
        if self.breaker.state(self.now) is OPEN:
            assert self.breaker.state(self.now + self.policy.longest_open) is HALF_OPEN


Circuit.TestCase.settings = settings(max_examples=80, stateful_step_count=50)
TestCircuit = Circuit.TestCase
