"""The lifecycle of an extension: only transitions of the table exist, and repeated requests run once."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from becket.errors import LocalProtocolError
from becket.host.lifecycle import (
    ON_EXIT,
    ON_START,
    ON_STOP,
    TRANSITIONS,
    Drain,
    ExitAction,
    ExtensionState,
    Health,
    Lifecycle,
    RequestAction,
    build_diagram,
    check_transition,
)

PAIRS = list(product(ExtensionState, ExtensionState))


@pytest.mark.parametrize(("before", "after"), [pair for pair in PAIRS if pair[1] in TRANSITIONS[pair[0]]])
def test_a_move_of_the_table_is_made(before: ExtensionState, after: ExtensionState) -> None:
    moved = Lifecycle("notes", before, 1.0).transition(after, 2.5)

    assert moved == Lifecycle("notes", after, 2.5, before)


@pytest.mark.parametrize(("before", "after"), [pair for pair in PAIRS if pair[1] not in TRANSITIONS[pair[0]]])
def test_any_other_move_is_refused_and_both_states_are_named(before: ExtensionState, after: ExtensionState) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        Lifecycle("notes", before).transition(after, 1.0)

    text = str(caught.value)
    assert f"notes is {before} and cannot become {after}" in text
    assert text.partition("only: ")[2].split(", ") == [str(state) for state in TRANSITIONS[before]]


def test_the_tables_have_every_state() -> None:
    assert set(TRANSITIONS) == set(ON_START) == set(ON_STOP) == set(ON_EXIT) == set(ExtensionState)


def test_every_state_can_be_reached_and_left() -> None:
    reached = {ExtensionState.STOPPED}
    for _ in ExtensionState:
        reached |= {after for before in reached for after in TRANSITIONS[before]}

    assert reached == set(ExtensionState)
    assert all(TRANSITIONS[state] for state in ExtensionState)


# What the supervision of nexo-rs draws.
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ExtensionState.SPAWNING, ExtensionState.READY),
        (ExtensionState.READY, ExtensionState.RESTARTING),
        (ExtensionState.RESTARTING, ExtensionState.READY),
        (ExtensionState.RESTARTING, ExtensionState.FAILED),
        (ExtensionState.READY, ExtensionState.STOPPING),
        (ExtensionState.FAILED, ExtensionState.STOPPING),
    ],
)
def test_the_usual_diagram_of_a_supervisor_is_part_of_the_table(before: ExtensionState, after: ExtensionState) -> None:
    check_transition("notes", before, after)


def test_nothing_leaves_a_disabled_extension_but_enabling_it() -> None:
    assert set(TRANSITIONS[ExtensionState.DISABLED]) == {ExtensionState.STOPPED}
    assert ON_START[ExtensionState.DISABLED] is RequestAction.REFUSE


# -- requests and exits


def first_move(state: ExtensionState, means: RequestAction, target: ExtensionState) -> None:
    if means is RequestAction.BEGIN:
        check_transition("notes", state, target)


@pytest.mark.parametrize("state", ExtensionState)
def test_the_table_allows_the_moves_that_a_request_begins(state: ExtensionState) -> None:
    first_move(state, ON_START[state], ExtensionState.SPAWNING)
    first_move(state, ON_STOP[state], ExtensionState.STOPPING)


@pytest.mark.parametrize(
    ("state", "means"),
    [
        (ExtensionState.SPAWNING, RequestAction.JOIN),
        (ExtensionState.RESTARTING, RequestAction.JOIN),
        (ExtensionState.READY, RequestAction.NOTHING),
        (ExtensionState.DEGRADED, RequestAction.NOTHING),
        (ExtensionState.STOPPING, RequestAction.BEGIN_AFTER),
    ],
)
def test_a_start_never_begins_a_second_process(state: ExtensionState, means: RequestAction) -> None:
    assert ON_START[state] is means


@pytest.mark.parametrize(
    ("state", "means"),
    [
        (ExtensionState.SPAWNING, ExitAction.FAIL),
        (ExtensionState.READY, ExitAction.DECIDE),
        (ExtensionState.DEGRADED, ExitAction.DECIDE),
        (ExtensionState.RESTARTING, ExitAction.DECIDE),
        (ExtensionState.STOPPING, ExitAction.EXPECTED),
        (ExtensionState.STOPPED, ExitAction.NOTHING),
        (ExtensionState.FAILED, ExitAction.NOTHING),
        (ExtensionState.DISABLED, ExitAction.NOTHING),
    ],
)
def test_the_state_determines_the_action_on_an_exit(state: ExtensionState, means: ExitAction) -> None:
    assert ON_EXIT[state] is means


class Supervised(RuleBasedStateMachine):
    """A supervisor made of the tables alone, with requests and crashes in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.life = Lifecycle("notes")
        self.processes = 0
        self.wants_start = False
        self.clock = 0.0

    def go(self, to: ExtensionState) -> None:
        self.clock += 1.0
        self.life = self.life.transition(to, self.clock)

    @rule()
    def start(self) -> None:
        match ON_START[self.life.state]:
            case RequestAction.BEGIN:
                self.go(ExtensionState.SPAWNING)
                self.processes += 1
            case RequestAction.BEGIN_AFTER:
                self.wants_start = True
            case RequestAction.JOIN | RequestAction.NOTHING | RequestAction.REFUSE:
                pass

    @rule()
    def stop(self) -> None:
        self.wants_start = False
        if ON_STOP[self.life.state] is RequestAction.BEGIN:
            self.go(ExtensionState.STOPPING)

    @precondition(
        lambda self: self.processes and self.life.state in (ExtensionState.SPAWNING, ExtensionState.RESTARTING)
    )
    @rule()
    def shake_hands(self) -> None:
        self.go(ExtensionState.READY)

    @precondition(lambda self: self.life.state is ExtensionState.RESTARTING and not self.processes)
    @rule()
    def wait_for_the_delay(self) -> None:
        self.processes += 1

    @precondition(lambda self: self.processes)
    @rule(may_restart=st.booleans())
    def crash(self, may_restart: bool) -> None:
        self.processes -= 1
        match ON_EXIT[self.life.state]:
            case ExitAction.FAIL:
                self.go(ExtensionState.FAILED)
            case ExitAction.DECIDE if not may_restart:
                self.go(ExtensionState.FAILED)
            case ExitAction.DECIDE if self.life.state is not ExtensionState.RESTARTING:
                self.go(ExtensionState.RESTARTING)
            case _:
                pass

    @precondition(lambda self: self.life.state in (ExtensionState.READY, ExtensionState.DEGRADED))
    @rule()
    def become_slow_or_well(self) -> None:
        self.go(ExtensionState.DEGRADED if self.life.state is ExtensionState.READY else ExtensionState.READY)

    @precondition(lambda self: self.life.state is ExtensionState.STOPPING)
    @rule()
    def end_the_process(self) -> None:
        self.processes = 0
        self.go(ExtensionState.STOPPED)
        if self.wants_start:
            self.wants_start = False
            self.start()

    @precondition(
        lambda self: self.life.state in (ExtensionState.STOPPED, ExtensionState.FAILED, ExtensionState.DISABLED)
    )
    @rule()
    def disable_or_enable(self) -> None:
        self.go(ExtensionState.STOPPED if self.life.state is ExtensionState.DISABLED else ExtensionState.DISABLED)

    @invariant()
    def there_is_never_a_second_copy(self) -> None:
        assert self.processes in (0, 1)

    @invariant()
    def a_stopped_extension_does_not_run(self) -> None:
        if self.life.state in (ExtensionState.STOPPED, ExtensionState.FAILED, ExtensionState.DISABLED):
            assert self.processes == 0
        if self.life.state in (ExtensionState.SPAWNING, ExtensionState.READY, ExtensionState.DEGRADED):
            assert self.processes == 1

    @invariant()
    def a_failure_has_a_name(self) -> None:
        if self.life.state is ExtensionState.FAILED:
            assert self.life.health() in (Health.FAILED, Health.FAILED_INITIALIZE, Health.FAILED_VALIDATION)


