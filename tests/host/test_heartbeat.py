"""A heartbeat distinguishes slow from dead, and never blames a child for a stall of the host."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from becket.host.heartbeat import Heartbeat, HeartbeatDecision, HeartbeatPolicy, Liveness

ALIVE, SLOW, DEAD = Liveness.ALIVE, Liveness.SLOW, Liveness.DEAD
PING, QUIET = True, False


def test_a_child_that_hangs_is_slow_and_then_dead_three_seconds_after_its_last_message() -> None:
    heart = Heartbeat(10.0)

    assert heart.next_check == 11.0
    assert heart.check(11.0) == HeartbeatDecision(ALIVE, PING, 11.5)
    assert heart.check(11.5) == HeartbeatDecision(SLOW, QUIET, 13.0)
    assert heart.check(13.0) == HeartbeatDecision(DEAD, QUIET, 13.0)


def test_a_child_that_responds_is_pinged_again_a_second_later() -> None:
    heart = Heartbeat(0.0)
    heart.check(1.0)

    assert heart.on_receive(1.02) == pytest.approx(0.02)

    assert heart.next_check == 2.02
    assert heart.check(2.02) == HeartbeatDecision(ALIVE, PING, 2.52)


def test_a_child_that_sends_messages_is_not_pinged() -> None:
    heart = Heartbeat(0.0)

    assert heart.on_receive(0.7) is None

    assert heart.check(1.0) == HeartbeatDecision(ALIVE, QUIET, 1.7)
    assert heart.check(1.7) == HeartbeatDecision(ALIVE, PING, 2.2)


def test_anything_that_arrives_is_a_sign_of_life_and_needs_not_be_the_response() -> None:
    heart = Heartbeat(0.0)
    heart.check(1.0)
    heart.check(1.5)

    heart.on_receive(2.9)

    assert heart.check(3.0).liveness is not DEAD
    assert heart.check(3.9).sends_ping


def test_a_handler_that_takes_half_a_minute_is_not_fatal_where_pings_get_responses() -> None:
    heart = Heartbeat(0.0)
    now = 0.0
    while now < 30.0:
        now = heart.next_check
        beat = heart.check(now)
        assert beat.liveness is ALIVE
        if beat.sends_ping:
            heart.on_receive(now + 0.01)


def test_a_child_that_is_always_slow_stays_slow_until_one_response_is_quick() -> None:
    heart = Heartbeat(0.0)
    heart.check(1.0)
    assert heart.check(1.5).liveness is SLOW
    heart.on_receive(1.6)

    assert heart.check(2.6) == HeartbeatDecision(SLOW, PING, 3.1)
    heart.on_receive(2.7)

    assert heart.check(3.7).liveness is ALIVE


def test_a_response_just_in_time_is_a_quick_one() -> None:
    heart = Heartbeat(0.0)
    heart.check(1.0)
    heart.check(1.5)
    heart.on_receive(1.75)
    heart.check(2.75)

    assert heart.on_receive(3.25) == 0.5

    assert heart.check(4.25).liveness is ALIVE


@pytest.mark.parametrize(("late", "stalled"), [(0.25, 0.0), (0.26, 0.26)])
def test_a_quarter_of_a_second_late_is_not_a_stall(late: float, stalled: float) -> None:
    assert Heartbeat(0.0).check(1.0 + late).stalled == pytest.approx(stalled)


def test_a_check_that_comes_too_early_changes_nothing() -> None:
    heart = Heartbeat(0.0)

    assert heart.check(0.5) == HeartbeatDecision(ALIVE, QUIET, 1.0)
    heart.check(1.0)
    assert heart.check(1.2) == HeartbeatDecision(ALIVE, QUIET, 1.5)
    assert heart.check(1.5) == HeartbeatDecision(SLOW, QUIET, 3.0)


# The host looks at these times though it should have looked earlier; the child is silent all the while.
@pytest.mark.parametrize(
    ("looks", "beats"),
    [
        pytest.param([60.0], [HeartbeatDecision(ALIVE, PING, 60.5, 59.0)], id="stalled-before-it-asked"),
        pytest.param(
            [1.0, 61.5],
            [HeartbeatDecision(ALIVE, PING, 1.5), HeartbeatDecision(ALIVE, QUIET, 63.0, 60.0)],
            id="stalled-while-it-waited",
        ),
        pytest.param(
            [1.0, 1.5, 63.0, 64.0],
            [
                HeartbeatDecision(ALIVE, PING, 1.5),
                HeartbeatDecision(SLOW, QUIET, 3.0),
                HeartbeatDecision(SLOW, QUIET, 64.0, 60.0),
                HeartbeatDecision(DEAD, QUIET, 64.0),
            ],
            id="stalled-when-it-would-have-given-up",
        ),
        pytest.param(
            [1.0, 1.5, 3.2],
            [
                HeartbeatDecision(ALIVE, PING, 1.5),
                HeartbeatDecision(SLOW, QUIET, 3.0),
                HeartbeatDecision(DEAD, QUIET, 3.2),
            ],
            id="a-little-late-is-no-stall",
        ),
    ],
)
def test_a_host_that_was_stalled_gives_the_child_its_time_back(
    looks: list[float], beats: list[HeartbeatDecision]
) -> None:
    heart = Heartbeat(0.0)

    assert [heart.check(now) for now in looks] == beats


def test_a_response_that_waited_for_a_stalled_host_counts_as_in_time() -> None:
    heart = Heartbeat(0.0)
    heart.check(1.0)  # the child responds at 1.001, and the host is stalled until 50

    assert heart.check(50.0).liveness is ALIVE
    heart.on_receive(50.001)

    assert heart.check(51.001) == HeartbeatDecision(ALIVE, PING, 51.501)


POLICIES = st.builds(
    HeartbeatPolicy,
    every=st.floats(0.1, 5.0),
    slow_after=st.floats(0.1, 1.0),
    dead_after=st.floats(1.5, 5.0),
    stalled_after=st.floats(0.01, 0.25),
)


# How long the child takes to respond, and how long the loop of the host is then blocked by something else.
DAYS = st.lists(st.tuples(st.floats(0, 0.09), st.floats(0, 100.0)), max_size=50)


@pytest.mark.parametrize("reads_first", [True, False])
@given(policy=POLICIES, days=DAYS)
def test_a_child_that_responds_quickly_is_never_dead_however_the_host_stalls(
    policy: HeartbeatPolicy, days: list[tuple[float, float]], reads_first: bool
) -> None:
    heart = Heartbeat(0.0, policy)
    now = 0.0
    for latency, blocked in days:
        now = max(now, heart.next_check)
        beat = heart.check(now)
        assert beat.liveness is not DEAD
        assert not reads_first or beat.liveness is ALIVE
        if not beat.sends_ping:
            continue
        now += max(latency, blocked)
        if not reads_first and now >= heart.next_check:
            assert heart.check(now).liveness is not DEAD
        heart.on_receive(now)


@given(POLICIES, st.lists(st.floats(0, 0.5), max_size=20))
def test_a_silent_child_is_dead_in_the_end_though_the_host_stalls_now_and_then(
    policy: HeartbeatPolicy, stalls: list[float]
) -> None:
    heart = Heartbeat(0.0, policy)
    late = iter(stalls)
    now = 0.0
    for _ in range(100):
        now = heart.next_check + next(late, 0.0)
        if heart.check(now).liveness is DEAD:
            break
    else:
        pytest.fail("it was never found")

    assert now <= policy.every + policy.dead_after + sum(stalls) + len(stalls) * policy.every + 1e-6
