"""Calls and streams that are ended together: each gets an error of its own, and is cancelled at the other peer."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from tests.peer.scripted import Message, response, scripted, settled
from tests.peer.test_acknowledged_streams import TURN, Turn

from becket import Limits, Peer
from becket.errors import NotPermitted

pytestmark = pytest.mark.loops


def not_permitted() -> NotPermitted:
    return NotPermitted("door.open", method="", extension="notes")


class Callers:
    """Calls in tasks, and the outcome of each in the order in which they ended."""

    def __init__(self, peer: Peer) -> None:
        self.outcomes: list[Any] = []
        self._peer = peer

    async def call(self, group: str, method: str = "x") -> None:
        try:
            self.outcomes.append(await self._peer.call_in_group(group, method, None, Any, None))
        except NotPermitted as error:
            self.outcomes.append(error)


def id_of_cancelled(message: Message) -> object:
    assert message["method"] == "$/cancelRequest"
    return message["params"]["id"]


async def test_the_calls_of_a_group_end_and_are_cancelled_at_the_other_peer() -> None:
    async with scripted() as (peer, script), anyio.create_task_group() as tasks:
        callers = Callers(peer)
        for group in ("door", "door", "window"):
            tasks.start_soon(callers.call, group)
            await settled()
        first, second, other = script.unread()
        peer.end_calls("door", not_permitted)
        await settled()
        assert [id_of_cancelled(message) for message in script.unread()] == [first["id"], second["id"]]
        script.send(response(other, "still here"))

    *ended, last = callers.outcomes
    assert last == "still here"
    assert len({id(error) for error in ended}) == 2  # a traceback for each caller
    assert [str(error) for error in ended] == [str(not_permitted())] * 2


async def test_a_late_response_to_an_ended_call_is_dropped() -> None:
    async with scripted() as (peer, script):
        callers = Callers(peer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(callers.call, "door")
            called = await script.receive()
            peer.end_calls("door", not_permitted)
            script.send(response(called, "too late"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(callers.call, "door")
            await script.receive()  # the cancellation
            script.send(response(await script.receive(), "in time"))

    assert [type(outcome) for outcome in callers.outcomes] == [NotPermitted, str]


async def test_a_call_that_waits_for_a_slot_ends_with_its_group_and_is_never_sent() -> None:
    async with scripted(limits=Limits(outbound_calls=1)) as (peer, script), anyio.create_task_group() as tasks:
        callers = Callers(peer)
        for group in ("window", "door", "window"):
            tasks.start_soon(callers.call, group)
            await settled()
        called = await script.receive()
        peer.end_calls("door", not_permitted)
        await settled()
        assert [type(outcome) for outcome in callers.outcomes] == [NotPermitted]
        assert script.unread() == []
        script.send(response(called, "first"))
        script.send(response(await script.receive(), "second"))

    assert callers.outcomes[1:] == ["first", "second"]


async def test_a_call_that_has_a_slot_and_was_not_sent_ends_with_its_group_and_passes_the_slot_on() -> None:
    async with scripted(limits=Limits(outbound_calls=1)) as (peer, script), anyio.create_task_group() as tasks:
        callers = Callers(peer)
        for group in ("window", "door", "window"):
            tasks.start_soon(callers.call, group)
            await settled()
        script.send(response(await script.receive(), "first"))  # the next one has its slot, and has not run yet
        peer.end_calls("door", not_permitted)
        script.send(response(await script.receive(), "third"))

    assert sorted(str(outcome) for outcome in callers.outcomes) == sorted(["first", str(not_permitted()), "third"])


async def test_a_call_that_waits_for_room_in_the_send_queue_ends_with_its_group() -> None:
    async with scripted(limits=Limits(send_queue=100)) as (peer, script), anyio.create_task_group() as tasks:
        callers = Callers(peer)
        script.queued = 1000
        tasks.start_soon(callers.call, "door")
        await settled()
        peer.end_calls("door", not_permitted)
        await settled()
        assert [type(outcome) for outcome in callers.outcomes] == [NotPermitted]
        assert script.unread() == []


async def test_a_stream_ends_with_its_group() -> None:
    async with scripted() as (peer, script):
        stream = peer.stream("x")
        stream.group = "door"
        async with stream as run:
            called = await script.receive()
            peer.end_calls("window", not_permitted)
            assert not run.done()
            peer.end_calls("door", not_permitted)
            with pytest.raises(NotPermitted):
                await run.result()
            assert id_of_cancelled(await script.receive()) == called["id"]


async def test_a_stream_that_was_only_acknowledged_ends_with_its_group() -> None:
    async with scripted() as (peer, script):
        stream = peer.stream(TURN, Turn("a"))
        stream.group = "door"
        async with stream as run:
            script.send(response(await script.receive(), {"stream": "a"}))
            peer.end_calls("window", not_permitted)
            assert not run.done()
            peer.end_calls("door", not_permitted)
            with pytest.raises(NotPermitted):
                await run.result()
            assert (await script.receive())["method"] == "turn/cancel"