Supervised.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestSupervised = Supervised.TestCase


# -- health


@pytest.mark.parametrize(
    ("life", "restarts", "health"),
    [
        (Lifecycle("a", ExtensionState.STOPPED), 0, Health.LOADED),
        (Lifecycle("a", ExtensionState.SPAWNING), 0, Health.LOADED),
        (Lifecycle("a", ExtensionState.STOPPING), 2, Health.LOADED),
        (Lifecycle("a", ExtensionState.READY), 0, Health.RUNNING),
        (Lifecycle("a", ExtensionState.READY), 1, Health.DEGRADED),
        (Lifecycle("a", ExtensionState.DEGRADED), 0, Health.DEGRADED),
        (Lifecycle("a", ExtensionState.RESTARTING), 1, Health.RESTARTING),
        (Lifecycle("a", ExtensionState.DISABLED), 0, Health.DISABLED),
        (Lifecycle("a", ExtensionState.FAILED), 3, Health.FAILED),
        (Lifecycle("a", ExtensionState.STOPPED).transition(ExtensionState.FAILED, 1.0), 0, Health.FAILED_VALIDATION),
        (Lifecycle("a", ExtensionState.SPAWNING).transition(ExtensionState.FAILED, 1.0), 0, Health.FAILED_INITIALIZE),
        (Lifecycle("a", ExtensionState.READY).transition(ExtensionState.FAILED, 1.0), 0, Health.FAILED),
        (Lifecycle("a", ExtensionState.RESTARTING).transition(ExtensionState.FAILED, 1.0), 3, Health.FAILED),
    ],
)
def test_health_uses_the_names_of_the_contract(life: Lifecycle, restarts: int, health: Health) -> None:
    assert life.health(restarts) is health


