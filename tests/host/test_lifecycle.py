"""The life of an extension: only moves of the table exist, and what is asked twice is done once."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from becket.errors import LocalProtocolError
from becket.host.lifecycle import (
    MOVES,
    ON_EXIT,
    ON_START,
    ON_STOP,
    Drain,
    ExitMeans,
    Health,
    Lifecycle,
    RequestMeans,
    State,
    build_diagram,
    check_move,
)

PAIRS = list(product(State, State))


@pytest.mark.parametrize(("before", "after"), [pair for pair in PAIRS if pair[1] in MOVES[pair[0]]])
def test_a_move_of_the_table_is_made(before: State, after: State) -> None:
    moved = Lifecycle("notes", before, 1.0).move(after, 2.5)

    assert moved == Lifecycle("notes", after, 2.5, before)


@pytest.mark.parametrize(("before", "after"), [pair for pair in PAIRS if pair[1] not in MOVES[pair[0]]])
def test_any_other_move_is_refused_and_both_states_are_named(before: State, after: State) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        Lifecycle("notes", before).move(after, 1.0)

    text = str(caught.value)
    assert f"notes is {before} and cannot become {after}" in text
    assert text.partition("only: ")[2].split(", ") == [str(state) for state in MOVES[before]]


def test_the_tables_know_every_state() -> None:
    assert set(MOVES) == set(ON_START) == set(ON_STOP) == set(ON_EXIT) == set(State)


def test_every_state_can_be_reached_and_left() -> None:
    reached = {State.STOPPED}
    for _ in State:
        reached |= {after for before in reached for after in MOVES[before]}

    assert reached == set(State)
    assert all(MOVES[state] for state in State)


# What the supervision of nexo-rs draws.
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (State.SPAWNING, State.READY),
        (State.READY, State.RESTARTING),
        (State.RESTARTING, State.READY),
        (State.RESTARTING, State.FAILED),
        (State.READY, State.STOPPING),
        (State.FAILED, State.STOPPING),
    ],
)
def test_the_usual_diagram_of_a_supervisor_is_part_of_the_table(before: State, after: State) -> None:
    check_move("notes", before, after)


def test_nothing_leaves_a_disabled_extension_but_enabling_it() -> None:
    assert set(MOVES[State.DISABLED]) == {State.STOPPED}
    assert ON_START[State.DISABLED] is RequestMeans.REFUSE


# -- requests and exits


def first_move(state: State, means: RequestMeans, target: State) -> None:
    if means is RequestMeans.BEGIN:
        check_move("notes", state, target)


@pytest.mark.parametrize("state", State)
def test_what_a_request_begins_the_table_allows(state: State) -> None:
    first_move(state, ON_START[state], State.SPAWNING)
    first_move(state, ON_STOP[state], State.STOPPING)


@pytest.mark.parametrize(
    ("state", "means"),
    [
        (State.SPAWNING, RequestMeans.JOIN),
        (State.RESTARTING, RequestMeans.JOIN),
        (State.READY, RequestMeans.NOTHING),
        (State.DEGRADED, RequestMeans.NOTHING),
        (State.STOPPING, RequestMeans.AFTERWARDS),
    ],
)
def test_a_start_never_begins_a_second_process(state: State, means: RequestMeans) -> None:
    assert ON_START[state] is means


@pytest.mark.parametrize(
    ("state", "means"),
    [
        (State.SPAWNING, ExitMeans.FAIL),
        (State.READY, ExitMeans.DECIDE),
        (State.DEGRADED, ExitMeans.DECIDE),
        (State.RESTARTING, ExitMeans.DECIDE),
        (State.STOPPING, ExitMeans.EXPECTED),
        (State.STOPPED, ExitMeans.NOTHING),
        (State.FAILED, ExitMeans.NOTHING),
        (State.DISABLED, ExitMeans.NOTHING),
    ],
)
def test_a_crash_means_what_the_moment_makes_of_it(state: State, means: ExitMeans) -> None:
    assert ON_EXIT[state] is means


class Supervised(RuleBasedStateMachine):
    """A supervisor that knows nothing but the tables, and is asked and struck in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.life = Lifecycle("notes")
        self.processes = 0
        self.wants_start = False
        self.clock = 0.0

    def go(self, to: State) -> None:
        self.clock += 1.0
        self.life = self.life.move(to, self.clock)

    @rule()
    def start(self) -> None:
        match ON_START[self.life.state]:
            case RequestMeans.BEGIN:
                self.go(State.SPAWNING)
                self.processes += 1
            case RequestMeans.AFTERWARDS:
                self.wants_start = True
            case RequestMeans.JOIN | RequestMeans.NOTHING | RequestMeans.REFUSE:
                pass

    @rule()
    def stop(self) -> None:
        self.wants_start = False
        if ON_STOP[self.life.state] is RequestMeans.BEGIN:
            self.go(State.STOPPING)

    @precondition(lambda self: self.processes and self.life.state in (State.SPAWNING, State.RESTARTING))
    @rule()
    def shake_hands(self) -> None:
        self.go(State.READY)

    @precondition(lambda self: self.life.state is State.RESTARTING and not self.processes)
    @rule()
    def wait_for_the_delay(self) -> None:
        self.processes += 1

    @precondition(lambda self: self.processes)
    @rule(may_restart=st.booleans())
    def crash(self, may_restart: bool) -> None:
        self.processes -= 1
        match ON_EXIT[self.life.state]:
            case ExitMeans.FAIL:
                self.go(State.FAILED)
            case ExitMeans.DECIDE if not may_restart:
                self.go(State.FAILED)
            case ExitMeans.DECIDE if self.life.state is not State.RESTARTING:
                self.go(State.RESTARTING)
            case _:
                pass

    @precondition(lambda self: self.life.state in (State.READY, State.DEGRADED))
    @rule()
    def become_slow_or_well(self) -> None:
        self.go(State.DEGRADED if self.life.state is State.READY else State.READY)

    @precondition(lambda self: self.life.state is State.STOPPING)
    @rule()
    def end_the_process(self) -> None:
        self.processes = 0
        self.go(State.STOPPED)
        if self.wants_start:
            self.wants_start = False
            self.start()

    @precondition(lambda self: self.life.state in (State.STOPPED, State.FAILED, State.DISABLED))
    @rule()
    def disable_or_enable(self) -> None:
        self.go(State.STOPPED if self.life.state is State.DISABLED else State.DISABLED)

    @invariant()
    def there_is_never_a_second_copy(self) -> None:
        assert self.processes in (0, 1)

    @invariant()
    def who_should_not_run_does_not(self) -> None:
        if self.life.state in (State.STOPPED, State.FAILED, State.DISABLED):
            assert self.processes == 0
        if self.life.state in (State.SPAWNING, State.READY, State.DEGRADED):
            assert self.processes == 1

    @invariant()
    def a_failure_has_a_name(self) -> None:
        if self.life.state is State.FAILED:
            assert self.life.health() in (Health.FAILED, Health.FAILED_INITIALIZE, Health.FAILED_VALIDATION)


