"""Policies on the blocking runtime: a slow one delays the call that it decides, and no other."""

from __future__ import annotations

import threading

import pytest
from tests.blocking.pairs import Started, blocking_pair

from becket import Meaning, RemoteError
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.permissions.policies import Decision


def test_a_slow_policy_delays_only_the_call_that_it_decides() -> None:
    began, release = threading.Event(), threading.Event()

    def policy(decision: Decision) -> bool:
        if decision.method == "slow":
            began.set()
            return release.wait(60)
        return True

    with blocking_pair(gate=Gate("notes", Grants(), policy=policy)) as (left, right):
        right.handle("slow")(lambda: "slow")
        right.handle("quick")(lambda: "quick")
        slow = Started(left.call, "slow")
        assert began.wait(60)
        assert [Started(left.call, "quick").result() for _ in range(3)] == ["quick"] * 3
        assert not slow.is_done
        release.set()
        assert slow.result() == "slow"


@pytest.mark.parametrize("kind", ["no", "raises", "silent"])
def test_every_policy_value_but_true_denies(kind: str) -> None:
    release = threading.Event()

    def policy(decision: Decision) -> bool:
        if kind == "raises":
            raise OSError
        return kind == "silent" and release.wait(60)

    with blocking_pair(gate=Gate("notes", Grants(), policy=policy, policy_timeout=0.1)) as (left, right):
        right.handle("x")(lambda: "x")
        with pytest.raises(RemoteError) as refused:
            Started(left.call, "x").result()
        release.set()
    assert refused.value.meaning is Meaning.PERMISSION_DENIED