def test_an_extension_that_failed_once_and_is_ready_now_is_running() -> None:
    failed = Lifecycle("a", ExtensionState.SPAWNING).transition(ExtensionState.FAILED, 1.0)

    assert (
        failed.transition(ExtensionState.SPAWNING, 2.0).transition(ExtensionState.READY, 3.0).health() is Health.RUNNING
    )
    assert failed.transition(ExtensionState.SPAWNING, 2.0).health() is Health.LOADED


def test_the_state_names_are_those_of_the_contract() -> None:
    contract = {"loaded", "failed_validation", "failed_initialize", "running", "restarting", "degraded", "failed"}
    assert set(Health) == contract | {"disabled"}


# -- reload


@pytest.mark.parametrize(
    ("in_flight", "now", "is_over", "remaining"),
    [
        pytest.param(0, 100.0, True, 5.0, id="nothing-runs"),
        pytest.param(2, 100.0, False, 5.0, id="calls-run"),
        pytest.param(2, 104.5, False, 0.5, id="calls-still-run"),
        pytest.param(1, 105.0, True, 0.0, id="timeout-is-over"),
        pytest.param(1, 900.0, True, 0.0, id="long-since"),
        pytest.param(0, 102.0, True, 3.0, id="all-answered"),
    ],
)
def test_an_old_copy_ends_when_its_calls_have_ended_or_took_too_long(
    in_flight: int, now: float, is_over: bool, remaining: float
) -> None:
    drain = Drain(100.0, timeout=5.0)

    assert drain.is_over(in_flight, now) is is_over
    assert drain.remaining(now) == remaining


@given(st.floats(0, 1e6), st.floats(0, 1e3), st.floats(0, 1e6))
def test_a_drain_is_over_after_its_remaining_time(began: float, timeout: float, waited: float) -> None:
    drain = Drain(began, timeout)
    now = began + waited

    assert drain.is_over(1, max(now, began + timeout))
    assert drain.is_over(1, now) is (drain.remaining(now) == 0.0)


# -- the diagram


def test_the_diagram_has_a_line_for_each_move() -> None:
    lines = build_diagram().splitlines()

    assert lines[0] == "stateDiagram-v2"
    assert len(lines) == 3 + sum(len(moves) for moves in TRANSITIONS.values())
    assert "    restarting --> ready: handshake ok again" in lines
