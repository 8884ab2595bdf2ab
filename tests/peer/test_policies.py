"""A slow policy delays only its own call; the rest of the link and of the loop continues."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from msgspec import Struct
from tests.peer.scripted import notification, request, scripted, settled

from becket import Meaning, RemoteError
from becket.methods.descriptors import Method, Notification
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.permissions.policies import Decision, Policy
from becket.testing import memory_pair

pytestmark = pytest.mark.loops


class Note(Struct, frozen=True):
    text: str


WRITE = Method("write", Note, str, requires="memory.write")
READ = Method("read", Note, str, requires="memory.read")
WIDGET = Notification("told", Note, requires="memory.write")
PLAIN = Notification("plain", Note)


def gate(policy: Policy, **options: Any) -> Gate:
    return Gate("notes", Grants.of(["memory.read", "memory.write"]), policy=policy, **options)


class Slow:
    """A policy that is slow for one method, as a plain function or as a coroutine function."""

    def __init__(self, method: str, *, is_async: bool) -> None:
        self.began, self.release = anyio.Event(), anyio.Event()
        self.threads: set[int] = set()
        self._free = threading.Event()
        self._method = method
        self.policy: Policy = self._decide_later if is_async else self._decide

    def _decide(self, decision: Decision) -> bool:
        self.threads.add(threading.get_ident())
        return decision.method != self._method or self._free.wait(60)

    async def _decide_later(self, decision: Decision) -> bool:
        if decision.method == self._method:
            await self.release.wait()
        return True

    def let_go(self) -> None:
        self._free.set()
        self.release.set()


@pytest.fixture(params=["plain", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "async")


async def test_a_slow_policy_delays_only_the_call_that_it_decides(is_async: bool) -> None:
    slow = Slow("write", is_async=is_async)
    order: list[str] = []
    async with memory_pair(right_options={"gate": gate(slow.policy)}) as (left, right):
        right.handle(WRITE)(lambda note: note.text)
        right.handle(READ)(lambda note: note.text)

        async def write() -> None:
            order.append(await left.call(WRITE, Note("written")))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write)
                await settled()
                for number in range(3):
                    order.append(await left.call(READ, Note(f"read {number}")))
                slow.let_go()
    assert order == ["read 0", "read 1", "read 2", "written"]
    assert threading.get_ident() not in slow.threads


async def test_notifications_behind_a_slow_policy_keep_their_order(is_async: bool) -> None:
    slow = Slow("told", is_async=is_async)
    received: list[str] = []
    done = anyio.Event()
    async with scripted(gate=gate(slow.policy)) as (peer, script):
        peer.on(WIDGET)(lambda note: received.append(note.text))

        @peer.on(PLAIN)
        def plain(note: Note) -> None:
            received.append(note.text)
            if note.text == "last":
                done.set()

        script.send(notification("plain", {"text": "before"}))
        script.send(notification("told", {"text": "first"}))
        script.send(notification("plain", {"text": "second"}))
        script.send(notification("told", {"text": "third"}))
        script.send(notification("plain", {"text": "last"}))
        await settled()
        assert received == ["before"]
        slow.let_go()
        with anyio.fail_after(60):
            await done.wait()
    assert received == ["before", "first", "second", "third", "last"]


async def test_a_notification_that_the_policy_denies_is_dropped_and_later_ones_are_not() -> None:
    async def policy(decision: Decision) -> bool:
        return False

    received: list[str] = []
    async with scripted(gate=gate(policy)) as (peer, script):
        peer.on(WIDGET)(lambda note: received.append(note.text))
        peer.on(PLAIN)(lambda note: received.append(note.text))
        script.send(notification("told", {"text": "refused"}))
        script.send(notification("plain", {"text": "heard"}))
        await settled()
    assert received == ["heard"]


@pytest.mark.parametrize("verdict", [None, 1, "yes", False])
async def test_only_true_from_an_async_policy_allows(verdict: Any) -> None:
    async def policy(decision: Decision) -> bool:
        return verdict  # type: ignore[no-any-return]

    async with memory_pair(right_options={"gate": gate(policy)}) as (left, right):
        right.handle(WRITE)(lambda note: note.text)
        with anyio.fail_after(60), pytest.raises(RemoteError) as refused:
            await left.call(WRITE, Note("x"))
    assert refused.value.meaning is Meaning.PERMISSION_DENIED


async def test_an_async_policy_that_raises_denies_and_is_recorded() -> None:
    decisions: list[Decision] = []

    async def policy(decision: Decision) -> bool:
        raise OSError("out of order")

    async with memory_pair(right_options={"gate": gate(policy, audit=decisions.append)}) as (left, right):
        right.handle(WRITE)(lambda note: note.text)
        with anyio.fail_after(60), pytest.raises(RemoteError) as refused:
            await left.call(WRITE, Note("x"))
    assert refused.value.meaning is Meaning.PERMISSION_DENIED
    assert [(decision.allowed, "OSError" in decision.because) for decision in decisions] == [(False, True)]


async def test_a_policy_that_does_not_respond_in_time_denies(is_async: bool) -> None:
    slow = Slow("write", is_async=is_async)
    async with memory_pair(right_options={"gate": gate(slow.policy, policy_timeout=0.02)}) as (left, right):
        right.handle(WRITE)(lambda note: note.text)
        with anyio.fail_after(60), pytest.raises(RemoteError) as refused:
            await left.call(WRITE, Note("x"))
        slow.let_go()
        await settled()
    assert refused.value.meaning is Meaning.PERMISSION_DENIED


async def test_a_plain_handler_runs_on_the_loop_with_a_policy_as_without(is_async: bool) -> None:
    slow = Slow("", is_async=is_async)
    async with memory_pair(right_options={"gate": gate(slow.policy)}) as (left, right):
        right.handle("where")(lambda: threading.get_ident())
        with anyio.fail_after(60):
            assert await left.call("where") == threading.get_ident()


async def test_the_params_of_a_call_are_not_decoded_before_the_policy_has_allowed_it() -> None:
    async def refuse(decision: Decision) -> bool:
        return False

    async with memory_pair(right_options={"gate": gate(refuse)}) as (left, right):
        right.handle(WRITE)(lambda note: note.text)
        with anyio.fail_after(60), pytest.raises(RemoteError) as refused:
            await left.call("write", {"text": 5})
    assert refused.value.meaning is Meaning.PERMISSION_DENIED


async def test_a_call_that_is_cancelled_while_the_policy_decides_never_runs(is_async: bool) -> None:
    slow = Slow("write", is_async=is_async)
    served: list[str] = []
    async with memory_pair(right_options={"gate": gate(slow.policy)}) as (left, right):
        right.handle(WRITE)(lambda note: served.append(note.text) or "")
        right.handle(READ)(lambda note: note.text)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(left.call, WRITE, Note("x"))
                await settled()
                tasks.cancel_scope.cancel()
            assert await left.call(READ, Note("y")) == "y"  # behind the cancellation
            slow.let_go()
            assert await left.call(READ, Note("z")) == "z"
            await settled()
    assert served == []


async def test_a_link_that_ends_while_a_policy_decides_leaves_nothing_behind(is_async: bool) -> None:
    slow = Slow("write", is_async=is_async)
    with anyio.fail_after(60):
        async with scripted(gate=gate(slow.policy)) as (peer, script):
            peer.handle(WRITE)(lambda note: note.text)
            script.send(request(1, "write", {"text": "x"}))
            await settled()
    slow.let_go()


async def test_the_prompt_is_used_only_for_calls_that_the_policy_allows() -> None:
    prompts: list[str] = []

    async def policy(decision: Decision) -> bool:
        return decision.method == "write"

    async def ask(prompt: str, decision: Decision) -> bool:
        prompts.append(decision.method)
        return True

    gatekeeper = Gate("notes", Grants(), policy=policy, asks=True)
    async with memory_pair(right_options={"gate": gatekeeper, "ask": ask}) as (left, right):
        right.handle(WRITE)(lambda note: note.text)
        right.handle(READ)(lambda note: note.text)
        with anyio.fail_after(60):
            assert await left.call(WRITE, Note("x")) == "x"
            with pytest.raises(RemoteError) as refused:
                await left.call(READ, Note("x"))
    assert refused.value.meaning is Meaning.PERMISSION_DENIED
    assert prompts == ["write"]