Supervised.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestSupervised = Supervised.TestCase


# -- health


@pytest.mark.parametrize(
    ("life", "restarts", "health"),
    [
        (Lifecycle("a", State.STOPPED), 0, Health.LOADED),
        (Lifecycle("a", State.SPAWNING), 0, Health.LOADED),
        (Lifecycle("a", State.STOPPING), 2, Health.LOADED),
        (Lifecycle("a", State.READY), 0, Health.RUNNING),
        (Lifecycle("a", State.READY), 1, Health.DEGRADED),
        (Lifecycle("a", State.DEGRADED), 0, Health.DEGRADED),
        (Lifecycle("a", State.RESTARTING), 1, Health.RESTARTING),
        (Lifecycle("a", State.DISABLED), 0, Health.DISABLED),
        (Lifecycle("a", State.FAILED), 3, Health.FAILED),
        (Lifecycle("a", State.STOPPED).move(State.FAILED, 1.0), 0, Health.FAILED_VALIDATION),
        (Lifecycle("a", State.SPAWNING).move(State.FAILED, 1.0), 0, Health.FAILED_INITIALIZE),
        (Lifecycle("a", State.READY).move(State.FAILED, 1.0), 0, Health.FAILED),
        (Lifecycle("a", State.RESTARTING).move(State.FAILED, 1.0), 3, Health.FAILED),
    ],
)
def test_health_is_told_in_the_words_of_the_contract(life: Lifecycle, restarts: int, health: Health) -> None:
    assert life.health(restarts) is health


def test_what_failed_once_and_is_ready_now_runs() -> None:
    failed = Lifecycle("a", State.SPAWNING).move(State.FAILED, 1.0)

    assert failed.move(State.SPAWNING, 2.0).move(State.READY, 3.0).health() is Health.RUNNING
    assert failed.move(State.SPAWNING, 2.0).health() is Health.LOADED


def test_the_words_are_those_of_the_contract() -> None:
    contract = {"loaded", "failed_validation", "failed_initialize", "running", "restarting", "degraded", "failed"}
    assert set(Health) == contract | {"disabled"}


# -- reload


@pytest.mark.parametrize(
    ("in_flight", "now", "is_over", "remaining"),
    [
        pytest.param(0, 100.0, True, 5.0, id="nothing-runs"),
        pytest.param(2, 100.0, False, 5.0, id="calls-run"),
        pytest.param(2, 104.5, False, 0.5, id="calls-still-run"),
        pytest.param(1, 105.0, True, 0.0, id="patience-is-over"),
        pytest.param(1, 900.0, True, 0.0, id="long-since"),
        pytest.param(0, 102.0, True, 3.0, id="all-answered"),
    ],
)
def test_an_old_copy_ends_when_its_calls_have_ended_or_took_too_long(
    in_flight: int, now: float, is_over: bool, remaining: float
) -> None:
    drain = Drain(100.0, patience=5.0)

    assert drain.is_over(in_flight, now) is is_over
    assert drain.remaining(now) == remaining


@given(st.floats(0, 1e6), st.floats(0, 1e3), st.floats(0, 1e6))
def test_a_drain_is_over_after_its_remaining_time(began: float, patience: float, waited: float) -> None:
    drain = Drain(began, patience)
    now = began + waited

    assert drain.is_over(1, max(now, began + patience))
    assert drain.is_over(1, now) is (drain.remaining(now) == 0.0)


# -- the diagram


def test_the_diagram_has_a_line_for_each_move() -> None:
    lines = build_diagram().splitlines()

    assert lines[0] == "stateDiagram-v2"
    assert len(lines) == 3 + sum(len(moves) for moves in MOVES.values())
    assert "    restarting --> ready: handshake ok again" in lines
