"""A running link can be observed: each frame of both directions, by several observers, for as long as they want."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from becket.peer.peer import Peer
from becket.testing import SplitReads, child, memory_pair

pytestmark = pytest.mark.loops

Seen = list[tuple[bool, bytes]]
CALL = b'{"jsonrpc":"2.0","id":%d,"method":"echo","params":[%d]}'
RESPONSE = b'{"jsonrpc":"2.0","id":%d,"result":[%d]}'


@asynccontextmanager
async def paired() -> AsyncGenerator[tuple[Peer, Peer], None]:
    async with memory_pair(left=lambda end: SplitReads(end, every=3)) as (left, right):
        right.handle("echo")(lambda params: params)
        yield left, right


async def test_frames_of_both_directions_are_observed_in_order() -> None:
    ours: Seen = []
    theirs: Seen = []
    with anyio.fail_after(60):
        async with paired() as (left, right):
            left.observe_frames(lambda came_in, body: ours.append((came_in, body)))
            right.observe_frames(lambda came_in, body: theirs.append((came_in, body)))
            assert await left.call("echo", [7]) == [7]

    assert ours == [(False, CALL % (1, 7)), (True, RESPONSE % (1, 7))]
    assert theirs == [(not came_in, body) for came_in, body in ours]


async def test_an_observer_sees_nothing_before_it_comes_and_after_it_leaves() -> None:
    seen: Seen = []
    with anyio.fail_after(60):
        async with paired() as (left, _):
            await left.call("echo", [1])
            end = left.observe_frames(lambda came_in, body: seen.append((came_in, body)))
            await left.call("echo", [2])
            end()
            end()
            await left.call("echo", [3])

    assert seen == [(False, CALL % (2, 2)), (True, RESPONSE % (2, 2))]


async def test_observers_come_and_go_in_any_order() -> None:
    first: list[bytes] = []
    second: list[bytes] = []
    with anyio.fail_after(60):
        async with paired() as (left, _):
            end_first = left.observe_frames(lambda came_in, body: first.append(body))
            end_second = left.observe_frames(lambda came_in, body: second.append(body))
            await left.call("echo", [1])
            end_first()
            await left.call("echo", [2])
            end_second()
            await left.call("echo", [3])

    assert len(first) == 2
    assert len(second) == 4


async def test_messages_that_leave_together_are_observed_one_by_one() -> None:
    sent: list[bytes] = []
    with anyio.fail_after(60):
        async with paired() as (left, _):
            left.observe_frames(lambda came_in, body: came_in or sent.append(body))
            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(left.call, "echo", [number])

    assert sorted(json.loads(body)["params"][0] for body in sent) == [*range(20)]


@pytest.mark.process
async def test_an_observed_child_process_is_still_one_and_ends_in_order() -> None:
    seen: Seen = []
    with anyio.fail_after(60):
        async with Peer.connect_process(child("echoes")) as peer:
            peer.observe_frames(lambda came_in, body: seen.append((came_in, body)))
            await peer.call("anything", {"text": "milk"})
            process = peer.process

    assert process is not None
    assert process.exit_code == 0
    assert [came_in for came_in, _ in seen] == [False, True]
