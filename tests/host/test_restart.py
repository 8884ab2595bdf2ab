"""Restarts: delays, limits and the history. In virtual time, without any process."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from random import Random

import msgspec
import pytest
from hypothesis import given, strategies as st

from becket.host.restart import (
    GiveUp,
    Restart,
    RestartDecision,
    RestartHistory,
    RestartPolicy,
    RestartStrategy,
    Stagger,
    decide_restart,
)
from becket.testing import VirtualClock

STEADY = RestartPolicy(jitter=0.0)


def no_chance() -> float:
    return 0.0


def decide(policy: RestartPolicy, history: RestartHistory, now: float) -> RestartDecision:
    return decide_restart(policy, history, now=now, random=no_chance)


def crash_again_and_again(policy: RestartPolicy, uptimes: list[float], *, start: float = 0.0) -> list[float | str]:
    """Returns the delay of each restart, or why there was none, of processes that stay up for these times."""
    clock = VirtualClock()
    history = RestartHistory().became_ready(clock.advance(start))
    seen: list[float | str] = []
    for uptime in uptimes:
        decision = decide(policy, history, clock.advance(uptime))
        history = decision.history
        if isinstance(decision, GiveUp):
            seen.append(decision.because)
            break
        seen.append(decision.delay)
        history = history.became_ready(clock.advance(decision.delay))
    return seen


BUDGET = "exceeded restart limit (5 within 60 s)"


@pytest.mark.parametrize(
    ("uptimes", "seen"),
    [
        pytest.param([0] * 9, [0, 0.1, 0.2, 0.4, 0.8, BUDGET], id="a-crash-loop-ends-failed"),
        pytest.param([100], [0], id="the-first-after-a-healthy-time-is-immediate"),
        pytest.param([3], [0], id="so-is-the-first-of-all"),
        pytest.param([60, 60, 60, 60, 60, 60, 60], [0] * 7, id="an-end-an-hour-is-no-loop"),
        pytest.param([1, 1, 60, 1], [0, 0.1, 0, 0.1], id="staying-up-lets-all-be-forgotten"),
        pytest.param([1, 1, 59.9, 1], [0, 0.1, 0.2, 0.4], id="nearly-staying-up-does-not"),
        pytest.param([0, 13, 13, 13, 13, 13], [0, 0.1, 0.2, 0.4, 0.8, 1.6], id="slow-crashes-stay-within-the-budget"),
    ],
)
def test_delays_and_the_budget_are_as_documented(uptimes: list[float], seen: list[float | str]) -> None:
    assert crash_again_and_again(STEADY, uptimes) == seen


def test_delays_double_up_to_the_longest() -> None:
    policy = RestartPolicy(jitter=0.0, most=1000, window=1.0, healthy_after=inf)

    seen = crash_again_and_again(policy, [2.0] * 200)

    assert seen[:5] == [0, 0.1, 0.2, 0.4, 0.8]
    assert seen[10:] == [30.0] * 190


@pytest.mark.parametrize(
    ("strategy", "seen"),
    [
        ("never", ["it is never restarted"]),
        ("immediate", [0, 0, 0, 0, 0, BUDGET]),
    ],
)
def test_the_other_strategies_never_restart_or_restart_at_once(strategy: str, seen: list[float | str]) -> None:
    policy = RestartPolicy(strategy=RestartStrategy(strategy))

    assert crash_again_and_again(policy, [0] * 9) == seen


def test_with_no_restarts_allowed_there_is_no_restart() -> None:
    assert crash_again_and_again(RestartPolicy(most=0), [0]) == ["exceeded restart limit (0 within 60 s)"]


# -- the edge of the window, and clocks that jump


@pytest.mark.parametrize(
    ("now", "is_restarted"),
    [
        pytest.param(59.9, False, id="within"),
        pytest.param(60.0, True, id="exactly-at-the-edge"),
        pytest.param(60.1, True, id="beyond"),
    ],
)
def test_a_restart_leaves_the_window_when_it_is_as_old_as_the_window(now: float, is_restarted: bool) -> None:
    policy = RestartPolicy(strategy=RestartStrategy.IMMEDIATE, most=3, window=60.0, healthy_after=inf)
    history = RestartHistory(None, (0.0, 10.0, 20.0), 3, 3)

    decision = decide(policy, history, now)

    assert isinstance(decision, Restart) is is_restarted


def test_the_window_counts_when_restarts_happen_not_when_they_were_decided() -> None:
    policy = RestartPolicy(most=1, window=10.0, delay=5.0, healthy_after=inf, jitter=0.0)
    first = decide(policy, RestartHistory(), 0.0)

    assert first == Restart(0.0, 1, RestartHistory(None, (0.0,), 1, 1))
    assert isinstance(decide(policy, first.history, 4.0), GiveUp)
    assert decide(policy, first.history, 6.0) == Restart(5.0, 2, RestartHistory(None, (11.0,), 2, 2))


@pytest.mark.parametrize("jump", [-1e9, -3600.0, -1.0, 0.0])
def test_a_clock_that_jumps_back_gives_no_further_restarts_and_no_longer_delays(jump: float) -> None:
    history = RestartHistory()
    now = 1_000.0
    decisions: list[RestartDecision] = []
    for _ in range(6):
        decision = decide(STEADY, history, now)
        decisions.append(decision)
        history = decision.history
        now += jump

    assert [type(decision) for decision in decisions] == [Restart] * 5 + [GiveUp]
    assert [decision.delay for decision in decisions[:5] if isinstance(decision, Restart)] == [0, 0.1, 0.2, 0.4, 0.8]


def test_a_clock_that_jumped_back_counts_as_unchanged() -> None:
    once = RestartHistory(None, (1_000.0,), 1, 1)

    assert decide(STEADY, once, 0.0) == Restart(0.1, 2, RestartHistory(None, (1_000.0, 1_000.1), 2, 2))
    assert decide(STEADY, once.became_ready(1_001.0), 0.0).history.recent == (1_000.0, 1_001.1)


@pytest.mark.parametrize(
    ("policy", "because", "recent"),
    [
        (RestartPolicy(strategy=RestartStrategy.NEVER), "it is never restarted", (0.0, 50.0, 60.0)),
        (RestartPolicy(most=2, window=60.0, jitter=0.0), "exceeded restart limit (2 within 60 s)", (50.0, 60.0)),
    ],
)
def test_giving_up_preserves_the_record_without_the_process(
    policy: RestartPolicy, because: str, recent: tuple[float, ...]
) -> None:
    history = RestartHistory(61.0, (0.0, 50.0, 60.0), 3, 7)

    assert decide(policy, history, 62.0) == GiveUp(because, RestartHistory(None, recent, 3, 7))


def test_a_clock_that_jumps_far_ahead_clears_the_history() -> None:
    history = RestartHistory(None, (0.0, 1.0, 2.0, 3.0, 4.0), 5, 5).became_ready(5.0)

    decision = decide(STEADY, history, 1e9)

    assert decision == Restart(0.0, 1, RestartHistory(None, (1e9,), 1, 6))


def test_a_handshake_that_fails_on_a_restart_counts_though_it_took_long() -> None:
    history = decide(STEADY, RestartHistory(), 0.0).history

    decision = decide(STEADY, history, 70.0)

    assert isinstance(decision, Restart)
    assert (decision.delay, decision.attempt) == (0.1, 2)


def test_an_extension_that_is_started_explicitly_has_a_clean_record() -> None:
    history = RestartHistory(3.0, (0.0, 0.1), 2, 7)

    assert history.cleared() == RestartHistory(total=7)


# -- what other systems do


def test_the_policy_of_synaps_can_be_configured() -> None:
    """Three restarts after 250, 500 and 1000 ms; being ready again is enough to start anew."""
    policy = RestartPolicy(
        most=3, window=inf, delay=0.25, longest_delay=5.0, healthy_after=0.0, jitter=0.0, first_is_immediate=False
    )
    history = RestartHistory()
    delays: list[float] = []
    while isinstance(decision := decide(policy, history, now=9.0), Restart):
        delays.append(decision.delay)
        history = decision.history

    assert delays == [0.25, 0.5, 1.0]
    assert decision.because == "exceeded restart limit (3)"
    assert crash_again_and_again(policy, [0.0, 1.0, 0.5, 7.0]) == [0.25] * 4


def test_the_policy_of_nexo_can_be_configured() -> None:
    """Five restarts after 1, 2, 4, 8 and 16 s; five minutes without a crash start anew."""
    policy = RestartPolicy(
        most=5, window=inf, delay=1.0, longest_delay=16.0, healthy_after=300.0, jitter=0.0, first_is_immediate=False
    )

    assert crash_again_and_again(policy, [1.0] * 6) == [1, 2, 4, 8, 16, "exceeded restart limit (5)"]
    assert crash_again_and_again(policy, [1.0, 1.0, 300.0, 1.0]) == [1, 2, 1, 2]


def test_the_policy_of_a_manifest_is_read_with_its_defaults() -> None:
    given = {"strategy": "immediate", "most": 3, "window": 10, "delay": 1, "longest_delay": 2.5, "healthy_after": 7}

    assert msgspec.convert(given, RestartPolicy) == RestartPolicy(
        strategy=RestartStrategy.IMMEDIATE, most=3, window=10.0, delay=1.0, longest_delay=2.5, healthy_after=7.0
    )
    assert msgspec.convert({}, RestartPolicy) == RestartPolicy()
    for wrong in ({"strategy": "often"}, {"most": -1}, {"delay": -0.1}, {"jitter": 0.6}, {"delays": 1}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, RestartPolicy)


# -- whatever happens

POLICIES = st.builds(
    RestartPolicy,
    strategy=st.sampled_from(RestartStrategy),
    most=st.integers(0, 8),
    window=st.floats(0.5, 100.0) | st.just(inf),
    delay=st.floats(0.01, 5.0),
    longest_delay=st.floats(0.01, 50.0),
    healthy_after=st.floats(0.0, 100.0),
    jitter=st.floats(0.0, 0.5),
    first_is_immediate=st.booleans(),
)
# How long a process took to its handshake, whether it came so far, and how long it then stayed up.
LIVES = st.lists(st.tuples(st.floats(0, 5.0), st.booleans(), st.floats(0, 50.0)), max_size=40)


@given(POLICIES, LIVES, st.integers())
def test_no_window_holds_more_restarts_than_allowed_unless_one_was_healthy_between(
    policy: RestartPolicy, lives: list[tuple[float, bool, float]], seed: int
) -> None:
    clock = VirtualClock()
    random = Random(seed)
    history = RestartHistory()
    restarts: list[float] = []
    for handshake, succeeds, uptime in lives:
        clock.advance(handshake)
        if succeeds:
            history = history.became_ready(clock())
            clock.advance(uptime)
        decision = decide_restart(policy, history, now=clock(), random=random.random)
        if succeeds and clock() - (history.ready_at or 0.0) >= policy.healthy_after:
            restarts.clear()
        if isinstance(decision, GiveUp):
            break
        assert 0.0 <= decision.delay <= policy.longest_delay
        assert decision.attempt == decision.history.consecutive == len(restarts) + 1
        restarts.append(clock.advance(decision.delay))
        within = [at for at in restarts if restarts[-1] - at < policy.window]
        assert len(within) <= policy.most
        history = decision.history


@given(POLICIES, st.integers(1, 60), st.integers())
def test_a_loop_of_crashes_waits_ever_longer_until_it_ends(policy: RestartPolicy, count: int, seed: int) -> None:
    random = Random(seed)
    history = RestartHistory()
    delays: list[float] = []
    now = 0.0
    for _ in range(count):
        decision = decide_restart(policy, history, now=now, random=random.random)
        if isinstance(decision, GiveUp):
            break
        # Each is at least half of twice the one before: jitter takes no more than half.
        assert not delays or decision.delay >= min(delays[-1], policy.longest_delay / 2) * (1 - 1e-9)
        delays.append(decision.delay)
        history = decision.history
        now += decision.delay
    assert len(history.recent) <= policy.most


@given(st.integers(0, 5_000))
def test_no_number_of_restarts_is_too_large_for_the_delay(in_a_row: int) -> None:
    decision = decide(RestartPolicy(most=1000), RestartHistory(None, (), in_a_row, in_a_row), 0.0)

    assert isinstance(decision, Restart)
    assert decision.delay <= 30.0


def test_jitter_only_shortens_delays() -> None:
    history = RestartHistory(None, (0.0,), 8, 8)
    random = Random(1)
    found = [decide_restart(RestartPolicy(), history, now=1.0, random=random.random) for _ in range(200)]
    delays = [decision.delay for decision in found if isinstance(decision, Restart)]

    assert len(delays) == 200
    assert 12.8 * 0.75 <= min(delays) < 10.0
    assert 12.0 < max(delays) <= 12.8


# -- many at once


def test_fifty_extensions_that_end_at_once_are_restarted_one_after_the_other() -> None:
    stagger = Stagger()

    waits = [stagger.reserve(100.0) for _ in range(50)]

    assert waits[:4] == [0.0, 0.0, 0.0, 0.0]
    assert waits == sorted(waits)
    assert all(later - earlier == pytest.approx(0.05) for earlier, later in pairwise(waits[3:]))
    assert waits[-1] < 2.5


def test_a_single_restart_never_waits() -> None:
    stagger = Stagger(at_once=1, gap=0.5)

    assert [stagger.reserve(now) for now in (0.0, 0.5, 7.0, 7.25, 100.0)] == [0.0, 0.0, 0.0, 0.25, 0.0]


@given(st.lists(st.floats(0, 3.0), max_size=60), st.integers(1, 5), st.floats(0.01, 1.0))
def test_the_number_of_restarts_within_the_gap_is_bounded(pauses: list[float], at_once: int, gap: float) -> None:
    stagger = Stagger(at_once, gap)
    clock = VirtualClock()
    starts = [(now := clock.advance(pause)) + stagger.reserve(now) for pause in pauses]

    for place in range(len(starts) - at_once):
        assert starts[place + at_once] - starts[place] >= gap * (1 - 1e-6) - 1e-9
    assert starts == sorted(starts)
